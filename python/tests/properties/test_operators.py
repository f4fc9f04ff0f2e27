"""Every operator that has a generator: random cases, compared with a reference.

RUKH_PROPERTY_SEED: the seed, 1 without it; "random" draws a new one. It is printed.
RUKH_PROPERTY_DRAWS: comparisons for each operator (default 200).
RUKH_PROPERTY_CASE: the index of a single case to repeat, as a failure names it.
"""

from __future__ import annotations

import collections
import os
import random

import numpy as np
import onnx
import pytest
import rukh

from . import families  # noqa: F401 - fills GENERATORS
from .compare import difference
from .draw import GENERATORS, Case, Draw, opsets_of
from .reference import NoReference, build, compute, infer

_SEED = os.environ.get("RUKH_PROPERTY_SEED") or "1"
SEED = random.SystemRandom().randrange(1 << 32) if _SEED == "random" else int(_SEED)
DRAWS = int(os.environ.get("RUKH_PROPERTY_DRAWS") or 200)
ONLY = os.environ.get("RUKH_PROPERTY_CASE")

# Cases of an operator that may be redrawn, because nobody can compute them, for one that is compared.
REDRAWS = 2


@pytest.mark.parametrize("operator", sorted(GENERATORS))
def test_operator(operator, record_property):
    opsets = opsets_of(operator)
    compared, redrawn = collections.Counter(), collections.Counter()
    indices = [int(ONLY)] if ONLY else range((1 + REDRAWS) * DRAWS)
    for index in indices:
        draw = Draw(SEED, operator, index, opsets[index % len(opsets)])
        try:
            compared[draw.version, check(draw, index)] += 1
        except NoReference as reason:
            redrawn[f"opset {draw.opset}: {reason}"] += 1
        if compared.total() == DRAWS:
            break
    by = collections.Counter()
    for (_version, who), count in compared.items():
        by[who] += count
    print(f"{operator}, seed {SEED}: " + ", ".join(f"{count} by {who}" for who, count in sorted(by.items())))
    for reason, count in redrawn.most_common():
        print(f"    redrawn {count}: {reason}")
    if ONLY:
        return
    assert compared.total() == DRAWS, f"only {compared.total()} of {DRAWS} comparisons: {redrawn}"
    if DRAWS >= 100:
        versions = {onnx.defs.get_schema(operator, opset).since_version for opset in opsets}
        missing = versions - {version for version, _who in compared}
        assert not missing, f"no comparison of version {missing}: {redrawn}"


def check(draw: Draw, index: int) -> str:
    """Compares one case; who judged it."""
    case = GENERATORS[draw.operator](draw)
    constants = [i for i, x in enumerate(case.inputs) if x is not None and draw.chance(0.3)]
    if all(x is None or i in constants for i, x in enumerate(case.inputs)) and draw.chance(0.5):
        constants = []
    model = build(draw, case, constants, _declared_shape(draw))
    where = f"seed {SEED}, case {index} of {draw.operator}, opset {draw.opset}:\n{describe(case, model)}"
    try:
        types = infer(draw, case)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError) as error:
        pytest.fail(f"the standard's checker: {error}\n{where}")
    expected, who = compute(draw, case)
    feed = {f"x{i}": x for i, x in enumerate(case.inputs) if x is not None and i not in constants}
    try:
        found = rukh.InferenceSession(model.SerializeToString()).run(None, feed)
    except rukh.RukhError as error:
        pytest.fail(f"rukh: {error}\n{where}")
    for output, (ours, theirs, dtype) in enumerate(zip(found, expected, types)):
        if output in case.unspecified:
            continue
        single = who.endswith("float32")
        wrong = difference(np.asarray(ours), theirs, np.dtype(dtype), case.tolerance, case.steps, single)
        if wrong:
            pytest.fail(f"output {output}, by {who}: {wrong}\n{where}\nrukh: {ours}\nexpected: {theirs}")
    return who


def _declared_shape(draw: Draw):
    """What the model says of its inputs' shapes: everything, names, or nothing."""
    kind = draw.pick(["known", "known", "named", "unknown"])
    counter = iter(range(1000))

    def declared(shape):
        if kind == "known":
            return list(shape)
        if kind == "named":
            return [f"n{next(counter)}" if draw.chance(0.5) else size for size in shape]
        return None

    return declared


def describe(case: Case, model: onnx.ModelProto) -> str:
    inputs = "\n".join(
        f"x{i} = {x.dtype}{list(x.shape)} {np.array2string(x, threshold=60)}"
        for i, x in enumerate(case.inputs)
        if x is not None
    )
    return f"{onnx.printer.to_text(model)}\n{inputs}"
