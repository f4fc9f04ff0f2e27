"""Operators of linear-time sequence models in com.microsoft, beside ONNX Runtime's CPU provider."""

import itertools

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

VERSION = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
pytestmark = pytest.mark.skipif(
    VERSION < (1, 31), reason="ONNX Runtime has these operators, with gaps, from 1.31 on"
)

TYPES = {np.float32: TensorProto.FLOAT, np.float16: TensorProto.FLOAT16}


def single_node(operator, inputs, outputs, dtype, **attributes):
    """A model of one node. `inputs`: arrays by name, None for one that is left out."""
    given = {name: array for name, array in inputs.items() if array is not None}
    node = helper.make_node(
        operator,
        [name if name in given else "" for name in inputs],
        outputs,
        domain="com.microsoft",
        **{name: value for name, value in attributes.items() if value is not None},
    )
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info(n, TYPES[a.dtype.type], [None] * a.ndim) for n, a in given.items()],
        [helper.make_tensor_value_info(name, TYPES[dtype], None) for name in outputs],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), given


def compare(plugin, model, given, tolerance):
    reference = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = reference.run(None, given)
    session = plugin.session(model)
    for _ in range(2):
        for found, value in zip(session.run(None, given), expected, strict=True):
            assert (found.shape, found.dtype) == (value.shape, value.dtype)
            np.testing.assert_allclose(found, value, rtol=tolerance, atol=tolerance)


def numbers(*shape, seed=1, dtype=np.float32, low=-0.5, high=0.5):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("activation", [None, "none", "silu"])
@pytest.mark.parametrize("length", [1, 2, 7])
def test_causal_convolution(plugin, dtype, activation, length):
    for bias, past in itertools.product([False, True], repeat=2):
        inputs = {
            "input": numbers(2, 5, length, dtype=dtype),
            "weight": numbers(5, 1, 4, seed=2, dtype=dtype),
            "bias": numbers(5, seed=3, dtype=dtype) if bias else None,
            "past_state": numbers(2, 5, 3, seed=4, dtype=dtype) if past else None,
        }
        outputs = ["output", "present_state"]
        model, given = single_node("CausalConvWithState", inputs, outputs, dtype, activation=activation)
        compare(plugin, model, given, 1e-5 if dtype == np.float32 else 2e-3)


@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("dilation", [1, 3])
@pytest.mark.parametrize("length", [1, 4, 11])
def test_causal_convolution_with_gaps(plugin, channels_last, dilation, length):
    state = 3 * dilation
    for past in (False, True):
        inputs = {
            "input": numbers(*([2, length, 3, 2] if channels_last else [2, 6, length])),
            "weight": numbers(6, 1, 4, seed=2),
            "bias": numbers(6, seed=3),
            "past_state": None,
        }
        if past:
            inputs["past_state"] = numbers(*([2, state, 3, 2] if channels_last else [2, 6, state]), seed=4)
        outputs = ["output", "present_state"]
        attributes = {"dilation": dilation, "channels_last": channels_last, "activation": "silu"}
        compare(plugin, *single_node("CausalConvWithState", inputs, outputs, np.float32, **attributes), 1e-5)


# Heads of queries, keys and values: as many of each, fewer keys and values, fewer queries, fewest keys.
@pytest.mark.parametrize(("q", "k", "kv"), [(3, 3, 3), (4, 2, 2), (2, 4, 4), (2, 2, 4), (4, 1, 2), (2, 1, 4)])
@pytest.mark.parametrize("rule", [None, "linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_linear_attention(plugin, q, k, kv, rule, dtype):
    steps, size, value = 5, 4, 3
    gated, delta = rule in (None, "gated", "gated_delta"), rule in (None, "delta", "gated_delta")
    for past, wide in itertools.product([False, True], repeat=2):
        inputs = {
            "query": numbers(2, steps, q * size, dtype=dtype),
            "key": numbers(2, steps, k * size, seed=2, dtype=dtype),
            "value": numbers(2, steps, kv * value, seed=3, dtype=dtype),
            "past_state": numbers(2, kv, size, value, seed=4, dtype=dtype) if past else None,
            # What a rule does not take may be there.
            "decay": numbers(2, steps, kv * size if wide else kv, seed=5, dtype=dtype, low=-1, high=0)
            if gated or wide
            else None,
            "beta": numbers(2, steps, kv if wide else 1, seed=6, dtype=dtype, low=0, high=1)
            if delta or wide
            else None,
        }
        attributes = {
            "q_num_heads": q,
            "kv_num_heads": kv,
            "update_rule": rule,
            "scale": 0.5 if wide else None,
        }
        model, given = single_node(
            "LinearAttention", inputs, ["output", "present_state"], dtype, **attributes
        )
        compare(plugin, model, given, 1e-5 if dtype == np.float32 else 5e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_gates_of_linear_attention(plugin, dtype):
    for outputs in (["decay"], ["decay", "beta"]):
        inputs = {
            "a": numbers(2, 5, 4, dtype=dtype, low=-3, high=3),
            "dt_bias": numbers(4, seed=3),
            "decay_scale": numbers(4, seed=4, low=-2, high=0),
            "b": numbers(2, 5, 4, seed=2, dtype=dtype, low=-3, high=3) if len(outputs) == 2 else None,
        }
        model, given = single_node("LinearAttentionGate", inputs, outputs, dtype)
        compare(plugin, model, given, 1e-5 if dtype == np.float32 else 2e-3)
