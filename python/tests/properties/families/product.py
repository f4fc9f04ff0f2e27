"""Products of matrices."""

import numpy as np

from ..draw import FLOATS, PLAIN, Case, Draw, generator, is_integer


def _matrices(d: Draw) -> tuple[list[int], list[int]]:
    """Shapes of two operands of MatMul."""
    m, k, n = d.size(7), d.size(9), d.size(7)
    batch = d.shape(0, 2, 3)
    a = [*d.broadcast(batch), m, k] if d.chance(0.85) else [k]
    b = [*(batch if d.chance(0.5) else d.broadcast(batch)), k, n] if d.chance(0.85) else [k]
    return a, b


@generator("MatMul")
def matmul(d: Draw) -> Case:
    a, b = _matrices(d)
    dtype = d.type("T", None if d.chance(0.3) else FLOATS)
    return Case([d.array(dtype, a), d.array(dtype, b)], tolerance=10)


@generator("Gemm")
def gemm(d: Draw) -> Case:
    dtype = d.type("T", None if d.chance(0.2) else FLOATS)
    m, k, n = d.size(7), d.size(9), d.size(7)
    across, down = d.pick([None, 0, 1]), d.pick([None, 0, 1])
    a = d.array(dtype, [k, m] if across else [m, k])
    b = d.array(dtype, [n, k] if down else [k, n])
    c = d.array(dtype, d.broadcast([m, n])) if d.version < 11 or d.chance(0.7) else None
    whole = is_integer(dtype)
    attributes = {"transA": across, "transB": down}
    if d.chance(0.6):
        attributes["alpha"] = float(d.integer(1, 3)) if whole else d.number(-2, 2)
        attributes["beta"] = float(d.integer(0, 2)) if whole else d.number(-2, 2)
    return Case([a, b, c], attributes, tolerance=10)


@generator("MatMulInteger")
def matmul_integer(d: Draw) -> Case:
    a_type, b_type = d.type("T1"), d.type("T2")
    a, b = _matrices(d)
    inputs = [d.whole(a_type, a), d.whole(b_type, b)]
    # The standard's zero points a row and a column have shapes [m] and [n]; of vectors, one number.
    a_zero, b_zero = None, None
    if d.chance(0.6):
        a_zero = d.whole(a_type, [])
    if d.chance(0.6):
        b_zero = d.whole(b_type, [b[-1]] if len(b) == 2 and d.chance(0.5) else [])
    return Case([*inputs, a_zero, b_zero])


@generator("QLinearMatMul")
def qlinear_matmul(d: Draw) -> Case:
    a_type, b_type, y_type = d.type("T1"), d.type("T2"), d.type("T3")
    a, b = _matrices(d)
    scale = d.type("TS", FLOATS) if d.version >= 21 else np.dtype(np.float32)
    if not all(is_integer(t) for t in (a_type, b_type, y_type)):
        a_type = b_type = y_type = np.dtype(np.int8)
    inputs = [
        d.whole(a_type, a),
        d.array(scale, [], 0.01, 0.1),
        d.whole(a_type, []),
        d.whole(b_type, b),
        d.array(scale, [], 0.01, 0.1),
        d.whole(b_type, []),
        d.array(scale, [], 0.1, 0.5),
        d.whole(y_type, []),
    ]
    return Case(inputs, steps=1)


_EQUATIONS = (
    *("ij,jk->ik", "ij,jk", "bij,bjk->bik", "...ij,...jk->...ik", "i,j->ij", "ij->ji", "ii->i", "ii", "ij->"),
    *(
        "ij,ij->",
        "i,i",
        "bhqd,bhkd->bhqk",
        "ij,jk,kl->il",
        "ijk->kj",
        "...i->...",
        "a...,a...->...a",
        "ij,kj",
    ),
    *("b i j , b j k -> b i k", "iji->j", "ij,ij,ij->ij", "i...,i...->...", "abc,cd->abd", "ab,cd->abcd"),
)


@generator("Einsum")
def einsum(d: Draw) -> Case:
    dtype = d.type("T", None if d.chance(0.2) else PLAIN)
    equation = d.pick(_EQUATIONS)
    sizes: dict[str, int] = {}
    ellipsis = d.shape(0, 2, 3)
    inputs = []
    for term in equation.split("->")[0].replace(" ", "").split(","):
        before, dots, after = term.partition("...")
        shape = [sizes.setdefault(letter, d.size(5)) for letter in before]
        shape += ellipsis if dots else []
        shape += [sizes.setdefault(letter, d.size(5)) for letter in after]
        inputs.append(d.array(dtype, shape, -3, 3) if is_integer(dtype) else d.array(dtype, shape))
    return Case(inputs, {"equation": equation}, tolerance=10)


@generator("Det")
def det(d: Draw) -> Case:
    n = d.integer(1, 4)
    return Case([d.array(d.type("T", FLOATS), [*d.shape(0, 2, 3), n, n])], tolerance=50)
