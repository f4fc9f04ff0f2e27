//! Weights of a few bits, as rows of numbers.

use std::ops::Range;

use crate::ops::weight_only::MatMulNBits;
use crate::tensor::{TensorView, bf16, f16};

use super::columns::{UnpackWords, Words};
use super::dots::PackedRow;
use crate::gemm::Store;
use crate::isa::Dispatch;
use crate::loops::simd::{Loop, widest};

/// A matrix whose rows are unpacked piece by piece.
pub(super) trait Weights: Sync {
    /// Writes a part of a row, which begins at a multiple of 16. Implementations are inlined, so that
    /// their loops are compiled for the machine's vectors.
    fn unpack(&self, row: usize, depths: Range<usize>, out: &mut [f32]);

    /// Writes a part of some rows as columns: of each depth `width` numbers, of which those beyond the rows are
    /// nobody's. The part begins at a multiple of 16.
    fn panel(&self, rows: Range<usize>, depths: Range<usize>, width: usize, out: &mut [f32])
    where
        Self: Sized,
    {
        widest(Panel { weights: self, rows, depths, width, out });
    }
}

/// Columns of which each comes from a row that was unpacked.
struct Panel<'a, W> {
    weights: &'a W,
    rows: Range<usize>,
    depths: Range<usize>,
    width: usize,
    out: &'a mut [f32],
}

impl<W: Weights> Loop for Panel<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        const ROWS: usize = 16;
        const RUN: usize = 64;
        let Panel { weights, rows, depths, width, out } = self;
        let mut unpacked = [[0.0; RUN]; ROWS];
        for first in rows.clone().step_by(ROWS) {
            let (column, count) = (first - rows.start, ROWS.min(rows.end - first));
            for start in depths.clone().step_by(RUN) {
                let run = start..(start + RUN).min(depths.end);
                for (row, out) in (first..first + count).zip(&mut unpacked) {
                    weights.unpack(row, run.clone(), &mut out[..run.len()]);
                }
                for (i, depth) in run.enumerate() {
                    let out = &mut out[(depth - depths.start) * width + column..][..count];
                    for (y, row) in out.iter_mut().zip(&unpacked) {
                        *y = row[i];
                    }
                }
            }
        }
    }
}

/// The weight of MatMulNBits.
pub(super) struct NBits<'a, T> {
    pub(super) op: MatMulNBits,
    pub(super) data: &'a [u8],
    pub(super) scales: &'a [T],
    pub(super) zeros: Zeros<'a>,
    /// The block whose scale and zero point each depth takes, where it is not its own.
    pub(super) groups: Option<&'a [i32]>,
}

/// The zero points of the blocks.
pub(super) enum Zeros<'a> {
    /// The middle of the range.
    Middle(f32),
    Packed(&'a [u8]),
    F32(&'a [f32]),
    F16(&'a [f16]),
    BF16(&'a [bf16]),
}

impl<'a> Zeros<'a> {
    pub(super) fn new(view: Option<TensorView<'a>>, bits: usize) -> Self {
        use crate::tensor::ElementType as E;
        match view {
            None => Zeros::Middle((1 << (bits - 1)) as f32),
            Some(view) if view.ty() == E::F32 => Zeros::F32(view.slice()),
            Some(view) if view.ty() == E::F16 => Zeros::F16(view.slice()),
            Some(view) if view.ty() == E::BF16 => Zeros::BF16(view.slice()),
            Some(view) => Zeros::Packed(view.slice()),
        }
    }
}

impl<T: Store<Compute = f32>> NBits<'_, T> {
    #[inline(always)]
    pub(super) fn scale_and_zero(&self, row: usize, block: usize) -> (f32, f32) {
        let (op, at) = (&self.op, row * self.op.blocks() + block);
        let zero = match self.zeros {
            Zeros::Middle(zero) => zero,
            Zeros::Packed(zeros) => {
                let byte = zeros[row * op.zero_bytes() + block * op.bits / 8];
                let mask = (1u16 << op.bits) - 1;
                ((byte >> (block * op.bits % 8)) as u16 & mask) as f32
            }
            Zeros::F32(zeros) => zeros[at],
            Zeros::F16(zeros) => zeros[at].to_f32(),
            Zeros::BF16(zeros) => zeros[at].to_f32(),
        };
        (self.scales[at].load(), zero)
    }

    /// Writes those of some blocks of a row.
    fn scales_and_zeros(&self, row: usize, blocks: Range<usize>, scales: &mut [f32], zeros: &mut [f32]) {
        let (op, first) = (&self.op, row * self.op.blocks());
        let at = first + blocks.start..first + blocks.end;
        T::load_all(&self.scales[at.clone()], &mut scales[..at.len()]);
        let zeros = &mut zeros[..at.len()];
        match self.zeros {
            Zeros::Middle(zero) => zeros.fill(zero),
            Zeros::Packed(packed) => {
                let packed = &packed[row * op.zero_bytes()..][..op.zero_bytes()];
                let mask = (1u16 << op.bits) - 1;
                for (zero, bit) in zeros.iter_mut().zip((blocks.start * op.bits..).step_by(op.bits)) {
                    *zero = ((packed[bit / 8] >> (bit % 8)) as u16 & mask) as f32;
                }
            }
            Zeros::F32(typed) => zeros.copy_from_slice(&typed[at]),
            Zeros::F16(typed) => <f16 as Store>::load_all(&typed[at], zeros),
            Zeros::BF16(typed) => <bf16 as Store>::load_all(&typed[at], zeros),
        }
    }
}

impl<T: Store<Compute = f32>> Weights for NBits<'_, T> {
    /// One number after the other: for weights with groups, which others have words of.
    #[inline(always)]
    fn unpack(&self, row: usize, depths: Range<usize>, out: &mut [f32]) {
        let MatMulNBits { block, bits, .. } = self.op;
        let bytes = self.op.blocks() * block * bits / 8;
        let (data, mask) = (&self.data[row * bytes..][..bytes], (1u16 << bits) - 1);
        for (y, depth) in out.iter_mut().zip(depths) {
            let number = u16::from(data[depth * bits / 8]) >> (depth * bits % 8) & mask;
            let at = self.groups.map_or(depth / block, |groups| groups[depth] as usize);
            let (scale, zero) = self.scale_and_zero(row, at);
            *y = (f32::from(number) - zero) * scale;
        }
    }

    fn panel(&self, rows: Range<usize>, depths: Range<usize>, width: usize, out: &mut [f32]) {
        if self.groups.is_some() {
            return widest(Panel { weights: self, rows, depths, width, out });
        }
        let blocks = |row: usize, blocks: Range<usize>, scales: &mut [f32], zeros: &mut [f32]| {
            self.scales_and_zeros(row, blocks, scales, zeros);
        };
        let panel = Words { op: &self.op, data: self.data, blocks: &blocks, rows, depths, width, out };
        match self.op.bits {
            2 => UnpackWords::<2, _>(panel).widest(),
            4 => UnpackWords::<4, _>(panel).widest(),
            _ => UnpackWords::<8, _>(panel).widest(),
        }
    }
}

impl<T: Store<Compute = f32>> NBits<'_, T> {
    /// A row, whose scales and zero points are written to the slices; what is left of them is zero.
    pub(super) fn row<'b>(
        &'b self,
        row: usize,
        scales: &'b mut [f32],
        zeros: &'b mut [f32],
    ) -> PackedRow<'b> {
        let blocks = self.op.blocks();
        self.scales_and_zeros(row, 0..blocks, scales, zeros);
        scales[blocks..].fill(0.0);
        zeros[blocks..].fill(0.0);
        let bytes = blocks * self.op.block * self.op.bits / 8;
        PackedRow { op: &self.op, data: &self.data[row * bytes..][..bytes], scales, zeros }
    }
}

/// The weight of MatMulBnb4.
pub(super) struct Codes<'a, T> {
    pub(super) k: usize,
    pub(super) block: usize,
    pub(super) table: &'a [f32; 16],
    pub(super) data: &'a [u8],
    pub(super) factors: &'a [T],
}

impl<T: Store<Compute = f32>> Weights for Codes<'_, T> {
    #[inline(always)]
    fn unpack(&self, row: usize, depths: Range<usize>, out: &mut [f32]) {
        let first = row * self.k;
        let mut at = first + depths.start;
        let end = first + depths.end;
        let mut out = out.iter_mut();
        while at < end {
            let next = ((at / self.block + 1) * self.block).min(end);
            let factor = self.factors[at / self.block].load();
            for (i, y) in (at..next).zip(&mut out) {
                let code = self.data[i / 2] >> (if i % 2 == 0 { 4 } else { 0 }) & 15;
                *y = self.table[code as usize] * factor;
            }
            at = next;
        }
    }
}

/// A sign, then three bits that stand for these magnitudes (bitsandbytes).
pub(super) const FP4: [f32; 16] = [
    0.0,
    1.0 / 192.0,
    2.0 / 3.0,
    1.0,
    1.0 / 3.0,
    0.5,
    1.0 / 6.0,
    0.25,
    -0.0,
    -1.0 / 192.0,
    -2.0 / 3.0,
    -1.0,
    -1.0 / 3.0,
    -0.5,
    -1.0 / 6.0,
    -0.25,
];

/// Quantiles of the normal distribution, scaled to [-1, 1] (Dettmers et al., QLoRA, 2023, appendix E).
pub(super) const NF4: [f32; 16] = [
    -1.0,
    -0.696_192_8,
    -0.525_073_05,
    -0.394_917_5,
    -0.284_441_38,
    -0.184_773_43,
    -0.091_050_036,
    0.0,
    0.079_580_3,
    0.160_930_2,
    0.246_112_3,
    0.337_915_24,
    0.440_709_83,
    0.562_617,
    0.722_956_84,
    1.0,
];
