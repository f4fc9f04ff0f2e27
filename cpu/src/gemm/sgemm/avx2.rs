//! The product of a tile with 16 registers of 256 bits: 4 rows of 3 vectors of sums, a vector of each column and an element of a
//! row fill them all. The loop is written in assembly language: compilers keep one or more of the sums in memory when four
//! steps follow each other without a jump, and each step then waits for a store and a load. Where another program runs on the
//! same core, instructions beside the multiplications count: a product takes 1.09 times as long with a jump and a fetch in
//! each step (Zen 3).

use std::arch::asm;
use std::arch::x86_64::*;

/// Rows of a tile.
pub(super) const ROWS: usize = 4;
/// Vectors of a row.
pub(super) const VECTORS: usize = 3;
/// Floats of a vector.
pub(super) const LEN: usize = 8;
/// Floats of a row of sums.
pub(super) const WIDTH: usize = VECTORS * LEN;
/// Steps of the depth between two fetches.
pub(super) const STEPS: usize = 4;

/// What tiles read.
#[derive(Clone, Copy)]
pub(super) struct Operands {
    /// `WIDTH` floats for each step of the depth.
    pub(super) panel: *const f32,
    /// The first row with an element for each step, and floats from a row to the next.
    pub(super) rows: *const f32,
    pub(super) stride: usize,
    pub(super) depth: usize,
    /// What to fetch at the first step, and how many bytes farther at the next one.
    pub(super) fetch: *const f32,
    pub(super) step: usize,
}

/// A step: the panel's three vectors, and of each row an element and three multiplications.
macro_rules! step {
    ($i:literal) => {
        concat!(
            "vmovups {b0}, [{panel} + 96 * ",
            $i,
            "]\n",
            "vmovups {b1}, [{panel} + 96 * ",
            $i,
            " + 32]\n",
            "vmovups {b2}, [{panel} + 96 * ",
            $i,
            " + 64]\n",
            "vbroadcastss {x}, [{rows} + 4 * ",
            $i,
            "]\n",
            "vfmadd231ps {s00}, {x}, {b0}\n",
            "vfmadd231ps {s01}, {x}, {b1}\n",
            "vfmadd231ps {s02}, {x}, {b2}\n",
            "vbroadcastss {x}, [{rows} + {row1} + 4 * ",
            $i,
            "]\n",
            "vfmadd231ps {s10}, {x}, {b0}\n",
            "vfmadd231ps {s11}, {x}, {b1}\n",
            "vfmadd231ps {s12}, {x}, {b2}\n",
            "vbroadcastss {x}, [{rows} + 2 * {row1} + 4 * ",
            $i,
            "]\n",
            "vfmadd231ps {s20}, {x}, {b0}\n",
            "vfmadd231ps {s21}, {x}, {b1}\n",
            "vfmadd231ps {s22}, {x}, {b2}\n",
            "vbroadcastss {x}, [{rows} + {row3} + 4 * ",
            $i,
            "]\n",
            "vfmadd231ps {s30}, {x}, {b0}\n",
            "vfmadd231ps {s31}, {x}, {b1}\n",
            "vfmadd231ps {s32}, {x}, {b2}\n",
        )
    };
}

/// Writes the sums of tiles, each below the one before, to rows of `WIDTH` floats that are `stride` floats apart, or adds them.
///
/// # Safety
/// The processor has AVX2 and FMA; what `Operands` says can be read for so many tiles of `ROWS` rows, and nobody else reads
/// or writes the rows of sums.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn product(of: Operands, tiles: usize, to: *mut f32, stride: usize, add: bool) {
    for i in 0..tiles {
        let rows = of.rows.wrapping_add(i * ROWS * of.stride);
        let fetch = of.fetch.wrapping_byte_add(i * of.depth * of.step);
        // SAFETY: as the caller promises.
        unsafe { tile(Operands { rows, fetch, ..of }, to.wrapping_add(i * ROWS * stride), stride, add) };
    }
}

/// # Safety
/// As for `product`, of one tile.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn tile(of: Operands, to: *mut f32, stride: usize, add: bool) {
    let mut sums = [[_mm256_setzero_ps(); VECTORS]; ROWS];
    let (whole, left) = (of.depth / STEPS, of.depth % STEPS);
    let (mut panel, mut rows) = (of.panel, of.rows);
    // SAFETY: of the panel and of each row as much is read as there are steps, and the pointers end behind that; nothing is
    // written to memory. Sums go where the caller promises.
    unsafe {
        if whole > 0 {
            let [[s00, s01, s02], [s10, s11, s12], [s20, s21, s22], [s30, s31, s32]] = &mut sums;
            asm!(
                "2:",
                "prefetcht0 [{fetch}]",
                "add {fetch}, {fetched}",
                step!(0),
                step!(1),
                step!(2),
                step!(3),
                "add {panel}, 4 * 96",
                "add {rows}, 4 * 4",
                "dec {count}",
                "jnz 2b",
                panel = inout(reg) panel,
                rows = inout(reg) rows,
                row1 = in(reg) of.stride * size_of::<f32>(),
                row3 = in(reg) of.stride * 3 * size_of::<f32>(),
                fetch = inout(reg) of.fetch => _,
                fetched = in(reg) of.step * STEPS,
                count = inout(reg) whole => _,
                s00 = inout(ymm_reg) *s00, s01 = inout(ymm_reg) *s01, s02 = inout(ymm_reg) *s02,
                s10 = inout(ymm_reg) *s10, s11 = inout(ymm_reg) *s11, s12 = inout(ymm_reg) *s12,
                s20 = inout(ymm_reg) *s20, s21 = inout(ymm_reg) *s21, s22 = inout(ymm_reg) *s22,
                s30 = inout(ymm_reg) *s30, s31 = inout(ymm_reg) *s31, s32 = inout(ymm_reg) *s32,
                b0 = out(ymm_reg) _, b1 = out(ymm_reg) _, b2 = out(ymm_reg) _, x = out(ymm_reg) _,
                options(nostack, readonly),
            );
        }
        for _ in 0..left {
            let columns: [__m256; VECTORS] = std::array::from_fn(|v| _mm256_loadu_ps(panel.add(v * LEN)));
            for (r, sums) in sums.iter_mut().enumerate() {
                let x = _mm256_broadcast_ss(&*rows.add(r * of.stride));
                for (sum, &column) in sums.iter_mut().zip(&columns) {
                    *sum = _mm256_fmadd_ps(x, column, *sum);
                }
            }
            (panel, rows) = (panel.add(WIDTH), rows.add(1));
        }
        for (r, sums) in sums.into_iter().enumerate() {
            for (v, sum) in sums.into_iter().enumerate() {
                let to = to.add(r * stride + v * LEN);
                let sum = if add { _mm256_add_ps(sum, _mm256_loadu_ps(to)) } else { sum };
                _mm256_storeu_ps(to, sum);
            }
        }
    }
}
