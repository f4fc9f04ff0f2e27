use std::sync::Mutex;

use super::*;
use crate::ops::window::{Padding, Window};

fn geometry(image: &[usize], pads: &[i64]) -> Geometry {
    let padding = Padding::Explicit(pads.to_vec());
    let window = Window { kernel: vec![], strides: vec![], dilations: vec![], padding, ceil: false };
    window.geometry(image, &[3, 3]).unwrap()
}

/// Against the definition: odd sizes, padding, channels and rows that fill no dot group or strip, several blocks and parts.
#[test]
fn sums_are_exact() {
    if !pairs::available() {
        return;
    }
    let cases = [
        (1, [32, 32], [8, 8], [1, 1, 1, 1]),
        (1, [35, 33], [9, 11], [0, 0, 0, 0]),
        (2, [64, 37], [13, 30], [1, 0, 1, 2]),
        (3, [37, 64], [7, 7], [1, 1, 1, 1]),
        (2, [33, 32], [57, 20], [2, 2, 2, 2]),
        (1, [33, 64], [6, 230], [1, 1, 1, 1]),
        (5, [49, 64], [7, 230], [0, 1, 1, 0]),
        (3, [33, 32], [64, 66], [1, 1, 1, 1]),
        (17, [33, 64], [16, 230], [1, 1, 1, 1]),
    ];
    for (threads, [m, channels], [height, across], pads) in cases {
        let g = geometry(&[height, across], &pads);
        let byte = |i: usize| match i * 7919 % 1009 {
            i if i % 5 < 3 => [0u8, 255, 128, 127][i % 4],
            i => i as u8,
        };
        let weight: Vec<u8> = (0..m * channels * 9).map(|i| byte(i + 3)).collect();
        let image = |c: usize, y: usize, x: usize| byte((c * height + y) * across + x);
        let border = 77;
        let planes: Vec<u32> = (0..channels.div_ceil(4) * height * across)
            .map(|i| {
                let (quad, y, x) = (i / (height * across), i / across % height, i % across);
                let channel = |j: usize| (quad * 4 + j).min(channels - 1);
                u32::from_le_bytes([0, 1, 2, 3].map(|j| image(channel(j), y, x)))
            })
            .collect();
        for (flip, size) in [(0, 2), (128, 4)] {
            let pool = Pool::new(threads);
            let rows = WinogradRows::with_size(&weight, flip, [m, channels], size, (&pool).into());
            let columns = g.output[0] * g.output[1];
            let sums = Mutex::new(vec![i32::MIN; m * columns]);
            // Small images have too few tiles of 4 × 4 outputs.
            let Some(tiling) = Tiling::new(&g, rows.shape, threads) else {
                assert_eq!(size, 4);
                continue;
            };
            rows.multiply(
                &pool,
                &tiling,
                (&planes, u32::from_le_bytes([border; 4])),
                &mut vec![7; tiling.scratch_len()],
                &|row, range, part, _| {
                    let range = row * columns + range.start..row * columns + range.end;
                    sums.lock().unwrap()[range].copy_from_slice(part);
                },
            );
            let sums = sums.into_inner().unwrap();
            for (i, &sum) in sums.iter().enumerate() {
                let (row, y, x) = (i / columns, i % columns / g.output[1], i % g.output[1]);
                let mut want = 0;
                for (c, tap) in (0..channels).flat_map(|c| (0..9).map(move |tap| (c, tap))) {
                    let inside = |at: usize, pad: i64, size: usize| {
                        at.checked_sub(pad as usize).filter(|&at| at < size)
                    };
                    let place =
                        inside(y + tap / 3, pads[0], height).zip(inside(x + tap % 3, pads[1], across));
                    let number = place.map_or(border, |(y, x)| image(c, y, x));
                    let weight = (weight[(row * channels + c) * 9 + tap] ^ flip) as i8;
                    want += i32::from(number) * i32::from(weight);
                }
                assert_eq!(sum, want, "{threads} {m} × {channels}, {height} × {across}: {row} {y} {x}");
            }
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
