"""Names and attributes as files have them: used again in bodies that stand side by side, and in functions."""

from __future__ import annotations

import onnx
from onnx import helper


def renamed(nodes, mapping: dict[str, str]) -> list[onnx.NodeProto]:
    """The nodes, and what their bodies use of them, with other names."""
    found = []
    for node in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        _rename(copy, mapping)
        found.append(copy)
    return found


def _rename(node: onnx.NodeProto, mapping: dict[str, str]) -> None:
    for names in (node.input, node.output):
        for i, name in enumerate(names):
            names[i] = mapping.get(name, name)
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            for inner in attribute.g.node:
                _rename(inner, mapping)
            for value in attribute.g.output:
                value.name = mapping.get(value.name, value.name)


def as_in_others(graph: onnx.GraphProto, depth: int) -> onnx.GraphProto:
    """The body with names that other bodies of this depth have too."""
    local = [value.name for value in graph.input] + [tensor.name for tensor in graph.initializer]
    local += [name for node in graph.node for name in node.output if name]
    mapping = {name: f"b{depth}_{i}" for i, name in enumerate(local)}
    nodes = renamed(graph.node, mapping)
    del graph.node[:]
    graph.node.extend(nodes)
    for things in (graph.input, graph.output, graph.initializer):
        for thing in things:
            thing.name = mapping.get(thing.name, thing.name)
    return graph


def function_as_in_graph(function: onnx.FunctionProto, first: int) -> onnx.FunctionProto:
    """The function with names that the graph has too; those of its bodies are `v{first}` and later."""
    local = [*function.input, *(name for node in function.node for name in node.output if name)]
    if len(local) >= first:
        return function
    mapping = {name: f"v{i + 1}" for i, name in enumerate(dict.fromkeys(local))}
    made = onnx.FunctionProto()
    made.CopyFrom(function)
    del made.node[:]
    made.node.extend(renamed(function.node, mapping))
    for names in (made.input, made.output):
        for i, name in enumerate(names):
            names[i] = mapping[name]
    return made


def with_attribute(function: onnx.FunctionProto, default: bool) -> dict[str, float]:
    """Makes a number of one of the function's nodes an attribute of its own; what calls have to give."""
    for node in _inside(function.node):
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.FLOAT and node.domain != "local":
                value = attribute.f
                attribute.CopyFrom(
                    onnx.AttributeProto(
                        name=attribute.name, type=onnx.AttributeProto.FLOAT, ref_attr_name="number"
                    )
                )
                if default:
                    function.attribute_proto.append(helper.make_attribute("number", value))
                    return {}
                function.attribute.append("number")
                return {"number": value}
    return {}


def _inside(nodes):
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _inside(attribute.g.node)
