#!/usr/bin/env python3
"""Makes the models of these examples: linear.onnx, whose weights lie in a file that is not here, and average.onnx."""

import onnx
from onnx import TensorProto, helper


def linear() -> onnx.ModelProto:
    """scores = features W + bias; W is all of the file weights.bin, which the program has in its memory."""
    weights = onnx.TensorProto(name="W", data_type=TensorProto.FLOAT, dims=[3, 2])
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="weights.bin")
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["features", "W", "bias"], ["scores"])],
        "linear",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 2])],
        [weights, helper.make_tensor("bias", TensorProto.FLOAT, [2], [0, 0])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def average() -> onnx.ModelProto:
    """next = average / 2 + sample / 2, and change = max(abs(next - average))."""
    half = helper.make_tensor("half", TensorProto.FLOAT, [], [0.5])
    nodes = [
        helper.make_node("Sub", ["sample", "average"], ["difference"]),
        helper.make_node("Mul", ["difference", "half"], ["step"]),
        helper.make_node("Add", ["average", "step"], ["next"]),
        helper.make_node("Abs", ["step"], ["size"]),
        helper.make_node("ReduceMax", ["size"], ["change"], keepdims=0),
    ]
    names = [("sample", ["n"]), ("average", ["n"])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in names]
    names = [("next", ["n"]), ("change", [])]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in names]
    graph = helper.make_graph(nodes, "average", inputs, outputs, [half])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    for name, model in {"linear": linear(), "average": average()}.items():
        onnx.save(model, f"{name}.onnx")
