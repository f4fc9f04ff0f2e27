"""MatMul, Gemm, Einsum, convolutions, pooling, recurrent layers."""

import numpy as np
from properties.draw import I64

from ..evaluate import Reject
from ..scope import Scope, Value
from . import emitter


def scale(count: int) -> float:
    """Of random weights, so that a sum of `count` products is of its operands' size."""
    return float(np.sqrt(3.0 / max(count, 1)))


def activation(s: Scope, x: Value) -> Value:
    """What often stands behind a product."""
    name = s.random.pick(["", "", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid"])
    if not name:
        return x
    if name == "Clip":
        return s.emit("Clip", [x, np.asarray(0, x.dtype), np.asarray(6, x.dtype)])
    return s.emit(name, [x])


@emitter(4)
def matmul(s: Scope):
    random = s.random
    x = s.tame(s.pick("f", 1, 4))
    k = x.dim(-1)
    if k > 64:
        raise Reject("too wide")
    n = random.integer(1, 9)
    lead = []
    if x.rank > 2 and random.chance(0.25):
        lead = [
            d[0] if len(set(d)) == 1 and not random.chance(0.4) else 1
            for d in zip(*(a[:-2] for a in x.shapes))
        ]
    shape = [*lead, k, n] if random.chance(0.9) else [k]
    if random.chance(0.2) and len(shape) > 1:
        order = [*range(len(lead)), len(lead) + 1, len(lead)]
        w = s.emit("Transpose", [s.weights([*lead, n, k], x.dtype, scale(k))], perm=order)
    else:
        w = s.weights(shape, x.dtype, scale(k))
    y = s.emit("MatMul", [x, w])
    if len(shape) > 1 and random.chance(0.5):
        bias = s.weights([n], x.dtype)
        y = s.emit("Add", [y, bias] if random.chance(0.5) else [bias, y])
    return activation(s, y)


@emitter(1.5)
def matmul_of_values(s: Scope):
    x = s.tame(s.pick("f", 2, 4))
    order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    y = s.emit("Transpose", [s.emit("Tanh", [x])], perm=order)
    pair = [x, y] if s.random.chance(0.5) else [y, x]
    product = s.emit("MatMul", pair)
    return s.emit("Mul", [product, np.asarray(1 / np.sqrt(max(pair[0].dim(-1), 1)), x.dtype)])


@emitter(2)
def gemm(s: Scope):
    random = s.random
    x = s.tame(s.pick("f", 2, 2))
    across, down = random.pick([None, 0, 1]), random.pick([None, 0, 1, 1])
    k, n = x.dim(0 if across else 1), random.integer(1, 9)
    if k > 64:
        raise Reject("too wide")
    w = s.weights([n, k] if down else [k, n], x.dtype, scale(k))
    bias = s.weights(random.pick([[n], [1, n], [1], []]), x.dtype) if random.chance(0.7) else None
    attributes = {"transA": across, "transB": down}
    if random.chance(0.3):
        attributes |= {"alpha": random.pick([0.5, 2.0]), "beta": random.pick([0.5, 1.0, 0.0])}
    return activation(s, s.emit("Gemm", [x, w, bias], **attributes))


@emitter(1)
def einsum(s: Scope):
    x = s.tame(s.pick("f", 1, 4))
    letters = "abcd"[: x.rank]
    k, n = x.dim(-1), s.random.integer(1, 5)
    kind = s.random.pick(["weight", "transpose", "sum", "pair"])
    if kind == "weight" and k <= 64:
        return s.emit(
            "Einsum",
            [x, s.weights([k, n], x.dtype, scale(k))],
            equation=f"{letters},{letters[-1]}z->{letters[:-1]}z",
        )
    if kind == "transpose":
        return s.emit("Einsum", [x], equation=f"{letters}->{letters[::-1]}")
    if kind == "sum":
        return s.emit("Einsum", [s.tame(x, 1)], equation=f"{letters}->{letters[:-1]}")
    y = s.emit("Tanh", [x])
    return s.tame(s.emit("Einsum", [x, y], equation=f"{letters},{letters[:-1]}z->{letters[:-1]}z"))


def image(s: Scope, rank: int | None = None) -> Value:
    """A value with channels whose number is known."""
    rank = rank or s.random.pick([3, 4, 4, 4, 5])

    def fits(v: Value) -> bool:
        return len({a[1] for a in v.shapes}) == 1 and v.shapes[0][1] <= 24

    try:
        x = s.pick("f", rank, rank, fits)
    except Reject:
        shape = [1, s.random.integer(1, 6), *(s.random.integer(2, 6) for _ in range(rank - 2))]
        x = s.fit(s.pick("f"), shape)
    return s.tame(x)


@emitter(4)
def conv(s: Scope):
    random = s.random
    x = image(s)
    channels, spatial = x.dim(1), x.rank - 2
    group = random.pick([1, 1, 1, channels, next(g for g in (2, 3, 1) if channels % g == 0)])
    maps = group * random.integer(1, 2 if group > 1 else 8)
    kernel = [random.pick([1, 1, 2, 3, 3]) for _ in range(spatial)]
    if random.chance(0.3):
        kernel = [1] * spatial
    attributes: dict = {"group": group if group > 1 else None}
    attributes["strides"] = [random.integer(1, 2) for _ in kernel] if random.chance(0.3) else None
    attributes["dilations"] = [random.integer(1, 2) for _ in kernel] if random.chance(0.2) else None
    if random.chance(0.6):
        attributes["pads"] = [k // 2 for k in kernel] * 2
    elif random.chance(0.3) and attributes["dilations"] is None:
        attributes["auto_pad"] = random.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
    if random.chance(0.5):
        attributes["kernel_shape"] = kernel
    per = channels // group
    w = s.weights([maps, per, *kernel], x.dtype, scale(per * int(np.prod(kernel))))
    bias = s.weights([maps], x.dtype) if random.chance(0.5) else None
    y = s.emit("Conv", [x, w, bias], **attributes)
    if random.chance(0.3):
        y = batch_norm(s, y)
    elif random.chance(0.15):
        y = s.emit("Mul", [y, s.weights([maps, *[1] * spatial], x.dtype)])
    elif random.chance(0.15):
        y = s.emit("Add", [y, s.weights([1, maps, *[1] * spatial], x.dtype)])
    return activation(s, y)


def batch_norm(s: Scope, x: Value) -> Value:
    c, random = x.dim(1), s.random
    gain, bias, mean = (s.weights([c], x.dtype) for _ in range(3))
    variance = s.constant(random.array(np.dtype(np.float64), [c], 0.5, 1.5).astype(x.dtype))
    return s.emit("BatchNormalization", [x, gain, bias, mean, variance], epsilon=random.pick([None, 1e-3]))


@emitter(1)
def conv_transpose(s: Scope):
    random = s.random
    x = image(s, random.pick([3, 4, 4]))
    channels, spatial = x.dim(1), x.rank - 2
    group = random.pick([1, 1, channels])
    kernel = [random.integer(1, 3) for _ in range(spatial)]
    maps = random.integer(1, 4)
    attributes: dict = {"group": group if group > 1 else None}
    attributes["strides"] = [random.integer(1, 2) for _ in kernel] if random.chance(0.6) else None
    if random.chance(0.3):
        attributes["pads"] = [k // 2 for k in kernel] * 2
    if attributes["strides"] and random.chance(0.3):
        attributes["output_padding"] = [t - 1 for t in attributes["strides"]]
    w = s.weights([channels, maps, *kernel], x.dtype, scale(channels // group * 2))
    bias = s.weights([maps * group], x.dtype) if random.chance(0.5) else None
    return activation(s, s.emit("ConvTranspose", [x, w, bias], **attributes))


@emitter(2)
def pool(s: Scope):
    random = s.random
    x = image(s)
    name = random.pick(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool"])
    if name.startswith("Global"):
        return s.emit(name, [x])
    # ONNX Runtime gives one window where none fits.
    least = [min(d[i] for d in x.shapes) for i in range(2, x.rank)]
    kernel = [random.integer(1, min(3, n)) for n in least]
    attributes: dict = {"kernel_shape": kernel}
    attributes["strides"] = [random.integer(1, 2) for _ in kernel] if random.chance(0.6) else None
    if random.chance(0.4):
        attributes["pads"] = [(k - 1) // 2 for k in kernel] * 2
    if name == "AveragePool" and random.chance(0.4):
        attributes["count_include_pad"] = 1
    if name in ("MaxPool", "AveragePool") and random.chance(0.15):
        attributes["ceil_mode"] = 1
    if name == "LpPool":
        # Steep near 0, where a square root is taken.
        x = s.emit("Add", [s.emit("Abs", [x]), np.asarray(0.5, x.dtype)])
    return s.emit(name, [x], **attributes)


@emitter(0.7)
def pool_with_indices(s: Scope):
    from .stable import apart

    x = image(s, 4)
    for a in x.arrays:
        apart(Value("", [a.reshape(-1)]))
    if min(min(d[2:]) for d in x.shapes) < 2:
        raise Reject("no window fits")
    y, indices = s.emit("MaxPool", [x], 2, kernel_shape=[2, 2], strides=[2, 2])
    if s.random.chance(0.5):
        return s.emit("MaxUnpool", [y, indices], kernel_shape=[2, 2], strides=[2, 2])
    return indices


@emitter(1.2)
def recurrent(s: Scope):
    random = s.random
    x = s.tame(s.pick("f", 3, 3, lambda v: len({a[2] for a in v.shapes}) == 1), 2)
    steps, batch, width = zip(*x.shapes)
    if max(steps) > 12 or max(batch) > 8 or width[0] > 24:
        raise Reject("too large")
    name = random.pick(["RNN", "GRU", "LSTM"])
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[name]
    direction = random.pick([None, "forward", "reverse", "bidirectional"])
    count, hidden = 2 if direction == "bidirectional" else 1, random.integer(1, 5)
    w = s.weights([count, gates * hidden, width[0]], x.dtype, 0.5)
    r = s.weights([count, gates * hidden, hidden], x.dtype, 0.5)
    bias = s.weights([count, 2 * gates * hidden], x.dtype, 0.5) if random.chance(0.6) else None
    start = None
    if len(set(batch)) == 1 and random.chance(0.4):
        start = s.weights([count, batch[0], hidden], x.dtype, 0.5)
    inputs = [x, w, r, bias, None, start]
    if name == "LSTM" and start is not None:
        inputs.append(s.weights([count, batch[0], hidden], x.dtype, 0.5))
    attributes = {"hidden_size": hidden, "direction": direction}
    if name == "GRU":
        attributes["linear_before_reset"] = random.pick([None, 1])
    made = 3 if name == "LSTM" else 2
    if random.chance(0.15):
        return s.emit(name, inputs, made, skip=[0], **attributes)
    outputs = s.emit(name, inputs, made, **attributes)
    if random.chance(0.6):
        y = s.emit("Transpose", [outputs[0]], perm=[0, 2, 1, 3])
        return s.emit("Reshape", [y, np.array([0, 0, count * hidden], I64)])
    return outputs


@emitter(1)
def attention(s: Scope):
    """Queries, keys and values of one value, as decomposed layers have it."""
    random = s.random
    x = s.tame(s.pick("f", 3, 3, lambda v: len({a[2] for a in v.shapes}) == 1), 2)
    width, heads, size = x.dim(2), random.integer(1, 2), random.integer(1, 4)
    if width > 32:
        raise Reject("too wide")

    def projected():
        y = s.emit("MatMul", [x, s.weights([width, heads * size], x.dtype, scale(width))])
        if random.chance(0.5):
            y = s.emit("Add", [y, s.weights([heads * size], x.dtype)])
        return s.emit("Reshape", [y, np.array([0, 0, heads, size], I64)])

    q, k, v = projected(), projected(), projected()
    q, v = (s.emit("Transpose", [y], perm=[0, 2, 1, 3]) for y in (q, v))
    k = s.emit("Transpose", [k], perm=[0, 2, 3, 1])
    scores = s.emit("MatMul", [q, k])
    factor = np.asarray(np.sqrt(size), x.dtype)
    scores = s.emit("Div", [scores, factor]) if random.chance(0.5) else s.emit("Mul", [scores, 1 / factor])
    if random.chance(0.4):
        scores = s.emit("Add", [scores, s.weights([heads, 1, 1], x.dtype)])
    y = s.emit("MatMul", [s.emit("Softmax", [scores], axis=-1), v])
    y = s.emit("Transpose", [y], perm=[0, 2, 1, 3])
    return s.emit("Reshape", [y, np.array([0, 0, heads * size], I64)])
