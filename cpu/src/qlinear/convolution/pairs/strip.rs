//! Strips of a weight's dot groups.

use super::ROWS;

/// A weight, and how its numbers become dot groups.
pub(super) struct Source<'a> {
    /// Rows of `[channels, taps]` signed bytes with the sign bit flipped by `flip`.
    pub(super) weight: &'a [u8],
    pub(super) flip: u8,
    pub(super) channels: usize,
    pub(super) taps: usize,
    /// Which channels lie side by side in dot groups; empty where they are as they come.
    pub(super) order: &'a [u32],
    /// Whether a dot group has four neighbouring numbers of a row, in place of those of four channels.
    pub(super) flat: bool,
}

impl Source<'_> {
    /// Writes up to `ROWS` of the `count` rows from `first` on; `out` is zeros.
    pub(super) fn write(&self, first: usize, count: usize, out: &mut [u32]) {
        let of_row = self.channels * self.taps;
        for (r, row) in self.weight[first * of_row..].chunks_exact(of_row).take(count.min(ROWS)).enumerate() {
            let lines = out.as_chunks_mut::<ROWS>().0;
            if self.flat || self.taps == 1 && self.order.is_empty() {
                self.neighbours(row, r, lines);
            } else {
                self.channels(row, r, lines);
            }
        }
    }

    fn neighbours(&self, row: &[u8], r: usize, lines: &mut [[u32; ROWS]]) {
        let flips = u32::from_le_bytes([self.flip; 4]);
        let (whole, rest) = row.as_chunks::<4>();
        for (line, &bytes) in lines.iter_mut().zip(whole) {
            line[r] = u32::from_le_bytes(bytes) ^ flips;
        }
        if let Some(line) = lines.get_mut(whole.len()).filter(|_| !rest.is_empty()) {
            let mut bytes = [0; 4];
            bytes.iter_mut().zip(rest).for_each(|(y, &byte)| *y = byte ^ self.flip);
            line[r] = u32::from_le_bytes(bytes);
        }
    }

    fn channels(&self, row: &[u8], r: usize, lines: &mut [[u32; ROWS]]) {
        let flips = u32::from_le_bytes([self.flip; 4]);
        let channel = |at: usize| self.order.get(at).map_or(at, |&channel| channel as usize);
        for (group, lines) in lines.chunks_exact_mut(self.taps).enumerate() {
            let (at, taps) = (4 * group, self.taps);
            if at + 4 > self.channels {
                for (j, at) in (at..self.channels).enumerate() {
                    let numbers = &row[channel(at) * taps..][..taps];
                    for (line, &byte) in lines.iter_mut().zip(numbers) {
                        line[r] |= u32::from(byte ^ self.flip) << (8 * j);
                    }
                }
                continue;
            }
            let numbers = |at: usize| &row[channel(at) * taps..][..taps];
            let (a, b, c, d) = (numbers(at), numbers(at + 1), numbers(at + 2), numbers(at + 3));
            for (tap, line) in lines.iter_mut().enumerate() {
                line[r] = u32::from_le_bytes([a[tap], b[tap], c[tap], d[tap]]) ^ flips;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Byte by byte.
    #[test]
    fn each_number_lies_in_its_dot_group() {
        for (rows, channels, taps, flat, ordered) in [
            (4, 8, 1, false, false),
            (3, 9, 1, false, true),
            (7, 16, 1, false, true),
            (5, 6, 9, false, false),
            (4, 7, 9, false, true),
            (6, 3, 49, true, false),
            (9, 8, 1, false, false),
            (9, 8, 9, false, true),
        ] {
            for flip in [0, 128] {
                let weight: Vec<u8> = (0..rows * channels * taps).map(|i| (i * 7919 % 251) as u8).collect();
                // Any order: backwards.
                let order: Vec<u32> = if ordered { (0..channels as u32).rev().collect() } else { Vec::new() };
                let source = Source { weight: &weight, flip, channels, taps, order: &order, flat };
                let depth = if flat { (channels * taps).div_ceil(4) } else { channels.div_ceil(4) * taps };
                let all = (0..rows).step_by(ROWS).map(|first| (first, rows - first));
                // Of nine rows also two in the middle, as where a group of channels ends.
                for (first, count) in all.chain((rows == 9).then_some((4, 2))) {
                    let (mut got, mut want) = (vec![0; depth * ROWS], vec![0u32; depth * ROWS]);
                    source.write(first, count, &mut got);
                    for (row, r) in (first..first + count).zip(0..ROWS) {
                        for at in 0..channels * taps {
                            let place = if ordered { channels - 1 - at / taps } else { at / taps };
                            let (group, byte) = match flat {
                                true => (at / 4, at % 4),
                                false => (place / 4 * taps + at % taps, place % 4),
                            };
                            let number = weight[row * channels * taps + at] ^ flip;
                            want[group * ROWS + r] |= u32::from(number) << (8 * byte);
                        }
                    }
                    assert_eq!(got, want, "{rows} × {channels} × {taps}, {count} rows from {first}");
                }
            }
        }
    }
}
