"""Element types, their NumPy types, and the types of values as the ONNX standard writes them."""

from __future__ import annotations

import re
from typing import NamedTuple

import ml_dtypes
import numpy as np

from . import _constants
from ._constants import KIND_MAP as KIND_MAP
from ._constants import KIND_OPTIONAL as KIND_OPTIONAL
from ._constants import KIND_SEQUENCE as KIND_SEQUENCE
from ._constants import KIND_TENSOR as KIND_TENSOR
from ._constants import KIND_UNDEFINED as KIND_UNDEFINED

STRING = _constants.ELEMENT_STRING

# (name as in "tensor(NAME)", NumPy type of an element in memory). Numbers are those of TensorProto.DataType.
# Types narrower than a byte take a byte each, in NumPy as in the library.
_ELEMENTS = (
    ("float", np.float32),
    ("uint8", np.uint8),
    ("int8", np.int8),
    ("uint16", np.uint16),
    ("int16", np.int16),
    ("int32", np.int32),
    ("int64", np.int64),
    ("string", np.object_),
    ("bool", np.bool_),
    ("float16", np.float16),
    ("double", np.float64),
    ("uint32", np.uint32),
    ("uint64", np.uint64),
    ("complex64", np.complex64),
    ("complex128", np.complex128),
    ("bfloat16", ml_dtypes.bfloat16),
    ("float8e4m3fn", ml_dtypes.float8_e4m3fn),
    ("float8e4m3fnuz", ml_dtypes.float8_e4m3fnuz),
    ("float8e5m2", ml_dtypes.float8_e5m2),
    ("float8e5m2fnuz", ml_dtypes.float8_e5m2fnuz),
    ("uint4", ml_dtypes.uint4),
    ("int4", ml_dtypes.int4),
    ("float4e2m1", ml_dtypes.float4_e2m1fn),
    ("float8e8m0", ml_dtypes.float8_e8m0fnu),
    ("uint2", ml_dtypes.uint2),
    ("int2", ml_dtypes.int2),
    ("float6e2m3", ml_dtypes.float6_e2m3fn),
    ("float6e3m2", ml_dtypes.float6_e3m2fn),
)

ELEMENT_NAMED: dict[str, int] = {
    name: getattr(_constants, f"ELEMENT_{name.upper()}") for name, _ in _ELEMENTS
}
NAME_OF = {number: name for name, number in ELEMENT_NAMED.items()}
DTYPE_OF = {ELEMENT_NAMED[name]: np.dtype(dtype) for name, dtype in _ELEMENTS}
ELEMENT_OF = {dtype: number for number, dtype in DTYPE_OF.items()}


def element_of(dtype: object) -> int:
    """The element type for a NumPy type, a name such as "float", or a number as in ONNX."""
    if isinstance(dtype, np.dtype) and (element := ELEMENT_OF.get(dtype)) is not None:
        return element
    if isinstance(dtype, (int, np.integer)) and int(dtype) in DTYPE_OF:
        return int(dtype)
    if isinstance(dtype, str) and dtype in ELEMENT_NAMED:
        return ELEMENT_NAMED[dtype]
    try:
        wanted = np.dtype(dtype)  # type: ignore[call-overload]
    except TypeError:
        wanted = None
    if wanted is not None:
        if wanted.kind in "UST":
            return STRING
        if (element := ELEMENT_OF.get(wanted.newbyteorder("="))) is not None:
            return element
        if wanted.kind == "V" and wanted.fields is None and wanted.name.startswith("void"):
            # Bytes of one length.
            return STRING
    allowed = ", ".join(str(d) for d in DTYPE_OF.values())
    raise TypeError(f"elements of type {dtype!r} have no ONNX type; allowed are {allowed}")


# The bits of a byte that elements of types narrower than a byte take.
NARROW_BITS = {
    _constants.ELEMENT_UINT4: 0x0F,
    _constants.ELEMENT_INT4: 0x0F,
    _constants.ELEMENT_FLOAT4E2M1: 0x0F,
    _constants.ELEMENT_UINT2: 0x03,
    _constants.ELEMENT_INT2: 0x03,
    _constants.ELEMENT_FLOAT6E2M3: 0x3F,
    _constants.ELEMENT_FLOAT6E3M2: 0x3F,
}


class ValueType(NamedTuple):
    """The type of a value: what it is, and what is inside."""

    kind: int
    element: int  # of the tensors inside; 0 when it is not known
    inner: ValueType | None = None  # of the items of a sequence, map or optional
    key: int = 0  # element type of a map's keys


UNKNOWN = ValueType(KIND_UNDEFINED, 0)


def plain_text(text: str) -> str:
    """A type text without shapes: "tensor(float)[batch, 3]" becomes "tensor(float)"."""
    return re.sub(r"\[[^\]]*\]", "", text).replace(" ", "")


def parse_type(text: str) -> ValueType:
    """The type that a text such as "seq(tensor(int64))" stands for; UNKNOWN for any other text."""
    match = re.fullmatch(r"(\w+)\((.*)\)", plain_text(text))
    if match is None:
        return UNKNOWN
    word, inside = match.groups()
    if word in ("tensor", "sparse_tensor"):
        return ValueType(KIND_TENSOR, ELEMENT_NAMED.get(inside, 0))
    if word in ("seq", "optional"):
        inner = parse_type(inside)
        return ValueType(KIND_SEQUENCE if word == "seq" else KIND_OPTIONAL, inner.element, inner)
    if word == "map":
        key, _, rest = inside.partition(",")
        inner = parse_type(rest)
        return ValueType(KIND_MAP, inner.element, inner, ELEMENT_NAMED.get(key, 0))
    return UNKNOWN
