//! Executable graphs and their launches.

use std::ffi::c_char;
use std::sync::Arc;

use super::Program;
use crate::memory::State as MemoryState;
use crate::runtime::Runtime;
use crate::runtime::call::{Address, Failure, Handle, Out, call, null, put, put_optional};
use crate::runtime::capture::Gate;
use crate::runtime::errors::HipError;
use crate::runtime::failures::CallKind;
use crate::runtime::streams::Operation;
use crate::runtime::work::Work;

/// `hipGraphInstantiateFlagAutoFreeOnLaunch`, `hipGraphInstantiateFlagUseNodePriority`
const AUTO_FREE: u64 = 1;
const FLAGS: u64 = AUTO_FREE | 8;

/// An executable graph. Launches that are still to come keep the program they were made with.
pub struct Executable {
    pub program: Arc<Program>,
    /// Memory of the last launch is freed at the next one.
    auto_free: bool,
    launched: bool,
}

/// Runs all nodes, up to the first that breaks the device.
pub fn run(runtime: &Runtime, program: &Program, free_first: bool) {
    if free_first {
        for address in allocations(program).filter(|it| is_live(runtime, *it)) {
            // It is live, so this cannot fail.
            let _ = runtime.free_now(address);
        }
    }
    for node in program.in_order() {
        if runtime.fault().is_err() {
            return;
        }
        runtime.perform(&node.work);
    }
}

fn allocations(program: &Program) -> impl Iterator<Item = Address> {
    program.nodes.iter().filter_map(|node| match node.work {
        Work::Allocate { address, .. } => Some(address),
        _ => None,
    })
}

fn is_live(runtime: &Runtime, address: Address) -> bool {
    runtime.memory.lookup(address).is_some_and(|it| it.state == MemoryState::Live)
}

impl Runtime {
    fn instantiate(&self, executable: Out<'_, Handle>, graph: Handle, flags: u64) -> Result<(), Failure> {
        self.graphs_are_supported()?;
        if executable.is_none() {
            return Err(null("graphExec"));
        }
        if flags & !FLAGS != 0 {
            return Err(Failure::invalid(format!("flags {flags:#x}, allowed are those in {FLAGS:#x}")));
        }
        let mut state = self.state();
        if state.is_captured(graph) {
            return Err(Failure::invalid("the graph is still being captured"));
        }
        let found = state.graph_mut(graph)?;
        if found.instantiated && found.has_memory_nodes() {
            let text = "a graph with memory nodes can be made executable only once";
            return Err(Failure::new(HipError::NOT_SUPPORTED, text));
        }
        let program = Program::new(found, self.options.defer);
        let program = Arc::new(program.ok_or_else(|| Failure::invalid("the graph has a cycle"))?);
        found.instantiated = true;
        let handle = state.new_handle();
        let auto_free = flags & AUTO_FREE != 0;
        state.executables.insert(handle, Executable { program, auto_free, launched: false });
        put(executable, handle, "graphExec")
    }

    fn launch_graph(&self, executable: Handle, stream: Handle) -> Result<(), Failure> {
        self.graphs_are_supported()?;
        self.fault()?;
        let mut state = self.state();
        let found = state.executable_mut(executable)?;
        let (program, auto_free, launched) = (Arc::clone(&found.program), found.auto_free, found.launched);
        let key = state.stream(stream)?;
        drop(state);
        if let Gate::Capture = self.gate(key)? {
            return Err(self.forbid_on_capturing(key));
        }
        self.count(CallKind::Launch)?;
        let freed: Vec<Address> = program
            .nodes
            .iter()
            .filter_map(|node| match node.work {
                Work::Free { address } => Some(address),
                _ => None,
            })
            .collect();
        let mut kept = allocations(&program).filter(|it| !freed.contains(it)).peekable();
        if launched && !auto_free && kept.peek().is_some() {
            self.drain_all();
            if let Some(address) = kept.find(|it| is_live(self, *it)) {
                let text = format!("memory of the last launch at {address:#x} is not freed");
                return Err(Failure::invalid(text));
            }
        }
        self.state().executable_mut(executable)?.launched = true;
        drop(kept);
        self.enqueue(key, Operation::Graph { program, free_first: auto_free });
        Ok(())
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGraphInstantiateWithFlags(
    executable: Out<'_, Handle>,
    graph: Handle,
    flags: u64,
) -> HipError {
    call("hipGraphInstantiateWithFlags", format_args!("{graph:#x}, {flags:#x}"), |runtime| {
        runtime.instantiate(executable, graph, flags)
    })
}

/// Nothing is written to the log: the message goes to stderr.
///
/// # Safety
///
/// `log` is null or has room for `log_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphInstantiate(
    executable: Out<'_, Handle>,
    graph: Handle,
    error_node: Out<'_, Handle>,
    log: *mut c_char,
    log_size: usize,
) -> HipError {
    call("hipGraphInstantiate", format_args!("{graph:#x}"), |runtime| {
        put_optional(error_node, 0);
        if !log.is_null() && log_size > 0 {
            // SAFETY: by this function's contract.
            unsafe { log.write(0) };
        }
        runtime.instantiate(executable, graph, 0)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGraphExecDestroy(executable: Handle) -> HipError {
    call("hipGraphExecDestroy", format_args!("{executable:#x}"), |runtime| {
        runtime.graphs_are_supported()?;
        let mut state = runtime.state();
        state.executable_mut(executable)?;
        state.executables.remove(&executable);
        Ok(())
    })
}

/// There is nothing to bring to the device beforehand.
#[unsafe(no_mangle)]
pub extern "C" fn hipGraphUpload(executable: Handle, stream: Handle) -> HipError {
    call("hipGraphUpload", format_args!("{executable:#x}, {stream:#x}"), |runtime| {
        runtime.graphs_are_supported()?;
        let mut state = runtime.state();
        state.stream(stream)?;
        state.executable_mut(executable).map(|_| ())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGraphLaunch(executable: Handle, stream: Handle) -> HipError {
    call("hipGraphLaunch", format_args!("{executable:#x}, {stream:#x}"), |runtime| {
        runtime.launch_graph(executable, stream)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceGraphMemTrim(device: i32) -> HipError {
    call("hipDeviceGraphMemTrim", format_args!("{device}"), |runtime| {
        runtime.graphs_are_supported()?;
        runtime.device(device).map(|_| ())
    })
}
