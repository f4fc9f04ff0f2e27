//! Rows of `f32`, which are reduced without wider numbers for each element.

use crate::loops::simd::Loop;

/// Rows of f32, or elements of a row, that are added up in f32, halves with halves, before the sum joins others in f64: three
/// roundings of a small sum, the fewer of which are conversions.
pub(super) const TOGETHER: usize = 8;

/// Halves joined with halves.
#[inline(always)]
fn tree(x: impl Fn(usize) -> f32) -> f32 {
    ((x(0) + x(1)) + (x(2) + x(3))) + ((x(4) + x(5)) + (x(6) + x(7)))
}

/// The sum of a row of f32.
pub(super) struct SumOfSingles<'a>(pub(super) &'a [f32]);

impl Loop for SumOfSingles<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        const LANES: usize = 16;
        let (chunks, rest) = self.0.as_chunks::<{ LANES * TOGETHER }>();
        let mut lanes = [0.0f64; LANES];
        for chunk in chunks {
            for i in 0..LANES {
                lanes[i] += f64::from(tree(|k| chunk[k * LANES + i]));
            }
        }
        let (chunks, rest) = rest.as_chunks::<LANES>();
        for chunk in chunks {
            for i in 0..LANES {
                lanes[i] += f64::from(chunk[i]);
            }
        }
        let mut quarter = [0.0; LANES / 4];
        for i in 0..LANES / 4 {
            let at = |k: usize| lanes[i + k * LANES / 4];
            quarter[i] = (at(0) + at(1)) + (at(2) + at(3));
        }
        quarter.into_iter().chain(rest.iter().map(|&x| f64::from(x))).sum()
    }
}

/// Adds rows of f32 to a row of sums.
pub(super) struct SumOfRows<'a>(pub(super) [&'a [f32]; TOGETHER], pub(super) &'a mut [f64]);

impl Loop for SumOfRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let SumOfRows(rows, acc) = self;
        add_rows(rows, acc);
    }
}

/// Adds rows of f32, so far from one another, to a row of sums: `TOGETHER` at a time, of which there are whole groups.
pub(super) struct SumOfEvenRows<'a> {
    pub(super) x: &'a [f32],
    pub(super) stride: usize,
    pub(super) groups: usize,
    pub(super) acc: &'a mut [f64],
}

impl Loop for SumOfEvenRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for group in 0..self.groups {
            let first = group * TOGETHER;
            add_rows(std::array::from_fn(|k| &self.x[(first + k) * self.stride..]), self.acc);
        }
    }
}

#[inline(always)]
fn add_rows(rows: [&[f32]; TOGETHER], acc: &mut [f64]) {
    let rows = rows.map(|row| &row[..acc.len()]);
    for (i, acc) in acc.iter_mut().enumerate() {
        *acc += f64::from(tree(|k| rows[k][i]));
    }
}

/// A step that keeps one of the elements.
pub(super) trait Extreme {
    /// What changes nothing.
    const NOTHING: f32;

    /// Whether the first one is kept of numbers that are none of them NaN.
    fn keeps(a: f32, b: f32) -> bool;
}

/// The extreme of a row of f32; NaN where one is among them.
pub(super) struct ExtremeOfSingles<'a, S>(pub(super) &'a [f32], pub(super) std::marker::PhantomData<S>);

impl<S: Extreme> Loop for ExtremeOfSingles<'_, S> {
    type Output = f32;

    #[inline(always)]
    fn run(self) -> f32 {
        const LANES: usize = 64;
        let join = |a: f32, b: f32| if S::keeps(a, b) { a } else { b };
        let (chunks, rest) = self.0.as_chunks::<LANES>();
        let (mut lanes, mut wrong) = ([S::NOTHING; LANES], [0u32; LANES / 2]);
        for chunk in chunks {
            for i in 0..LANES {
                lanes[i] = join(chunk[i], lanes[i]);
            }
            // One comparison for two elements.
            for i in 0..LANES / 2 {
                wrong[i] |= u32::from(chunk[i].is_nan() | chunk[i + LANES / 2].is_nan());
            }
        }
        // Halves joined with halves, of constant lengths: a chain over all lanes would take as long as a row.
        let mut eighth = [S::NOTHING; LANES / 8];
        for i in 0..LANES / 8 {
            let at = |k: usize| lanes[i + k * LANES / 8];
            let quarters = [0, 1, 2, 3].map(|k| join(at(k), at(k + 4)));
            eighth[i] = join(join(quarters[0], quarters[1]), join(quarters[2], quarters[3]));
        }
        let wrong = wrong.iter().fold(0, |any, one| any | one) != 0 || rest.iter().any(|x| x.is_nan());
        let found = eighth.iter().chain(rest).fold(S::NOTHING, |a, &b| join(a, b));
        if wrong { f32::NAN } else { found }
    }
}
