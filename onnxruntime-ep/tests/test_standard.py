"""The ONNX standard's own cases through onnxruntime, with nothing left to its CPU provider.

RUKH_ONNX_DATA is the folder that scripts/onnx_cases.py writes; RUKH_SAMPLE takes about that many of the cases. One in
RUKH_COMPILE_EVERY is also written as a model with compiled parts, and opened again.
Cases that do not pass are in standard.txt, each with the reason: those that ONNX Runtime refuses by itself, and those
that a plugin cannot take. One that begins to pass fails the test.
"""

import ctypes
import json
import os
import pathlib

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from test_context import compile_to

DATA = os.environ.get("RUKH_ONNX_DATA")
SAMPLE = int(os.environ.get("RUKH_SAMPLE", "1000000"))
EVERY = int(os.environ.get("RUKH_COMPILE_EVERY", "25"))
KNOWN = pathlib.Path(__file__).with_name("standard.txt")

# Wider tolerances, each with its reason.
_NOISE = "the exact values are 0, and the expected ones are the rounding errors of another algorithm"
_JPEG = "decoders of JPEG may differ by rounding; the standard's data are Pillow's, two levels apart at most"
_HALF = "the expected Softmax rounds to float16 after every step, rukh's at the end"
TOLERANCES = {
    "test_image_decoder_decode_jpeg_bgr": ({"atol": 2}, _JPEG),
    "test_image_decoder_decode_jpeg_grayscale": ({"atol": 2}, _JPEG),
    "test_image_decoder_decode_jpeg_rgb": ({"atol": 2}, _JPEG),
    "test_dft_inverse": ({"atol": 1e-6}, _NOISE),
    "test_dft_inverse_opset19": ({"atol": 1e-6}, _NOISE),
    "test_attention_4d_causal_fp16_expanded": ({"rtol": 2e-3}, _HALF),
}

# The elements that a node EPContext takes and gives, by ONNX Runtime's definition of it.
TYPES = {
    *(TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.BOOL),
    *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64),
    *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
}


def cases():
    if DATA is None:
        return []
    folders = sorted(pathlib.Path(DATA).glob("*/test_*"))
    assert folders, f"RUKH_ONNX_DATA has no cases: {DATA}"
    return folders[:: max(1, len(folders) // SAMPLE)]


def known(kind):
    """For each case that does not pass on a kind of device, the reason."""
    reasons = {}
    for line in KNOWN.read_text().splitlines():
        if line and not line.startswith("#"):
            name, where, reason = line.split(maxsplit=2)
            if where in (kind, "all"):
                reasons[name] = reason
    return reasons


@pytest.mark.skipif(DATA is None, reason="RUKH_ONNX_DATA does not name the standard's cases")
@pytest.mark.parametrize("folder", cases(), ids=lambda folder: folder.name)
def test_case(plugin, folder):
    reason = known(plugin.kind).get(folder.name)
    if reason is None:
        run(plugin, folder)
        return
    if "random" in reason:
        pytest.skip(reason)
    # A session is refused, by ONNX Runtime itself or for what would be left to its CPU provider.
    refusal = "is not a registered function" if "operator" in reason else "CPU EP|Provider type .* is not set"
    with pytest.raises(Exception, match=refusal):
        run(plugin, folder)


def run(plugin, folder):
    content = (folder / "model.onnx").read_bytes()
    model = onnx.load_model_from_string(content)
    tolerance = json.loads((folder / "data.json").read_text())
    tolerance |= TOLERANCES.get(folder.name, ({}, ""))[0]
    if plugin.kind == "gpu" and folder.name.startswith(("test_dft", "test_stft")):
        # Computed in f32 there, so that sums of hundreds which cancel leave some 1e-6; expected is what f64 leaves.
        tolerance |= {"atol": 1e-5}
    session = plugin.session(content)
    for data in sorted(folder.glob("test_data_set_*")):
        inputs = read(data, "input", model.graph.input)
        expected = read(data, "output", model.graph.output)
        outputs = run_bound if all(it.dtype.kind not in "OUS" for it in inputs.values()) else run_plain
        for found, value in zip(outputs(session, inputs, list(expected)), expected.values(), strict=True):
            compare(found, value, tolerance)


def read(folder, what, infos):
    """The tensors of a data set by their names."""
    tensors = {}
    for index, info in enumerate(infos):
        file = folder / f"{what}_{index}.pb"
        if file.exists():
            assert info.type.HasField("tensor_type"), "sequences and optionals do not go to a plugin"
            tensors[info.name] = numpy_helper.to_array(TensorProto.FromString(file.read_bytes()))
    return tensors


def run_plain(session, inputs, outputs):
    texts = {name: it.astype(object) if it.dtype.kind in "OUS" else it for name, it in inputs.items()}
    return session.run(outputs, texts)


def run_bound(session, inputs, outputs):
    """Takes all types of elements, which onnxruntime's conversions from and to NumPy do not."""
    binding = session.io_binding()
    alive = [bind(binding, name, values) for name, values in inputs.items()]
    for name in outputs:
        binding.bind_output(name)
    session.run_with_iobinding(binding)
    del alive
    return [array(value) for value in binding.get_outputs()]


def bind(binding, name, values):
    """Binds an input over memory that must stay alive, which is returned."""
    message = numpy_helper.from_array(values)
    # 8 bytes more, so that there is an address where there are no elements.
    buffer = ctypes.create_string_buffer(message.raw_data, len(message.raw_data) + 8)
    binding.bind_input(name, "cpu", 0, message.data_type, list(values.shape), ctypes.addressof(buffer))
    return buffer


def array(value):
    """The elements of a tensor of onnxruntime's, of any type."""
    kind = value.element_type()
    if kind == TensorProto.STRING:
        return value.numpy()
    shape = value.shape()
    message = TensorProto(dims=shape, data_type=kind)
    size = packed_size(kind, int(np.prod(shape, dtype=np.int64)))
    message.raw_data = ctypes.string_at(value.data_ptr(), size) if size else b""
    return numpy_helper.to_array(message)


def packed_size(kind, count):
    four = {TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1}
    two = {TensorProto.INT2, TensorProto.UINT2}
    if kind in four:
        return (count + 1) // 2
    if kind in two:
        return (count + 3) // 4
    return count * np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind)).itemsize


def compare(found, expected, tolerance):
    assert found.shape == expected.shape
    if expected.dtype.kind in "OUS":
        assert [text(it) for it in found.ravel()] == [text(it) for it in expected.ravel()]
        return
    assert found.dtype == expected.dtype
    if expected.dtype.name == "bfloat16":
        # Its numbers are 2^-8 apart; the expected ones are rounded after every step.
        tolerance = {"rtol": 2**-6, "atol": 2**-8}
    if expected.dtype.kind not in "biufc":
        found, expected = found.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_allclose(found, expected, rtol=tolerance["rtol"], atol=tolerance["atol"])


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


@pytest.mark.skipif(DATA is None, reason="RUKH_ONNX_DATA does not name the standard's cases")
@pytest.mark.parametrize("folder", cases()[::EVERY], ids=lambda folder: folder.name)
def test_case_compiled(plugin, folder, tmp_path):
    """Operators of all kinds give the same bits from a compiled model: attributes, types and missing inputs were kept."""
    if reason := known(plugin.kind).get(folder.name):
        pytest.skip(reason)
    content = (folder / "model.onnx").read_bytes()
    graph = onnx.load_model_from_string(content).graph
    out = tmp_path / "context.onnx"
    if not all(value.type.tensor_type.elem_type in TYPES for value in (*graph.input, *graph.output)):
        with pytest.raises(Exception, match="CPU EP|Provider type .* is not set"):
            compile_to(plugin, content, out, "1")
        assert not out.exists()
        return
    session = compile_to(plugin, content, out, "1")
    if not plugin.assigned(session):
        # ONNX Runtime computed all of it while it opened the model, and writes no model with compiled parts.
        assert not out.exists()
        return
    assert {node.op_type for node in onnx.load(out).graph.node} == {"EPContext"}
    plain, compiled = plugin.session(content), plugin.session(out)
    names = [value.name for value in graph.output]
    for data in folder.glob("test_data_set_*"):
        inputs = read(data, "input", graph.input)
        found, expected = (run_bound(session, inputs, names) for session in (compiled, plain))
        for one, other in zip(found, expected, strict=True):
            assert (one.shape, one.dtype, one.tobytes()) == (other.shape, other.dtype, other.tobytes())


@pytest.mark.skipif(DATA is None, reason="RUKH_ONNX_DATA does not name the standard's cases")
def test_the_list_of_known_cases_is_about_real_ones():
    names = {folder.name for folder in pathlib.Path(DATA).glob("*/test_*")}
    lines = [line for line in KNOWN.read_text().splitlines() if line and not line.startswith("#")]
    assert {line.split()[0] for line in lines} <= names
