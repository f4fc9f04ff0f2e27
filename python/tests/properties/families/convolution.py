"""Convolutions."""

import numpy as np

from ..draw import FLOATS, Case, Draw, generator


def window(d: Draw, spatial: list[int], kernel: list[int], dilated: bool = True) -> dict:
    """Strides, pads and dilations with which at least one window fits."""
    rank = len(spatial)
    attributes: dict = {}
    if dilated and d.chance(0.4):
        attributes["dilations"] = [d.integer(1, 2) if (k - 1) * 2 < s else 1 for k, s in zip(kernel, spatial)]
    if d.chance(0.6):
        attributes["strides"] = [d.integer(1, 3) for _ in range(rank)]
    mode = d.pick(["none", "pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
    if mode in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        attributes["auto_pad"] = mode
        if mode != "VALID" and "strides" in attributes:
            # With larger steps the standard's formula gives negative pads, and nobody agrees what they mean.
            attributes["strides"] = [min(s, k) for s, k in zip(attributes["strides"], kernel)]
    elif mode != "none":
        attributes["pads"] = [d.integer(0, max(k - 1, 0)) for k in kernel * 2]
        if mode == "NOTSET":
            attributes["auto_pad"] = mode
    return attributes


def sizes(d: Draw, rank: int, largest: int = 7) -> tuple[list[int], list[int]]:
    """Spatial sizes, and kernel sizes that fit."""
    spatial = [d.integer(1, largest) for _ in range(rank)]
    return spatial, [d.integer(1, min(size, 4)) for size in spatial]


@generator("Conv")
def conv(d: Draw) -> Case:
    dtype = d.type("T", FLOATS)
    spatial, kernel = sizes(d, d.pick([1, 2, 2, 2, 3]))
    group = d.pick([1, 1, 2, 3])
    channels, maps = group * d.integer(1, 3), group * d.integer(1, 3)
    x = d.array(dtype, [d.integer(0, 2) if d.chance(0.1) else d.integer(1, 2), channels, *spatial])
    w = d.array(dtype, [maps, channels // group, *kernel])
    bias = d.array(dtype, [maps]) if d.chance(0.5) else None
    attributes = window(d, spatial, kernel)
    attributes["kernel_shape"] = d.pick([None, kernel])
    attributes["group"] = group if group > 1 or d.chance(0.5) else None
    return Case([x, w, bias], attributes, tolerance=10)


@generator("ConvTranspose")
def conv_transpose(d: Draw) -> Case:
    dtype = d.type("T", FLOATS)
    rank = d.pick([1, 2, 2, 3])
    spatial, kernel = [d.integer(1, 5) for _ in range(rank)], [d.integer(1, 3) for _ in range(rank)]
    group = d.pick([1, 1, 2])
    channels, per_group = group * d.integer(1, 2), d.integer(1, 2)
    x = d.array(dtype, [d.integer(1, 2), channels, *spatial])
    w = d.array(dtype, [channels, per_group, *kernel])
    bias = d.array(dtype, [group * per_group]) if d.chance(0.5) else None
    strides = [d.integer(1, 3) for _ in range(rank)] if d.chance(0.6) else None
    dilations = [d.integer(1, 2) for _ in range(rank)] if d.chance(0.4) else None
    attributes = {
        "kernel_shape": d.pick([None, kernel]),
        "strides": strides,
        "dilations": dilations,
        "group": group if group > 1 or d.chance(0.5) else None,
    }
    step = [max(s, g) for s, g in zip(strides or [1] * rank, dilations or [1] * rank)]
    extent = [(k - 1) * g + 1 for k, g in zip(kernel, dilations or [1] * rank)]
    full = [(n - 1) * s + e for n, s, e in zip(spatial, strides or [1] * rank, extent)]
    if d.chance(0.4):
        attributes["output_padding"] = [d.integer(0, s - 1) for s in step]
    if d.chance(0.5):
        # At least one element stays.
        before = [d.integer(0, min(e - 1, (f - 1) // 2)) for e, f in zip(extent, full)]
        after = [d.integer(0, min(e - 1, (f - 1) // 2)) for e, f in zip(extent, full)]
        attributes["pads"] = before + after
    return Case([x, w, bias], attributes, tolerance=10)


@generator("ConvInteger")
def conv_integer(d: Draw) -> Case:
    x_type, w_type = d.type("T1"), d.type("T2")
    spatial, kernel = sizes(d, d.pick([1, 2, 2]))
    group = d.pick([1, 1, 2])
    channels, maps = group * d.integer(1, 2), group * d.integer(1, 2)
    x = d.whole(x_type, [d.integer(1, 2), channels, *spatial])
    w = d.whole(w_type, [maps, channels // group, *kernel])
    x_zero = d.whole(x_type, []) if d.chance(0.5) else None
    w_zero = d.whole(w_type, d.pick([[], [maps]])) if d.chance(0.5) else None
    attributes = {**window(d, spatial, kernel), "group": group}
    return Case([x, w, x_zero, w_zero], attributes)


@generator("QLinearConv")
def qlinear_conv(d: Draw) -> Case:
    x_type, w_type, y_type = d.type("T1"), d.type("T2"), d.type("T3")
    spatial, kernel = sizes(d, d.pick([1, 2, 2]))
    group = d.pick([1, 1, 2])
    channels, maps = group * d.integer(1, 2), group * d.integer(1, 2)
    per_map = d.pick([[], [maps]])
    scale = np.dtype(np.float32)
    inputs = [
        d.whole(x_type, [d.integer(1, 2), channels, *spatial]),
        d.array(scale, [], 0.01, 0.1),
        d.whole(x_type, []),
        d.whole(w_type, [maps, channels // group, *kernel]),
        d.array(scale, per_map, 0.01, 0.1),
        d.array(w_type, per_map, 0, 0) if w_type == np.int8 else d.whole(w_type, per_map),
        d.array(scale, [], 0.05, 0.5),
        d.whole(y_type, []),
        d.array(np.dtype(np.int32), [maps], -500, 500) if d.chance(0.5) else None,
    ]
    # A sum halfway between two steps may be rounded to either.
    return Case(inputs, {**window(d, spatial, kernel), "group": group}, steps=1)


@generator("DeformConv")
def deform_conv(d: Draw) -> Case:
    dtype = d.type("T", FLOATS[:3])
    spatial, kernel = sizes(d, 2, 5)
    group, offset_group = d.integer(1, 2), d.integer(1, 2)
    channels, maps = 2 * d.integer(1, 2), group * d.integer(1, 2)
    strides, pads = [d.integer(1, 2) for _ in spatial], [d.integer(0, 1) for _ in range(4)]
    out = [
        (s + pads[i] + pads[i + 2] - k) // t + 1 for i, (s, k, t) in enumerate(zip(spatial, kernel, strides))
    ]
    batch, taps = d.integer(1, 2), kernel[0] * kernel[1]
    inputs = [
        d.array(dtype, [batch, channels, *spatial]),
        d.array(dtype, [maps, channels // group, *kernel]),
        d.array(dtype, [batch, offset_group * taps * 2, *out]),
        d.array(dtype, [maps]) if d.chance(0.5) else None,
        d.array(dtype, [batch, offset_group * taps, *out]) if d.chance(0.5) else None,
    ]
    attributes = {
        "strides": strides,
        "pads": pads,
        "group": group,
        "offset_group": offset_group,
        "kernel_shape": d.pick([None, kernel]),
    }
    return Case(inputs, attributes, tolerance=20)


@generator("Col2Im")
def col2im(d: Draw) -> Case:
    # Booleans and strings, which the standard allows, have no sums.
    dtype = d.type("T", [t for t in d.types("T") if t.kind not in "bO"])
    rank = d.integer(1, 3)
    image, block = sizes(d, rank, 5)
    strides = [d.integer(1, 2) for _ in range(rank)] if d.chance(0.5) else None
    dilations = [d.integer(1, 2) if (k - 1) * 2 < s else 1 for k, s in zip(block, image)]
    dilations = dilations if d.chance(0.5) else None
    pads = [d.integer(0, 1) for _ in range(2 * rank)] if d.chance(0.5) else None
    steps = 1
    for i in range(rank):
        extent = (block[i] - 1) * (dilations or [1] * rank)[i] + 1
        around = pads[i] + pads[i + rank] if pads else 0
        steps *= (image[i] + around - extent) // (strides or [1] * rank)[i] + 1
    x = d.array(dtype, [d.integer(1, 2), d.integer(1, 2) * int(np.prod(block)), steps])
    attributes = {"strides": strides, "dilations": dilations, "pads": pads}
    return Case([x, np.array(image), np.array(block)], attributes, tolerance=4)
