"""Writes the models that the tests of the C API run.

    python capi-tests/models/make_models.py      (needs the onnx package)
"""

from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

FLOAT, INT64, STRING, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL


def tensor(name, element, shape):
    return helper.make_tensor_value_info(name, element, shape)


def write(name, nodes, inputs, outputs, initializers=(), functions=(), domain=None, **properties):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers), doc_string=f"Test of {name}.")
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 17)] + ([helper.make_opsetid(*domain)] if domain else []),
        functions=list(functions),
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


def adapted():
    """y = x W + x A B + b, as a model with room for LoRA: A (of any rank), B and b are inputs with values of their own."""
    weight = np.arange(12, dtype=np.float32).reshape(4, 3)
    write(
        "adapted",
        [
            helper.make_node("MatMul", ["x", "w"], ["xw"], "product"),
            helper.make_node("MatMul", ["x", "lora_a"], ["xa"], "down"),
            helper.make_node("MatMul", ["xa", "lora_b"], ["xab"], "up"),
            helper.make_node("Add", ["xw", "xab"], ["adapted"], "adapt"),
            helper.make_node("Add", ["adapted", "b"], ["y"], "shift"),
        ],
        [
            tensor("x", FLOAT, ["batch", 4]),
            tensor("lora_a", FLOAT, [4, "rank"]),
            tensor("lora_b", FLOAT, ["rank", 3]),
            tensor("b", FLOAT, [3]),
        ],
        [tensor("y", FLOAT, ["batch", 3])],
        [
            numpy_helper.from_array(weight, "w"),
            numpy_helper.from_array(np.zeros((4, 1), np.float32), "lora_a"),
            numpy_helper.from_array(np.zeros((1, 3), np.float32), "lora_b"),
            numpy_helper.from_array(np.zeros(3, np.float32), "b"),
        ],
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


def grow():
    """A cache that grows with each run, and a value whose shape the data decide."""
    write(
        "grow",
        [
            helper.make_node("Concat", ["past", "new"], ["present"], "append", axis=0),
            helper.make_node("NonZero", ["new"], ["where"], "find"),
            helper.make_node("Cast", ["where"], ["places"], "as_numbers", to=FLOAT),
            helper.make_node("Add", ["places", "places"], ["twice"], "double"),
        ],
        [tensor("past", FLOAT, ["n"]), tensor("new", FLOAT, ["m"])],
        [tensor("present", FLOAT, ["k"]), tensor("twice", FLOAT, [1, None])],
    )


def branches():
    """Two outputs that need nothing of each other, one of which refuses an index."""
    table = np.arange(6, dtype=np.float32).reshape(3, 2) + 1
    write(
        "branches",
        [
            helper.make_node("Gather", ["table", "index"], ["row"], "look_up"),
            helper.make_node("Add", ["x", "x"], ["twice"], "double"),
        ],
        [tensor("index", INT64, ["n"]), tensor("x", FLOAT, ["m"])],
        [tensor("row", FLOAT, ["n", 2]), tensor("twice", FLOAT, ["m"])],
        [numpy_helper.from_array(table, "table")],
    )


def external():
    """y = x W + b, where W lies in a file that is not beside the model."""
    folder = Path(__file__).parent
    weight = np.arange(256, dtype=np.float32).reshape(16, 16)
    (folder / "weights").mkdir(exist_ok=True)
    weight.tofile(folder / "weights" / "external.bin")
    initializer = numpy_helper.from_array(weight, "w")
    initializer.ClearField("raw_data")
    initializer.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "external.bin"), ("offset", "0"), ("length", str(weight.nbytes))):
        initializer.external_data.add(key=key, value=value)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["xw"], "product"),
            helper.make_node("Add", ["xw", "b"], ["y"], "shift"),
        ],
        "external",
        [tensor("x", FLOAT, ["batch", 16])],
        [tensor("y", FLOAT, ["batch", 16])],
        [initializer, numpy_helper.from_array(np.ones(16, np.float32), "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "external.onnx").write_bytes(model.SerializeToString())


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


DOMAIN = ("test.ops", 2)


def custom(op, inputs, outputs, **attributes):
    """A node whose operator the program defines that opens the model."""
    name = f"{op.lower()}_{outputs[0]}"
    return helper.make_node(op, inputs, outputs, name, domain=DOMAIN[0], **attributes)


def operators():
    """Between operators that fuse with their neighbours, and once on constants."""
    write(
        "operators",
        [
            helper.make_node("MatMul", ["x", "w"], ["xw"], "product"),
            custom("Scale", ["xw"], ["scaled"], factor=2.0),
            helper.make_node("Relu", ["scaled"], ["relu"], "clip"),
            custom("Scale", ["b"], ["shift"]),
            helper.make_node("Add", ["relu", "shift"], ["y"], "add"),
        ],
        [tensor("x", FLOAT, ["batch", 2])],
        [tensor("y", FLOAT, ["batch", 2])],
        [
            numpy_helper.from_array(np.array([[1, -1], [2, 0.5]], np.float32), "w"),
            numpy_helper.from_array(np.array([10, 20], np.float32), "b"),
        ],
        domain=DOMAIN,
    )


def operators_edges():
    """The first and the last node."""
    write(
        "operators_edges",
        [
            custom("Scale", ["x"], ["scaled"], factor=2.0),
            helper.make_node("Relu", ["scaled"], ["relu"], "clip"),
            custom("Scale", ["relu"], ["y"], factor=5.0),
        ],
        [tensor("x", FLOAT, ["batch", 2])],
        [tensor("y", FLOAT, ["batch", 2])],
        domain=DOMAIN,
    )


def operators_nested():
    """In both branches of If, in the body of Loop, in a function of the model; and one that has a function's name."""
    branch = [
        helper.make_graph(
            [custom("Scale", ["x"], [f"{name}_y"], factor=factor)],
            name,
            [],
            [tensor(f"{name}_y", FLOAT, ["n"])],
        )
        for name, factor in (("then", 2.0), ("else", 3.0))
    ]
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["go_on"]),
            custom("Scale", ["carried"], ["next"], factor=10.0),
        ],
        "body",
        [tensor("i", INT64, []), tensor("going", BOOL, []), tensor("carried", FLOAT, ["n"])],
        [tensor("go_on", BOOL, []), tensor("next", FLOAT, ["n"])],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(*DOMAIN)]
    calls = helper.make_function(
        DOMAIN[0], "Calls", ["v"], ["u"],
        [custom("Scale", ["v"], ["s"], factor=0.5), helper.make_node("Neg", ["s"], ["u"])],
        imports,
    )  # fmt: skip
    replaced = helper.make_function(
        DOMAIN[0], "Replaced", ["v"], ["u"], [helper.make_node("Neg", ["v"], ["u"])], imports
    )
    write(
        "operators_nested",
        [
            helper.make_node("If", ["cond"], ["chosen"], "if", then_branch=branch[0], else_branch=branch[1]),
            helper.make_node("Loop", ["times", "", "chosen"], ["looped"], "loop", body=body),
            custom("Calls", ["looped"], ["called"]),
            custom("Replaced", ["called"], ["y"]),
        ],
        [tensor("x", FLOAT, ["n"]), tensor("cond", BOOL, []), tensor("times", INT64, [])],
        [tensor("y", FLOAT, ["n"])],
        functions=[calls, replaced],
        domain=DOMAIN,
    )


def operators_kinds():
    """Shapes of the data's making, strings, inputs and outputs that may be left out, every type of attribute."""
    write(
        "operators_kinds",
        [
            custom("Positive", ["x"], ["kept", "count"]),
            helper.make_node("Neg", ["kept"], ["negated"]),
            custom("Positive", ["x"], ["", "count_alone"]),
            custom("Join", ["", "words", "words"], ["joined"], between="-"),
            custom("Join", ["first", "words"], ["joined_first"]),
            custom("Repeat", ["x", "times"], ["repeated"]),
            custom(
                "Attributes",
                ["x"],
                ["told"],
                f=1.5,
                i=7,
                s="text",
                fs=[0.5, 0.25],
                strings=["a", "bc"],
                t=numpy_helper.from_array(np.array([4.0], np.float32)),
            ),
        ],
        [
            tensor("x", FLOAT, ["n"]),
            tensor("words", STRING, ["m"]),
            tensor("first", STRING, []),
            tensor("times", INT64, []),
        ],
        [
            tensor("negated", FLOAT, ["kept"]),
            tensor("count", INT64, []),
            tensor("count_alone", INT64, []),
            tensor("joined", STRING, ["m"]),
            tensor("joined_first", STRING, ["m"]),
            tensor("repeated", FLOAT, ["long"]),
            tensor("told", FLOAT, ["all"]),
        ],
        domain=DOMAIN,
    )


if __name__ == "__main__":
    plain = (linear, adapted, add, gather, branches, grow, external, nonzero, strings, sequence, count)
    for make in (*plain, operators, operators_edges, operators_nested, operators_kinds):
        make()
