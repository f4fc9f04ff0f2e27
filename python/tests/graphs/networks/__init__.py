"""What exporters write: blocks of well known networks in random sizes, also in bodies and functions."""

from __future__ import annotations

import numpy as np
from properties.draw import F16, F32, I64, Random

from ..evaluate import Reject
from ..generate import Sample, finish
from ..scope import Model, Value
from . import quantized
from .flow import placed
from .images import IMAGES, head, stem
from .tokens import TOKENS, embedded, tokens_of_image

_OPSETS = (13, 15, 17, 17, 18, 20, 21, 23, 24)


def network(*seed: int) -> Sample:
    """A network of a few blocks."""
    random = Random(*seed)
    main = random.pick([F32] * 9 + [F16])
    model = Model(random, random.pick(_OPSETS), random.pick([1, 1, 2]), main)
    model.most_elements = 40000
    s = model.root
    kind = random.pick(["image", "image", "tokens", "vision", "text", "quantized", "quantized"])
    feeds = range(model.feeds)
    batch = (
        [random.integer(1, 2) for _ in feeds] if random.chance(0.4) else [random.integer(1, 2)] * model.feeds
    )
    x: Value
    model.activations = random.pick([np.uint8, np.uint8, np.int8, None])
    if kind == "quantized":
        model.main = main = F32
        sides = [random.pick([4, 6, 7, 8, 10])] * model.feeds
        x = model.input(
            [
                random.array(main, [batch[k], random.pick([3, 4, 8]), sides[k], sides[k]], -1, 1)
                for k in feeds[:1]
            ]
            * model.feeds
        )
    elif kind in ("image", "vision"):
        sides = [random.pick([8, 12, 16, 20, 24]) for _ in feeds]
        if kind == "vision" or random.chance(0.5):
            sides = [sides[0]] * model.feeds
        channels = random.pick([1, 3, 3, 4, 8, 16])
        x = model.input([random.array(main, [batch[k], channels, sides[k], sides[k]], -1, 1) for k in feeds])
    elif kind == "tokens":
        width = random.pick([8, 12, 16, 24, 32])
        x = model.input([random.array(main, [batch[k], random.integer(1, 9), width], -1, 1) for k in feeds])
    else:
        x = model.input([random.index(0, 19, [batch[k], random.integer(1, 9)], I64) for k in feeds])
    blocks = {"image": IMAGES, "vision": IMAGES, "quantized": quantized.BLOCKS}.get(kind, TOKENS)
    if kind == "text":
        x = embedded(s, x)
    elif kind in ("image", "vision"):
        x = attempt(s, x, stem)
    elif kind == "quantized":
        x = attempt(s, x, quantized.start)
    for _ in range(random.integer(1, 6 if kind == "quantized" else 4)):
        x = attempt(s, x, random.pick(blocks))
    if kind == "vision":
        x = attempt(s, x, tokens_of_image)
        for _ in range(random.integer(1, 3)):
            if x.rank == 3:
                x = attempt(s, x, random.pick(TOKENS))
    elif kind == "image" and random.chance(0.6):
        attempt(s, x, head)
    elif kind == "quantized" and random.chance(0.6):
        attempt(s, x, quantized.classes)
    if x.name not in {v.name for v in s.values}:
        s.values.append(x)
    if not s.nodes:
        s.emit("Identity", [x])
    return finish(model)


def attempt(s, x: Value, block) -> Value:
    """`x` after the block, or as it is where the block does not fit."""
    for _ in range(2):
        try:
            with s.attempt():
                return placed(s, x, block)
        except Reject as reason:
            s.model.rejected[f"{block.__name__}: {reason}"] += 1
    return x
