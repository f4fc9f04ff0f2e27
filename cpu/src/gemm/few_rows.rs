//! Products of a few rows with the many rows of a cache: dot products with each, and sums of them by weights. Both are
//! bound by reading the many rows, which come once for all few ones.

use num_traits::Float;
use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use crate::isa::Dispatch;

/// Few rows that meet one of the many in registers.
const ROWS: usize = 4;

/// How far ahead of what is multiplied the many rows are fetched, in numbers: a processor's own fetching does not go
/// beyond a page.
const AHEAD: usize = 1024;

/// The many rows: as many numbers each as the few ones, so far apart.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a, C> {
    pub(crate) data: &'a [C],
    pub(crate) stride: usize,
    pub(crate) count: usize,
    pub(crate) size: usize,
    /// Whether they may be fetched from memory ahead. What was just written lies in the cache.
    pub(crate) fetch: bool,
}

impl<C> Rows<'_, C> {
    #[inline(always)]
    fn at(&self, row: usize) -> &[C] {
        &self.data[row * self.stride..][..self.size]
    }

    /// How far behind a row the one lies that is to be fetched.
    #[inline(always)]
    fn ahead(&self) -> usize {
        AHEAD.div_ceil(self.size.max(1)) * self.stride
    }

    /// Asserts that all rows are there, and that there are so many few ones.
    fn check(&self, few: &[C], weights: &[C]) -> usize {
        let rows = few.len() / self.size.max(1);
        let last = self.count.saturating_sub(1) * self.stride + self.size;
        assert!(
            (self.count == 0 || last <= self.data.len()) && weights.len() == rows * self.count,
            "operands have their extent"
        );
        rows
    }
}

/// `out[row, i] = few[row] · many[i]`, one number after the other.
pub(super) fn plain_dots<C: Float>(few: &[C], many: Rows<'_, C>, out: &mut [C]) {
    many.check(few, out);
    for (row, out) in few.chunks_exact(many.size).zip(out.chunks_exact_mut(many.count.max(1))) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = row.iter().zip(many.at(i)).fold(C::zero(), |sum, (&a, &b)| sum + a * b);
        }
    }
}

/// `few[row] += Σ weights[row, i] · many[i]`, one number after the other.
pub(super) fn plain_sums<C: Float>(weights: &[C], many: Rows<'_, C>, few: &mut [C]) {
    many.check(few, weights);
    for (row, weights) in few.chunks_exact_mut(many.size).zip(weights.chunks_exact(many.count.max(1))) {
        for (i, &weight) in weights.iter().enumerate() {
            row.iter_mut().zip(many.at(i)).for_each(|(y, &x)| *y = *y + weight * x);
        }
    }
}

/// As `plain_dots`, with vectors.
pub(super) fn dots(few: &[f32], many: Rows<'_, f32>, out: &mut [f32]) {
    many.check(few, out);
    Dots { few, many, out, add: false }.widest();
}

/// As `dots`, added to what is there.
pub(super) fn add_dots(few: &[f32], many: Rows<'_, f32>, out: &mut [f32]) {
    many.check(few, out);
    Dots { few, many, out, add: true }.widest();
}

/// As `plain_sums`, with vectors.
pub(super) fn sums(weights: &[f32], many: Rows<'_, f32>, few: &mut [f32]) {
    many.check(few, weights);
    Sums { weights, many, few }.widest();
}

struct Dots<'a> {
    few: &'a [f32],
    many: Rows<'a, f32>,
    out: &'a mut [f32],
    add: bool,
}

impl SimdOp for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(mut self, isa: I) {
        let rows = self.few.len() / self.many.size.max(1);
        let mut row = 0;
        while row < rows {
            row += match rows - row {
                1 => self.some::<I, 1, 4>(isa, row),
                2 | 3 => self.some::<I, 2, 2>(isa, row),
                _ => self.some::<I, ROWS, 2>(isa, row),
            };
        }
    }
}

impl Dots<'_> {
    /// `R` rows from `first` on, with `N` of the many at a time.
    #[inline(always)]
    fn some<I: Isa, const R: usize, const N: usize>(&mut self, isa: I, first: usize) -> usize {
        let whole = self.many.count / N * N;
        for i in (0..whole).step_by(N) {
            self.with::<I, R, N>(isa, first, i);
        }
        for i in whole..self.many.count {
            self.with::<I, R, 1>(isa, first, i);
        }
        R
    }

    #[inline(always)]
    fn with<I: Isa, const R: usize, const N: usize>(&mut self, isa: I, first: usize, i: usize) {
        let ops = isa.f32();
        let (len, size, count) = (ops.len(), self.many.size, self.many.count);
        let whole = size / len * len;
        let few = &self.few[first * size..(first + R) * size];
        let many: [&[f32]; N] = std::array::from_fn(|n| self.many.at(i + n));
        // Later ones find the many in the cache.
        let (fetch, ahead) = (self.many.fetch && first == 0, self.many.ahead());
        let mut sums = [[ops.zero(); N]; R];
        for at in (0..whole).step_by(len) {
            // SAFETY: all rows have `size` numbers, of which a vector from `at` on is a part.
            unsafe {
                let b: [I::F32; N] = std::array::from_fn(|n| ops.load_ptr(many[n].as_ptr().add(at)));
                if fetch {
                    (0..N).for_each(|n| ops.prefetch(many[n].as_ptr().wrapping_add(ahead + at)));
                }
                for (r, sums) in sums.iter_mut().enumerate() {
                    let a = ops.load_ptr(few.as_ptr().add(r * size + at));
                    for n in 0..N {
                        sums[n] = ops.mul_add(a, b[n], sums[n]);
                    }
                }
            }
        }
        for r in 0..R {
            for n in 0..N {
                let mut sum = ops.sum(sums[r][n]);
                for at in whole..size {
                    sum += few[r * size + at] * many[n][at];
                }
                let out = &mut self.out[(first + r) * count + i + n];
                *out = if self.add { *out + sum } else { sum };
            }
        }
    }
}

struct Sums<'a> {
    weights: &'a [f32],
    many: Rows<'a, f32>,
    few: &'a mut [f32],
}

impl SimdOp for Sums<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(mut self, isa: I) {
        let rows = self.few.len() / self.many.size.max(1);
        let mut row = 0;
        while row < rows {
            row += match rows - row {
                1 => self.some::<I, 1>(isa, row),
                2 | 3 => self.some::<I, 2>(isa, row),
                _ => self.some::<I, ROWS>(isa, row),
            };
        }
    }
}

impl Sums<'_> {
    /// `R` rows from `first` on, two vectors of columns at a time.
    #[inline(always)]
    fn some<I: Isa, const R: usize>(&mut self, isa: I, first: usize) -> usize {
        let (len, size) = (isa.f32().len(), self.many.size);
        let mut at = 0;
        while at + 2 * len <= size {
            self.columns::<I, R, 2>(isa, first, at);
            at += 2 * len;
        }
        if at + len <= size {
            self.columns::<I, R, 1>(isa, first, at);
            at += len;
        }
        for at in at..size {
            for r in first..first + R {
                let weights = &self.weights[r * self.many.count..][..self.many.count];
                let terms = weights.iter().enumerate().map(|(i, weight)| weight * self.many.at(i)[at]);
                self.few[r * size + at] += terms.sum::<f32>();
            }
        }
        R
    }

    #[inline(always)]
    fn columns<I: Isa, const R: usize, const V: usize>(&mut self, isa: I, first: usize, at: usize) {
        let ops = isa.f32();
        let (len, size, count) = (ops.len(), self.many.size, self.many.count);
        let weights = &self.weights[first * count..(first + R) * count];
        let few = &mut self.few[first * size..(first + R) * size];
        // Later ones find the many in the cache.
        let (fetch, ahead) = (self.many.fetch && first == 0, self.many.ahead());
        assert!(at + V * len <= size, "vectors of a row");
        // SAFETY: vectors lie within their rows, as was asserted; `check` saw that all of the many are there.
        unsafe {
            let mut sums = [[ops.zero(); V]; R];
            for (r, sums) in sums.iter_mut().enumerate() {
                for (v, sum) in sums.iter_mut().enumerate() {
                    *sum = ops.load_ptr(few.as_ptr().add(r * size + at + v * len));
                }
            }
            for i in 0..count {
                let row = self.many.data.as_ptr().add(i * self.many.stride + at);
                let b: [I::F32; V] = std::array::from_fn(|v| ops.load_ptr(row.add(v * len)));
                if fetch {
                    (0..V).for_each(|v| ops.prefetch(row.wrapping_add(ahead + v * len)));
                }
                for (r, sums) in sums.iter_mut().enumerate() {
                    let weight = ops.splat(*weights.as_ptr().add(r * count + i));
                    for v in 0..V {
                        sums[v] = ops.mul_add(weight, b[v], sums[v]);
                    }
                }
            }
            for (r, sums) in sums.into_iter().enumerate() {
                for (v, sum) in sums.into_iter().enumerate() {
                    ops.store_ptr(sum, few.as_mut_ptr().add(r * size + at + v * len));
                }
            }
        }
    }
}
