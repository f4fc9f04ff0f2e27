"""Attention and what is used with it."""

import numpy as np

from ..draw import F32, FLOATS, I64, Case, Draw, generator


@generator("Attention")
def attention(d: Draw) -> Case:
    dtype = d.type("T1", FLOATS)
    batch, groups = d.integer(1, 2), d.integer(1, 3)
    kv_heads = d.integer(1, 3)
    heads = kv_heads * groups
    rows, keys, past = d.integer(1, 5), d.integer(1, 6), d.integer(1, 4)
    size, value_size = d.integer(1, 6), d.integer(1, 6)
    flat = d.chance(0.4)

    def tensor(count, length, width):
        shape = [batch, length, count * width] if flat else [batch, count, length, width]
        return d.array(dtype, shape)

    cached = d.chance(0.3)
    total = keys + past if cached else keys
    mask = None
    if d.chance(0.5):
        lead = d.pick([[], [batch, 1], [1, 1], [batch, heads], [heads]])
        kind = d.pick([np.dtype(bool), dtype])
        mask = d.array(kind, [*lead, rows, total])
        if kind == bool:
            # Every row sees something: what a row without keys gives is left open.
            mask[..., 0] = True
    inputs = [
        tensor(heads, rows, size),
        tensor(kv_heads, keys, size),
        tensor(kv_heads, keys, value_size),
        mask,
    ]
    if cached:
        inputs += [d.array(dtype, [batch, kv_heads, past, w]) for w in (size, value_size)]
    attributes = {
        "is_causal": d.pick([None, 0, 1]),
        "scale": d.number(0.1, 1) if d.chance(0.4) else None,
        "softcap": d.number(0.5, 5) if d.chance(0.3) else None,
    }
    if flat:
        attributes.update(q_num_heads=heads, kv_num_heads=kv_heads)
    outputs = 1
    if cached:
        outputs = d.pick([1, 3])
    if d.chance(0.2) and outputs == 3:
        outputs, attributes["qk_matmul_output_mode"] = 4, d.integer(0, 3)
        if attributes["qk_matmul_output_mode"] == 0:
            # The standard's text asks for the scores before the cap, its reference gives those after.
            attributes["softcap"] = None
    return Case(inputs, attributes, outputs, tolerance=20)


@generator("RotaryEmbedding")
def rotary(d: Draw) -> Case:
    dtype = d.type("T", FLOATS)
    batch, heads, length, half = d.integer(1, 2), d.integer(1, 3), d.integer(1, 5), d.integer(1, 4)
    size = 2 * half
    flat = d.chance(0.5)
    x = d.array(dtype, [batch, length, heads * size] if flat else [batch, heads, length, size])
    rotated = 2 * d.integer(1, half) if d.chance(0.4) else 0
    width = (rotated or size) // 2
    attributes = {
        "interleaved": d.pick([None, 0, 1]),
        "num_heads": heads if flat else None,
        "rotary_embedding_dim": rotated or None,
    }
    if d.chance(0.6):
        most = length + 3
        position = d.index(0, most - 1, [batch, length], I64)
        cos, sin = (d.array(dtype, [most, width], -1, 1) for _ in range(2))
        return Case([x, cos, sin, position], attributes, tolerance=4)
    cos, sin = (d.array(dtype, [batch, length, width], -1, 1) for _ in range(2))
    return Case([x, cos, sin], attributes, tolerance=4)


@generator("CausalConvWithState")
def causal_conv(d: Draw) -> Case:
    dtype = d.type("T", FLOATS)
    batch, channels, length, kernel = d.integer(1, 2), d.integer(1, 3), d.integer(1, 5), d.integer(2, 4)
    inputs = [
        d.array(dtype, [batch, channels, length]),
        d.array(dtype, [channels, 1, kernel]),
        d.array(dtype, [channels]) if d.chance(0.5) else None,
        d.array(dtype, [batch, channels, kernel - 1]) if d.chance(0.5) else None,
    ]
    return Case(inputs, {"activation": d.pick([None, "none", "silu", "swish"])}, 2, tolerance=10)


@generator("LinearAttention")
def linear_attention(d: Draw) -> Case:
    dtype = d.type("T", [F32])
    batch, length, heads = d.integer(1, 2), d.integer(1, 4), d.integer(1, 2)
    groups = d.integer(1, 2)
    width, value = d.integer(1, 4), d.integer(1, 4)
    rule = d.pick([None, "linear", "gated", "delta", "gated_delta"])
    gated, delta = rule in (None, "gated", "gated_delta"), rule in (None, "delta", "gated_delta")
    inputs = [
        d.array(dtype, [batch, length, heads * groups * width]),
        d.array(dtype, [batch, length, heads * width], -0.5, 0.5),
        d.array(dtype, [batch, length, heads * value]),
        d.array(dtype, [batch, heads, width, value]) if d.chance(0.5) else None,
        d.array(dtype, [batch, length, d.pick([heads, heads * width])], -1, 0) if gated else None,
        d.array(dtype, [batch, length, heads], 0, 1) if delta else None,
    ]
    attributes = {
        "q_num_heads": heads * groups,
        "kv_num_heads": heads,
        "update_rule": rule,
        "scale": d.pick([None, 0.5]),
    }
    return Case(inputs, attributes, 2, tolerance=20)
