"""What models give, over HTTP and gRPC, on the CPU and on a GPU."""

import ml_dtypes
import numpy as np
import pytest
import tritonclient.http
from conftest import infer
from models import concatenation, double, identity, look_up, positions, positive, scalar, two
from onnx import TensorProto
from tritonclient.utils import InferenceServerException

CLIENTS = ["http", "grpc"]


@pytest.mark.parametrize("client", CLIENTS)
def test_digits(server, digits, place, client):
    model, images, scores = digits
    name = f"digits-{place[0]}-{client}"
    server.add(name, model, "max_batch_size: 8 " + place[1])
    for batch in (1, 3, 8):
        got = infer(getattr(server, client), name, {"image": images[:batch]})["scores"]
        np.testing.assert_allclose(got, scores[:batch], rtol=1e-4, atol=1e-4)


def test_the_configuration_comes_from_the_model(server, digits):
    server.add("complete", digits[0])
    config = server.http.get_model_config("complete")
    assert config["max_batch_size"] == 4
    (x,), (y,) = config["input"], config["output"]
    assert (x["name"], x["data_type"], x["dims"]) == ("image", "TYPE_FP32", [1, 8, 8])
    assert (y["name"], y["data_type"], y["dims"]) == ("scores", "TYPE_FP32", [10])
    assert "dynamic_batching" in config
    assert config["instance_group"][0]["kind"] == "KIND_MODEL"
    # What is listed in part is filled in.
    server.add(
        "part", digits[0], 'output [ { name: "scores" } ] input [ { name: "image" dims: [ -1, 1, 8, 8 ] } ]'
    )
    config = server.http.get_model_config("part")
    assert (config["max_batch_size"], config["input"][0]["data_type"]) == (0, "TYPE_FP32")
    assert config["output"][0]["dims"] == [-1, 10]
    server.add("scalar", scalar())
    config = server.http.get_model_config("scalar")
    assert config["max_batch_size"] == 0 and "dynamic_batching" not in config
    # Triton has no scalars without batches.
    assert config["output"][0]["dims"] == [1]
    x = np.arange(5, dtype=np.float32)
    assert infer(server.http, "scalar", {"x": x})["y"].item() == 10


def test_loading_and_unloading(server):
    server.add("comes-and-goes", double())
    assert server.http.is_model_ready("comes-and-goes")
    for _ in range(3):
        server.unload("comes-and-goes")
        assert not server.http.is_model_ready("comes-and-goes")
        server.http.load_model("comes-and-goes")
        x = np.ones((2, 3), np.float32)
        assert (infer(server.http, "comes-and-goes", {"x": x})["y"] == 2).all()


def test_loading_and_unloading_leaks_nothing(server, digits):
    model, images, _ = digits
    server.add("again", model)
    server.add("never", b"no model", load=False)
    sizes = []
    for turn in range(60):
        server.unload("again")
        server.http.load_model("again")
        infer(server.http, "again", {"image": images[:4]})
        with pytest.raises(InferenceServerException):
            server.http.load_model("never")
        if turn in (19, 59):
            sizes.append(server.memory())
    assert sizes[1] < sizes[0] + (16 << 20), sizes


NUMBERS = {
    "bool": TensorProto.BOOL,
    "uint8": TensorProto.UINT8,
    "uint16": TensorProto.UINT16,
    "uint32": TensorProto.UINT32,
    "uint64": TensorProto.UINT64,
    "int8": TensorProto.INT8,
    "int16": TensorProto.INT16,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "float16": TensorProto.FLOAT16,
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
}


@pytest.mark.parametrize("client", CLIENTS)
def test_all_types_of_numbers(server, client):
    for name, element in NUMBERS.items():
        model = f"numbers-{name}-{client}"
        server.add(model, identity(element))
        values = np.array([[0, 1, 100], [7, 0, 3]]).astype(name)
        got = infer(getattr(server, client), model, {"x": values})["y"]
        assert got.dtype == values.dtype and (got == values).all()


def test_bf16(server):
    server.add("bf16", identity(TensorProto.BFLOAT16))
    values = np.array([[1, -2.5, 0]], ml_dtypes.bfloat16)
    for client in (server.http, server.grpc):
        got = infer(client, "bf16", {"x": values})["y"]
        assert (got.astype(np.float32) == values.astype(np.float32)).all()


@pytest.mark.parametrize("client", CLIENTS)
def test_strings(server, client):
    name = f"strings-{client}"
    server.add(name, concatenation(), "max_batch_size: 8")
    a = np.array([["x", "grün"], ["", "a\0b"], ["1", "2"]], object)
    b = np.array([["y", "日本"], ["", "c"], ["3", "4"]], object)
    got = infer(getattr(server, client), name, {"a": a, "b": b})["c"]
    assert [[text.decode() for text in row] for row in got] == (a + b).tolist()


def test_only_wanted_outputs_come(server, place):
    name = f"two-{place[0]}"
    server.add(name, two(), "max_batch_size: 4 " + place[1])
    a, b = np.full((2, 5), 7, np.float32), np.full((2, 5), 3, np.float32)
    got = infer(server.http, name, {"a": a, "b": b}, ["difference"])
    assert list(got) == ["difference"] and (got["difference"] == 4).all()
    got = infer(server.grpc, name, {"a": a, "b": b})
    assert set(got) == {"sum", "difference"} and (got["sum"] == 10).all()


def test_shapes_that_only_the_run_tells(server):
    server.add("positions", positions())
    got = infer(server.http, "positions", {"x": np.array([0, 5, 0, 1], np.float32)})["y"]
    assert got.tolist() == [[1, 3]]
    got = infer(server.http, "positions", {"x": np.zeros(4, np.float32)})["y"]
    assert got.shape == (1, 0)


def test_shapes_that_the_model_says_wrongly(server):
    server.add(
        "positive",
        positive(),
        "max_batch_size: 0 " + 'input [ { name: "x" data_type: TYPE_FP32 dims: [-1] } ]',
    )
    for x, y in (([1, 2], [1, 2]), ([0, 5, 0, 1], [5, 1]), ([0, 0], []), ([1, 0, 0], [1])):
        got = infer(server.http, "positive", {"x": np.array(x, np.float32)})["y"]
        assert got.tolist() == y


def test_shared_memory(server, digits):
    """Inputs are read and outputs written where the client has them."""
    from tritonclient.utils import shared_memory

    model, images, scores = digits
    server.add("shared", model, "max_batch_size: 8")
    region = shared_memory.create_shared_memory_region(
        "all", "/rukh-triton", images.nbytes + scores.nbytes + 1
    )
    try:
        shared_memory.set_shared_memory_region(region, [images])
        server.http.register_system_shared_memory("all", "/rukh-triton", images.nbytes + scores.nbytes + 1)
        x = tritonclient.http.InferInput("image", images.shape, "FP32")
        x.set_shared_memory("all", images.nbytes)
        # The second place is not aligned to floats.
        for offset in (images.nbytes, images.nbytes + 1):
            y = tritonclient.http.InferRequestedOutput("scores")
            y.set_shared_memory("all", scores.nbytes, offset)
            server.http.infer("shared", [x], outputs=[y])
            got = shared_memory.get_contents_as_numpy(region, np.uint8, [images.nbytes + scores.nbytes + 1])
            got = got[offset : offset + scores.nbytes].tobytes()
            np.testing.assert_allclose(
                np.frombuffer(got, np.float32).reshape(scores.shape), scores, 1e-4, 1e-4
            )
        server.http.unregister_system_shared_memory("all")
    finally:
        shared_memory.destroy_shared_memory_region(region)


def test_look_up(server):
    server.add("squares", look_up(), "max_batch_size: 8")
    got = infer(server.http, "squares", {"x": np.array([[3], [-1], [2]])})["y"]
    assert got.tolist() == [[9], [9], [4]]


def test_ensembles(server):
    """What one model gives is what the next one takes, without a client between them."""
    server.add("first", double(), "max_batch_size: 4")
    server.add("second", double(), "max_batch_size: 4")
    folder = server.repository / "chain"
    (folder / "1").mkdir(parents=True)
    steps = ", ".join(
        f'{{ model_name: "{name}" model_version: -1 input_map {{ key: "x" value: "{x}" }} '
        f'output_map {{ key: "y" value: "{y}" }} }}'
        for name, x, y in (("first", "in", "between"), ("second", "between", "out"))
    )
    ports = [f'{{ name: "{name}" data_type: TYPE_FP32 dims: [ 3 ] }}' for name in ("in", "out")]
    (folder / "config.pbtxt").write_text(
        f'platform: "ensemble"\nmax_batch_size: 4\ninput [ {ports[0]} ]\noutput [ {ports[1]} ]\n'
        f"ensemble_scheduling {{ step [ {steps} ] }}\n"
    )
    server.http.load_model("chain")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert (infer(server.grpc, "chain", {"in": x})["out"] == 4 * x).all()
