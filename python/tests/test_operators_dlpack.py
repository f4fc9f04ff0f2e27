"""Operators whose functions take and give objects of other libraries, and those that are computed ahead."""

import gc

import numpy as np
import pytest
import rukh
from onnx import TensorProto, helper, numpy_helper
from rukh import _calls

FLOAT, STRING = TensorProto.FLOAT, TensorProto.STRING


def model(inputs, outputs, nodes=None, constants=None):
    def values(given):
        return [helper.make_tensor_value_info(name, element, ["n"]) for name, element in given.items()]

    nodes = nodes or [helper.make_node("Op", list(inputs), list(outputs), domain="my")]
    initializers = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "graph", values(inputs), values(outputs), initializers)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()


ONE = model({"x": FLOAT}, {"y": FLOAT})


def op(function, **more):
    return rukh.operator("my", "Op", inputs={"x": "float"}, outputs={"y": "float"}, **more)(function)


def session(data, operator):
    options = rukh.SessionOptions()
    options.add_operator(operator)
    return rukh.InferenceSession(data, options)


class Tensor:
    """What another library has: DLPack, and nothing else that NumPy or rukh would know."""

    def __init__(self, thing):
        self.array = np.from_dlpack(thing)

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def run(made, x):
    (y,) = made.run(None, {"x": x})
    return y


X = np.array([1, -2, 3], np.float32)
# Small arrays are copied on the way in and out.
LONG = np.tile(X, _calls._COPIED // X.itemsize)


@pytest.mark.parametrize("shapes", [None, lambda x: x])
@pytest.mark.parametrize("library", [np.from_dlpack, Tensor])
def test_tensors_of_other_libraries_come_without_a_copy(shapes, library):
    seen = []

    def double(x):
        assert isinstance(x, np.ndarray if library is np.from_dlpack else Tensor)
        array = x if library is np.from_dlpack else x.array
        seen.append(array.ctypes.data)
        return library(2 * array)

    made = session(ONE, op(double, shapes=shapes, from_dlpack=library))
    for _ in range(3):
        assert np.array_equal(run(made, LONG), 2 * LONG)
    assert seen == [LONG.ctypes.data] * 3


@pytest.mark.parametrize("from_dlpack", [None, np.from_dlpack])
def test_what_the_function_gives_is_taken_without_a_copy(from_dlpack):
    given = []

    def double(x):
        y = Tensor(2 * np.asarray(x))
        given.append(y.array.ctypes.data)
        return y

    y = run(session(ONE, op(double, from_dlpack=from_dlpack)), LONG)
    assert np.array_equal(y, 2 * LONG) and given == [y.ctypes.data]


@pytest.mark.parametrize("shapes", [None, lambda x: x])
@pytest.mark.parametrize(
    ("give", "wanted"),
    [(lambda x: x, [1, -2, 3]), (lambda x: x[::-1], [3, -2, 1]), (lambda x: Tensor(x), [1, -2, 3])],
)
def test_an_input_or_a_view_of_it_may_be_given_back(shapes, give, wanted):
    made = session(ONE, op(give, shapes=shapes, from_dlpack=np.from_dlpack))
    for _ in range(2):
        y = run(made, X)
        assert y.tolist() == wanted and not np.shares_memory(y, X)


@pytest.mark.parametrize("shapes", [None, lambda x: x])
def test_an_input_that_is_kept_is_an_error(shapes):
    kept = []

    def keep(x):
        kept.append(x[1:])
        return 2 * x

    made = session(ONE, op(keep, shapes=shapes, from_dlpack=np.from_dlpack))
    with pytest.raises(rukh.RukhError, match="kept a value"):
        run(made, X)
    kept.clear()
    gc.collect()
    made = session(ONE, op(lambda x: 2 * x, shapes=shapes, from_dlpack=np.from_dlpack))
    assert run(made, X).tolist() == [2, -4, 6]


def test_a_lent_tensor_is_of_the_cpu_and_of_the_call():
    lent = []

    def look(x):
        lent.append(x)
        assert x.__dlpack_device__() == (1, 0)
        with pytest.raises(ValueError, match="stream is 1"):
            x.__dlpack__(stream=1)
        with pytest.raises(BufferError, match=r"dl_device is \(10, 0\)"):
            x.__dlpack__(dl_device=(10, 0))
        # Nobody takes these; the copy may be kept.
        x.__dlpack__(), x.__dlpack__(max_version=(1, 0))
        lent.append(np.from_dlpack(x, copy=True))
        return np.from_dlpack(x, device="cpu") + 1

    made = session(ONE, op(look, from_dlpack=lambda lent: lent))
    assert run(made, X).tolist() == [2, -1, 4]
    assert lent[1].tolist() == [1, -2, 3]
    with pytest.raises(rukh.RukhError, match="destroyed"):
        lent[0].__dlpack__()


def test_strings_and_what_fails():
    joined = rukh.operator(
        "my",
        "Op",
        inputs={"w": "string", "x": "float"},
        outputs={"y": "string"},
        from_dlpack=np.from_dlpack,
    )(lambda w, x: np.array([f"{a}{b:.0f}" for a, b in zip(w, x)], object))
    made = session(model({"w": STRING, "x": FLOAT}, {"y": STRING}), joined)
    (y,) = made.run(None, {"w": ["a", "b"], "x": X[:2]})
    assert y.tolist() == ["a1", "b-2"]

    def refuse(thing):
        raise BufferError("no room")

    with pytest.raises(rukh.RukhError, match=r"\(my.Op\): BufferError: no room"):
        run(session(ONE, op(lambda x: x, from_dlpack=refuse)), X)
    with pytest.raises(rukh.RukhError, match="ZeroDivisionError"):
        run(session(ONE, op(lambda x: x[:1] * (1 // 0), from_dlpack=np.from_dlpack)), X)
    with pytest.raises(rukh.RukhError, match=r"optional\(tensor\(float\)\) was given"):
        run(session(ONE, op(lambda x: None, from_dlpack=np.from_dlpack)), X)


LEVELS = [(True, "ORT_ENABLE_ALL", 1), (True, "ORT_DISABLE_ALL", 3), (False, "ORT_ENABLE_ALL", 3)]


@pytest.mark.parametrize("from_dlpack", [None, np.from_dlpack])
@pytest.mark.parametrize("shapes", [None, lambda c, x: x])
@pytest.mark.parametrize(("pure", "level", "calls"), LEVELS)
def test_pure_functions_of_constants_are_called_once(pure, level, calls, shapes, from_dlpack):
    called = []

    @rukh.operator(
        "my",
        "Op",
        inputs={"c": "float", "x": "float"},
        outputs={"y": "float"},
        shapes=shapes,
        pure=pure,
        from_dlpack=from_dlpack,
    )
    def add(c, x):
        called.append(1)
        return c + x

    nodes = [
        helper.make_node("Op", ["c", "d"], ["sum"], domain="my"),
        helper.make_node("Add", ["sum", "x"], ["y"]),
    ]
    data = model({"x": FLOAT}, {"y": FLOAT}, nodes, {"c": X, "d": X})
    options = rukh.SessionOptions()
    options.add_operator(add)
    options.graph_optimization_level = rukh.GraphOptimizationLevel[level]
    made = rukh.InferenceSession(data, options)
    for _ in range(3):
        assert run(made, X).tolist() == [3, -6, 9]
    # With known shapes the call comes when the first run is planned.
    assert len(called) == (1 if pure and shapes else calls)


def test_models_whose_operators_were_computed_ahead_need_them_no_more(tmp_path):
    @rukh.operator("my", "Twice", inputs={"x": "float"}, outputs={"y": "float"}, shapes=lambda x: x, pure=True)
    def twice(x):
        return x * 2

    nodes = [
        helper.make_node("Twice", ["c"], ["w"], domain="my"),
        helper.make_node("Add", ["x", "w"], ["y"]),
    ]
    path = tmp_path / "model.onnx"
    path.write_bytes(model({"x": FLOAT}, {"y": FLOAT}, nodes, {"c": X}))
    options = rukh.SessionOptions()
    options.add_operator(twice)
    rukh.compile_model(path, tmp_path / "model.rukh", targets="cpu", sess_options=options)
    options.optimized_model_filepath = str(tmp_path / "saved.onnx")
    rukh.InferenceSession(str(path), options)
    for file in ("model.rukh", "saved.onnx"):
        np.testing.assert_array_equal(run(rukh.InferenceSession(str(tmp_path / file)), X), 3 * X)
