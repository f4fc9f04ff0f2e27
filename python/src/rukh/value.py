"""Values: tensors, sequences, maps and optionals of the library, for who keeps them between runs."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_int64
from typing import Any

import numpy as np

from . import _device, _dlpack, _values
from ._library import Handle, make, text
from ._types import DTYPE_OF, KIND_OPTIONAL, KIND_SEQUENCE, KIND_TENSOR, STRING, element_of


class Value:
    """A tensor, sequence, map or optional. The methods have the names of ONNX Runtime's OrtValue."""

    __slots__ = ("_rukh_handle",)

    def __init__(self, thing: Any) -> None:
        """The value of a Python object: an array (shared, not copied), a list of them, a dict, None."""
        self._rukh_handle: Handle = thing if isinstance(thing, Handle) else _values.to_handle(thing)

    @staticmethod
    def ortvalue_from_numpy(array: Any, device_type: str = "cpu", device_id: int = 0) -> Value:
        """A tensor over the array's memory where that allows it, else over that of a copy; for a GPU ("hip")
        a copy in its memory."""
        host = Value(_values.tensor_over(np.asarray(array)))
        device = _device.number(device_type, device_id)
        if device is None:
            return host
        there = Value(_device.tensor(host.element_type(), host.shape(), device))
        _device.copy(host._rukh_handle, there._rukh_handle)
        return there

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int], element_type: Any = np.float32, device_type: str = "cpu", device_id: int = 0
    ) -> Value:
        """A tensor of zeros; on a GPU ("hip") of unspecified content. `element_type`: a NumPy type, or a
        number or name as in ONNX."""
        device = _device.number(device_type, device_id)
        if device is not None:
            return Value(_device.tensor(element_of(element_type), shape, device))
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
        """A capsule for another library, which shares the elements. On a GPU nothing is queued on them when
        this returns, so that any `stream` may use them."""
        own = self.__dlpack_device__()
        if stream is not None and own == _dlpack.CPU_DEVICE:
            raise ValueError(f"stream is {stream!r}; for the CPU only None is allowed")
        if dl_device is not None and tuple(dl_device) not in (own, _dlpack.CPU_DEVICE):
            raise BufferError(f"dl_device is {dl_device}; allowed are {own} and the CPU, {_dlpack.CPU_DEVICE}")
        to_host = dl_device is not None and tuple(dl_device) != own
        if to_host and copy is False:
            raise BufferError(f"dl_device is {dl_device} and copy is False; the tensor is on {own}")
        if copy and not to_host and own != _dlpack.CPU_DEVICE:
            return Value.ortvalue_from_numpy(self.numpy(), "hip", own[1]).__dlpack__(max_version=max_version)
        if copy or to_host:
            return Value(self.numpy().copy()).__dlpack__(max_version=max_version)
        return _dlpack.export_tensor(self._rukh_handle, max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _dlpack.device_of(self._rukh_handle)

    def numpy(self) -> np.ndarray:
        """A tensor's elements, without a copy (but for strings and what is on a GPU)."""
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
        """The address of a tensor's elements, in the memory of the device that it is on."""
        device = _device.of(self._rukh_handle)
        return device[1] if device else _values.data_of(self._rukh_handle)[0]

    def device_name(self) -> str:
        """ "hip" for a tensor in the memory of a GPU, else "cpu"."""
        return "hip" if self.is_tensor() and self._device() else "cpu"

    def has_value(self) -> bool:
        """False for an empty optional."""
        return not (_values.kind_of(self._rukh_handle) == KIND_OPTIONAL and self.to_python() is None)

    def is_tensor(self) -> bool:
        return _values.kind_of(self._rukh_handle) == KIND_TENSOR

    def is_tensor_sequence(self) -> bool:
        return _values.kind_of(self._rukh_handle) == KIND_SEQUENCE

    def update_inplace(self, array: np.ndarray) -> None:
        """Writes the elements of an array of the same type and shape into the tensor's memory."""
        shape, dtype = tuple(self.shape()), DTYPE_OF[self.element_type()]
        if array.shape != shape or array.dtype != dtype:
            raise ValueError(
                f"an array of {array.dtype} {array.shape} was given for a tensor of {dtype} "
                f"{shape}; allowed is the same type and shape"
            )
        if self._device():
            _device.copy(_values.tensor_over(array), self._rukh_handle)
        else:
            self.numpy()[...] = array

    def _device(self) -> tuple[int, int] | None:
        # Strings are on no device.
        return None if self.element_type() == STRING else _device.of(self._rukh_handle)

    def __repr__(self) -> str:
        shape = self.shape() if self.is_tensor() else ""
        return f"<rukh.Value {self.data_type()}{shape}>"


OrtValue = Value

