"""Where a block stands: in the graph, a branch, a loop, a function, or behind a size only a run knows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from properties.draw import I64

from ..evaluate import Reject
from ..nodes.control import body_of, called, own, parameter, steps_inside
from ..nodes.stable import away
from ..scope import Scope, Value

Block = Callable[[Scope, Value], Value]
PLACES = ["plain"] * 12 + [
    "hidden",
    "hidden",
    "branch",
    "branch",
    "loop",
    "loop",
    "scan",
    "function",
    "function",
]


def placed(s: Scope, x: Value, block: Block) -> Value:
    place = s.random.pick(PLACES)
    if place == "hidden":
        return block(s, hidden(s, x))
    if place == "branch":
        return branch(s, x, block)
    if place == "loop":
        return loop(s, x, block)
    if place == "scan":
        return scan(s, x, block)
    if place == "function":
        return function(s, x, block)
    return block(s, x)


def hidden(s: Scope, x: Value) -> Value:
    """`x`, whose shape only a run knows."""
    kind = s.random.pick(["input", "input", "selected", "sequence"])
    if kind == "input" and not s.in_function:
        target = s.model.input([np.array(d, np.int64) for d in x.shapes])
        return s.emit("Reshape", [x, target])
    if kind == "selected":
        mask = s.emit("Greater", [s.emit("Shape", [x]), np.array([0], np.int64)])
        sizes = s.emit("Compress", [s.emit("Shape", [x]), mask], axis=0)
        return s.emit("Reshape", [x, sizes])
    return s.emit("SequenceAt", [s.emit("SequenceConstruct", [x]), np.asarray(0, I64)])


def branch(s: Scope, x: Value, block: Block) -> Value:
    mean = s.axes("ReduceMean", x, None, since=18, keepdims=0)
    away(mean, 0.0)
    condition = s.emit("Greater", [mean, np.asarray(0, x.dtype)])
    bodies = [Scope(s.model, s), Scope(s.model, s)]
    outputs = []
    for body in bodies:
        outputs.append(own(body, block(body, x)))
    graphs = [body_of(body, [], [y]) for body, y in zip(bodies, outputs)]
    return s.emit("If", [condition], then_branch=graphs[0], else_branch=graphs[1])


def loop(s: Scope, x: Value, block: Block) -> Value:
    """The block's output of the last turn, or those of all turns, one after another."""
    body = Scope(s.model, s)
    turn = parameter(body, [np.asarray(0, I64)] * s.model.feeds)
    going = parameter(body, [np.asarray(True)] * s.model.feeds)
    carried = parameter(body, x.arrays)
    y = block(body, carried)
    again = body.emit("Identity", [going])
    most = 1 if steps_inside(body.nodes) else 2
    turns = s.vector([np.asarray(s.random.integer(1, most), np.int64)] * s.model.feeds)
    if y.shapes == x.shapes:
        graph = body_of(body, [turn, going, carried], [again, own(body, y)])
        return s.emit("Loop", [turns, None, x], body=graph)
    next_one = body.emit("Tanh", [carried])
    graph = body_of(body, [turn, going, carried], [again, next_one, own(body, y)])
    _, all_turns = s.emit("Loop", [turns, None, x], 2, body=graph)
    return s.emit("Gather", [all_turns, np.asarray(0, I64)], axis=0)


def scan(s: Scope, x: Value, block: Block) -> Value:
    """The block for each element of the batch."""
    if x.rank < 3:
        raise Reject("no batch")
    body = Scope(s.model, s)
    element = parameter(body, [a[0] for a in x.arrays])
    y = block(body, body.axes("Unsqueeze", element, [0]))
    if steps_inside(body.nodes) and any(a.shape[0] > 1 for a in x.arrays):
        raise Reject("steps were looked after for the first row alone")
    graph = body_of(body, [element], [body.axes("Squeeze", y, [0])], ranks=True)
    return s.emit("Scan", [x], body=graph, num_scan_inputs=1)


def function(s: Scope, x: Value, block: Block) -> Value:
    inner = Scope(s.model, None, function=True)
    inner.depth = s.depth + 1
    inside = parameter(inner, x.arrays)
    y = own(inner, block(inner, inside))
    name = f"Block{len(s.model.functions)}"
    given = called(s, name, [inside], [y], inner.nodes)
    y = s.emit(name, [x], domain="local", **given)
    if y.shapes == x.shapes and not steps_inside(inner.nodes) and s.random.chance(0.4):
        y = s.emit(name, [y], domain="local", **given)
    return y
