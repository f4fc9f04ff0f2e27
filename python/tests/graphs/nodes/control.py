"""If, Loop, Scan, functions, sequences and optionals."""

import numpy as np
import onnx
from onnx import helper
from properties.draw import I64

from ..evaluate import Reject, needed, type_of
from ..names import as_in_others, function_as_in_graph, with_attribute
from ..scope import Scope, Value
from . import emitter
from .stable import away


def _grow(s: Scope, count: int) -> None:
    from ..generate import grow

    grow(s, count)


def body_of(s: Scope, inputs: list[Value], outputs: list[Value], ranks: bool = False) -> onnx.GraphProto:
    def info(v: Value):
        kind = type_of(v.arrays[0])
        if v in inputs and v.is_tensor and v.rank == 0:
            # ONNX Runtime's Loop wants the shapes of the turn and of the condition.
            kind = helper.make_tensor_type_proto(kind.tensor_type.elem_type, [])
        elif ranks and v.is_tensor:
            kind = helper.make_tensor_type_proto(kind.tensor_type.elem_type, [None] * v.rank)
        return helper.make_value_info(v.name, kind)

    graph = helper.make_graph(
        s.nodes, s.model.name(), [info(v) for v in inputs], [info(v) for v in outputs], s.initializers
    )
    return as_in_others(graph, s.depth) if s.random.chance(0.6) else graph


_STEPS = {"QuantizeLinear", "DynamicQuantizeLinear"}


def steps_inside(nodes) -> bool:
    """Whether the nodes round values to steps, which is looked after for the first values alone."""
    for node in nodes:
        bodies = [a.g.node for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
        if node.op_type in _STEPS or any(steps_inside(body) for body in bodies):
            return True
    return False


def called(s: Scope, name: str, inputs: list[Value], outputs: list[Value], nodes: list) -> dict[str, float]:
    """Makes a function of the model; the attributes that its calls need."""
    domains = (("", s.model.opset), ("local", 1), ("com.microsoft", 1))
    imports = [helper.make_opsetid(domain, version) for domain, version in domains]
    names = [v.name for v in inputs], [v.name for v in outputs]
    function = helper.make_function("local", name, *names, nodes, imports)
    given = with_attribute(function, s.random.chance(0.5)) if s.random.chance(0.8) else {}
    if s.random.chance(0.6):
        function = function_as_in_graph(function, int(inputs[0].name[1:]))
    s.model.functions.append(function)
    s.model.function_attributes[name] = given
    return given


def parameter(s: Scope, array_of: list) -> Value:
    value = Value(s.model.name(), array_of)
    s.model.values[value.name] = value
    s.values.append(value)
    return value


def own(s: Scope, x: Value) -> Value:
    """`x` as an output of the body, which makes it itself."""
    if any(x.name in n.output for n in s.nodes):
        return x
    return s.emit("Identity", [x])


def _condition(s: Scope) -> Value:
    if s.random.chance(0.3):
        found = [v for v in s.visible() if v.dtype == np.bool_ and all(a.size == 1 for a in v.arrays)]
        if found:
            return s.random.pick(found)
    if s.random.chance(0.15):
        return s.constant(np.asarray(s.random.chance(0.5)))
    x = s.pick("f")
    mean = s.axes("ReduceMean", x, None, since=18, keepdims=0)
    away(mean, 0.1)
    return s.emit("Greater", [mean, np.asarray(0.1, x.dtype)])


def _deep(s: Scope) -> None:
    if s.depth >= 2 or (s.depth == 1 and s.random.chance(0.5)):
        raise Reject("deep enough")


@emitter(2)
def branch(s: Scope):
    _deep(s)
    condition = _condition(s)
    then = Scope(s.model, s)
    _grow(then, s.random.integer(1, 5))
    last = then.pick("f")
    otherwise = Scope(s.model, s)
    if s.random.chance(0.4) and last.static:
        other = otherwise.fit(otherwise.pick("f"), last.shape, last.dtype)
    else:
        _grow(otherwise, s.random.integer(1, 4))
        other = otherwise.pick("f", accept=lambda v: v.dtype == last.dtype)
    bodies = {
        "then_branch": body_of(then, [], [own(then, last)]),
        "else_branch": body_of(otherwise, [], [own(otherwise, other)]),
    }
    return s.emit("If", [condition], **bodies)


@emitter(2)
def loop(s: Scope):
    """A few turns, with a value carried, and outputs of all turns."""
    _deep(s)
    random = s.random
    start = s.tame(s.pick("f", accept=lambda v: max(a.size for a in v.arrays) <= 200), 2)
    body = Scope(s.model, s)
    turn = parameter(body, [np.asarray(0, I64)] * s.model.feeds)
    going = parameter(body, [np.asarray(True)] * s.model.feeds)
    carried = parameter(body, start.arrays)
    body.values = [carried]
    if random.chance(0.5):
        y = body.cast(turn, carried.dtype)
        body.emit("Add", [carried, body.emit("Mul", [y, np.asarray(0.25, carried.dtype)])])
    _grow(body, random.integer(1, 5))
    last = body.pick("f", accept=lambda v: v.dtype == start.dtype)
    if random.chance(0.15) and carried.rank:
        out = body.emit("Concat", [carried, carried], axis=0)
        # The slices of an output of all turns must have one shape.
        last, turns = None, 2
    else:
        same = [
            v for v in body.values if v.dtype == start.dtype and v.shapes == start.shapes and v is not carried
        ]
        out = random.pick(same) if same else body.fit(last, start.shape, start.dtype)
        out = body.emit("Tanh", [out])
        turns = random.pick([0, 1, 2, 2, 3, 3]) if not s.model.empties else 1
    if steps_inside(body.nodes):
        turns = min(turns, 1)
    scans = [own(body, last)] if last is not None and turns and random.chance(0.6) else []
    if random.chance(0.3):
        total = body.axes("ReduceMean", out, None, since=18, keepdims=0)
        again = body.emit("Less", [away(total, 0.05), np.asarray(0.05, total.dtype)])
    else:
        again = body.emit("Identity", [going])
    graph = body_of(body, [turn, going, carried], [again, out, *scans])
    count = (
        s.vector([np.asarray(turns, I64)] * s.model.feeds)
        if random.chance(0.85)
        else s.emit("Squeeze", [s.vector([np.array([turns], I64)] * s.model.feeds)])
    )
    condition = s.constant(np.asarray(True)) if random.chance(0.4) else None
    return s.emit("Loop", [count, condition, start], 1 + len(scans), body=graph)


@emitter(1)
def scan(s: Scope):
    """Rows of a value one after another, with a value carried."""
    _deep(s)
    random = s.random
    x = s.tame(s.pick("f", 2, 3, lambda v: max(d[0] for d in v.shapes) <= 8), 2)
    row = [a[0] for a in x.arrays]
    start = s.emit("Mul", [s.emit("Gather", [x, np.asarray(0, I64)], axis=0), np.asarray(0.5, x.dtype)])
    body = Scope(s.model, s)
    carried, element = parameter(body, start.arrays), parameter(body, row)
    total = body.emit("Tanh", [body.emit("Add", [carried, element])])
    _grow(body, random.integer(1, 4))
    last = body.pick("f")
    if last is total:
        # ONNX Runtime writes only one of two outputs that are one value.
        last = body.emit("Identity", [last])
    if steps_inside(body.nodes):
        raise Reject("steps were looked after for the first row alone")
    graph = body_of(body, [carried, element], [total, own(body, last)], ranks=True)
    directions = [1] if random.chance(0.2) else None
    return s.emit("Scan", [start, x], 2, body=graph, num_scan_inputs=1, scan_input_directions=directions)


@emitter(1.5)
def function(s: Scope):
    """A function of the model, called once or twice."""
    _deep(s)
    random = s.random
    if s.model.functions and random.chance(0.3):
        made = random.pick(s.model.functions)
        if steps_inside(made.node):
            raise Reject("steps were looked after for the first call alone")
        arguments = [s.pick("f") for _ in made.input]
        given = s.model.function_attributes[made.name]
        return s.emit(made.name, arguments, len(made.output), domain="local", **given)
    arguments = [s.tame(s.pick("f")) for _ in range(random.integer(1, 2))]
    inner = Scope(s.model, None, function=True)
    inner.depth = s.depth + 1
    parameters = [parameter(inner, a.arrays) for a in arguments]
    _grow(inner, random.integer(1, 5))
    outputs = [own(inner, inner.pick("f"))]
    if random.chance(0.4):
        outputs = [inner.emit(random.pick(["LeakyRelu", "Elu"]), outputs, alpha=random.number(0.1, 0.9))]
    if random.chance(0.15):
        outputs.append(inner.emit("Identity", [parameters[0]]))
    name = f"Block{len(s.model.functions)}"
    # Another call may have other shapes, with which what nobody uses need not be valid.
    nodes = needed(inner.nodes, [o.name for o in outputs])
    given = called(s, name, parameters, outputs, nodes)
    return s.emit(name, arguments, len(outputs), domain="local", **given)


@emitter(1)
def sequence(s: Scope):
    random = s.random
    x = s.pick("f", 1, 3)
    if random.chance(0.5):
        axis = random.axis(x.rank, negative=False)
        made = s.emit("SplitToSequence", [x, np.asarray(1, I64)], axis=axis)
        if random.chance(0.5):
            return s.emit("ConcatFromSequence", [made], axis=axis)
    else:
        other = s.pick("f", accept=lambda v: v.dtype == x.dtype)
        made = s.emit("SequenceConstruct", [x, other])
        if random.chance(0.4):
            made = s.emit("SequenceInsert", [made, s.emit("Neg", [x])])
        if random.chance(0.3):
            made = s.emit("SequenceErase", [made, np.asarray(0, I64)])
    if random.chance(0.2):
        return s.emit("SequenceLength", [made])
    return s.emit("SequenceAt", [made, np.asarray(random.pick([0, -1]), I64)])


@emitter(0.7)
def optional(s: Scope):
    random = s.random
    x = s.pick("f", 1, 3)
    if s.model.opset < 18:
        raise Reject("optionals")
    from ..scope import Value as Made

    # No one runs an optional alone: the nodes are computed as one.
    names = [s.model.name() for _ in range(3)]
    nodes = [
        helper.make_node("Optional", [x.name], [names[0]]),
        helper.make_node("OptionalHasElement", [names[0]], [names[1]]),
        helper.make_node("OptionalGetElement", [names[0]], [names[2]]),
    ]
    s.nodes += nodes
    known = [Made(names[1], [np.asarray(True)] * s.model.feeds), Made(names[2], x.arrays)]
    for value in known:
        s.model.values[value.name] = value
        s.values.append(value)
    if random.chance(0.5):
        return s.emit("Neg", [known[1]])
    return known


@emitter(0.8)
def gathered_turns(s: Scope):
    """A loop that collects its turns in a sequence."""
    _deep(s)
    x = s.tame(s.pick("f", 1, 3), 2)
    start = s.emit("SequenceConstruct", [x])
    body = Scope(s.model, s)
    turn = parameter(body, [np.asarray(0, I64)] * s.model.feeds)
    going = parameter(body, [np.asarray(True)] * s.model.feeds)
    carried = Value(s.model.name(), start.arrays)
    s.model.values[carried.name] = carried
    factor = body.cast(body.emit("Add", [turn, np.asarray(1, I64)]), x.dtype)
    item = body.emit("Mul", [x, factor])
    body.values = [item]
    _grow(body, s.random.integer(0, 2))
    if steps_inside(body.nodes):
        raise Reject("steps were looked after for the first turn alone")
    more = body.emit("SequenceInsert", [carried, item])
    again = body.emit("Identity", [going])
    graph = body_of(body, [turn, going, carried], [again, more])
    turns = s.vector([np.asarray(s.random.integer(1, 3), np.int64)] * s.model.feeds)
    made = s.emit("Loop", [turns, None, start], body=graph)
    return s.emit("ConcatFromSequence", [made], axis=0, new_axis=s.random.pick([None, 1]))
