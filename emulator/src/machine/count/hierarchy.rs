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
    touched: HashSet<u64>,
    /// How many lines there were when half of the workgroups were done.
    touched_at_half: u64,
    fills: Traffic,
    memory: Traffic,
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
            touched: HashSet::new(),
            touched_at_half: 0,
            fills: Traffic::default(),
            memory: Traffic::default(),
        }
    }

    /// What a workgroup asked for. `index`: it is the n-th that is counted.
    pub fn run(&mut self, index: u64, requests: &[Request]) {
        let part = (index % self.l2.len() as u64) as usize;
        for request in requests {
            self.touched.insert(request.line);
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
        self.touched_at_half = self.touched.len() as u64;
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
        let touched = self.touched.len() as f64;
        let growth = match self.touched_at_half {
            0 => 1.0,
            half => (touched / half as f64).log2().clamp(0.0, 1.0),
        };
        let first = factor.powf(growth);
        let bytes = |lines: u64| -> u64 {
            let (new, again) = ((lines as f64).min(touched), (lines as f64 - touched).max(0.0));
            ((new * first + again * factor) * self.line as f64).round() as u64
        };
        memory.fill_read_bytes = bytes(self.fills.read);
        memory.fill_written_bytes = bytes(self.fills.written);
        memory.memory_read_bytes = bytes(self.memory.read);
        memory.memory_written_bytes = bytes(self.memory.written);
        memory.footprint_bytes = bytes(self.touched.len() as u64);
    }
}
