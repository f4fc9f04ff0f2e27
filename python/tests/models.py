"""Small models for the tests."""

from onnx import TensorProto, helper


def info(name, shape, element=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, element, shape)


def model(nodes, initializers=(), opset=21, **values):
    """The bytes of a model. `nodes`: (operator, inputs, outputs) or messages. `values`: a shape, (element
    type, shape) or a type message for each input and output; what a node makes is an output."""
    nodes = [node if not isinstance(node, tuple) else helper.make_node(*node) for node in nodes]
    made = {name for node in nodes for name in node.output}
    infos = {name: _info(name, value) for name, value in values.items()}
    graph = helper.make_graph(
        nodes,
        "graph",
        [value for name, value in infos.items() if name not in made],
        [value for name, value in infos.items() if name in made],
        list(initializers),
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return proto.SerializeToString()


def _info(name, value):
    if isinstance(value, list):
        return info(name, value)
    if isinstance(value, tuple):
        return info(name, value[1], value[0])
    return helper.make_value_info(name, value)


def chain(length):
    """A model that adds 1 to `x`, `length` times."""
    one = helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])
    names = ["x", *(f"v{i}" for i in range(1, length)), "y"]
    nodes = [("Add", [names[i], "one"], [names[i + 1]]) for i in range(length)]
    return model(nodes, [one], x=["n", 64], y=["n", 64])
