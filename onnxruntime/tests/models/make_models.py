"""Writes the models that the tests of this folder run.

    python onnxruntime/tests/models/make_models.py      (needs the onnx package)
"""

from pathlib import Path

from onnx import TensorProto, checker, helper, save


def optionals() -> None:
    """Twice the tensor that an optional holds, and whether it holds one; and the input as an optional."""
    node = helper.make_node
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n"])
    optional = helper.make_optional_type_proto(tensor)
    graph = helper.make_graph(
        [
            node("OptionalHasElement", ["maybe"], ["there"]),
            node("OptionalGetElement", ["maybe"], ["x"]),
            node("Add", ["x", "x"], ["twice"]),
            node("Optional", ["twice"], ["held"]),
        ],
        "optionals",
        [helper.make_value_info("maybe", optional)],
        [
            helper.make_tensor_value_info("there", TensorProto.BOOL, []),
            helper.make_value_info("held", optional),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    checker.check_model(model)
    save(model, Path(__file__).parent / "optionals.onnx")


optionals()
