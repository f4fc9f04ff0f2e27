//! What a provider knows of the fastest ways: recorded results, and what there is to tell of them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::hip::blas::{self, Blas};
use crate::hip::{Device, DeviceInfo};

use super::super::code;
use super::results::{Key, Results, Validators};
use super::shapes::Shapes;

/// How to choose.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TuningOptions {
    /// Use what is recorded.
    pub(crate) enable: bool,
    /// Measure what is not recorded.
    pub(crate) tune: bool,
    /// Time for each candidate; 0 stands for a few runs.
    pub(crate) max_duration_ms: u32,
    /// Where results are read from and written to.
    pub(crate) file: Option<PathBuf>,
    /// Where problems without a result are written to.
    pub(crate) record: Option<PathBuf>,
}

/// Something to tell the user.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Note {
    pub(crate) warning: bool,
    pub(crate) text: String,
}

/// The choices of one provider.
pub(crate) struct Tuner {
    pub(super) options: TuningOptions,
    /// The platform's libraries of kernels, when choices are made at all.
    libraries: Vec<Arc<dyn Blas>>,
    validators: Validators,
    state: Mutex<State>,
    /// Held while measuring, so that measurements do not disturb each other.
    pub(super) measuring: Mutex<()>,
    /// Whether there are notes, or results that are not in the file.
    pub(super) news: AtomicBool,
    /// Raised when recorded choices change, which outdates plans.
    generation: AtomicU64,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) results: Results,
    notes: Vec<Note>,
    /// Results that are not in the file.
    pub(super) unsaved: bool,
    /// Problems that had no result, for the file of shapes.
    pub(super) shapes: Shapes,
    pub(super) unsaved_shapes: bool,
}

impl Tuner {
    pub(in super::super) fn new(options: TuningOptions, device: &Arc<Device>, target: &str) -> Self {
        let mut state = State::default();
        let (mut libraries, mut validators) = (Vec::new(), Vec::new());
        if options.enable {
            let (found, reasons) = blas::open(device);
            let identities: Vec<&str> = found.iter().map(|library| library.identity()).collect();
            let list = if identities.is_empty() { "none".to_owned() } else { identities.join(" ") };
            state.notes.push(Note { warning: false, text: format!("tuning: libraries: {list}") });
            state.notes.extend(
                reasons.into_iter().map(|text| Note { warning: false, text: format!("tuning: {text}") }),
            );
            let info = &device.runtime.devices()[device.index as usize];
            validators = conditions(device, info, target, list);
            libraries = found;
        }
        let tuner = Tuner {
            news: AtomicBool::new(options.enable),
            options,
            libraries,
            validators,
            state: Mutex::new(state),
            measuring: Mutex::default(),
            generation: AtomicU64::new(0),
        };
        if let (true, Some(file)) = (tuner.options.enable, &tuner.options.file) {
            match std::fs::read_to_string(file) {
                Ok(text) => drop(tuner.add(&text, &file.display().to_string())),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => tuner.note(true, format!("tuning results {}: {e}", file.display())),
            }
        }
        tuner
    }

    /// Whether choices are made at all; else everything has its default.
    pub(crate) fn is_enabled(&self) -> bool {
        self.options.enable
    }

    pub(in super::super) fn libraries(&self) -> &[Arc<dyn Blas>] {
        &self.libraries
    }

    /// Raised whenever plans that were made before have outdated choices.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The results as text, with the conditions under which they hold.
    pub(crate) fn text(&self) -> String {
        self.lock().results.text(&self.validators)
    }

    /// Takes the results of a text from `source` in addition, and over those for the same problem. How many
    /// there were; what cannot be used is noted.
    pub(crate) fn add(&self, text: &str, source: &str) -> usize {
        let (results, defects) = match Results::parse(text, &self.validators) {
            Ok(parsed) => parsed,
            Err(reason) => {
                self.note(true, format!("tuning results {source} are not used: {reason}"));
                return 0;
            }
        };
        for defect in defects {
            self.note(true, format!("tuning results {source}: {defect}; the line is left out"));
        }
        let count = results.0.len();
        self.lock().results.0.extend(results.0);
        self.generation.fetch_add(1, Ordering::Release);
        count
    }

    /// Whether there are notes or unsaved results. Costs next to nothing.
    pub(crate) fn has_news(&self) -> bool {
        self.news.load(Ordering::Acquire)
    }

    /// What there is to tell since the last call; brings the file up to date first.
    pub(crate) fn take_news(&self) -> Vec<Note> {
        self.news.store(false, Ordering::Release);
        let unwritten = self.save_now().err();
        let mut state = self.lock();
        state.notes.extend(unwritten.map(|text| Note { warning: true, text }));
        if let (true, Some(file)) = (std::mem::take(&mut state.unsaved_shapes), &self.options.record)
            && let Err(e) = save_shapes(&state.shapes, file)
        {
            let text = format!("tuning shapes {} cannot be written: {e}", file.display());
            state.notes.push(Note { warning: true, text });
        }
        std::mem::take(&mut state.notes)
    }

    /// Whether there is a result for a problem.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.lock().results.0.contains_key(key)
    }

    /// Brings the file of results up to date; `Err` says why that cannot be done.
    pub(super) fn save_now(&self) -> Result<(), String> {
        let mut state = self.lock();
        let (true, Some(file)) = (std::mem::take(&mut state.unsaved), &self.options.file) else {
            return Ok(());
        };
        let saved = self.save(&state.results, file);
        saved.map_err(|e| format!("tuning results {} cannot be written: {e}", file.display()))
    }

    /// Writes a file with these results and those in it that are for other problems. Others never see half a
    /// file.
    fn save(&self, results: &Results, file: &Path) -> std::io::Result<()> {
        let mut all = std::fs::read_to_string(file)
            .ok()
            .and_then(|text| Results::parse(&text, &self.validators).ok())
            .map_or_else(Results::default, |(results, _)| results);
        all.0.extend(results.0.clone());
        replace(file, &all.text(&self.validators))
    }

    pub(super) fn note(&self, warning: bool, text: String) {
        self.lock().notes.push(Note { warning, text });
        self.news.store(true, Ordering::Release);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a file with these problems and those in it.
fn save_shapes(shapes: &Shapes, file: &Path) -> std::io::Result<()> {
    let there = std::fs::read_to_string(file).ok().and_then(|text| Shapes::parse(&text).ok());
    let mut all = there.map_or_else(Shapes::default, |(shapes, _)| shapes);
    all.0.extend(shapes.0.iter().cloned());
    replace(file, &all.text())
}

/// Writes a file that others see as it was or as it is then, and never half of it.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let new = file.with_file_name(name);
    std::fs::write(&new, text)?;
    std::fs::rename(&new, file)
}

/// What a choice depends on besides the problem.
fn conditions(device: &Device, info: &DeviceInfo, target: &str, libraries: String) -> Validators {
    let runtime = device.runtime;
    vec![
        ("rukh", env!("CARGO_PKG_VERSION").to_owned()),
        ("kernels", format!("{target} {:016x}", code::digest(target))),
        ("arch", info.arch.clone()),
        ("device", format!("{} ({} compute units)", info.name, info.compute_units)),
        ("runtime", format!("{} {}", runtime.platform.name(), runtime.version())),
        ("libraries", libraries),
    ]
}
