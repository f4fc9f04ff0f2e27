//! What is known about a kernel: attributes and occupancy.

use super::Runtime;
use super::call::{Failure, Handle, Out, call, null, put};
use super::errors::HipError;
use super::modules::Function;
use super::properties::{lds_limit, version};

/// `hipFuncAttributes`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FunctionAttributes {
    binary_version: i32,
    cache_mode: i32,
    const_size: usize,
    local_size: usize,
    max_dynamic_shared_size: i32,
    max_threads_per_block: i32,
    registers: i32,
    preferred_shared_memory_carveout: i32,
    ptx_version: i32,
    shared_size: usize,
}

/// `hipFuncAttributeMaxDynamicSharedMemorySize`
const MAX_DYNAMIC_SHARED: i32 = 8;
const LAST_ATTRIBUTE: i32 = 10;
/// Workgroups of a compute unit, whatever their size.
const MOST_WORKGROUPS: u32 = 32;
const SIMDS: u32 = 4;
const MOST_WAVES_OF_SIMD: u32 = 16;

impl Runtime {
    fn attributes(&self, function: Handle) -> Result<FunctionAttributes, Failure> {
        let function = self.state().function(function)?;
        let kernel = &function.kernel;
        let fixed = kernel.descriptor.group_segment_fixed_size;
        let (major, minor) = version(self.options.target);
        Ok(FunctionAttributes {
            binary_version: major * 10 + minor,
            local_size: kernel.descriptor.private_segment_fixed_size as usize,
            max_dynamic_shared_size: lds_limit(self.options.target).saturating_sub(fixed.into()) as i32,
            max_threads_per_block: kernel.max_workgroup_size as i32,
            registers: kernel.vgpr_count as i32,
            shared_size: fixed as usize,
            ..FunctionAttributes::default()
        })
    }

    /// Workgroups that a compute unit takes at a time: limited by registers, LDS and a fixed number.
    fn occupancy(&self, function: &Function, workgroup_size: u32, dynamic_lds: u64) -> u32 {
        let kernel = &function.kernel;
        let wave32 = kernel.descriptor.is_wave32();
        let waves = workgroup_size.div_ceil(if wave32 { 32 } else { 64 }).max(1);
        let (registers, granule) = if wave32 { (1536, 24) } else { (512, 8) };
        let taken = kernel.vgpr_count.max(1).next_multiple_of(granule);
        let by_registers = (registers / taken).clamp(1, MOST_WAVES_OF_SIMD) * SIMDS / waves;
        let lds = u64::from(kernel.descriptor.group_segment_fixed_size) + dynamic_lds;
        // A workgroup processor of two compute units shares the LDS of both.
        let available = lds_limit(self.options.target) * if wave32 { 2 } else { 1 };
        let by_lds = available.checked_div(lds).map_or(MOST_WORKGROUPS, |count| count.min(32) as u32);
        by_registers.min(by_lds).min(MOST_WORKGROUPS)
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn hipFuncGetAttribute(value: Out<'_, i32>, attribute: i32, function: Handle) -> HipError {
    call("hipFuncGetAttribute", format_args!("{attribute}, {function:#x}"), |runtime| {
        let all = runtime.attributes(function)?;
        let number = match attribute {
            0 => all.max_threads_per_block,
            1 => all.shared_size as i32,
            3 => all.local_size as i32,
            4 => all.registers,
            MAX_DYNAMIC_SHARED => all.max_dynamic_shared_size,
            0..LAST_ATTRIBUTE => 0,
            _ => {
                return Err(Failure::invalid(format!(
                    "attribute {attribute}, allowed are 0 to {}",
                    LAST_ATTRIBUTE - 1
                )));
            }
        };
        put(value, number, "value")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipFuncGetAttributes(
    attributes: Out<'_, FunctionAttributes>,
    function: Handle,
) -> HipError {
    call("hipFuncGetAttributes", format_args!("{function:#x}"), |runtime| {
        put(attributes, runtime.attributes(function)?, "attributes")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipFuncSetAttribute(function: Handle, attribute: i32, value: i32) -> HipError {
    call("hipFuncSetAttribute", format_args!("{function:#x}, {attribute}, {value}"), |runtime| {
        let limit = runtime.attributes(function)?.max_dynamic_shared_size;
        if attribute == MAX_DYNAMIC_SHARED && !(0..=limit).contains(&value) {
            return Err(Failure::invalid(format!("{value} bytes of dynamic LDS, allowed are 0 to {limit}")));
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipFuncSetCacheConfig(function: Handle, config: i32) -> HipError {
    call("hipFuncSetCacheConfig", format_args!("{function:#x}, {config}"), |_| Ok(()))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipFuncSetSharedMemConfig(function: Handle, config: i32) -> HipError {
    call("hipFuncSetSharedMemConfig", format_args!("{function:#x}, {config}"), |_| Ok(()))
}

fn active_blocks(name: &str, blocks: Out<'_, i32>, function: Handle, size: i32, lds: usize) -> HipError {
    call(name, format_args!("{function:#x}, {size}, {lds}"), |runtime| {
        let found = runtime.state().function(function)?;
        let workgroup = u32::try_from(size).ok().filter(|size| *size > 0);
        let workgroup =
            workgroup.ok_or_else(|| Failure::invalid(format!("a workgroup of {size} work items")))?;
        put(blocks, runtime.occupancy(&found, workgroup, lds as u64) as i32, "numBlocks")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: Out<'_, i32>,
    function: Handle,
    block_size: i32,
    dynamic_lds: usize,
) -> HipError {
    let name = "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor";
    active_blocks(name, blocks, function, block_size, dynamic_lds)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    blocks: Out<'_, i32>,
    function: Handle,
    block_size: i32,
    dynamic_lds: usize,
    _flags: u32,
) -> HipError {
    let name = "hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags";
    active_blocks(name, blocks, function, block_size, dynamic_lds)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: Out<'_, i32>,
    function: Handle,
    block_size: i32,
    dynamic_lds: usize,
) -> HipError {
    active_blocks("hipOccupancyMaxActiveBlocksPerMultiprocessor", blocks, function, block_size, dynamic_lds)
}

fn block_size(
    name: &str,
    grid: Out<'_, i32>,
    block: Out<'_, i32>,
    function: Handle,
    lds: usize,
    limit: i32,
) -> HipError {
    call(name, format_args!("{function:#x}, {lds}, {limit}"), |runtime| {
        if grid.is_none() {
            return Err(null("gridSize"));
        }
        let found = runtime.state().function(function)?;
        let most = found.kernel.max_workgroup_size;
        let size = u32::try_from(limit).ok().filter(|limit| *limit > 0).map_or(most, |limit| limit.min(most));
        put(block, size as i32, "blockSize")?;
        let units = runtime.device(super::thread::device())?.compute_units;
        put(grid, runtime.occupancy(&found, size, lds as u64) as i32 * units, "gridSize")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipModuleOccupancyMaxPotentialBlockSize(
    grid_size: Out<'_, i32>,
    block: Out<'_, i32>,
    function: Handle,
    dynamic_lds: usize,
    limit: i32,
) -> HipError {
    block_size("hipModuleOccupancyMaxPotentialBlockSize", grid_size, block, function, dynamic_lds, limit)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipOccupancyMaxPotentialBlockSize(
    grid_size: Out<'_, i32>,
    block: Out<'_, i32>,
    function: Handle,
    dynamic_lds: usize,
    limit: i32,
) -> HipError {
    block_size("hipOccupancyMaxPotentialBlockSize", grid_size, block, function, dynamic_lds, limit)
}
