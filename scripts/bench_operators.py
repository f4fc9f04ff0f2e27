"""Times each operator of benches/operators.txt with rukh and with ONNX Runtime, in turns, with as many threads.

    scripts/bench_operators.py [--threads N] [--seconds S] [PART_OF_AN_OPERATOR…]

Prints for each row the best time of both in microseconds, what rukh achieves (GB/s of inputs and outputs, or
GFLOP/s), and its time in ONNX Runtime's. With --limit X it fails when a row takes more than X times as long.
"""

import argparse
import ast
import pathlib
import re
import sys
import time

import ml_dtypes  # noqa: F401 - NumPy learns its types
import numpy as np
import onnx
import onnxruntime
import rukh
from onnx import helper, numpy_helper

TABLE = pathlib.Path(__file__).resolve().parents[1] / "benches" / "operators.txt"
DTYPES = {
    "f16": np.float16,
    "f32": np.float32,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "bool": np.bool_,
}
_RANDOM = np.random.default_rng(7)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.6, help="for each row")
    parser.add_argument("--limit", type=float)
    parser.add_argument("operators", nargs="*")
    arguments = parser.parse_args()
    slow = 0
    print(f"{'family':26}{'operator':34}{'rukh':>9}{'ORT':>9}{'':>14}{'ratio':>7}")
    for line in TABLE.read_text().splitlines():
        name = line.split("|")[1].rpartition(".")[2] if "|" in line else ""
        if line.startswith("#") or arguments.operators and name not in arguments.operators:
            continue
        ratio = report(line, arguments.threads, arguments.seconds)
        slow += arguments.limit is not None and ratio is not None and ratio > arguments.limit
    return 1 if slow else 0


def report(line: str, threads: int, seconds: float) -> float | None:
    family, operator, opset, attributes, inputs, work = line.split("|")
    model, feed = build(operator, int(opset), attributes, inputs)
    ours, outputs = runner(rukh, model, feed, threads)
    theirs, _ = runner(onnxruntime, model, feed, threads)
    best = [float("inf")] * 2
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        for i, run in enumerate((ours, theirs)):
            if run is not None:
                start = time.perf_counter()
                run()
                best[i] = min(best[i], time.perf_counter() - start)
    if work == "bytes":
        count = sum(x.nbytes for x in (*feed.values(), *outputs))
        rate = f"{count / best[0] / 1e9:.1f} GB/s"
    else:
        rate = f"{float(work) / best[0] / 1e9:.1f} GFLOP/s"
    ratio = best[0] / best[1] if theirs else None
    name = f"{operator.rpartition('.')[2]} {attributes}"[:33]
    theirs_text = f"{best[1] * 1e6:9.0f}" if theirs else f"{'-':>9}"
    ratio_text = f"{ratio:7.2f}" if ratio else f"{'-':>7}"
    print(f"{family:26}{name:34}{best[0] * 1e6:9.0f}{theirs_text}{rate:>14}{ratio_text}", flush=True)
    return ratio


def runner(library, model: bytes, feed: dict, threads: int):
    """A run into outputs that are bound once, and the outputs; None where the library has no such operator."""
    options = library.SessionOptions()
    options.intra_op_num_threads = threads
    try:
        session = library.InferenceSession(model, options, providers=_PROVIDERS[library.__name__])
        outputs = session.run(None, feed)
    except Exception as error:
        if library is rukh:
            raise
        print(f"    ONNX Runtime: {str(error).splitlines()[0][:100]}", file=sys.stderr)
        return None, []
    return lambda: session.run(None, feed), outputs


_PROVIDERS = {"rukh": ["cpu"], "onnxruntime": ["CPUExecutionProvider"]}


def build(operator: str, opset: int, attributes: str, inputs: str) -> tuple[bytes, dict]:
    pairs = (pair.split("=", 1) for pair in attributes.split())
    values = {name: ast.literal_eval(text) for name, text in pairs}
    names, infos, constants, feed = [], [], [], {}
    for i, text in enumerate(inputs.split()):
        name = "" if text == "-" else f"x{i}"
        names.append(name)
        if text == "-":
            continue
        array, constant = parse(text)
        if constant:
            constants.append(numpy_helper.from_array(array, name))
        else:
            feed[name] = array
            element = helper.np_dtype_to_tensor_dtype(array.dtype)
            infos.append(helper.make_tensor_value_info(name, element, array.shape))
    outputs = [f"y{i}" for i in range(values.get("num_outputs", 2 if operator == "TopK" else 1))]
    if operator == "DynamicQuantizeLinear":
        outputs = ["y0", "y1", "y2"]
    domain, _, operator = operator.rpartition(".")
    node = helper.make_node(operator, names, outputs, domain=domain, **values)
    results = [onnx.ValueInfoProto(name=output) for output in outputs]
    graph = helper.make_graph([node], operator, infos, results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, opset)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model).SerializeToString(), feed


def parse(text: str) -> tuple[np.ndarray, bool]:
    """An input of the table, and whether it is a constant."""
    if match := re.fullmatch(r"(\w+)(\(\))?=(.*)", text):
        numbers = [float(number) for number in match[3].split(",")]
        return np.array(numbers[0] if match[2] else numbers).astype(DTYPES[match[1]]), True
    match = re.fullmatch(r"(w:)?(\w+)\[(.*)\](?:<(\d+)|(\+))?", text)
    if match is None:
        raise ValueError(f"{text!r} is no input; see the head of {TABLE}")
    constant, kind, shape, below, positive = match.groups()
    sizes = [int(size) for size in shape.split(",")]
    if kind == "bool":
        array = _RANDOM.random(sizes) < 0.5
    elif below:
        array = _RANDOM.integers(0, int(below), sizes)
    elif positive:
        array = _RANDOM.random(sizes) + 0.01
    else:
        array = _RANDOM.normal(size=sizes)
    return np.asarray(array).astype(DTYPES[kind]), bool(constant)


if __name__ == "__main__":
    sys.exit(main())
