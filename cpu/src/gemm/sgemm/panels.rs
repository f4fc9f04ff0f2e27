//! A right operand in `f32`, packed in panels of columns.

use std::ops::Range;

use rten_simd::ops::BitOps;
use rten_simd::{Isa, SimdOp};

use crate::gemm::shape::Matrix;
use crate::isa::Dispatch;
use crate::loops::packed_weights::Weights;
use crate::loops::packing::Piece;
use crate::loops::parallel::Parts;
use crate::loops::simd::LONGEST;
use crate::loops::simd::vector_len;
use crate::loops::transpose;

/// Vectors of a panel. The last panel may have fewer, and the last two have two each rather than three and one: tiles of one
/// vector wait for what they read.
pub(super) const VECTORS: usize = 3;
/// Columns that are whole panels with every instruction set.
pub(crate) const COLUMNS: usize = VECTORS * LONGEST;

/// A packed `depth × columns` matrix.
pub(crate) struct Panels {
    data: Weights<f32>,
    depth: usize,
    columns: usize,
}

impl Panels {
    pub(crate) fn new(b: Matrix<'_, f32>, depth: usize, columns: usize, to: Piece<'_>) -> Self {
        let data = to.filled(scratch_len(depth, columns), |scratch| pack(b, depth, columns, scratch));
        Panels { data, depth, columns }
    }

    /// The panels; asserts that the matrix has this extent.
    pub(crate) fn data(&self, depth: usize, columns: usize) -> &[f32] {
        let own = (self.depth, self.columns);
        assert_eq!(own, (depth, columns), "the extent of a packed matrix in a product");
        &self.data
    }
}

/// Elements of a packed `depth × columns` matrix.
pub(crate) fn scratch_len(depth: usize, columns: usize) -> usize {
    columns.next_multiple_of(vector_len()) * depth
}

/// Writes for each panel of columns its rows one after the other. Missing columns of the last vector are 0.
pub(crate) fn pack(b: Matrix<'_, f32>, depth: usize, columns: usize, scratch: &mut [f32]) {
    if depth > 0 {
        Pack { b, depth, columns, scratch }.widest();
    }
}

/// Writes a packed operand row by row.
pub(crate) fn unpack(b: &[f32], depth: usize, columns: usize, out: &mut [f32]) {
    for (start, width) in panels(columns, vector_len()) {
        let count = width.min(columns - start);
        let rows = b[start * depth..][..width * depth].chunks_exact(width);
        for (row, out) in rows.zip(out.chunks_exact_mut(columns)) {
            out[start..][..count].copy_from_slice(&row[..count]);
        }
    }
}

pub(super) struct Pack<'a> {
    pub(super) b: Matrix<'a, f32>,
    pub(super) depth: usize,
    pub(super) columns: usize,
    pub(super) scratch: &'a mut [f32],
}

impl SimdOp for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Pack { b, depth, columns, scratch } = self;
        for (start, width) in panels(columns, isa.f32().len()) {
            let count = width.min(columns - start);
            let panel = &mut scratch[start * depth..][..width * depth];
            if b.column_stride == 1 {
                copy(isa, &b, start, count, width, panel);
            } else if b.row_stride == 1 {
                transposed(&b, start, count, width, panel);
            } else {
                for (k, row) in panel.chunks_exact_mut(width).enumerate() {
                    let from = b.data[k * b.row_stride + start * b.column_stride..].iter();
                    row[..count]
                        .iter_mut()
                        .zip(from.step_by(b.column_stride.max(1)))
                        .for_each(|(y, &x)| *y = x);
                    row[count..].fill(0.0);
                }
            }
        }
    }
}

/// Packs rows that are contiguous. Vector by vector: a call for each of such short rows takes longer than the copy.
#[inline(always)]
fn copy<I: Isa>(isa: I, b: &Matrix<'_, f32>, start: usize, count: usize, width: usize, panel: &mut [f32]) {
    let ops = isa.f32();
    let last = width - ops.len();
    let mask = ops.first_n_mask(count - last);
    for (k, to) in panel.chunks_exact_mut(width).enumerate() {
        let (from, to) = (b.data[k * b.row_stride + start..][..count].as_ptr(), to.as_mut_ptr());
        // SAFETY: a row has `count` elements, all vectors but the last of them and what the mask has of that; there is room
        // for whole vectors.
        unsafe {
            for at in (0..last).step_by(ops.len()) {
                ops.store_ptr(ops.load_ptr(from.add(at)), to.add(at));
            }
            ops.store_ptr(ops.load_ptr_mask(from.add(last), mask), to.add(last));
        }
    }
}

/// Packs columns that are contiguous.
fn transposed(b: &Matrix<'_, f32>, start: usize, count: usize, width: usize, panel: &mut [f32]) {
    let rows = panel.len() / width;
    let out = Parts::<[u8; 4]>::new(bytemuck::cast_slice_mut(panel));
    let (input, stride) = (bytemuck::cast_slice(&b.data[start * b.column_stride..]), b.column_stride);
    let block =
        transpose::Block { input, stride, output: &out, at: 0, row_size: width, rows, columns: count };
    // SAFETY: nobody else has this memory.
    unsafe { block.transpose() };
    if count < width {
        panel.chunks_exact_mut(width).for_each(|row| row[count..].fill(0.0));
    }
}

/// The columns of each panel; of the last some may not be there.
pub(crate) fn columns(columns: usize) -> impl Iterator<Item = Range<usize>> {
    panels(columns, vector_len()).map(|(start, width)| start..start + width)
}

/// Where panels begin, and how many columns they have room for.
#[inline(always)]
fn panels(columns: usize, len: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..columns.div_ceil(VECTORS * len)).map(move |i| panel(i, columns, len))
}

#[inline(always)]
pub(super) fn panel(i: usize, columns: usize, len: usize) -> (usize, usize) {
    let vectors = columns.div_ceil(len);
    // One vector less before all panels from here on.
    let narrow = |i: usize| vectors > 1 && vectors % VECTORS == 1 && i == vectors / VECTORS;
    let start = i * VECTORS - usize::from(narrow(i));
    let end = vectors.min((i + 1) * VECTORS - usize::from(narrow(i + 1)));
    (start * len, (end - start) * len)
}
