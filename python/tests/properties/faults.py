"""Known faults of the references, each with its reason; such cases are judged by the other one."""

from __future__ import annotations

import numpy as np
import onnx

from .draw import BF16, F16, Case, Draw


def reference_fault(draw: Draw, case: Case) -> str | None:
    """Why the standard's reference implementation cannot be trusted with this case."""
    for operators, applies, reason in _FAULTS:
        if draw.operator in operators and applies(draw, case):
            return reason
    return None


def unstable(draw: Draw, case: Case) -> str | None:
    """Why neither reference can be trusted with this case."""
    if draw.operator == "Resize" and _rounds_a_whole_place(case):
        # Five columns to nine by 7/4: the middle one is at 2 + 2^-51, which gives weights of a fraction, but
        # a window about 2. ONNX Runtime's places in float32 are no better.
        return "a place differs from a whole number, or from half of one, by rounding alone"
    return None


def _rounds_a_whole_place(case: Case) -> bool:
    if case.attributes.get("coordinate_transformation_mode") != "half_pixel_symmetric":
        return False
    x, _roi, scales, sizes = case.inputs
    lengths = [x.shape[axis] for axis in case.attributes.get("axes") or range(x.ndim)]
    if scales is None:
        scales = [size / length for size, length in zip(sizes, lengths)]
        policy = case.attributes.get("keep_aspect_ratio_policy")
        if policy in ("not_larger", "not_smaller"):
            scales = [(min if policy == "not_larger" else max)(scales)] * len(scales)
            sizes = [int(scale * length + 0.5) for scale, length in zip(scales, lengths)]
    else:
        sizes = [int(scale * length) for scale, length in zip(scales, lengths)]
    for length, scale, size in zip(lengths, map(float, scales), sizes):
        offset = length / 2 * (1 - size / (scale * length))
        doubled = 2 * (offset + (np.arange(size) + 0.5) / scale - 0.5)
        away = np.abs(doubled - np.round(doubled))
        if np.any((away > 0) & (away < 1e-6)):
            return True
    return False


def computes_in_single(draw: Draw, case: Case) -> bool:
    """Whether the reference implementation computes this operator in float32, or with constants of that
    type, whatever its inputs' types."""
    return draw.operator in _SINGLE


_SINGLE = {
    *(
        "AffineGrid",
        "Attention",
        "DeformConv",
        "Erf",
        "Gelu",
        "GridSample",
        "GroupNormalization",
        "HardSwish",
    ),
    *("LayerNormalization", "RMSNormalization", "Resize", "Selu", "RotaryEmbedding"),
}


def _always(_draw: Draw, _case: Case) -> bool:
    return True


def _older(version: int):
    return lambda draw, _case: draw.version < version


def _rank(case: Case) -> int:
    return case.inputs[0].ndim


def _dilated(_draw: Draw, case: Case) -> bool:
    return any(step > 1 for step in case.attributes.get("dilations") or ())


def _to_power_unsaturated(draw: Draw, case: Case) -> bool:
    target = case.attributes.get("to") if draw.operator == "Cast" else str(case.inputs[1].dtype)
    return case.attributes.get("saturate") == 0 and target in (onnx.TensorProto.FLOAT8E8M0, "float8_e8m0fnu")


def _divides_wider(_draw: Draw, case: Case) -> bool:
    x, scale, _zero = case.inputs
    return scale.dtype in (F16, BF16) and x.dtype != scale.dtype


# (operators, to which cases it applies, what is wrong with the reference implementation)
_FAULTS = [
    (
        ("Softmax", "LogSoftmax", "Hardmax"),
        _older(13),
        "knows no coercion to two dimensions, the rule before 13",
    ),
    (("BatchNormalization",), _older(14), "recomputes mean and variance from the batch"),
    (("GRU", "LSTM", "RNN"), _always, "ignores activations, clip and sequence_lens"),
    (("GlobalMaxPool",), lambda _d, case: _rank(case) != 4, "gives an output of four dimensions"),
    (("LpNormalization",), lambda _d, case: case.attributes["p"] == 1, "sums without taking absolute values"),
    (
        ("AveragePool", "LpPool"),
        lambda _d, case: case.attributes.get("ceil_mode"),
        "pads the wrong end where sizes round up",
    ),
    (("AveragePool", "LpPool", "MaxPool"), _dilated, "ignores dilations where padding is automatic"),
    (("MaxPool",), _always, "pads only images of two dimensions, and too little where padding is automatic"),
    (
        ("Shape",),
        lambda _d, case: (case.attributes.get("end") or 0) < -_rank(case),
        "counts twice from the back",
    ),
    (("LRN",), _always, "leaves the last channel of a window out"),
    (
        ("GridSample",),
        lambda _d, case: "cubic" in case.attributes["mode"],
        "clips the place before it is weighted",
    ),
    (("QLinearConv",), lambda _d, case: _rank(case) != 4, "broadcasts the zero point to four dimensions"),
    (("RoiAlign",), _older(16), "uses half_pixel, where versions before 16 do not"),
    (
        ("Cast", "CastLike"),
        _to_power_unsaturated,
        "gives float8e8m0's least number for 0, where it should be NaN",
    ),
    (("Unsqueeze",), _older(13), "inserts the axes in the order given, not in ascending order"),
    (("Unique",), lambda _d, case: case.attributes["sorted"] == 0, "sorts nevertheless"),
    (
        ("ConvTranspose",),
        lambda _d, case: (case.attributes["group"] or 1) > 1,
        "adds the bias of the first group",
    ),
    (("QuantizeLinear",), _divides_wider, "divides in float32 where the scale's type is narrower"),
]
