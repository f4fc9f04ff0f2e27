//! The launches of one node for given shapes: complete but for addresses.

mod early;
mod given;
mod link;
mod submit;
#[cfg(test)]
mod testing;

use std::any::Any;
use std::ffi::CStr;
use std::sync::Arc;

use bytemuck::{NoUninit, bytes_of, cast_slice};

use crate::hip::blas::Algorithm;
use crate::hip::{Function, Stream, TensorMap};
use crate::ops::OpError;
use crate::threads::Pool;

use super::{DeviceBuffer, Provider};

pub(crate) use given::Given;
pub(crate) use link::ChainLink;

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
    /// [`COUNTERS`] words that are 0 before and after each launch, and those of chains behind them.
    Counters,
    /// What stays at this address for as long as the plan keeps it.
    Kept(u64),
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

/// A tensor map to make, at the address that stands in `operand`.
struct MapPatch {
    at: usize,
    operand: Operand,
    offset: u64,
    map: TensorMap,
}

struct PlannedLaunch {
    work: Work,
    params: std::ops::Range<usize>,
    patches: std::ops::Range<usize>,
}

/// What a launch gives to the stream.
enum Work {
    Kernel {
        name: &'static CStr,
        function: Function,
        grid: [u32; 3],
        block: u32,
        lds: u32,
    },
    Library(LibraryLaunch),
    /// No launch. The next `fitting` launches are for operands that are at multiples of `alignment` and of which the
    /// first `pairs` pairs lie in the same place, the `otherwise` behind them for others; its parameters are the
    /// operands' addresses.
    Choice {
        alignment: u64,
        pairs: usize,
        fitting: usize,
        otherwise: usize,
    },
}

/// A product by the platform's library; its parameters are the addresses of [`LIBRARY_OPERANDS`]. Of the
/// launches that follow, `rest` belong to it, and the next `otherwise` do the same work for operands that are
/// aligned less than the algorithm needs.
struct LibraryLaunch {
    algorithm: Arc<dyn Algorithm>,
    alignment: u64,
    rest: usize,
    otherwise: usize,
}

/// What libraries want their temporary memory aligned to.
const WORKSPACE_ALIGNMENT: u64 = 256;

/// Addresses of a library's product: A, B, C, D, bias, workspace.
const LIBRARY_OPERANDS: usize = 6;

/// Launches, ready for any run on these shapes.
#[derive(Default)]
pub(crate) struct LaunchPlan {
    launches: Vec<PlannedLaunch>,
    params: Vec<u8>,
    patches: Vec<Patch>,
    maps: Vec<MapPatch>,
    table: Option<DeviceBuffer>,
    /// What else the launches read, kept as long.
    kept: Vec<Arc<dyn Any + Send + Sync>>,
    /// What the caller of the library launches besides, behind them.
    work_of_caller: Option<Box<dyn StreamWork>>,
    /// Whether each launch is waited for.
    blocking: bool,
    /// Whether a launch lets the next kernel start before it has waited for those before it.
    lets_next_start: bool,
    link: Option<ChainLink>,
    /// Bytes of temporary memory that the launches need.
    pub(crate) scratch: usize,
    /// Whether a launch may set the run's error word.
    pub(crate) reports_errors: bool,
}

/// Work that the caller of the library gives to a stream by itself.
pub(super) trait StreamWork: Send + Sync {
    /// Whether what it gives may be given again without asking it.
    fn can_be_recorded(&self) -> bool;

    fn submit(&self, pool: &Pool, stream: &Stream, addresses: &Addresses<'_>) -> Result<(), OpError>;
}

/// Where the operands are in a run.
pub(crate) struct Addresses<'a> {
    pub(crate) inputs: &'a [u64],
    pub(crate) outputs: &'a [u64],
    pub(crate) scratch: u64,
    pub(crate) errors: u64,
    pub(crate) counters: u64,
}

/// Words with which the workgroups of a launch count.
pub(crate) const COUNTERS: usize = 4096;

/// Collects the launches of a node.
pub(crate) struct PlanBuilder<'p> {
    pub(super) provider: &'p Provider,
    given: Given,
    /// Inputs that no kernel ever writes: constants of the model.
    constants: Vec<bool>,
    /// Inputs that the kernel just before does not write.
    settled: Vec<bool>,
    behind_full_memory: bool,
    plan: LaunchPlan,
    table: Vec<u8>,
}

impl<'p> PlanBuilder<'p> {
    pub(crate) fn new(provider: &'p Provider, given: Given) -> Self {
        let plan = LaunchPlan { blocking: provider.launch_blocking(), ..LaunchPlan::default() };
        let (constants, settled, table) = (Vec::new(), Vec::new(), Vec::new());
        PlanBuilder { provider, given, constants, settled, behind_full_memory: false, plan, table }
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
        let grid = grid.map(|n| n as u32);
        let name = kernel.name;
        self.push(Work::Kernel { name, function, grid, block, lds }, params, addresses);
        Ok(())
    }

    /// Appends a product by the platform's library, with its operands (A, B, C, D, bias; those that it has)
    /// and their offsets in bytes; `rest` appends what belongs to it, and `otherwise` what does the same for
    /// operands whose addresses are no multiple of `alignment`.
    pub(super) fn library(
        &mut self,
        algorithm: Arc<dyn Algorithm>,
        operands: [Option<(Operand, u64)>; LIBRARY_OPERANDS - 1],
        alignment: u32,
        rest: impl FnOnce(&mut Self) -> Result<(), OpError>,
        otherwise: impl FnOnce(&mut Self) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let workspace = match algorithm.workspace() {
            0 => None,
            bytes => Some((self.scratch(bytes + WORKSPACE_ALIGNMENT as usize), 0)),
        };
        let (mut offsets, mut addresses) = ([0u64; LIBRARY_OPERANDS], Vec::new());
        for (i, operand) in operands.into_iter().chain([workspace]).enumerate() {
            if let Some((operand, offset)) = operand {
                offsets[i] = offset;
                addresses.push((i * size_of::<u64>(), operand));
            }
        }
        // Where the planner says how they are aligned, what others need is not loaded.
        let any_address = addresses.iter().any(|&(_, operand)| self.given.has(operand));
        let at = self.plan.launches.len();
        let launch = LibraryLaunch { algorithm, alignment: alignment.into(), rest: 0, otherwise: 0 };
        self.push(Work::Library(launch), bytes_of(&offsets), &addresses);
        rest(self)?;
        let rest = self.plan.launches.len() - at - 1;
        if any_address {
            otherwise(self)?;
        }
        let otherwise = self.plan.launches.len() - at - 1 - rest;
        if let Work::Library(launch) = &mut self.plan.launches[at].work {
            (launch.rest, launch.otherwise) = (rest, otherwise);
        }
        Ok(())
    }

    /// Makes tensor maps in the parameters of the launch that was appended last: at an offset, for an operand from some
    /// bytes on.
    pub(super) fn maps(&mut self, maps: impl IntoIterator<Item = (usize, Operand, u64, TensorMap)>) {
        let first = self.plan.launches.last().map_or(0, |launch| launch.params.start);
        let patches = maps.into_iter().map(|(at, operand, offset, map)| MapPatch {
            at: first + at,
            operand,
            offset,
            map,
        });
        self.plan.maps.extend(patches);
    }

    /// Appends launches for operands (with offsets in bytes) whose addresses are multiples of `alignment`, and others
    /// that do the same work wherever they are.
    pub(super) fn by_alignment(
        &mut self,
        alignment: u32,
        operands: &[(Operand, u64)],
        aligned: impl FnOnce(&mut Self) -> Result<(), OpError>,
        otherwise: impl FnOnce(&mut Self) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        self.by_place(alignment, operands, &[], aligned, otherwise)
    }

    /// As `by_alignment`, and only where each pair of operands besides lies in the same place.
    pub(super) fn by_place(
        &mut self,
        alignment: u32,
        operands: &[(Operand, u64)],
        same: &[(Operand, Operand)],
        fitting: impl FnOnce(&mut Self) -> Result<(), OpError>,
        otherwise: impl FnOnce(&mut Self) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        if operands.iter().any(|&(_, offset)| !offset.is_multiple_of(alignment.into())) {
            return otherwise(self);
        }
        let mut tested: Vec<(Operand, u64)> = same.iter().flat_map(|&(a, b)| [(a, 0), (b, 0)]).collect();
        tested.extend(operands.iter().filter(|(operand, _)| self.given.has(*operand)));
        if tested.is_empty() {
            return fitting(self);
        }
        let offsets: Vec<u64> = tested.iter().map(|&(_, offset)| offset).collect();
        let addresses: Vec<(usize, Operand)> =
            tested.iter().enumerate().map(|(i, &(operand, _))| (i * size_of::<u64>(), operand)).collect();
        let at = self.plan.launches.len();
        let (alignment, pairs) = (alignment.into(), same.len());
        self.push(
            Work::Choice { alignment, pairs, fitting: 0, otherwise: 0 },
            cast_slice(&offsets),
            &addresses,
        );
        fitting(self)?;
        let count = self.plan.launches.len() - at - 1;
        otherwise(self)?;
        let rest = self.plan.launches.len() - at - 1 - count;
        if let Work::Choice { fitting, otherwise, .. } = &mut self.plan.launches[at].work {
            (*fitting, *otherwise) = (count, rest);
        }
        Ok(())
    }

    fn push(&mut self, work: Work, params: &[u8], addresses: &[(usize, Operand)]) {
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
        let patches = first_patch..self.plan.patches.len();
        self.plan.launches.push(PlannedLaunch { work, params: first..end, patches });
    }

    /// Temporary memory for the launches of this node, aligned to 256 bytes.
    pub(super) fn scratch(&mut self, bytes: usize) -> Operand {
        let at = self.plan.scratch;
        self.plan.scratch = (at + bytes).next_multiple_of(256);
        Operand::Scratch(at)
    }

    /// Has the caller of the library give work to the stream.
    pub(super) fn work_of_caller(&mut self, work: impl StreamWork + 'static) {
        self.plan.work_of_caller = Some(Box::new(work));
    }

    /// Constant data that the launches read; kept on the device with the plan.
    pub(super) fn table<T: NoUninit>(&mut self, data: &[T]) -> Operand {
        let at = self.table.len().next_multiple_of(16);
        self.table.resize(at, 0);
        self.table.extend_from_slice(cast_slice(data));
        Operand::Table(at)
    }

    /// Keeps what a launch's parameters hold an address of as long as the plan.
    pub(super) fn keep(&mut self, kept: Arc<dyn Any + Send + Sync>) {
        self.plan.kept.push(kept);
    }

    /// The finished plan; uploads its table.
    pub(crate) fn finish(mut self) -> Result<LaunchPlan, OpError> {
        if !self.table.is_empty() {
            self.plan.table = Some(self.provider.upload(&self.table)?);
        }
        Ok(self.plan)
    }
}

/// What tensor maps ask of addresses.
pub(super) const TENSOR_MAP_ALIGNMENT: u64 = 16;

/// The address field as the kernel's planner left it: an offset from the operand's start.
fn params_word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |&b| u64::from_ne_bytes(b))
}
