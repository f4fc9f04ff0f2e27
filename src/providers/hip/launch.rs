//! The launches of one node for given shapes: complete but for addresses.

use std::ffi::CStr;

use bytemuck::{NoUninit, bytes_of, cast_slice};

use crate::hip::{Function, HipError, Launch, Stream};
use crate::ops::OpError;

use super::{DeviceBuffer, Provider};

/// Work items of a workgroup, as `GROUP` in `device.h`.
pub(super) const GROUP: u32 = 256;

/// A kernel of the embedded code.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelName {
    /// The file in `kernels/`, without its extension.
    pub(super) family: &'static str,
    pub(super) name: &'static CStr,
}

/// What an address in a kernel's parameters stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operand {
    Input(usize),
    Output(usize),
    /// Temporary memory, at this offset.
    Scratch(usize),
    /// The plan's own constant data, at this offset.
    Table(usize),
    /// The run's error word.
    Errors,
}

/// A kernel's parameters as bytes, with the offset of each address in them and what it stands for.
pub(super) type AddressedParams = (Vec<u8>, Vec<(usize, Operand)>);

/// An address to fill in.
#[derive(Clone, Copy, Debug)]
struct Patch {
    /// Where in the parameters.
    at: usize,
    operand: Operand,
    /// Added to the operand's address.
    offset: u64,
}

struct PlannedLaunch {
    function: Function,
    grid: [u32; 3],
    block: u32,
    lds: u32,
    params: std::ops::Range<usize>,
    patches: std::ops::Range<usize>,
}

/// Launches, ready for any run on these shapes.
pub(crate) struct LaunchPlan {
    launches: Vec<PlannedLaunch>,
    params: Vec<u8>,
    patches: Vec<Patch>,
    table: Option<DeviceBuffer>,
    /// Bytes of temporary memory that the launches need.
    pub(crate) scratch: usize,
    /// Whether a launch may set the run's error word.
    pub(crate) reports_errors: bool,
}

/// Where the operands are in a run.
pub(crate) struct Addresses<'a> {
    pub(crate) inputs: &'a [u64],
    pub(crate) outputs: &'a [u64],
    pub(crate) scratch: u64,
    pub(crate) errors: u64,
}

/// Collects the launches of a node.
pub(crate) struct PlanBuilder<'p> {
    pub(super) provider: &'p Provider,
    plan: LaunchPlan,
    table: Vec<u8>,
}

impl<'p> PlanBuilder<'p> {
    pub(crate) fn new(provider: &'p Provider) -> Self {
        let plan = LaunchPlan {
            launches: Vec::new(),
            params: Vec::new(),
            patches: Vec::new(),
            table: None,
            scratch: 0,
            reports_errors: false,
        };
        PlanBuilder { provider, plan, table: Vec::new() }
    }

    /// Appends a launch of `grid` workgroups of [`GROUP`] work items. `addresses` tells, by offset in the
    /// parameters, what each address there stands for. A grid without workgroups launches nothing.
    pub(super) fn launch<P: NoUninit>(
        &mut self,
        kernel: KernelName,
        grid: [usize; 3],
        params: &P,
        addresses: &[(usize, Operand)],
    ) -> Result<(), OpError> {
        self.launch_with(kernel, grid, GROUP, 0, params, addresses)
    }

    /// Like `launch`, with another size of workgroup and with `lds` bytes of dynamic workgroup memory.
    pub(super) fn launch_with<P: NoUninit>(
        &mut self,
        kernel: KernelName,
        grid: [usize; 3],
        block: u32,
        lds: u32,
        params: &P,
        addresses: &[(usize, Operand)],
    ) -> Result<(), OpError> {
        self.launch_bytes(kernel, grid, block, lds, bytes_of(params), addresses)
    }

    /// Like `launch_with`, with the bytes of a parameter structure that is put together from several.
    pub(super) fn launch_bytes(
        &mut self,
        kernel: KernelName,
        grid: [usize; 3],
        block: u32,
        lds: u32,
        params: &[u8],
        addresses: &[(usize, Operand)],
    ) -> Result<(), OpError> {
        if grid.contains(&0) {
            return Ok(());
        }
        let limits = [i32::MAX as usize, u16::MAX as usize, u16::MAX as usize];
        if grid.iter().zip(limits).any(|(n, limit)| *n > limit) {
            return Err(OpError::Unsupported(format!(
                "a GPU launch of {grid:?} workgroups is needed; the limit is {limits:?}"
            )));
        }
        let function = self.provider.function(kernel.family, kernel.name, lds)?;
        let (first, first_patch) = (self.plan.params.len(), self.plan.patches.len());
        self.plan.params.extend_from_slice(params);
        // The next launch's parameters start aligned, as the runtimes copy them in words.
        let end = self.plan.params.len();
        self.plan.params.resize(end.next_multiple_of(16), 0);
        for &(at, operand) in addresses {
            // A null address stays null: the operand's field says an offset, added when patched.
            let offset = params_word(&self.plan.params[first + at..]);
            self.plan.patches.push(Patch { at: first + at, operand, offset });
            self.plan.reports_errors |= operand == Operand::Errors;
        }
        self.plan.launches.push(PlannedLaunch {
            function,
            grid: grid.map(|n| n as u32),
            block,
            lds,
            params: first..end,
            patches: first_patch..self.plan.patches.len(),
        });
        Ok(())
    }

    /// Temporary memory for the launches of this node, aligned to 256 bytes.
    pub(super) fn scratch(&mut self, bytes: usize) -> Operand {
        let at = self.plan.scratch;
        self.plan.scratch = (at + bytes).next_multiple_of(256);
        Operand::Scratch(at)
    }

    /// Constant data that the launches read; kept on the device with the plan.
    pub(super) fn table<T: NoUninit>(&mut self, data: &[T]) -> Operand {
        let at = self.table.len().next_multiple_of(16);
        self.table.resize(at, 0);
        self.table.extend_from_slice(cast_slice(data));
        Operand::Table(at)
    }

    /// The finished plan; uploads its table.
    pub(crate) fn finish(mut self) -> Result<LaunchPlan, OpError> {
        if !self.table.is_empty() {
            self.plan.table = Some(self.provider.upload(&self.table)?);
        }
        Ok(self.plan)
    }
}

/// The address field as the kernel's planner left it: an offset from the operand's start.
fn params_word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |&b| u64::from_ne_bytes(b))
}

impl LaunchPlan {
    /// Gives the launches to a stream.
    ///
    /// # Safety
    /// The addresses must be those of memory on the stream's device that is as large as the plan's
    /// shapes say, until the stream has come past the launches.
    pub(crate) unsafe fn submit(
        &self,
        stream: &Stream,
        addresses: &Addresses<'_>,
        params: &mut Vec<u8>,
    ) -> Result<(), HipError> {
        params.clear();
        params.extend_from_slice(&self.params);
        for patch in &self.patches {
            let base = match patch.operand {
                Operand::Input(i) => addresses.inputs[i],
                Operand::Output(i) => addresses.outputs[i],
                Operand::Scratch(at) => addresses.scratch + at as u64,
                Operand::Table(at) => self.table.as_ref().map_or(0, DeviceBuffer::address) + at as u64,
                Operand::Errors => addresses.errors,
            };
            params[patch.at..patch.at + 8].copy_from_slice(&(base + patch.offset).to_ne_bytes());
        }
        for launch in &self.launches {
            debug_assert!(launch.patches.end <= self.patches.len());
            let launch = Launch {
                function: launch.function,
                grid: launch.grid,
                block: launch.block,
                lds: launch.lds,
                params: &mut params[launch.params.clone()],
            };
            // SAFETY: the parameters are the kernel's own structure, made by its planner; the addresses
            // are the caller's promise.
            unsafe { stream.launch(std::iter::once(launch))? };
        }
        Ok(())
    }
}
