//! Products of dot groups on AVX-512: what fills 32 bits, four bytes or two bfloat16 numbers, is multiplied and summed
//! by one instruction, 16 dot groups of it at a time.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

#[cfg(target_arch = "x86_64")]
use crate::providers::cpu::isa::has_beyond_avx512;

/// What a dot group holds. The functions ask for a processor for which `available` is true.
pub(crate) trait DotGroup: Send + Sync + 'static {
    /// Numbers in a dot group.
    const COUNT: usize;

    /// Whether the processor has the instruction.
    fn available() -> bool;

    /// `R` rows of dot groups at `a`, each `row` dot groups from the next, times the panel `b` of `COLUMNS` columns: sums
    /// to `out`. `fetch` is what will be read next.
    ///
    /// # Safety
    /// `available()`; `a` must have `R` rows of as many dot groups as `b` has lines, `out` `R` rows of its width.
    unsafe fn rows<const R: usize>(out: Sums, a: *const u32, row: usize, b: &[u32], fetch: Fetch) {
        missing((out, a, row, b, fetch))
    }

    /// A panel of `R` rows, by depth, times `V` vectors of dot groups at each of `taps` from `planes` on; sums begin
    /// with `first`, one for each row, and go to `sink`. Only the dot groups in `mask` are read of the last vector. What
    /// lies `ahead` of each dot group of the panel is fetched.
    ///
    /// # Safety
    /// `available()`; `panel` must have `R` dot groups for each tap, `first` `R` of them; the dot groups that are read must
    /// be valid.
    unsafe fn tile<S: TileSink, const R: usize, const V: usize>(
        sink: &S,
        first: *const u32,
        panel: *const u32,
        ahead: usize,
        taps: &[usize],
        planes: *const u32,
        mask: u16,
    ) {
        let sums: [[SumVector; V]; R] = missing((S::SHORT, first, panel, ahead, taps, planes, mask));
        // SAFETY: nobody comes here.
        unsafe { sink.rows(sums) }
    }

    /// A panel of 8 rows, by depth, times a `column` of dot groups: rows of one sum, which begin with `first`.
    ///
    /// # Safety
    /// `available()`; `column` must have `depth` dot groups, `panel` 8 times as many, `first` 8.
    unsafe fn column<S: TileSink>(
        sink: &S,
        first: *const u32,
        panel: *const u32,
        column: *const u32,
        depth: usize,
    ) {
        // SAFETY: nobody comes here.
        unsafe { sink.rows([[missing((first, panel, column, depth))]]) }
    }
}

/// Where a tile of sums goes.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what reads it is of x86-64"))]
#[derive(Clone, Copy)]
pub(crate) struct Sums {
    pub(crate) at: *mut u32,
    /// Dot groups from a row to the next.
    pub(crate) columns: usize,
    /// Columns that are written, at most `COLUMNS`.
    pub(crate) width: usize,
    /// Whether what is there is added.
    pub(crate) add: bool,
}

/// Memory that is fetched into the cache during a product: an address for its first line, and how many bytes
/// farther for each of the next.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what reads it is of x86-64"))]
#[derive(Clone, Copy)]
pub(crate) struct Fetch {
    from: *const u8,
    step: usize,
}

impl Fetch {
    /// The part of `next` for one of `tiles` tiles that take `depth` lines each.
    pub(crate) fn part(next: &[u32], tile: usize, tiles: usize, depth: usize) -> Self {
        let step = size_of_val(next).div_ceil(tiles * depth.max(1));
        Fetch { from: next.as_ptr().cast::<u8>().wrapping_add(tile * depth * step), step }
    }
}

/// Sums in a register.
#[cfg(target_arch = "x86_64")]
pub(crate) type SumVector = __m512i;

#[cfg(not(target_arch = "x86_64"))]
pub(crate) type SumVector = [u32; VECTOR];

/// Takes the sums of a tile. `rows` is to be `#[inline(always)]`.
pub(crate) trait TileSink {
    /// Whether a row takes few instructions, so that they can be compiled for each row of a tile; sums stay in
    /// registers then.
    const SHORT: bool;

    /// Takes rows of sums. Of a single column they are in the first lane.
    ///
    /// # Safety
    /// The processor has AVX512 F, BW, DQ and VL, and what the dot groups ask for.
    unsafe fn rows<const R: usize, const V: usize>(&self, sums: [[SumVector; V]; R]);
}

/// What functions do on a processor that has none of these products, where nobody may call them.
pub(crate) fn missing<T, R>(_arguments: T) -> R {
    unreachable!("a product of dot_groups on a processor without such products")
}

/// Columns of a right operand's panel: two vectors.
pub(crate) const COLUMNS: usize = 32;
/// Dot groups of a vector.
pub(crate) const VECTOR: usize = 16;

/// Four bytes: in left operands and planes unsigned ones, in the others signed ones. Sums are of `i32`
/// (AVX512_VNNI's `vpdpbusd`).
pub(crate) struct Int8x4;

/// Two bfloat16 numbers, the first in the lower half. Sums are of `f32` (AVX512_BF16's `vdpbf16ps`); those of pairs
/// are rounded to nearest even, and what is smaller than the smallest normal number counts as zero.
pub(crate) struct Bf16Pair;

macro_rules! dot_group {
    ($dot_group:ident, $count:literal, $feature:tt, $left_times_right:expr, $add:expr) => {
        #[cfg(not(target_arch = "x86_64"))]
        impl DotGroup for $dot_group {
            const COUNT: usize = $count;

            fn available() -> bool {
                false
            }
        }

        #[cfg(target_arch = "x86_64")]
        impl DotGroup for $dot_group {
            const COUNT: usize = $count;

            fn available() -> bool {
                has_beyond_avx512!($feature)
            }

            #[target_feature(enable = "avx512f,avx512bw")]
            #[target_feature(enable = $feature)]
            unsafe fn rows<const R: usize>(
                out: Sums,
                a: *const u32,
                row: usize,
                b: &[u32],
                mut fetch: Fetch,
            ) {
                let Sums { at, columns, width, add } = out;
                let mut sums = [[_mm512_setzero_si512(); 2]; R];
                for (p, line) in b.chunks_exact(COLUMNS).enumerate() {
                    // Nothing is read, wherever it points to.
                    _mm_prefetch::<_MM_HINT_T0>(fetch.from.cast());
                    fetch.from = fetch.from.wrapping_add(fetch.step);
                    // SAFETY: a line has two vectors; each row of `a` has a dot group for it.
                    unsafe {
                        let right = [0, VECTOR].map(|j| _mm512_loadu_si512(line.as_ptr().add(j).cast()));
                        for (r, sums) in sums.iter_mut().enumerate() {
                            let left = _mm512_set1_epi32(*a.add(r * row + p) as i32);
                            for (sum, right) in sums.iter_mut().zip(right) {
                                *sum = $left_times_right(*sum, left, right);
                            }
                        }
                    }
                }
                for (half, from) in [0, VECTOR].into_iter().enumerate().filter(|&(_, from)| from < width) {
                    let mask = match width - from {
                        VECTOR.. => !0,
                        rest => (1u16 << rest) - 1,
                    };
                    for (r, sums) in sums.iter().enumerate() {
                        // SAFETY: the mask leaves out what lies beyond the row.
                        unsafe {
                            let at = at.add(r * columns + from).cast();
                            let sum = match add {
                                true => $add(sums[half], _mm512_maskz_loadu_epi32(mask, at)),
                                false => sums[half],
                            };
                            _mm512_mask_storeu_epi32(at, mask, sum);
                        }
                    }
                }
            }

            #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
            #[target_feature(enable = $feature)]
            unsafe fn tile<S: TileSink, const R: usize, const V: usize>(
                sink: &S,
                first: *const u32,
                mut panel: *const u32,
                ahead: usize,
                taps: &[usize],
                planes: *const u32,
                mask: u16,
            ) {
                // SAFETY: as the caller promises.
                unsafe {
                    let mut sums: [[__m512i; V]; R] =
                        std::array::from_fn(|r| [_mm512_set1_epi32(*first.add(r) as i32); V]);
                    for &tap in taps {
                        let from = planes.add(tap);
                        _mm_prefetch::<_MM_HINT_T1>(panel.wrapping_add(ahead).cast());
                        let left: [__m512i; V] = std::array::from_fn(|v| match v + 1 == V {
                            true => _mm512_maskz_loadu_epi32(mask, from.add(v * VECTOR).cast()),
                            false => _mm512_loadu_si512(from.add(v * VECTOR).cast()),
                        });
                        for (r, sums) in sums.iter_mut().enumerate() {
                            let right = _mm512_set1_epi32(*panel.add(r) as i32);
                            for (sum, left) in sums.iter_mut().zip(left) {
                                *sum = $left_times_right(*sum, left, right);
                            }
                        }
                        panel = panel.add(R);
                    }
                    // Through memory: what is long is not compiled for each row of the tile, which has its sums in
                    // registers.
                    sink.rows(if S::SHORT { sums } else { std::hint::black_box(sums) });
                }
            }

            #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
            #[target_feature(enable = $feature)]
            unsafe fn column<S: TileSink>(
                sink: &S,
                first: *const u32,
                panel: *const u32,
                column: *const u32,
                depth: usize,
            ) {
                let mut parts = [_mm512_setzero_si512(); 4];
                // Two dot groups, each for the rows of a panel.
                let halves = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
                for at in (0..depth / 8 * 8).step_by(8) {
                    for (i, part) in parts.iter_mut().enumerate() {
                        let at = at + 2 * i;
                        // SAFETY: both have as many dot groups.
                        unsafe {
                            let pair = _mm512_castsi128_si512(_mm_loadl_epi64(column.add(at).cast()));
                            let left = _mm512_permutexvar_epi32(halves, pair);
                            let right = _mm512_loadu_si512(panel.add(8 * at).cast());
                            *part = $left_times_right(*part, left, right);
                        }
                    }
                }
                for at in depth / 8 * 8..depth {
                    // SAFETY: the mask leaves out what lies beyond; on both sides, as infinity times 0 is not 0.
                    unsafe {
                        let left = _mm512_maskz_set1_epi32(0xff, *column.add(at) as i32);
                        let right = _mm512_maskz_loadu_epi32(0xff, panel.add(8 * at).cast());
                        parts[0] = $left_times_right(parts[0], left, right);
                    }
                }
                let all = $add($add(parts[0], parts[1]), $add(parts[2], parts[3]));
                let swapped = _mm512_shuffle_i64x2::<0b01_00_11_10>(all, all);
                let mut sums = [0; VECTOR];
                // SAFETY: there are eight dot groups to begin with.
                unsafe {
                    let sum = $add($add(all, swapped), _mm512_maskz_loadu_epi32(0xff, first.cast()));
                    _mm512_storeu_si512(sums.as_mut_ptr().cast(), sum);
                }
                let mut rows = [[all]; 8];
                for (row, &sum) in rows.iter_mut().zip(&sums) {
                    *row = [_mm512_set1_epi32(sum)];
                }
                // SAFETY: the processor has what this function was compiled for.
                unsafe { sink.rows(rows) };
            }
        }
    };
}

dot_group!(
    Int8x4,
    4,
    "avx512vnni",
    |sum: __m512i, left: __m512i, right: __m512i| _mm512_dpbusd_epi32(sum, left, right),
    |a: __m512i, b: __m512i| _mm512_add_epi32(a, b)
);

dot_group!(
    Bf16Pair,
    2,
    "avx512bf16",
    |sum: __m512i, left: __m512i, right: __m512i| {
        let sum = _mm512_castsi512_ps(sum);
        let pairs = |x: __m512i| std::mem::transmute::<__m512i, __m512bh>(x);
        _mm512_castps_si512(_mm512_dpbf16_ps(sum, pairs(left), pairs(right)))
    },
    |a: __m512i, b: __m512i| {
        _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)))
    }
);

#[cfg(test)]
mod tests;
