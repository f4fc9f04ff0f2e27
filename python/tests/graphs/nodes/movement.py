"""Operators that move elements."""

import numpy as np
from properties.draw import I64

from ..evaluate import Reject
from ..scope import Scope, Value
from . import emitter


def _ints(*numbers) -> np.ndarray:
    return np.array(numbers, np.int64)


@emitter(2)
def transpose(s: Scope):
    x = s.pick("fib", 1)
    order = s.random.permutation(x.rank) if s.random.chance(0.9) else None
    return s.emit("Transpose", [x], perm=order)


@emitter(3)
def reshape(s: Scope):
    """Two axes become one, one becomes two, or all become one."""
    x = s.pick("fib", 1)
    kind = s.random.pick(["merge", "split", "flat", "again"])
    if kind == "merge" and x.rank > 1:
        at = s.random.integer(0, x.rank - 2)
        return s.reshape(x, [[*d[:at], d[at] * d[at + 1], *d[at + 2 :]] for d in x.shapes])
    if kind == "split":
        at = s.random.integer(0, x.rank - 1)
        size = x.dim(at)
        part = next((p for p in (2, 3, 4, 5) if size % p == 0), 1)
        return s.reshape(x, [[*d[:at], part, size // part, *d[at + 1 :]] for d in x.shapes])
    if kind == "again":
        return s.reshape(x, [list(d) for d in x.shapes])
    if s.random.chance(0.5):
        return s.emit("Flatten", [x], axis=s.random.integer(0, x.rank))
    return s.emit("Reshape", [x, _ints(-1)])


@emitter(2)
def squeeze(s: Scope):
    x = s.pick("fib", 0, 4)
    if s.random.chance(0.5):
        axes = sorted(s.random.subset(x.rank + 1, 1)[:2])
        return s.axes("Unsqueeze", x, axes)
    ones = [i for i in range(x.rank) if all(d[i] == 1 for d in x.shapes)]
    if not ones:
        raise Reject("nothing to squeeze")
    return s.axes("Squeeze", x, [s.random.pick(ones)])


@emitter(3)
def slices(s: Scope):
    x = s.pick("fib", 1)
    axes = s.random.subset(x.rank, 1)[:2]
    starts, ends, steps = [], [], []
    for axis in axes:
        least = min(d[axis] for d in x.shapes)
        kind = s.random.pick(["head", "tail", "all", "back", "step"])
        start, end, step = 0, s.random.integer(1, least), 1
        if kind == "tail":
            start, end = -s.random.integer(1, least), np.iinfo(np.int64).max
        elif kind == "all":
            end = np.iinfo(np.int64).max
        elif kind == "back":
            start, end, step = -1, np.iinfo(np.int64).min + 1, -1
        elif kind == "step":
            end, step = 1000, 2
        starts.append(start)
        ends.append(end)
        steps.append(step)
    last = _ints(*steps) if any(t != 1 for t in steps) or s.random.chance(0.3) else None
    return s.emit("Slice", [x, _ints(*starts), _ints(*ends), _ints(*axes), last])


@emitter(2.5)
def gather(s: Scope):
    x = s.pick("fib", 1, 4)
    axis = s.random.axis(x.rank)
    least = min(d[axis] for d in x.shapes)
    shape = s.random.pick([[], [1], [3], [2, 2]])
    indices = s.random.index(-least, least - 1, shape, s.random.pick([I64, np.dtype(np.int32)]))
    return s.emit("Gather", [x, s.weight(indices)], axis=axis)


@emitter(1)
def embedding(s: Scope):
    """Rows of a table that whole numbers of the graph choose."""
    rows, width = s.random.integer(3, 8), s.random.integer(2, 8)
    x = s.pick("i", 0, 2, lambda v: v.dtype.itemsize >= 4)
    indices = s.emit("Mod", [x, np.asarray(rows, x.dtype)])
    return s.emit("Gather", [s.weights([rows, width]), indices])


@emitter(1)
def gather_elements(s: Scope):
    x = s.pick("fi", 1, 4)
    axis = s.random.axis(x.rank)
    sizes = [min(d[i] for d in x.shapes) for i in range(x.rank)]
    shape = [s.random.integer(1, n) for n in sizes]
    indices = s.weight(s.random.index(0, sizes[axis] - 1, shape))
    if s.random.chance(0.5):
        return s.emit("GatherElements", [x, indices], axis=axis)
    updates = (
        s.weights(shape, x.dtype) if x.dtype.kind == "f" else s.weight(s.random.array(x.dtype, shape, 0, 5))
    )
    distinct = np.broadcast_to(
        np.arange(shape[axis]).reshape([-1 if i == axis % x.rank else 1 for i in range(x.rank)]), shape
    )
    return s.emit("ScatterElements", [x, np.ascontiguousarray(distinct).astype(np.int64), updates], axis=axis)


@emitter(1)
def gather_nd(s: Scope):
    x = s.pick("f", 1, 4)
    sizes = [min(d[i] for d in x.shapes) for i in range(x.rank)]
    count = s.random.integer(1, x.rank)
    rows = s.random.integer(1, min(3, sizes[0]))
    indices = np.stack([s.random.index(0, n - 1, [rows]) for n in sizes[:count]], -1)
    if s.random.chance(0.5):
        return s.emit("GatherND", [x, indices])
    indices[:, 0] = s.random.permutation(sizes[0])[:rows]
    updates = s.weights([rows, *(x.dim(i) for i in range(count, x.rank))], x.dtype)
    reduction = s.random.pick([None, None, "add", "mul"]) if s.model.opset >= 16 else None
    return s.emit("ScatterND", [x, indices, updates], reduction=reduction)


@emitter(3)
def concat(s: Scope):
    x = s.pick("fib", 1, 4, lambda v: len({len(a) for a in v.shapes}) == 1)
    axis = s.random.axis(x.rank)

    def fits(v: Value) -> bool:
        return (
            v.dtype == x.dtype
            and all(len(a) == x.rank for a in v.shapes)
            and all(
                np.delete(a, axis).tolist() == np.delete(b, axis).tolist() for a, b in zip(v.shapes, x.shapes)
            )
        )

    found = [v for v in s.visible() if fits(v)]
    parts = [x, *(s.random.pick(found) for _ in range(s.random.integer(0, 2)))]
    if x.dtype.kind == "f" and s.random.chance(0.4):
        shape = [2 if i == axis % x.rank else d[0] for i, d in enumerate(zip(*x.shapes))]
        if all(len(set(d)) == 1 for i, d in enumerate(zip(*x.shapes)) if i != axis % x.rank):
            parts.append(s.weights(shape, x.dtype))
    return s.emit("Concat", [parts[i] for i in s.random.permutation(len(parts))], axis=axis)


@emitter(2)
def split(s: Scope):
    x = s.pick("fi", 1, 4, lambda v: any(len(set(d)) == 1 and d[0] > 1 for d in zip(*v.shapes)))
    axes = [i for i, d in enumerate(zip(*x.shapes)) if len(set(d)) == 1 and d[0] > 1]
    axis = s.random.pick(axes)
    size = x.dim(axis)
    first = s.random.integer(1, size - 1)
    if size % 2 == 0 and s.random.chance(0.5):
        given = {"num_outputs": 2} if s.model.opset >= 18 else {}
        return s.emit("Split", [x], 2, axis=axis, **given)
    if s.model.opset >= 13:
        return s.emit("Split", [x, _ints(first, size - first)], 2, axis=axis)
    return s.emit("Split", [x], 2, axis=axis, split=[first, size - first])


@emitter(2)
def pad(s: Scope):
    x = s.pick("fi", 1, 4)
    mode = s.random.pick([None, "constant", "reflect", "edge"])
    least = [min(d[i] for d in x.shapes) for i in range(x.rank)]
    amounts = [s.random.integer(0, min(2, n - 1) if mode == "reflect" else 2) for n in least * 2]
    if mode in (None, "constant") and s.random.chance(0.2):
        amounts = [-1 if n > 3 and s.random.chance(0.3) else a for a, n in zip(amounts, least * 2)]
    value = (
        np.asarray(s.random.pick([0, 1]), x.dtype)
        if mode in (None, "constant") and s.random.chance(0.5)
        else None
    )
    return s.emit("Pad", [x, _ints(*amounts), value], mode=mode)


@emitter(2)
def expand(s: Scope):
    x = s.pick("fib", 0, 4)
    if s.random.chance(0.4):
        return s.emit("Tile", [x, _ints(*(s.random.integer(1, 2) for _ in range(x.rank)))])
    lead = s.random.integer(1, 3)
    if s.random.chance(0.5):
        return s.emit("Expand", [x, s.emit("Concat", [_constant(s, lead), s.emit("Shape", [x])], axis=0)])
    shapes = [np.array([n if n > 1 else lead for n in d], np.int64) for d in x.shapes]
    return s.emit("Expand", [x, s.vector(shapes)])


def _constant(s: Scope, number: int) -> Value:
    return s.weight(_ints(number))


@emitter(1)
def blocks(s: Scope):
    from .products import image

    x = image(s, 4)
    if x.dim(1) % 4 == 0 and s.random.chance(0.6):
        return s.emit("DepthToSpace", [x], blocksize=2, mode=s.random.pick([None, "CRD"]))
    if x.dim(2) % 2 == 0 and x.dim(3) % 2 == 0:
        return s.emit("SpaceToDepth", [x], blocksize=2)
    raise Reject("no blocks")


@emitter(1)
def triangle(s: Scope):
    x = s.pick("f", 2, 4)
    if s.model.opset < 14:
        raise Reject("Trilu")
    return s.emit("Trilu", [x, np.asarray(s.random.integer(-1, 1), I64)], upper=s.random.integer(0, 1))


@emitter(1)
def one_hot(s: Scope):
    x = s.pick("i", 0, 2, lambda v: v.dtype.itemsize >= 4)
    depth = s.random.integer(2, 5)
    indices = s.emit("Mod", [x, np.asarray(depth, x.dtype)])
    return s.emit("OneHot", [indices, np.asarray(depth, I64), np.array([0, 1], s.model.main)], axis=-1)


@emitter(2)
def shapes(s: Scope):
    """Arithmetic of sizes."""
    x = s.pick("fib", 1, empty=True)
    kind = s.random.pick(["shape", "size", "range", "fill", "product"])
    if kind == "size":
        return s.emit("Size", [x])
    shape = s.emit("Shape", [x])
    if kind == "shape":
        return shape
    one = s.emit("Gather", [shape, np.asarray(s.random.axis(x.rank), I64)], axis=0)
    if kind == "range":
        y = s.emit("Range", [np.asarray(0, I64), one, np.asarray(1, I64)])
        return s.cast(y, s.model.main) if s.random.chance(0.6) else y
    if kind == "product":
        return s.axes("ReduceProd", shape, [0], since=18, keepdims=0)
    from onnx import numpy_helper

    value = numpy_helper.from_array(np.array([0.5], s.model.main))
    return s.emit("ConstantOfShape", [shape], value=value)


@emitter(1.5)
def resize(s: Scope):
    from .products import image

    x = image(s, 4)
    mode = s.random.pick(["nearest", "linear", "linear", "cubic"])
    attributes = {"mode": mode}
    if mode == "nearest":
        attributes |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    else:
        attributes["coordinate_transformation_mode"] = s.random.pick(["half_pixel", "pytorch_half_pixel"])
    if s.random.chance(0.5):
        return s.emit("Resize", [x, None, np.array([1, 1, 2, 2], np.float32)], **attributes)
    sizes = [np.array([d[0], d[1], d[2] * 2, d[3] * 2], np.int64) for d in x.shapes]
    return s.emit("Resize", [x, None, None, s.vector(sizes)], **attributes)


@emitter(0.7)
def reverse_sequence(s: Scope):
    x = s.pick("f", 2, 3)
    lengths = [s.random.index(1, d[0], [d[1]]) for d in x.shapes[:1]] if x.static else None
    if lengths is None:
        raise Reject("a shape depends on the feed")
    return s.emit("ReverseSequence", [x, s.weight(lengths[0])], time_axis=0, batch_axis=1)


@emitter(1.5)
def hide(s: Scope):
    """The same value with a shape that only a run knows."""
    from ..networks.flow import hidden

    return hidden(s, s.pick("f", 1))


@emitter(1)
def again(s: Scope):
    """A node once more, with the same inputs."""
    found = [n for n in s.nodes[-12:] if n.op_type != "Constant" and len(n.output) == 1 and n.input]
    found = [n for n in found if {*n.input, *n.output} - {""} <= s.model.values.keys()]
    found = [n for n in found if s.model.values[n.output[0]].is_tensor]
    if not found:
        raise Reject("no node")
    from onnx import NodeProto

    node = NodeProto()
    node.CopyFrom(s.random.pick(found))
    if any(a.type == a.GRAPH for a in node.attribute):
        raise Reject("its body would be twice there")
    node.output[0] = s.model.name()
    return s.add(node)
