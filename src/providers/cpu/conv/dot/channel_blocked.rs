//! Channel-blocked outputs: sums of neighbouring channels become the bytes or halves of a dot group, as the next convolution reads
//! them.

use std::ops::Range;

use super::block::Block;
use super::epilogue::{DotStore, Requantized, Rounded, RoundedToHalf, Rows, Runs, Summed};
#[cfg(target_arch = "x86_64")]
use crate::ops::activation::Activation;
use crate::providers::cpu::gemm::{Bf16Pair, Int8x4, SumVector};

/// What a store does, to channel-blocked outputs. A residual is channel-blocked too. Rows are those of whole dot groups.
pub(crate) struct ChannelBlocked<S>(pub(crate) S);

impl DotStore<Int8x4> for ChannelBlocked<Requantized<'_>> {
    fn block(&self, block: Block<'_>) {
        block.compute::<Int8x4, _>(self);
    }
}

impl DotStore<Int8x4> for ChannelBlocked<Summed<'_>> {
    fn block(&self, block: Block<'_>) {
        block.compute::<Int8x4, _>(self);
    }
}

impl DotStore<Bf16Pair> for ChannelBlocked<RoundedToHalf<'_>> {
    #[cfg(target_arch = "x86_64")]
    fn block(&self, block: Block<'_>) {
        super::avx512::with_function!(self.0.activation, f => {
            block.compute::<Bf16Pair, _>(&ChannelBlocked(Rounded(&self.0, f)))
        });
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn block(&self, block: Block<'_>) {
        block.compute::<Bf16Pair, _>(&ChannelBlocked(Rounded(&self.0, ())));
    }
}

#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::x86_64::*;

    use super::super::avx512::Function;
    use super::super::avx512::limited;
    use super::super::avx512::limits;
    use super::super::epilogue::ANY;
    use super::super::epilogue::Place;
    use super::*;

    /// Channels of a dot group of bytes.
    const INT8X4: usize = 4;
    /// Channels of a dot group of halves.
    const BF16_PAIR: usize = 2;

    impl<T> Place<'_, T> {
        /// Where a tile's dot groups of so many channels lie in all outputs, of the dot group whose first channel is `row`.
        #[inline(always)]
        fn dot_groups(&self, count: usize, row: usize, runs: &Runs) -> Range<usize> {
            let (start, Range { start: from, end }) = (self.start + row * self.columns, runs.range());
            start + count * from..start + count * end
        }
    }

    impl Rows for ChannelBlocked<Requantized<'_>> {
        const SHORT: bool = true;

        #[inline(always)]
        unsafe fn rows<const R: usize, const V: usize, const LANES: u8>(
            &self,
            rows: Range<usize>,
            runs: &Runs,
            sums: [[SumVector; V]; R],
        ) {
            let &Requantized { ref place, factors, zero, signed } = &self.0;
            for (dot_group, row) in sums.as_chunks::<INT8X4>().0.iter().zip(rows.step_by(INT8X4)) {
                let factors = &factors[row..row + INT8X4];
                // SAFETY: the instructions as the caller promises, who gives each output once.
                unsafe {
                    let out = place.out.get(place.dot_groups(INT8X4, row, runs)).as_mut_ptr();
                    for v in 0..V {
                        put::<LANES>(
                            out.cast(),
                            runs,
                            v,
                            int8x4(scaled(dot_group, v, factors), zero, signed),
                        );
                    }
                }
            }
        }
    }

    impl Rows for ChannelBlocked<Summed<'_>> {
        const SHORT: bool = true;

        #[inline(always)]
        unsafe fn rows<const R: usize, const V: usize, const LANES: u8>(
            &self,
            rows: Range<usize>,
            runs: &Runs,
            sums: [[SumVector; V]; R],
        ) {
            let Summed { sums: Requantized { place, factors, zero, signed }, residual, .. } = &self.0;
            for (dot_group, row) in sums.as_chunks::<INT8X4>().0.iter().zip(rows.step_by(INT8X4)) {
                let factors = &factors[row..row + INT8X4];
                let range = place.dot_groups(INT8X4, row, runs);
                let residual = residual[range.clone()].as_ptr();
                // SAFETY: as above; the residual has the outputs' shape.
                unsafe {
                    let out = place.out.get(range).as_mut_ptr();
                    let first = limits(*zero, *signed);
                    let less = _mm512_set1_ps(self.0.residual_zero + if *signed { 128.0 } else { 0.0 });
                    let [a, b] = self.0.factors;
                    for v in 0..V {
                        let mut bytes = sign_flipped(take::<LANES>(residual.cast(), runs, v), *signed);
                        let mut numbers = scaled(dot_group, v, factors);
                        for x in &mut numbers {
                            let sum = _mm512_roundscale_ps::<0>(limited(*x, first));
                            let z = _mm512_and_si512(bytes, _mm512_set1_epi32(0xff));
                            let z = _mm512_sub_ps(_mm512_cvtepi32_ps(z), less);
                            let sum = _mm512_mul_ps(sum, _mm512_set1_ps(a));
                            *x = _mm512_add_ps(sum, _mm512_mul_ps(z, _mm512_set1_ps(b)));
                            bytes = _mm512_srli_epi32::<8>(bytes);
                        }
                        put::<LANES>(out.cast(), runs, v, int8x4(numbers, self.0.zero, *signed));
                    }
                }
            }
        }
    }

    impl<F: Function> Rows for ChannelBlocked<Rounded<'_, F>> {
        const SHORT: bool = F::SHORT;

        #[inline(always)]
        unsafe fn rows<const R: usize, const V: usize, const LANES: u8>(
            &self,
            rows: Range<usize>,
            runs: &Runs,
            sums: [[SumVector; V]; R],
        ) {
            let Rounded(RoundedToHalf { place, residual, .. }, function) = &self.0;
            for (dot_group, row) in sums.as_chunks::<BF16_PAIR>().0.iter().zip(rows.step_by(BF16_PAIR)) {
                let range = place.dot_groups(BF16_PAIR, row, runs);
                let residual = residual.map(|residual| residual[range.clone()].as_ptr());
                // SAFETY: as above.
                unsafe {
                    let out = place.out.get(range).as_mut_ptr();
                    let mut halves = [[_mm512_setzero_ps(); V]; BF16_PAIR];
                    for v in 0..V {
                        let mut added = match residual {
                            Some(residual) => take::<LANES>(residual.cast(), runs, v),
                            None => _mm512_setzero_si512(),
                        };
                        // The second one's half lies where it is in a float.
                        for (half, sums) in halves.iter_mut().zip(dot_group).rev() {
                            half[v] = _mm512_castsi512_ps(sums[v]);
                            if residual.is_some() {
                                let upper = _mm512_and_si512(added, _mm512_set1_epi32(!0xffff));
                                half[v] = _mm512_add_ps(half[v], _mm512_castsi512_ps(upper));
                                added = _mm512_slli_epi32::<16>(added);
                            }
                        }
                    }
                    let [first, second] = halves;
                    let (first, second) = (function.eval(first), function.eval(second));
                    for (v, (first, second)) in first.into_iter().zip(second).enumerate() {
                        // All halves of the first, then those of the second.
                        let apart = _mm512_cvtne2ps_pbh(second, first);
                        let apart = std::mem::transmute::<__m512bh, __m512i>(apart);
                        let dot_groups =
                            _mm512_permutexvar_epi16(_mm512_loadu_si512(BESIDE.as_ptr().cast()), apart);
                        put::<LANES>(out.cast(), runs, v, dot_groups);
                    }
                }
            }
        }
    }

    /// The sums of a vector times the factor of each channel.
    ///
    /// # Safety
    /// As of `TileSink::rows`.
    #[inline(always)]
    unsafe fn scaled<const V: usize>(
        dot_group: &[[SumVector; V]; INT8X4],
        v: usize,
        factors: &[f32],
    ) -> [__m512; INT8X4] {
        // SAFETY: as the caller promises.
        unsafe {
            let mut numbers = [_mm512_setzero_ps(); INT8X4];
            for (j, x) in numbers.iter_mut().enumerate() {
                *x = _mm512_mul_ps(_mm512_cvtepi32_ps(dot_group[j][v]), _mm512_set1_ps(factors[j]));
            }
            numbers
        }
    }

    /// The halves of two vectors beside each other.
    const BESIDE: [u16; 32] = {
        let mut at = [0; 32];
        let mut i = 0;
        while i < 32 {
            at[i] = (i / 2 + i % 2 * 16) as u16;
            i += 1;
        }
        at
    };

    /// Reads the dot groups of a vector that are the output's, to the lanes that they are computed in.
    ///
    /// # Safety
    /// As of `TileSink::rows`; `from` must be valid for what is in the mask.
    #[inline(always)]
    unsafe fn take<const LANES: u8>(from: *const i32, runs: &Runs, v: usize) -> __m512i {
        let (before, mask) = runs.place::<LANES>(v);
        // SAFETY: as the caller promises.
        unsafe {
            let dot_groups = _mm512_maskz_loadu_epi32(mask, from.add(before));
            match LANES {
                ANY => _mm512_maskz_expand_epi32(runs.lanes(v), dot_groups),
                _ => dot_groups,
            }
        }
    }

    /// Writes the dot groups of a vector that are the output's.
    ///
    /// # Safety
    /// As of `TileSink::rows`; `out` must be valid for what is in the mask.
    #[inline(always)]
    unsafe fn put<const LANES: u8>(out: *mut i32, runs: &Runs, v: usize, dot_groups: __m512i) {
        let (before, mask) = runs.place::<LANES>(v);
        // SAFETY: as the caller promises.
        unsafe {
            let dot_groups = match LANES {
                ANY => _mm512_maskz_compress_epi32(runs.lanes(v), dot_groups),
                _ => dot_groups,
            };
            match mask {
                0xffff => _mm512_storeu_si512(out.add(before).cast(), dot_groups),
                _ => _mm512_mask_storeu_epi32(out.add(before), mask, dot_groups),
            }
        }
    }

    /// The numbers of each channel as bytes of dot groups: rounded to nearest even, shifted and limited. NaN is the least.
    ///
    /// # Safety
    /// As of `TileSink::rows`.
    #[inline(always)]
    unsafe fn int8x4(x: [__m512; INT8X4], zero: i32, signed: bool) -> __m512i {
        // SAFETY: as the caller promises.
        unsafe {
            let zero = _mm512_set1_epi16((zero + if signed { 128 } else { 0 }) as i16);
            let high = _mm512_set1_ps(i16::MAX.into());
            let mut whole = [_mm512_setzero_si512(); INT8X4];
            for (whole, x) in whole.iter_mut().zip(x) {
                // NaN goes through, to the least integer.
                *whole = _mm512_cvtps_epi32(_mm512_min_ps(high, x));
            }
            let [a, b, c, d] = whole;
            let ab = _mm512_adds_epi16(_mm512_packs_epi32(a, b), zero);
            let cd = _mm512_adds_epi16(_mm512_packs_epi32(c, d), zero);
            // Of each 128 bits: four bytes of every channel; then the bytes of each dot group.
            let turn = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            let dot_groups = _mm512_shuffle_epi8(_mm512_packus_epi16(ab, cd), _mm512_broadcast_i32x4(turn));
            sign_flipped(dot_groups, signed)
        }
    }

    /// Signed bytes as unsigned ones that are 128 more, and back.
    ///
    /// # Safety
    /// As of `TileSink::rows`.
    #[inline(always)]
    unsafe fn sign_flipped(dot_groups: __m512i, signed: bool) -> __m512i {
        // SAFETY: as the caller promises.
        unsafe { if signed { _mm512_xor_si512(dot_groups, _mm512_set1_epi8(-128)) } else { dot_groups } }
    }
}

// Nobody has dot groups there.
#[cfg(not(target_arch = "x86_64"))]
impl<S: Sync> Rows for ChannelBlocked<S> {
    const SHORT: bool = false;

    unsafe fn rows<const R: usize, const V: usize, const LANES: u8>(
        &self,
        rows: Range<usize>,
        runs: &Runs,
        sums: [[SumVector; V]; R],
    ) {
        crate::providers::cpu::gemm::missing((&self.0, rows, runs.lanes(0), sums))
    }
}
