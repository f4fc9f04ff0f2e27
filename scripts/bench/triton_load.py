#!/usr/bin/env python3
"""Puts Triton Inference Server with rukh's backend under load, and watches the server's memory.

    triton_load.py --backend libtriton_rukh.so --library librukh.so.0.1 [--minutes N] [--clients N] [--config TEXT]

Clients send batches of 1 to 4 images to the digits model over gRPC, each as fast as it gets answers, and check every
answer. The server is the one of triton/tests. It prints how many answers were right, the server's resident memory at the
start (after a tenth of the time) and at the end, and answers a second. Clients and server share the machine, so that the
last figure says more about Python's clients than about the server. The exit status is 1 when an answer was wrong.
"""

import argparse
import itertools
import multiprocessing
import os
import pathlib
import sys
import tempfile
import threading
import time

import numpy as np
import tritonclient.grpc

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "triton" / "tests"))

PROCESSES = 4
MIB = 1 << 20


def client(address: str, images: np.ndarray, scores: np.ndarray, end: float, seed: int, out: list) -> None:
    """One client: appends how many of its answers were right, and how many wrong or errors."""
    right = wrong = 0
    random = np.random.default_rng(seed)
    server = tritonclient.grpc.InferenceServerClient(address)
    while time.time() < end:
        chosen = random.integers(0, len(images), random.integers(1, 5))
        x = tritonclient.grpc.InferInput("image", [len(chosen), *images.shape[1:]], "FP32")
        x.set_data_from_numpy(images[chosen])
        try:
            got = server.infer("digits", [x]).as_numpy("scores")
        except tritonclient.grpc.InferenceServerException as error:
            print(f"client {seed}: {error}", file=sys.stderr)
            wrong += 1
            continue
        if np.allclose(got, scores[chosen], rtol=1e-4, atol=1e-4):
            right += 1
        else:
            wrong += 1
    server.close()
    out.append((right, wrong))


def clients(address: str, end: float, seeds: range, answers: multiprocessing.Queue) -> None:
    """The clients of one process, each in a thread."""
    sample = np.load(ROOT / "examples" / "digits" / "sample.npz")
    images, scores, out = sample["in:image"], sample["out:scores"], []
    arguments = [(address, images, scores, end, seed, out) for seed in seeds]
    threads = [threading.Thread(target=client, args=each) for each in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers.put(out)


def watch(server, end: float, seconds: float) -> tuple[int, int]:
    """The server's memory after a tenth of the time, and the most of it that was seen afterwards."""
    time.sleep(seconds / 10)
    start = most = server.memory()
    while time.time() < end:
        time.sleep(min(1.0, max(0.0, end - time.time())))
        most = max(most, server.memory())
    return start, most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--backend", required=True, type=pathlib.Path, help="libtriton_rukh.so")
    parser.add_argument("--library", required=True, type=pathlib.Path, help="librukh.so")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument(
        "--config", default="max_batch_size: 32 dynamic_batching { }", help="lines of config.pbtxt"
    )
    options = parser.parse_args()
    os.environ |= {"RUKH_TRITON_BACKEND": str(options.backend), "RUKH_LIBRARY": str(options.library)}
    from server import Server

    seconds = options.minutes * 60
    with tempfile.TemporaryDirectory() as folder:
        server = Server(pathlib.Path(folder))
        server.add("digits", (ROOT / "examples" / "digits" / "digits.onnx").read_bytes(), options.config)
        context = multiprocessing.get_context("spawn")
        answers, end = context.Queue(), time.time() + seconds
        bounds = [options.clients * part // PROCESSES for part in range(PROCESSES + 1)]
        parts = [range(first, last) for first, last in itertools.pairwise(bounds)]
        workers = [
            context.Process(target=clients, args=(server.grpc_address, end, seeds, answers))
            for seeds in parts
        ]
        for worker in workers:
            worker.start()
        start, most = watch(server, end, seconds)
        out = [each for _ in workers for each in answers.get()]
        for worker in workers:
            worker.join()
        last = server.memory()
        found = server.http.get_inference_statistics("digits")["model_stats"][0]
        status = server.stop()
    right, wrong = sum(each[0] for each in out), sum(each[1] for each in out)
    infer = found["inference_stats"]["compute_infer"]
    print(f"answers that were right: {right}; wrong or errors: {wrong}; {right / seconds:.0f} a second")
    print(
        f"executions: {found['execution_count']}, of {found['inference_count'] / found['execution_count']:.1f} images"
    )
    print(f"compute_infer of a request: {infer['ns'] / infer['count'] / 1000:.0f} µs")
    print(
        f"memory of the server: {start / MIB:.1f} MiB at the start, {last / MIB:.1f} at the end, {most / MIB:.1f} at most"
    )
    print(f"exit status of the server: {status}")
    return int(wrong > 0 or status != 0)


if __name__ == "__main__":
    sys.exit(main())
