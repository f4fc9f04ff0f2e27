//! A kernel's arguments as it finds them in memory.

use std::ffi::c_void;

use super::call::Failure;
use super::launch::Shape;
use super::modules::Function;

/// `HIP_LAUNCH_PARAM_BUFFER_POINTER`, `HIP_LAUNCH_PARAM_BUFFER_SIZE`, `HIP_LAUNCH_PARAM_END`
const BUFFER_POINTER: usize = 1;
const BUFFER_SIZE: usize = 2;
const END: usize = 3;

/// How a program gives arguments.
#[derive(Clone, Copy)]
pub struct Given {
    /// A pointer to each argument.
    pub parameters: *const *const c_void,
    /// Pairs of a name and a value, up to the name `END`: one buffer with all of them.
    pub extra: *const *const c_void,
}

/// All arguments, the hidden ones filled in.
///
/// # Safety
///
/// What is given is null, or as HIP demands it for this kernel.
pub unsafe fn pack(function: &Function, shape: &Shape, given: Given) -> Result<Vec<u8>, Failure> {
    let kernel = &function.kernel;
    let wrong = |text: String| Failure::invalid(format!("launch of {}: {text}", kernel.name));
    // A scalar load of several registers may reach behind the last argument.
    let mut packed = vec![0; (kernel.kernarg_size as usize).next_multiple_of(64)];
    for argument in kernel.arguments.iter().filter(|it| it.is_hidden()) {
        let value = hidden(&argument.kind, shape).to_le_bytes();
        let size = (argument.size as usize).min(value.len());
        packed[argument.offset as usize..][..size].copy_from_slice(&value[..size]);
    }
    let explicit: Vec<_> = kernel.arguments.iter().filter(|it| !it.is_hidden()).collect();
    let end = explicit.iter().map(|it| (it.offset + it.size) as usize).max().unwrap_or(0);
    // SAFETY: by this function's contract.
    let buffer = unsafe { buffer(given.extra) }.map_err(wrong)?;
    if let Some((start, size)) = buffer {
        if !given.parameters.is_null() {
            return Err(wrong("both kernelParams and extra are given".to_owned()));
        }
        if size < end {
            return Err(wrong(format!("the buffer has {size} bytes of arguments, the kernel takes {end}")));
        }
        // SAFETY: the buffer has `size` bytes, which are at least `end`; so has `packed` (the metadata was checked).
        unsafe { std::ptr::copy_nonoverlapping(start.cast(), packed.as_mut_ptr(), end) };
        return Ok(packed);
    }
    if given.parameters.is_null() && !explicit.is_empty() {
        return Err(wrong(format!("no arguments, the kernel takes {}", explicit.len())));
    }
    for (index, argument) in explicit.iter().enumerate() {
        // SAFETY: there is a pointer for each explicit argument, by this function's contract.
        let from = unsafe { *given.parameters.add(index) };
        if from.is_null() {
            return Err(wrong(format!("kernelParams[{index}] is a null pointer")));
        }
        let to = &mut packed[argument.offset as usize..][..argument.size as usize];
        // SAFETY: it points to an argument of that size, by this function's contract.
        unsafe { std::ptr::copy_nonoverlapping(from.cast(), to.as_mut_ptr(), to.len()) };
    }
    Ok(packed)
}

/// Address and size of the buffer in `extra`.
///
/// # Safety
///
/// It is null or ends with `END`.
unsafe fn buffer(extra: *const *const c_void) -> Result<Option<(*const c_void, usize)>, String> {
    if extra.is_null() {
        return Ok(None);
    }
    let (mut start, mut size) = (None, None);
    let mut at = extra;
    loop {
        // SAFETY: the end was not reached.
        let name = unsafe { *at } as usize;
        if name == END {
            break;
        }
        // SAFETY: a value follows each name but the last.
        let value = unsafe { *at.add(1) };
        match name {
            BUFFER_POINTER => start = Some(value),
            BUFFER_SIZE if value.is_null() => return Err("the size in extra is a null pointer".to_owned()),
            // SAFETY: a pointer to a size_t.
            BUFFER_SIZE => size = Some(unsafe { value.cast::<usize>().read_unaligned() }),
            other => return Err(format!("extra has the name {other:#x}, allowed are 1, 2 and 3")),
        }
        // SAFETY: the end comes later.
        at = unsafe { at.add(2) };
    }
    match (start, size) {
        (Some(start), _) if start.is_null() => Err("the buffer in extra is a null pointer".to_owned()),
        (Some(start), Some(size)) => Ok(Some((start, size))),
        _ => Err("extra has no buffer or no size".to_owned()),
    }
}

/// The value of a hidden argument (LLVM, "User Guide for AMDGPU Backend", value kinds). What this runtime does not have
/// is 0.
fn hidden(kind: &str, shape: &Shape) -> u64 {
    let dimensions = || (1..=3).rev().find(|at| shape.extent(at - 1) > 1).unwrap_or(1) as u64;
    match kind {
        "hidden_block_count_x" => shape.workgroups[0].into(),
        "hidden_block_count_y" => shape.workgroups[1].into(),
        "hidden_block_count_z" => shape.workgroups[2].into(),
        "hidden_group_size_x" => shape.workgroup_size[0].into(),
        "hidden_group_size_y" => shape.workgroup_size[1].into(),
        "hidden_group_size_z" => shape.workgroup_size[2].into(),
        "hidden_grid_dims" => dimensions(),
        "hidden_dynamic_lds_size" => shape.dynamic_lds.into(),
        _ => 0,
    }
}
