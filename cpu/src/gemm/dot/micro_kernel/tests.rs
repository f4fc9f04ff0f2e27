//! Every micro-kernel that this machine has, against the definition.

use super::super::amx::Tiles;
use super::super::isa::{Bf16Pair, COLUMNS, Int8x4, VECTOR};
use super::*;

/// Against the definition, with numbers whose sums are exact in either type: `pack` makes a dot group of small
/// whole numbers, `value` a number of a sum.
fn check<W: DotGroup>(pack: impl Fn(&[i32], bool) -> u32, value: impl Fn(u32) -> i64) {
    if !W::available() {
        println!("skipped: this processor has no such products");
        return;
    }
    let number = |i: usize, seed: usize| ((i * 7919 + seed * 104_729) % 11) as i32;
    let dot_groups = |count: usize, seed: usize, signed: bool| -> (Vec<i32>, Vec<u32>) {
        let numbers: Vec<i32> =
            (0..count * W::COUNT).map(|i| number(i, seed) - if signed { 5 } else { 0 }).collect();
        let dot_groups = numbers.chunks(W::COUNT).map(|chunk| pack(chunk, signed)).collect();
        (numbers, dot_groups)
    };
    let dot = |a: &[i32], i: usize, b: &[i32], j: usize| -> i64 {
        let (a, b) = (&a[i * W::COUNT..], &b[j * W::COUNT..]);
        (0..W::COUNT).map(|k| i64::from(a[k]) * i64::from(b[k])).sum()
    };
    for depth in [1, 2, 7, 33, 64, 1100] {
        // Rows times a panel, twice: written and added.
        let ((a, aw), (b, bw)) = (dot_groups(3 * depth, 1, false), dot_groups(COLUMNS * depth, 2, true));
        for width in [1, 16, 19, 32] {
            let mut out = vec![0; 3 * width];
            for add in [false, true] {
                let sums = Sums { at: out.as_mut_ptr(), columns: width, width, add };
                let fetch = Fetch::part(&bw, 0, 1, depth);
                // SAFETY: operands of these extents.
                unsafe {
                    W::run(RowsByPanel::<3> { out: sums, a: aw.as_ptr(), row: depth, panel: &bw, fetch })
                };
            }
            for (i, &sum) in out.iter().enumerate() {
                let (r, j) = (i / width, i % width);
                let want: i64 = (0..depth).map(|p| dot(&a, r * depth + p, &b, p * COLUMNS + j)).sum();
                assert_eq!(value(sum), 2 * want, "{depth} {width} {i}");
            }
        }
        by_tiles::<W>(depth, &dot_groups, &dot, &value);
        // A tile of an image, the last vector of 3 dot groups.
        let (image, image_groups) = dot_groups(depth * 2 + VECTOR + 3, 3, false);
        let (panel, panel_groups) = dot_groups(depth * 8, 4, true);
        let taps: Vec<usize> = (0..depth).map(|p| p * 2).collect();
        let first: Vec<u32> = (0..8).map(|r| pack_sum::<W>(r)).collect();
        let operands = TileOperands {
            first: first.as_ptr(),
            panel: panel_groups.as_ptr(),
            ahead: 0,
            taps: &taps,
            image: image_groups.as_ptr(),
            mask: 0b111,
        };
        // SAFETY: operands of these extents.
        let out = unsafe { W::run(Tile(operands)) };
        for (r, sums) in out.iter().enumerate() {
            for (j, &sum) in sums.iter().enumerate().take(VECTOR + 3) {
                let want: i64 = (0..depth).map(|p| dot(&image, p * 2 + j, &panel, p * 8 + r)).sum();
                assert_eq!(value(sum), want + r as i64, "{depth} {r} {j}");
            }
        }
        let (column, column_groups) = dot_groups(depth, 5, false);
        let operands = (first.as_ptr(), panel_groups.as_ptr(), column_groups.as_ptr(), depth);
        // SAFETY: operands of these extents.
        let out = unsafe { W::run(Column(operands)) };
        for (r, sums) in out.iter().enumerate() {
            let want: i64 = (0..depth).map(|p| dot(&column, p, &panel, p * 8 + r)).sum();
            assert_eq!(value(sums[0]), want + r as i64);
        }
    }
}

/// Rows times a panel by tiles, twice: written and added. Rows and columns beyond those asked for stay as they are.
fn by_tiles<W: DotGroup>(
    depth: usize,
    dot_groups: &impl Fn(usize, usize, bool) -> (Vec<i32>, Vec<u32>),
    dot: &impl Fn(&[i32], usize, &[i32], usize) -> i64,
    value: &impl Fn(u32) -> i64,
) {
    let mut tiles = Tiles::new();
    if !tiles.serve(32) {
        println!("skipped: this processor has no tiles, or they are not to be used");
        return;
    }
    let (most, pitch) = (32, 37);
    let ((a, aw), (b, bw)) = (dot_groups(most * depth, 6, false), dot_groups(COLUMNS * depth, 7, true));
    for (rows, width) in [(1, 32), (3, 1), (16, 32), (16, 17), (17, 32), (31, 16), (32, 31), (32, 32)] {
        let mut out = vec![u32::MAX; most * pitch];
        for add in [false, true] {
            let sums = Sums { at: out.as_mut_ptr(), columns: pitch, width, add };
            let fetch = Fetch::part(&bw, 0, 1, depth);
            // SAFETY: operands of these extents.
            unsafe { tiles.rows_by_panel::<W>(sums, (aw.as_ptr(), depth), rows, &bw, fetch) };
        }
        for (i, &sum) in out.iter().enumerate() {
            let (r, j) = (i / pitch, i % pitch);
            if r >= rows || j >= width {
                assert_eq!(sum, u32::MAX, "{depth} {rows} {width} {i}");
                continue;
            }
            let want: i64 = (0..depth).map(|p| dot(&a, r * depth + p, &b, p * COLUMNS + j)).sum();
            assert_eq!(value(sum), 2 * want, "{depth} {rows} {width} {i}");
        }
    }
}

/// A tile of 8 rows and 2 vectors.
struct Tile<'a>(TileOperands<'a>);

impl MicroKernel for Tile<'_> {
    type Output = Vec<Vec<u32>>;

    #[inline(always)]
    unsafe fn run<D: DotGroup>(self) -> Self::Output {
        // SAFETY: as the caller promises.
        unsafe { tile_sums::<D, 8, 2>(self.0) }.map(numbers).to_vec()
    }
}

/// First sums, panel, column and depth.
struct Column((*const u32, *const u32, *const u32, usize));

impl MicroKernel for Column {
    type Output = Vec<Vec<u32>>;

    #[inline(always)]
    unsafe fn run<D: DotGroup>(self) -> Self::Output {
        let (first, panel, column, depth) = self.0;
        // SAFETY: as the caller promises.
        unsafe { column_sums::<D>(first, panel, column, depth) }.map(numbers).to_vec()
    }
}

fn numbers<const V: usize>(sums: [SumVector; V]) -> Vec<u32> {
    // SAFETY: any vector is so many sums.
    sums.map(|sums| unsafe { std::mem::transmute::<SumVector, [u32; VECTOR]>(sums) }).concat()
}

/// A sum that is a small whole number.
fn pack_sum<W: DotGroup>(x: i32) -> u32 {
    if W::COUNT == 4 { x as u32 } else { (x as f32).to_bits() }
}

#[test]
fn bytes() {
    let pack = |numbers: &[i32], _: bool| u32::from_le_bytes(std::array::from_fn(|i| numbers[i] as u8));
    check::<Int8x4>(pack, |sum| i64::from(sum as i32));
}

#[test]
fn halves() {
    let half = |x: i32| (x as f32).to_bits() >> 16;
    let pack = |numbers: &[i32], _: bool| half(numbers[0]) | half(numbers[1]) << 16;
    check::<Bf16Pair>(pack, |sum| f32::from_bits(sum) as i64);
}
