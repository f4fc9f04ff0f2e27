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
    assert session.run([], {"x": x}) == []


def test_arguments_and_metadata():
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "name of the graph",
        [info("x", ["batch", 3, None])],
        [info("y", ["batch", 3, None])],
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
    assert (meta.graph_name, meta.version, meta.description) == ("name of the graph", 3, "text")
    assert meta.custom_metadata_map == {"key": "value"}
    assert [p.operator for p in session.get_placements()] == ["Relu"]


def test_providers():
    assert rukh.get_available_providers()[-1] == "cpu"
    data = model([("Relu", ["x"], ["y"])], x=[2], y=[2])
    for given in (None, ["cpu"], ["CPUExecutionProvider"], [("cpu", {})]):
        assert rukh.InferenceSession(data, providers=given).get_providers() == ["cpu"]
    assert rukh.InferenceSession(data).get_provider_options() == {"cpu": {}}
    with pytest.raises(rukh.InvalidArgumentError, match="abacus"):
        rukh.InferenceSession(data, providers=["abacus"])
    with pytest.raises(rukh.InvalidArgumentError, match="beads"):
        rukh.InferenceSession(data, providers=[("cpu", {"beads": 7})])
    with pytest.raises(ValueError, match="1 provider_options"):
        rukh.InferenceSession(data, providers=["cpu", "hip"], provider_options=[{}])


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
    with pytest.raises(rukh.InvalidArgumentError, match="no_such_key"):
        options.add_session_config_entry("no_such_key", "1")
    with pytest.warns(UserWarning, match="session.use_env_allocators"):
        options.add_session_config_entry("session.use_env_allocators", "1")
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
    ({}, rukh.InvalidInputError, "x"),
    ({"x": np.zeros(2)}, rukh.InvalidInputError, "double"),
    ({"x": np.zeros((2, 2), np.float32)}, rukh.InvalidInputError, "x"),
    ({"x": np.zeros(3, np.float32)}, rukh.InvalidInputError, "3"),
    ({"x": np.zeros(2, np.float32), "z": np.zeros(2, np.float32)}, rukh.NotFoundError, "z"),
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
