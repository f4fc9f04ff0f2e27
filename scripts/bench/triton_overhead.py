#!/usr/bin/env python3
"""What a run in Triton Inference Server takes beside one of the same batch through rukh's own C API.

    triton_overhead.py --backend libtriton_rukh.so --library librukh.so.0.1 [--requests N] [--batches 1,8]
                       [--model FILE --input NAME --shape 3,224,224 --output NAME]

The digits model, or another of floats with one input, one request at a time. Of Triton it takes the server's own times, which the statistics have after each
request: compute_input, compute_infer and compute_output, whose sum is what an execution takes. The C API is called in
turns with the requests, through ctypes, after the same rest. Medians, in microseconds.
"""

import argparse
import ctypes
import os
import pathlib
import statistics
import sys
import tempfile
import time
from ctypes import byref, c_char_p, c_int, c_int64, c_size_t, c_void_p

import numpy as np
import tritonclient.grpc

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "triton" / "tests"))

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
PARTS = ("compute_input", "compute_infer", "compute_output")
FLOAT = 1


class Rukh:
    """The model in rukh's own C API."""

    def __init__(self, options: argparse.Namespace):
        self.library = ctypes.CDLL(str(options.library))
        environment = self.make("environment_create", None)
        self.session = self.make("session_create", environment, str(options.model).encode(), None)
        self.run_function = self.library.rukh_session_run
        self.run_function.argtypes = [*[c_void_p] * 4, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p]
        self.release = self.library.rukh_value_destroy
        self.release.argtypes = [c_void_p]
        self.names, self.wanted = ((c_char_p * 1)(name.encode()) for name in (options.input, options.output))

    def make(self, function: str, *arguments) -> c_void_p:
        made = c_void_p()
        failed = getattr(self.library, f"rukh_{function}")(*arguments, byref(made), None)
        assert not failed, f"rukh_{function}: {failed}"
        return made

    def bind(self, values: np.ndarray) -> None:
        """The input of the runs to come."""
        shape, data = (c_int64 * values.ndim)(*values.shape), c_void_p(values.ctypes.data)
        rank, size = c_size_t(values.ndim), c_size_t(values.nbytes)
        value = self.make("value_create_tensor_over", c_int(FLOAT), shape, rank, data, size, None, None)
        self.values, self.inputs, self.outputs = values, (c_void_p * 1)(value.value), (c_void_p * 1)()

    def run(self) -> float:
        start = time.perf_counter_ns()
        failed = self.run_function(
            self.session, None, self.names, self.inputs, 1, self.wanted, 1, self.outputs, None
        )
        taken = time.perf_counter_ns() - start
        assert not failed
        self.release(self.outputs[0])
        return taken / 1000


def reported(server) -> list[float]:
    """The server's times so far, in microseconds."""
    found = server.grpc.get_inference_statistics("model").model_stats[0].inference_stats
    return [getattr(found, part).ns / 1000 for part in PARTS]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", required=True, type=pathlib.Path, help="libtriton_rukh.so")
    parser.add_argument("--library", required=True, type=pathlib.Path, help="librukh.so")
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--batches", default="1,8", help="sizes of batches, 32 at most")
    parser.add_argument("--model", type=pathlib.Path, default=DIGITS)
    parser.add_argument("--input", default="image")
    parser.add_argument("--shape", default="1,8,8", help="of the input without the batch")
    parser.add_argument("--output", default="scores")
    options = parser.parse_args()
    os.environ |= {"RUKH_TRITON_BACKEND": str(options.backend), "RUKH_LIBRARY": str(options.library)}
    from server import Server

    rukh = Rukh(options)
    shape = tuple(int(size) for size in options.shape.split(","))
    with tempfile.TemporaryDirectory() as folder:
        server = Server(pathlib.Path(folder))
        server.add("model", options.model.read_bytes(), "max_batch_size: 32")
        for batch in (int(size) for size in options.batches.split(",")):
            images = np.random.default_rng(1).random((batch, *shape), dtype=np.float32)
            x = tritonclient.grpc.InferInput(options.input, images.shape, "FP32")
            x.set_data_from_numpy(images)
            rukh.bind(images)
            own, parts = [], []
            for _ in range(options.requests):
                before = reported(server)
                server.grpc.infer("model", [x])
                after = reported(server)
                parts.append([b - a for a, b in zip(before, after, strict=True)])
                own.append(rukh.run())
            medians = [statistics.median(column) for column in zip(*parts, strict=True)]
            listed = ", ".join(f"{part} {time:.0f}" for part, time in zip(PARTS, medians, strict=True))
            ratio = statistics.median(
                inferred[PARTS.index("compute_infer")] / run for inferred, run in zip(parts, own, strict=True)
            )
            own_time = statistics.median(own)
            print(
                f"batch of {batch}: C API {own_time:.0f} µs; Triton {listed} µs; compute_infer / C API {ratio:.3f}"
            )
        server.stop()


if __name__ == "__main__":
    main()
