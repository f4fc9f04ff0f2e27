"""Many clients at once: batches, cancelled requests, statistics."""

import concurrent.futures
import threading
import time

import numpy as np
import pytest
import tritonclient.grpc
from conftest import infer
from models import look_up, rounds, two
from tritonclient.utils import InferenceServerException

THREADS = 64


def statistics(server, name):
    return server.http.get_inference_statistics(name)["model_stats"][0]


def in_threads(work, count=THREADS):
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return [future.result() for future in [pool.submit(work, index) for index in range(count)]]


def test_dynamic_batching(server, digits, place):
    model, images, scores = digits
    name = f"many-{place[0]}"
    server.add(
        name, model, "max_batch_size: 16 dynamic_batching { max_queue_delay_microseconds: 2000 } " + place[1]
    )
    each = 20 if place[0] == "cpu" else 3

    def work(index):
        client = tritonclient.grpc.InferenceServerClient(server.grpc_address)
        random = np.random.default_rng(index)
        for _ in range(each):
            chosen = random.integers(0, len(images), random.integers(1, 4))
            got = infer(client, name, {"image": images[chosen]})["scores"]
            np.testing.assert_allclose(got, scores[chosen], rtol=1e-4, atol=1e-4)
        return each

    assert sum(in_threads(work)) == THREADS * each
    found = statistics(server, name)
    assert found["inference_stats"]["success"]["count"] == THREADS * each
    assert found["inference_stats"]["compute_infer"]["ns"] > 0
    assert found["execution_count"] < THREADS * each, "no requests were run together"
    assert max(batch["batch_size"] for batch in found["batch_stats"]) > 3


def test_requests_of_different_shapes(server):
    """The server does not put them together, and each gets its own answer."""
    server.add("shapes", two(), "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 2000 }")

    def work(index):
        client = tritonclient.grpc.InferenceServerClient(server.grpc_address)
        for step in range(10):
            a = np.full((1 + index % 2, 1 + (index + step) % 3), index, np.float32)
            got = infer(client, "shapes", {"a": a, "b": a + 1})
            assert (got["sum"] == 2 * index + 1).all() and got["sum"].shape == a.shape
            assert (got["difference"] == -1).all()

    in_threads(work)


def test_one_wrong_request_does_not_fail_the_others(server):
    config = "max_batch_size: 32 dynamic_batching { max_queue_delay_microseconds: 200000 preferred_batch_size: 32 }"
    server.add("mixed", look_up(), config)

    def work(index):
        client = tritonclient.grpc.InferenceServerClient(server.grpc_address)
        wrong = index % 8 == 3
        x = np.array([[99 if wrong else index % 4]])
        try:
            got = infer(client, "mixed", {"x": x})["y"].item()
        except InferenceServerException as error:
            assert wrong and "Gather" in error.message()
            return "refused"
        assert not wrong and got == (index % 4) ** 2
        return "right"

    results = in_threads(work)
    assert results.count("refused") == THREADS // 8
    assert results.count("right") == THREADS - THREADS // 8
    found = statistics(server, "mixed")["inference_stats"]
    assert found["fail"]["count"] == THREADS // 8 and found["success"]["count"] == THREADS - THREADS // 8


def test_cancelled_requests_end(server, place):
    name = f"rounds-{place[0]}"
    # The loop's condition stays with the CPU.
    server.add(name, rounds(), place[1].replace('"error"', '"cpu"').replace("count: 2", "count: 1"))
    eye = np.eye(256, dtype=np.float32)
    start = time.monotonic()
    infer(server.grpc, name, {"count": np.array([3]), "x": eye})
    # About ten minutes, were it not cancelled.
    many = int(600 / ((time.monotonic() - start) / 3)) + 1

    count = tritonclient.grpc.InferInput("count", [1], "INT64")
    count.set_data_from_numpy(np.array([many]))
    x = tritonclient.grpc.InferInput("x", [256, 256], "FP32")
    x.set_data_from_numpy(eye)
    done, errors = threading.Event(), []
    call = server.grpc.async_infer(name, [count, x], lambda result, error: (errors.append(error), done.set()))
    time.sleep(1)
    assert not done.is_set()
    call.cancel()
    assert done.wait(30)
    assert "CANCELLED" in str(errors[0]) or "ancel" in str(errors[0])
    # The one instance is free again, long before the run would have ended.
    start = time.monotonic()
    infer(server.grpc, name, {"count": np.array([1]), "x": eye}, client_timeout=100)
    assert time.monotonic() - start < 60
    found = statistics(server, name)["inference_stats"]
    assert found["success"]["count"] == 2


def test_instances_share_their_weights(server, place):
    """Eight instances of a model with 64 MiB of weights take not much more than one."""
    from models import model, tensor
    from onnx import TensorProto, helper

    weights = np.random.default_rng(0).normal(size=(4096, 4096)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    inputs = [tensor("x", TensorProto.FLOAT, ("n", 4096))]
    large = model([node], inputs, [tensor("y", TensorProto.FLOAT, ("n", 4096))], {"w": weights})
    x = np.ones((1, 4096), np.float32)
    taken = []
    for count in (1, 8):
        before = server.memory()
        name = f"large-{place[0]}-{count}"
        server.add(name, large, place[1].replace("count: 2", f"count: {count}"))
        np.testing.assert_allclose(infer(server.grpc, name, {"x": x})["y"][0], weights.sum(0), atol=1e-2)
        taken.append(server.memory() - before)
    assert taken[1] < taken[0] + weights.nbytes, taken


@pytest.mark.parametrize("batch", [1, 4])
def test_statistics(server, digits, batch):
    model, images, _ = digits
    name = f"counted-{batch}"
    server.add(name, model, "max_batch_size: 4")
    for _ in range(5):
        infer(server.http, name, {"image": images[:batch]})
    found = statistics(server, name)
    assert found["inference_count"] == 5 * batch and found["execution_count"] == 5
    assert [found["batch_stats"][0][key] for key in ("batch_size",)] == [batch]
    for kind in ("compute_input", "compute_infer", "compute_output"):
        assert found["inference_stats"][kind]["count"] == 5
    assert found["batch_stats"][0]["compute_infer"]["ns"] > 0


def test_unloading_under_load(server, digits):
    """Requests are answered or refused, and never wrong, while their model comes and goes."""
    model, images, scores = digits
    server.add("restless", model, "max_batch_size: 8 dynamic_batching { }")
    stop = threading.Event()

    def work(index):
        client = tritonclient.grpc.InferenceServerClient(server.grpc_address)
        right = 0
        while not stop.is_set():
            try:
                got = infer(client, "restless", {"image": images[:2]})["scores"]
            except InferenceServerException as error:
                # Not loaded, on its way out, or not known yet.
                assert error.status() in ("StatusCode.UNAVAILABLE", "StatusCode.NOT_FOUND"), error
                continue
            np.testing.assert_allclose(got, scores[:2], rtol=1e-4, atol=1e-4)
            right += 1
        return right

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(work, index) for index in range(8)]
        for _ in range(20):
            time.sleep(0.05)
            server.http.unload_model("restless")
            server.http.load_model("restless")
        time.sleep(0.5)
        stop.set()
        assert all(future.result() > 0 for future in futures)
