"""Values: tensors, sequences, maps and optionals of the library, for who keeps them between runs."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_int64
from typing import Any

import numpy as np

from . import _dlpack, _values
from ._library import Handle, make, text
from ._types import KIND_OPTIONAL, KIND_SEQUENCE, KIND_TENSOR, element_of


class Value:
    """A tensor, sequence, map or optional. The methods have the names of ONNX Runtime's OrtValue."""

    __slots__ = ("_rukh_handle",)

    def __init__(self, thing: Any) -> None:
        """The value of a Python object: an array (shared, not copied), a list of them, a dict, None."""
        self._rukh_handle: Handle = thing if isinstance(thing, Handle) else _values.to_handle(thing)

    @staticmethod
    def ortvalue_from_numpy(array: Any, device_type: str = "cpu", device_id: int = 0) -> Value:
        """A tensor over the array's memory where that allows it; else over that of a copy."""
        check_device(device_type, device_id)
        return Value(_values.tensor_over(np.asarray(array)))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int], element_type: Any = np.float32, device_type: str = "cpu", device_id: int = 0
    ) -> Value:
        """A tensor of zeros. `element_type`: a NumPy type, or a number or name as in ONNX."""
        check_device(device_type, device_id)
        dims = (c_int64 * len(shape))(*shape)
        return Value(make("value", "value_create_tensor", element_of(element_type), dims, len(shape)))

    @staticmethod
    def from_dlpack(thing: Any) -> Value:
        """A tensor over the memory of an object that offers `__dlpack__`, or of a capsule."""
        return Value(_dlpack.import_tensor(thing))

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule for another library, which shares the elements."""
        if stream is not None:
            raise ValueError(f"stream is {stream!r}; for the CPU only None is allowed")
        if dl_device is not None and tuple(dl_device) != _dlpack.CPU_DEVICE:
            raise BufferError(f"dl_device is {dl_device}; allowed is {_dlpack.CPU_DEVICE}, the CPU")
        if copy:
            return Value(self.numpy().copy()).__dlpack__(max_version=max_version)
        return _dlpack.export_tensor(self._rukh_handle, max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _dlpack.CPU_DEVICE

    def numpy(self) -> np.ndarray:
        """A tensor's elements, without a copy (but for strings)."""
        return _values.to_numpy(self._rukh_handle)

    def to_python(self) -> Any:
        """An array for a tensor, a list for a sequence, a dict for a map; an optional gives what it
        holds, or None."""
        return _values.to_python(self._rukh_handle)

    def shape(self) -> list[int]:
        return list(_values.shape_of(self._rukh_handle))

    def element_type(self) -> int:
        """The number of the element type, as in TensorProto.DataType."""
        return _values.element_type_of(self._rukh_handle)

    def data_type(self) -> str:
        """The type as the standard writes it: "tensor(float)"."""
        return text("value_type_text", self._rukh_handle)

    def data_ptr(self) -> int:
        """The address of a tensor's elements."""
        return _values.data_of(self._rukh_handle)[0]

    def device_name(self) -> str:
        return "cpu"

    def has_value(self) -> bool:
        """False for an empty optional."""
        return not (_values.kind_of(self._rukh_handle) == KIND_OPTIONAL and self.to_python() is None)

    def is_tensor(self) -> bool:
        return _values.kind_of(self._rukh_handle) == KIND_TENSOR

    def is_tensor_sequence(self) -> bool:
        return _values.kind_of(self._rukh_handle) == KIND_SEQUENCE

    def update_inplace(self, array: np.ndarray) -> None:
        """Writes the elements of an array of the same type and shape into the tensor's memory."""
        own = self.numpy()
        if array.shape != own.shape or array.dtype != own.dtype:
            raise ValueError(
                f"an array of {array.dtype} {array.shape} was given for a tensor of {own.dtype} "
                f"{own.shape}; allowed is the same type and shape"
            )
        own[...] = array

    def __repr__(self) -> str:
        shape = self.shape() if self.is_tensor() else ""
        return f"<rukh.Value {self.data_type()}{shape}>"


OrtValue = Value


def check_device(device_type: str, device_id: int) -> None:
    """Values lie in the memory of the host."""
    if device_type.lower() != "cpu" or device_id != 0:
        raise ValueError(f"device {device_type!r} {device_id} was given; allowed is 'cpu' 0")
