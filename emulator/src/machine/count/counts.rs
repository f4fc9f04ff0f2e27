//! What was counted of a launch. This is a line of JSON in the file of counters, one for each launch.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::class::Class;
use super::occupancy::Occupancy;

/// All numbers are of the whole launch, unless they say otherwise: where only some workgroups were counted, theirs were
/// multiplied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LaunchCounts {
    pub kernel: String,
    pub target: String,
    /// Of a wave.
    pub lanes: u32,
    pub workgroups: u64,
    pub counted_workgroups: u64,
    /// Work items of a workgroup, and its waves.
    pub workgroup_size: u32,
    pub workgroup_waves: u32,
    pub vector_registers: u32,
    pub lds_bytes: u32,
    pub occupancy: Occupancy,
    /// Instructions of waves.
    pub instructions: BTreeMap<Class, u64>,
    /// Lanes that took part in vector instructions.
    pub active_lanes: u64,
    /// Cycles for which matrix instructions keep a matrix unit busy.
    pub matrix_cycles: u64,
    pub lds: LdsCounts,
    pub memory: MemoryCounts,
    pub alone: Alone,
}

/// LDS, without exchanges between lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LdsCounts {
    pub bytes: u64,
    pub cycles: u64,
    /// Those of the cycles that an access without bank conflicts would not need.
    pub conflict_cycles: u64,
}

/// Memory on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryCounts {
    /// Vector instructions that access it.
    pub requests: u64,
    /// Aligned pieces of so many bytes that they touched.
    pub segments_32: u64,
    pub segments_64: u64,
    pub segments_128: u64,
    /// What the lanes asked for; lanes that ask for the same count each.
    pub asked_bytes: u64,
    /// The touched pieces of 64 bytes.
    pub moved_bytes: u64,
    /// Clocks of a compute unit's own cache.
    pub near_cycles: u64,
    /// Between compute units and the L2.
    pub l2_read_bytes: u64,
    pub l2_written_bytes: u64,
    /// Between the L2 and what is behind it.
    pub fill_read_bytes: u64,
    pub fill_written_bytes: u64,
    /// Between the last cache and memory.
    pub memory_read_bytes: u64,
    pub memory_written_bytes: u64,
    /// Lines that the launch touched, in bytes.
    pub footprint_bytes: u64,
}

/// A workgroup as if it had the device for itself; the mean of those counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Alone {
    /// Clocks from its first instruction to its last.
    pub cycles: f64,
    /// How often its slowest wave waited for vector memory, and for how many of the cycles.
    pub memory_waits: f64,
    pub memory_cycles: f64,
}

impl LaunchCounts {
    pub fn instructions_of(&self, class: Class) -> u64 {
        self.instructions.get(&class).copied().unwrap_or(0)
    }

    /// How much of what memory moved was asked for; more than 1 where lanes asked for the same.
    pub fn coalescing(&self) -> f64 {
        self.memory.asked_bytes as f64 / self.memory.moved_bytes.max(1) as f64
    }
}

impl LdsCounts {
    pub fn add(&mut self, other: &LdsCounts) {
        self.bytes += other.bytes;
        self.cycles += other.cycles;
        self.conflict_cycles += other.conflict_cycles;
    }

    pub fn scale(&mut self, factor: f64) {
        for field in [&mut self.bytes, &mut self.cycles, &mut self.conflict_cycles] {
            *field = scaled(*field, factor);
        }
    }
}

impl MemoryCounts {
    /// What compute units see; the caches behind them are counted for all workgroups together.
    pub fn near(&mut self) -> [&mut u64; 8] {
        [
            &mut self.requests,
            &mut self.segments_32,
            &mut self.segments_64,
            &mut self.segments_128,
            &mut self.asked_bytes,
            &mut self.moved_bytes,
            &mut self.near_cycles,
            &mut self.l2_written_bytes,
        ]
    }

    pub fn add_near(&mut self, mut other: MemoryCounts) {
        for (field, more) in self.near().into_iter().zip(other.near()) {
            *field += *more;
        }
        self.l2_read_bytes += other.l2_read_bytes;
    }

    pub fn scale_near(&mut self, factor: f64) {
        for field in self.near() {
            *field = scaled(*field, factor);
        }
        self.l2_read_bytes = scaled(self.l2_read_bytes, factor);
    }
}

pub fn scaled(value: u64, factor: f64) -> u64 {
    (value as f64 * factor).round() as u64
}
