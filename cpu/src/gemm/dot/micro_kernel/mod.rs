//! Micro-kernels of dot products: tiles of sums in registers.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

#[cfg(target_arch = "x86_64")]
use super::isa::{COLUMNS, VECTOR};
use super::isa::{DotGroup, MicroKernel, SumVector};
#[cfg(not(target_arch = "x86_64"))]
use super::isa::{VECTOR, missing};

/// `R` rows of a left operand times a panel of `COLUMNS` columns; the sums go to memory.
///
/// Safety: `a` must have `R` rows of as many groups as the panel has lines, `out` `R` rows of its width.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what reads it is of x86-64"))]
pub(crate) struct RowsByPanel<'a, const R: usize> {
    pub(crate) out: Sums,
    pub(crate) a: *const u32,
    /// Groups from a row of `a` to the next.
    pub(crate) row: usize,
    pub(crate) panel: &'a [u32],
    /// What will be read next.
    pub(crate) fetch: Fetch,
}

/// Where a tile of sums goes.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what reads it is of x86-64"))]
#[derive(Clone, Copy)]
pub(crate) struct Sums {
    pub(crate) at: *mut u32,
    /// Sums from a row to the next.
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

    /// Nothing but the first line of a panel that is read anyway.
    pub(crate) fn same(panel: &[u32]) -> Self {
        Fetch { from: panel.as_ptr().cast(), step: 0 }
    }

    /// Where that begins for the lines from one on, and how many lines of the cache it is for so many of them.
    pub(crate) fn lines(self, from: usize, count: usize) -> (*const u8, usize) {
        (self.from.wrapping_add(from * self.step), (count * self.step).div_ceil(64))
    }
}

/// Writes rows of sums, `COLUMNS` apart, or adds them.
///
/// Safety: there are so many rows in `from` and in `out`.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what reads it is of x86-64"))]
pub(crate) struct AddRows<'a> {
    pub(crate) out: Sums,
    pub(crate) from: &'a [u32],
    pub(crate) rows: usize,
}

/// The operands of a tile of `R` output channels and some positions of an image.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what reads it is of x86-64"))]
#[derive(Clone, Copy)]
pub(crate) struct TileOperands<'a> {
    /// What the sums of each row begin with: `R` of them.
    pub(crate) first: *const u32,
    /// `R` groups for each tap.
    pub(crate) panel: *const u32,
    /// What lies so many groups ahead of each of the panel is fetched.
    pub(crate) ahead: usize,
    /// Where the row of the right operand for each depth begins, from `image` on.
    pub(crate) taps: &'a [usize],
    pub(crate) image: *const u32,
    /// The groups of the last vector that are read.
    pub(crate) mask: u16,
}

#[cfg(target_arch = "x86_64")]
impl<const R: usize> MicroKernel for RowsByPanel<'_, R> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<D: DotGroup>(self) {
        let RowsByPanel { out: Sums { at, columns, width, add }, a, row, panel, mut fetch } = self;
        // SAFETY: a line of the panel has two vectors, each row of `a` a group for it; the mask leaves out what lies
        // beyond a row of `out`. What is fetched is not read, wherever it points to.
        unsafe {
            let mut sums = [[_mm512_setzero_si512(); 2]; R];
            for (p, line) in panel.chunks_exact(COLUMNS).enumerate() {
                _mm_prefetch::<_MM_HINT_T0>(fetch.from.cast());
                fetch.from = fetch.from.wrapping_add(fetch.step);
                let right = [
                    _mm512_loadu_si512(line.as_ptr().cast()),
                    _mm512_loadu_si512(line.as_ptr().add(VECTOR).cast()),
                ];
                for (r, sums) in sums.iter_mut().enumerate() {
                    let left = _mm512_set1_epi32(*a.add(r * row + p) as i32);
                    for (sum, right) in sums.iter_mut().zip(right) {
                        *sum = D::dot(*sum, left, right);
                    }
                }
            }
            for (half, from) in [0, VECTOR].into_iter().enumerate() {
                let Some(mask) = part_mask(width, from) else { continue };
                for (r, sums) in sums.iter().enumerate() {
                    store::<D>(at.add(r * columns + from), mask, sums[half], add);
                }
            }
        }
    }
}

/// The columns of a vector from one on; `None` where there are none.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn part_mask(width: usize, from: usize) -> Option<u16> {
    match width.saturating_sub(from) {
        0 => None,
        VECTOR.. => Some(!0),
        rest => Some((1 << rest) - 1),
    }
}

/// Writes sums, or adds them.
///
/// # Safety
/// Only inside `DotGroup::run` of `D`; the lanes of the mask are valid.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn store<D: DotGroup>(at: *mut u32, mask: u16, sums: SumVector, add: bool) {
    // SAFETY: as the caller promises.
    unsafe {
        let sum = match add {
            true => D::add(sums, _mm512_maskz_loadu_epi32(mask, at.cast())),
            false => sums,
        };
        _mm512_mask_storeu_epi32(at.cast(), mask, sum);
    }
}

#[cfg(target_arch = "x86_64")]
impl MicroKernel for AddRows<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<D: DotGroup>(self) {
        let AddRows { out: Sums { at, columns, width, add }, from, rows } = self;
        for (r, from) in from.chunks_exact(COLUMNS).enumerate().take(rows) {
            for start in [0, VECTOR] {
                let Some(mask) = part_mask(width, start) else { continue };
                // SAFETY: a row has two vectors; the mask leaves out what lies beyond a row of `out`.
                unsafe {
                    let sums = _mm512_loadu_si512(from[start..].as_ptr().cast());
                    store::<D>(at.add(r * columns + start), mask, sums, add);
                }
            }
        }
    }
}

/// The sums of a panel of `R` rows times `V` vectors of an image.
///
/// # Safety
/// Only inside `DotGroup::run` of `D`; the operands have the extents that `TileOperands` says, and what is read of the
/// image is valid.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) unsafe fn tile_sums<D: DotGroup, const R: usize, const V: usize>(
    operands: TileOperands<'_>,
) -> [[SumVector; V]; R] {
    let TileOperands { first, mut panel, ahead, taps, image, mask } = operands;
    // SAFETY: as the caller promises.
    unsafe {
        let mut sums = [[_mm512_setzero_si512(); V]; R];
        for (r, sums) in sums.iter_mut().enumerate() {
            *sums = [_mm512_set1_epi32(*first.add(r) as i32); V];
        }
        for &tap in taps {
            let from = image.add(tap);
            _mm_prefetch::<_MM_HINT_T1>(panel.wrapping_add(ahead).cast());
            let mut right = [_mm512_setzero_si512(); V];
            for (v, right) in right.iter_mut().enumerate() {
                *right = match v + 1 == V {
                    true => _mm512_maskz_loadu_epi32(mask, from.add(v * VECTOR).cast()),
                    false => _mm512_loadu_si512(from.add(v * VECTOR).cast()),
                };
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                let weight = _mm512_set1_epi32(*panel.add(r) as i32);
                for (sum, right) in sums.iter_mut().zip(right) {
                    // The image is the unsigned operand.
                    *sum = D::dot(*sum, right, weight);
                }
            }
            panel = panel.add(R);
        }
        sums
    }
}

/// The sums of a panel of 8 rows times one column of `depth` groups, each in the first lane of a vector.
///
/// # Safety
/// Only inside `DotGroup::run` of `D`; `column` has `depth` groups, `panel` 8 times as many, `first` 8 sums.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) unsafe fn column_sums<D: DotGroup>(
    first: *const u32,
    panel: *const u32,
    column: *const u32,
    depth: usize,
) -> [[SumVector; 1]; 8] {
    // SAFETY: as the caller promises; masks leave out what lies beyond.
    unsafe {
        let mut parts = [_mm512_setzero_si512(); 4];
        // Two groups, each for the rows of a panel.
        let halves = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
        for at in (0..depth / 8 * 8).step_by(8) {
            for (i, part) in parts.iter_mut().enumerate() {
                let at = at + 2 * i;
                let pair = _mm512_castsi128_si512(_mm_loadl_epi64(column.add(at).cast()));
                let left = _mm512_permutexvar_epi32(halves, pair);
                *part = D::dot(*part, left, _mm512_loadu_si512(panel.add(8 * at).cast()));
            }
        }
        for at in depth / 8 * 8..depth {
            // Masked on both sides, as infinity times 0 is not 0.
            let left = _mm512_maskz_set1_epi32(0xff, *column.add(at) as i32);
            let right = _mm512_maskz_loadu_epi32(0xff, panel.add(8 * at).cast());
            parts[0] = D::dot(parts[0], left, right);
        }
        let all = D::add(D::add(parts[0], parts[1]), D::add(parts[2], parts[3]));
        let swapped = _mm512_shuffle_i64x2::<0b01_00_11_10>(all, all);
        let sum = D::add(D::add(all, swapped), _mm512_maskz_loadu_epi32(0xff, first.cast()));
        let mut sums = [0; VECTOR];
        _mm512_storeu_si512(sums.as_mut_ptr().cast(), sum);
        let mut rows = [[all]; 8];
        for (row, &sum) in rows.iter_mut().zip(&sums) {
            *row = [_mm512_set1_epi32(sum)];
        }
        rows
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl<const R: usize> MicroKernel for RowsByPanel<'_, R> {
    type Output = ();

    unsafe fn run<D: DotGroup>(self) {
        missing(self)
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl MicroKernel for AddRows<'_> {
    type Output = ();

    unsafe fn run<D: DotGroup>(self) {
        missing(self)
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn tile_sums<D: DotGroup, const R: usize, const V: usize>(
    operands: TileOperands<'_>,
) -> [[SumVector; V]; R] {
    missing((operands, VECTOR))
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn column_sums<D: DotGroup>(
    first: *const u32,
    panel: *const u32,
    column: *const u32,
    depth: usize,
) -> [[SumVector; 1]; 8] {
    missing((first, panel, column, depth))
}

#[cfg(test)]
mod tests;
