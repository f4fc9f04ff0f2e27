"""Small models, each for one matter."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def tensor(name, element, shape):
    return helper.make_tensor_value_info(name, element, shape)


def model(nodes, inputs, outputs, constants=(), opset=21):
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in dict(constants).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    onnx.checker.check_model(made)
    return made


def identity(element, shape=("n", 3)):
    """y is x."""
    node = helper.make_node("Identity", ["x"], ["y"])
    return model([node], [tensor("x", element, shape)], [tensor("y", element, shape)])


def double(declared=("n", 3), shape=("n", 3)):
    """y is x twice; `declared` is what the model says of y's shape."""
    node = helper.make_node("Add", ["x", "x"], ["y"])
    return model([node], [tensor("x", TensorProto.FLOAT, shape)], [tensor("y", TensorProto.FLOAT, declared)])


def concatenation():
    """c is the texts of a and b behind each other."""
    nodes = [helper.make_node("StringConcat", ["a", "b"], ["c"])]
    texts = [tensor(name, TensorProto.STRING, ("n", 2)) for name in "ab"]
    return model(nodes, texts, [tensor("c", TensorProto.STRING, ("n", 2))])


def look_up():
    """y is the squares of what x has as numbers from 0 to 3; others are an error of the run."""
    node = helper.make_node("Gather", ["squares", "x"], ["y"])
    return model(
        [node],
        [tensor("x", TensorProto.INT64, ("n", 1))],
        [tensor("y", TensorProto.FLOAT, ("n", 1))],
        {"squares": np.array([0, 1, 4, 9], np.float32)},
    )


def two():
    """sum and difference of a and b."""
    nodes = [
        helper.make_node("Add", ["a", "b"], ["sum"]),
        helper.make_node("Sub", ["a", "b"], ["difference"]),
    ]
    inputs = [tensor(name, TensorProto.FLOAT, ("n", "m")) for name in "ab"]
    outputs = [tensor(name, TensorProto.FLOAT, ("n", "m")) for name in ("sum", "difference")]
    return model(nodes, inputs, outputs)


def scalar():
    """y, a scalar, is the sum of x."""
    node = helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)
    return model([node], [tensor("x", TensorProto.FLOAT, (5,))], [tensor("y", TensorProto.FLOAT, ())])


def positions():
    """y is where x is not 0: its shape follows from the data."""
    node = helper.make_node("NonZero", ["x"], ["y"])
    return model(
        [node], [tensor("x", TensorProto.FLOAT, ("n",))], [tensor("y", TensorProto.INT64, (1, "found"))]
    )


def found_rows():
    """y is where x is not 0, one row each: other rows than x has."""
    nodes = [helper.make_node("NonZero", ["x"], ["found"]), helper.make_node("Transpose", ["found"], ["y"])]
    return model(nodes, [tensor("x", TensorProto.FLOAT, ("n",))], [tensor("y", TensorProto.INT64, (None, 1))])


def positive():
    """y is what of x is above 0; the model says, wrongly, that it has as many elements as x."""
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["chosen"]),
        helper.make_node("Compress", ["x", "chosen"], ["y"]),
    ]
    ports = [tensor(name, TensorProto.FLOAT, ("n",)) for name in "xy"]
    return model(nodes, ports[:1], ports[1:], {"zero": np.zeros(1, np.float32)})


def rounds():
    """y is x after as many products of 256 by 256 as `count` says: a run as long as one likes."""
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["state", "weight"], ["next"]),
            helper.make_node("Identity", ["go"], ["on"]),
        ],
        "body",
        [
            tensor("i", TensorProto.INT64, ()),
            tensor("go", TensorProto.BOOL, ()),
            tensor("state", TensorProto.FLOAT, (256, 256)),
        ],
        [tensor("on", TensorProto.BOOL, ()), tensor("next", TensorProto.FLOAT, (256, 256))],
    )
    nodes = [
        helper.make_node("Squeeze", ["count"], ["number"]),
        helper.make_node("Loop", ["number", "", "x"], ["y"], body=body),
    ]
    inputs = [tensor("count", TensorProto.INT64, (1,)), tensor("x", TensorProto.FLOAT, (256, 256))]
    return model(
        nodes,
        inputs,
        [tensor("y", TensorProto.FLOAT, (256, 256))],
        {"weight": np.eye(256, dtype=np.float32)},
    )


def running_sum():
    """total is the sum of the x of a sequence: sum_out is the next request's sum_in, and start is 1 at the first one."""
    # What the first request of a sequence has in sum_in is not defined: it may be no number.
    nodes = [
        helper.make_node("Cast", ["start"], ["first"], to=TensorProto.BOOL),
        helper.make_node("Where", ["first", "zero", "sum_in"], ["old"]),
        helper.make_node("Add", ["old", "x"], ["sum_out"]),
        helper.make_node("Identity", ["sum_out"], ["total"]),
    ]
    inputs = [tensor(name, TensorProto.FLOAT, ("n", 2)) for name in ("x", "sum_in")]
    inputs.append(tensor("start", TensorProto.FLOAT, ("n", 1)))
    outputs = [tensor(name, TensorProto.FLOAT, ("n", 2)) for name in ("total", "sum_out")]
    return model(nodes, inputs, outputs, {"zero": np.zeros((1, 1), np.float32)})


def unknown_operator():
    graph = helper.make_graph(
        [helper.make_node("Frobnicate", ["x"], ["y"])],
        "g",
        [tensor("x", TensorProto.FLOAT, ("n",))],
        [tensor("y", TensorProto.FLOAT, ("n",))],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def sequence():
    """y is a sequence, which Triton cannot exchange, and z a tensor."""
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["y"]),
        helper.make_node("Identity", ["x"], ["z"]),
    ]
    y = helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, ("n", 3))
    return model(
        nodes, [tensor("x", TensorProto.FLOAT, ("n", 3))], [y, tensor("z", TensorProto.FLOAT, ("n", 3))]
    )


def complex_numbers():
    return identity(TensorProto.COMPLEX64)
