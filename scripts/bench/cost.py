"""What a model computes and reads, and what this machine can do: the bound of a model's time."""

import json
import math
import os
import pathlib
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime


@dataclass
class Machine:
    # Of a large matrix product in f32, on all cores.
    gflops: float
    # Read from memory, by all cores.
    gbytes: float


def machine():
    """Measured, the best of several; of the product NumPy's and ONNX Runtime's, as either may not know a processor."""
    n, megabytes = 2048, 512
    a = np.ones((n, n), np.float32)
    session = onnxruntime.InferenceSession(square().SerializeToString(), providers=["CPUExecutionProvider"])
    # NumPy's last: its threads go on turning round for a while.
    ways = (lambda: session.run(None, {"a": a}), lambda: a @ a)
    product = min(timed(way) for way in ways for _ in range(5))
    parts = np.array_split(np.ones(megabytes << 17, np.float64), os.cpu_count())
    with ThreadPoolExecutor(len(parts)) as threads:
        read = min(timed(lambda: list(threads.map(np.max, parts))) for _ in range(5))
    return Machine(2 * n**3 / product / 1e9, (megabytes << 20) / read / 1e9)


def square():
    """A model: the product of a matrix with itself."""
    a, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", "n"]) for name in "ay")
    node = onnx.helper.make_node("MatMul", ["a", "a"], ["y"])
    graph = onnx.helper.make_graph([node], "square", [a], [y])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)


def timed(run):
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def bound(model, feed, machine, factor):
    """Milliseconds below which one run cannot be; `factor`: how much faster than f32's multiplications are."""
    arithmetic = flops(model, feed) / (machine.gflops * factor) / 1e6
    memory = weight_bytes(model) / machine.gbytes / 1e6
    return max(arithmetic, memory)


def weight_bytes(model):
    graph = onnx.load(model, load_external_data=False).graph
    return sum(
        math.prod(tensor.dims) * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        for tensor in graph.initializer
        if len(tensor.dims) > 1
    )


def flops(model, feed):
    """Multiplications and additions of products, convolutions and recurrent layers, with the shapes that
    ONNX Runtime saw in a run without optimizations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # What is packed is let go of, and its shape with it.
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.enable_profiling = True
    with tempfile.TemporaryDirectory() as scratch:
        options.profile_file_prefix = str(pathlib.Path(scratch) / "profile")
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        session.run(None, feed)
        events = json.loads(pathlib.Path(session.end_profiling()).read_text())
    nodes = (event["args"] for event in events if event.get("name", "").endswith("_kernel_time"))
    return sum(node_flops(node) for node in nodes)


def node_flops(node):
    shapes = [next(iter(entry.values())) for entry in node["input_type_shape"]]
    out = [next(iter(entry.values())) for entry in node["output_type_shape"]]
    match node["op_name"]:
        case "MatMul" | "MatMulInteger" | "QLinearMatMul" | "DynamicQuantizeMatMul":
            return 2 * math.prod(out[0]) * shapes[0][-1]
        case "Gemm":
            # M·N, and K from M·K · K·N / M·N: transposed or not.
            m_n = math.prod(out[0])
            k = math.isqrt(math.prod(shapes[0]) * math.prod(shapes[1]) // max(m_n, 1))
            return 2 * m_n * k
        case "Conv" | "ConvInteger":
            return 2 * math.prod(out[0]) * math.prod(shapes[1][1:])
        case "QLinearConv":
            return 2 * math.prod(out[0]) * math.prod(shapes[3][1:])
        case "ConvTranspose":
            return 2 * math.prod(shapes[0]) * math.prod(shapes[1][1:])
        case "LSTM" | "GRU":
            steps, batch, _ = shapes[0]
            return 2 * steps * batch * (math.prod(shapes[1]) + math.prod(shapes[2]))
        case _:
            return 0

