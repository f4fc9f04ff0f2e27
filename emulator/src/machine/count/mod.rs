//! Counters of a launch: instructions by kind, memory traffic, bank conflicts, occupancy, and how long a workgroup takes
//! alone.
//!
//! | file | what is in it |
//! |---|---|
//! | `class`, `matrix` | what kind of work an instruction is, how long matrices take |
//! | `segments`, `cache`, `hierarchy` | memory traffic |
//! | `banks` | bank conflicts of LDS |
//! | `occupancy` | how many waves fit |
//! | `timing`, `waits`, `clock` | when a wave's instructions begin |
//! | `observer` | counts the workgroups of one thread |
//! | `counts` | the result |

mod banks;
mod cache;
mod class;
mod clock;
mod counts;
mod hierarchy;
mod matrix;
mod observer;
mod occupancy;
mod segments;
#[cfg(test)]
mod tests;
mod timing;
mod waits;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

pub use cache::Shape;
pub use class::Class;
pub use clock::{Clock, Prepared};
pub use counts::{Alone, LaunchCounts, LdsCounts, MemoryCounts};
pub use hierarchy::Caches;
pub use occupancy::{Limit, Need, Occupancy, occupancy};
pub use timing::Timing;

use crate::isa::Target;

use super::group::{Observer, Watch};
use super::launch::Dispatch;
use counts::scaled;
use hierarchy::Hierarchy;
use observer::{Counter, GroupCounts};

const CLASSES: usize = Class::ALL.len();

/// When nothing else is asked for, about so many workgroups of a launch are counted.
const ENOUGH_WORKGROUPS: u64 = 256;

/// Counts one launch. It watches every n-th workgroup; the results are the same with any number of threads.
pub struct Counting {
    target: Target,
    lanes: u32,
    timing: Timing,
    caches: Caches,
    every: u64,
    /// How many workgroups are counted.
    counted: u64,
    /// What is known before the launch.
    header: LaunchCounts,
    sum: Mutex<Sum>,
}

/// What is added up, in the order of the workgroups.
struct Sum {
    next: u64,
    /// Workgroups that ended before one in front of them.
    waiting: BTreeMap<u64, GroupCounts>,
    total: GroupCounts,
    hierarchy: Hierarchy,
}

impl Counting {
    /// `every`: one of so many workgroups is counted; 0: so that about 256 are.
    pub fn new(dispatch: &Dispatch<'_>, caches: Caches, every: u64) -> Counting {
        let target = dispatch.program.target;
        let workgroups: u64 = dispatch.workgroups.iter().map(|&n| u64::from(n)).product();
        let every = if every == 0 { workgroups.div_ceil(ENOUGH_WORKGROUPS).max(1) } else { every };
        let header = header(dispatch, workgroups);
        let sum = Sum {
            next: 0,
            waiting: BTreeMap::new(),
            total: GroupCounts::default(),
            hierarchy: Hierarchy::new(&caches, every),
        };
        Counting {
            target,
            lanes: header.lanes,
            timing: Timing::of(target),
            caches,
            every,
            counted: workgroups.div_ceil(every),
            header,
            sum: Mutex::new(sum),
        }
    }

    /// The counts, when the launch is over.
    pub fn finish(self) -> LaunchCounts {
        let mut counts = self.header;
        let sum = self.sum.into_inner().unwrap_or_else(PoisonError::into_inner);
        let counted = sum.next.max(1);
        let factor = counts.workgroups as f64 / counted as f64;
        let total = sum.total;
        counts.counted_workgroups = sum.next;
        let instructions = Class::ALL.into_iter().zip(total.instructions);
        counts.instructions =
            instructions.filter(|(_, n)| *n > 0).map(|(class, n)| (class, scaled(n, factor))).collect();
        counts.active_lanes = scaled(total.active_lanes, factor);
        counts.matrix_cycles = scaled(total.matrix_cycles, factor);
        (counts.lds, counts.memory) = (total.lds, total.memory);
        counts.lds.scale(factor);
        counts.memory.scale_near(factor);
        sum.hierarchy.finish(factor, &mut counts.memory);
        let mean = |sum: f64| sum / counted as f64;
        counts.alone = Alone {
            cycles: mean(total.alone.cycles),
            memory_waits: mean(total.alone.memory_waits),
            memory_cycles: mean(total.alone.memory_cycles),
        };
        counts
    }

    /// A workgroup has ended; `index`: it is the n-th that is counted.
    fn add(&self, index: u64, counts: GroupCounts) {
        let mut sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = &mut *sum;
        sum.waiting.insert(index, counts);
        while let Some(counts) = sum.waiting.remove(&sum.next) {
            sum.hierarchy.run(sum.next, &counts.requests);
            sum.total.add(&counts);
            sum.next += 1;
            if sum.next == self.counted.div_ceil(2) && self.counted > 1 {
                sum.hierarchy.half_is_done();
            }
        }
    }
}

impl Watch for Counting {
    fn observer(&self) -> Box<dyn Observer + '_> {
        Box::new(Counter::new(self))
    }
}

impl GroupCounts {
    fn add(&mut self, other: &GroupCounts) {
        for (sum, more) in self.instructions.iter_mut().zip(other.instructions) {
            *sum += more;
        }
        self.active_lanes += other.active_lanes;
        self.matrix_cycles += other.matrix_cycles;
        self.lds.add(&other.lds);
        self.memory.add_near(other.memory);
        self.alone.cycles += other.alone.cycles;
        self.alone.memory_waits += other.alone.memory_waits;
        self.alone.memory_cycles += other.alone.memory_cycles;
    }
}

fn header(dispatch: &Dispatch<'_>, workgroups: u64) -> LaunchCounts {
    let target = dispatch.program.target;
    let lanes = dispatch.lanes() as u32;
    let workgroup_size: u32 = dispatch.workgroup_size.iter().product();
    let need = Need {
        vector_registers: dispatch.descriptor.vector_registers(target, lanes as usize) as u32,
        lanes,
        waves_of_workgroup: workgroup_size.div_ceil(lanes),
        lds: dispatch.descriptor.group_segment_fixed_size + dispatch.dynamic_lds,
    };
    LaunchCounts {
        kernel: dispatch.kernel.to_owned(),
        target: target.name.to_owned(),
        lanes,
        workgroups,
        workgroup_size,
        workgroup_waves: need.waves_of_workgroup,
        vector_registers: need.vector_registers,
        lds_bytes: need.lds,
        occupancy: occupancy(&need, target),
        ..LaunchCounts::default()
    }
}
