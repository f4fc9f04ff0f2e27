"""LoRA adapters: files of ONNX Runtime are read and files for it written, with the same results in both."""

import gc
import threading

import numpy as np
import onnxruntime
import pytest
import rukh
from models import model
from onnx import numpy_helper

X = np.arange(8, dtype=np.float32).reshape(2, 4)
W = np.arange(12, dtype=np.float32).reshape(4, 3) / 8
ON_DEVICE = rukh.get_available_providers() != ["CPUExecutionProvider"]


def adapted() -> bytes:
    """y = x W + x A B, where A and B are inputs with values of no elements: of rank 0 in the sense of LoRA."""
    none = [np.zeros((4, 0), np.float32), np.zeros((0, 3), np.float32)]
    made = model(
        [
            ("MatMul", ["x", "w"], ["xw"]),
            ("MatMul", ["x", "a"], ["xa"]),
            ("MatMul", ["xa", "b"], ["xab"]),
            ("Add", ["xw", "xab"], ["y"]),
        ],
        [numpy_helper.from_array(W, "w"), *map(numpy_helper.from_array, none, "ab")],
        x=["n", 4],
        a=[4, "r"],
        b=["r", 3],
        y=["n", 3],
    )
    return made


def matrices(seed: int, rank: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    shapes = {"a": (4, rank), "b": (rank, 3)}
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def expected(tensors: dict[str, np.ndarray]) -> np.ndarray:
    return X @ W + X @ tensors["a"] @ tensors["b"]


def export(module, path, tensors, adapter_version=3, model_version=7):
    """Writes an adapter with rukh or with ONNX Runtime."""
    adapter = module.AdapterFormat()
    adapter.set_adapter_version(adapter_version)
    adapter.set_model_version(model_version)
    adapter.set_parameters(
        {name: module.OrtValue.ortvalue_from_numpy(array) for name, array in tensors.items()}
    )
    adapter.export_adapter(str(path))
    return path


def run_with(module, session, path, *further):
    """What a run gives with the adapters of these files."""
    options = module.RunOptions()
    loaded = []
    for file in (path, *further):
        adapter = module.LoraAdapter()
        adapter.Load(str(file))
        options.add_active_adapter(adapter)
        loaded.append(adapter)
    return session.run(None, {"x": X}, options)[0]


# Every type that both know as an array, and shapes without axes and without elements.
TENSORS = {
    "float": np.array([[1.5, -2], [np.inf, 0]], np.float32),
    "double": np.array(3.25),
    "half": np.array([1, 2, 3], np.float16),
    "nothing": np.zeros((0, 4), np.int8),
    "int16": np.arange(-3, 3, dtype=np.int16).reshape(1, 2, 3),
    "int32": np.array([1 << 30], np.int32),
    "int64": np.array([-(1 << 62), 7]),
    "bytes": np.arange(256, dtype=np.uint8),
    "uint16": np.array([65535], np.uint16),
    "uint32": np.array([1 << 31], np.uint32),
    "uint64": np.array([1 << 63], np.uint64),
    "bool": np.array([True, False, True]),
    "größe/α": np.ones(1, np.float32),
}


@pytest.mark.parametrize("writer", [rukh, onnxruntime])
@pytest.mark.parametrize("reader", [rukh, onnxruntime])
def test_files_are_the_same_for_both(writer, reader, tmp_path):
    # ONNX Runtime writes tensors without axes and of booleans, and does not read them.
    both = {name: array for name, array in TENSORS.items() if array.ndim and name != "bool"}
    tensors = TENSORS if reader is rukh else both
    path = export(writer, tmp_path / "a.onnx_adapter", tensors, 2, -7)
    read = reader.AdapterFormat.read_adapter(str(path))
    assert (read.get_format_version(), read.get_adapter_version(), read.get_model_version()) == (1, 2, -7)
    found = {name: value.numpy() for name, value in read.get_parameters().items()}
    assert found.keys() == tensors.keys()
    for name, array in tensors.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape, name
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("writer", [rukh, onnxruntime])
def test_runs_give_the_same_with_both(writer, tmp_path):
    ours = rukh.InferenceSession(adapted())
    theirs = onnxruntime.InferenceSession(adapted(), providers=["CPUExecutionProvider"])
    for seed, rank in ((1, 1), (2, 8), (3, 3)):
        tensors = matrices(seed, rank)
        path = export(writer, tmp_path / f"{seed}.onnx_adapter", tensors)
        for module, session in ((rukh, ours), (onnxruntime, theirs)):
            found = run_with(module, session, path)
            np.testing.assert_allclose(found, expected(tensors), rtol=1e-4, atol=1e-4)
    # Without one, as it was.
    for session in (ours, theirs):
        np.testing.assert_allclose(session.run(None, {"x": X})[0], X @ W, rtol=1e-6)


def test_several_adapters(tmp_path):
    tensors, other = matrices(1, 2), matrices(2, 2)
    parts = [export(rukh, tmp_path / name, {name: array}) for name, array in tensors.items()]
    session = rukh.InferenceSession(adapted())
    theirs = onnxruntime.InferenceSession(adapted(), providers=["CPUExecutionProvider"])
    found = run_with(rukh, session, *parts)
    np.testing.assert_allclose(found, expected(tensors), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(run_with(onnxruntime, theirs, *parts), found, rtol=1e-4, atol=1e-4)
    # The last one counts; what the run is given counts more.
    last = export(rukh, tmp_path / "last", {"b": other["b"]})
    both = {"a": tensors["a"], "b": other["b"]}
    np.testing.assert_allclose(run_with(rukh, session, *parts, last), expected(both), rtol=1e-4, atol=1e-4)
    options = rukh.RunOptions()
    for part in parts:
        adapter = rukh.LoraAdapter()
        adapter.Load(part)
        options.add_active_adapter(adapter)
    found = session.run(["y"], {"x": X, "b": other["b"]}, options)[0]
    np.testing.assert_allclose(found, expected(both), rtol=1e-4, atol=1e-4)


def test_bindings_and_queued_runs_take_adapters(tmp_path):
    tensors = matrices(4, 2)
    adapter = rukh.LoraAdapter()
    adapter.load_from_buffer(export(rukh, tmp_path / "a", tensors).read_bytes())
    options = rukh.RunOptions()
    options.add_active_adapter(adapter)
    session = rukh.InferenceSession(adapted())
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    del adapter
    gc.collect()
    for _ in range(3):
        session.run_with_iobinding(binding, options)
        np.testing.assert_allclose(binding.get_outputs()[0].numpy(), expected(tensors), rtol=1e-4, atol=1e-4)
    binding.run_queued(options).wait()
    np.testing.assert_allclose(binding.get_outputs()[0].numpy(), expected(tensors), rtol=1e-4, atol=1e-4)
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(binding.get_outputs()[0].numpy(), X @ W, rtol=1e-6)


def test_sessions_take_adapters_for_good(tmp_path):
    tensors = matrices(5, 6)
    adapter = rukh.LoraAdapter()
    adapter.Load(export(onnxruntime, tmp_path / "a", tensors))
    options = rukh.SessionOptions()
    options.add_adapter(adapter)
    options.add_adapter(rukh.LoraAdapter())
    session = rukh.InferenceSession(adapted(), options)
    del adapter, options
    gc.collect()
    found = session.run(None, {"x": X})[0]
    np.testing.assert_allclose(found, expected(tensors), rtol=1e-4, atol=1e-4)
    wrong = rukh.SessionOptions()
    adapter = rukh.LoraAdapter()
    adapter.Load(export(rukh, tmp_path / "b", {"c": np.ones(1, np.float32)}))
    wrong.add_adapter(adapter)
    with pytest.raises(Exception, match='no initializer "c" in its main graph'):
        rukh.InferenceSession(adapted(), wrong)


def test_threads_have_adapters_of_their_own(tmp_path):
    session = rukh.InferenceSession(adapted())
    wrong = []

    def work(seed):
        tensors = matrices(seed, 1 + seed % 3)
        path = export(rukh, tmp_path / str(seed), tensors)
        for _ in range(20):
            found = run_with(rukh, session, path)
            if not np.allclose(found, expected(tensors), rtol=1e-4, atol=1e-4):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_is_wrong_is_told(tmp_path):
    session = rukh.InferenceSession(adapted())
    for tensors, part in (
        ({"c": np.ones(1, np.float32)}, 'parameter "c" is no input of the model'),
        ({"a": np.ones((4, 1))}, '"a" is tensor.double.; the model needs tensor.float.'),
        ({"a": np.ones((5, 1), np.float32)}, "dimension 0 is 5; the model needs 4"),
        ({"a": np.ones((4, 2), np.float32)}, "MatMul"),
    ):
        path = export(rukh, tmp_path / "wrong", tensors)
        with pytest.raises(Exception, match=part):
            run_with(rukh, session, path)
    for content, part in (
        (b"", "is no adapter"),
        (b"x" * 99, "is no adapter"),
        (path.read_bytes()[:90], "needed"),
    ):
        (tmp_path / "bad").write_bytes(content)
        for read in (rukh.AdapterFormat.read_adapter, lambda path: rukh.LoraAdapter().Load(path)):
            with pytest.raises(Exception, match=part):
                read(tmp_path / "bad")
        with pytest.raises(Exception, match=part):
            rukh.LoraAdapter().load_from_buffer(content)
    with pytest.raises(rukh.NotFoundError, match="missing"):
        rukh.AdapterFormat.read_adapter(tmp_path / "missing")
    adapter = rukh.AdapterFormat()
    for number in (1 << 31, -(1 << 31) - 1):
        with pytest.raises(ValueError, match="adapter_version"):
            adapter.set_adapter_version(number)
    adapter.set_parameters({"s": rukh.OrtValue(np.array(["text"]))})
    with pytest.raises(ValueError, match="tensor.string."):
        adapter.export_adapter(tmp_path / "s")
    adapter.set_parameters({"": np.ones(1)})
    with pytest.raises(ValueError, match="a character or more"):
        adapter.export_adapter(tmp_path / "s")
    assert not (tmp_path / "s").exists()
    with pytest.raises(TypeError, match="a LoraAdapter is needed; a str was given"):
        rukh.RunOptions().add_active_adapter("a")


def test_an_adapter_that_is_not_loaded_has_nothing():
    options = rukh.RunOptions()
    options.add_active_adapter(rukh.LoraAdapter())
    found = rukh.InferenceSession(adapted()).run(None, {"x": X}, options)[0]
    np.testing.assert_allclose(found, X @ W, rtol=1e-6)


def test_names_are_where_onnx_runtime_has_them():
    from rukh.capi import onnxruntime_inference_collection as collection
    from rukh.capi import onnxruntime_pybind11_state as state

    assert collection.AdapterFormat is state.AdapterFormat is rukh.AdapterFormat
    assert state.LoraAdapter is rukh.LoraAdapter


@pytest.mark.skipif(not ON_DEVICE, reason="needs a GPU, or the emulated one that `make test-hip` names")
def test_a_gpu_gets_an_adapter_once(tmp_path):
    session = rukh.InferenceSession(adapted(), providers=["ROCMExecutionProvider"])
    loaded = []
    for seed in (1, 2):
        adapter = rukh.LoraAdapter()
        adapter.Load(export(rukh, tmp_path / str(seed), matrices(seed, 4)))
        options = rukh.RunOptions()
        options.add_active_adapter(adapter)
        loaded.append((matrices(seed, 4), options))
    for _ in range(3):
        for tensors, options in loaded:
            found = session.run(None, {"x": X}, options)[0]
            np.testing.assert_allclose(found, expected(tensors), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(session.run(None, {"x": X})[0], X @ W, rtol=1e-5)
