"""What is wrong is refused with a text that says so, and the server lives on."""

import numpy as np
import pytest
import tritonclient.http
from conftest import infer
from models import complex_numbers, double, found_rows, look_up, sequence, two, unknown_operator
from onnx import TensorProto
from tritonclient.utils import InferenceServerException


def refusal(server, name, model, config=""):
    server.add(name, model, config, load=False)
    with pytest.raises(InferenceServerException) as raised:
        server.http.load_model(name)
    assert not server.http.is_model_ready(name)
    return raised.value.message()


def tensors(kind, *names_and_dims, data_type="TYPE_FP32"):
    listed = ", ".join(f'{{ name: "{n}" data_type: {data_type} dims: {dims} }}' for n, dims in names_and_dims)
    return f"{kind} [ {listed} ] "


def test_models_that_cannot_be_opened(server, digits):
    assert "Frobnicate" in refusal(server, "unknown-operator", unknown_operator())
    assert "protobuf" in refusal(server, "no-model", b"this is no model").lower()
    assert refusal(server, "cut", digits[0][: len(digits[0]) // 2])
    server.add("no-file", digits[0], load=False)
    (server.repository / "no-file" / "1" / "model.onnx").unlink()
    with pytest.raises(InferenceServerException, match="model.onnx"):
        server.http.load_model("no-file")
    assert "Frobnicate" in server.log()


def test_models_that_triton_cannot_serve(server):
    assert "complex64" in refusal(server, "complex", complex_numbers())
    # Other outputs are served.
    server.add("sequence", sequence())
    x = np.ones((1, 3), np.float32)
    assert list(infer(server.http, "sequence", {"x": x})) == ["z"]
    config = "max_batch_size: 2 " + tensors("output", ("y", "[3]"))
    assert "a sequence" in refusal(server, "sequence-named", sequence(), config)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (tensors("input", ("z", "[-1, 3]")), 'input "z", which the model does not have; it has x'),
        (tensors("output", ("z", "[-1, 3]")), 'output "z", which the model does not have; it has y'),
        (
            tensors("input", ("x", "[-1, 3]"), data_type="TYPE_INT32"),
            "says TYPE_INT32, and the model has TYPE_FP32",
        ),
        (tensors("input", ("x", "[-1, 4]")), "dims [-1, 4], and the model [-1, 3]"),
        ("max_batch_size: 4 " + tensors("input", ("x", "[-1, 3]")), "without the model's first one"),
        ('parameters { key: "optimisation" value { string_value: "all" } }', 'parameter "optimisation"'),
        ('parameters { key: "optimization" value { string_value: "most" } }', "most"),
        ('parameters { key: "provider" value { string_value: "abacus" } }', "abacus"),
        (
            'instance_group [ { kind: KIND_CPU } ] parameters { key: "provider" value { string_value: "hip" } }',
            "KIND_MODEL",
        ),
        ("model_transaction_policy { decoupled: true }", "decoupled"),
        ('input [ { name: "x" data_type: TYPE_FP32 dims: [-1, 3] is_shape_tensor: true } ]', "shape_tensor"),
        ('input [ { name: "x" data_type: TYPE_FP32 dims: [-1, 3] optional: true } ]', "optional"),
        (
            'optimization { execution_accelerators { gpu_execution_accelerator : [ { name: "tensorrt" } ] } }',
            "tensorrt",
        ),
    ],
)
def test_configurations_that_do_not_fit(server, request, config, expected):
    name = f"wrong-{abs(hash(request.node.name))}"
    assert expected in refusal(server, name, double(), config)


def test_a_scheme_of_batches_that_the_model_does_not_have(server):
    fixed = double(declared=(2, 3), shape=(2, 3))
    assert "always 2" in refusal(server, "fixed", fixed, "max_batch_size: 4")
    server.add("fixed-alone", fixed)
    x = np.ones((2, 3), np.float32)
    assert (infer(server.http, "fixed-alone", {"x": x})["y"] == 2).all()


def test_requests_that_are_wrong(server):
    server.add("double", double(), "max_batch_size: 4")
    server.add("plus", two(), "max_batch_size: 4")
    x = np.ones((2, 3), np.float32)
    wrong = [
        ("double", {"x": np.ones((2, 4), np.float32)}),
        ("double", {"x": np.ones((2, 3, 1), np.float32)}),
        ("double", {"x": x.astype(np.int32)}),
        ("double", {"y": x}),
        ("double", {"x": x, "z": x}),
        ("double", {"x": np.ones((5, 3), np.float32)}),
        ("double", {"x": np.ones((0, 3), np.float32)}),
        ("plus", {"a": x}),
        # The model itself refuses this one: the shapes do not go together.
        ("plus", {"a": x, "b": np.ones((2, 4), np.float32)}),
    ]
    for client in (server.http, server.grpc):
        for name, inputs in wrong:
            with pytest.raises(InferenceServerException):
                infer(client, name, inputs)
            assert (infer(client, "double", {"x": x})["y"] == 2).all()
        with pytest.raises(InferenceServerException):
            infer(client, "double", {"x": x}, ["nothing"])


def test_bytes_that_are_no_strings(server):
    from models import concatenation

    server.add("texts", concatenation(), "max_batch_size: 4")
    good = np.array([["a", "b"]], object)
    for raw in (
        b"\xff\xff\xff\x7f",
        b"\x01\0\0\0a",
        b"\x01\0\0\0a\x01\0\0\0\xff",
        b"\x01\0\0\0a\x01\0\0\0b\x01\0\0\0c",
    ):
        a = tritonclient.http.InferInput("a", [1, 2], "BYTES")
        a.set_data_from_numpy(good)
        a._raw_data, a._parameters["binary_data_size"] = raw, len(raw)
        b = tritonclient.http.InferInput("b", [1, 2], "BYTES")
        b.set_data_from_numpy(good)
        with pytest.raises(InferenceServerException):
            server.http.infer("texts", [a, b])
    got = infer(server.http, "texts", {"a": good, "b": good})["c"]
    assert got.tolist() == [[b"aa", b"bb"]]


def test_data_that_an_operator_refuses(server):
    server.add("look-up", look_up(), "max_batch_size: 4")
    with pytest.raises(InferenceServerException, match="Gather"):
        infer(server.http, "look-up", {"x": np.array([[9]])})
    assert infer(server.http, "look-up", {"x": np.array([[2]])})["y"].item() == 4


def test_outputs_that_cannot_be_split(server):
    server.add(
        "found", found_rows(), "max_batch_size: 4 " + tensors("input", ("x", "[1] reshape { shape: [] }"))
    )
    with pytest.raises(InferenceServerException, match="max_batch_size to 0"):
        infer(server.http, "found", {"x": np.array([[1], [0]], np.float32)})


def test_bad_settings_of_the_backend(tmp_path):
    from server import Server

    server = Server(tmp_path, ("--backend-config=rukh,thread=2",))
    server.add("any", double(), load=False)
    with pytest.raises(InferenceServerException, match="thread"):
        server.http.load_model("any")
    assert server.stop() == 0


def test_elements_of_types(server):
    from models import identity

    assert "float8e4m3fn" in refusal(server, "float8", identity(TensorProto.FLOAT8E4M3FN))
