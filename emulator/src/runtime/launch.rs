//! Launches of kernels.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Instant;

use super::arguments::{Given, pack};
use super::call::{Failure, Handle, call, report};
use super::counts::counting;
use super::errors::HipError;
use super::failures::CallKind;
use super::modules::Function;
use super::properties::{MOST_WORK_ITEMS, lds_limit};
use super::work::Work;
use super::{Runtime, fault_error, lock};
use crate::machine::{self, Dispatch, Watch, check};

/// How many workgroups, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub workgroups: [u32; 3],
    pub workgroup_size: [u32; 3],
    /// LDS in bytes beside the kernel's own.
    pub dynamic_lds: u32,
}

/// A launch that was checked, with its arguments.
pub struct Launch {
    pub function: Arc<Function>,
    pub shape: Shape,
    arguments: Vec<u8>,
}

/// Workgroups in y and z, as devices report it.
const USUAL_WORKGROUPS: u32 = 65536;

impl Shape {
    /// Work items in a direction.
    pub fn extent(&self, axis: usize) -> u64 {
        u64::from(self.workgroups[axis]) * u64::from(self.workgroup_size[axis])
    }

    fn check(&self, function: &Function, lds: u64) -> Result<(), Failure> {
        let kernel = &function.kernel;
        let wrong = |error: HipError, text: String| {
            Err(Failure::new(error, format!("launch of {}: {text}", kernel.name)))
        };
        let configuration = |text: String| wrong(HipError::INVALID_CONFIGURATION, text);
        let (count, size) = (self.workgroups, self.workgroup_size);
        if count.contains(&0) || size.contains(&0) {
            return configuration(format!("a dimension is 0: {count:?} workgroups of {size:?}"));
        }
        let items: u64 = size.iter().map(|it| u64::from(*it)).product();
        if items > MOST_WORK_ITEMS as u64 || size.iter().any(|it| *it > MOST_WORK_ITEMS as u32) {
            return configuration(format!("workgroups of {size:?} work items, at most {MOST_WORK_ITEMS}"));
        }
        if (0..3).any(|axis| self.extent(axis) > u32::MAX.into()) {
            return configuration(format!(
                "{count:?} workgroups of {size:?} are more than 32 bits of work items"
            ));
        }
        if let Some(required) = kernel.required_workgroup_size
            && required != size
        {
            return configuration(format!("workgroups of {size:?}, the kernel demands {required:?}"));
        }
        if items > kernel.max_workgroup_size.into() {
            let text = format!(
                "workgroups of {items} work items, its launch bounds allow {}",
                kernel.max_workgroup_size
            );
            return wrong(HipError::LAUNCH_FAILURE, text);
        }
        let wanted = u64::from(kernel.descriptor.group_segment_fixed_size) + u64::from(self.dynamic_lds);
        if wanted > lds {
            return wrong(HipError::INVALID_VALUE, format!("{wanted} bytes of LDS, there are {lds}"));
        }
        if count[1] > USUAL_WORKGROUPS || count[2] > USUAL_WORKGROUPS {
            report(&format!(
                "launch of {}: {count:?} workgroups, devices report {USUAL_WORKGROUPS} in y and z",
                kernel.name
            ));
        }
        Ok(())
    }
}

impl Runtime {
    /// Checks a launch and takes its arguments.
    ///
    /// # Safety
    ///
    /// What is given is null, or as HIP demands it for this kernel.
    pub unsafe fn prepare(&self, function: Handle, shape: Shape, given: Given) -> Result<Launch, Failure> {
        self.fault()?;
        let function = self.state().function(function)?;
        shape.check(&function, lds_limit(self.options.target))?;
        // SAFETY: by this function's contract.
        let arguments = unsafe { pack(&function, &shape, given) }?;
        Ok(Launch { function, shape, arguments })
    }

    /// # Safety
    ///
    /// As [`Runtime::prepare`].
    unsafe fn launch(
        &self,
        function: Handle,
        shape: Shape,
        stream: Handle,
        given: Given,
    ) -> Result<(), Failure> {
        let key = self.state().stream(stream)?;
        self.gate(key)?;
        // SAFETY: by this function's contract.
        let launch = unsafe { self.prepare(function, shape, given) }?;
        if self.options.api_trace {
            report(&launch.text());
        }
        self.count(CallKind::Launch)?;
        let name = launch.function.kernel.name.clone();
        self.submit(key, Work::Kernel(Arc::new(launch)), &name)
    }

    /// Runs a kernel. An error breaks the device.
    pub fn execute(&self, launch: &Launch) {
        let (function, shape) = (&launch.function, &launch.shape);
        let kernel = &function.kernel;
        if function.loaded.is_unloaded() {
            let text = format!("kernel {}: its module was unloaded", kernel.name);
            return self.set_fault(HipError::LAUNCH_FAILURE, text);
        }
        let _one_at_a_time = lock(&self.kernels);
        let placed = self.memory.place_launch(&launch.arguments, |kernarg| launch.packet(kernarg));
        let (kernarg, packet) = match placed {
            Ok(addresses) => addresses,
            Err(error) => {
                let text = format!("kernel {}: {error}", kernel.name);
                return self.set_fault(HipError::LAUNCH_FAILURE, text);
            }
        };
        let checked = check::Launch {
            program: &function.loaded.program,
            memory: &self.memory,
            descriptor: &kernel.descriptor,
            workgroups: shape.workgroups,
            lds: kernel.descriptor.group_segment_fixed_size + shape.dynamic_lds,
        };
        let dispatch = Dispatch {
            program: &function.loaded.program,
            memory: &self.memory,
            kernel: &kernel.name,
            descriptor: &kernel.descriptor,
            entry: function.entry,
            workgroups: shape.workgroups,
            workgroup_size: shape.workgroup_size,
            dynamic_lds: shape.dynamic_lds,
            kernarg,
            packet,
            settings: self.options.machine,
            watches: &[],
        };
        let counting = counting(&dispatch, &self.options.count, self.options.count_every);
        let mut watches = self.options.checks.watches(checked);
        watches.extend(self.options.trace.watch(&dispatch));
        let watches: Vec<&dyn Watch> = watches
            .iter()
            .map(|watch| &**watch)
            .chain(counting.as_ref().map(|counting| counting as &dyn Watch))
            .collect();
        let start = Instant::now();
        let done = machine::run(&Dispatch { watches: &watches, ..dispatch });
        self.statistics.kernel(&kernel.name, start.elapsed());
        match (done, counting) {
            (Err(fault), _) => self.set_fault(fault_error(&fault), fault.message),
            (Ok(()), Some(counting)) => self.counts.write(&self.options.count, &counting.finish()),
            (Ok(()), None) => {}
        }
    }
}

impl Launch {
    /// For the trace of calls: the kernel and its explicit arguments.
    fn text(&self) -> String {
        let kernel = &self.function.kernel;
        let mut text = format!("launch of {}", kernel.name);
        for argument in kernel.arguments.iter().filter(|it| !it.is_hidden()) {
            let bytes = &self.arguments[argument.offset as usize..][..argument.size as usize];
            text += &format!(" {}=0x", argument.name);
            text.extend(bytes.iter().rev().take(8).map(|byte| format!("{byte:02x}")));
        }
        text
    }

    /// hsa_kernel_dispatch_packet_t (HSA Runtime Programmer's Reference Manual, Architected Queuing Language packets).
    fn packet(&self, kernarg: u64) -> [u8; 64] {
        const HEADER: u16 = 0x1502;
        const THREE_DIMENSIONS: u16 = 3;
        let descriptor = &self.function.kernel.descriptor;
        let size = self.shape.workgroup_size;
        let mut packet = [0; 64];
        let mut put = |at: usize, bytes: &[u8]| packet[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &HEADER.to_le_bytes());
        put(2, &THREE_DIMENSIONS.to_le_bytes());
        for (axis, size) in size.into_iter().enumerate() {
            put(4 + 2 * axis, &(size as u16).to_le_bytes());
            put(12 + 4 * axis, &(self.shape.extent(axis) as u32).to_le_bytes());
        }
        put(24, &descriptor.private_segment_fixed_size.to_le_bytes());
        put(28, &(descriptor.group_segment_fixed_size + self.shape.dynamic_lds).to_le_bytes());
        put(32, &self.function.descriptor.to_le_bytes());
        put(40, &kernarg.to_le_bytes());
        packet
    }
}

/// # Safety
///
/// `parameters` and `extra` are null, or as HIP demands them for this kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipModuleLaunchKernel(
    function: Handle,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    dynamic_lds: u32,
    stream: Handle,
    parameters: *const *const c_void,
    extra: *const *const c_void,
) -> HipError {
    let workgroups = [grid_x, grid_y, grid_z];
    let shape = Shape { workgroups, workgroup_size: [block_x, block_y, block_z], dynamic_lds };
    call("hipModuleLaunchKernel", format_args!("{function:#x}, {shape:?}, {stream:#x}"), |runtime| {
        // SAFETY: by this function's contract.
        unsafe { runtime.launch(function, shape, stream, Given { parameters, extra }) }
    })
}

/// The grid is in work items. Events may be recorded before and after.
///
/// # Safety
///
/// As [`hipModuleLaunchKernel`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipExtModuleLaunchKernel(
    function: Handle,
    global_x: u32,
    global_y: u32,
    global_z: u32,
    local_x: u32,
    local_y: u32,
    local_z: u32,
    dynamic_lds: usize,
    stream: Handle,
    parameters: *const *const c_void,
    extra: *const *const c_void,
    start: Handle,
    stop: Handle,
    flags: u32,
) -> HipError {
    let (global, local) = ([global_x, global_y, global_z], [local_x, local_y, local_z]);
    let arguments = format_args!("{function:#x}, {global:?}, {local:?}, {dynamic_lds}, {stream:#x}, {flags}");
    call("hipExtModuleLaunchKernel", arguments, |runtime| {
        let mut workgroups = [0; 3];
        for axis in 0..3 {
            if local[axis] == 0 || !global[axis].is_multiple_of(local[axis]) {
                let text = format!("{global:?} work items are not whole workgroups of {local:?}");
                return Err(Failure::new(HipError::INVALID_CONFIGURATION, text));
            }
            workgroups[axis] = global[axis] / local[axis];
        }
        let dynamic_lds = u32::try_from(dynamic_lds).unwrap_or(u32::MAX);
        let shape = Shape { workgroups, workgroup_size: local, dynamic_lds };
        if start != 0 {
            runtime.record(start, stream)?;
        }
        // SAFETY: by this function's contract.
        unsafe { runtime.launch(function, shape, stream, Given { parameters, extra }) }?;
        if stop != 0 {
            runtime.record(stop, stream)?;
        }
        Ok(())
    })
}

/// Workgroups that wait for each other are not emulated.
#[unsafe(no_mangle)]
pub extern "C" fn hipModuleLaunchCooperativeKernel(
    function: Handle,
    _grid_x: u32,
    _grid_y: u32,
    _grid_z: u32,
    _block_x: u32,
    _block_y: u32,
    _block_z: u32,
    _dynamic_lds: u32,
    _stream: Handle,
    _parameters: *const *const c_void,
) -> HipError {
    call("hipModuleLaunchCooperativeKernel", format_args!("{function:#x}"), |_| {
        Err(HipError::NOT_SUPPORTED.into())
    })
}

/// `dim3`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Dim3 {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

/// Kernels that are linked into the program are not emulated.
#[unsafe(no_mangle)]
pub extern "C" fn hipLaunchKernel(
    function: Handle,
    _grid: Dim3,
    _block: Dim3,
    _parameters: *const *const c_void,
    _dynamic_lds: usize,
    _stream: Handle,
) -> HipError {
    call("hipLaunchKernel", format_args!("{function:#x}"), |_| Err(HipError::NOT_SUPPORTED.into()))
}
