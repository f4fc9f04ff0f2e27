#!/usr/bin/env python3
"""Compare quantized models with ONNX Runtime, operator by operator and as a whole.

    compare_quantized.py [--models DIR] [--quantized DIR] [NAME ...]

For each variant that quantize.py wrote:
* Each quantized node is run alone, by the library and by ONNX Runtime, on the values that ONNX Runtime
  computed for its inputs within the model. A quantized output may differ by one quantization step, sums
  of integers not at all, a float result by 1e-5 of its largest magnitude, by 2e-3 where the model allows
  activations of 8 bits (and scales made while the model runs by rounding). In the QDQ form a "node" is a float operator together with the
  DequantizeLinear nodes before it and the QuantizeLinear node after it.
* The whole model runs on 16 seeded inputs that it was not calibrated with. With r the first output of
  the float model and y that of the quantized one, the errors are rms(y − r) / rms(r) and
  max|y − r| / max|r|; the mean of each over the inputs must not exceed ONNX Runtime's by more than the
  share stated in MARGINS.
"""

import argparse
import collections
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
import rukh
from quantize import MODELS, VARIANTS, inputs

SEEDS = range(100, 116)

# What counts as a tie. Where a sum lies at the middle between two steps, the last bit of a factor
# decides, and deep models with random weights carry that on to every output: two correct runtimes give
# errors that differ by about a hundredth, in either direction.
MARGINS = {"rms": 0.01, "max": 0.02}

# Largest difference of a float result over its largest magnitude; where MatMulNBits rounds activations to 16 bits; and
# where it rounds them to bytes, of which some lie at the middle between two.
FLOAT, FLOAT_PAIRS, FLOAT_ROUNDED = 1e-5, 2e-4, 2e-3

# Operators whose inputs or outputs are quantized.
QUANTIZED = {
    "ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear", "DynamicQuantizeMatMul", "MatMulBnb4",
    "MatMulInteger", "MatMulIntegerToFloat", "MatMulNBits", "QAttention", "QGemm", "QLinearAdd",
    "QLinearAveragePool", "QLinearConcat", "QLinearConv", "QLinearGlobalAveragePool", "QLinearLeakyRelu",
    "QLinearMatMul", "QLinearMul", "QLinearSigmoid", "QLinearSoftmax", "QLinearWhere", "QuantizeLinear",
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path("build/models"))
    parser.add_argument("--quantized", type=pathlib.Path, default=pathlib.Path("build/quantized"))
    parser.add_argument("names", nargs="*", default=list(MODELS))
    arguments = parser.parse_args()
    failures = []
    for name in arguments.names:
        feeds = [inputs(name, seed) for seed in SEEDS]
        reference = outputs(ort(arguments.models / name / "model.onnx"), feeds)
        for path in (arguments.quantized / name / f"{variant}.onnx" for variant in VARIANTS):
            if path.exists():
                print(f"{name} {path.stem}")
                failures += [f"{name} {path.stem}: {text}" for text in compare_nodes(path, feeds[0])]
                failures += [f"{name} {path.stem}: {text}" for text in compare_whole(path, feeds, reference)]
    for failure in failures:
        print("FAILED", failure)
    return 1 if failures else 0


def compare_whole(path, feeds, reference):
    try:
        own = outputs(rukh.InferenceSession(str(path)), feeds)
    except rukh.RukhError as error:
        yield str(error)
        return
    other = outputs(ort(path), feeds)
    measures = {"rms": lambda x: np.sqrt(np.mean(np.square(x))), "max": lambda x: np.abs(x).max()}
    for label, measure in measures.items():
        mean, ort_mean = (
            np.mean([measure(y - r) / measure(r) for y, r in zip(got, reference)]) for got in (own, other)
        )
        ratio = f"{mean / ort_mean - 1:+.1%}"
        print(f"  whole model, {label} error: rukh {mean:.5f}, ONNX Runtime {ort_mean:.5f} ({ratio})")
        if mean > ort_mean * (1 + MARGINS[label]):
            yield f"{label} error {mean:.5f}, ONNX Runtime's is {ort_mean:.5f}"


def outputs(session, feeds):
    return [session.run(None, feed)[0] for feed in feeds]


def compare_nodes(path, feed):
    model = onnx.load(path)
    units = list(quantized_units(model.graph))
    values = intermediate(model, feed, {name for unit in units for name in unit.reads + unit.writes})
    worst = collections.defaultdict(lambda: [0, 0.0])
    for unit in units:
        proto = unit.model(model, values).SerializeToString()
        allowed_of_floats = max(of_floats(node) for node in unit.nodes)
        own_feed = {name: values[name] for name in unit.reads}
        want = ort(proto).run(unit.writes, own_feed)
        try:
            got = rukh.InferenceSession(proto).run(unit.writes, own_feed)
        except rukh.RukhError as error:
            yield f"{unit.label}: {error}"
            continue
        for name, y, r in zip(unit.writes, got, want):
            difference, allowed = distance(y, r, allowed_of_floats)
            entry = worst[f"{unit.label} {r.dtype}"]
            entry[0] += 1
            entry[1] = max(entry[1], difference)
            if not difference <= allowed:
                yield f"{unit.label} {name}: differs by {difference:.3g}, allowed is {allowed:.3g}"
    for label, (count, difference) in sorted(worst.items()):
        print(f"  {count:4d} × {label}: differs by at most {difference:.3g}")


def of_floats(node):
    """What is allowed for a node's floats."""
    if node.op_type != "MatMulNBits":
        return FLOAT
    levels = [attribute.i for attribute in node.attribute if attribute.name == "accuracy_level"]
    return {1: FLOAT, 4: FLOAT_ROUNDED}.get(levels[0] if levels else 0, FLOAT_PAIRS)


def distance(y, r, allowed):
    """The largest difference and the allowed one: in steps, or relative for floats, of which this is allowed."""
    if y.shape != r.shape or y.dtype != r.dtype:
        return float("inf"), 0
    difference = np.abs(y.astype(np.float64) - r.astype(np.float64)).max(initial=0.0)
    if r.dtype == np.float32:
        return difference / max(np.abs(r).max(initial=0.0), 1e-30), allowed
    return difference, 0 if r.dtype == np.int32 else 1


class Unit:
    """Nodes that are compared together, each made from what ONNX Runtime gave for `reads`."""

    def __init__(self, nodes, label, constants):
        made = {name for node in nodes for name in node.output}
        read = dict.fromkeys(name for node in nodes for name in node.input if name and name not in made)
        self.nodes, self.label = nodes, label
        self.constants = [name for name in read if name in constants]
        self.reads = [name for name in read if name not in constants]
        inside = {name for node in nodes for name in node.input}
        self.writes = [name for node in nodes for name in node.output if name and name not in inside]

    def model(self, model, values):
        def info(name):
            kind = onnx.helper.np_dtype_to_tensor_dtype(values[name].dtype)
            return onnx.helper.make_tensor_value_info(name, kind, values[name].shape)

        initializers = {initializer.name: initializer for initializer in model.graph.initializer}
        graph = onnx.helper.make_graph(
            self.nodes,
            "unit",
            [info(name) for name in self.reads],
            [info(name) for name in self.writes],
            [initializers[name] for name in self.constants],
        )
        return onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def quantized_units(graph):
    constants = {initializer.name for initializer in graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    readers = collections.defaultdict(list)
    for node in graph.node:
        for name in node.input:
            readers[name].append(node)
    for node in graph.node:
        before = [makers[name] for name in node.input if name in makers]
        before = [maker for maker in before if maker.op_type == "DequantizeLinear"]
        after = [reader for name in node.output for reader in readers[name]]
        after = [reader for reader in after if reader.op_type == "QuantizeLinear"]
        if node.op_type in QUANTIZED:
            yield Unit([node], node.op_type, constants)
        elif before and len(after) == 1 and len(node.output) == 1:
            unique = list({maker.output[0]: maker for maker in before}.values())
            yield Unit([*unique, node, *after], f"{node.op_type} between QDQ", constants)


def intermediate(model, feed, names):
    """The values of tensors within a model, computed as the graph says, without fusions."""
    constants = {initializer.name for initializer in model.graph.initializer}
    wanted = sorted(names - constants - set(feed))
    extended = onnx.ModelProto()
    extended.CopyFrom(model)
    known = {output.name for output in extended.graph.output}
    extended.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted if name not in known)
    session = ort(extended.SerializeToString(), onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    return dict(zip(wanted, session.run(wanted, feed))) | feed


def ort(model, level=onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = level, 3
    model = str(model) if isinstance(model, pathlib.Path) else model
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


if __name__ == "__main__":
    sys.exit(main())
