"""Writes the models that the tests of the C API run.

    python capi-tests/models/make_models.py      (needs the onnx package)
"""

from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

FLOAT, INT64, STRING, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL


def tensor(name, element, shape):
    return helper.make_tensor_value_info(name, element, shape)


def write(name, nodes, inputs, outputs, initializers=(), **properties):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers), doc_string=f"Test of {name}.")
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 17)],
        producer_name="make_models",
        producer_version="1",
        ir_version=8,
        model_version=3,
    )
    if properties:
        helper.set_model_props(model, properties)
    checker.check_model(model)
    save(model, str(Path(__file__).parent / f"{name}.onnx"))


def linear():
    """y = relu(x W + b): weights, a symbolic dimension, properties."""
    weight = np.arange(12, dtype=np.float32).reshape(4, 3) / 4 - 1
    bias = np.array([0.5, -0.5, 1.0], np.float32)
    write(
        "linear",
        [
            helper.make_node("MatMul", ["x", "w"], ["xw"], "product"),
            helper.make_node("Add", ["xw", "b"], ["sum"], "shift"),
            helper.make_node("Relu", ["sum"], ["y"], "clip"),
        ],
        [tensor("x", FLOAT, ["batch", 4])],
        [tensor("y", FLOAT, ["batch", 3])],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b")],
        author="rukh",
        purpose="tests",
    )


def add():
    """Two inputs and two outputs that share a dimension."""
    write(
        "add",
        [
            helper.make_node("Add", ["a", "b"], ["sum"], "add"),
            helper.make_node("Mul", ["a", "b"], ["product"], "multiply"),
        ],
        [tensor("a", FLOAT, ["n"]), tensor("b", FLOAT, ["n"])],
        [tensor("sum", FLOAT, ["n"]), tensor("product", FLOAT, ["n"])],
    )


def gather():
    """An index that is out of range is bad data."""
    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    write(
        "gather",
        [helper.make_node("Gather", ["table", "index"], ["row"], "look_up")],
        [tensor("index", INT64, ["n"])],
        [tensor("row", FLOAT, ["n", 2])],
        [numpy_helper.from_array(table, "table")],
    )


def nonzero():
    """A shape that depends on the data."""
    write(
        "nonzero",
        [helper.make_node("NonZero", ["x"], ["where"], "find")],
        [tensor("x", FLOAT, ["n"])],
        [tensor("where", INT64, [1, None])],
    )


def strings():
    """Strings in and out."""
    write(
        "strings",
        [helper.make_node("Identity", ["in"], ["out"], "same")],
        [tensor("in", STRING, ["n"])],
        [tensor("out", STRING, ["n"])],
    )


def sequence():
    """Tensors into a sequence and out of one."""
    write(
        "sequence",
        [
            helper.make_node("SequenceConstruct", ["a", "b"], ["pair"], "pair_up"),
            helper.make_node("SequenceAt", ["list", "i"], ["item"], "pick"),
        ],
        [
            tensor("a", FLOAT, ["n"]),
            tensor("b", FLOAT, ["m"]),
            helper.make_tensor_sequence_value_info("list", FLOAT, [None]),
            tensor("i", INT64, []),
        ],
        [
            helper.make_tensor_sequence_value_info("pair", FLOAT, [None]),
            tensor("item", FLOAT, [None]),
        ],
    )


def count():
    """A loop that runs as often as it is told: long enough to be cancelled."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["go_on"]),
            helper.make_node("Add", ["total", "one"], ["next"]),
        ],
        "body",
        [tensor("i", INT64, []), tensor("going", BOOL, []), tensor("total", FLOAT, [])],
        [tensor("go_on", BOOL, []), tensor("next", FLOAT, [])],
    )
    write(
        "count",
        [helper.make_node("Loop", ["times", "", "zero"], ["counted"], "loop", body=body)],
        [tensor("times", INT64, [])],
        [tensor("counted", FLOAT, [])],
        [
            numpy_helper.from_array(np.float32(0), "zero"),
            numpy_helper.from_array(np.float32(1), "one"),
        ],
    )


if __name__ == "__main__":
    for make in (linear, add, gather, nonzero, strings, sequence, count):
        make()
