"""A random model with feeds and what its outputs are for them."""

from __future__ import annotations

import collections
import dataclasses

import numpy as np
import onnx
from onnx import helper
from properties.draw import F16, F32, F64, I64, Random

from .evaluate import Reject, type_of
from .nodes import EMITTERS, cases, contrib, control, elementwise, movement, products, quantized, reductions  # noqa: F401
from .scope import Model, Scope, Value

_OPSETS = (13, 14, 16, 17, 18, 19, 21, 21, 22, 23, 24)


@dataclasses.dataclass
class Sample:
    """A model, its feeds and the outputs for each of them; `values`: what is known inside."""

    model: onnx.ModelProto
    feeds: list[dict]
    outputs: list[str]
    expected: list[list]
    values: dict[str, list] = dataclasses.field(default_factory=dict)
    rejected: collections.Counter = dataclasses.field(default_factory=collections.Counter)


def grow(s: Scope, count: int) -> None:
    """Adds about this many nodes."""
    names = sorted(EMITTERS)
    weights = np.array([EMITTERS[name][1] for name in names])
    weights /= weights.sum()
    wanted = _count(s) + count
    for _ in range(3 * count):
        if _count(s) >= wanted:
            return
        name = names[int(s.random.rng.choice(len(names), p=weights))]
        try:
            with s.attempt():
                EMITTERS[name][0](s)
        except Reject as reason:
            s.model.rejected[f"{name}: {reason}"] += 1
        except (IndexError, ValueError, ArithmeticError):
            # What cannot be drawn of values without elements.
            if not s.model.empties:
                raise


def _count(s: Scope) -> int:
    return sum(node.op_type != "Constant" for node in s.nodes)


def start(random: Random) -> Model:
    """A model with inputs and no nodes."""
    main = random.pick([F32] * 8 + [F16, F64])
    feeds = random.pick([1, 1, 2, 3])
    model = Model(random, random.pick(_OPSETS), feeds, main)
    dims = [
        [random.integer(1, 6)] * feeds if random.chance(0.5) else [random.integer(1, 6) for _ in range(feeds)]
        for _ in range(2)
    ]
    dims += [[random.integer(2, 8)] * feeds for _ in range(2)]
    if random.chance(0.04):
        model.empties = True
        dims[0][-1] = 0
    for i in range(random.integer(1, 3)):
        rank = random.pick([1, 2, 3, 4, 4]) if i == 0 else random.integer(0, 4)
        picked = [random.pick(dims if axis != 1 else dims[2:]) for axis in range(rank)]
        model.input([random.array(main, [d[k] for d in picked], -1, 1) for k in range(feeds)])
    if random.chance(0.3):
        model.input([random.array(I64, [d for d in [dims[0][k]]], -5, 5) for k in range(feeds)])
    return model


def random_graph(*seed: int) -> Sample:
    random = Random(*seed)
    model = start(random)
    grow(model.root, random.integer(3, 32))
    return finish(model)


def finish(model: Model) -> Sample:
    """Chooses the outputs and writes the model."""
    random, root = model.random, model.root
    used = {name for node in root.nodes for name in node.input}
    made = [
        v
        for v in root.values
        if len({a.ndim for a in v.arrays}) == 1 and any(v.name in n.output for n in root.nodes)
    ]
    unused = [v for v in made if v.name not in used]
    chosen = [v for v in unused if random.chance(0.85)][-6:]
    if made and (not chosen or random.chance(0.3)):
        # What others use too.
        chosen += [random.pick(made) for _ in range(random.integer(1, 3))]
    if random.chance(0.06):
        chosen.append(random.pick([v for _, v in model.inputs]))
    listed = [v for n in root.nodes for v in map(model.values.get, n.output) if v and not v.is_tensor]
    if listed and random.chance(0.3):
        chosen.append(random.pick(listed))
    outputs: list[Value] = []
    for value in chosen:
        if value.is_tensor and random.chance(0.35):
            try:
                with root.attempt():
                    value = ending(root, value)
            except Reject:
                pass
        if all(value is not v for v in outputs):
            outputs.append(value)
    if not outputs:
        outputs = [root.emit("Shape", [model.inputs[0][1]])]
    if random.chance(0.04):
        outputs.append(root.constant(random.array(F32, [2])))
    if random.chance(0.05) and root.initializers:
        stored = model.values[random.pick(root.initializers).name]
        if all(stored is not v for v in outputs):
            outputs.append(stored)
    return write(model, outputs)


def ending(s: Scope, x: Value) -> Value:
    """A node at the end that changes nothing."""
    kind = s.random.pick(
        [
            "identity",
            "cast",
            "reshape",
            "again",
            "dropout",
            "transpose",
            "concat",
            "squeeze",
            "expand",
            "flatten",
            "two",
        ]
    )
    if kind == "cast":
        return s.cast(x, x.dtype)
    if kind == "reshape":
        return s.reshape(x, [list(d) for d in x.shapes])
    if kind == "again":
        return s.emit("Reshape", [x, s.emit("Shape", [x])])
    if kind == "dropout" and x.dtype.kind == "f":
        return s.emit("Dropout", [x])
    if kind == "transpose":
        return s.emit("Transpose", [x], perm=list(range(x.rank)))
    if kind == "concat" and x.rank:
        return s.emit("Concat", [x], axis=0)
    if kind == "squeeze":
        return s.axes("Squeeze", s.axes("Unsqueeze", x, [0]), [0])
    if kind == "expand" and x.rank:
        return s.emit("Expand", [x, np.array([1] * x.rank, I64)])
    if kind == "flatten" and x.rank == 2:
        return s.emit("Flatten", [x], axis=1)
    if kind == "two":
        return s.emit("Identity", [s.emit("Identity", [x])])
    return s.emit("Identity", [x])


def write(model: Model, outputs: list[Value]) -> Sample:
    random, root = model.random, model.root
    inputs = [info for info, _ in model.inputs]
    feeds = [{v.name: v.arrays[k] for _, v in model.inputs} for k in range(model.feeds)]
    for tensor in root.initializers:
        if random.chance(0.03):
            # A default, as every initializer was in old files.
            inputs.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    infos = []
    for v in outputs:
        kind = type_of(v.arrays[0])
        if v.is_tensor and random.chance(0.4):
            shape = [d[0] if len(set(d)) == 1 else f"o{i}" for i, d in enumerate(zip(*v.shapes))]
            kind = helper.make_tensor_type_proto(kind.tensor_type.elem_type, shape)
        infos.append(helper.make_value_info(v.name, kind))
    graph = helper.make_graph(root.nodes, "graph", inputs, infos, root.initializers)
    if random.chance(0.3):
        known = {info.name for info in [*inputs, *infos]}
        for v in root.values:
            if v.name not in known and len({a.ndim for a in v.arrays}) == 1 and random.chance(0.5):
                shape = [d[0] if len(set(d)) == 1 else None for d in zip(*v.shapes)]
                element = helper.np_dtype_to_tensor_dtype(v.dtype)
                graph.value_info.append(helper.make_tensor_value_info(v.name, element, shape))
    imports = [helper.make_opsetid("", model.opset)]
    if model.functions:
        imports.append(helper.make_opsetid("local", 1))
    if model.domains:
        imports.append(helper.make_opsetid("com.microsoft", 1))
    proto = helper.make_model(graph, opset_imports=imports, functions=model.functions, ir_version=10)
    return Sample(
        proto,
        feeds,
        [v.name for v in outputs],
        [[v.arrays[k] for v in outputs] for k in range(model.feeds)],
        {name: v.arrays for name, v in model.values.items()},
        model.rejected,
    )
