"""A graph that grows: its values are known, for every feed, as soon as their node is added."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import helper
from properties.draw import F16, F32, F64, Random

from .defaults import defaults
from .evaluate import Reject, compute, used_names
from .faults import runtime_fault
from .value import Value
from .weights import Weights

# Larger numbers are not compared: sums of them lose too many digits.
_LARGEST = {F16: 100.0, F32: 1000.0, F64: 1000.0}
FLOATS = (F32, F16, F64)


class Model:
    """What the scopes of one model share."""

    def __init__(self, random: Random, opset: int, feeds: int, main: np.dtype) -> None:
        self.random, self.opset, self.feeds, self.main = random, opset, feeds, main
        self.count = 0
        self.most_elements = 4000
        # Whether anything is of float16, whose roundings decide many steps.
        self.halves = main == F16
        # Whether operators of com.microsoft are there.
        self.domains = False
        # The type that quantized networks have; any of two without.
        self.activations: type | None = None
        # Whether values without elements may be used.
        self.empties = False
        self.inputs: list[tuple[onnx.ValueInfoProto, Value]] = []
        self.functions: list[onnx.FunctionProto] = []
        # What calls of each have to give.
        self.function_attributes: dict[str, dict[str, float]] = {}
        self.rejected: collections.Counter = collections.Counter()
        self.values: dict[str, Value] = {}
        self.dimensions: dict[tuple[int, ...], str] = {}
        self.root = Scope(self, None)

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def input(self, arrays: list, declared: str | None = None) -> Value:
        """A new input of the graph."""
        value = Value(self.name(), arrays)
        declared = declared or self.random.pick(["known", "known", "named", "named", "unnamed", "unknown"])
        shape = None if declared == "unknown" else [self._dimension(d, declared) for d in zip(*value.shapes)]
        element = helper.np_dtype_to_tensor_dtype(value.dtype)
        self.inputs.append((helper.make_tensor_value_info(value.name, element, shape), value))
        self.values[value.name] = value
        self.root.values.append(value)
        return value

    def _dimension(self, sizes: tuple[int, ...], declared: str) -> int | str | None:
        if len(set(sizes)) == 1 and (declared == "known" or self.random.chance(0.3)):
            return sizes[0]
        if declared == "unnamed":
            return None
        return self.dimensions.setdefault(sizes, f"n{len(self.dimensions)}")


class Scope(Weights):
    """The nodes of a graph, of a body of control flow or of a function."""

    def __init__(self, model: Model, parent: Scope | None, function: bool = False) -> None:
        self.model, self.parent, self.function = model, parent, function
        self.random = model.random
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.values: list[Value] = []
        self.depth = 0 if parent is None else parent.depth + 1
        self.in_function: bool = function or (parent is not None and parent.in_function)

    # --- adding nodes ---------------------------------------------------------------------------

    def emit(
        self,
        operator: str,
        inputs: Sequence,
        outputs: int = 1,
        domain: str = "",
        skip: Sequence[int] = (),
        **attributes,
    ):
        """Adds a node. Arrays among the inputs become weights. Its output, or a list of several. `skip`:
        outputs without a name."""
        operands = [self.weight(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in inputs]
        bare = not self.random.chance(0.2)
        while operands and operands[-1] is None and (bare or domain):
            operands.pop()
        attributes = {n: a for n, a in attributes.items() if a is not None and a != []}
        names = ["" if x is None else x.name for x in operands]
        made = ["" if i in skip else self.model.name() for i in range(outputs)]
        node = helper.make_node(operator, names, made, domain=domain, **attributes)
        if self.random.chance(0.2):
            node.attribute.extend(defaults(node, self.model.opset))
        values = self.add(node)
        return values[0] if len(values) == 1 else values

    def add(self, node: onnx.NodeProto) -> list[Value]:
        """Adds a node whose names are those of values."""
        model = self.model
        used = sorted(used_names(node))
        operands = [model.values[name] for name in used]
        feeds: list[dict] = []
        which: dict[tuple[int, ...], int] = {}
        position = []
        for k in range(model.feeds):
            key = tuple(id(v.arrays[k]) for v in operands)
            if key not in which:
                which[key] = len(feeds)
                feeds.append({v.name: v.arrays[k] for v in operands})
            position.append(which[key])
        outputs = [name for name in node.output if name]
        if reason := runtime_fault(node, feeds):
            raise Reject(f"fault of ONNX Runtime: {node.op_type}: {reason}")
        found = compute([node], feeds, outputs, model.opset, model.functions)
        for results in found:
            for y in results:
                _check(node, y, model.most_elements)
        constant = node.op_type != "Constant" and all(v.constant for v in operands)
        values = []
        for i, name in enumerate(outputs):
            values.append(Value(name, [found[position[k]][i] for k in range(model.feeds)], constant))
        model.halves |= any(v.is_tensor and v.dtype == F16 for v in values)
        model.domains |= node.domain == "com.microsoft"
        self.nodes.append(node)
        for value in values:
            model.values[value.name] = value
            if value.is_tensor:
                self.values.append(value)
        return values

    @contextlib.contextmanager
    def attempt(self):
        """Takes back what was added where it fails."""
        marks = []
        scope: Scope | None = self
        while scope is not None:
            marks.append((scope, len(scope.nodes), len(scope.initializers), len(scope.values)))
            scope = scope.parent
        inputs, functions = len(self.model.inputs), len(self.model.functions)
        try:
            yield
        except Exception:
            for scope, *lengths in marks:
                for things, length in zip((scope.nodes, scope.initializers, scope.values), lengths):
                    del things[length:]
            del self.model.inputs[inputs:], self.model.functions[functions:]
            raise

    # --- choosing -------------------------------------------------------------------------------

    def visible(self) -> list[Value]:
        """The values that a node here may use."""
        found = list(self.values)
        scope = self
        while scope.parent is not None and not scope.function:
            scope = scope.parent
            found += scope.values
        return found

    def pick(
        self,
        kind: str = "f",
        low: int = 0,
        high: int = 5,
        accept: Callable[[Value], bool] = lambda v: True,
        empty: bool | None = None,
    ) -> Value:
        """A value of a kind of type (as NumPy's letters) with a rank, the newest most often."""

        empty = self.model.empties if empty is None else empty

        def fits(v: Value) -> bool:
            return (
                v.dtype.kind in kind
                and len({a.ndim for a in v.arrays}) == 1
                and low <= v.rank <= high
                and (empty or all(a.size for a in v.arrays))
                and all(a.size <= self.model.most_elements // 2 for a in v.arrays)
                and accept(v)
            )

        own = [v for v in self.values if fits(v)]
        if own and self.random.chance(0.75 if self.parent else 1.0):
            if self.random.chance(0.5):
                return self.random.pick(own[-4:])
            return self.random.pick(own)
        found = [v for v in self.visible() if fits(v)]
        if not found:
            raise Reject(f"no value of kind {kind} and rank {low} to {high}")
        return self.random.pick(found)

    # --- small things that many need ------------------------------------------------------------

    def cast(self, x: Value, dtype) -> Value:
        return self.emit("Cast", [x], to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def tame(self, x: Value, bound: float = 4.0) -> Value:
        """`x`, made small where it is large."""
        if x.largest <= bound:
            return x
        factor = np.asarray(bound / x.largest, x.dtype)
        return self.emit("Mul", [x, factor]) if self.random.chance(0.7) else self.emit("Tanh", [x])

    def axes(
        self, operator: str, x: Value, axes: Sequence[int] | None, since: int = 13, **attributes
    ) -> Value:
        """A node whose axes became an input in version `since`."""
        if self.model.opset >= since:
            given = None if axes is None else np.array(axes, np.int64)
            return self.emit(operator, [x, given], **attributes)
        return self.emit(operator, [x], axes=axes, **attributes)

    def reshape(self, x: Value, shapes: list[Sequence[int]]) -> Value:
        """To one shape for each feed: written as a constant, as arithmetic, or known only to the feed."""
        targets = [np.array(s, np.int64) for s in shapes]
        if len({len(t) for t in targets}) != 1:
            raise Reject("a rank depends on the feed")
        varying = [i for i in range(len(targets[0])) if len({t[i] for t in targets}) > 1]
        random = self.random
        if len(varying) <= 1 and not random.chance(0.15):
            target = targets[0].copy()
            if varying and 0 not in target:
                target[varying[0]] = -1
                return self.emit("Reshape", [x, target])
            if not varying:
                if len(target) and 0 not in target and random.chance(0.3):
                    target[random.integer(0, len(target) - 1)] = -1
                return self.emit("Reshape", [x, target])
        parts = []
        for i in range(len(targets[0])):
            axis = next(
                (a for a in range(x.rank) if all(s[a] == t[i] for s, t in zip(x.shapes, targets))), None
            )
            if axis is None:
                if i in varying:
                    parts.append(self.vector([t[i : i + 1] for t in targets]))
                else:
                    parts.append(self.weight(targets[0][i : i + 1]))
            elif self.model.opset >= 15 and random.chance(0.4):
                parts.append(self.emit("Shape", [x], start=axis, end=axis + 1))
            else:
                size = self.emit("Gather", [self.emit("Shape", [x]), np.array(axis, np.int64)], axis=0)
                parts.append(self.axes("Unsqueeze", size, [0]))
        if not parts:
            return self.emit("Reshape", [x, np.array([], np.int64)])
        return self.emit("Reshape", [x, self.emit("Concat", parts, axis=0)])

    def fit(self, x: Value, shape: Sequence[int], dtype=None) -> Value:
        """A value of exactly this shape made of `x`'s elements."""
        count = int(np.prod(shape))
        sizes = {a.size for a in x.arrays}
        if 0 in sizes or count == 0:
            raise Reject("nothing to fit")
        if dtype is not None and x.dtype != dtype:
            x = self.cast(x, dtype)
        if sizes != {count}:
            x = self.emit("Reshape", [x, np.array([-1], np.int64)])
            least = min(sizes)
            if least < count:
                times = np.array([-(-count // least)], np.int64)
                x = self.emit("Tile", [x, times])
            if any(a.size != count for a in x.arrays):
                x = self.emit("Slice", [x, np.array([0], np.int64), np.array([count], np.int64)])
        if x.shapes[0] == tuple(shape) and x.static:
            return x
        return self.reshape(x, [shape] * self.model.feeds)


def _check(node: onnx.NodeProto, y, most: int) -> None:
    if isinstance(y, list):
        if not y:
            raise Reject(f"{node.op_type}: an empty sequence")
        for item in y:
            _check(node, item, most)
        return
    if y.size > most:
        raise Reject(f"{node.op_type}: too many elements")
    if y.dtype.kind == "f" and y.size:
        largest = np.abs(y).max()
        # Sums of whole numbers are large, and what follows makes them small again.
        exact = node.op_type == "Cast" and y.dtype != F16
        if not largest <= (1e6 if exact else _LARGEST.get(y.dtype, 1000.0)):
            raise Reject(f"{node.op_type}: too large")
    if y.dtype.kind in "iu" and y.size and y.dtype.itemsize > 2 and np.abs(y.astype(np.float64)).max() > 1e7:
        raise Reject(f"{node.op_type}: too large")
