"""Recurrent layers."""

import numpy as np

from ..draw import FLOATS, Case, Draw, generator

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_CALLS = {"RNN": 1, "GRU": 2, "LSTM": 3}


@generator("RNN", "GRU", "LSTM")
def recurrent(d: Draw) -> Case:
    dtype = d.type("T", FLOATS)
    direction = d.pick([None, "forward", "reverse", "bidirectional"])
    directions = 2 if direction == "bidirectional" else 1
    gates, hidden, width = _GATES[d.operator], d.integer(1, 5), d.integer(1, 4)
    steps, batch = d.integer(1, 5), d.integer(1, 3)
    layout = d.integer(0, 1) if d.version >= 14 else 0

    def state(*shape):
        shape = [batch, directions, *shape] if layout else [directions, batch, *shape]
        return d.array(dtype, shape) if d.chance(0.5) else None

    inputs = [
        d.array(dtype, [batch, steps, width] if layout else [steps, batch, width]),
        d.array(dtype, [directions, gates * hidden, width], -0.8, 0.8),
        d.array(dtype, [directions, gates * hidden, hidden], -0.8, 0.8),
        d.array(dtype, [directions, 2 * gates * hidden]) if d.chance(0.6) else None,
        d.index(1, steps, [batch], np.dtype(np.int32)) if d.chance(0.4) else None,
        state(hidden),
    ]
    attributes = {"hidden_size": hidden, "direction": direction}
    if d.version >= 14:
        attributes["layout"] = layout
    if d.chance(0.3):
        attributes["activations"] = [
            d.pick(["Tanh", "Sigmoid", "Relu"]) for _ in range(_CALLS[d.operator] * directions)
        ]
    if d.chance(0.2):
        attributes["clip"] = d.number(0.5, 3)
    if d.operator == "GRU":
        attributes["linear_before_reset"] = d.pick([None, 0, 1])
    if d.operator == "LSTM":
        inputs.append(state(hidden))
        inputs.append(d.array(dtype, [directions, 3 * hidden]) if d.chance(0.4) else None)
        attributes["input_forget"] = d.pick([None, 0, 0, 1])
    return Case(inputs, attributes, 3 if d.operator == "LSTM" else 2, tolerance=20)
