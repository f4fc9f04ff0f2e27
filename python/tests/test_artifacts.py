"""Compiled models in Python, and ONNX Runtime's compiler of models."""

import os
import pathlib

import numpy as np
import onnx
import pytest
import rukh
from onnx import TensorProto, helper, numpy_helper

ON_DEVICE = rukh.get_available_providers() != ["CPUExecutionProvider"]
WEIGHT = np.random.default_rng(7).standard_normal((32, 16)).astype(np.float32)
X = np.random.default_rng(8).standard_normal((3, 32)).astype(np.float32)


@pytest.fixture
def path(tmp_path):
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Softmax", ["p"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 16])],
        [numpy_helper.from_array(WEIGHT, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_an_artifact_computes_what_the_model_computes(path):
    told = []
    artifact = path.with_name("model.rukh")
    rukh.compile_model(path, artifact, targets=["cpu", "gfx1100"], progress=lambda *step: told.append(step))
    assert [done for _, done, _ in told] == list(range(5)) and {total for *_, total in told} == {5}
    expected = rukh.InferenceSession(path).run(None, {"x": X})[0]
    for source in (artifact, artifact.read_bytes()):
        session = rukh.InferenceSession(source)
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], expected)
        assert session.get_inputs()[0].shape == ["n", 32]
    info = rukh.Artifact(artifact).info
    assert info["targets"] == ["cpu", "gfx1100"] and info["sources"][0]["file"] == "model.onnx"
    assert rukh.Artifact(artifact).check() == ("optimal", "")


@pytest.mark.parametrize("kept", ["used", "external"])
@pytest.mark.parametrize("scale", [0.25, 0.1], ids=["float16 holds the scales", "it does not"])
def test_weights_of_four_bits_are_packed_once(tmp_path, scale, kept):
    path, artifact = tmp_path / "model.onnx", tmp_path / "model.rukh"
    packed = np.random.default_rng(9).integers(0, 256, (24, 2, 16), np.uint8)
    scales = np.full(48, scale, np.float32)
    sizes = {"K": 64, "N": 24, "bits": 4, "block_size": 32, "accuracy_level": 4}
    graph = helper.make_graph(
        [helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", **sizes)],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 24])],
        [numpy_helper.from_array(packed, "w"), numpy_helper.from_array(scales, "s")],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets), path)
    rukh.compile_model(path, artifact, targets="cpu", weights=kept)
    x = np.random.default_rng(8).standard_normal((3, 64)).astype(np.float32)
    expected = rukh.InferenceSession(path, providers=["cpu"]).run(None, {"x": x})[0]
    session = rukh.InferenceSession(artifact, providers=["cpu"])
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], expected)
    numbers = np.stack([packed & 15, packed >> 4], -1).reshape(24, 64).astype(np.float32) - 8
    np.testing.assert_allclose(expected, x @ (numbers * np.float32(scale)).T, atol=0.02 * np.abs(expected).max())


def test_dimensions_choose_the_program(path):
    artifact = path.with_name("model.rukh")
    rukh.compile_model(path, artifact, targets="cpu", shapes=[{"n": 3}, {"n": 5}])
    options = rukh.SessionOptions()
    options.add_free_dimension_override_by_name("n", 3)
    assert rukh.Artifact(artifact).check(options).fitness == "optimal"
    assert rukh.InferenceSession(artifact, options).get_inputs()[0].shape == [3, 32]
    options.add_free_dimension_override_by_name("n", 4)
    verdict = rukh.Artifact(artifact).check(options)
    assert verdict.fitness == "works" and "these dimensions" in verdict.reason
    options.add_session_config_entry("precision", "f16")
    assert rukh.Artifact(artifact).check(options).fitness == "unfit"


def test_results_of_tuning_are_compiled_in(path, tmp_path):
    artifact, results = tmp_path / "model.rukh", tmp_path / "results.txt"
    # Those of another library are for nobody here.
    results.write_text(
        "rukh tuning results 1\nvalidate rukh 0.0.1\nvalidate kernels gfx1100 0123456789abcdef\nvalidate arch gfx1100\n"
        "validate device a card\nvalidate runtime amd 6.4\nvalidate libraries none\nresult gemm a b 1.0\n"
    )
    with pytest.raises(rukh.InvalidArgumentError, match=r"results\.txt.*version 0\.0\.1"):
        rukh.compile_model(path, artifact, targets="gfx1100", tuning_files=[results])
    with pytest.raises(ValueError, match="semicolon"):
        rukh.compile_model(path, artifact, targets="gfx1100", tuning_files=["a;b"])
    assert not artifact.exists()


@pytest.mark.skipif(not ON_DEVICE, reason="there is no GPU")
def test_a_session_has_the_results_that_were_compiled_in(path, tmp_path):
    artifact, results = tmp_path / "model.rukh", tmp_path / "results.txt"
    name = rukh.get_available_providers()[0]
    tuning = {"tunable_op_enable": "1", "tunable_op_tuning_enable": "1", "tunable_op_file": str(results)}
    rukh.InferenceSession(path, providers=[(name, tuning)]).run(None, {"x": X})
    rukh.compile_model(path, artifact, targets="native", tuning_files=[results])
    assert rukh.Artifact(artifact).info["tuning"][0]["results"] == 1
    session = rukh.InferenceSession(artifact, providers=[name])
    assert session.get_tuning_text() == results.read_text()


def test_what_the_callback_raises_ends_compiling(path):
    def stop(step, done, total):
        if done == 1:
            raise KeyError(step)

    with pytest.raises(KeyError, match="packing weights for cpu"):
        rukh.compile_model(path, path.with_name("model.rukh"), targets="cpu", progress=stop)
    assert os.listdir(path.parent) == ["model.onnx"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"targets": "gfx1"}, '"gfx1" is not known'),
        ({"weights": "no"}, "allowed are used, all and external"),
        ({"shapes": [{"": 1}]}, "NAME=SIZE"),
    ],
)
def test_wrong_settings(path, settings, text):
    with pytest.raises(rukh.InvalidArgumentError, match=text):
        rukh.compile_model(path, path.with_name("a.rukh"), **settings)


def test_damage_is_told(path):
    artifact = path.with_name("model.rukh")
    rukh.compile_model(path, artifact, targets="cpu")
    data = bytearray(artifact.read_bytes())
    data[len(data) // 2] ^= 1
    artifact.write_bytes(data)
    for opened in (rukh.Artifact, rukh.InferenceSession):
        with pytest.raises(rukh.InvalidModelError, match="is damaged|belong to no part"):
            opened(artifact)


def test_the_compiler_of_onnxruntime(path):
    options = rukh.SessionOptions()
    expected = rukh.InferenceSession(path).run(None, {"x": X})[0]
    compiler = rukh.ModelCompiler(options, path)
    compiler.compile_to_file()
    compiler.compile_to_file(str(path.with_name("named.onnx")))
    chunks = []
    rukh.ModelCompiler(options, path.read_bytes()).compile_to_stream(chunks.append)
    for source in (path.with_name("model_ctx.onnx"), path.with_name("named.onnx"), b"".join(chunks)):
        np.testing.assert_array_equal(rukh.InferenceSession(source).run(None, {"x": X})[0], expected)
    with pytest.raises(ValueError, match="give output_model_path"):
        rukh.ModelCompiler(options, path.read_bytes()).compile_to_file()
    once = rukh.ModelCompiler(options, path, flags=rukh.OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS)
    once.compile_to_file(str(path.with_name("once.onnx")))
    with pytest.raises(rukh.FileError, match="once.onnx' exists already"):
        once.compile_to_file(str(path.with_name("once.onnx")))


def test_a_cache_of_compiled_models(path, tmp_path):
    options = rukh.SessionOptions()
    options.add_session_config_entry("model_cache_dir", str(tmp_path / "cache"))
    first = rukh.InferenceSession(path, options).run(None, {"x": X})[0]
    (kept,) = pathlib.Path(tmp_path / "cache").iterdir()
    before = kept.stat().st_ino
    np.testing.assert_array_equal(rukh.InferenceSession(path, options).run(None, {"x": X})[0], first)
    assert kept.stat().st_ino == before and rukh.Artifact(kept).check().fitness == "optimal"


@pytest.mark.skipif(not ON_DEVICE, reason="no GPU, and no emulated one")
def test_a_gpu_gets_its_own_program(path):
    artifact = path.with_name("model.rukh")
    rukh.compile_model(path, artifact, targets="all")
    providers = ["ROCMExecutionProvider"]
    assert rukh.Artifact(artifact).check(providers=providers).fitness == "optimal"
    session = rukh.InferenceSession(artifact, providers=providers)
    expected = rukh.InferenceSession(path, providers=providers).run(None, {"x": X})[0]
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], expected)
