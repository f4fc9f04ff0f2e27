//! The product of a block in `f32`: by `panel_product` where the right operand is packed, else by the crate `rten-gemm`,
//! which only this file names for floats. Operands that were packed as bfloat16 numbers go to `dot::bf16`.
//!
//! `rten-gemm` uses the threads of rayon's current pool. The library keeps that pool at one thread
//! (see `threads`), and avoids the crate's path for a single row times an unpacked matrix, which goes
//! through rayon even so.

use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedAMatrix};
use rten_tensor::NdTensorView;

use super::gemv;
#[cfg(target_arch = "x86_64")]
use super::last_columns;
use super::panel_product;
use super::panels::{self, Panels};
use crate::gemm::compute::{BlockA, BlockB};
use crate::gemm::dot::bf16;
use crate::gemm::dot::isa::{Bf16Pair, DotGroup};
use crate::gemm::shape::{Extent, Matrix};
use crate::loops::packing::Piece;
use crate::loops::scratch::with_scratch;
use crate::loops::simd::vector_len;

/// Rows that are multiplied by contiguous columns as dot products.
const FEW: usize = 4;

/// Rows from which on it pays off to pack panels for them.
const ENOUGH: usize = 8;

pub(crate) enum PackedA {
    Floats(PackedAMatrix<f32>),
    Halves(bf16::PackedA),
}

pub(crate) enum PackedB {
    Floats(Panels),
    Halves(bf16::PackedB),
}

/// What a packed operand holds, which is what those who made the product packed it for.
macro_rules! parts {
    ($packed:ident, $floats:ty) => {
        impl $packed {
            fn floats(&self) -> &$floats {
                match self {
                    $packed::Floats(packed) => packed,
                    $packed::Halves(_) => panic!("the operands of a product are packed for different types"),
                }
            }

            pub(crate) fn halves(&self) -> &bf16::$packed {
                match self {
                    $packed::Halves(packed) => packed,
                    $packed::Floats(_) => panic!("the operands of a product are packed for different types"),
                }
            }
        }
    };
}

parts!(PackedA, PackedAMatrix<f32>);

parts!(PackedB, Panels);

impl PackedB {
    /// The panels of floats; asserts that the matrix has this extent.
    pub(super) fn panels(&self, depth: usize, columns: usize) -> &[f32] {
        self.floats().data(depth, columns)
    }
}

thread_local! {
    /// The kernels for this processor. The crate does not let threads share them.
    static EXECUTOR: GemmExecutor = executor();
}

/// The kernels, after one product of the largest block that the crate packs at a time: its buffers on
/// this thread have their final size then, and no later product allocates.
fn executor() -> GemmExecutor {
    // The crate's largest blocks of rows, depth and columns for `f32`.
    const ROWS: usize = 64;
    const DEPTH: usize = 256;
    const COLUMNS: usize = 1024;
    let executor = GemmExecutor::default();
    let (left, right) = (vec![0.0; ROWS * DEPTH], vec![0.0; DEPTH * COLUMNS]);
    // Both operands lie by columns, so that both are packed.
    let a = Matrix { data: &left, row_stride: 1, column_stride: ROWS };
    let b = Matrix { data: &right, row_stride: 1, column_stride: DEPTH };
    let (a, b) = (view(a, ROWS, DEPTH), view(b, DEPTH, COLUMNS));
    let mut out = vec![0.0; ROWS * COLUMNS];
    let (a, b) = (GemmInputA::Unpacked(a), GemmInputB::Unpacked(b));
    if let Err(error) = executor.gemm(&mut out, a, b, GemmOptions::default()) {
        panic!("a product of {ROWS} × {DEPTH} × {COLUMNS}: {error}");
    }
    executor
}

pub(crate) fn pack_a(
    a: Matrix<'_, f32>,
    rows: usize,
    depth: usize,
    bfloat16: bool,
    to: Piece<'_>,
) -> PackedA {
    if bfloat16 && Bf16Pair::available() {
        return PackedA::Halves(bf16::pack_a(a, rows, depth, to));
    }
    // The crate keeps its layout to itself.
    to.cannot_be_kept();
    PackedA::Floats(EXECUTOR.with(|e| e.prepack_a(view(a, rows, depth))))
}

pub(crate) fn pack_b(
    b: Matrix<'_, f32>,
    depth: usize,
    columns: usize,
    bfloat16: bool,
    to: Piece<'_>,
) -> PackedB {
    if bfloat16 && Bf16Pair::available() {
        return PackedB::Halves(bf16::pack_b(b, depth, columns, to));
    }
    PackedB::Floats(Panels::new(b, depth, columns, to))
}

/// Whether rows of a contiguous left operand are multiplied by contiguous columns as dot products.
pub(crate) fn takes_dots<T>(rows: usize, depth: usize, a: &Matrix<'_, T>, b: &Matrix<'_, T>) -> bool {
    rows <= FEW && depth > 0 && a.column_stride == 1 && a.row_stride == depth && b.row_stride == 1
}

pub(crate) fn product(out: &mut [f32], extent: Extent, a: BlockA<'_, f32>, b: BlockB<'_, f32>, add: bool) {
    let Extent { rows, columns, depth } = extent;
    if rows == 0 || columns == 0 {
        return;
    }
    match (&a, &b) {
        (BlockA::Plain(a), BlockB::Plain(b)) if rows == 1 => {
            return gemv::times_matrix(out, a.data, a.column_stride, *b, depth, add);
        }
        // A column: the transposed product has one row.
        (BlockA::Plain(a), BlockB::Plain(b)) if columns == 1 => {
            let a = Matrix { data: a.data, row_stride: a.column_stride, column_stride: a.row_stride };
            return gemv::times_matrix(out, b.data, b.row_stride, a, depth, add);
        }
        // Packing anew what so few rows are multiplied by takes longer than the product.
        (BlockA::Plain(a), BlockB::Plain(b)) if takes_dots(rows, depth, a, b) => {
            let out = &mut out[..rows * columns];
            return gemv::times_columns(out, &a.data[..rows * depth], *b, depth, add);
        }
        _ => {}
    }
    let in_halves = matches!(a, BlockA::Packed(PackedA::Halves(_)));
    if in_halves || matches!(b, BlockB::Packed(PackedB::Halves(_))) {
        return bf16::product(out, extent, a, b, add);
    }
    let (a, b) = match (a, b) {
        (BlockA::Plain(a), BlockB::Packed(b)) => {
            return panel_product::product(
                out,
                extent,
                a,
                b.floats().data(depth, columns),
                add,
                panel_product::Order::Once,
            );
        }
        (BlockA::Plain(a), BlockB::Plain(b)) if depth > 0 && packs(a, b, rows) => {
            return packed_here(out, extent, a, b, add);
        }
        (BlockA::Plain(a), BlockB::Plain(b)) => (GemmInputA::Unpacked(view(a, rows, depth)), b),
        (BlockA::Packed(a), BlockB::Plain(b)) => (GemmInputA::Packed(a.floats()), b),
        (a @ BlockA::Packed(_), BlockB::Packed(b)) => {
            return with_scratch([depth * columns], |[rows]: [&mut [f32]; 1]| {
                panels::unpack(b.floats().data(depth, columns), depth, columns, rows);
                product(out, extent, a, BlockB::Plain(Matrix::new(rows, columns)), add);
            });
        }
    };
    let b = GemmInputB::Unpacked(view(b, depth, columns));
    let options = GemmOptions { beta: if add { 1.0 } else { 0.0 }, ..GemmOptions::default() };
    if let Err(error) = EXECUTOR.with(|e| e.gemm(&mut out[..rows * columns], a, b, options)) {
        // Extents and packing are ours: an error is a defect of the library.
        panic!("a product of {rows} × {depth} × {columns}: {error}");
    }
}

/// A product whose right operand is packed in panels for it alone.
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables, reason = "the last columns are of x86-64"))]
fn packed_here(out: &mut [f32], extent: Extent, a: Matrix<'_, f32>, b: Matrix<'_, f32>, add: bool) {
    let Extent { columns, depth, .. } = extent;
    #[cfg(target_arch = "x86_64")]
    let last = last_columns::count(extent, vector_len());
    #[cfg(not(target_arch = "x86_64"))]
    let last = 0;
    let packed = columns - last;
    let copied = if b.row_stride == 1 { 0 } else { last * depth };
    with_scratch([panels::scratch_len(depth, packed), copied], |[scratch, copy]: [&mut [f32]; 2]| {
        panels::pack(b, depth, packed, scratch);
        let rows = panel_product::Rows { out, stride: columns };
        panel_product::product_to(
            rows,
            Extent { columns: packed, ..extent },
            a,
            scratch,
            add,
            panel_product::Order::Once,
        );
        #[cfg(target_arch = "x86_64")]
        if last > 0 {
            let b = b.at(0, packed);
            let of = if b.row_stride == 1 {
                (b.data, b.column_stride)
            } else {
                for (j, column) in copy.chunks_exact_mut(depth).enumerate() {
                    let from = b.data[j * b.column_stride..].iter().step_by(b.row_stride);
                    column.iter_mut().zip(from).for_each(|(y, &x)| *y = x);
                }
                (&*copy, depth)
            };
            let rows = panel_product::Rows { out, stride: columns };
            last_columns::product(rows, packed, Extent { columns: last, ..extent }, a, of, add);
        }
    });
}

/// Whether panels are packed for one product: with AVX2, whose tile is faster than the crate's (`avx2`), and with AVX-512, where
/// the crate has a tile as fast but packs both operands: products of two inputs have 0.87 of ONNX Runtime's speed in place of
/// 0.75 (geometric means, Cascade Lake).
fn packs(a: Matrix<'_, f32>, b: Matrix<'_, f32>, rows: usize) -> bool {
    let rows_lie = a.column_stride == 1 && (b.column_stride == 1 || b.row_stride == 1);
    vector_len() >= 8 && rows >= ENOUGH && rows_lie
}

fn view<'a>(m: Matrix<'a, f32>, rows: usize, columns: usize) -> NdTensorView<'a, f32, 2> {
    NdTensorView::from_slice_with_strides([rows, columns], m.data, [m.row_stride, m.column_stride])
        .unwrap_or_else(|e| panic!("a matrix of {rows} × {columns}: {e:?}"))
}
