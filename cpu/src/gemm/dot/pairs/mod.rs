//! Products of bytes where the processor has no dot products of four: by pairs of 16 bits, whose products are added up in
//! 32 bits by one instruction.
//!
//! A dot group (four bytes) is two such pairs once its bytes are widened, two instructions for each. Without widening it
//! takes one less (`vpmaddubsw`, which multiplies unsigned bytes with signed ones), but adds two products in 16 bits and
//! saturates there. It does not where the positive ones of a pair of weights are 128 at most in total, and so the negative
//! ones: 255 · 128 < 2¹⁵. So weights are cut to such pairs, and what was cut off, little of most weights, is multiplied by
//! itself. Sums are exact in both ways.

mod tile;

pub(crate) use tile::Tile;

use super::isa::COLUMNS;
use crate::loops::simd::{Loop, widest};

/// Rows of a tile at most.
pub(crate) const ROWS: usize = 4;
/// Columns are computed in multiples of this.
pub(crate) const WIDTH: usize = 16;
/// Dot groups of a row whose places a `Rest` can tell.
pub(crate) const DEEPEST: usize = 1 << 13;

/// Whether the processor has what tiles ask for.
pub(crate) fn available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return crate::isa::has_avx2();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// What was cut off one weight: the byte `byte` of the dot group at `depth`, in column `column` of a panel (row of a strip).
#[derive(Clone, Copy)]
pub(crate) struct Rest {
    pub(crate) depth: usize,
    pub(crate) byte: usize,
    pub(crate) column: usize,
    pub(crate) weight: i32,
}

impl Rest {
    fn pack(self) -> u32 {
        let Rest { depth, byte, column, weight } = self;
        (depth as u32) << 15 | (byte as u32) << 13 | (column as u32) << 8 | u32::from(weight as u8)
    }

    fn of(word: u32) -> Self {
        let part = |shift: u32, bits: u32| (word >> shift & ((1 << bits) - 1)) as usize;
        Rest { depth: part(15, 13), byte: part(13, 2), column: part(8, 5), weight: i32::from(word as i8) }
    }
}

/// Words for the rests of a panel: their number, or `TOO_MANY`, and room for one of 64 dot groups.
pub(crate) fn rests_room(panel: usize) -> usize {
    1 + panel.div_ceil(64)
}

const TOO_MANY: u32 = u32::MAX;

/// Cuts the weights of a panel whose lines have `columns` dot groups of signed bytes, and writes the rests. Leaves all as
/// it is where there are too many.
pub(crate) fn cut(panel: &mut [u32], columns: usize, rests: &mut [u32]) {
    assert!(columns <= COLUMNS && panel.len() <= DEEPEST * columns);
    let [count, list @ ..] = rests else { return };
    let mut found = 0;
    for (depth, line) in panel.chunks_exact(columns).enumerate() {
        for (column, group) in line.iter().enumerate() {
            for (byte, weight) in rest(*group).into_iter().filter(|(_, weight)| *weight != 0) {
                let Some(place) = list.get_mut(found) else {
                    *count = TOO_MANY;
                    return;
                };
                *place = Rest { depth, byte, column, weight }.pack();
                found += 1;
            }
        }
    }
    *count = found as u32;
    for rest in list[..found].iter().map(|&word| Rest::of(word)) {
        let group = &mut panel[rest.depth * columns + rest.column];
        let mut bytes = group.to_le_bytes();
        bytes[rest.byte] = bytes[rest.byte].wrapping_sub(rest.weight as u8);
        *group = u32::from_le_bytes(bytes);
    }
}

/// What has to be cut off a byte of each pair, and which one.
fn rest(group: u32) -> [(usize, i32); 2] {
    let bytes = group.to_le_bytes().map(|byte| i32::from(byte as i8));
    [0, 2].map(|at| {
        let (a, b) = (bytes[at], bytes[at + 1]);
        let over = match () {
            () if a > 0 && b > 0 => (a + b - 128).max(0),
            () if a < 0 && b < 0 => (a + b + 128).min(0),
            () => 0,
        };
        (if a.abs() > b.abs() { at } else { at + 1 }, over)
    })
}

/// The rests of a panel; `None` where it was not cut.
pub(crate) fn rests(words: &[u32]) -> Option<impl Iterator<Item = Rest> + Clone + '_> {
    let (&count, list) = words.split_first().filter(|(count, _)| **count != TOO_MANY)?;
    Some(list[..count as usize].iter().map(|&word| Rest::of(word)))
}

/// Writes the two pairs of each dot group: bytes 0 and 2, bytes 1 and 3, widened as signed ones or not.
pub(crate) fn widen(groups: &[u32], signed: bool, out: &mut [u32]) {
    struct Widen<'a>(&'a [u32], bool, &'a mut [[u32; 2]]);
    impl Loop for Widen<'_> {
        type Output = ();

        #[inline(always)]
        fn run(self) {
            let Widen(groups, signed, out) = self;
            // The sign bits of 16, from that of the byte.
            let sign = |pair: u32| if signed { (pair & 0x0080_0080) / 0x80 * 0xff00 } else { 0 };
            for (out, &group) in out.iter_mut().zip(groups) {
                let (even, odd) = (group & 0x00ff_00ff, group >> 8 & 0x00ff_00ff);
                *out = [even | sign(even), odd | sign(odd)];
            }
        }
    }
    widest(Widen(groups, signed, out.as_chunks_mut::<2>().0));
}

/// `count` rows of `depth` dot groups of unsigned bytes times all panels; rows of sums are `width` apart. `widened` has
/// room for twice the strip; there are no `rests` where panels were not cut.
pub(crate) fn products(
    sums: &mut [u32],
    width: usize,
    (strip, widened): (&[u32], &mut [u32]),
    count: usize,
    (panels, rests): (&[u32], &[u32]),
    depth: usize,
) {
    if depth == 0 {
        return sums.fill(0);
    }
    assert!(available() && strip.len() >= count * depth && sums.len() >= count * width);
    assert!(panels.len() >= depth * width && widened.len() >= 2 * count * depth);
    let room = rests.len() / (width / COLUMNS).max(1);
    let mut ready = false;
    for (i, panel) in panels.chunks_exact(depth * COLUMNS).enumerate().take(width / COLUMNS) {
        let rests = self::rests(&rests[i * room..][..room]);
        if rests.is_none() && !ready {
            widen(&strip[..count * depth], false, widened);
            ready = true;
        }
        let (left, step) = if rests.is_some() { (strip, 1) } else { (&*widened, 2) };
        let sums: &mut [i32] = &mut bytemuck::cast_slice_mut(sums)[i * COLUMNS..];
        let mut row = 0;
        while row < count {
            let tile = Tile {
                out: sums[row * width..].as_mut_ptr(),
                columns: width,
                left: left[row * step * depth..].as_ptr(),
                row: step * depth,
                step,
                right: panel.as_ptr(),
                pitch: COLUMNS,
                depth,
            };
            // SAFETY: the instructions were asserted; rows and columns lie inside by the assertions.
            row += unsafe {
                match (count - row, rests.is_some()) {
                    (4.., true) => tile.compute::<4, true, true>(COLUMNS),
                    (2.., true) => tile.compute::<2, true, true>(COLUMNS),
                    (_, true) => tile.compute::<1, true, true>(COLUMNS),
                    (4.., false) => tile.compute::<4, true, false>(COLUMNS),
                    (2.., false) => tile.compute::<2, true, false>(COLUMNS),
                    (_, false) => tile.compute::<1, true, false>(COLUMNS),
                }
            };
        }
        let bytes: &[u8] = bytemuck::cast_slice(strip);
        for rest in rests.into_iter().flatten() {
            let bytes = bytes[4 * rest.depth + rest.byte..].iter().step_by(4 * depth);
            let sums = sums[rest.column..].iter_mut().step_by(width).take(count);
            sums.zip(bytes).for_each(|(sum, &x)| *sum = sum.wrapping_add(i32::from(x) * rest.weight));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dot groups of all kinds of bytes, the more of them large the greater `share` is.
    pub(super) fn groups(count: usize, seed: usize, share: usize) -> Vec<u32> {
        let byte = |i: usize| match (i * 7919 + seed * 104_729) % 1009 {
            x if x < share => [127u8, 128, 255, 0, 129][x % 5],
            x => (x % 61) as u8 ^ if x % 2 == 0 { 0 } else { 0xc0 },
        };
        (0..count).map(|i| u32::from_le_bytes([0, 1, 2, 3].map(|k| byte(4 * i + k)))).collect()
    }

    #[test]
    fn what_is_cut_off_is_told() {
        for (share, is_cut) in [(0, true), (8, true), (1009, false)] {
            let before = groups(COLUMNS * 64, share, share);
            let (mut panel, mut words) = (before.clone(), vec![0; rests_room(before.len())]);
            cut(&mut panel, COLUMNS, &mut words);
            let Some(all) = rests(&words) else {
                assert!(!is_cut && panel == before);
                continue;
            };
            assert!(is_cut);
            for group in &panel {
                let bytes = group.to_le_bytes().map(|byte| i32::from(byte as i8));
                for pair in bytes.chunks(2) {
                    let (above, below) = pair.iter().fold((0, 0), |(a, b), &x| (a + x.max(0), b + x.min(0)));
                    assert!(above <= 128 && below >= -128, "{bytes:?}");
                }
            }
            for rest in all {
                let group = &mut panel[rest.depth * COLUMNS + rest.column];
                let mut bytes = group.to_le_bytes();
                bytes[rest.byte] = bytes[rest.byte].wrapping_add(rest.weight as u8);
                *group = u32::from_le_bytes(bytes);
            }
            assert_eq!(panel, before);
        }
    }
}
