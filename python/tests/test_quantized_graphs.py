"""Whole quantized models as quantizers write them, with their weights inside, on a GPU beside the CPU."""

import numpy as np
import pytest
import rukh
from onnx import TensorProto, helper, numpy_helper

ON_DEVICE = rukh.get_available_providers() != ["CPUExecutionProvider"]


class Graph:
    """Nodes between QuantizeLinear and DequantizeLinear: weights of int8 with a scale a channel, values of uint8."""

    def __init__(self):
        self.random = np.random.default_rng(3)
        self.nodes, self.constants = [], []

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, operator, inputs, output, **attributes):
        self.nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def quantized(self, x, scale, zero=128):
        """The value, rounded to bytes and back."""
        given = [self.constant(f"{x}_scale", np.float32(scale)), self.constant(f"{x}_zero", np.uint8(zero))]
        self.node("QuantizeLinear", [x, *given], f"{x}_q")
        return self.node("DequantizeLinear", [f"{x}_q", *given], f"{x}_f")

    def weight(self, name, shape, axis):
        given = [
            self.constant(f"{name}_q", self.random.integers(-127, 128, shape, np.int8)),
            self.constant(f"{name}_scale", self.random.uniform(0.002, 0.004, shape[axis]).astype(np.float32)),
            self.constant(f"{name}_zero", np.zeros(shape[axis], np.int8)),
        ]
        return self.node("DequantizeLinear", given, name, axis=axis)


def network():
    """Convolutions with a residual, a branch of an If, a product of matrices; images of any number and size."""
    graph = Graph()
    x = graph.quantized("x", 0.02)
    first = graph.node("Conv", [x, graph.weight("w1", [32, 16, 3, 3], 0)], "c1", pads=[1, 1, 1, 1])
    first = graph.quantized(graph.node("Relu", [first], "r1"), 0.0307, 0)
    second = graph.node("Conv", [first, graph.weight("w2", [32, 32, 1, 1], 0)], "c2")
    total = graph.node("Add", [first, graph.quantized(second, 0.0511)], "s")
    total = graph.quantized(total, 0.0613)
    # Its weight belongs to the graph around it.
    graph.weight("w3", [40, 32, 3, 2], 0)
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node("Conv", [total, "w3"], [f"c_{name}"], strides=strides)],
            name,
            [],
            [helper.make_tensor_value_info(f"c_{name}", TensorProto.FLOAT, None)],
        )
        for name, strides in (("then", [1, 1]), ("else", [2, 3]))
    }
    third = graph.quantized(graph.node("If", ["wide"], "c3", **branches), 0.1)
    mean = graph.node("GlobalAveragePool", [third], "g")
    flat = graph.quantized(graph.node("Flatten", [mean], "f"), 0.02)
    graph.quantized(graph.node("MatMul", [flat, graph.weight("w4", [40, 24], 1)], "m"), 0.02)
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 16, "h", "w"]),
        helper.make_tensor_value_info("wide", TensorProto.BOOL, []),
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("m_f", "c3", "s_f")]
    made = helper.make_graph(graph.nodes, "quantized", inputs, outputs, graph.constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 19)], ir_version=9).SerializeToString()


@pytest.mark.skipif(not ON_DEVICE, reason="there is no GPU")
def test_a_quantized_model_on_a_gpu_answers_like_the_cpu():
    model, steps = network(), {"m_f": 0.02, "c3": 0.5, "s_f": 0.0613}
    device, cpu = rukh.InferenceSession(model, None, ["hip", "cpu"]), rukh.InferenceSession(model, None, ["cpu"])
    random = np.random.default_rng(5)
    for shape in ([1, 16, 40, 37], [3, 16, 40, 37], [1, 16, 9, 8], [1, 16, 40, 37]):
        x = random.normal(0, 1, shape).astype(np.float32)
        for wide in (True, False):
            feed = {"x": x, "wide": np.array(wide)}
            names = ["s_f", "m_f", "c3"]
            for name, found, expected in zip(names, device.run(names, feed), cpu.run(names, feed), strict=True):
                apart = np.abs(found - expected)
                # Values in the middle between two are rounded either way, and what follows from them differs.
                assert apart.max() <= 1.01 * steps[name], (name, shape, wide, apart.max())
                assert (apart > 1e-4 * steps[name]).mean() < 0.02, (name, shape, wide)
