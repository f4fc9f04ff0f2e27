//! Recorded work of runs, by the plan and the addresses that it was recorded for.

use std::any::Any;
use std::sync::Arc;

use crate::hip::Graph;

/// How many graphs a context keeps; the one not used for longest goes first.
const MOST: usize = 16;

/// Graphs of one context. A graph is made the second time that a plan runs with the same addresses, so that
/// what runs once is not paid for.
#[derive(Default)]
pub(crate) struct Graphs {
    entries: Vec<Entry>,
}

struct Entry {
    /// Keeps the plan, whose constants the graph reads.
    plan: Arc<dyn Any + Send + Sync>,
    addresses: Vec<u64>,
    graph: Option<Graph>,
}

/// What to do with the work of a run.
pub(crate) enum Recorded<'g> {
    /// It runs for the first time: give it to the stream.
    New,
    /// Record it and keep it with `set`.
    Again(&'g mut Option<Graph>),
    Ready(&'g Graph),
}

impl Graphs {
    pub(crate) fn find(&mut self, plan: &Arc<dyn Any + Send + Sync>, addresses: &[u64]) -> Recorded<'_> {
        let same = |e: &Entry| Arc::ptr_eq(&e.plan, plan) && e.addresses == addresses;
        let Some(at) = self.entries.iter().position(same) else {
            self.entries.truncate(MOST - 1);
            self.entries.insert(0, Entry { plan: plan.clone(), addresses: addresses.to_vec(), graph: None });
            return Recorded::New;
        };
        self.entries[..=at].rotate_right(1);
        match &mut self.entries[0].graph {
            Some(graph) => Recorded::Ready(graph),
            slot => Recorded::Again(slot),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}
