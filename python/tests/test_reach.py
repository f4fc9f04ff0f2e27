"""What the C API has beyond ONNX Runtime: asynchronous and queued runs, the log, memory."""

import copy
import json
import logging
import threading
import time

import numpy as np
import pytest
import rukh
from models import chain, model
from onnx import TensorProto, helper

DATA = model([("Relu", ["x"], ["y"])], x=["n"], y=["n"])
ON_DEVICE = rukh.get_available_providers() != ["CPUExecutionProvider"]


def test_asynchronous_runs_call_back():
    session = rukh.InferenceSession(chain(5))
    done, found = threading.Event(), []

    def callback(outputs, data, error):
        found.append((outputs, data, error))
        if len(found) == 20:
            done.set()

    # Arrays that nobody else holds must live until the run has ended.
    for i in range(20):
        session.run_async(["y"], {"x": np.full((2, 64), i, np.float32)}, callback, i)
    assert done.wait(30)
    for outputs, data, error in found:
        assert error == "" and outputs[0].tolist() == [[data + 5] * 64] * 2


def test_asynchronous_runs_that_fail():
    session = rukh.InferenceSession(
        model([("Gather", ["x", "i"], ["y"])], x=[2], i=(TensorProto.INT64, [1]), y=[1])
    )
    with pytest.raises(ValueError, match="Required inputs"):
        session.run_async(None, {}, print, None)
    done, found = threading.Event(), []
    feed = {"x": np.zeros(2, np.float32), "i": np.array([5])}
    session.run_async(None, feed, lambda *arguments: (found.append(arguments), done.set()), "mine")
    assert done.wait(30)
    ((outputs, data, error),) = found
    assert outputs == [] and data == "mine" and "5" in error


def test_queued_runs():
    session = rukh.InferenceSession(DATA)
    binding = session.io_binding()
    binding.bind_cpu_input("x", np.array([-1, 2], np.float32))
    binding.bind_output("y")
    completion = binding.run_queued()
    completion.wait()
    assert completion.is_done() and isinstance(completion.event(), int)
    assert binding.get_outputs()[0].numpy().tolist() == [0, 2]


def test_the_log_goes_to_a_callback():
    messages = []
    rukh.set_log_callback(lambda level, text: messages.append((level, text)), 0)
    try:
        session = rukh.InferenceSession(DATA)
        assert any("opened model" in text for _, text in messages)
        rukh.set_default_logger_severity(3)
        messages.clear()
        rukh.InferenceSession(DATA)
        assert messages == []
    finally:
        rukh.set_log_callback(None)
    rukh.InferenceSession(DATA)
    assert messages == []
    # A session of an earlier environment goes on.
    assert session.run(None, {"x": np.ones(1, np.float32)})[0].tolist() == [1]
    with pytest.raises(ValueError, match="allowed are 0"):
        rukh.set_log_callback(print, 9)


def test_the_log_goes_to_a_callback_of_onnxruntimes_form():
    messages = []
    rukh.set_default_logger_callback(lambda *arguments: messages.append(arguments), severity=1)
    try:
        rukh.InferenceSession(DATA)
    finally:
        rukh.set_default_logger_callback(None)
    assert any(severity == 1 and "opened model" in text for severity, _, _, _, text in messages)
    with pytest.raises(ValueError, match="allowed are 0"):
        rukh.set_default_logger_callback(None, 7)


def test_records_tell_of_session_run_and_node():
    records = []
    rukh.set_log_record_callback(records.append, 3)
    try:
        options = rukh.SessionOptions()
        options.logid, options.log_severity_level = "mine", 1
        session = rukh.InferenceSession(DATA, options)
        assert [(r.level, r.category, r.session, r.run) for r in records] == [(1, "session", "mine", "")]
        assert "opened model" in records[0].message and ".rs:" in records[0].location
        records.clear()
        run_options = rukh.RunOptions()
        run_options.logid = "first"
        feed = {"x": np.ones(1, np.float32)}
        session.run(None, feed, run_options)
        assert records == []
        run_options.log_severity_level = 0
        session.run(None, feed, run_options)
        assert {(r.level, r.category, r.session, r.run) for r in records} == {(0, "run", "mine", "first")}
        assert [r.node != "" for r in records] == [True] * (len(records) - 1) + [False]
        records.clear()
        run_options.log_severity_level = -1
        session.run(None, feed, run_options)
        assert records == []
        with pytest.raises(ValueError, match="log_severity_level"):
            run_options.log_severity_level = 7
        assert run_options.log_severity_level == -1
        run_options.add_run_config_entry("priority", "high")
        with pytest.raises(ValueError, match="low, normal and high"):
            run_options.add_run_config_entry("priority", "urgent")
    finally:
        rukh.set_log_record_callback(None)


def test_the_log_goes_to_logging(caplog):
    with caplog.at_level(logging.DEBUG, logger="rukh"):
        rukh.set_default_logger_severity(1)
        try:
            rukh.InferenceSession(DATA)
        finally:
            rukh.set_default_logger_severity(2)
    assert any("opened model" in record.getMessage() for record in caplog.records)
    with pytest.raises(ValueError, match="allowed are 0"):
        rukh.set_default_logger_severity(5)


@pytest.mark.skipif(ON_DEVICE, reason="there is a GPU")
def test_memory_of_a_gpu_that_is_not_there():
    for call in (
        rukh.memory_stats,
        rukh.memory_summary,
        rukh.memory_info,
        rukh.memory_snapshot,
        rukh.empty_cache,
    ):
        with pytest.raises(rukh.DeviceError, match="HIP"):
            call()


@pytest.mark.skipif(not ON_DEVICE, reason="there is no GPU")
def test_memory_of_a_gpu():
    name = rukh.get_available_providers()[0]
    session = rukh.InferenceSession(DATA, providers=[name])
    rukh.record_memory_history(100)
    session.run(None, {"x": np.ones(1000, np.float32)})
    stats = rukh.memory_stats()
    assert stats["InUse"] == stats["allocated_bytes.all.current"] > 0
    assert stats["allocated_bytes.all.peak"] >= stats["InUse"]
    assert "rukh memory summary, device 0" in rukh.memory_summary()
    rukh.reset_peak_memory_stats()
    free, total = rukh.memory_info()
    assert 0 < free <= total
    snapshot = rukh.memory_snapshot()
    assert any(segment["blocks"] for entry in snapshot for segment in entry["segments"])
    rukh.empty_cache()
    rukh.record_memory_history(0)


def test_maps_are_pythons_own():
    node = helper.make_node("ZipMap", ["x"], ["z"], domain="ai.onnx.ml")
    for attribute, keys in (("classlabels_strings", ["a", "b"]), ("classlabels_int64s", [7, 9])):
        node.ClearField("attribute")
        node.attribute.append(helper.make_attribute(attribute, keys))
        key = TensorProto.STRING if keys[0] == "a" else TensorProto.INT64
        one = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
        kind = helper.make_sequence_type_proto(helper.make_map_type_proto(key, one))
        graph = helper.make_graph(
            [node],
            "graph",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])],
            [helper.make_value_info("z", kind)],
        )
        imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
        proto = helper.make_model(graph, opset_imports=imports, ir_version=8)
        session = rukh.InferenceSession(proto.SerializeToString())
        (rows,) = session.run(None, {"x": np.array([[0.25, 0.75], [1, 0]], np.float32)})
        assert rows == [dict(zip(keys, [0.25, 0.75])), dict(zip(keys, [1.0, 0.0]))]
        assert all(
            type(value) is float and type(k) is type(keys[0]) for row in rows for k, value in row.items()
        )
        assert json.loads(json.dumps(rows))[0][str(keys[1])] == 0.75


def test_profiles_and_their_beginning(tmp_path):
    options = rukh.SessionOptions()
    options.profile_file_prefix = str(tmp_path / "p_")
    assert rukh.InferenceSession(DATA).end_profiling() == ""
    assert rukh.InferenceSession(DATA).get_profiling_start_time_ns() == 0
    options.enable_profiling = True
    before = time.monotonic_ns()
    first, second = rukh.InferenceSession(DATA, options), rukh.InferenceSession(DATA, options)
    assert before <= first.get_profiling_start_time_ns() <= second.get_profiling_start_time_ns()
    names = {first.end_profiling(), second.end_profiling()}
    assert len(names) == 2
    for name in names:
        with open(name, encoding="utf-8") as file:
            lines = file.read().splitlines()
        assert lines[0] == "[" and lines[-1] == "]"
        assert {"name", "ph", "ts", "pid", "args"} <= json.loads(lines[1].rstrip(",")).keys()


def test_options_of_the_model_itself(monkeypatch):
    proto = helper.make_model(
        helper.make_graph(
            [helper.make_node("Relu", ["x"], ["y"])],
            "graph",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    config = {"session_options": {"intra_op_num_threads": 2, "graph_optimization_level": 1}}
    helper.set_model_props(proto, {"ort_config": json.dumps(config)})
    data = proto.SerializeToString()
    assert rukh.InferenceSession(data).get_session_options().intra_op_num_threads == 0
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    found = rukh.InferenceSession(data).get_session_options()
    assert found.intra_op_num_threads == 2
    assert found.graph_optimization_level == rukh.GraphOptimizationLevel.ORT_ENABLE_BASIC


def test_dimensions_by_name_and_denotation():
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["a", "b", 5])
    info.type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    graph = helper.make_graph(
        [helper.make_node("Abs", ["x"], ["y"])],
        "graph",
        [info],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b", 5])],
    )
    data = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    ).SerializeToString()
    options = rukh.SessionOptions()
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 3)
    options.add_free_dimension_override_by_name("b", 4)
    options.add_free_dimension_override_by_name("of another model", 9)
    assert rukh.InferenceSession(data, options).get_inputs()[0].shape == [3, 4, 5]


def test_openings_that_are_cancelled():
    options = rukh.SessionOptions()
    options.set_load_cancellation_flag(True)
    # A copy has the flag of the first, as in ONNX Runtime.
    for cancelled in (options, copy.copy(options)):
        with pytest.raises(rukh.CancelledError, match="opening the model was cancelled"):
            rukh.InferenceSession(DATA, cancelled)
    options.set_load_cancellation_flag(False)
    assert rukh.InferenceSession(DATA, options).get_inputs()[0].name == "x"


def test_openings_are_cancelled_meanwhile():
    options = rukh.SessionOptions()

    def cancel(_level, message):
        if "opened model" in message:
            options.set_load_cancellation_flag(True)

    rukh.set_log_callback(cancel, 1)
    try:
        with pytest.raises(rukh.CancelledError):
            rukh.InferenceSession(DATA, options)
    finally:
        rukh.set_log_callback(None)


def test_what_a_session_and_the_library_tell():
    session = rukh.InferenceSession(DATA, providers=["hip" if ON_DEVICE else "cpu"])
    assert session.plan()["steps"]
    assert session.opsets()[""] >= 17
    assert session.load_counters().keys() >= {"mapped_bytes", "packed_bytes", "shared_bytes"}
    assert session.device()[0] == ("hip" if ON_DEVICE else "cpu")
    assert rukh.thread_count() >= 1
    assert rukh.report()["version"] == rukh.RUKH_VERSION
    value = rukh.OrtValue.ortvalue_from_numpy(np.ones(2, np.float32))
    assert value.memory_kind() == "host"
    if not ON_DEVICE:
        with pytest.raises(rukh.DeviceError):
            rukh.tune("rukh tuning shapes 1\n", {"tunable_op_file": "none"})


@pytest.mark.skipif(not ON_DEVICE, reason="streams are of GPUs")
def test_streams_order_copies():
    gpu = next(d for d in rukh.get_ep_devices() if d.ep_name != "CPUExecutionProvider")
    stream = gpu.create_sync_stream()
    assert stream.get_handle() != 0
    host = rukh.OrtValue.ortvalue_from_numpy(np.arange(1000, dtype=np.float32))
    there = rukh.OrtValue.ortvalue_from_shape_and_type([1000], np.float32, "hip")
    back = rukh.OrtValue.ortvalue_from_numpy(np.zeros(1000, np.float32))
    assert there.memory_kind() == "device"
    for _ in range(3):
        rukh.copy_tensors([host], [there], stream)
        rukh.copy_tensors([there], [back], stream)
    stream.wait()
    assert back.numpy().tolist() == host.numpy().tolist()


@pytest.mark.skipif(not ON_DEVICE, reason="streams are of GPUs")
def test_a_stream_waits_for_another():
    gpu = next(d for d in rukh.get_ep_devices() if d.ep_name != "CPUExecutionProvider")
    writes, reads = gpu.create_sync_stream(), gpu.create_sync_stream()
    there = rukh.OrtValue.ortvalue_from_shape_and_type([1000], np.float32, "hip")
    back = rukh.OrtValue.ortvalue_from_numpy(np.zeros(1000, np.float32))
    for step in range(3):
        host = rukh.OrtValue.ortvalue_from_numpy(np.arange(1000, dtype=np.float32) + step)
        rukh.copy_tensors([host], [there], writes)
        reads.wait_for(writes)
        rukh.copy_tensors([there], [back], reads)
        writes.wait_for(reads)
        reads.wait()
        assert back.numpy().tolist() == host.numpy().tolist()


def test_a_cpu_has_no_streams():
    cpu = next(d for d in rukh.get_ep_devices() if d.ep_name == "CPUExecutionProvider")
    with pytest.raises(rukh.UnsupportedError, match="a CPU has no streams"):
        cpu.create_sync_stream()
