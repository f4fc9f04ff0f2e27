"""ONNX Runtime gives each node that it hands over all attributes of its operator, those that a model leaves out with
what they are by themselves. So the provider must know every attribute that ONNX Runtime's definition has."""

import re

import onnxruntime
import pytest
from conftest import Plugin
from onnx import TensorProto, TypeProto, ValueInfoProto, helper
from onnxruntime.capi import _pybind_state as state

# Of these the provider runs operators; the newest operator sets that ONNX Runtime takes in a model.
DOMAINS = ["", "ai.onnx.ml", "com.microsoft"]
# Types of tensors by their names, the likeliest first.
ELEMENTS = {
    "tensor(float)": TensorProto.FLOAT,
    "tensor(float16)": TensorProto.FLOAT16,
    "tensor(int64)": TensorProto.INT64,
    "tensor(int32)": TensorProto.INT32,
    "tensor(uint8)": TensorProto.UINT8,
    "tensor(int8)": TensorProto.INT8,
    "tensor(bool)": TensorProto.BOOL,
    "tensor(string)": TensorProto.STRING,
    "tensor(complex64)": TensorProto.COMPLEX64,
}
# Attributes that an operator must have, where one of any value would be refused before the others are looked at.
REQUIRED = {
    "to": TensorProto.FLOAT,
    "equation": "i->i",
    "direction": "LEFT",
    "block_size": 16,
    "pooled_shape": [1, 1],
    "body": None,
    "then_branch": None,
}


def newest():
    """The newest definition of each operator, by domain and name."""
    found = {}
    for schema in state.get_all_operator_schema():
        key = schema.domain, schema.name
        newer = key not in found or found[key].since_version < schema.since_version
        if schema.domain in DOMAINS and not schema.deprecated and newer:
            found[key] = schema
    return found


def element(schema, name):
    """A type of tensor that a parameter's type allows; None where it allows no tensor of those above."""
    allowed = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == name), [name])
    return next((number for text, number in ELEMENTS.items() if text in allowed), None)


def value(name, number):
    return ValueInfoProto(name=name, type=TypeProto(tensor_type=TypeProto.Tensor(elem_type=number)))


def required(schema):
    """The attributes that a model must give."""
    kinds = state.schemadef.OpSchema.AttrType
    plain = {
        kinds.INT: 1,
        kinds.FLOAT: 1.0,
        kinds.STRING: "a",
        kinds.INTS: [1],
        kinds.FLOATS: [1.0],
        kinds.STRINGS: ["a"],
    }
    return {
        name: REQUIRED[name] if name in REQUIRED else plain.get(attribute.type)
        for name, attribute in schema.attributes.items()
        if attribute.required
    }


def single_node(schema):
    """A model of one node, with inputs of unknown shapes; None where it needs graphs or tensors as attributes, or values
    that are no tensors."""
    options = state.schemadef.OpSchema.FormalParameterOption
    attributes = required(schema)
    wanted = [p.option != options.Optional for p in schema.inputs]
    last = max((i for i, want in enumerate(wanted) if want), default=-1)
    names = [p.name if want else "" for p, want in zip(schema.inputs[: last + 1], wanted)]
    inputs = [(p.name, element(schema, p.typeStr)) for p, want in zip(schema.inputs, wanted) if want]
    if None in attributes.values() or any(number is None for _, number in inputs):
        return None
    outputs = [f"{p.name}:out" for p in schema.outputs if p.option != options.Optional]
    outputs = outputs or [f"{schema.outputs[0].name}:out"]
    node = helper.make_node(schema.name, names, outputs, domain=schema.domain, **attributes)
    graph = helper.make_graph(
        [node], "graph", [value(*i) for i in inputs], [ValueInfoProto(name=name) for name in outputs]
    )
    opsets = {"": 21} | {schema.domain: max(schema.since_version, 0 if schema.domain else 21)}
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid(*opset) for opset in opsets.items()], ir_version=10
    )


def left_out(plugin, model, capfd):
    """Why the provider leaves the model's node to others; "" if it takes it, None where ONNX Runtime opens no such model."""
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 1
    settings.add_provider_for_devices(plugin.devices()[:1], {})
    capfd.readouterr()
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), settings, enable_fallback=0)
    except (state.Fail, state.InvalidGraph, state.NotImplemented):
        opened = False
    else:
        opened = True
    said = re.search(r"left to other providers: (.*)", capfd.readouterr().err)
    return said.group(1) if said else "" if opened else None


@pytest.mark.skipif(
    tuple(int(n) for n in onnxruntime.__version__.split(".")[:2]) < (1, 30),
    reason="older definitions have fewer attributes",
)
def test_all_attributes_of_onnx_runtimes_definitions_are_known(capfd):
    plugin = Plugin("cpu")
    reasons = {
        key: left_out(plugin, model, capfd)
        for key, schema in newest().items()
        if (model := single_node(schema))
    }
    assert {key: why for key, why in reasons.items() if why and "no such attribute" in why} == {}
    # The test would say the same if it asked nothing.
    assert sum(why == "" for why in reasons.values()) > 200
