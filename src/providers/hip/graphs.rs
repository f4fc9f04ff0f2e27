//! Recorded work of runs, by the plan and the addresses that it was recorded for.

use std::any::Any;
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use crate::hip::{Graph, Node};

/// How many plans and addresses a context knows, with or without a graph.
const MOST: usize = 16;

/// How often a graph is changed before it is recorded again. Some runtimes keep memory for each change.
const MOST_CHANGES: u32 = 4096;

type Plan = Arc<dyn Any + Send + Sync>;

/// Graphs of one context. A graph is made the second time that a plan runs, so that what runs once is not paid for.
/// For new addresses one of the plan's graphs is changed; for addresses that come again another one is made.
#[derive(Default)]
pub(crate) struct Graphs {
    /// The one used last comes first.
    entries: Vec<Entry>,
    /// Graphs that nobody asks for any more, and that the device may still work on.
    retired: Vec<RecordedRun>,
}

struct Entry {
    plan: Weak<dyn Any + Send + Sync>,
    /// Of the inputs and outputs in device memory.
    addresses: SmallVec<[u64; 8]>,
    slot: Slot,
}

enum Slot {
    /// Ran once.
    Seen,
    Ready(RecordedRun),
    /// Its work cannot be recorded.
    Refused,
}

/// The recorded launches of a plan.
pub(crate) struct RecordedRun {
    pub(crate) graph: Graph,
    /// The steps that use a run's inputs or outputs. `None`: the graph cannot be changed.
    pub(crate) moving: Option<Vec<MovingStep>>,
    changes: u32,
    /// Was given its addresses by a change, and has not been asked for again.
    floating: bool,
    /// Keeps the plan, whose constants the graph reads; goes last.
    _plan: Plan,
}

/// A step whose launches hold addresses that differ from run to run.
pub(crate) struct MovingStep {
    pub(crate) step: usize,
    /// The launch's number in its plan, and its node.
    pub(crate) nodes: SmallVec<[(usize, Node); 2]>,
}

/// What to do with the work of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Recorded {
    /// Give it to the stream.
    Not,
    /// Record it, and say what came of it with `set`.
    Again,
    /// It is there: `ready`.
    Ready,
    /// A graph is there for other addresses: `movable`.
    Elsewhere(usize),
}

impl RecordedRun {
    pub(crate) fn new(graph: Graph, moving: Option<Vec<MovingStep>>, plan: Plan) -> Self {
        let moving = moving.filter(|_| graph.can_change());
        RecordedRun { graph, moving, changes: 0, floating: false, _plan: plan }
    }
}

impl Graphs {
    /// Looks a run up, and makes it the one used last.
    pub(crate) fn find(&mut self, plan: &Plan, addresses: &[u64]) -> Recorded {
        let of_plan = |e: &Entry| std::ptr::addr_eq(e.plan.as_ptr(), Arc::as_ptr(plan));
        let same = |e: &Entry| of_plan(e) && *e.addresses == *addresses;
        if let Some(at) = self.entries.iter().position(same) {
            self.entries[..=at].rotate_right(1);
            return match &mut self.entries[0].slot {
                Slot::Seen => Recorded::Again,
                Slot::Refused => Recorded::Not,
                Slot::Ready(run) => {
                    run.floating = false;
                    Recorded::Ready
                }
            };
        }
        self.make_room();
        for entry in self.entries.iter_mut().filter(|e| of_plan(e)) {
            if matches!(&entry.slot, Slot::Ready(run) if run.changes >= MOST_CHANGES)
                && let Slot::Ready(run) = std::mem::replace(&mut entry.slot, Slot::Seen)
            {
                self.retired.push(run);
            }
        }
        let addresses = addresses.into();
        self.entries.insert(0, Entry { plan: Arc::downgrade(plan), addresses, slot: Slot::Seen });
        // Another buffer again takes the same graph; else the one that was not used for longest.
        let movable = |e: &Entry| match &e.slot {
            Slot::Ready(run) if of_plan(e) && run.moving.is_some() => Some(run.floating),
            _ => None,
        };
        let floating = self.entries.iter().position(|e| movable(e) == Some(true));
        if let Some(at) = floating.or_else(|| self.entries.iter().rposition(|e| movable(e).is_some())) {
            return Recorded::Elsewhere(at);
        }
        // A plan that ran before gets its first graph, whatever its addresses are now.
        let mut before = self.entries[1..].iter().filter(|e| of_plan(e)).peekable();
        let first = before.peek().is_some() && before.all(|e| matches!(e.slot, Slot::Seen));
        if first { Recorded::Again } else { Recorded::Not }
    }

    /// The graph of the run that was looked up.
    pub(crate) fn ready(&self) -> Option<&RecordedRun> {
        self.movable(0)
    }

    /// The graph at a place that `find` told.
    pub(crate) fn movable(&self, at: usize) -> Option<&RecordedRun> {
        match &self.entries.get(at)?.slot {
            Slot::Ready(run) => Some(run),
            _ => None,
        }
    }

    /// What recording the run that was looked up has given. `None`: it cannot be recorded.
    pub(crate) fn set(&mut self, run: Option<RecordedRun>) {
        if let Some(entry) = self.entries.first_mut() {
            entry.slot = run.map_or(Slot::Refused, Slot::Ready);
        }
    }

    /// The graph at `at` has the addresses of the run that was looked up now; or it was refused to give it those, and
    /// it holds a mixture that nobody may launch.
    pub(crate) fn moved(&mut self, at: usize, moved: bool) {
        let Some(entry) = self.entries.get_mut(at) else { return };
        let Slot::Ready(mut run) = std::mem::replace(&mut entry.slot, Slot::Seen) else { return };
        if moved {
            run.changes += 1;
            run.floating = true;
            self.entries[0].slot = Slot::Ready(run);
        } else {
            entry.slot = Slot::Refused;
            self.retired.push(run);
        }
    }

    /// Lets go of everything. The device must have done its work.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.retired.clear();
    }

    /// Nobody uses what was retired any more: the stream was waited for.
    pub(crate) fn settled(&mut self) {
        self.retired.clear();
    }

    /// Whether so much is retired that waiting for the stream is worth it.
    pub(crate) fn wants_to_settle(&self) -> bool {
        self.retired.len() >= MOST
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.retired.is_empty()
    }

    /// How many graphs there are, and how often one was changed.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, u32) {
        let runs = self.entries.iter().filter_map(|e| match &e.slot {
            Slot::Ready(run) => Some(run.changes),
            _ => None,
        });
        runs.fold((0, 0), |(graphs, all), changes| (graphs + 1, all + changes))
    }

    fn make_room(&mut self) {
        // A plan that graphs alone keep is outdated: no run will ask for it.
        let kept = |e: &Entry| self.entries.iter().filter(|o| o.plan.ptr_eq(&e.plan) && o.is_ready()).count();
        let outdated: SmallVec<[bool; MOST]> =
            self.entries.iter().map(|e| e.plan.strong_count() <= kept(e)).collect();
        for at in (0..self.entries.len()).rev().filter(|at| outdated[*at]) {
            self.remove(at);
        }
        if self.entries.len() >= MOST {
            let without = self.entries.iter().rposition(|e| !e.is_ready());
            self.remove(without.unwrap_or(self.entries.len() - 1));
        }
    }

    fn remove(&mut self, at: usize) {
        if let Slot::Ready(run) = self.entries.remove(at).slot {
            self.retired.push(run);
        }
    }
}

impl Entry {
    fn is_ready(&self) -> bool {
        matches!(self.slot, Slot::Ready(_))
    }
}
