//! Counters of launches (`AMDEMU_COUNT`): a line of JSON for each.

use std::fs::File;
use std::io::Write;
use std::sync::Mutex;

use super::call::report;
use super::lock;
use crate::cost::Card;
use crate::machine::Dispatch;
use crate::machine::count::{Counting, LaunchCounts};

/// Where counters go. The file is created with the first launch.
#[derive(Default)]
pub struct CountFile(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    Closed,
    Open(File),
    /// The error was reported.
    Failed,
}

/// Counts a launch, if that is wanted. `file`: empty for nobody. `every`: one of so many workgroups, 0: about 256.
pub fn counting(dispatch: &Dispatch<'_>, file: &str, every: u64) -> Option<Counting> {
    let caches = || Card::of_target(dispatch.program.target).caches();
    (!file.is_empty()).then(|| Counting::new(dispatch, caches(), every))
}

impl CountFile {
    /// Writes a line. `path`: `-` for stderr.
    pub fn write(&self, path: &str, counts: &LaunchCounts) {
        let mut line = match serde_json::to_string(counts) {
            Ok(line) => line,
            Err(error) => return report(&format!("AMDEMU_COUNT: {error}")),
        };
        line.push('\n');
        if path == "-" {
            eprint!("{line}");
            return;
        }
        let mut state = lock(&self.0);
        if matches!(*state, State::Closed) {
            *state = File::create(path).map_or_else(|error| failed(path, &error), State::Open);
        }
        if let State::Open(file) = &mut *state
            && let Err(error) = file.write_all(line.as_bytes())
        {
            *state = failed(path, &error);
        }
    }
}

fn failed(path: &str, error: &std::io::Error) -> State {
    report(&format!("AMDEMU_COUNT={path}: {error}"));
    State::Failed
}
