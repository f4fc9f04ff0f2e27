"""Sparse tensors: values with the places they have in a tensor of zeros.

The library computes with dense tensors; a sparse one that is fed to a run goes there with its zeros.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._errors import UnsupportedError
from ._types import NAME_OF, STRING, element_of
from .devices import OrtDevice
from .enums import OrtSparseFormat


def _fixed(array: Any, dtype: Any = None) -> np.ndarray:
    """An array that nobody writes through: a view where it can be, which keeps the original alive."""
    found = np.ascontiguousarray(array, dtype=dtype).view()
    found.flags.writeable = False
    return found


class SparseCooView:
    """The places of values, each by its number or by its coordinates."""

    def __init__(self, indices: np.ndarray) -> None:
        self._indices = indices

    def indices(self) -> np.ndarray:
        return self._indices


class SparseCsrView:
    """The places of values by rows: `inner` has the columns, `outer` where each row begins."""

    def __init__(self, inner: np.ndarray, outer: np.ndarray) -> None:
        self._inner, self._outer = inner, outer

    def inner(self) -> np.ndarray:
        return self._inner

    def outer(self) -> np.ndarray:
        return self._outer


class SparseBlockSparseView:
    """The places of blocks."""

    def __init__(self, indices: np.ndarray) -> None:
        self._indices = indices

    def indices(self) -> np.ndarray:
        return self._indices


class SparseTensor:
    """Made by the functions `..._from_numpy`; see the ONNX Runtime methods of the same names."""

    def __init__(
        self, kind: OrtSparseFormat, shape: Sequence[int], values: Any, *indices: np.ndarray
    ) -> None:
        self._format, self._shape = kind, [int(size) for size in shape]
        self._values, self._indices = _fixed(values), indices

    @classmethod
    def sparse_coo_from_numpy(
        cls, dense_shape: Sequence[int], values: np.ndarray, coo_indices: np.ndarray, ort_device: OrtDevice
    ) -> SparseTensor:
        _on_host(ort_device)
        indices = _fixed(coo_indices, np.int64)
        shape = [int(size) for size in dense_shape]
        if indices.size not in (len(values), len(shape) * len(values)):
            raise ValueError(
                f"{indices.size} indices were given for {len(values)} values in {len(shape)} dimensions; "
                f"allowed are one for each value, or one for each value and dimension"
            )
        return cls(OrtSparseFormat.ORT_SPARSE_COO, shape, values, indices)

    @classmethod
    def sparse_csr_from_numpy(
        cls,
        dense_shape: Sequence[int],
        values: np.ndarray,
        inner_indices: np.ndarray,
        outer_indices: np.ndarray,
        ort_device: OrtDevice,
    ) -> SparseTensor:
        _on_host(ort_device)
        inner, outer = _fixed(inner_indices, np.int64), _fixed(outer_indices, np.int64)
        shape = [int(size) for size in dense_shape]
        if len(shape) != 2 or inner.size != len(values) or outer.size not in (0, shape[0] + 1):
            raise ValueError(
                f"{inner.size} inner and {outer.size} outer indices were given for {len(values)} values in the "
                f"shape {shape}; wanted are two dimensions, an inner index for each value, and an outer one for "
                f"each row and one more"
            )
        return cls(OrtSparseFormat.ORT_SPARSE_CSRC, shape, values, inner, outer)

    @classmethod
    def blocksparse_from_numpy(
        cls, dense_shape: Sequence[int], values: np.ndarray, block_indices: np.ndarray, ort_device: OrtDevice
    ) -> SparseTensor:
        _on_host(ort_device)
        indices = _fixed(block_indices, np.int32)
        return cls(OrtSparseFormat.ORT_SPARSE_BLOCK_SPARSE, dense_shape, values, indices)

    def values(self) -> np.ndarray:
        return self._values

    def as_coo_view(self) -> SparseCooView:
        return SparseCooView(*self._places(OrtSparseFormat.ORT_SPARSE_COO))

    def as_csrc_view(self) -> SparseCsrView:
        return SparseCsrView(*self._places(OrtSparseFormat.ORT_SPARSE_CSRC))

    def as_blocksparse_view(self) -> SparseBlockSparseView:
        return SparseBlockSparseView(*self._places(OrtSparseFormat.ORT_SPARSE_BLOCK_SPARSE))

    get_coo_data, get_csrc_data, get_blocksparse_data = as_coo_view, as_csrc_view, as_blocksparse_view

    def to_cuda(self, ort_device: OrtDevice) -> SparseTensor:
        raise UnsupportedError(
            "sparse tensors are on the CPU; a GPU gets them with their zeros, when a run wants them"
        )

    def format(self) -> OrtSparseFormat:
        return self._format

    def dense_shape(self) -> list[int]:
        return list(self._shape)

    def data_type(self) -> str:
        return f"sparse_tensor({NAME_OF[element_of(self._values.dtype)]})"

    def device_name(self) -> str:
        return "cpu"

    def to_dense(self) -> np.ndarray:
        """The tensor with its zeros (empty texts for strings)."""
        text = element_of(self._values.dtype) == STRING
        dense = np.full(self._shape, "", object) if text else np.zeros(self._shape, self._values.dtype)
        flat = dense.reshape(-1)
        if self._format == OrtSparseFormat.ORT_SPARSE_COO:
            (indices,) = self._indices
            if indices.size != len(self._values) or indices.ndim == 2:
                indices = np.ravel_multi_index(
                    tuple(indices.reshape(-1, len(self._shape)).T), tuple(self._shape)
                )
            flat[indices] = self._values
        elif self._format == OrtSparseFormat.ORT_SPARSE_CSRC:
            inner, outer = self._indices
            rows = np.repeat(np.arange(max(outer.size - 1, 0)), np.diff(outer))
            flat[rows * self._shape[1] + inner] = self._values
        else:
            self._fill_blocks(dense)
        return dense

    def _fill_blocks(self, dense: np.ndarray) -> None:
        """Values have the shape (blocks, height, width); the indices are the blocks' rows and columns."""
        (indices,) = self._indices
        height, width = self._values.shape[-2:]
        for block, (row, column) in zip(self._values.reshape(-1, height, width), indices.reshape(2, -1).T):
            dense[row * height : (row + 1) * height, column * width : (column + 1) * width] = block

    def _places(self, wanted: OrtSparseFormat) -> tuple[np.ndarray, ...]:
        if self._format != wanted:
            raise RuntimeError(f"the sparse tensor has the format {self._format.name}, not {wanted.name}")
        return self._indices

    def _get_c_tensor(self) -> SparseTensor:
        return self

    def __repr__(self) -> str:
        return (
            f"<rukh.SparseTensor {self.data_type()}{self._shape} of {math.prod(self._values.shape)} values>"
        )


def _on_host(device: OrtDevice) -> None:
    if device.device_type() != OrtDevice.cpu():
        raise UnsupportedError(
            "sparse tensors are made over memory of the CPU; allowed is OrtDevice.make('cpu', 0)"
        )
