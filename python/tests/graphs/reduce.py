"""The smallest part of a graph that still fails."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper

from .evaluate import needed, type_of, used_names
from .generate import Sample


def reduce(test: Sample, fails: Callable[[Sample], bool]) -> Sample:
    """Leaves outputs and nodes out, and puts inputs in place of what they made, while `fails` holds."""
    best = test
    nodes = list(test.model.graph.node)
    for name in test.outputs:
        if len(test.outputs) > 1:
            smaller = part(test, nodes, [name])
            if smaller is not None and fails(smaller):
                best = smaller
                break
    nodes, outputs = needed(list(best.model.graph.node), best.outputs), best.outputs
    # An earlier value that is wrong already.
    for node in nodes:
        if node.op_type == "Constant":
            continue
        found = [n for n in node.output if n in test.values]
        smaller = part(test, needed(nodes, found), found)
        if found and smaller is not None and fails(smaller):
            best, outputs = smaller, found
            nodes = needed(nodes, found)
            break
    size = max(len(nodes) // 2, 1)
    while True:
        at = 0
        while at < len(nodes):
            kept = nodes[:at] + nodes[at + size :]
            smaller = part(test, kept, outputs)
            if smaller is not None and fails(smaller):
                nodes, best = kept, smaller
            else:
                at += size
        if size == 1:
            break
        size //= 2
    for k in range(len(best.feeds)):
        if len(best.feeds) > 1:
            single = Sample(best.model, [best.feeds[k]], best.outputs, [best.expected[k]])
            if fails(single):
                return single
    return best


def part(test: Sample, nodes: list[onnx.NodeProto], outputs: list[str]) -> Sample | None:
    """These nodes alone; what others made becomes an input. None where that cannot be."""
    whole = test.model.graph
    made = {name for node in nodes for name in node.output}
    wanted = [name for name in outputs if name in made]
    nodes = needed(nodes, wanted)
    if not wanted:
        return None
    used = set().union(*(used_names(node) for node in nodes)) - {n for node in nodes for n in node.output}
    initializers = [t for t in whole.initializer if t.name in used]
    stored = {t.name for t in initializers}
    declared = {value.name: value for value in whole.input}
    inputs = []
    for name in sorted(used - stored):
        if name not in test.values:
            return None
        arrays = test.values[name]
        if name in declared:
            inputs.append(declared[name])
        elif isinstance(arrays[0], np.ndarray):
            kind = type_of(arrays[0])
            shape = [d[0] if len(set(d)) == 1 else None for d in zip(*(a.shape for a in arrays))]
            if len({a.ndim for a in arrays}) == 1:
                kind = helper.make_tensor_type_proto(kind.tensor_type.elem_type, shape)
            inputs.append(helper.make_value_info(name, kind))
        else:
            inputs.append(helper.make_value_info(name, type_of(arrays[0])))
    before = {value.name: value for value in whole.output}
    infos = [
        before.get(name) or helper.make_value_info(name, type_of(test.values[name][0])) for name in wanted
    ]
    model = onnx.ModelProto()
    model.CopyFrom(test.model)
    model.graph.CopyFrom(helper.make_graph(nodes, "graph", inputs, infos, initializers))
    called = {node.op_type for node in nodes}
    if not any(node.domain == "local" for node in nodes) and called:
        if not any(a.type == onnx.AttributeProto.GRAPH for node in nodes for a in node.attribute):
            del model.functions[:]
    feeds = [{v.name: test.values[v.name][k] for v in inputs} for k in range(len(test.feeds))]
    expected = [[test.values[name][k] for name in wanted] for k in range(len(test.feeds))]
    return Sample(model, feeds, wanted, expected, test.values)
