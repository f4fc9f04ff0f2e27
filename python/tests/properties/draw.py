"""Random sizes, types and values for one case of one operator."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

# The operator sets that are tried: each in which many operators changed, up to the newest.
OPSETS = (9, 11, 13, 17, 21, 28)

F16, F32, F64, BF16 = (np.dtype(t) for t in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16))
I64 = np.dtype(np.int64)
STRING = np.dtype(object)
# NumPy's type for the standard's type names, as far as tests draw them.
DTYPE_NAMED = {
    f"tensor({name})": np.dtype(dtype)
    for name, dtype in {
        "float": np.float32,
        "double": np.float64,
        "float16": np.float16,
        "bfloat16": ml_dtypes.bfloat16,
        "int8": np.int8,
        "int16": np.int16,
        "int32": np.int32,
        "int64": np.int64,
        "uint8": np.uint8,
        "uint16": np.uint16,
        "uint32": np.uint32,
        "uint64": np.uint64,
        "bool": np.bool_,
        "string": object,
        "complex64": np.complex64,
        "complex128": np.complex128,
        "float8e4m3fn": ml_dtypes.float8_e4m3fn,
        "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
        "float8e5m2": ml_dtypes.float8_e5m2,
        "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
        "float8e8m0": ml_dtypes.float8_e8m0fnu,
        "int4": ml_dtypes.int4,
        "uint4": ml_dtypes.uint4,
        "float4e2m1": ml_dtypes.float4_e2m1fn,
        "int2": ml_dtypes.int2,
        "uint2": ml_dtypes.uint2,
    }.items()
}
FLOATS = (F32, F32, F64, F16, BF16)
PLAIN = tuple(DTYPE_NAMED[f"tensor({n})"] for n in "float double int8 int16 int32 int64 uint8 uint16".split())


@dataclasses.dataclass
class Case:
    """One node with its inputs."""

    inputs: Sequence[np.ndarray | None]
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)
    outputs: int = 1
    # Of the tolerance for the output's type, for what sums many products.
    tolerance: float = 1.0
    # Of quantized outputs: by how many steps two correct roundings may differ.
    steps: int = 0
    # Outputs that the standard leaves open in this case.
    unspecified: Sequence[int] = ()
    # Whether half types may be computed in float32 and rounded once, as the library does.
    widen: bool = True


class Random:
    """Random choices. Equal seeds give equal ones."""

    def __init__(self, *seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def integer(self, low: int, high: int) -> int:
        """low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[self.integer(0, len(choices) - 1)]

    def number(self, low: float, high: float) -> float:
        """A number that float32 has."""
        return float(np.float32(self.rng.uniform(low, high)))

    def size(self, high: int = 5, zero: float = 0.04) -> int:
        """A dimension, now and then 0 or 1."""
        if self.chance(zero):
            return 0
        return 1 if self.chance(0.15) else self.integer(1, high)

    def shape(self, low: int = 0, high: int = 4, largest: int = 5, zero: float = 0.04) -> list[int]:
        return [self.size(largest, zero) for _ in range(self.integer(low, high))]

    def permutation(self, count: int) -> list[int]:
        return [int(i) for i in self.rng.permutation(count)]

    def subset(self, count: int, least: int = 0) -> list[int]:
        """Different numbers below `count`, in any order."""
        return self.permutation(count)[: self.integer(min(least, count), count)]

    def axis(self, rank: int, negative: bool = True) -> int:
        axis = self.integer(0, rank - 1)
        return axis - rank if negative and self.chance(0.4) else axis

    def axes(self, rank: int, least: int = 0, negative: bool = True) -> list[int]:
        return [a - rank if negative and self.chance(0.3) else a for a in self.subset(rank, least)]

    def array(
        self,
        dtype: np.dtype,
        shape: Sequence[int],
        low: float | None = None,
        high: float | None = None,
    ) -> np.ndarray:
        """Random elements. Without bounds floats are normal, integers lie within ±10 (unsigned: 0 to 20)."""
        dtype, shape = np.dtype(dtype), tuple(shape)
        if dtype == STRING:
            words = self.rng.choice(["", "a", "bc", "ä", "rukh", "日本"], shape)
            return np.array(words.tolist(), dtype=object).reshape(shape)
        if dtype == np.bool_:
            return np.asarray(self.rng.random(shape) < 0.5)
        if dtype.kind == "c":
            return np.asarray(self.rng.normal(size=shape) + 1j * self.rng.normal(size=shape)).astype(dtype)
        if is_integer(dtype):
            info = ml_dtypes.iinfo(dtype)
            low = -10 if low is None else low
            high = 10 if high is None else high
            if info.min == 0 and low < 0:
                low, high = 0, high - low
            low, high = max(int(low), int(info.min)), min(int(high), int(info.max))
            kind = np.uint64 if high > np.iinfo(np.int64).max else np.int64
            return np.asarray(self.rng.integers(low, high, shape, dtype=kind, endpoint=True)).astype(dtype)
        if low is None and high is None:
            values = self.rng.normal(size=shape)
        else:
            values = self.rng.uniform(low, high, shape)
        if dtype == ml_dtypes.float8_e8m0fnu:
            values = np.exp2(np.round(values))
        return np.asarray(values).astype(np.float32).astype(dtype) if dtype != F64 else np.asarray(values)

    def whole(self, dtype: np.dtype, shape: Sequence[int]) -> np.ndarray:
        """Integers of the type's whole range."""
        info = ml_dtypes.iinfo(dtype)
        return self.array(dtype, shape, int(info.min), int(info.max))

    def distinct(self, dtype: np.dtype, shape: Sequence[int]) -> np.ndarray:
        """Elements that all differ, as far as the type has so many."""
        count = int(np.prod(shape))
        values = self.rng.permutation(count) - (0 if dtype.kind == "u" else count // 2)
        return values.reshape(tuple(shape)).astype(dtype)

    def index(self, low: int, high: int, shape: Sequence[int], dtype: np.dtype = I64) -> np.ndarray:
        """Integers from low to high, both included."""
        return np.asarray(self.rng.integers(low, high + 1, tuple(shape))).astype(dtype)

    def broadcast(self, shape: Sequence[int]) -> list[int]:
        """A shape that broadcasts to `shape`: leading axes left out, some sizes 1."""
        kept = list(shape)[self.integer(0, len(shape)) if self.chance(0.5) else 0 :]
        return [1 if self.chance(0.3) else size for size in kept]


class Draw(Random):
    """Random choices for one case. The same seed, operator and index give the same case."""

    def __init__(self, seed: int, operator: str, index: int, opset: int) -> None:
        super().__init__(seed, zlib.crc32(operator.encode()), index)
        self.operator = operator
        self.opset = opset
        self.schema = onnx.defs.get_schema(operator, opset)
        self.version = self.schema.since_version

    def types(self, variable: str) -> list[np.dtype]:
        """The element types that the schema allows for a type variable or a parameter."""
        for constraint in self.schema.type_constraints:
            if constraint.type_param_str == variable:
                return [DTYPE_NAMED[t] for t in constraint.allowed_type_strs if t in DTYPE_NAMED]
        raise KeyError(f"{self.operator} has no type variable {variable}")

    def type(self, variable: str = "T", among: Sequence[np.dtype] | None = None) -> np.dtype:
        """A type of the schema; of `among`, where repeating one makes it more likely."""
        allowed = self.types(variable)
        return self.pick([t for t in among if t in allowed] if among else allowed)


def is_integer(dtype: np.dtype) -> bool:
    return dtype.kind in "iu" or dtype in [
        DTYPE_NAMED[f"tensor({n})"] for n in ("int4", "uint4", "int2", "uint2")
    ]


Generator = Callable[[Draw], Case]
GENERATORS: dict[str, Generator] = {}


def generator(*operators: str) -> Callable[[Generator], Generator]:
    """Registers a function that draws cases of these operators."""

    def register(function: Generator) -> Generator:
        for operator in operators:
            GENERATORS[operator] = function
        return function

    return register


def opsets_of(operator: str) -> list[int]:
    """The opsets that are tried for an operator."""
    found = []
    for opset in OPSETS:
        try:
            schema = onnx.defs.get_schema(operator, opset)
        except onnx.defs.SchemaError:
            continue
        if not schema.deprecated:
            found.append(opset)
    return found


def element_of(dtype: np.dtype) -> int:
    return onnx.TensorProto.STRING if dtype == STRING else helper.np_dtype_to_tensor_dtype(dtype)
