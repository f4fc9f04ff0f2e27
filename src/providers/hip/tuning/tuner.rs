//! What a provider knows of the fastest ways: recorded results, and what there is to tell of them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::hip::blas::{self, Blas};
use crate::hip::{Device, DeviceInfo};

use super::super::code;
use super::files;
use super::results::{CONDITIONS, Key, Read, Results, Validators};
use super::shapes::Shapes;

/// How to choose.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TuningOptions {
    /// Use what is recorded. `None`: where a compiled model holds results for the device.
    pub(crate) enable: Option<bool>,
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
    /// Filled when choices are made at all.
    choices: OnceLock<Choices>,
    state: Mutex<State>,
    /// Held while measuring, so that measurements do not disturb each other.
    pub(super) measuring: Mutex<()>,
    /// Whether there are notes, or results that are not in the file.
    pub(super) news: AtomicBool,
    /// Raised when recorded choices change, which outdates plans.
    generation: AtomicU64,
}

/// What choices are made from.
struct Choices {
    /// The platform's libraries of kernels.
    libraries: Vec<Arc<dyn Blas>>,
    validators: Validators,
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
    pub(in super::super) fn new(mut options: TuningOptions, device: &Arc<Device>, target: &str) -> Self {
        let enabled = options.enable == Some(true);
        if !enabled {
            // All this needs the first option.
            options = TuningOptions { enable: options.enable, ..TuningOptions::default() };
        }
        let tuner = Tuner {
            news: AtomicBool::default(),
            options,
            choices: OnceLock::new(),
            state: Mutex::default(),
            measuring: Mutex::default(),
            generation: AtomicU64::new(0),
        };
        if enabled {
            tuner.choose_from_now_on(device, target);
        }
        if let Some(file) = &tuner.options.file {
            match files::read(file) {
                Ok(text) => drop(tuner.add(&text, &file.display().to_string())),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => tuner.note(true, format!("tuning results {}: {e}", file.display())),
            }
        }
        tuner
    }

    /// Opens the platform's libraries; plans that are made later have choices.
    pub(super) fn choose_from_now_on(&self, device: &Arc<Device>, target: &str) {
        self.choices.get_or_init(|| {
            let (libraries, reasons) = blas::open(device);
            let identities: Vec<&str> = libraries.iter().map(|library| library.identity()).collect();
            let list = if identities.is_empty() { "none".to_owned() } else { identities.join(" ") };
            self.note(false, format!("tuning: libraries: {list}"));
            reasons.into_iter().for_each(|text| self.note(false, format!("tuning: {text}")));
            let info = &device.runtime.devices()[device.index as usize];
            Choices { libraries, validators: conditions(device, info, target, list) }
        });
    }

    /// Whether choices are made at all; else everything has its default.
    pub(crate) fn is_enabled(&self) -> bool {
        self.choices.get().is_some()
    }

    pub(in super::super) fn libraries(&self) -> &[Arc<dyn Blas>] {
        self.choices.get().map_or(&[], |choices| &choices.libraries)
    }

    pub(super) fn validators(&self) -> &[(&'static str, String)] {
        self.choices.get().map_or(&[], |choices| &choices.validators)
    }

    /// Raised whenever plans that were made before have outdated choices.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The results as text, with the conditions under which they hold.
    pub(crate) fn text(&self) -> String {
        self.lock().results.text(self.validators())
    }

    /// Takes the results of a text from `source` in addition, and over those for the same problem. How many
    /// there were; what cannot be used is noted.
    pub(crate) fn add(&self, text: &str, source: &str) -> usize {
        let (results, defects) = match Results::parse(text, self.validators()) {
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

    /// Takes results where there are none for the same problem.
    pub(super) fn add_below(&self, results: Results) {
        let mut state = self.lock();
        for (key, fastest) in results.0 {
            state.results.0.entry(key).or_insert(fastest);
        }
        drop(state);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Writes a file with these results and those in it that are for other problems. Results that do not hold here go;
    /// another text stays, which is an error.
    fn save(&self, results: &Results, file: &Path) -> Result<(), String> {
        let mut all = files::kept(file, |text| {
            Read::of(text)?;
            Ok(Results::parse(text, self.validators()).map_or_else(|_| Results::default(), |(all, _)| all))
        })?;
        all.0.extend(results.0.clone());
        files::replace(file, &all.text(self.validators()))
    }

    pub(super) fn note(&self, warning: bool, text: String) {
        self.lock().notes.push(Note { warning, text });
        self.news.store(true, Ordering::Release);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a file with these problems and those in it. Another text stays, which is an error.
fn save_shapes(shapes: &Shapes, file: &Path) -> Result<(), String> {
    let mut all = files::kept(file, |text| Ok(Shapes::parse(text)?.0))?;
    all.0.extend(shapes.0.iter().cloned());
    files::replace(file, &all.text())
}

/// What a choice depends on besides the problem.
fn conditions(device: &Device, info: &DeviceInfo, target: &str, libraries: String) -> Validators {
    let runtime = device.runtime;
    let values = [
        env!("CARGO_PKG_VERSION").to_owned(),
        format!("{target} {:016x}", code::digest(target)),
        info.arch.clone(),
        format!("{} ({} compute units)", info.name, info.compute_units),
        format!("{} {}", runtime.platform.name(), runtime.version()),
        libraries,
    ];
    CONDITIONS.into_iter().zip(values).collect()
}
