//! What tuning found: given, taken, and reported.

use crate::error::{Result, fail};
use crate::providers::hip::{Tuned, Tuner};

use super::choose::device_of;
use super::log::{Category, Log};
use super::{Environment, Level, Session, SessionOptions};

impl Session {
    /// The results so far, as text.
    pub(crate) fn tuning_results(&self) -> Result<String> {
        Ok(self.tuner()?.text())
    }

    /// Takes results in addition to those that are there; runs from now on use them. How many were taken:
    /// what does not hold here is told in the log.
    pub(crate) fn add_tuning_results(&self, text: &str) -> Result<usize> {
        let taken = self.tuner()?.add(text, "from the caller");
        self.report_tuning();
        Ok(taken)
    }

    /// Writes what tuning has to tell into the log, and new results into their file.
    pub(super) fn report_tuning(&self) {
        let Some(provider) = self.opened.tuned.as_ref().filter(|provider| provider.tuner().has_news()) else {
            return;
        };
        tell(provider.tuner(), &self.log);
    }

    fn tuner(&self) -> Result<&Tuner> {
        match &self.opened.tuned {
            Some(provider) => Ok(provider.tuner()),
            None => fail!(
                InvalidArgument,
                "the session does not choose among kernels; open it on a GPU with the hip provider's option \"tunable_op_enable\" set to \"1\""
            ),
        }
    }
}

impl Environment {
    /// Measures the problems of a text of shapes on the device that the options name. Results go into the file of the
    /// provider's options.
    pub(crate) fn tune(&self, options: &SessionOptions, shapes: &str) -> Result<Tuned> {
        let provider = device_of(self, options)?;
        let tuned = provider.tuner().tune_shapes(&provider, shapes);
        tell(provider.tuner(), &self.log);
        tuned
    }
}

fn tell(tuner: &Tuner, log: &Log) {
    for note in tuner.take_news() {
        let level = if note.warning { Level::Warning } else { Level::Info };
        log.write(level, Category::Tuning, &note.text);
    }
}
