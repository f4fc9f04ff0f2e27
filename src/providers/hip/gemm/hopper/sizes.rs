//! Sizes of tiles, and how long a product takes with each.

use std::ffi::CStr;

use crate::tensor::ElementType;

use super::super::super::launch::KernelName;
use super::super::product::Product;
use super::super::tiles::TileKernel;
use super::STEP;

/// A size of tiles. Times were measured on an H100, with all of its processors busy and with one.
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) columns: usize,
    stages: usize,
    /// Workgroups that a processor has room for.
    resident: usize,
    /// Whether groups of waves take turns with tiles of their own.
    turns: bool,
    /// `None`: workgroups stay, and take tile after tile. Else all run at the same time, and so many share a tile, each with
    /// a part of K.
    at_once: Option<usize>,
    names: [&'static CStr; 2],
    /// Microseconds of a step of K where one processor, and where all are busy; then from the last step of a tile to its
    /// end, the same; and what a residual, and a function, add to that where all are busy.
    step: [f64; 2],
    store: [f64; 2],
    residual: f64,
    function: f64,
    /// More microseconds where K is in parts, on one processor, and twice that on all; `None`: K is whole, as groups take
    /// turns or steps are few.
    pub(super) split: Option<f64>,
}

macro_rules! names {
    ($size:literal) => {
        [
            // A literal has no NUL inside.
            match CStr::from_bytes_with_nul(concat!("gemm_f16_hopper_", $size, "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
            match CStr::from_bytes_with_nul(concat!("gemm_bf16_hopper_", $size, "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
        ]
    };
}

#[rustfmt::skip]
pub(super) const SIZES: [Size; 9] = [
    Size { rows: 128, columns: 256, stages: 3, resident: 1, turns: false, at_once: None, names: names!("128x256"), step: [0.575, 0.74], store: [1.9, 2.0], residual: 3.0, function: 6.3, split: Some(7.7) },
    Size { rows: 128, columns: 192, stages: 4, resident: 1, turns: false, at_once: None, names: names!("128x192"), step: [0.430, 0.57], store: [1.2, 1.0], residual: 2.2, function: 4.3, split: Some(6.5) },
    Size { rows: 128, columns: 128, stages: 5, resident: 1, turns: true, at_once: None, names: names!("128x128"), step: [0.285, 0.38], store: [1.2, 0.9], residual: 0.8, function: 3.0, split: None },
    Size { rows: 64, columns: 128, stages: 3, resident: 2, turns: false, at_once: None, names: names!("64x128"), step: [0.236, 0.55], store: [0.7, 0.6], residual: 0.3, function: 2.8, split: Some(4.0) },
    Size { rows: 64, columns: 64, stages: 5, resident: 2, turns: false, at_once: None, names: names!("64x64"), step: [0.190, 0.30], store: [0.4, 0.7], residual: 0.2, function: 1.5, split: Some(3.0) },
    // For few steps, whose time is that of results and residual on their way.
    Size { rows: 64, columns: 64, stages: 2, resident: 3, turns: false, at_once: None, names: names!("64x64"), step: [0.430, 0.88], store: [0.3, 0.5], residual: 0.3, function: 2.0, split: None },
    Size { rows: 64, columns: 64, stages: 5, resident: 2, turns: false, at_once: Some(1), names: names!("64x64_once"), step: [0.190, 0.32], store: [0.5, 0.8], residual: 0.3, function: 0.4, split: None },
    Size { rows: 64, columns: 64, stages: 5, resident: 2, turns: false, at_once: Some(2), names: names!("64x64_cluster2"), step: [0.150, 0.24], store: [1.2, 1.2], residual: 0.2, function: 0.5, split: None },
    Size { rows: 64, columns: 64, stages: 5, resident: 2, turns: false, at_once: Some(4), names: names!("64x64_cluster4"), step: [0.150, 0.24], store: [1.2, 1.2], residual: 0.2, function: 0.3, split: None },
];

/// Microseconds from a launch to the first step.
const START: f64 = 3.0;

impl Size {
    pub(super) fn tile(&self, ty: ElementType) -> TileKernel {
        // A type's kernels are a family of their own, as the driver translates a family at a time.
        let (family, name) = match ty {
            ElementType::BF16 => ("hopper_gemm_bf16", self.names[1]),
            _ => ("hopper_gemm_f16", self.names[0]),
        };
        // The stages with two barriers for each, what aligns them, the results of tiles that are under way at a time with a
        // barrier for each wave, and a word. Clusters have room for the sums of a tile besides.
        let tiles = if self.turns { 2 } else { 1 };
        let stages = self.stages * ((self.rows + self.columns) * STEP * 2 + 16);
        let exchange = if self.sharing() > 1 { self.rows * self.columns * 4 } else { 0 };
        let lds = stages + 1024 + tiles * self.rows * self.columns * 2 + self.rows / 16 * 8 + 16 + exchange;
        TileKernel {
            kernel: KernelName { family, name },
            rows: self.rows,
            columns: self.columns,
            lds: lds as u32,
            // Two waves more bring the operands; where the others fill the registers, a group of waves gives up its own.
            items: if self.rows == 128 { 384 } else { 192 },
            adds_up: self.split.is_some(),
            resident: self.resident,
            at_once: self.at_once,
            stages: self.stages as u32,
        }
    }

    /// Rows and columns.
    pub(super) fn sides(&self) -> [usize; 2] {
        [self.rows, self.columns]
    }

    /// Workgroups that share a tile.
    fn sharing(&self) -> usize {
        self.at_once.unwrap_or(1)
    }

    /// Microseconds of a product by this model: tiles one after the other on each processor, which slow each other down.
    pub(super) fn time(&self, product: &Product, steps: usize, parts: usize, units: usize) -> f64 {
        let groups = product.tiles(self.rows, self.columns);
        let sharing = self.sharing();
        let (all, room) = (groups * parts * sharing, units * self.resident);
        // Those of a cluster are faster on processors of their own.
        let fit = all <= if sharing > 1 { units } else { room };
        if self.at_once.is_some() && !fit || sharing > 1 && steps < 2 * sharing {
            return f64::INFINITY;
        }
        let busy = (all as f64 / room as f64).min(1.0);
        let between = |[one, many]: [f64; 2]| one + (many - one) * busy;
        // The more parts there are, the more sums are on their way.
        let split = if parts > 1 { self.split.unwrap_or(f64::INFINITY) * (1.0 + busy) } else { 0.0 };
        let residual = if product.residual.is_some() { self.residual * busy } else { 0.0 };
        let function = if product.is_linear() { 0.0 } else { self.function };
        let store = between(self.store) + residual + function;
        let tile = steps.div_ceil(parts * sharing) as f64 * between(self.step) + store + split;
        START + all.div_ceil(room) as f64 * tile
    }
}
