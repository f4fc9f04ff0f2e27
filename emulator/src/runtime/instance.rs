//! The one runtime of a process.

use std::sync::OnceLock;

use super::call::{Failure, report};
use super::errors::HipError;
use super::options::Options;
use super::{Runtime, leaks};

static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();

/// The runtime; the first call creates it from the environment.
pub fn current() -> Result<&'static Runtime, Failure> {
    #[cfg(test)]
    if let Some(runtime) = for_tests::get() {
        return Ok(runtime);
    }
    let created = RUNTIME.get_or_init(|| {
        let (options, complaints) = Options::from_environment();
        for complaint in complaints {
            report(&complaint);
        }
        Runtime::new(options).inspect_err(|error| report(error))
    });
    created.as_ref().map_err(|_| Failure::from(HipError::NO_DEVICE))
}

/// Runs when the process ends, after the program's own destructors.
extern "C" fn at_exit() {
    if let Some(Ok(runtime)) = RUNTIME.get() {
        leaks::at_exit(runtime);
    }
}

/// The loader calls this one at the process's end.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

/// Each test has a runtime of its own, so that tests can run at the same time and with different options.
#[cfg(test)]
pub mod for_tests {
    use std::cell::Cell;

    use super::{Options, Runtime};

    thread_local! {
        static OWN: Cell<Option<&'static Runtime>> = const { Cell::new(None) };
    }

    pub fn get() -> Option<&'static Runtime> {
        OWN.get()
    }

    /// For a thread that a test starts.
    pub fn adopt(runtime: &'static Runtime) {
        OWN.set(Some(runtime));
    }

    pub fn create(options: Options) -> &'static Runtime {
        let runtime = Box::leak(Box::new(Runtime::new(options).expect("a runtime")));
        adopt(runtime);
        runtime
    }
}
