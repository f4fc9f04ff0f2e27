"""Sessions: outputs against NumPy, metadata, options, errors, threads."""

import json
import os
import threading

import ml_dtypes
import numpy as np
import onnx
import pytest
import rukh
from models import chain, info, model
from onnx import TensorProto, helper


def test_run_gives_what_numpy_gives():
    session = rukh.InferenceSession(model([("MatMul", ["a", "b"], ["c"])], a=["n", 3], b=[3, 4], c=["n", 4]))
    rng = np.random.default_rng(1)
    b = rng.standard_normal((3, 4), np.float32)
    for rows in (1, 5, 0):
        a = rng.standard_normal((rows, 3), np.float32)
        (c,) = session.run(None, {"a": a, "b": b})
        np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_model_from_a_file_and_from_bytes(tmp_path):
    data = model([("Relu", ["x"], ["y"])], x=[2], y=[2])
    path = tmp_path / "möwe.onnx"
    path.write_bytes(data)
    for source in (str(path), path, data, bytearray(data)):
        (y,) = rukh.InferenceSession(source).run(["y"], {"x": np.array([-1, 1], np.float32)})
        assert y.tolist() == [0, 1]


def test_outputs_come_in_the_order_asked_for():
    session = rukh.InferenceSession(
        model([("Neg", ["x"], ["n"]), ("Abs", ["x"], ["a"])], x=[1], n=[1], a=[1])
    )
    x = np.array([-2], np.float32)
    assert [float(y[0]) for y in session.run(["a", "n"], {"x": x})] == [2, 2]
    assert len(session.run(["a"], {"x": x})) == 1
    assert [float(y[0]) for y in session.run([], {"x": x})] == [2, 2]
    with pytest.raises(TypeError, match="'a'; allowed are a list"):
        session.run("a", {"x": x})


def test_arguments_and_metadata():
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "name of the graph",
        [info("x", ["batch", 3, None])],
        [info("y", ["batch", 3, None])],
        doc_string="text of the graph",
    )
    proto = helper.make_model(
        graph,
        producer_name="maker",
        producer_version="7",
        domain="org.example",
        model_version=3,
        doc_string="text",
        opset_imports=[helper.make_opsetid("", 21)],
        ir_version=10,
    )
    helper.set_model_props(proto, {"key": "value"})
    session = rukh.InferenceSession(proto.SerializeToString())
    (x,) = session.get_inputs()
    assert (x.name, x.type, x.shape[:2], len(x.shape)) == ("x", "tensor(float)", ["batch", 3], 3)
    assert session.get_outputs()[0].name == "y"
    meta = session.get_modelmeta()
    assert (meta.producer_name, meta.producer_version, meta.domain) == ("maker", "7", "org.example")
    assert meta.graph_description == "text of the graph"
    assert (meta.graph_name, meta.version, meta.description) == ("name of the graph", 3, "text")
    assert meta.custom_metadata_map == {"key": "value"}
    assert [(p.operator, p.provider) for p in session.get_placements()] == [("Relu", "CPUExecutionProvider")]
    (subgraph,) = session.get_provider_graph_assignment_info()
    assert subgraph.ep_name == "CPUExecutionProvider" and subgraph.get_nodes()[0].op_type == "Relu"


def test_options(tmp_path):
    options = rukh.SessionOptions()
    options.intra_op_num_threads = 2
    options.inter_op_num_threads = 1
    options.graph_optimization_level = rukh.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_free_dimension_override_by_name("n", 4)
    options.add_session_config_entry("load", "read")
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    assert options.get_session_config_entry("load") == "read"
    assert options.get_session_config_entry("fallback") == "error"
    session = rukh.InferenceSession(model([("Relu", ["x"], ["y"])], x=["n"], y=["n"]), options)
    assert session.get_inputs()[0].shape == [4]
    assert session.get_session_options() is options
    with pytest.raises(rukh.InvalidInputError, match="4"):
        session.run(None, {"x": np.zeros(5, np.float32)})
    with pytest.raises(rukh.InvalidArgumentError, match="quickly"):
        options.add_session_config_entry("load", "quickly")
    options.add_session_config_entry("session.some_key_of_onnxruntime", "1")
    assert options.get_session_config_entry("session.some_key_of_onnxruntime") == "1"
    with pytest.raises(RuntimeError, match="does not have configuration with key: nothing"):
        options.get_session_config_entry("nothing")
    with pytest.raises(AttributeError):
        options.intra_op_threads = 2


def test_profiling_writes_a_trace(tmp_path):
    options = rukh.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "trace_")
    session = rukh.InferenceSession(model([("Relu", ["x"], ["y"])], x=[2], y=[2]), options)
    session.run(None, {"x": np.zeros(2, np.float32)})
    name = session.end_profiling()
    assert name.startswith(options.profile_file_prefix)
    with open(name, encoding="utf-8") as file:
        assert "Relu" in json.dumps(json.load(file))


ERRORS = [
    # what is fed, the exception, what its message names
    ({}, rukh.InvalidInputError, r"Required inputs \(\['x'\]\) are missing from input feed \(\[\]\)"),
    (
        {"x": np.zeros(2)},
        rukh.InvalidInputError,
        r"Actual: \(tensor\(double\)\) , expected: \(tensor\(float\)\)",
    ),
    (
        {"x": np.zeros((2, 2), np.float32)},
        rukh.InvalidInputError,
        "Invalid rank for input: x Got: 2 Expected: 1",
    ),
    (
        {"x": np.zeros(3, np.float32)},
        rukh.InvalidInputError,
        "invalid dimensions for input: x .*\n index: 0 Got: 3",
    ),
    (
        {"x": np.zeros(2, np.float32), "z": np.zeros(2, np.float32)},
        rukh.NotFoundError,
        "Invalid input name: z",
    ),
    ({"x": np.zeros(2, "datetime64[s]")}, TypeError, "M8"),
    ({"x": np.array([object(), object()])}, TypeError, "str and bytes"),
]


@pytest.mark.parametrize("feed, error, names", ERRORS)
def test_wrong_feeds(feed, error, names):
    session = rukh.InferenceSession(model([("Relu", ["x"], ["y"])], x=[2], y=[2]))
    with pytest.raises(error, match=names):
        session.run(None, feed)


def test_other_errors(tmp_path):
    with pytest.raises(rukh.NotFoundError, match="nowhere.onnx"):
        rukh.InferenceSession(str(tmp_path / "nowhere.onnx"))
    with pytest.raises(rukh.InvalidModelError):
        rukh.InferenceSession(b"this is no model")
    with pytest.raises(rukh.InvalidModelError, match="NoSuchOperator"):
        rukh.InferenceSession(model([("NoSuchOperator", ["x"], ["y"])], x=[2], y=[2]))
    session = rukh.InferenceSession(model([("Relu", ["x"], ["y"])], x=[2], y=[2]))
    with pytest.raises(rukh.NotFoundError, match="nothing") as caught:
        session.run(["nothing"], {"x": np.zeros(2, np.float32)})
    assert isinstance(caught.value, rukh.RukhError) and caught.value.code == 3
    gather = rukh.InferenceSession(
        model([("Gather", ["x", "i"], ["y"])], x=[2], i=(TensorProto.INT64, [1]), y=[1])
    )
    with pytest.raises(rukh.InvalidDataError, match="5"):
        gather.run(None, {"x": np.zeros(2, np.float32), "i": np.array([5])})


def test_many_threads_run_one_session():
    session = rukh.InferenceSession(chain(20))
    failures = []

    def work(seed):
        x = np.random.default_rng(seed).integers(-99, 99, (1 + seed, 64)).astype(np.float32)
        for _ in range(20):
            (y,) = session.run(None, {"x": x})
            if not np.array_equal(y, x + 20):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_gil_is_free_while_a_model_runs_and_runs_can_be_ended():
    # The loop never ends by itself, so this test ends only if another thread gets its turn.
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Neg", ["v"], ["w"])],
        "body",
        [info("i", [], TensorProto.INT64), info("go", [], TensorProto.BOOL), info("v", [1])],
        [info("go_on", [], TensorProto.BOOL), info("w", [1])],
    )
    session = rukh.InferenceSession(
        model(
            [helper.make_node("Loop", ["", "go", "x"], ["y"], body=body)],
            x=[1],
            go=(TensorProto.BOOL, []),
            y=[1],
        )
    )
    options = rukh.RunOptions()
    options.logid = "endless"
    assert options.logid == "endless" and not options.terminate
    feed = {"x": np.ones(1, np.float32), "go": np.array(True)}
    timer = threading.Timer(0.2, lambda: setattr(options, "terminate", True))
    timer.start()
    with pytest.raises(rukh.CancelledError):
        session.run(None, feed, options)
    timer.join()
    options.terminate = False
    feed["go"] = np.array(False)
    assert session.run(None, feed, options)[0].tolist() == [1]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pytest's process has threads
def test_the_child_of_a_fork_makes_sessions_of_its_own():
    data = model([("Relu", ["x"], ["y"])], x=[2], y=[2])
    x = np.ones(2, np.float32)
    session = rukh.InferenceSession(data)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            session.run(None, {"x": x})
        except rukh.ForkedError:
            code = 0 if rukh.InferenceSession(data).run(None, {"x": x})[0].tolist() == [1, 1] else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_backend_runs_models_and_nodes():
    import rukh.backend

    proto = onnx.load_from_string(model([("Relu", ["x"], ["y"])], x=[2], y=[2]))
    x = np.array([-1, 1], np.float32)
    assert rukh.backend.run_model(proto, [x], "CPU")[0].tolist() == [0, 1]
    assert rukh.backend.prepare(proto, "CPU").run({"x": x})[0].tolist() == [0, 1]
    half = x.astype(ml_dtypes.bfloat16)
    (y,) = rukh.backend.run_node(helper.make_node("Abs", ["x"], ["y"]), [half])
    assert y.dtype == half.dtype and y.tolist() == [1, 1]
    assert rukh.backend.supports_device("CPU") and not rukh.backend.supports_device("ABACUS")


def test_sizes_that_exporters_have_a_word_for():
    """Exporters write "?" or "None" for a size that is not known, at several dimensions of one input."""
    for word in ("?", "None"):
        session = rukh.InferenceSession(model([("Relu", ["x"], ["y"])], x=[word, 3, word], y=[word, 3, word]))
        assert session.run(None, {"x": np.zeros((2, 3, 5), np.float32)})[0].shape == (2, 3, 5)
    # A name still stands for one size.
    session = rukh.InferenceSession(model([("Relu", ["x"], ["y"])], x=["n", 3, "n"], y=["n", 3, "n"]))
    assert session.get_inputs()[0].shape == ["n", 3, "n"]
    with pytest.raises(rukh.InvalidInputError, match="both must be equal"):
        session.run(None, {"x": np.zeros((2, 3, 5), np.float32)})
