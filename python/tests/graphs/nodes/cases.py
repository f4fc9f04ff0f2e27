"""Cases of the property tests, with values of the graph in place of some of their inputs."""

import numpy as np
import onnx
from properties import families  # noqa: F401 - fills GENERATORS
from properties.draw import F16, F32, F64, GENERATORS, Draw

from ..evaluate import Reject
from ..scope import Scope
from . import emitter

# Their outputs are random, or their steps cannot be told from the case's inputs.
_LEFT_OUT = {
    *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
    *(
        "QuantizeLinear",
        "DynamicQuantizeLinear",
        "QLinearConv",
        "QLinearMatMul",
        "Unique",
        "Hardmax",
        "Floor",
    ),
    *("Ceil", "Round", "Sign", "ArgMax", "ArgMin", "TopK", "NonZero", "Equal", "Less", "Greater"),
    *("LessOrEqual", "GreaterOrEqual", "RoiAlign", "MaxRoiPool", "GridSample", "DeformConv", "Det", "Mod"),
    *("ThresholdedRelu", "Shrink", "Not", "IsNaN", "IsInf", "Tan", "Acosh", "BitCast", "MaxUnpool", "OneHot"),
}
_TYPES = tuple(
    np.dtype(t) for t in (np.float32, np.float64, np.float16, np.int64, np.int32, np.uint8, np.int8, np.bool_)
)


@emitter(6)
def case(s: Scope):
    random = s.random
    operator = random.pick(sorted(set(GENERATORS) - _LEFT_OUT))
    try:
        draw = Draw(random.integer(0, 1 << 30), operator, 0, s.model.opset)
    except onnx.defs.SchemaError:
        raise Reject("not in this operator set") from None
    if draw.schema.deprecated:
        raise Reject("not in this operator set")
    try:
        drawn = GENERATORS[operator](draw)
    except (KeyError, ValueError, IndexError):
        raise Reject(f"{operator}: nothing to draw") from None
    if drawn.unspecified or drawn.steps or any(x is not None and x.dtype not in _TYPES for x in drawn.inputs):
        raise Reject(f"{operator}: types")
    wanted = drawn.attributes.get("to") or drawn.attributes.get("output_dtype")
    if wanted and onnx.helper.tensor_dtype_to_np_dtype(wanted) not in _TYPES:
        raise Reject(f"{operator}: types")
    inputs = []
    for x in drawn.inputs:
        if x is None or x.dtype not in (F16, F32, F64) or x.size == 0 or random.chance(0.4):
            inputs.append(None if x is None else s.weight(x))
            continue
        v = s.fit(s.pick("f"), x.shape, x.dtype)
        low, high = float(x.min()), float(x.max())
        if v.largest > max(abs(low), abs(high)) or low > -0.05:
            v = s.emit("Sigmoid", [v])
            v = s.emit("Add", [s.emit("Mul", [v, np.asarray(high - low, x.dtype)]), np.asarray(low, x.dtype)])
        inputs.append(v)
    if not inputs:
        raise Reject("no inputs")
    made = s.emit(operator, inputs, drawn.outputs, **drawn.attributes)
    return made
