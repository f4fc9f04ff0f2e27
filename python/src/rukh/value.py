"""Values: tensors, sequences, maps and optionals of the library, for who keeps them between runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from ctypes import c_int64
from typing import Any

import numpy as np

from . import _device, _dlpack, _values
from ._errors import InvalidArgumentError
from ._library import Handle, array_of, make, text
from ._types import DTYPE_OF, ELEMENT_NAMED, KIND_OPTIONAL, KIND_SEQUENCE, KIND_TENSOR, STRING, element_of
from .devices import OrtDevice, OrtMemoryInfo
from .enums import OrtMemoryInfoDeviceType
from .sparse import SparseTensor
from .streams import OrtSyncStream


class Value:
    """A tensor, sequence, map or optional. The methods have the names of ONNX Runtime's OrtValue."""

    __slots__ = ("__weakref__", "_rukh_handle", "_sparse")

    def __init__(self, thing: Any, *_: Any) -> None:
        """The value of a Python object: an array (shared, not copied), a list of them, a dict, None."""
        self._sparse: SparseTensor | None = getattr(thing, "_sparse", None)
        self._rukh_handle: Handle = thing if isinstance(thing, Handle) else _values.to_handle(thing)

    @staticmethod
    def ortvalue_from_numpy(
        array: Any, device_type: str | OrtDevice = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> Value:
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
    def ortvalue_from_numpy_with_onnx_type(data: np.ndarray, onnx_element_type: int) -> Value:
        """A tensor over the array's memory whose bytes are elements of another type of the same size: what is
        computed in uint16 and meant as bfloat16 (16)."""
        element = element_of(onnx_element_type)
        if element == STRING or data.itemsize != DTYPE_OF[element].itemsize:
            raise InvalidArgumentError(
                f"an array of {data.dtype} was given for elements of type {onnx_element_type}, "
                f"{DTYPE_OF[element]}; allowed are types of the same size"
            )
        array = np.ascontiguousarray(data)
        handle = _values.memory_over(element, array.shape, _values.address_of(array), array.nbytes, array)
        return Value(handle)

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int],
        element_type: Any = np.float32,
        device_type: str | OrtDevice = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: OrtMemoryInfo | None = None,
    ) -> Value:
        """A tensor of zeros; on a GPU ("hip") of unspecified content. `element_type`: a NumPy type, or a
        number or name as in ONNX. `memory_info`: whose memory it is, instead of the device."""
        if memory_info is not None:
            host = memory_info._kind == OrtMemoryInfoDeviceType.CPU
            device_type, device_id = ("cpu", 0) if host else ("hip", memory_info.device_id)
        device = _device.number(device_type, device_id)
        if device is not None:
            return Value(_device.tensor(element_of(element_type), shape, device))
        dims = array_of(c_int64, shape)
        return Value(make("value", "value_create_tensor", element_of(element_type), dims, len(shape)))

    ortvalue_from_shape_and_onnx_type = ortvalue_from_shape_and_type

    @staticmethod
    def ort_value_from_sparse_tensor(sparse_tensor: SparseTensor) -> Value:
        """The tensor, which runs get with its zeros."""
        value = Value(sparse_tensor.to_dense())
        value._sparse = sparse_tensor
        return value

    def as_sparse_tensor(self) -> SparseTensor:
        """What `ort_value_from_sparse_tensor` was given; of a dense tensor, as outputs are here, the elements that
        are not zero with their places."""
        if self._sparse is not None:
            return self._sparse
        if not self.is_tensor():
            raise RuntimeError(f"the value is a {self.data_type()}, no sparse tensor")
        elements = self.numpy()
        places = np.flatnonzero(elements)
        return SparseTensor.sparse_coo_from_numpy(
            elements.shape, elements.ravel()[places], places, OrtDevice.make("cpu", 0)
        )

    @staticmethod
    def from_dlpack(thing: Any, is_bool_tensor: bool = False) -> Value:
        """A tensor over the memory of an object that offers `__dlpack__`, or of a capsule. `is_bool_tensor`:
        its bytes are booleans, which older libraries have no other way to say."""
        value = Value(_dlpack.import_tensor(thing))
        if is_bool_tensor and value.element_type() == ELEMENT_NAMED["uint8"]:
            return Value(value.numpy().view(np.bool_))
        return value

    def to_dlpack(self) -> Any:
        """A capsule in the layout before DLPack 1.0."""
        return self.__dlpack__()

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
            raise BufferError(
                f"dl_device is {dl_device}; allowed are {own} and the CPU, {_dlpack.CPU_DEVICE}"
            )
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
        if self._sparse is not None:
            return self._sparse.data_type()
        return text("value_type_text", self._rukh_handle)

    def data_ptr(self) -> int:
        """The address of a tensor's elements, in the memory of the device that it is on."""
        device = _device.of(self._rukh_handle)
        return device[1] if device else _values.data_of(self._rukh_handle)[0]

    def memory_kind(self) -> str:
        """Where a tensor's elements are: "device", "pinned" (on the host, for a GPU) or "host"."""
        return _device.memory_kind(self._rukh_handle)

    def device_name(self) -> str:
        """ "hip" for a tensor in the memory of a GPU, else "cpu"."""
        return "hip" if self.is_tensor() and self._device() else "cpu"

    def has_value(self) -> bool:
        """False for an empty optional."""
        return not (_values.kind_of(self._rukh_handle) == KIND_OPTIONAL and self.to_python() is None)

    def tensor_size_in_bytes(self) -> int:
        """What a tensor's elements take."""
        return math.prod(self.shape()) * DTYPE_OF[self.element_type()].itemsize

    def is_sparse_tensor(self) -> bool:
        return self._sparse is not None

    def is_tensor(self) -> bool:
        return self._sparse is None and _values.kind_of(self._rukh_handle) == KIND_TENSOR

    def is_tensor_sequence(self) -> bool:
        return _values.kind_of(self._rukh_handle) == KIND_SEQUENCE

    def update_inplace(self, data: np.ndarray | Value) -> None:
        """Writes the elements of an array or a value of the same type and shape into the tensor's memory."""
        if isinstance(data, Value):
            _device.copy(data._rukh_handle, self._rukh_handle)
            return
        if not isinstance(data, np.ndarray):
            raise TypeError(f"data must be a numpy.ndarray or an OrtValue; {type(data).__name__} was given")
        shape, dtype = tuple(self.shape()), DTYPE_OF[self.element_type()]
        if data.shape != shape or data.dtype != dtype:
            raise InvalidArgumentError(
                f"an array of {data.dtype} {data.shape} was given for a tensor of {dtype} "
                f"{shape}; allowed is the same type and shape"
            )
        if self._device():
            _device.copy(_values.tensor_over(data), self._rukh_handle)
        else:
            self.numpy()[...] = data

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """For `np.asarray(value)`."""
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"elements of {array.dtype} become {dtype} by a copy, and copy is False")
            return array.astype(dtype)
        return array.copy() if copy else array

    def _get_c_value(self) -> Value:
        return self

    @property
    def _ortvalue(self) -> Value:
        return self

    def _device(self) -> tuple[int, int] | None:
        # Strings are on no device.
        return None if self.element_type() == STRING else _device.of(self._rukh_handle)

    def __repr__(self) -> str:
        shape = self.shape() if self.is_tensor() else ""
        return f"<rukh.OrtValue {self.data_type()}{shape}>"


OrtValue = Value


class OrtValueVector(list[Value]):
    """Values in order, as ONNX Runtime's inner functions take and give them."""

    def push_back(self, value: Any, is_bool_tensor: bool = False) -> None:
        """Adds a value, or a tensor of another library by DLPack."""
        self.append(value if isinstance(value, Value) else Value.from_dlpack(value, is_bool_tensor))

    def reserve(self, size: int) -> None:
        """Nothing to do."""

    def shrink_to_fit(self) -> None:
        """Nothing to do."""

    def dlpack_at(self, index: int) -> Any:
        return self[index].to_dlpack()

    def element_type_at(self, index: int) -> int:
        return self[index].element_type()

    def bool_tensor_indices(self) -> list[int]:
        return [i for i, value in enumerate(self) if value.element_type() == ELEMENT_NAMED["bool"]]

    def to_dlpacks(self, to_tensor: Callable[[Any], Any] | None) -> list[Any]:
        """A capsule for each value, or what `to_tensor` makes of it."""
        capsules = [value.to_dlpack() for value in self]
        return capsules if to_tensor is None else [to_tensor(capsule) for capsule in capsules]


def copy_tensors(src: Sequence[Value], dst: Sequence[Value], stream: OrtSyncStream | None = None) -> None:
    """Copies the elements of tensors into others of the same types and shapes, wherever they are. With a stream the copies
    are queued there: `stream.wait()` waits for them."""
    if len(src) != len(dst):
        raise InvalidArgumentError(f"{len(src)} tensors were given to copy into {len(dst)}")
    for source, target in zip(src, dst):
        copy = _device.copy if stream is None else stream.copy
        copy(source._rukh_handle, target._rukh_handle)
