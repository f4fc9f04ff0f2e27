"""Writes custom.onnx: y = CustomOpTwo(CustomOpOne(a, b)), with operators that no library has.

    python make_model.py      (needs the onnx package)
"""

from pathlib import Path

from onnx import TensorProto, helper, save

DOMAIN = "test.customop"

graph = helper.make_graph(
    [
        helper.make_node("CustomOpOne", ["a", "b"], ["sum"], "add", domain=DOMAIN, scale=2.0),
        helper.make_node("CustomOpTwo", ["sum"], ["y"], "round", domain=DOMAIN),
    ],
    "custom",
    [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", 5]) for name in ("a", "b")],
    [helper.make_tensor_value_info("y", TensorProto.INT32, ["rows", 5])],
)
imports = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
save(
    helper.make_model(graph, opset_imports=imports, ir_version=8),
    str(Path(__file__).parent / "custom.onnx"),
)
