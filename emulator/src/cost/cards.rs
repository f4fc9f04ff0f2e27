//! What named cards can do. Times that are made of these numbers are predictions.
//!
//! Sources, by the letter in a row's comment:
//!
//! * A: AMD's data sheets and product pages of the card (compute units, clocks, memory bandwidth, cache sizes, peak rates).
//! * B: AMD's white papers on CDNA, CDNA 2, CDNA 3, RDNA and AMD's slides on RDNA 2, 3, 4 (bytes in a clock, L2 channels).
//! * C: derived: channels times 64 or 128 bytes in a clock, or a neighbour's number.
//! * D: estimates of latencies and of what part of the memory's bandwidth programs reach, of the size that others measured
//!   (chipsandcheese.com: "Microbenchmarking AMD's RDNA 3 Graphics Architecture", "Testing AMD's Giant MI300X"). No
//!   prediction of a copy or of a latency says more than these estimates.
//! * E: the thread traces of docs/prediction.md.
//!
//! Rates of matrix instructions are not here: they follow from the cycles of each instruction, times four SIMDs of a
//! unit; a test compares them with the peaks of the data sheets.

use crate::isa::{Generation, Target};
use crate::machine::count::{Caches, Shape};

/// A card, or one die of a card that reports each die as a device.
#[derive(Clone, Debug)]
pub struct Card {
    /// For the command line.
    pub key: &'static str,
    pub title: &'static str,
    pub target: &'static str,
    pub compute_units: u32,
    /// In MHz, the highest.
    pub clock: u32,
    /// In GB/s.
    pub memory: f64,
    /// The part of it that programs reach.
    pub memory_reached: f64,
    /// From a load to its data when no cache has it, in ns.
    pub memory_latency: f64,
    /// All of its L2 caches, in bytes of a clock.
    pub l2_width: u32,
    pub l2_bytes: u64,
    pub l2_count: u64,
    /// The Infinity Cache in bytes and GB/s; 0 and 0 where there is none.
    pub last_bytes: u64,
    pub last: f64,
    pub peak: Peak,
}

/// Peaks of the data sheet, in TFLOP/s, for tests and tables.
#[derive(Clone, Copy, Debug)]
pub struct Peak {
    pub vector_f32: f64,
    pub matrix_f16: Option<f64>,
}

/// What it costs to begin a kernel when the one before has ended, in µs. AMD's community forum ("HSA: Kernel dispatch
/// latencies") has 3.5 for kernels that are submitted together.
pub const LAUNCH: f64 = 3.5;

const MIB: u64 = 1 << 20;

#[rustfmt::skip]
pub const CARDS: &[Card] = &[
    // A, B (L2: 32 channels of 128 bytes), D
    Card { key: "mi100", title: "AMD Instinct MI100", target: "gfx908", compute_units: 120, clock: 1502,
           memory: 1228.8, memory_reached: 0.80, memory_latency: 450.0, l2_width: 4096, l2_bytes: 8 * MIB, l2_count: 1,
           last_bytes: 0, last: 0.0, peak: Peak { vector_f32: 23.1, matrix_f16: Some(184.6) } },
    // A, B (as MI100), D. One of its two dies.
    Card { key: "mi250x", title: "AMD Instinct MI250X (one die)", target: "gfx90a", compute_units: 110, clock: 1700,
           memory: 1638.4, memory_reached: 0.82, memory_latency: 450.0, l2_width: 4096, l2_bytes: 8 * MIB, l2_count: 1,
           last_bytes: 0, last: 0.0, peak: Peak { vector_f32: 23.9, matrix_f16: Some(191.5) } },
    // A, B (L2: 16 channels of 128 bytes on each of 8 dies; Infinity Cache 17.2 TB/s), D
    Card { key: "mi300x", title: "AMD Instinct MI300X", target: "gfx942", compute_units: 304, clock: 2100,
           memory: 5325.0, memory_reached: 0.80, memory_latency: 350.0, l2_width: 16384, l2_bytes: 4 * MIB, l2_count: 8,
           last_bytes: 256 * MIB, last: 17200.0, peak: Peak { vector_f32: 81.7, matrix_f16: Some(1307.4) } },
    // A, C (L2: 16 channels of 128 bytes; Infinity Cache: 1024 bytes at 1.94 GHz), D
    Card { key: "6900xt", title: "AMD Radeon RX 6900 XT", target: "gfx1030", compute_units: 80, clock: 2250,
           memory: 512.0, memory_reached: 0.88, memory_latency: 260.0, l2_width: 2048, l2_bytes: 4 * MIB, l2_count: 1,
           last_bytes: 128 * MIB, last: 1987.0, peak: Peak { vector_f32: 23.0, matrix_f16: None } },
    // A (Infinity Cache: 5.3 TB/s between the dies), C (L2: 24 channels of 128 bytes), D, E
    Card { key: "7900xtx", title: "AMD Radeon RX 7900 XTX", target: "gfx1100", compute_units: 96, clock: 2500,
           memory: 960.0, memory_reached: 0.88, memory_latency: 280.0, l2_width: 3072, l2_bytes: 6 * MIB, l2_count: 1,
           last_bytes: 96 * MIB, last: 5300.0, peak: Peak { vector_f32: 61.4, matrix_f16: Some(122.8) } },
    // A, C (L2: 16 channels of 128 bytes; Infinity Cache: 1024 bytes at 2.5 GHz), E
    Card { key: "9070xt", title: "AMD Radeon RX 9070 XT", target: "gfx1201", compute_units: 64, clock: 2970,
           memory: 640.0, memory_reached: 0.88, memory_latency: 280.0, l2_width: 2048, l2_bytes: 8 * MIB, l2_count: 1,
           last_bytes: 64 * MIB, last: 2560.0, peak: Peak { vector_f32: 48.7, matrix_f16: Some(194.6) } },
];

impl Card {
    pub fn find(key: &str) -> Option<&'static Card> {
        CARDS.iter().find(|card| card.key.eq_ignore_ascii_case(key))
    }

    /// The card whose caches counters of a target assume: the one with that target, or the nearest relative.
    pub fn of_target(target: Target) -> &'static Card {
        let by_name = CARDS.iter().find(|card| card.target == target.name);
        by_name.unwrap_or(match target.generation {
            Generation::Gfx9 => &CARDS[0],
            Generation::Gfx90a => &CARDS[1],
            Generation::Gfx940 => &CARDS[2],
            Generation::Gfx10 => &CARDS[3],
            Generation::Gfx11 => &CARDS[4],
            Generation::Gfx12 => &CARDS[5],
        })
    }

    /// Whether code for this target has the same instructions as the card's own, so that its counters say something.
    pub fn runs(&self, target: Target) -> bool {
        Target::find(self.target).is_some_and(|own| own.generation == target.generation)
    }

    /// Compute units, or from RDNA on workgroup processors of two of them: four SIMDs each.
    pub fn units(&self) -> u32 {
        if self.is_rdna() { self.compute_units / 2 } else { self.compute_units }
    }

    pub fn is_rdna(&self) -> bool {
        self.target.len() == "gfx1100".len()
    }

    /// LDS accesses that a unit serves in a clock: each of 32 banks.
    pub fn lds_ports(&self) -> u32 {
        if self.is_rdna() { 2 } else { 1 }
    }

    /// Caches for vector loads of a unit.
    pub fn near_ports(&self) -> u32 {
        if self.is_rdna() { 2 } else { 1 }
    }

    pub fn caches(&self) -> Caches {
        // Sizes and lines: the white papers (CDNA 3: 32 KiB with lines of 128 bytes, before 16 KiB with 64; RDNA 2: 16 KiB,
        // later 32 KiB, with 128).
        let (bytes, line, width) = match self.target {
            "gfx908" | "gfx90a" => (16 << 10, 64, 64),
            "gfx942" => (32 << 10, 128, 64),
            "gfx1030" => (16 << 10, 128, 128),
            _ => (32 << 10, 128, 128),
        };
        let shape = |bytes, line| Shape { bytes, line, ways: 16 };
        Caches {
            near: shape(bytes, line),
            near_width: width,
            l2: shape(self.l2_bytes, 128),
            l2_count: self.l2_count,
            last: (self.last_bytes > 0).then(|| shape(self.last_bytes, 128)),
        }
    }
}
