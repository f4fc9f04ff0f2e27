"""Operators that programs for ONNX Runtime met first, compared with onnxruntime."""

import numpy as np
import onnx
import pytest
import rukh
from onnx import TensorProto, helper


def built(node, inputs, outputs, initializers=()):
    graph = helper.make_graph([node], "graph", inputs, outputs, list(initializers))
    imports = [
        helper.make_opsetid("", 17),
        helper.make_opsetid("com.microsoft", 1),
        helper.make_opsetid("ai.onnx.ml", 1),
    ]
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()


def both(data, feed):
    """What rukh and onnxruntime give."""
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    session = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
    return rukh.InferenceSession(data).run(None, feed), session.run(None, feed)


TEXTS = np.array([["the cat's 9 mats", "", "a--b c. d-你好"], ["xx", "fog in the dog", " . "]])


@pytest.mark.parametrize("mark", [0, 1])
@pytest.mark.parametrize(
    "attributes",
    [
        {"tokenexp": "[a-z]+", "mincharnum": 1},
        {"tokenexp": "[a-z]+", "mincharnum": 3},
        {"tokenexp": ".", "mincharnum": 1},
        {"separators": [""], "mincharnum": 1},
        {"separators": [" ", "-+"], "mincharnum": 1},
        {"separators": ["[ .]"], "mincharnum": 2},
        {"separators": ["x", "y"], "mincharnum": 9},
    ],
)
def test_tokenizer(attributes, mark):
    node = helper.make_node(
        "Tokenizer", ["x"], ["y"], domain="com.microsoft", mark=mark, pad_value="#", **attributes
    )
    for texts in (TEXTS, TEXTS[0], TEXTS[:, :1], TEXTS[:1, 1:2]):
        shape = ["n"] * texts.ndim if texts.ndim == 1 else ["n", "c"]
        data = built(
            node,
            [helper.make_tensor_value_info("x", TensorProto.STRING, shape)],
            [helper.make_tensor_value_info("y", TensorProto.STRING, None)],
        )
        (ours,), (theirs,) = both(data, {"x": texts.astype(object)})
        assert ours.shape == theirs.shape and ours.tolist() == theirs.tolist()


@pytest.mark.parametrize(
    "attributes", [{"mincharnum": 0, "tokenexp": "a"}, {"mincharnum": 2, "tokenexp": "."}]
)
def test_tokenizer_that_is_wrong(attributes):
    node = helper.make_node(
        "Tokenizer", ["x"], ["y"], domain="com.microsoft", mark=0, pad_value="", **attributes
    )
    info = [helper.make_tensor_value_info(name, TensorProto.STRING, None) for name in "xy"]
    with pytest.raises(rukh.InvalidModelError, match="mincharnum"):
        rukh.InferenceSession(built(node, info[:1], info[1:]))


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("per_row", [False, True])
def test_dynamic_quantize_lstm(direction, per_row):
    rng = np.random.default_rng(3)
    directions, inputs, hidden = 1 + (direction == "bidirectional"), 6, 5

    def quantized(shape):
        weights = rng.integers(0, 255, shape).astype(np.uint8)
        scales = (directions, 4 * hidden) if per_row else (directions,)
        zero = np.full(scales, 128, np.uint8)
        return weights, rng.uniform(0.001, 0.005, scales).astype(np.float32), zero

    w, r = quantized((directions, inputs, 4 * hidden)), quantized((directions, hidden, 4 * hidden))
    names = ["w", "w_scale", "w_zero", "r", "r_scale", "r_zero", "b"]
    bias = rng.standard_normal((directions, 8 * hidden)).astype(np.float32) * 0.1
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        ["x", "w", "r", "b", "", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"],
        ["y", "h", "c"],
        domain="com.microsoft",
        hidden_size=hidden,
        direction=direction,
    )
    data = built(
        node,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["t", "n", inputs])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "yhc"],
        [onnx.numpy_helper.from_array(array, name) for name, array in zip(names, (*w, *r, bias))],
    )
    ours, theirs = both(data, {"x": rng.standard_normal((7, 2, inputs)).astype(np.float32)})
    for mine, other in zip(ours, theirs):
        # ONNX Runtime rounds inputs and states to bytes.
        np.testing.assert_allclose(mine, other, atol=0.02)


@pytest.mark.parametrize("reduction", ["min", "max"])
@pytest.mark.parametrize("opset", [16, 18])
def test_scatter_takes_every_reduction(reduction, opset):
    for name in ("ScatterElements", "ScatterND"):
        node = helper.make_node(name, ["x", "i", "u"], ["y"], reduction=reduction)
        indices = [[1, 0], [0, 1]] if name == "ScatterElements" else [[0, 1], [1, 0]]
        updates = [[9, -9], [-8, 8]] if name == "ScatterElements" else [9, -9]
        graph = helper.make_graph(
            [node],
            "graph",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2])],
            [
                onnx.numpy_helper.from_array(np.array(indices), "i"),
                onnx.numpy_helper.from_array(np.array(updates, np.float32), "u"),
            ],
        )
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        (ours,), (theirs,) = both(proto.SerializeToString(), {"x": np.array([[1, 2], [3, 4]], np.float32)})
        assert ours.tolist() == theirs.tolist()


def test_a_linear_classifier_with_coefficients_that_are_left_over():
    node = helper.make_node(
        "LinearClassifier",
        ["x"],
        ["label", "scores"],
        domain="ai.onnx.ml",
        classlabels_ints=[0, 1, 2],
        coefficients=[0.5, -1.0, 2.0, 0.25, -0.75, 1.5, 9.0, 9.0, 9.0],
        intercepts=[0.1, 0.2, 0.3],
        post_transform="LOGISTIC",
        multi_class=0,
    )
    data = built(
        node,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])],
        [
            helper.make_tensor_value_info("label", TensorProto.INT64, None),
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, None),
        ],
    )
    ours, theirs = both(data, {"x": np.array([[1, 2], [-3, 4]], np.float32)})
    assert ours[0].tolist() == theirs[0].tolist()
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-4)
