"""Constants of a scope, in the forms that files have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import helper, numpy_helper
from properties.draw import F32, F64, I64

from .evaluate import Reject
from .value import Value

if TYPE_CHECKING:
    from .scope import Scope


class Weights:
    """What a scope knows of constants."""

    def constant(self, array: np.ndarray) -> Value:
        """Exactly this array: an initializer or a node, here or in a graph around."""
        array = np.asarray(array)
        scope = self
        while scope.parent is not None and self.random.chance(0.5):
            scope = scope.parent
        value = Value(self.model.name(), [array] * self.model.feeds, True)
        tensor = numpy_helper.from_array(array, value.name)
        if scope.function or self.random.chance(0.35):
            scope.nodes.append(helper.make_node("Constant", [], [value.name], **self._stored(array, tensor)))
        else:
            if array.dtype in (F32, F64, I64) and self.random.chance(0.3):
                # Elements as numbers instead of bytes.
                tensor = helper.make_tensor(value.name, tensor.data_type, array.shape, array.ravel())
            scope.initializers.append(tensor)
        self.model.values[value.name] = value
        return value

    def _stored(self, array: np.ndarray, tensor: onnx.TensorProto) -> dict:
        """The attribute of a Constant."""
        kind = {F32: "float", I64: "int"}.get(array.dtype)
        if kind and array.ndim < 2 and array.size and self.random.chance(0.4):
            return {f"value_{kind}s": array.tolist()} if array.ndim else {f"value_{kind}": array.item()}
        return {"value": tensor}

    def weight(self, array: np.ndarray) -> Value:
        """This array, now and then behind nodes that fold away."""
        array = np.asarray(array)
        random = self.random
        form = random.pick(["plain"] * 6 + ["identity", "reshaped", "transposed", "cast", "joined", "sliced"])
        if form == "plain" or array.size == 0 or array.dtype.kind not in "fiu" or array.dtype.itemsize < 1:
            return self.constant(array)
        try:
            with self.attempt():
                if form == "identity":
                    return self.emit("Identity", [self.constant(array)])
                if form == "reshaped":
                    return self.emit("Reshape", [self.constant(array.reshape(-1)), _shape(array.shape)])
                if form == "transposed" and array.ndim > 1:
                    order = random.permutation(array.ndim)
                    stored = np.ascontiguousarray(array.transpose(np.argsort(order)))
                    return self.emit("Transpose", [self.constant(stored)], perm=order)
                if form == "cast" and array.dtype in (F32, I64):
                    stored = array.astype(F64 if array.dtype == F32 else np.int32)
                    return self.cast(self.constant(stored), array.dtype)
                if form == "joined" and array.ndim and array.shape[0] > 1:
                    at = random.integer(1, array.shape[0] - 1)
                    parts = [self.constant(array[:at]), self.constant(array[at:])]
                    return self.emit("Concat", parts, axis=0)
                if form == "sliced" and array.ndim:
                    padded = np.concatenate([array, array])
                    bounds = [np.array([i], np.int64) for i in (array.shape[0], 2 * array.shape[0])]
                    return self.emit("Slice", [self.constant(padded), *bounds])
        except Reject:
            pass
        return self.constant(array)

    def weights(self, shape: Sequence[int], dtype: np.dtype | None = None, scale: float = 1.0) -> Value:
        """Random numbers of about this size, or a weight that others use too."""
        dtype = np.dtype(dtype or self.model.main)
        random, shape = self.random, tuple(shape)
        if random.chance(0.15):
            found = [
                v
                for v in self.visible()
                if v.constant
                and v.is_tensor
                and v.dtype == dtype
                and v.shapes[0] == shape
                and 0.1 * scale <= v.largest <= 4 * scale
            ]
            if found:
                return random.pick(found)
        array = np.asarray(random.rng.uniform(-scale, scale, shape)).astype(dtype)
        if dtype == F32 and random.chance(0.08) and len(shape) > 0 and array.size:
            return self.dequantized(array)
        value = self.weight(array)
        if value not in self.values and value.name in self.model.values and random.chance(0.5):
            self.root_for(value).values.append(value)
        return value

    def dequantized(self, array: np.ndarray) -> Value:
        """About this array, behind DequantizeLinear."""
        step = np.float32(max(float(np.abs(array).max()), 1e-3) / 127)
        stored = np.round(array / step).astype(np.int8)
        zero = np.int8(0) if self.random.chance(0.5) else None
        return self.emit("DequantizeLinear", [self.constant(stored), step, zero])

    def root_for(self, value: Value) -> Scope:
        """The scope where the value was made."""
        scope: Scope = self
        while scope.parent is not None:
            if any(value.name in n.output for n in scope.nodes):
                return scope
            if any(value.name == t.name for t in scope.initializers):
                return scope
            scope = scope.parent
        return scope

    def vector(self, arrays: list[np.ndarray]) -> Value:
        """Whole numbers that may depend on the feed, as a constant or as an input of the model."""
        same = all(np.array_equal(a, arrays[0]) for a in arrays)
        if self.in_function and not same:
            raise Reject("a function has no inputs of the model")
        if same and (self.in_function or not self.random.chance(0.1)):
            return self.weight(arrays[0])
        return self.model.input([arrays[0]] * len(arrays) if same else arrays)


def _shape(shape) -> np.ndarray:
    return np.array(shape, np.int64)
