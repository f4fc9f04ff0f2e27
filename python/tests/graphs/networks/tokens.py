"""Blocks of networks for sequences: N, T, C in and out."""

from __future__ import annotations

import numpy as np
from properties.draw import F32, I64

from ..evaluate import Reject
from ..scope import Scope, Value
from .parts import activated, gelu, layer_norm, linear, number

MICROSOFT = "com.microsoft"


def embedded(s: Scope, ids: Value) -> Value:
    width = s.random.pick([8, 12, 16, 24])
    x = s.emit("Gather", [s.weights([20, width], None, 1.0), ids])
    if s.random.chance(0.7):
        length = s.emit("Gather", [s.emit("Shape", [ids]), np.asarray(1, I64)], axis=0)
        places = s.emit("Range", [np.asarray(0, I64), length, np.asarray(1, I64)])
        x = s.emit("Add", [x, s.emit("Gather", [s.weights([16, width], None, 0.5), places])])
    return layer_norm(s, x) if s.random.chance(0.5) else x


def tokens_of_image(s: Scope, x: Value) -> Value:
    if s.random.chance(0.5):
        y = s.reshape(x, [[d[0], d[1], d[2] * d[3]] for d in x.shapes])
        y = s.emit("Transpose", [y], perm=[0, 2, 1])
    else:
        y = s.emit("Transpose", [x], perm=[0, 2, 3, 1])
        y = s.reshape(y, [[d[0], d[1] * d[2], d[3]] for d in y.shapes])
    if any(d[1] > 80 for d in y.shapes):
        raise Reject("too many tokens")
    if s.random.chance(0.5):
        first = s.weights([1, 1, y.dim(2)])
        sizes = s.emit(
            "Concat",
            [
                s.emit("Slice", [s.emit("Shape", [y]), np.array([0], I64), np.array([1], I64)]),
                np.array([1, 1], I64),
            ],
            axis=0,
        )
        y = s.emit("Concat", [s.emit("Expand", [first, sizes]), y], axis=1)
    return y


def _heads(s: Scope, x: Value, heads: int, order=(0, 2, 1, 3)) -> Value:
    y = s.reshape(x, [[d[0], d[1], heads, d[2] // heads] for d in x.shapes])
    return s.emit("Transpose", [y], perm=list(order))


def _rotated(s: Scope, x: Value) -> Value:
    """Rotary places of N, H, T, D."""
    half = x.dim(-1) // 2
    if x.dim(-1) % 2 or any(d[2] > 96 for d in x.shapes):
        raise Reject("no halves")
    angles = np.outer(np.arange(96), 1.0 / 10 ** np.arange(half))
    angles = np.concatenate([angles, angles], 1)
    length = s.emit("Slice", [s.emit("Shape", [x]), np.array([2], I64), np.array([3], I64)])
    tables = []
    for values in (np.cos(angles), np.sin(angles)):
        table = s.weight(values.astype(x.dtype))
        tables.append(s.emit("Slice", [table, np.array([0], I64), length, np.array([0], I64)]))
    first = s.emit("Slice", [x, np.array([0], I64), np.array([half], I64), np.array([-1], I64)])
    last = s.emit(
        "Slice", [x, np.array([half], I64), np.array([np.iinfo(np.int64).max], I64), np.array([-1], I64)]
    )
    turned = s.emit("Concat", [s.emit("Neg", [last]), first], axis=-1)
    return s.emit("Add", [s.emit("Mul", [x, tables[0]]), s.emit("Mul", [turned, tables[1]])])


def _repeated(s: Scope, x: Value, times: int) -> Value:
    """Each head of N, H, T, D several times."""
    y = s.axes("Unsqueeze", x, [2])
    y = s.emit("Expand", [y, np.array([1, 1, times, 1, 1], np.int64)])
    return s.reshape(y, [[d[0], d[1] * times, *d[2:]] for d in x.shapes])


def _attended(s: Scope, x: Value, q: Value, k: Value, v: Value, heads: int, bias: bool) -> Value:
    """The rest of a layer with the scores in float32."""
    scores = s.emit("MatMul", [q, s.emit("Transpose", [k], perm=[0, 1, 3, 2])])
    scores = _masked(s, s.emit("Mul", [scores, number(x, 1 / np.sqrt(q.dim(3)))]))
    weights = s.emit("Softmax", [s.cast(scores, F32)], axis=-1)
    weights = s.cast(weights, x.dtype)
    y = s.emit("Transpose", [s.emit("MatMul", [weights, v])], perm=[0, 2, 1, 3])
    y = s.reshape(y, [[d[0], d[1], x.dim(2)] for d in x.shapes])
    return linear(s, y, x.dim(2), bias)


def attention(s: Scope, x: Value, memory: Value | None = None) -> Value:
    """An attention layer by its parts, with the masks and caches that models have."""
    random = s.random
    width, source = x.dim(2), memory or x
    heads = random.pick([h for h in (1, 2, 3, 4) if width % h == 0])
    size = width // heads
    bias = random.chance(0.6)
    kind = random.pick(["separate", "separate", "joined", "five"]) if memory is None else "separate"
    if kind == "separate":
        q, k, v = (linear(s, y, width, bias) for y in (x, source, source))
        fewer = heads // 2 if heads % 2 == 0 and random.chance(0.4) else heads
        if fewer < heads:
            # Heads of the queries share those of the keys.
            k, v = (linear(s, source, fewer * size, bias) for _ in range(2))
            q, k, v = _heads(s, q, heads), _heads(s, k, fewer), _heads(s, v, fewer)
            k, v = (_repeated(s, y, heads // fewer) for y in (k, v))
            return _attended(s, x, q, k, v, heads, bias)
        q, v = _heads(s, q, heads), _heads(s, v, heads)
        early = random.chance(0.5)
        k = _heads(s, k, heads, (0, 2, 3, 1) if early else (0, 2, 1, 3))
    else:
        early = False
        y = linear(s, x, 3 * width, bias)
        if kind == "joined":
            parts = s.emit("Split", [y, np.array([width] * 3, I64)], 3, axis=2)
            q, k, v = (_heads(s, part, heads) for part in parts)
        else:
            y = s.reshape(y, [[d[0], d[1], 3, heads, size] for d in y.shapes])
            y = s.emit("Transpose", [y], perm=[2, 0, 3, 1, 4])
            q, k, v = (s.emit("Gather", [y, np.asarray(i, I64)], axis=0) for i in range(3))
    if not early and memory is None and size % 2 == 0 and random.chance(0.3):
        q, k = _rotated(s, q), _rotated(s, k)
    if not early and memory is None and not s.in_function and s.depth == 0 and random.chance(0.2):
        past = [random.integer(0, 3) for _ in x.shapes]
        shapes = [[d[0], heads, past[i], size] for i, d in enumerate(x.shapes)]
        k, v = (
            s.emit("Concat", [s.model.input([random.array(x.dtype, d, -1, 1) for d in shapes]), y], axis=2)
            for y in (k, v)
        )
    factor = 1 / np.sqrt(size)
    where = random.pick(["query", "scores", "divide", "both"])
    if where == "query":
        q = s.emit("Mul", [q, number(x, factor)])
    elif where == "both":
        q, k = (s.emit("Mul", [y, number(x, np.sqrt(factor))]) for y in (q, k))
    if not early:
        k = s.emit("Transpose", [k], perm=[0, 1, 3, 2])
    scores = s.emit("MatMul", [q, k])
    if where == "scores":
        scores = s.emit("Mul", [scores, number(x, factor)])
    elif where == "divide":
        scores = s.emit("Div", [scores, number(x, 1 / factor)])
    scores = _masked(s, scores)
    weights = s.emit("Softmax", [scores], axis=random.pick([-1, 3]))
    if random.chance(0.1):
        weights = s.emit("Dropout", [weights])
    y = s.emit("Transpose", [s.emit("MatMul", [weights, v])], perm=[0, 2, 1, 3])
    y = s.reshape(y, [[d[0], d[1], width] for d in y.shapes])
    return linear(s, y, width, bias)


def _masked(s: Scope, scores: Value) -> Value:
    random = s.random
    kind = random.pick(["none", "none", "added", "causal", "chosen", "lengths"])
    low = -1e4 if scores.dtype == F32 else -90.0
    low = -900.0 if scores.dtype == F32 else low
    if kind == "added" and scores.static:
        shape = random.pick([[1, 1, 1], [1, 1], []]) if random.chance(0.3) else [1, 1, *scores.shape[2:]]
        return s.emit("Add", [scores, s.weights(shape, scores.dtype, 2.0)])
    if kind == "causal" and s.model.opset >= 14:
        rows = s.emit("Slice", [s.emit("Shape", [scores]), np.array([2], I64), np.array([4], I64)])
        full = s.emit("Expand", [s.constant(number(scores, low)), rows])
        upper = s.emit("Trilu", [full, np.asarray(1, I64)], upper=1)
        return s.emit("Add", [scores, upper])
    if kind == "chosen" and scores.static:
        keep = random.array(np.dtype(np.bool_), [1, 1, *scores.shape[2:]])
        keep[..., 0] = True
        return s.emit("Where", [s.weight(keep), scores, s.constant(number(scores, low))])
    if kind == "lengths" and not s.in_function and s.depth == 0:
        masks = []
        for d in scores.shapes:
            mask = (np.arange(d[3]) < random.integer(1, d[3])).astype(np.int64)
            masks.append(np.broadcast_to(mask, [d[0], d[3]]).copy())
        mask = s.axes("Unsqueeze", s.model.input(masks), [1, 2])
        off = s.emit("Sub", [number(scores, 1), s.cast(mask, scores.dtype)])
        return s.emit("Add", [scores, s.emit("Mul", [off, number(scores, low)])])
    return scores


def feed_forward(s: Scope, x: Value) -> Value:
    width = x.dim(2)
    kind = s.random.pick(["gelu", "relu", "gated"])
    if kind == "gated":
        gate = activated(s, linear(s, x, 2 * width, False), "SiLU")
        return linear(s, s.emit("Mul", [gate, linear(s, x, 2 * width, False)]), width, False)
    y = linear(s, x, 2 * width)
    return linear(s, gelu(s, y) if kind == "gelu" else s.emit("Relu", [y]), width)


def encoder(s: Scope, x: Value) -> Value:
    """Normalisation first or last."""
    if s.random.chance(0.5):
        x = s.emit("Add", [x, attention(s, layer_norm(s, x))])
        return s.emit("Add", [x, feed_forward(s, layer_norm(s, x))])
    x = layer_norm(s, s.emit("Add", [attention(s, x), x]))
    return layer_norm(s, s.emit("Add", [feed_forward(s, x), x]))


def decoder(s: Scope, x: Value) -> Value:
    memory = s.emit(
        "Tanh", [s.emit("Slice", [x, np.array([0], I64), np.array([5], I64), np.array([1], I64)])]
    )
    x = layer_norm(s, s.emit("Add", [x, attention(s, x)]))
    return layer_norm(s, s.emit("Add", [x, attention(s, x, memory)]))


def mixer(s: Scope, x: Value) -> Value:
    length = x.dim(1)
    if length > 80:
        raise Reject("too many tokens")
    y = s.emit("Transpose", [layer_norm(s, x)], perm=[0, 2, 1])
    y = linear(s, gelu(s, linear(s, y, 8)), length)
    x = s.emit("Add", [x, s.emit("Transpose", [y], perm=[0, 2, 1])])
    return s.emit("Add", [x, feed_forward(s, layer_norm(s, x))])


def windows(s: Scope, x: Value) -> Value:
    """Attention in windows of the image that the tokens are, shifted or not."""
    side = {int(np.sqrt(d[1])) for d in x.shapes}
    if len(side) > 1 or any(d[1] != min(side) ** 2 for d in x.shapes) or min(side) % 2:
        raise Reject("no square image")
    n, c, w = side.pop(), x.dim(2), 2
    if n > 8:
        raise Reject("too many windows")
    y = s.reshape(layer_norm(s, x), [[d[0], n, n, c] for d in x.shapes])
    shift = s.random.chance(0.5)
    if shift:
        for axis in (1, 2):
            a = s.emit("Slice", [y, np.array([1], I64), np.array([n], I64), np.array([axis], I64)])
            b = s.emit("Slice", [y, np.array([0], I64), np.array([1], I64), np.array([axis], I64)])
            y = s.emit("Concat", [a, b], axis=axis)
    y = s.reshape(y, [[d[0], n // w, w, n // w, w, c] for d in x.shapes])
    y = s.emit("Transpose", [y], perm=[0, 1, 3, 2, 4, 5])
    y = s.reshape(y, [[d[0] * (n // w) ** 2, w * w, c] for d in x.shapes])
    y = attention(s, y)
    y = s.reshape(y, [[d[0], n // w, n // w, w, w, c] for d in x.shapes])
    y = s.emit("Transpose", [y], perm=[0, 1, 3, 2, 4, 5])
    y = s.reshape(y, [[d[0], n * n, c] for d in x.shapes])
    return s.emit("Add", [x, y])


def recurrent(s: Scope, x: Value) -> Value:
    """A recurrent layer with time first."""
    width, name = x.dim(2), s.random.pick(["LSTM", "GRU", "RNN"])
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[name]
    if any(d[1] > 12 for d in x.shapes):
        raise Reject("too many steps")
    y = s.emit("Transpose", [x], perm=[1, 0, 2])
    w, r = s.weights([1, gates * width, width], None, 0.3), s.weights([1, gates * width, width], None, 0.3)
    b = s.weights([1, 2 * gates * width], None, 0.3)
    y = s.emit(name, [y, w, r, b], 2, hidden_size=width)[0]
    y = s.axes("Squeeze", y, [1])
    return s.emit("Transpose", [y], perm=[1, 0, 2])


def convolved(s: Scope, x: Value) -> Value:
    """Gated convolution along time, as speech models have it."""
    from .parts import conv

    c = x.dim(2)
    y = s.emit("Transpose", [layer_norm(s, x)], perm=[0, 2, 1])
    a, b = s.emit("Split", [conv(s, y, 2 * c, 1, norm=False), np.array([c, c], I64)], 2, axis=1)
    y = s.emit("Mul", [a, s.emit("Sigmoid", [b])])
    y = conv(s, conv(s, y, c, 3, group=c, act="SiLU"), c, 1, norm=False)
    return s.emit("Add", [x, s.emit("Transpose", [y], perm=[0, 2, 1])])


def language_model(s: Scope, x: Value) -> Value:
    """A layer as exporters of language models write it; how many keys there are only a run knows."""
    if s.in_function or s.depth > 0 or s.model.main == np.dtype(np.float64):
        raise Reject("caches are inputs of the model")
    random, width, size = s.random, x.dim(2), 16
    kv_heads = random.pick([1, 2])
    heads = kv_heads * random.pick([1, 2, 4])
    normed = s.emit("SimplifiedLayerNormalization", [x, s.weights([width], x.dtype)], axis=-1, epsilon=1e-5)
    q, k, v = (linear(s, normed, n * size, False) for n in (heads, kv_heads, kv_heads))
    # ONNX Runtime continues a cache by several rows for one sample only.
    past = [random.integer(0, 5) if d[0] == 1 or d[1] == 1 else 0 for d in x.shapes]
    shapes = [[d[0], kv_heads, n, size] for d, n in zip(x.shapes, past)]
    caches = [s.model.input([random.array(x.dtype, d, -1, 1) for d in shapes]) for _ in range(2)]
    totals = [n + d[1] for n, d in zip(past, x.shapes)]
    last = s.model.input([np.full([d[0]], n - 1, np.int32) for n, d in zip(totals, x.shapes)])
    total = s.model.input([np.asarray(n, np.int32) for n in totals])
    attributes = {"num_heads": heads, "kv_num_heads": kv_heads}
    y = s.emit("GroupQueryAttention", [q, k, v, *caches, last, total], 3, domain=MICROSOFT, **attributes)[0]
    y = linear(s, y, width, False)
    inputs = [x, y, s.weights([width], x.dtype)]
    y, x = s.emit(
        "SkipSimplifiedLayerNormalization", inputs, 4, domain=MICROSOFT, skip=(1, 2), epsilon=1e-5
    )
    gate = linear(s, y, 2 * width, False)
    gate = s.emit("Mul", [gate, s.emit("Sigmoid", [gate])])
    y = linear(s, s.emit("Mul", [gate, linear(s, y, 2 * width, False)]), width, False)
    return s.emit("Add", [x, y])


TOKENS = [encoder, encoder, encoder, decoder, mixer, windows, recurrent, convolved, language_model, language_model]
