//! One row of bytes times a block of them.

use crate::loops::simd::Loop;

/// One row times a block. Bound by reading the block: the crate would arrange it anew first.
pub(super) struct Row<'a> {
    pub(super) sums: &'a mut [i32],
    pub(super) a: &'a [u8],
    pub(super) b: &'a [i8],
    pub(super) a_zero: u8,
    pub(super) b_zeros: &'a [i8],
    pub(super) add: bool,
}

impl Loop for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Row { sums, a, b, a_zero, b_zeros, add } = self;
        let n = sums.len();
        let own = |k: usize| i32::from(a[k]) - i32::from(a_zero);
        let mut total = 0i32;
        for k in 0..a.len() {
            total += own(k);
        }
        for j in 0..n {
            let before = if add { sums[j] } else { 0 };
            sums[j] = before - total * i32::from(b_zeros[j]);
        }
        // Four rows of `b` at a time, in pairs of 16 bits: their products' sum is one instruction.
        let mut k = 0;
        while k + 4 <= a.len() {
            let factors = [own(k), own(k + 1), own(k + 2), own(k + 3)];
            let rows = &b[k * n..(k + 4) * n];
            let (b0, rows) = rows.split_at(n);
            let (b1, rows) = rows.split_at(n);
            let (b2, b3) = rows.split_at(n);
            for j in 0..n {
                sums[j] += (i32::from(b0[j]) * factors[0] + i32::from(b1[j]) * factors[1])
                    + (i32::from(b2[j]) * factors[2] + i32::from(b3[j]) * factors[3]);
            }
            k += 4;
        }
        for k in k..a.len() {
            let (factor, row) = (own(k), &b[k * n..(k + 1) * n]);
            for j in 0..n {
                sums[j] += i32::from(row[j]) * factor;
            }
        }
    }
}
