//! What happens to the sums of a product or convolution on their way to memory: scale, bias, residual, activation,
//! requantization, rounding.
//!
//! # The contract of every epilogue
//!
//! There are three forms, by where the sums are: [`Epilogue`] takes rows from memory, `conv::common::epilogue` tiles of
//! `f32` from registers, `conv::dot::epilogue` tiles of dot products from registers. For all of them:
//!
//! * *Which elements.* Every output is given exactly once in a run, by one thread; threads give different ones at the same
//!   time. So an epilogue may write outputs through `Parts` without asking anybody.
//! * *Where.* Rows and positions lie inside the output that the epilogue was made for. Vectors may have more lanes than
//!   there are outputs; masks leave out the others.
//! * *Who may call.* Forms that take registers are called by micro-kernels only, inside a function that was compiled for
//!   the instructions of these registers, on a processor that has them.
//! * *Alignment.* Outputs, biases and residuals are aligned to their elements, no more.

use std::ops::Range;

use half::slice::HalfFloatSliceExt;

use super::activation::activate;
use super::compute::Compute;
use super::shape::Offsets;
use crate::loops::half_types::{narrow, narrow_bfloat16, widen, widen_bfloat16, widened};
use crate::loops::map::apply;
use crate::loops::parallel::Parts;
use crate::loops::simd::{Loop, widest};
use crate::loops::vector::RoughGelu;
use crate::ops::activation::Activation;
use crate::tensor::{Element, bf16, f16};

/// Rows that a bias is added to before an activation follows.
const ROWS: usize = 8;

/// Takes the rows of a product's sums from memory. See the contract above.
pub(crate) trait Epilogue<S>: Sync {
    /// Memory of these whole rows, contiguous, to compute in place. What is computed there is handed
    /// to `apply_in_place`.
    ///
    /// # Safety
    /// The rows must not be in use.
    #[allow(clippy::mut_from_ref)]
    unsafe fn rows(&self, _batch: usize, _rows: Range<usize>) -> Option<&mut [S]> {
        None
    }

    /// Takes columns `start..start + sums.len()` of one row, computed outside of `rows`.
    fn write(&self, batch: usize, row: usize, start: usize, sums: &mut [S]);

    /// The same of some rows from `row` on: of each so many columns, one row behind the other.
    fn write_rows(&self, batch: usize, row: usize, (start, columns): (usize, usize), sums: &mut [S]) {
        for (row, sums) in (row..).zip(sums.chunks_exact_mut(columns)) {
            self.write(batch, row, start, sums);
        }
    }

    /// Whether `apply_in_place` changes rows; else it need not be called.
    fn applies_in_place(&self) -> bool {
        true
    }

    /// Takes one whole row that was computed in place.
    fn apply_in_place(&self, _batch: usize, _row: usize, _sums: &mut [S]) {}
}

/// An element that results are stored as.
pub(crate) trait Store: Element {
    type Compute: Compute + Store<Compute = Self::Compute>;
    /// Whether stored and computed type are the same.
    const SAME: bool;
    /// Whether packing a constant operand saves work.
    const PACK: bool;
    /// Whether it is bfloat16, for which processors have products.
    const BFLOAT16: bool = false;
    fn load(self) -> Self::Compute;
    fn store(x: Self::Compute) -> Self;
    /// Applies a function to numbers that will be stored.
    fn activate(activation: Activation, values: &mut [Self::Compute]) {
        <Self::Compute as Compute>::activate(activation, values);
    }
    /// Stores equally many numbers.
    fn store_all(from: &[Self::Compute], to: &mut [Self]) {
        to.iter_mut().zip(from).for_each(|(y, &x)| *y = Self::store(x));
    }
    /// Loads equally many numbers.
    fn load_all(from: &[Self], to: &mut [Self::Compute]) {
        to.iter_mut().zip(from).for_each(|(y, &x)| *y = x.load());
    }
    /// The slice as bfloat16 numbers, when it is of them.
    fn halves(_slice: &[Self]) -> Option<&[bf16]> {
        None
    }
    fn halves_mut(_slice: &mut [Self]) -> Option<&mut [bf16]> {
        None
    }
    /// The bits of half types.
    fn half_bits(_slice: &[Self]) -> Option<&[u16]> {
        None
    }
    /// The slice as the computed type, when it is the same type.
    fn same(slice: &[Self]) -> Option<&[Self::Compute]>;
    fn same_mut(slice: &mut [Self]) -> Option<&mut [Self::Compute]>;
}

macro_rules! store {
    ($($ty:ty => $pack:literal),*) => {$(
        impl Store for $ty {
            type Compute = $ty;
            const SAME: bool = true;
            const PACK: bool = $pack;
            #[inline(always)]
            fn load(self) -> $ty { self }
            #[inline(always)]
            fn store(x: $ty) -> $ty { x }
            fn same(slice: &[$ty]) -> Option<&[$ty]> { Some(slice) }
            fn same_mut(slice: &mut [$ty]) -> Option<&mut [$ty]> { Some(slice) }
        }
    )*};
}

store!(f32 => true, f64 => false, i32 => false, i64 => false, u32 => false, u64 => false);

/// Small integers wrap when they are stored, as sums in their own type would.
macro_rules! store_small {
    ($($ty:ty => $compute:ty),*) => {$(
        impl Store for $ty {
            type Compute = $compute;
            const SAME: bool = false;
            const PACK: bool = false;
            #[inline(always)]
            fn load(self) -> $compute { self as $compute }
            #[inline(always)]
            fn store(x: $compute) -> $ty { x as $ty }
            fn same(_: &[$ty]) -> Option<&[$compute]> { None }
            fn same_mut(_: &mut [$ty]) -> Option<&mut [$compute]> { None }
        }
    )*};
}

store_small!(i8 => i32, i16 => i32, u8 => u32, u16 => u32);

macro_rules! store_half {
    ($($ty:ty => $bfloat16:literal, $some:expr, $load:expr, $narrow:path, $widen:path, $activate:path);*) => {$(
        impl Store for $ty {
            type Compute = f32;
            const SAME: bool = false;
            const PACK: bool = true;
            const BFLOAT16: bool = $bfloat16;
            #[inline(always)]
            fn load(self) -> f32 { $load(self) }
            #[inline(always)]
            fn store(x: f32) -> $ty { <$ty>::from_f32(x) }
            fn activate(activation: Activation, values: &mut [f32]) { $activate(activation, values) }
            fn store_all(from: &[f32], to: &mut [$ty]) { $narrow(from, to) }
            fn load_all(from: &[$ty], to: &mut [f32]) { $widen(from, to) }
            fn halves(slice: &[$ty]) -> Option<&[bf16]> { $some(slice) }
            fn halves_mut(slice: &mut [$ty]) -> Option<&mut [bf16]> { $some(slice) }
            fn half_bits(slice: &[$ty]) -> Option<&[u16]> { Some(HalfFloatSliceExt::reinterpret_cast(slice)) }
            fn same(_: &[$ty]) -> Option<&[f32]> { None }
            fn same_mut(_: &mut [$ty]) -> Option<&mut [f32]> { None }
        }
    )*};
}

store_half!(
    f16 => false, |_| None, f16::to_f32, narrow, widen, activate;
    bf16 => true, Some, widened, narrow_bfloat16, widen_bfloat16, activate_roughly
);

/// As exactly as bfloat16 numbers need it.
fn activate_roughly(activation: Activation, values: &mut [f32]) {
    match activation {
        Activation::Gelu { tanh: false } => apply(&RoughGelu, values),
        _ => activate(activation, values),
    }
}

/// Something added to each element of the result: a bias by row or column, a residual, Gemm's C.
#[derive(Clone, Copy)]
pub(crate) struct Addend<'a, O> {
    pub(crate) data: &'a [O],
    /// Where the batch's part begins.
    pub(crate) offsets: Offsets<'a>,
    /// 0 repeats one row for all.
    pub(crate) row_stride: usize,
    /// 1, or 0 to repeat one element along the row.
    pub(crate) column_stride: usize,
    pub(crate) scale: f32,
}

/// `activation(alpha · product + addends)`, rounded once and stored in the row-major `m × n` matrices
/// of `out`, one for each of the batch.
pub(crate) struct FusedEpilogue<'a, O: Store> {
    out: Parts<'a, O>,
    m: usize,
    n: usize,
    pub(crate) alpha: f32,
    pub(crate) addends: [Option<Addend<'a, O>>; 2],
    pub(crate) activation: Activation,
}

impl<'a, O: Store> FusedEpilogue<'a, O> {
    /// Stores the product as it is; refined by setting the other fields.
    pub(crate) fn new(out: &'a mut [O], m: usize, n: usize) -> Self {
        FusedEpilogue {
            out: Parts::new(out),
            m,
            n,
            alpha: 1.0,
            addends: [None, None],
            activation: Activation::Identity,
        }
    }

    fn apply(&self, batch: usize, row: usize, start: usize, values: &mut [O::Compute]) {
        if self.alpha != 1.0 {
            widest(Scale(values, self.alpha));
        }
        for addend in self.addends.iter().flatten() {
            let at = addend.offsets.at(batch) + row * addend.row_stride + start * addend.column_stride;
            if addend.column_stride == 0 {
                widest(Add { values, terms: &addend.data[at..at + 1], scale: addend.scale });
            } else {
                add(values, &addend.data[at..][..values.len()], addend.scale);
            }
        }
        O::activate(self.activation, values);
    }

    /// The terms of these columns, the same ones for each row, where nothing but these is added to what is computed in the
    /// stored type.
    fn bias(&self, batch: usize, columns: Range<usize>) -> Option<&[O::Compute]> {
        match &self.addends {
            [Some(addend), None] if self.alpha == 1.0 && addend.scale == 1.0 => {
                let Addend { data, offsets, row_stride, column_stride, .. } = *addend;
                let start = offsets.at(batch) + columns.start;
                let repeats = (row_stride, column_stride) == (0, 1);
                O::same(data.get(start..start + columns.len()).filter(|_| repeats)?)
            }
            _ => None,
        }
    }
}

/// Adds multiples of stored numbers.
fn add<O: Store>(values: &mut [O::Compute], terms: &[O], scale: f32) {
    if O::SAME || O::BFLOAT16 {
        return widest(Add { values, terms, scale });
    }
    // Vector code converts runs of these, not one.
    let mut loaded = [O::Compute::ONE; 256];
    for (values, terms) in values.chunks_mut(loaded.len()).zip(terms.chunks(loaded.len())) {
        O::load_all(terms, &mut loaded[..terms.len()]);
        widest(Add { values, terms: &loaded[..terms.len()], scale });
    }
}

/// Multiplies numbers with a factor.
struct Scale<'a, C>(&'a mut [C], f32);

impl<C: Compute> Loop for Scale<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.0.iter_mut().for_each(|x| *x = x.scaled(self.1));
    }
}

/// Adds multiples of equally many numbers, or of a single one.
struct Add<'a, C, O> {
    values: &'a mut [C],
    terms: &'a [O],
    scale: f32,
}

impl<C: Compute, O: Store<Compute = C>> Loop for Add<'_, C, O> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Add { values, terms, scale } = self;
        match terms {
            &[x] => {
                let x = x.load().scaled(scale);
                values.iter_mut().for_each(|y| *y = y.sum(x));
            }
            _ if scale == 1.0 => values.iter_mut().zip(terms).for_each(|(y, &x)| *y = y.sum(x.load())),
            _ => values.iter_mut().zip(terms).for_each(|(y, &x)| *y = y.sum(x.load().scaled(scale))),
        }
    }
}

/// Writes sums, each plus its column's term, to rows that begin `stride` elements from one another.
struct AddTo<'a, O: Store> {
    sums: &'a [O::Compute],
    terms: &'a [O::Compute],
    out: &'a Parts<'a, O>,
    start: usize,
    stride: usize,
}

impl<O: Store> Loop for AddTo<'_, O> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let AddTo { sums, terms, out, start, stride } = self;
        for (i, sums) in sums.chunks_exact(terms.len()).enumerate() {
            let at = start + i * stride;
            // SAFETY: a product writes each element of its result once, so nobody else has this part.
            let out = unsafe { out.get(at..at + terms.len()) };
            if let Some(out) = O::same_mut(out) {
                for ((y, &x), &term) in out.iter_mut().zip(sums).zip(terms) {
                    *y = x.sum(term);
                }
            }
        }
    }
}

impl<O: Store> Epilogue<O::Compute> for FusedEpilogue<'_, O> {
    unsafe fn rows(&self, batch: usize, rows: Range<usize>) -> Option<&mut [O::Compute]> {
        if !O::SAME {
            return None;
        }
        let start = (batch * self.m + rows.start) * self.n;
        // SAFETY: the rows are not in use, by the caller's promise.
        O::same_mut(unsafe { self.out.get(start..start + rows.len() * self.n) })
    }

    fn write(&self, batch: usize, row: usize, start: usize, values: &mut [O::Compute]) {
        self.apply(batch, row, start, values);
        let at = (batch * self.m + row) * self.n + start;
        // SAFETY: a product writes each element of its result once, so nobody else has this part.
        let out = unsafe { self.out.get(at..at + values.len()) };
        O::store_all(values, out);
    }

    /// With a bias alone, what is read from the tile goes to the result at once.
    fn write_rows(
        &self,
        batch: usize,
        row: usize,
        (start, columns): (usize, usize),
        sums: &mut [O::Compute],
    ) {
        let Some(terms) = self.bias(batch, start..start + columns) else {
            let rows = (row..).zip(sums.chunks_exact_mut(columns));
            return rows.for_each(|(row, sums)| self.write(batch, row, start, sums));
        };
        // An activation finds so many rows in the first cache.
        let rows = if self.activation == Activation::Identity { sums.len() / columns } else { ROWS };
        for (row, sums) in (row..).step_by(rows).zip(sums.chunks(rows * columns)) {
            let at = (batch * self.m + row) * self.n + start;
            widest(AddTo { sums, terms, out: &self.out, start: at, stride: self.n });
            if self.activation == Activation::Identity {
                continue;
            }
            for i in 0..sums.len() / columns {
                // SAFETY: as in `AddTo`.
                let out = unsafe { self.out.get(at + i * self.n..at + i * self.n + columns) };
                if let Some(out) = O::same_mut(out) {
                    O::activate(self.activation, out);
                }
            }
        }
    }

    fn applies_in_place(&self) -> bool {
        self.alpha != 1.0
            || self.addends.iter().any(Option::is_some)
            || self.activation != Activation::Identity
    }

    fn apply_in_place(&self, batch: usize, row: usize, values: &mut [O::Compute]) {
        self.apply(batch, row, 0, values);
    }
}
