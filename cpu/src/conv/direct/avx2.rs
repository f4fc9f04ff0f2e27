//! The product of a tile with 16 registers of 256 bits: 4 rows of 3 vectors of sums, a vector of each column and a
//! weight fill them all. In a function of its own, so that nothing else lives across the loop: inlined, the compiler kept
//! one of the sums in memory, and each step waited for the one before to be stored and loaded, which took twice as long. Tiles of
//! 3 vectors have a loop of four taps in assembly language, for the reason that `gemm/sgemm/avx2.rs` gives.

use std::arch::asm;
use std::arch::x86_64::*;

use crate::loops::fetch;

/// Rows of a tile.
pub(super) const ROWS: usize = 4;
/// Taps whose weights fill a line of a cache.
const TAPS: usize = 4;
/// How far ahead weights are fetched, in elements. At four times that distance they drove a strip out of the first cache: a
/// pointwise product took 1.03 times as long.
const WEIGHTS_AHEAD: usize = 256;
/// Floats of a vector.
pub(super) const LEN: usize = 8;

/// What a tile reads.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a> {
    /// `ROWS` weights for each tap.
    pub(super) panel: &'a [f32],
    /// Where each row of the right operand begins, from the tile's first position.
    pub(super) taps: &'a [usize],
    /// The tile's first position.
    pub(super) positions: *const f32,
    /// How far behind the tile's first elements lie those to fetch into the cache.
    pub(super) ahead: usize,
    /// Only where tap `i` is exactly `i * 3 * LEN`: taps of three vectors are then not looked up.
    pub(super) strip: bool,
    /// Elements of the last vector that may be read.
    pub(super) last: usize,
}

impl Operands<'_> {
    fn has_weights(&self) -> bool {
        self.panel.len() >= ROWS * self.taps.len()
    }
}

/// Where rows of sums go that are outputs but for a bias, maybe what is added, and maybe a ReLU. Whether there is one is an
/// argument of its own: kept here, it was loaded together with fields that had just been stored one by one, which stalls.
#[derive(Clone, Copy)]
pub(super) struct Outputs<'a> {
    /// The first of the rows, and of those that are added, and floats from a row to the next.
    pub(super) to: *mut f32,
    pub(super) residual: Option<*const f32>,
    pub(super) stride: usize,
    pub(super) bias: &'a [f32; ROWS],
}

/// Writes so many tiles of `V` whole vectors, each beside the one before, to where outputs are. Sums go from registers: through
/// memory, as those of other tiles, they would take a fifth longer where sums are short. With one call for several tiles
/// sums of 64 products take 0.85 to 0.95 of the time, of 256 0.95 to 0.97.
///
/// # Safety
/// As of `product`, with whole vectors, for each tile; outputs have room for rows of them, which nobody else reads or writes,
/// and as much is added.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn outputs<const V: usize>(
    mut of: Operands<'_>,
    tiles: usize,
    outputs: Outputs<'_>,
    relu: bool,
) {
    let Outputs { mut to, mut residual, stride, bias } = outputs;
    assert!(of.has_weights() && of.last == LEN);
    // SAFETY: as the caller promises; pointers behind the last tile are not used.
    unsafe {
        for _ in 0..tiles {
            // A tile of few products would wait for twelve stores: of 64 products it takes 0.8 of the time so.
            for at in (0..ROWS * stride).step_by(stride) {
                for at in [at, at + V * LEN - 1] {
                    fetch::to_write(to.wrapping_add(at));
                    if let Some(residual) = residual {
                        _mm_prefetch::<_MM_HINT_T0>(residual.wrapping_add(at).cast());
                    }
                }
            }
            let sums = sums::<V>(of);
            for (r, (sums, bias)) in sums.into_iter().zip(bias).enumerate() {
                let bias = _mm256_broadcast_ss(bias);
                for (v, sum) in sums.into_iter().enumerate() {
                    let (mut x, at) = (_mm256_add_ps(sum, bias), r * stride + v * LEN);
                    if let Some(residual) = residual {
                        x = _mm256_add_ps(x, _mm256_loadu_ps(residual.add(at)));
                    }
                    if relu {
                        // The operands in this order let NaN through.
                        x = _mm256_max_ps(_mm256_setzero_ps(), x);
                    }
                    _mm256_storeu_ps(to.add(at), x);
                }
            }
            of.positions = of.positions.wrapping_add(V * LEN);
            to = to.wrapping_add(V * LEN);
            residual = residual.map(|residual| residual.wrapping_add(V * LEN));
        }
    }
}

/// Writes rows of `V` vectors of sums to `sums`, one after the other.
///
/// # Safety
/// The processor has AVX2 and FMA; from each tap `V - 1` vectors and `last` elements may be read from the tile's first
/// position on; there are `ROWS` weights for each tap; with `strip`, tap `i` is exactly `i * 3 * LEN`.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn product<const V: usize>(of: Operands<'_>, sums: &mut [f32]) {
    assert!(of.has_weights() && sums.len() >= ROWS * V * LEN && of.last <= LEN);
    // SAFETY: as the caller promises.
    unsafe {
        if of.last == LEN {
            return match V {
                1 => halves::<false>(of, sums.as_mut_ptr()),
                _ => whole::<V>(of, sums.as_mut_ptr(), V),
            };
        }
        // A mask would be one register more: the last vector by itself.
        match V {
            1 => return halves::<true>(of, sums.as_mut_ptr()),
            2 => whole::<1>(of, sums.as_mut_ptr(), V),
            _ => whole::<2>(of, sums.as_mut_ptr(), V),
        }
        let mut last = [0.0; ROWS * LEN];
        let positions = of.positions.add((V - 1) * LEN);
        halves::<true>(Operands { positions, ..of }, last.as_mut_ptr());
        for (row, last) in sums.chunks_exact_mut(V * LEN).zip(last.as_chunks::<LEN>().0) {
            row[(V - 1) * LEN..].copy_from_slice(last);
        }
    }
}

/// Rows of `V` vectors, which are to be `room` vectors apart.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn whole<const V: usize>(of: Operands<'_>, to: *mut f32, room: usize) {
    // SAFETY: as of `product`.
    unsafe {
        for (r, sums) in sums::<V>(of).into_iter().enumerate() {
            for (v, sum) in sums.into_iter().enumerate() {
                _mm256_storeu_ps(to.add((r * room + v) * LEN), sum);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn sums<const V: usize>(of: Operands<'_>) -> [[__m256; V]; ROWS] {
    // SAFETY: as of `product`.
    unsafe {
        let mut sums = [[_mm256_setzero_ps(); V]; ROWS];
        let (mut weights, mut taps) = (of.panel.as_ptr(), of.taps);
        if V == 3 {
            let whole = of.taps.len() / TAPS;
            let of_whole = match of {
                Operands { strip: true, .. } => whole_taps_of_strip(of, whole),
                Operands { ahead: 0, .. } => whole_taps(of, whole),
                _ => whole_taps_ahead(of, whole),
            };
            for (sums, of_whole) in sums.iter_mut().zip(of_whole) {
                sums.copy_from_slice(&of_whole[..V]);
            }
            (weights, taps) = (weights.add(whole * TAPS * ROWS), &taps[whole * TAPS..]);
        }
        for &tap in taps {
            let from = of.positions.wrapping_add(tap);
            _mm_prefetch::<_MM_HINT_T0>(weights.wrapping_add(WEIGHTS_AHEAD).cast());
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(of.ahead).cast());
            let columns: [__m256; V] = std::array::from_fn(|v| _mm256_loadu_ps(from.wrapping_add(v * LEN)));
            for (r, sums) in sums.iter_mut().enumerate() {
                let weight = _mm256_broadcast_ss(&*weights.add(r));
                for (sum, &column) in sums.iter_mut().zip(&columns) {
                    *sum = _mm256_fmadd_ps(weight, column, *sum);
                }
            }
            weights = weights.add(ROWS);
        }
        sums
    }
}

/// A tap: three vectors of the image, which lie at these places, and of each row a weight and three multiplications.
macro_rules! tap {
    ($i:literal, $at:expr, $b0:expr, $b1:expr, $b2:expr) => {
        concat!(
            $at,
            "vmovups {b0}, ",
            $b0,
            "\nvmovups {b1}, ",
            $b1,
            "\nvmovups {b2}, ",
            $b2,
            "\nvbroadcastss {x}, [{weights} + 16 * ",
            $i,
            "]\n",
            "vfmadd231ps {s00}, {x}, {b0}\n",
            "vfmadd231ps {s01}, {x}, {b1}\n",
            "vfmadd231ps {s02}, {x}, {b2}\n",
            "vbroadcastss {x}, [{weights} + 16 * ",
            $i,
            " + 4]\n",
            "vfmadd231ps {s10}, {x}, {b0}\n",
            "vfmadd231ps {s11}, {x}, {b1}\n",
            "vfmadd231ps {s12}, {x}, {b2}\n",
            "vbroadcastss {x}, [{weights} + 16 * ",
            $i,
            " + 8]\n",
            "vfmadd231ps {s20}, {x}, {b0}\n",
            "vfmadd231ps {s21}, {x}, {b1}\n",
            "vfmadd231ps {s22}, {x}, {b2}\n",
            "vbroadcastss {x}, [{weights} + 16 * ",
            $i,
            " + 12]\n",
            "vfmadd231ps {s30}, {x}, {b0}\n",
            "vfmadd231ps {s31}, {x}, {b1}\n",
            "vfmadd231ps {s32}, {x}, {b2}\n",
        )
    };
}

/// The same at the place that `taps` tells. `fetch` is an instruction more.
macro_rules! tap_at {
    ($i:literal, $fetch:literal) => {
        tap!(
            $i,
            concat!("mov {from}, [{taps} + 8 * ", $i, "]\n", $fetch),
            "[{positions} + 4 * {from}]",
            "[{positions} + 4 * {from} + 32]",
            "[{positions} + 4 * {from} + 64]"
        )
    };
}

/// The same behind the tap before.
macro_rules! tap_of_strip {
    ($i:literal) => {
        tap!(
            $i,
            "",
            concat!("[{positions} + 96 * ", $i, "]"),
            concat!("[{positions} + 96 * ", $i, " + 32]"),
            concat!("[{positions} + 96 * ", $i, " + 64]")
        )
    };
}

/// A function that gives the sums of so many groups of `TAPS` taps: four taps, what goes on from there, and more operands.
macro_rules! whole_taps {
    ($name:ident, $four:expr, $next:literal, |$of:ident| $($operands:tt)*) => {
        /// # Safety
        /// As of `product`, with three whole vectors; there are so many groups of taps, which lie in a strip if that is what
        /// the function's name says.
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn $name($of: Operands<'_>, groups: usize) -> [[__m256; 3]; ROWS] {
            let mut sums = [[_mm256_setzero_ps(); 3]; ROWS];
            if groups == 0 {
                return sums;
            }
            let [[s00, s01, s02], [s10, s11, s12], [s20, s21, s22], [s30, s31, s32]] = &mut sums;
            // SAFETY: as the caller promises; nothing is written to memory.
            unsafe {
                asm!(
                    "2:",
                    "prefetcht0 [{weights} + {ahead_of_weights}]",
                    $four,
                    $next,
                    "add {weights}, 4 * 16",
                    "dec {count}",
                    "jnz 2b",
                    weights = inout(reg) $of.panel.as_ptr() => _,
                    ahead_of_weights = const WEIGHTS_AHEAD * size_of::<f32>(),
                    count = inout(reg) groups => _,
                    s00 = inout(ymm_reg) *s00, s01 = inout(ymm_reg) *s01, s02 = inout(ymm_reg) *s02,
                    s10 = inout(ymm_reg) *s10, s11 = inout(ymm_reg) *s11, s12 = inout(ymm_reg) *s12,
                    s20 = inout(ymm_reg) *s20, s21 = inout(ymm_reg) *s21, s22 = inout(ymm_reg) *s22,
                    s30 = inout(ymm_reg) *s30, s31 = inout(ymm_reg) *s31, s32 = inout(ymm_reg) *s32,
                    b0 = out(ymm_reg) _, b1 = out(ymm_reg) _, b2 = out(ymm_reg) _, x = out(ymm_reg) _,
                    $($operands)*
                    options(nostack, readonly),
                );
            }
            sums
        }
    };
}

whole_taps!(
    whole_taps,
    concat!(tap_at!(0, ""), tap_at!(1, ""), tap_at!(2, ""), tap_at!(3, "")),
    "add {taps}, 4 * 8",
    |of|
    taps = inout(reg) of.taps.as_ptr() => _,
    positions = in(reg) of.positions,
    from = out(reg) _,
);
whole_taps!(
    whole_taps_ahead,
    concat!(
        tap_at!(0, "prefetcht0 [{ahead} + 4 * {from}]\n"),
        tap_at!(1, "prefetcht0 [{ahead} + 4 * {from}]\n"),
        tap_at!(2, "prefetcht0 [{ahead} + 4 * {from}]\n"),
        tap_at!(3, "prefetcht0 [{ahead} + 4 * {from}]\n"),
    ),
    "add {taps}, 4 * 8",
    |of|
    taps = inout(reg) of.taps.as_ptr() => _,
    positions = in(reg) of.positions,
    ahead = in(reg) of.positions.wrapping_add(of.ahead),
    from = out(reg) _,
);
whole_taps!(
    whole_taps_of_strip,
    concat!(tap_of_strip!(0), tap_of_strip!(1), tap_of_strip!(2), tap_of_strip!(3)),
    "add {positions}, 4 * 96",
    |of|
    positions = inout(reg) of.positions => _,
);

/// Rows of one vector, of which maybe only the first elements may be read. Taps are summed in two parts, as four sums
/// would wait for each other.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn halves<const MASKED: bool>(of: Operands<'_>, to: *mut f32) {
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(of.last as i32), lanes);
    // SAFETY: as of `product`; the mask leaves out what may not be read.
    unsafe {
        let load = |tap: usize| {
            let from = of.positions.wrapping_add(tap);
            if MASKED { _mm256_maskload_ps(from, mask) } else { _mm256_loadu_ps(from) }
        };
        let mut sums = [[_mm256_setzero_ps(); 2]; ROWS];
        let mut weights = of.panel.as_ptr();
        let (pairs, rest) = of.taps.as_chunks::<2>();
        for &[tap, other] in pairs {
            let columns = [load(tap), load(other)];
            for (r, sums) in sums.iter_mut().enumerate() {
                for (i, (sum, &column)) in sums.iter_mut().zip(&columns).enumerate() {
                    *sum = _mm256_fmadd_ps(_mm256_broadcast_ss(&*weights.add(i * ROWS + r)), column, *sum);
                }
            }
            weights = weights.add(2 * ROWS);
        }
        for &tap in rest {
            let column = load(tap);
            for (r, [sum, _]) in sums.iter_mut().enumerate() {
                *sum = _mm256_fmadd_ps(_mm256_broadcast_ss(&*weights.add(r)), column, *sum);
            }
        }
        for (r, [a, b]) in sums.into_iter().enumerate() {
            _mm256_storeu_ps(to.add(r * LEN), _mm256_add_ps(a, b));
        }
    }
}
