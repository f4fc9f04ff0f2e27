//! From the counters of a launch to a predicted time.
//!
//! The time is what a launch costs, and the longest of the times for which each part of the card would be busy. Workgroups
//! are whole: the busiest unit of `n` runs the `n`-th part of them, rounded up, which is where few workgroups take as long
//! as many.

use serde::Serialize;

use crate::isa::Target;
use crate::machine::count::{Class, LaunchCounts, Timing};

use super::cards::Card;

/// What limits a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    Matrix,
    Vector,
    Scalar,
    Lds,
    /// The compute unit's own cache and the addresses of its lanes.
    NearCache,
    L2,
    LastCache,
    Memory,
    /// Too few waves to hide how long each takes.
    Latency,
}

impl Bound {
    pub const ALL: [Bound; 9] = [
        Bound::Matrix,
        Bound::Vector,
        Bound::Scalar,
        Bound::Lds,
        Bound::NearCache,
        Bound::L2,
        Bound::LastCache,
        Bound::Memory,
        Bound::Latency,
    ];

    pub fn text(self) -> &'static str {
        match self {
            Bound::Matrix => "matrix",
            Bound::Vector => "vector",
            Bound::Scalar => "scalar",
            Bound::Lds => "LDS",
            Bound::NearCache => "near cache",
            Bound::L2 => "L2",
            Bound::LastCache => "Infinity Cache",
            Bound::Memory => "memory",
            Bound::Latency => "latency",
        }
    }
}

/// What a prediction assumes.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What a launch costs in µs.
    pub launch: f64,
    /// Data that fits the last cache is there when the launch begins.
    pub warm: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { launch: super::LAUNCH, warm: false }
    }
}

/// A predicted time of one launch.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// In µs, with the launch.
    pub time: f64,
    pub bound: Bound,
    /// How long each part would be busy, in µs, in the order of [`Bound::ALL`].
    pub parts: [f64; 9],
}

/// Predicts the time of a launch. An error names a target whose counters do not suit the card.
pub fn predict(counts: &LaunchCounts, card: &Card, settings: &Settings) -> Result<Prediction, String> {
    let target = Target::find(&counts.target).filter(|target| card.runs(*target)).ok_or_else(|| {
        format!("{}: counters of {} say nothing of {}", counts.kernel, counts.target, card.title)
    })?;
    let work = Work { counts, card, timing: Timing::of(target), target };
    let parts = Bound::ALL.map(|bound| work.time(bound, settings).max(0.0));
    let longest = Bound::ALL.into_iter().zip(parts).max_by(|a, b| a.1.total_cmp(&b.1));
    let (bound, longest) = longest.unwrap_or((Bound::Latency, 0.0));
    Ok(Prediction { time: settings.launch + longest, bound, parts })
}

struct Work<'a> {
    counts: &'a LaunchCounts,
    card: &'a Card,
    timing: Timing,
    target: Target,
}

impl Work<'_> {
    /// In µs.
    fn time(&self, bound: Bound, settings: &Settings) -> f64 {
        let memory = &self.counts.memory;
        match bound {
            Bound::Matrix if self.counts.matrix_cycles == 0 => 0.0,
            Bound::Matrix => {
                // RDNA's vector units do the matrices as well.
                let vector = if self.timing.matrix_alone { 0.0 } else { self.vector_cycles() };
                self.on_simds(self.counts.matrix_cycles as f64 + vector)
            }
            Bound::Vector => self.on_simds(self.vector_cycles()),
            Bound::Scalar => self.on_simds(self.scalar_cycles()),
            Bound::Lds => self.on_units(self.lds_cycles(), self.card.lds_ports()),
            Bound::NearCache => self.on_units(memory.near_cycles as f64, self.card.near_ports()),
            Bound::L2 => {
                let bytes = (memory.l2_read_bytes + memory.l2_written_bytes) as f64;
                bytes / (f64::from(self.card.l2_width) * f64::from(self.card.clock))
            }
            Bound::LastCache if self.card.last_bytes == 0 => 0.0,
            Bound::LastCache => {
                (memory.fill_read_bytes + memory.fill_written_bytes) as f64 / self.card.last / 1e3
            }
            Bound::Memory => {
                let bytes = (memory.memory_read_bytes + memory.memory_written_bytes) as f64;
                let kept = if self.card.last_bytes > 0 { self.card.last_bytes } else { self.card.l2_bytes };
                if settings.warm && memory.footprint_bytes <= kept {
                    return 0.0;
                }
                bytes / (self.card.memory * self.card.memory_reached) / 1e3
            }
            Bound::Latency => self.latency(),
        }
    }

    /// Workgroups of the busiest unit, for one of all of them.
    fn busiest(&self) -> f64 {
        let workgroups = self.counts.workgroups.max(1);
        workgroups.div_ceil(u64::from(self.card.units())) as f64 / workgroups as f64
    }

    /// Cycles that SIMDs share: a workgroup's waves go to different ones.
    fn on_simds(&self, cycles: f64) -> f64 {
        let waves = (self.counts.workgroups * u64::from(self.counts.workgroup_waves)).max(1);
        let of_unit = (self.busiest() * waves as f64).round().max(1.0);
        let of_simd = (of_unit / 4.0).ceil();
        cycles / waves as f64 * of_simd / f64::from(self.card.clock)
    }

    fn on_units(&self, cycles: f64, ports: u32) -> f64 {
        // With one workgroup on a unit of two ports, only one of them is used.
        let of_unit = self.busiest() * self.counts.workgroups as f64;
        let ports = f64::from(ports).min(of_unit.max(1.0));
        cycles * self.busiest() / ports / f64::from(self.card.clock)
    }

    fn vector_cycles(&self) -> f64 {
        let cycles = |class: Class| {
            let busy = self.timing.busy(class, "", self.counts.lanes, self.target.generation);
            self.counts.instructions_of(class) as f64 * f64::from(busy)
        };
        // Matrix instructions leave the vector unit after they were issued.
        Class::ALL
            .into_iter()
            .filter(|class| class.is_vector_alu() && *class != Class::Matrix)
            .map(cycles)
            .sum()
    }

    /// CDNA has one scalar unit for four SIMDs, RDNA one for each.
    fn scalar_cycles(&self) -> f64 {
        let classes = [Class::ScalarAlu, Class::Branch, Class::ScalarMemory];
        let count: u64 = classes.iter().map(|class| self.counts.instructions_of(*class)).sum();
        count as f64 * if self.card.is_rdna() { 1.0 } else { 4.0 }
    }

    fn lds_cycles(&self) -> f64 {
        let exchanges = self.counts.instructions_of(Class::LdsExchange) * u64::from(self.counts.lanes / 32);
        (self.counts.lds.cycles + exchanges) as f64
    }

    /// Workgroups that a unit cannot hold at a time run one after the other, each as long as one alone. Waits for memory are
    /// longer than counted in so far as the L2 does not have the data.
    fn latency(&self) -> f64 {
        let held = u64::from(self.counts.occupancy.workgroups_per_unit.max(1));
        let rounds = self.counts.workgroups.div_ceil(u64::from(self.card.units()) * held) as f64;
        let memory = &self.counts.memory;
        let missed = memory.fill_read_bytes as f64 / memory.l2_read_bytes.max(1) as f64;
        let clock = f64::from(self.card.clock);
        let longer = (self.card.memory_latency * clock / 1e3 - f64::from(self.timing.load)).max(0.0);
        let alone = &self.counts.alone;
        rounds * (alone.cycles + alone.memory_waits * missed.min(1.0) * longer) / clock
    }
}
