"""Attributes that a node leaves out, written with their default values, as many exporters do."""

from __future__ import annotations

import functools

import onnx

# Its meaning depends on whether it is there.
PRESENCE = {("Cast", "round_mode"), ("DequantizeLinear", "output_dtype"), ("QuantizeLinear", "output_dtype")}


@functools.cache
def _of_onnxruntime() -> dict[tuple[str, str], dict[str, onnx.AttributeProto]]:
    """The defaults of ONNX Runtime's own operators, some of which have no domain."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    found = {}
    for schema in state.get_all_operator_schema():
        found[schema.domain, schema.name] = {
            name: onnx.AttributeProto.FromString(attribute._default_value)
            for name, attribute in schema.attributes.items()
            if attribute._default_value
        }
    return found


def defaults(node: onnx.NodeProto, opset: int) -> list[onnx.AttributeProto]:
    """The attributes with a default that the node leaves out."""
    if not node.domain and onnx.defs.has(node.op_type, opset):
        schema = onnx.defs.get_schema(node.op_type, opset)
        known = {name: attribute.default_value for name, attribute in schema.attributes.items()}
    else:
        known = _of_onnxruntime().get((node.domain, node.op_type), {})
    given = {attribute.name for attribute in node.attribute}
    return [
        default
        for name, default in known.items()
        if default.type and name not in given and (node.op_type, name) not in PRESENCE
    ]
