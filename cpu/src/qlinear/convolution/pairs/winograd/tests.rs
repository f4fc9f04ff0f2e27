use std::sync::Mutex;

use super::*;
use crate::ops::window::{Padding, Window};

fn geometry(image: &[usize], pads: &[i64]) -> Geometry {
    let padding = Padding::Explicit(pads.to_vec());
    let window = Window { kernel: vec![], strides: vec![], dilations: vec![], padding, ceil: false };
    window.geometry(image, &[3, 3]).unwrap()
}

/// An image of `channels` planes of bytes, and what lies around it.
struct Image {
    channels: usize,
    size: [usize; 2],
    pads: [i64; 4],
    bytes: Vec<u8>,
    border: u8,
}

impl Image {
    /// As planes of dot groups; in the place of missing channels, whose weights are 0, the last one.
    fn planes(&self) -> Vec<u32> {
        let plane = self.size[0] * self.size[1];
        let group = |i: usize| {
            let channel = |j: usize| (i / plane * 4 + j).min(self.channels - 1);
            u32::from_le_bytes([0, 1, 2, 3].map(|j| self.bytes[channel(j) * plane + i % plane]))
        };
        (0..self.channels.div_ceil(4) * plane).map(group).collect()
    }

    /// The definition: sums of an image with its padding, times signed weights of 3 × 3.
    fn sums(&self, weight: &[i64], m: usize) -> Vec<i64> {
        let (Image { channels, .. }, [height, across]) = (self, self.size);
        let [above, before, below, after] = self.pads.map(|pad| pad as usize);
        let [lines, pitch] = [above + height + below, before + across + after];
        let mut padded = vec![i64::from(self.border); channels * lines * pitch];
        for (i, line) in self.bytes.chunks_exact(across).enumerate() {
            let at = (i / height * lines + above + i % height) * pitch + before;
            for (y, &byte) in padded[at..at + across].iter_mut().zip(line) {
                *y = i64::from(byte);
            }
        }
        let output = [lines - 2, pitch - 2];
        let mut sums = vec![0; m * output[0] * output[1]];
        for (row, sums) in sums.chunks_exact_mut(output[0] * output[1]).enumerate() {
            for (i, &weight) in weight[row * channels * 9..][..channels * 9].iter().enumerate() {
                let (first, tap) = (i / 9 * lines, i % 9);
                for (y, sums) in sums.chunks_exact_mut(output[1]).enumerate() {
                    let line = &padded[(first + y + tap / 3) * pitch + tap % 3..][..output[1]];
                    sums.iter_mut().zip(line).for_each(|(sum, x)| *sum += weight * x);
                }
            }
        }
        sums
    }

    /// The same by tiles of `size`; `None` where there is no tiling.
    fn sums_of_tiles(
        &self,
        (weight, flip): (&[u8], u8),
        m: usize,
        size: usize,
        threads: usize,
    ) -> Option<Vec<i64>> {
        let (g, pool) = (geometry(&self.size, &self.pads), Pool::new(threads));
        let rows = WinogradRows::with_size(weight, flip, [m, self.channels], size, (&pool).into());
        let tiling = Tiling::new(&g, rows.shape, threads)?;
        let columns = g.output[0] * g.output[1];
        let sums = Mutex::new(vec![i64::MIN; m * columns]);
        rows.multiply(
            &pool,
            &tiling,
            (&self.planes(), u32::from_le_bytes([self.border; 4])),
            &mut vec![7; tiling.scratch_len()],
            &|row, range, part, _| {
                let range = row * columns + range.start..row * columns + range.end;
                let mut sums = sums.lock().unwrap();
                sums[range].iter_mut().zip(part).for_each(|(y, &mut sum)| *y = i64::from(sum));
            },
        );
        Some(sums.into_inner().unwrap())
    }
}

/// Against the definition: odd sizes, padding, channels and rows that fill no dot group or strip, several blocks and parts.
#[test]
fn sums_are_exact() {
    if !pairs::available() {
        return;
    }
    // With whether there are enough tiles of 4 × 4 outputs.
    let cases = [
        (1, [32, 32], [8, 8], [1, 1, 1, 1], false),
        (1, [35, 33], [9, 11], [0, 0, 0, 0], true),
        (2, [64, 37], [13, 30], [1, 0, 1, 2], true),
        (3, [37, 64], [7, 7], [1, 1, 1, 1], false),
        (2, [33, 32], [57, 20], [2, 2, 2, 2], true),
        (1, [33, 64], [6, 230], [1, 1, 1, 1], true),
        (5, [33, 64], [7, 230], [0, 1, 1, 0], true),
        (3, [33, 32], [64, 66], [1, 1, 1, 1], true),
        (17, [33, 64], [16, 230], [1, 1, 1, 1], true),
    ];
    let byte = |i: usize| match i * 7919 % 1009 {
        i if i % 5 < 3 => [0u8, 255, 128, 127][i % 4],
        i => i as u8,
    };
    for (i, (threads, [m, channels], size, pads, is_large)) in cases.into_iter().enumerate() {
        let bytes = (0..channels * size[0] * size[1]).map(byte).collect();
        let image = Image { channels, size, pads, bytes, border: 77 };
        let weight: Vec<u8> = (0..m * channels * 9).map(|i| byte(i + 3)).collect();
        let flip = if i % 2 == 0 { 0 } else { 128 };
        let signed: Vec<_> = weight.iter().map(|&byte| i64::from((byte ^ flip) as i8)).collect();
        let want = image.sums(&signed, m);
        for tile in [2, 4] {
            let sums = image.sums_of_tiles((&weight, flip), m, tile, threads);
            let context = format!("{threads} threads, {m} × {channels}, {size:?}, tiles of {tile}");
            assert_eq!(sums.is_some(), tile == 2 || is_large, "{context}");
            if let Some(sums) = sums {
                let wrong = sums.iter().zip(&want).position(|(sum, want)| sum != want);
                assert_eq!(wrong, None, "{context}");
            }
        }
    }
}

/// The largest sums that tiles of 4 × 4 outputs may have.
#[test]
fn sums_just_fit() {
    if !pairs::available() {
        return;
    }
    let ([m, channels], pool) = ([32, 114], Pool::new(1));
    for (byte, flip) in [(127, 0), (-127i8 as u8, 0), (255, 128), (1, 128)] {
        let mut weight = vec![byte; m * channels * 9];
        // Some rows whose bytes are of either sign.
        weight[channels * 9 * 30..].iter_mut().skip(1).step_by(2).for_each(|x| *x ^= 0xff);
        let chosen = WinogradRows::new(&weight, flip, [m, channels], (&pool).into());
        assert_eq!(chosen.map(|rows| rows.shape.size), Some(4));
        let signed: Vec<_> = weight.iter().map(|&byte| i64::from((byte ^ flip) as i8)).collect();
        for border in [0, 255] {
            let (size, pads) = ([15, 13], [1; 4]);
            let bytes = vec![255; channels * size[0] * size[1]];
            let image = Image { channels, size, pads, bytes, border };
            let want = image.sums(&signed, m);
            assert_eq!(want[size[1] + 1].abs(), 255 * 127 * 9 * channels as i64);
            let sums = image.sums_of_tiles((&weight, flip), m, 4, 1);
            assert!(sums.is_some_and(|sums| sums == want), "{byte}, flipped by {flip}, beside {border}");
        }
    }
}

#[test]
fn few_channels_and_tiles_go_another_way() {
    let pool = Pool::new(1);
    for [m, channels] in [[31, 64], [64, 31], [32, 1025]] {
        let weight = vec![0; m * channels * 9];
        assert!(WinogradRows::new(&weight, 0, [m, channels], (&pool).into()).is_none());
    }
    let rows = WinogradRows::with_size(&[1; 32 * 64 * 9], 0, [32, 64], 2, (&pool).into());
    for (image, expected) in [
        ([7, 7], true),
        ([6, 8], true),
        ([6, 6], false),
        ([1, 200], false),
        ([3, 200], false),
        ([9, 440], true),
        ([9, 460], false),
    ] {
        let g = geometry(&image, &[1; 4]);
        assert_eq!(Tiling::new(&g, rows.shape, 1).is_some(), expected, "{image:?}");
    }
    let size = |channels: usize, byte: u8| {
        let weight = vec![byte; 32 * channels * 9];
        WinogradRows::new(&weight, 0, [32, channels], (&pool).into()).map(|rows| rows.shape.size)
    };
    // 1036 weights of 127 still fit.
    let sizes = [(64, 100), (114, 127), (116, 127), (116, 113), (128, 100), (257, 1)];
    assert_eq!(sizes.map(|(channels, byte)| size(channels, byte)), [4, 4, 2, 4, 4, 2].map(Some));
    let rows = WinogradRows::with_size(&[1; 32 * 64 * 9], 0, [32, 64], 4, (&pool).into());
    for (image, expected) in [
        ([6, 6], false),
        ([8, 8], false),
        ([10, 10], false),
        ([11, 11], true),
        ([1, 200], false),
        ([3, 200], true),
    ] {
        let g = geometry(&image, &[1; 4]);
        assert_eq!(Tiling::new(&g, rows.shape, 1).is_some(), expected, "{image:?}");
    }
}
