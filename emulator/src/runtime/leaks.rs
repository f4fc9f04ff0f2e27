//! What happens at the end of the process: statistics, and what was never destroyed.

use super::Runtime;
use super::call::report;
use super::streams::LEGACY;

/// The status of a process that leaves something behind.
const STATUS: i32 = 86;

/// With `AMDEMU_LEAKS=1` the process ends here if something is left.
pub fn at_exit(runtime: &Runtime) {
    if runtime.options.statistics {
        runtime.statistics.lines().iter().for_each(|line| report(line));
    }
    if !runtime.options.leaks {
        return;
    }
    let leaks = runtime.leaks();
    if leaks.is_empty() {
        return;
    }
    leaks.iter().for_each(|line| report(line));
    // SAFETY: the process is at its end. What C wrote is flushed; destructors have run.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(STATUS);
    }
}

impl Runtime {
    /// A line for each kind of object that is left, and for each allocation.
    pub fn leaks(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .memory
            .live()
            .iter()
            .map(|it| format!("leak: {} bytes of {} at {:#x}", it.size, it.kind.text(), it.start))
            .collect();
        let state = self.state();
        let of_runtime = |key: &&u64| **key == LEGACY || state.per_thread.values().any(|it| it == *key);
        let streams = state.streams.keys().filter(|key| !of_runtime(key)).count();
        for (count, what) in [
            (streams, "streams"),
            (state.events.len(), "events"),
            (state.modules.len(), "modules"),
            (state.graphs.len(), "graphs"),
            (state.executables.len(), "executable graphs"),
            (state.externals.len(), "imported memories"),
        ] {
            if count > 0 {
                lines.push(format!("leak: {count} {what}"));
            }
        }
        lines
    }
}
