"""Runs again and again: what they leave behind, and what they own."""

import gc
import threading
import weakref

import numpy as np
import pytest
import rukh
from models import model
from onnx import TensorProto, helper, numpy_helper
from rukh import _bound_run, _calls, _plain, _values

# As many elements of float32 as are copied, and one more, which makes them shared.
LIMIT = _calls._COPIED // 4
SIZES = [0, 3, LIMIT, LIMIT + 1]

TWO = model([("Add", ["a", "b"], ["s"]), ("Sub", ["a", "b"], ["d"])], a=["n"], b=["n"], s=["n"], d=["n"])
SAME = model([("Identity", ["x"], ["y"])], x=["n"], y=["n"])


def feed(size):
    return {"a": np.arange(size, dtype=np.float32), "b": np.ones(size, np.float32)}


@pytest.mark.parametrize("size", SIZES)
def test_runs_leave_nothing_to_the_collector(size):
    session = rukh.InferenceSession(TWO)
    given = feed(size)
    values = {name: rukh.OrtValue.ortvalue_from_numpy(array) for name, array in given.items()}
    binding = session.io_binding()

    def run():
        session.run(None, given)
        session.run(["d"], given, rukh.RunOptions())
        session.run_with_ort_values(None, values)[1].numpy()
        binding.bind_cpu_input("a", given["a"])
        binding.bind_ortvalue_input("b", values["b"])
        binding.bind_output("s")
        session.run_with_iobinding(binding)
        binding.copy_outputs_to_cpu()

    # The third makes what is kept for those that are alike.
    for _ in range(3):
        run()
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(20):
            run()
        assert len(gc.get_objects()) - before < 10
    finally:
        gc.enable()


def test_names_are_made_ready_once(monkeypatch):
    session = rukh.InferenceSession(TWO)
    first = session.run(["d", "s"], feed(3))
    monkeypatch.setattr(_calls, "texts_array", None)
    assert np.array_equal(session.run(["d", "s"], feed(3)), first)
    # Another order needs other names.
    with pytest.raises(TypeError):
        session.run(["s", "d"], feed(3))


def test_every_value_is_destroyed(monkeypatch):
    there = []

    def counting(step, function):
        def counted(*arguments):
            there.append(step)
            return function(*arguments)

        return counted

    session = rukh.InferenceSession(TWO)
    for name, step in (("create_copy", 1), ("create_over", 1), ("destroy", -1)):
        monkeypatch.setattr(_plain, name, counting(step, getattr(_plain, name)))
    # The second input is refused when the first is there.
    with pytest.raises(TypeError):
        session.run(None, feed(3) | {"b": np.zeros(3, "datetime64[s]")})
    assert there == [1, -1]
    there.clear()
    for size in SIZES:
        session.run(None, feed(size))
        # Two inputs; of the outputs those that are copied.
        assert sum(there) == (-2 if size <= LIMIT else 0)
        there.clear()


@pytest.mark.parametrize("size", SIZES)
def test_large_inputs_are_kept_as_long_as_the_run(size):
    session = rukh.InferenceSession(SAME)
    x = np.zeros(size, np.float32)
    gone = weakref.ref(x)
    before = len(_values._owners)
    outputs = session.run(None, {"x": x})
    with pytest.raises(rukh.InvalidInputError):
        session.run(None, {"x": x.reshape(size, 1)})
    del x
    assert gone() is None and len(_values._owners) == before and outputs[0].shape == (size,)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("element", ["FLOAT", "DOUBLE", "BFLOAT16", "BOOL", "INT64", "INT4", "FLOAT8E4M3FN"])
def test_outputs_own_their_memory(element, size):
    number = getattr(TensorProto, element)
    session = rukh.InferenceSession(
        model([("Identity", ["x"], ["y"])], opset=23, x=(number, ["n", 1]), y=(number, ["n", 1]))
    )
    dtype = rukh.OrtValue.ortvalue_from_shape_and_type([1], number).numpy().dtype
    x = (np.arange(size).reshape(size, 1) % 2).astype(dtype)
    (y,) = session.run(None, {"x": x})
    del session
    gc.collect()
    assert y.dtype == dtype and y.shape == x.shape and y.flags.writeable and y.flags.c_contiguous
    assert y.tobytes() == x.tobytes() and not np.shares_memory(x, y)


def test_shapes_and_types_may_change_from_run_to_run():
    session = rukh.InferenceSession(SAME)
    for size in (3, 5, LIMIT + 1, 5, 0, 3):
        x = np.arange(size, dtype=np.float32)
        for given in (x, x[::-1], x.astype(">f4"), x.tolist() if size else x, rukh.OrtValue(x)):
            (y,) = session.run(None, {"x": given})
            assert y.tolist() == np.asarray(given).tolist()
        with pytest.raises(rukh.InvalidInputError, match=r"Actual: \(tensor\(int32\)\)"):
            session.run(None, {"x": x.astype(np.int32)})
        with pytest.raises(rukh.InvalidInputError, match="Got: 2 Expected: 1"):
            session.run(None, {"x": x.reshape(1, size)})


def test_scalars_and_many_dimensions():
    for rank in (0, 1, 8, 9, 12):
        shape = [1] * rank
        session = rukh.InferenceSession(model([("Neg", ["x"], ["y"])], x=shape, y=shape))
        (y,) = session.run(None, {"x": np.full(shape, 2, np.float32)})
        assert y.shape == tuple(shape) and y.item() == -2


def test_many_choices_of_outputs():
    names = [f"y{i}" for i in range(8)]
    nodes = [helper.make_node("Add", ["x", "x"], [name]) for name in names]
    session = rukh.InferenceSession(model(nodes, x=[2], **{name: [2] for name in names}))
    x = np.array([1, 2], np.float32)
    for choice in range(1, 256):
        wanted = [name for i, name in enumerate(names) if choice >> i & 1]
        assert [y.tolist() for y in session.run(wanted, {"x": x})] == [[2, 4]] * len(wanted)
    assert len(session._calls) <= 32


def test_names_that_are_none():
    session = rukh.InferenceSession(TWO)
    for names in ([["s"]], [None], ["s", 3]):
        with pytest.raises(rukh.UnknownNameError, match="Invalid output name"):
            session.run(names, feed(3))


def test_threads_that_run_one_session_do_not_share_memory():
    session = rukh.InferenceSession(TWO)
    start, failures = threading.Barrier(4), []

    def work(number):
        start.wait()
        for i in range(300):
            size = (3, 40, LIMIT + 1)[(i + number) % 3]
            a = np.full(size, number, np.float32)
            s, d = session.run(None, {"a": a, "b": a})
            if not (np.all(s == 2 * number) and not d.any() and s.shape == (size,)):
                failures.append((number, i))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("size", SIZES)
def test_another_device_gets_the_same_inputs(size, monkeypatch):
    session = rukh.InferenceSession(TWO)
    run, failures = _calls.Call.run, [rukh.DeviceError("the device is lost")]

    def failing(call, options):
        if failures:
            raise failures.pop()
        run(call, options)

    monkeypatch.setattr(_calls.Call, "run", failing)
    monkeypatch.setattr(session, "_fall_back", lambda error: session.set_providers(["CPUExecutionProvider"]))
    for _ in range(2):
        s, d = session.run(None, feed(size))
        assert np.array_equal(s, np.arange(size) + 1) and np.array_equal(d, np.arange(size) - 1)
    assert not failures


def counting(monkeypatch):
    """The runs by a binding that stays, and whether the arrays were like those it is for."""
    kept, run = [], _bound_run.BoundRun.run

    def counted(self, things, options):
        outputs = run(self, things, options)
        kept.append(outputs is not None)
        return outputs

    monkeypatch.setattr(_bound_run.BoundRun, "run", counted)
    return kept


def test_a_binding_stays_for_runs_that_are_alike(monkeypatch):
    kept = counting(monkeypatch)
    session = rukh.InferenceSession(TWO)
    found = []
    # The third run is the first by the binding; other shapes, types and things take the way of the first run.
    for size, wanted in (
        (3, [True]),
        (5, [False, True]),
        (LIMIT + 1, [False, True]),
        (4 * LIMIT, [False, True]),
        ((1 << 18) + 1, [False]),
        (0, [True]),
    ):
        for i in range(3):
            a = np.arange(size, dtype=np.float32) + i
            s, d = session.run(None, {"a": a, "b": np.ones(size, np.float32)})
            assert np.array_equal(s, a + 1) and np.array_equal(d, a - 1) and s.dtype == np.float32
            found.append((s, s.copy()))
        assert kept == wanted
        kept.clear()
    # What a run gave stays as it was, and belongs to the caller.
    assert all(np.array_equal(s, copy) and s.flags.writeable for s, copy in found)
    before = len(_values._owners)
    del session
    gc.collect()
    assert len(_values._owners) <= before - 4


def test_a_binding_that_stays_with_options_lists_and_repeated_names(monkeypatch):
    kept = counting(monkeypatch)
    session = rukh.InferenceSession(TWO)
    for _ in range(4):
        assert session.run(["d"], feed(3), rukh.RunOptions())[0].tolist() == [-1, 0, 1]
    assert kept == [True, True]
    # A small array may lie anywhere, a large one where the library can read it.
    assert session.run(["d"], {"a": np.arange(6, dtype=np.float32)[::2], "b": feed(3)["b"]})[0].tolist() == [-1, 1, 3]
    assert kept == [True] * 3
    assert session.run(["d"], {"a": [1.0, 2.0, 3.0], "b": [1.0, 1.0, 1.0]})[0].tolist() == [0, 1, 2]
    assert session.run(["d"], feed(3))[0].tolist() == [-1, 0, 1]
    for _ in range(4):
        assert [y.tolist() for y in session.run(["d", "d"], feed(2))] == [[-1, 0], [-1, 0]]
    assert kept == [True] * 3 + [False]


def test_large_arrays_that_cannot_be_lent(monkeypatch):
    kept = counting(monkeypatch)
    session = rukh.InferenceSession(TWO)
    size = LIMIT + 1
    straight = np.arange(2 * size, dtype=np.float32)
    raw = np.empty(4 * size + 1, np.uint8)[1:].view(np.float32)
    raw[:] = straight[:size]
    for a in (straight[:size], straight[size:], straight[::2], straight[:size], straight[1:size + 1], raw):
        for _ in range(2):
            s, d = session.run(None, {"a": a, "b": np.ones(size, np.float32)})
            assert np.array_equal(s, a + 1) and np.array_equal(d, a - 1) and not np.shares_memory(s, d)
    assert True in kept and False in kept


def test_a_binding_that_stays_where_outputs_depend_on_data(monkeypatch):
    kept = counting(monkeypatch)
    found = model([("NonZero", ["x"], ["y"])], x=["n"], y=(TensorProto.INT64, [1, "m"]))
    session = rukh.InferenceSession(found)
    for x in ([1, 0, 1], [1, 1, 0], [0, 1, 1], [0, 0, 1], [1, 1, 1], [0, 0, 0]):
        (y,) = session.run(None, {"x": np.array(x, np.float32)})
        assert y.tolist() == [[i for i, value in enumerate(x) if value]]
    assert kept == [True]


def test_errors_by_a_binding_that_stays_are_those_without(monkeypatch):
    kept = counting(monkeypatch)
    row = model([("Gather", ["x", "i"], ["y"])], x=[4], i=(TensorProto.INT64, [1]), y=[1])
    session = rukh.InferenceSession(row)
    x, messages = np.arange(4, dtype=np.float32), []
    for i in (0, 9, 1, 2, 3, 9, 2):
        try:
            (y,) = session.run(None, {"x": x, "i": np.array([i])})
            assert y.tolist() == [i]
        except rukh.InvalidDataError as error:
            messages.append(str(error))
    assert len(messages) == 2 and len(set(messages)) == 1 and "out of" in messages[0]
    # An error begins anew.
    assert kept == [True]
    options = rukh.RunOptions()
    options.terminate = True
    with pytest.raises(rukh.CancelledError, match="terminate flag"):
        session.run(None, {"x": x, "i": np.array([1])}, options)


def test_whole_models_by_a_binding_that_stays(monkeypatch):
    """Weights inside, a branch and a loop, outputs by name, and a number of rows that changes."""
    kept = counting(monkeypatch)
    weights = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
    flags = {"go": TensorProto.BOOL, "go_on": TensorProto.BOOL, "i": TensorProto.INT64}

    def body(nodes, outputs, inputs=()):
        infos = [
            helper.make_tensor_value_info(name, flags.get(name, TensorProto.FLOAT), None)
            for name in (*inputs, *outputs)
        ]
        return helper.make_graph(nodes, "body", infos[: len(inputs)], infos[len(inputs) :])

    node = helper.make_node
    graph = helper.make_graph(
        [
            node("MatMul", ["x", "w"], ["m"]),
            node(
                "If",
                ["double"],
                ["p"],
                then_branch=body([node("Add", ["m", "m"], ["t"])], ["t"]),
                else_branch=body([node("Relu", ["m"], ["e"])], ["e"]),
            ),
            node(
                "Loop",
                ["count", "", "p"],
                ["y"],
                body=body(
                    [node("Identity", ["go"], ["go_on"]), node("Add", ["a", "m"], ["b"])],
                    ["go_on", "b"],
                    ["i", "go", "a"],
                ),
            ),
        ],
        "whole",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3]),
            helper.make_tensor_value_info("double", TensorProto.BOOL, []),
            helper.make_tensor_value_info("count", TensorProto.INT64, []),
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in ("p", "y")],
        [numpy_helper.from_array(weights, "w")],
    )
    whole = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    session = rukh.InferenceSession(whole.SerializeToString())
    for rows in (2, 2, 2, 5, 5, 5, 2, 6000, 6000, 6000):
        for names in (["y", "p"], ["p"]):
            for double, count in ((True, 2), (False, 0), (False, 3)):
                x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3) % 7 - 3
                given = {"x": x, "double": np.array(double), "count": np.array(count, np.int64)}
                found = dict(zip(names, session.run(names, given), strict=True))
                m = x @ weights
                p = m + m if double else np.maximum(m, 0)
                want = {"p": p, "y": p + count * m}
                assert all(np.allclose(found[name], want[name]) for name in names)
    assert kept.count(True) > 20
