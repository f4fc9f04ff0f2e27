//! The inner loops of reductions: a row into one value, and rows into a row of values.

use std::marker::PhantomData;

use crate::ops::reduce::Reduction;
use crate::tensor::{Element, ElementType};

use crate::isa::Dispatch;
use crate::loops::row_extremes::RowExtremes;
use crate::loops::same_type::{same_type, same_type_mut};
use crate::loops::simd::{Loop, run};
use crate::loops::statistics::Real as _;

use super::singles::{EvenRows, Extreme, Extremes, Fold, Rows, SumOfSingles, Sums, TOGETHER};

/// A type that can be reduced, and the wider one it is accumulated in: f64 for floats (so that long
/// sums stay exact to the last place), 64 bits for integers, where sums wrap.
pub(super) trait Accumulate: Element {
    type Acc: Copy + PartialOrd + Send + Sync + 'static;

    fn lift(self) -> Self::Acc;
    fn zero() -> Self::Acc;
    fn one() -> Self::Acc;
    /// Below and above every other value.
    fn lowest() -> Self::Acc;
    fn highest() -> Self::Acc;
    fn add(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    fn mul(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    fn abs(a: Self::Acc) -> Self::Acc;
    fn as_f64(a: Self::Acc) -> f64;
    fn of_f64(x: f64) -> Self::Acc;
    fn mean(sum: Self::Acc, count: usize) -> Self;
    fn finish(acc: Self::Acc) -> Self;
    fn finish_f64(x: f64) -> Self;
    /// Runs a loop over elements of this type: with the widest vectors for those that models compute in.
    fn run<L: Loop>(body: L) -> L::Output;
}

macro_rules! accumulate {
    ($wide:literal; $($acc:ty: $($ty:ty),*; $add:expr, $mul:expr, $abs:expr, $low:expr, $high:expr);* $(;)?) => {$($(
        impl Accumulate for $ty {
            type Acc = $acc;
            #[inline(always)]
            fn lift(self) -> $acc { self as $acc }
            fn zero() -> $acc { 0 as $acc }
            fn one() -> $acc { 1 as $acc }
            fn lowest() -> $acc { $low(<$ty>::MIN as $acc) }
            fn highest() -> $acc { $high(<$ty>::MAX as $acc) }
            #[inline(always)]
            fn add(a: $acc, b: $acc) -> $acc { ($add)(a, b) }
            #[inline(always)]
            fn mul(a: $acc, b: $acc) -> $acc { ($mul)(a, b) }
            #[inline(always)]
            fn abs(a: $acc) -> $acc { ($abs)(a) }
            #[inline(always)]
            fn as_f64(a: $acc) -> f64 { a as f64 }
            #[inline(always)]
            fn of_f64(x: f64) -> $acc { x as $acc }
            fn mean(sum: $acc, count: usize) -> Self {
                // Of no elements: NaN for a float, zero for an integer.
                match count {
                    0 => Self::finish_f64(f64::NAN),
                    n => (sum / n as $acc) as $ty,
                }
            }
            fn finish(acc: $acc) -> Self { acc as $ty }
            fn finish_f64(x: f64) -> Self { x as $ty }
            fn run<L: Loop>(body: L) -> L::Output { run::<L, $wide>(body) }
        }
    )*)*};
}
accumulate! {
    true;
    f64: f32, f64; |a, b| a + b, |a, b| a * b, f64::abs, |_| f64::NEG_INFINITY, |_| f64::INFINITY;
}
accumulate! {
    false;
    i64: i8, i16, i32, i64; i64::wrapping_add, i64::wrapping_mul, i64::wrapping_abs, |x| x, |x| x;
    u64: u8, u16, u32, u64; u64::wrapping_add, u64::wrapping_mul, |x| x, |x| x, |x| x;
}

type RowLoop<W, A> = fn(&[W], A, A) -> A;
type ColumnLoop<W, A> = fn(&[W], &mut [A], &[A]);
type AllRowsLoop = fn(&[f32], usize, &mut [f32]);
type SeveralLoop<A> = fn(Several<'_>, &mut [A]);

/// Several rows of f32.
pub(super) enum Several<'a> {
    /// `TOGETHER` rows.
    Rows([&'a [f32]; TOGETHER]),
    /// So many times as many, each so far from the next.
    Even { x: &'a [f32], stride: usize, groups: usize },
}

/// One pass of a reduction.
pub(super) struct Accumulator<W: Accumulate> {
    pub(super) start: W::Acc,
    /// Adds a row to a value; `shift` is what the pass before gave.
    pub(super) row: RowLoop<W, <W as Accumulate>::Acc>,
    /// Adds a row to a row of values; `shift` has as many, or none where it is not used.
    pub(super) column: ColumnLoop<W, <W as Accumulate>::Acc>,
    /// Finds the value of each of many rows of f32, one after the other in memory, where there is such a way.
    pub(super) rows: Option<AllRowsLoop>,
    /// Joins several rows of f32 with a row of values, where there is such a way. Where a value is infinite or NaN
    /// afterwards it may be wrong: a sum may have overflowed in f32.
    pub(super) several: Option<SeveralLoop<<W as Accumulate>::Acc>>,
    /// The pass to follow, which takes this one's values as its shift.
    pub(super) second: Option<fn() -> Accumulator<W>>,
}

pub(super) fn accumulator<W: Accumulate>(reduction: Reduction) -> Accumulator<W> {
    match reduction {
        Reduction::Sum | Reduction::Mean | Reduction::LogSum => sums::<W>(),
        Reduction::L1 => pass::<W, SumAbs>(W::zero()),
        Reduction::L2 | Reduction::SumSquare => pass::<W, SumSquare>(W::zero()),
        Reduction::Max => extremes::<W, Max>(W::lowest()),
        Reduction::Min => extremes::<W, Min>(W::highest()),
        Reduction::Prod => pass::<W, Prod>(W::one()),
        Reduction::LogSumExp => {
            Accumulator { rows: None, second: Some(exponentials::<W>), ..extremes::<W, Max>(W::lowest()) }
        }
    }
}

fn pass<W: Accumulate, S: Step<W>>(start: W::Acc) -> Accumulator<W> {
    Accumulator {
        start,
        row: |x, acc, _| W::run(Row::<W, S> { x, acc, start: S::neutral(), _step: PhantomData }),
        column: |x, acc, _| W::run(Column::<W, S> { x, acc, _step: PhantomData }),
        rows: None,
        several: None,
        second: None,
    }
}

/// A pass that adds up, f32 as `TOGETHER` says.
fn sums<W: Accumulate>() -> Accumulator<W> {
    Accumulator {
        row: |x, acc, _| {
            let sum = same_type(x).map(|x| run::<_, true>(SumOfSingles(x)));
            match sum.filter(|sum| sum.is_finite()) {
                Some(sum) => W::add(acc, W::of_f64(sum)),
                None => W::run(Row::<W, Sum> { x, acc, start: W::zero(), _step: PhantomData }),
            }
        },
        several: several::<W, Sums>(),
        ..pass::<W, Sum>(W::zero())
    }
}

/// A pass that finds an extreme: that of a row of f32 without wider numbers.
fn extremes<W: Accumulate, S: Step<W> + Extreme>(start: W::Acc) -> Accumulator<W> {
    Accumulator {
        row: |x, acc, _| match same_type(x) {
            Some(x) => {
                let mut extreme = [0.0];
                extremes_of_rows::<S>(x, x.len(), &mut extreme);
                S::join(acc, W::of_f64(extreme[0].into()))
            }
            None => W::run(Row::<W, S> { x, acc, start: S::neutral(), _step: PhantomData }),
        },
        rows: Some(extremes_of_rows::<S>),
        several: several::<W, Extremes<S>>(),
        ..pass::<W, S>(start)
    }
}

fn extremes_of_rows<S: Extreme>(x: &[f32], length: usize, y: &mut [f32]) {
    match S::IS_LEAST {
        true => RowExtremes::<true> { x, length, y }.widest(),
        false => RowExtremes::<false> { x, length, y }.widest(),
    }
}

fn several<W: Accumulate, F: Fold>() -> Option<SeveralLoop<W::Acc>> {
    (W::TYPE == ElementType::F32).then_some(|rows, acc| {
        let Some(acc) = same_type_mut(acc) else { return };
        match rows {
            Several::Rows(rows) => Rows::<F>(rows, acc, PhantomData).widest(),
            Several::Even { x, stride, groups } => {
                EvenRows::<F> { x, stride, groups, acc, fold: PhantomData }.widest();
            }
        }
    })
}

/// The sum of exp(x − shift), over vectors.
fn exponentials_of_singles(x: &[f32], shift: f32) -> f64 {
    let mut shifted = [0.0f32; 256];
    let mut sum = 0.0;
    for x in x.chunks(shifted.len()) {
        let shifted = &mut shifted[..x.len()];
        shifted.iter_mut().zip(x).for_each(|(y, &x)| *y = x - shift);
        f32::exp_all(shifted);
        sum += f32::sum(shifted);
    }
    sum
}

/// The sum of exp(x − shift); in f64 but for rows of f32.
fn exponentials<W: Accumulate>() -> Accumulator<W> {
    fn term<W: Accumulate>(x: W, shift: W::Acc) -> W::Acc {
        W::of_f64((W::as_f64(x.lift()) - W::as_f64(shift)).exp())
    }
    Accumulator {
        start: W::zero(),
        row: |x, acc, shift| match same_type(x) {
            Some(x) => W::add(acc, W::of_f64(exponentials_of_singles(x, W::as_f64(shift) as f32))),
            None => x.iter().fold(acc, |acc, &x| W::add(acc, term(x, shift))),
        },
        column: |x, acc, shift| {
            for ((acc, &x), &shift) in acc.iter_mut().zip(x).zip(shift) {
                *acc = W::add(*acc, term(x, shift));
            }
        },
        rows: None,
        several: None,
        second: None,
    }
}

/// How an element joins an accumulated value, and two accumulated values join.
trait Step<W: Accumulate> {
    fn neutral() -> W::Acc;
    fn lift(x: W) -> W::Acc;
    fn join(a: W::Acc, b: W::Acc) -> W::Acc;
}

macro_rules! steps {
    ($($name:ident: $neutral:ident, $lift:expr, $join:expr);* $(;)?) => {$(
        struct $name;
        impl<W: Accumulate> Step<W> for $name {
            fn neutral() -> W::Acc { W::$neutral() }
            #[inline(always)]
            fn lift(x: W) -> W::Acc { ($lift)(x.lift()) }
            #[inline(always)]
            fn join(a: W::Acc, b: W::Acc) -> W::Acc { ($join)(a, b) }
        }
    )*};
}
steps! {
    Sum: zero, |x| x, W::add;
    SumAbs: zero, W::abs, W::add;
    SumSquare: zero, |x| W::mul(x, x), W::add;
    Prod: one, |x| x, W::mul;
    Max: lowest, |x| x, |a, b| larger::<W>(a, b);
    Min: highest, |x| x, |a, b| smaller::<W>(a, b);
}

/// NaN wins over every number.
#[inline(always)]
#[allow(clippy::eq_op)]
fn larger<W: Accumulate>(a: W::Acc, b: W::Acc) -> W::Acc {
    if a > b || a != a { a } else { b }
}

#[inline(always)]
#[allow(clippy::eq_op)]
fn smaller<W: Accumulate>(a: W::Acc, b: W::Acc) -> W::Acc {
    if a < b || a != a { a } else { b }
}

/// Independent partial results, so that a row of floats can be reduced in vectors.
const LANES: usize = 16;

struct Row<'a, W: Accumulate, S> {
    x: &'a [W],
    acc: W::Acc,
    start: W::Acc,
    _step: PhantomData<S>,
}

impl<W: Accumulate, S: Step<W>> Loop for Row<'_, W, S> {
    type Output = W::Acc;

    #[inline(always)]
    fn run(self) -> W::Acc {
        let (chunks, rest) = self.x.as_chunks::<LANES>();
        let mut lanes = [self.start; LANES];
        for chunk in chunks {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane = S::join(*lane, S::lift(x));
            }
        }
        // Halves joined with halves: a chain over all lanes would take as long as the loop.
        // Of constant lengths, so that the lanes stay in registers.
        let mut half = [self.start; LANES / 2];
        for i in 0..LANES / 2 {
            half[i] = S::join(lanes[i], lanes[i + LANES / 2]);
        }
        let mut quarter = [self.start; LANES / 4];
        for i in 0..LANES / 4 {
            quarter[i] = S::join(half[i], half[i + LANES / 4]);
        }
        let acc = quarter.into_iter().fold(self.acc, |a, b| S::join(a, b));
        rest.iter().fold(acc, |a, &x| S::join(a, S::lift(x)))
    }
}

struct Column<'a, W: Accumulate, S> {
    x: &'a [W],
    acc: &'a mut [W::Acc],
    _step: PhantomData<S>,
}

impl<W: Accumulate, S: Step<W>> Loop for Column<'_, W, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (acc, &x) in self.acc.iter_mut().zip(self.x) {
            *acc = S::join(*acc, S::lift(x));
        }
    }
}

impl Extreme for Max {
    const IS_LEAST: bool = false;

    #[inline(always)]
    fn keeps<T: PartialOrd>(a: &T, b: &T) -> bool {
        a > b
    }
}

impl Extreme for Min {
    const IS_LEAST: bool = true;

    #[inline(always)]
    fn keeps<T: PartialOrd>(a: &T, b: &T) -> bool {
        a < b
    }
}
