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


def grouped_attention(element, given, cache=None, outputs=3, **attributes):
    """GroupQueryAttention of 4 heads that share 2, with caches (of another type: `cache`) as inputs and outputs. `given`:
    the names of the optional inputs that it has. No shape is told."""
    required = ["q", "k", "v", "past_k", "past_v", "last", "total"]
    names = [*required, "cos", "sin", "positions", "", "sink", "k_scale", "v_scale"]
    inputs = [name if name in given or name in {*required} - {"k", "v"} else "" for name in names]
    node = helper.make_node(
        "GroupQueryAttention", inputs, ["y", "new_k", "new_v"][:outputs], domain="com.microsoft", num_heads=4,
        kv_num_heads=2, **attributes,
    )  # fmt: skip
    types = {"last": TensorProto.INT32, "total": TensorProto.INT32, "positions": TensorProto.INT64}
    types |= {"k_scale": TensorProto.FLOAT, "v_scale": TensorProto.FLOAT}
    types |= dict.fromkeys(["past_k", "past_v", "new_k", "new_v"], cache or element)
    ranks = {"q": 3, "k": 3, "v": 3, "past_k": 4, "past_v": 4, "cos": 2, "sin": 2, "positions": 2}

    def described(name):
        shape = [f"{name}{i}" for i in range(ranks.get(name, 1))] if name in inputs else None
        return info(name, shape, types.get(name, element))

    told = [described(x) for x in inputs if x], [described(y) for y in node.output]
    graph = helper.make_graph([node], "graph", *told)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def chain(length):
    """A model that adds 1 to `x`, `length` times."""
    one = helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])
    names = ["x", *(f"v{i}" for i in range(1, length)), "y"]
    nodes = [("Add", [names[i], "one"], [names[i + 1]]) for i in range(length)]
    return model(nodes, [one], x=["n", 64], y=["n", 64])
