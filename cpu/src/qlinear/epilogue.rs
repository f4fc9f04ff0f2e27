//! What happens to the sums of 8-bit products on their way to memory. The contract is that of `gemm::epilogue`.

use crate::gemm::Epilogue;
use crate::loops::parallel::Parts;
use crate::loops::quantization::whole;
use crate::loops::simd::{Loop, widest};
use crate::tensor::{Element, ElementType, TensorViewMut, f16};

/// `sum · row · column + bias`, then a shift where the result is quantized.
pub(crate) struct Int8Epilogue<'a> {
    /// A factor, from the index in the batch and the row.
    pub(crate) row: &'a (dyn Fn(usize, usize) -> f32 + Sync),
    /// A factor for each column, and where those of each matrix of the batch begin; empty: 1.
    pub(crate) columns: &'a [f32],
    pub(crate) starts: &'a [usize],
    /// For each column; empty: 0.
    pub(crate) bias: &'a [f32],
    /// The zero point of the output.
    pub(crate) zero: f32,
    pub(crate) m: usize,
    pub(crate) n: usize,
}

impl Int8Epilogue<'_> {
    /// Lends `body` the epilogue that stores results of the output's type; no other types than these four come from
    /// integers.
    pub(crate) fn with_epilogue(&self, y: &mut TensorViewMut<'_>, body: impl FnOnce(&dyn Epilogue<i32>)) {
        match y.ty() {
            ElementType::F32 => body(&self.stored(y.slice(), |x: f32| x)),
            ElementType::F16 => body(&self.stored(y.slice(), f16::from_f32)),
            ElementType::I8 => body(&self.stored(y.slice(), byte(self.zero, -128.0, 127.0, |x| x as i8))),
            _ => body(&self.stored(y.slice(), byte(self.zero, 0.0, 255.0, |x| x as u8))),
        }
    }

    fn stored<'a, T: Element, F: Fn(f32) -> T + Sync>(
        &'a self,
        out: &'a mut [T],
        cast: F,
    ) -> Stored<'a, T, F> {
        Stored { epilogue: self, out: Parts::new(out), cast }
    }
}

/// The nearest integer, ties to even, shifted and limited.
#[inline(always)]
fn byte<T>(zero: f32, low: f32, high: f32, of: impl Fn(i32) -> T) -> impl Fn(f32) -> T {
    let (low, high, shift) = (low - zero, high - zero, zero as i32);
    move |x| of(whole(x.max(low).min(high)) + shift)
}

struct Stored<'a, T, F> {
    epilogue: &'a Int8Epilogue<'a>,
    out: Parts<'a, T>,
    cast: F,
}

impl<T: Element, F: Fn(f32) -> T + Sync> Epilogue<i32> for Stored<'_, T, F> {
    fn write(&self, batch: usize, row: usize, start: usize, sums: &mut [i32]) {
        let &Int8Epilogue { columns, starts, bias, m, n, .. } = self.epilogue;
        let at = (batch * m + row) * n + start;
        // SAFETY: a product gives each of its sums once.
        let y = unsafe { self.out.get(at..at + sums.len()) };
        let part = |numbers: &'_ [f32], from: usize| -> Option<std::ops::Range<usize>> {
            (!numbers.is_empty()).then_some(from + start..from + start + sums.len())
        };
        let line = Line {
            y,
            sums,
            factor: (self.epilogue.row)(batch, row),
            columns: part(columns, starts.get(batch).copied().unwrap_or(0)).map(|range| &columns[range]),
            bias: part(bias, 0).map(|range| &bias[range]),
            cast: &self.cast,
        };
        widest(line);
    }
}

struct Line<'a, T, F> {
    y: &'a mut [T],
    sums: &'a [i32],
    factor: f32,
    columns: Option<&'a [f32]>,
    bias: Option<&'a [f32]>,
    cast: &'a F,
}

impl<T, F: Fn(f32) -> T> Loop for Line<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Line { y, sums, factor, columns, bias, cast } = self;
        let numbers = y.iter_mut().zip(sums);
        match (columns, bias) {
            (None, None) => numbers.for_each(|(y, &sum)| *y = cast(sum as f32 * factor)),
            (Some(columns), None) => {
                numbers.zip(columns).for_each(|((y, &sum), &c)| *y = cast(sum as f32 * (factor * c)));
            }
            (None, Some(bias)) => {
                numbers.zip(bias).for_each(|((y, &sum), &bias)| *y = cast(sum as f32 * factor + bias));
            }
            (Some(columns), Some(bias)) => {
                for (((y, &sum), &c), &bias) in numbers.zip(columns).zip(bias) {
                    *y = cast(sum as f32 * (factor * c) + bias);
                }
            }
        }
    }
}
