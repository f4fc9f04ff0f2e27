//! The caches that compute units share: the L2 and what is behind it.
//!
//! What is simplified: the caches are empty when a launch begins; workgroups use them one after the other, in the order
//! of their numbers; where only one of n workgroups is counted, the caches are n times smaller. Hardware interleaves the
//! workgroups that run at a time, and keeps what earlier launches left.

use std::collections::HashSet;

use super::cache::{Cache, Shape};
use super::counts::MemoryCounts;

/// The caches of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// Of a compute unit.
    pub near: Shape,
    /// Bytes that it serves in a clock.
    pub near_width: u64,
    pub l2: Shape,
    /// How many L2 caches of this size there are; workgroups go to one after the other (the dies of MI300X).
    pub l2_count: u64,
    /// The Infinity Cache, where there is one.
    pub last: Option<Shape>,
}

/// A line that a compute unit asked the L2 for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// In lines of the L2.
    pub line: u64,
    pub write: bool,
}

/// The state of the shared caches during a launch.
pub struct Hierarchy {
    l2: Vec<Cache>,
    last: Option<Cache>,
    line: u64,
    read: Touched,
    written: Touched,
    fills: Traffic,
    memory: Traffic,
}

/// Lines that were touched.
#[derive(Default)]
struct Touched {
    lines: HashSet<u64>,
    /// How many there were when half of the workgroups were done.
    at_half: u64,
}

/// In lines.
#[derive(Clone, Copy, Default)]
struct Traffic {
    read: u64,
    written: u64,
}

impl Hierarchy {
    /// `every`: one of so many workgroups is counted.
    pub fn new(caches: &Caches, every: u64) -> Hierarchy {
        Hierarchy {
            l2: vec![Cache::new(caches.l2, every); caches.l2_count as usize],
            last: caches.last.map(|shape| Cache::new(shape, every)),
            line: caches.l2.line,
            read: Touched::default(),
            written: Touched::default(),
            fills: Traffic::default(),
            memory: Traffic::default(),
        }
    }

    /// What a workgroup asked for. `index`: it is the n-th that is counted.
    pub fn run(&mut self, index: u64, requests: &[Request]) {
        let part = (index % self.l2.len() as u64) as usize;
        for request in requests {
            let touched = if request.write { &mut self.written } else { &mut self.read };
            touched.lines.insert(request.line);
            let outcome = self.l2[part].access(request.line, request.write);
            if let Some(line) = outcome.written_back {
                self.write_back(line);
            }
            // A line that is written whole is not read before.
            if !outcome.hit && !request.write {
                self.fills.read += 1;
                self.fill(request.line);
            }
        }
    }

    pub fn half_is_done(&mut self) {
        for touched in [&mut self.read, &mut self.written] {
            touched.at_half = touched.lines.len() as u64;
        }
    }

    fn fill(&mut self, line: u64) {
        let Some(last) = &mut self.last else {
            self.memory.read += 1;
            return;
        };
        let outcome = last.access(line, false);
        self.memory.read += u64::from(!outcome.hit);
        self.memory.written += u64::from(outcome.written_back.is_some());
    }

    fn write_back(&mut self, line: u64) {
        self.fills.written += 1;
        match &mut self.last {
            None => self.memory.written += 1,
            Some(last) => {
                self.memory.written += u64::from(last.access(line, true).written_back.is_some());
            }
        }
    }

    /// Adds the traffic to the counts of the launch. What is still written in caches is counted as if it went to memory,
    /// since it will.
    ///
    /// Lines touched for the first time grow more slowly than the number of workgroups where workgroups share data. How
    /// slowly is taken from the growth between half of the counted workgroups and all of them.
    pub fn finish(mut self, factor: f64, memory: &mut MemoryCounts) {
        let left: u64 = self.l2.iter().map(Cache::written).sum();
        self.fills.written += left;
        self.memory.written += left + self.last.as_ref().map_or(0, Cache::written);
        let bytes = |lines: f64| (lines * self.line as f64).round() as u64;
        let (read, written) = (&self.read, &self.written);
        memory.fill_read_bytes = bytes(read.extrapolate(self.fills.read, factor));
        memory.fill_written_bytes = bytes(written.extrapolate(self.fills.written, factor));
        memory.memory_read_bytes = bytes(read.extrapolate(self.memory.read, factor));
        memory.memory_written_bytes = bytes(written.extrapolate(self.memory.written, factor));
        let both = read.lines.intersection(&written.lines).count() as f64 / written.lines.len().max(1) as f64;
        let all = |touched: &Touched| touched.extrapolate(touched.lines.len() as u64, factor);
        memory.footprint_bytes = bytes(all(read) + all(written) * (1.0 - both));
    }
}

impl Touched {
    /// Transfers of all workgroups from those of the counted ones: first ones grow as the lines do, others as the
    /// workgroups.
    fn extrapolate(&self, transfers: u64, factor: f64) -> f64 {
        let lines = self.lines.len() as f64;
        let growth = match self.at_half {
            0 => 1.0,
            half => (lines / half as f64).log2().clamp(0.0, 1.0),
        };
        let first = (transfers as f64).min(lines);
        first * factor.powf(growth) + (transfers as f64 - first) * factor
    }
}
