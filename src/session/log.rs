//! The log: what a message tells, and who hears of it.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Instant;

use crate::error::Result;

/// How much a message matters. The numbers are the C API's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub(crate) enum Level {
    Debug = 0,
    Info = 1,
    Warning = 2,
    Error = 3,
}

/// Their names, in the order of their numbers.
const LEVELS: [(&str, Level); 4] =
    [("debug", Level::Debug), ("info", Level::Info), ("warning", Level::Warning), ("error", Level::Error)];

impl Level {
    pub(crate) fn parse(name: &str) -> Option<Level> {
        LEVELS.iter().find(|(known, _)| *known == name).map(|(_, level)| *level)
    }

    pub(crate) fn from_number(number: i32) -> Option<Level> {
        usize::try_from(number).ok().and_then(|i| LEVELS.get(i)).map(|(_, level)| *level)
    }

    pub(crate) fn name(self) -> &'static str {
        LEVELS[self as usize].0
    }
}

/// From which level on messages are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threshold {
    From(Level),
    /// None is.
    Off,
}

/// The name of no level at all, and ONNX Runtime's number for it. Its other numbers are those of the levels.
const OFF: [&str; 2] = ["off", "4"];

impl Threshold {
    /// What values of an option "log_level" may be.
    pub(crate) const ALLOWED: &str = "debug, info, warning, error or off, as in ONNX Runtime 0 to 4, or nothing for the level of the session or the environment";

    /// The threshold of an option; `None` inside for no own one, outside for a value that is not allowed.
    pub(crate) fn parse(value: &str) -> Option<Option<Threshold>> {
        if value.is_empty() {
            return Some(None);
        }
        if OFF.contains(&value) {
            return Some(Some(Threshold::Off));
        }
        let level = Level::parse(value).or_else(|| value.parse().ok().and_then(Level::from_number));
        level.map(|level| Some(Threshold::From(level)))
    }

    /// As `parse` takes it.
    pub(crate) fn text(threshold: Option<Threshold>) -> &'static str {
        match threshold {
            Some(Threshold::From(level)) => level.name(),
            Some(Threshold::Off) => OFF[0],
            None => "",
        }
    }

    fn number(self) -> i32 {
        match self {
            Threshold::From(level) => level as i32,
            Threshold::Off => i32::MAX,
        }
    }
}

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Category {
    /// Environments, and what they read of the process.
    Environment,
    /// Opening a model.
    Session,
    /// Devices and what they can do.
    Provider,
    /// Which kernels are fastest.
    Tuning,
    /// Compiled models that are kept for later.
    ModelCache,
    /// Running a model.
    Run,
    /// A defect of the library.
    Defect,
}

impl Category {
    /// As callers see it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Category::Environment => "environment",
            Category::Session => "session",
            Category::Provider => "provider",
            Category::Tuning => "tuning",
            Category::ModelCache => "model_cache",
            Category::Run => "run",
            Category::Defect => "defect",
        }
    }
}

/// A message with what is known about it. Texts are empty where there is nothing to tell.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) level: Level,
    pub(crate) category: Category,
    pub(crate) message: &'a str,
    /// The session's option "log_id", or the name of its model's file.
    pub(crate) session: &'a str,
    /// The run's option "tag".
    pub(crate) run: &'a str,
    pub(crate) node: &'a str,
    /// Where in the library it was written.
    pub(crate) location: &'static Location<'static>,
}

type Sink = Box<dyn Fn(&Record<'_>) + Send + Sync>;

/// Who hears of messages, and from which level on.
struct Listener {
    least: AtomicI32,
    sink: Sink,
}

/// Silences the warnings that go to stderr when an environment has no log.
const SILENCE: &str = "RUKH_NO_WARNINGS";

/// Where messages go. Without a listener they go nowhere, but for what a user must not miss.
#[derive(Clone, Default)]
pub(crate) struct Log {
    listener: Option<Arc<Listener>>,
    session: Option<Arc<str>>,
    /// In place of the listener's own.
    least: Option<Threshold>,
}

impl Log {
    /// Messages of `least` and above go to `sink`, which may be called from any thread.
    pub(crate) fn new(least: Level, sink: impl Fn(&Record<'_>) + Send + Sync + 'static) -> Self {
        let listener = Listener { least: AtomicI32::new(least as i32), sink: Box::new(sink) };
        Log { listener: Some(Arc::new(listener)), ..Self::default() }
    }

    /// The same for what a session writes.
    pub(super) fn of_session(&self, id: &str, least: Option<Threshold>) -> Log {
        let session = (self.listener.is_some() && !id.is_empty()).then(|| id.into());
        Log { listener: self.listener.clone(), session, least: least.or(self.least) }
    }

    /// The same for what a run writes. Allocates nothing.
    pub(super) fn of_run<'a>(&'a self, tag: Option<&'a str>, least: Option<Threshold>) -> RunLog<'a> {
        RunLog { log: self, run: tag.unwrap_or_default(), least: least.or(self.least) }
    }

    /// From which level on messages are told, of all that share the listener.
    pub(crate) fn set_least(&self, least: Level) {
        if let Some(listener) = &self.listener {
            listener.least.store(least as i32, Ordering::Relaxed);
        }
    }

    #[track_caller]
    pub(crate) fn write(&self, level: Level, category: Category, message: &str) {
        self.of_run(None, None).write(level, category, "", message);
    }

    /// A warning that a user must not miss: without a listener it is one line on stderr, unless the variable
    /// `RUKH_NO_WARNINGS` is set to something other than 0.
    #[track_caller]
    pub(crate) fn warn_user(&self, category: Category, message: &str) {
        let silent = || std::env::var_os(SILENCE).is_some_and(|v| !v.is_empty() && v != "0");
        if self.listener.is_some() {
            self.write(Level::Warning, category, message);
        } else if !silent() {
            eprintln!("rukh: warning: {message}");
        }
    }
}

/// The log of one run.
#[derive(Clone, Copy)]
pub(super) struct RunLog<'a> {
    log: &'a Log,
    run: &'a str,
    least: Option<Threshold>,
}

impl RunLog<'_> {
    /// Whether the run tells what it does, node by node: its own level or the session's is "debug". An environment that
    /// listens to everything has not asked each run for this.
    pub(super) fn tells_nodes(&self) -> bool {
        self.log.listener.is_some() && self.least == Some(Threshold::From(Level::Debug))
    }

    /// Tells what became of a node that `begin` was noted for.
    pub(super) fn tell_node(&self, node: &str, operator: &str, on_device: bool, begin: Option<Instant>) {
        let Some(begin) = begin else { return };
        let what = if on_device { "given to the device" } else { "computed" };
        let message = format!("{operator} {what} in {} us", begin.elapsed().as_micros());
        self.write(Level::Debug, Category::Run, node, &message);
    }

    /// Tells how a run ended that `begin` was noted for.
    pub(super) fn tell_end(&self, begin: Option<Instant>, result: &Result<()>) {
        let Some(begin) = begin else { return };
        let took = begin.elapsed().as_micros();
        let message = match result {
            Ok(()) => format!("the run took {took} us"),
            Err(e) => format!("the run failed after {took} us: {e}"),
        };
        self.write(Level::Debug, Category::Run, "", &message);
    }

    #[track_caller]
    pub(super) fn write(&self, level: Level, category: Category, node: &str, message: &str) {
        let Some(listener) = &self.log.listener else { return };
        let least = self.least.map_or_else(|| listener.least.load(Ordering::Relaxed), Threshold::number);
        if (level as i32) < least {
            return;
        }
        let session = self.log.session.as_deref().unwrap_or_default();
        let location = Location::caller();
        (listener.sink)(&Record { level, category, message, session, run: self.run, node, location });
    }
}
