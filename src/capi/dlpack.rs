//! Tensors to and from other libraries through DLPack, without a copy.
//!
//! The layouts are those of DLPack 1.0 (dlpack.h of github.com/dmlc/dlpack): the versioned struct, and
//! the unversioned one that came before.

use std::ptr::{NonNull, null_mut};
use std::sync::{Arc, RwLock};

use super::dlpack_layout::*;
use super::guard::{call_on, catch, create};
use super::types::*;
use super::values::{laid_over, tensor};
use super::{args, read};
use crate::error::{Result, fail};
use crate::session::{copy_tensor, device_buffer, foreign_device_buffer, is_rocm};
use crate::tensor::{Buffer, ElementType, Shape, Tensor, Value, element_count};

/// Gives a tensor to another library as a versioned DLPack tensor that shares its elements.
///
/// `value`: not NULL; a tensor of numbers or booleans, on the host or a device. `out`: not NULL; receives the
/// DLPack tensor, row-major, on the CPU or on `device_id` of ROCm or CUDA, which its receiver releases by its
/// `deleter`; NULL on failure. It keeps the elements alive; the value may be destroyed. What was queued on the
/// elements must be done, or ordered before what the receiver does. `error`: may be NULL. Threads: any, at the
/// same time; the `deleter` on any thread. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for what is no tensor,
/// `RUKH_ERROR_UNSUPPORTED` for strings and element types narrower than a byte, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_to_dlpack(
    value: *const rukh_value,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut *mut rukh_error,
) -> rukh_status {
    args::put_if_wanted(out, null_mut());
    call_on(value, error, |value| {
        args::put(out, "out", null_mut())?;
        args::put(out, "out", export::<DLManagedTensorVersioned>(tensor(&read(value))?)?)
    })
}

/// As `rukh_value_to_dlpack`, in the layout of DLPack before 1.0.
///
/// `value`: not NULL; a tensor of numbers or booleans. `out`: not NULL; receives the DLPack tensor, which
/// its receiver releases by its `deleter`; NULL on failure. `error`: may be NULL. Threads: any, at the
/// same time. Errors: as `rukh_value_to_dlpack`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_to_dlpack_legacy(
    value: *const rukh_value,
    out: *mut *mut DLManagedTensor,
    error: *mut *mut rukh_error,
) -> rukh_status {
    args::put_if_wanted(out, null_mut());
    call_on(value, error, |value| {
        args::put(out, "out", null_mut())?;
        args::put(out, "out", export::<DLManagedTensor>(tensor(&read(value))?)?)
    })
}

/// Takes a versioned DLPack tensor from another library; its elements are shared when they lie in
/// row-major order without gaps, aligned, and may be written, else copied.
///
/// `managed`: not NULL; on the CPU, in host memory pinned for a GPU, or in the memory of a GPU that this library
/// reaches (ROCm, or CUDA where that is the platform), where the elements must lie in row-major order. On success
/// the value owns it and calls its `deleter`, on any thread, when nothing uses the elements any more (after a
/// copy: at once). On failure it stays the caller's. `out`: not NULL; receives the value, which the caller destroys;
/// NULL on failure. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a
/// malformed tensor, `RUKH_ERROR_UNSUPPORTED` for a version above 1, another device or an element type
/// without an ONNX counterpart, `RUKH_ERROR_DEVICE` for one on a GPU where none is found,
/// `RUKH_ERROR_OUT_OF_MEMORY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_from_dlpack(
    managed: *mut DLManagedTensorVersioned,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create(out, error, || import(managed))
}

/// As `rukh_value_from_dlpack`, from the layout of DLPack before 1.0.
///
/// `managed`: not NULL; on success the value owns it, on failure the caller. `out`: not NULL; receives
/// the value, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any. Errors: as
/// `rukh_value_from_dlpack`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_from_dlpack_legacy(
    managed: *mut DLManagedTensor,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create(out, error, || import(managed))
}

/// What an exported tensor keeps alive, in one allocation with the struct itself.
struct Exported<M> {
    managed: M,
    _tensor: Tensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

fn export<M: Managed>(tensor: &Tensor) -> Result<*mut M> {
    let Some(dtype) = dtype_of(tensor.ty()) else {
        fail!(Unsupported, "a tensor of {} has no DLPack form", tensor.ty());
    };
    let Some(buffer) = tensor.buffer() else {
        fail!(Unsupported, "a tensor of {} has no DLPack form", tensor.ty());
    };
    let device = match buffer.device() {
        Some(id) => DLDevice { device_type: device_type_of(id as usize)?, device_id: id as i32 },
        None => DLDevice { device_type: DL_CPU, device_id: 0 },
    };
    let data = buffer.as_ptr().cast();
    let shape: Vec<i64> = tensor.shape().iter().map(|&d| d as i64).collect();
    let mut exported = Box::new(Exported {
        managed: M::new(),
        _tensor: tensor.clone(),
        strides: row_major(tensor.shape()),
        shape,
    });
    *exported.managed.tensor_mut() = DLTensor {
        data,
        device,
        ndim: exported.shape.len() as i32,
        dtype,
        shape: exported.shape.as_mut_ptr(),
        strides: exported.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let pointer = Box::into_raw(exported);
    // SAFETY: just made, and nobody else has it yet.
    let managed = unsafe { &raw mut (*pointer).managed };
    // SAFETY: as above.
    unsafe { (*managed).set_owner(pointer.cast(), release_exported::<M>) };
    Ok(managed)
}

/// The `deleter` of an exported tensor.
unsafe extern "C" fn release_exported<M: Managed>(managed: *mut M) {
    // A caller's deleter for the elements may run here, and a panic must not reach C.
    let _ = catch(|| {
        if managed.is_null() {
            return;
        }
        // SAFETY: the receiver gives back what `export` gave it, once.
        let owner = unsafe { (*managed).owner() };
        // SAFETY: `owner` is the box that `export` made, whose type is this one.
        drop(unsafe { Box::from_raw(owner.cast::<Exported<M>>()) });
    });
}

/// Calls the deleter of an imported tensor with the last use of its elements.
struct Imported<M: Managed>(*mut M);

// SAFETY: DLPack demands that a tensor may be released on any thread.
unsafe impl<M: Managed> Send for Imported<M> {}
// SAFETY: as above; the pointer is only passed on.
unsafe impl<M: Managed> Sync for Imported<M> {}

impl<M: Managed> Drop for Imported<M> {
    fn drop(&mut self) {
        // SAFETY: the tensor is ours since `import` succeeded, and is released once, here.
        unsafe { M::release(self.0) };
    }
}

fn import<M: Managed>(managed: *mut M) -> Result<RwLock<Value>> {
    if managed.is_null() {
        fail!(InvalidArgument, "managed: NULL is not allowed; a DLPack tensor is needed");
    }
    // SAFETY: not NULL; the header demands a DLPack tensor.
    let source = unsafe { &*managed };
    source.check_version()?;
    let dl = source.tensor();
    let device = device_of(dl.device)?;
    let DLDataType { code, bits, lanes } = dl.dtype;
    let Some(element) = element_of(dl.dtype) else {
        fail!(
            Unsupported,
            "managed: the data type of code {code}, {bits} bits and {lanes} lanes has no ONNX counterpart"
        );
    };
    let Ok(rank) = usize::try_from(dl.ndim) else {
        fail!(InvalidArgument, "managed: ndim is {}; allowed is 0 or more", dl.ndim)
    };
    let shape = args::shape(dl.shape, rank)?;
    let bytes = element_count(&shape).and_then(|n| n.checked_mul(element.size()));
    let Some(bytes) = bytes.filter(|&bytes| bytes <= isize::MAX as usize) else {
        fail!(InvalidArgument, "managed: {element} of shape {shape:?} is larger than memory")
    };
    let strides = if dl.strides.is_null() { None } else { Some(args::array(dl.strides, rank, "strides")?) };
    let start = dl.data.cast::<u8>().wrapping_add(dl.byte_offset as usize);
    if bytes > 0 && dl.data.is_null() {
        fail!(InvalidArgument, "managed: data is NULL, but shape {shape:?} has elements");
    }
    let aligned = start.addr().is_multiple_of(element.size().clamp(1, 8));
    let dense = strides.is_none_or(|strides| is_row_major(&shape, strides));
    if let Some(device_id) = device {
        if bytes > 0 && !(dense && aligned) {
            fail!(
                Unsupported,
                "managed: a tensor in device memory must lie in row-major order, aligned to its elements; \
                 make it contiguous first"
            );
        }
        let read_only = source.is_read_only();
        // SAFETY: DLPack promises the elements of the shape until the deleter is called, which is when
        // the owner is dropped.
        let shared =
            unsafe { foreign_device_buffer(device_id, start.addr() as u64, bytes, Imported(managed))? };
        return if read_only { copied(element, &shape, shared) } else { laid_over(element, &shape, shared) };
    }
    if bytes > 0 && dense && aligned && !source.is_read_only() {
        let Some(pointer) = NonNull::new(start) else {
            fail!(InvalidArgument, "managed: data and byte_offset add up to NULL")
        };
        // SAFETY: DLPack promises the elements of shape and strides until the deleter is called,
        // which is when the owner is dropped.
        let buffer = unsafe { Buffer::foreign(pointer, bytes, Arc::new(Imported(managed))) };
        return laid_over(element, &shape, buffer);
    }
    let buffer = Buffer::zeroed(bytes)?;
    if bytes > 0 {
        let strides = strides.map_or_else(|| row_major(&shape), <[i64]>::to_vec);
        // SAFETY: the buffer is new and holds `bytes`; DLPack promises that shape and strides lead to
        // elements only.
        unsafe { gather(start, &shape, &strides, element.size(), buffer.as_ptr()) };
    }
    drop(Imported(managed));
    laid_over(element, &shape, buffer)
}

/// The number of the GPU that a tensor is on; `None` on the host.
fn device_of(device: DLDevice) -> Result<Option<usize>> {
    let DLDevice { device_type, device_id } = device;
    if HOST_DEVICES.contains(&device_type) {
        return Ok(None);
    }
    let (DL_CUDA | DL_ROCM, Ok(id)) = (device_type, usize::try_from(device_id)) else {
        fail!(
            Unsupported,
            "managed: device type {device_type}, number {device_id}, is not supported; supported are CPU (1), \
             CUDA (2), ROCm (10) and host memory pinned by CUDA (3) or ROCm (11)"
        );
    };
    let own = device_type_of(id)?;
    if device_type != own {
        fail!(
            Unsupported,
            "managed: device type {device_type} is not what device {id} is reached by here, {own} (2 is CUDA, \
             10 ROCm)"
        );
    }
    Ok(Some(id))
}

fn device_type_of(device_id: usize) -> Result<i32> {
    Ok(if is_rocm(device_id)? { DL_ROCM } else { DL_CUDA })
}

/// A tensor of its own on the device, with the elements of one that must not be written.
fn copied(element: ElementType, shape: &[usize], from: Buffer) -> Result<RwLock<Value>> {
    let own = device_buffer(from.device().unwrap_or(0) as usize, from.len())?;
    let tensors = [from, own.clone()].map(|buffer| Tensor::from_buffer(element, shape, buffer));
    if let [Some(from), Some(to)] = &tensors {
        copy_tensor(from, to)?;
    }
    laid_over(element, shape, own)
}

/// Strides in elements of a row-major tensor.
fn row_major(shape: &[usize]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = (shape[axis] as i64).saturating_mul(strides[axis]);
    }
    strides
}

/// Whether the strides are those of a row-major tensor; the stride of a dimension of 1 is of no account.
fn is_row_major(shape: &[usize], strides: &[i64]) -> bool {
    let want = row_major(shape);
    shape.iter().zip(strides).zip(want).all(|((&dim, &stride), want)| dim == 1 || stride == want)
}

/// Copies a strided tensor of at least one element into row-major order.
///
/// # Safety
/// All elements that shape and strides (in elements of `size` bytes) reach from `from` must be readable,
/// and `to` must have room for them.
unsafe fn gather(from: *const u8, shape: &[usize], strides: &[i64], size: usize, mut to: *mut u8) {
    let mut index = Shape::from_elem(0, shape.len());
    loop {
        let offset: i64 = index.iter().zip(strides).map(|(&i, &stride)| i as i64 * stride).sum();
        // SAFETY: the caller's promise: an element lies there, and there is room for it.
        unsafe {
            std::ptr::copy_nonoverlapping(from.wrapping_offset(offset as isize * size as isize), to, size);
            to = to.add(size);
        }
        // Counts up like an odometer; past the last index the copy is done.
        let Some(axis) = (0..shape.len()).rev().find(|&axis| index[axis] + 1 < shape[axis]) else { return };
        index[axis] += 1;
        index[axis + 1..].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strided_tensors_are_gathered_in_order() {
        let source: Vec<u16> = (0..12).collect();
        for (shape, strides, start, want) in [
            (&[3usize, 2][..], &[1i64, 6][..], 0, &[0u16, 6, 1, 7, 2, 8][..]),
            (&[2, 3], &[0, 2], 1, &[1, 3, 5, 1, 3, 5]),
            (&[3], &[-2], 4, &[4, 2, 0]),
            (&[], &[], 7, &[7]),
        ] {
            let mut to = vec![0u16; want.len()];
            // SAFETY: the table's strides stay inside `source`.
            unsafe { gather(source.as_ptr().add(start).cast(), shape, strides, 2, to.as_mut_ptr().cast()) };
            assert_eq!(to, want);
        }
    }

    #[test]
    fn row_major_strides_are_known() {
        assert_eq!(row_major(&[2, 3, 4]), [12, 4, 1]);
        assert!(is_row_major(&[2, 1, 4], &[4, 99, 1]));
        assert!(!is_row_major(&[2, 3], &[1, 2]));
        assert!(is_row_major(&[], &[]));
    }
}
