//! Chooses a candidate of a problem: the recorded one, the one that is measured to be the fastest, or the default.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::super::Provider;
use super::measure;
use super::problem::Problem;
use super::results::{Fastest, Key};
use super::tuner::Tuner;

impl Tuner {
    /// The candidate to take: recorded, measured now, or the default.
    pub(in super::super) fn choose(&self, provider: &Provider, problem: &Problem<'_>) -> usize {
        let key: Key = (problem.operator.to_owned(), problem.key.clone());
        if let Some(index) = self.recorded(&key, problem) {
            return index;
        }
        if self.options.record.is_some() {
            self.record(&key);
        }
        if !self.options.tune {
            return 0;
        }
        let names = (problem.candidates)(true);
        if names.len() < 2 {
            return 0;
        }
        let planned = measure::plan_all(provider, problem, names.len());
        let _measuring = self.measuring.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have measured it while this one waited.
        if let Some(index) = self.recorded(&key, problem) {
            return index;
        }
        let limit = self.options.max_duration_ms;
        let measured =
            planned.and_then(|planned| measure::measure(provider, &problem.trial, &names, &planned, limit));
        let (operator, problem) = key;
        let found = match measured {
            Ok(found) => found,
            Err(e) => {
                self.note(true, format!("tuning {operator} {problem}: {e}; the default is used"));
                return 0;
            }
        };
        for text in found.dropped {
            self.note(false, format!("tuning {operator} {problem}: {text}"));
        }
        let (name, microseconds) = (names[found.index].clone(), found.microseconds);
        self.note(
            false,
            format!(
                "tuning {operator} {problem}: {name} of {} takes {microseconds:.1} µs, the default {} {:.1} µs",
                names.len(),
                names[0],
                found.default_microseconds
            ),
        );
        let mut state = self.lock();
        state.results.0.insert((operator, problem), Fastest { candidate: name, microseconds });
        state.unsaved = self.options.file.is_some();
        drop(state);
        self.news.store(true, Ordering::Release);
        found.index
    }

    /// Keeps a problem that has no result for the file of shapes.
    fn record(&self, key: &Key) {
        let mut state = self.lock();
        if state.shapes.0.insert(key.clone()) {
            state.unsaved_shapes = true;
            self.news.store(true, Ordering::Release);
        }
    }

    /// The recorded candidate, where it is one of the problem's.
    fn recorded(&self, key: &Key, problem: &Problem<'_>) -> Option<usize> {
        let name = self.lock().results.0.get(key)?.candidate.clone();
        let of_library = name.contains(LIBRARY_MARK);
        let found = (problem.candidates)(of_library).iter().position(|candidate| *candidate == name);
        if found.is_none() {
            let (operator, problem) = key;
            let text = format!("tuning results: {operator} {problem} has no candidate {name} here");
            self.note(true, text);
            // Said once: without the record it is as if it had never been there.
            self.lock().results.0.remove(key);
        }
        found
    }
}

/// What the names of libraries' candidates have and no other has.
const LIBRARY_MARK: char = ':';
