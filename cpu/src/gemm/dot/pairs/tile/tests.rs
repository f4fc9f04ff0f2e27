use super::super::tests::groups;
use super::super::widen;
use super::*;

fn dot(unsigned: u32, signed: u32) -> i32 {
    let (a, b) = (unsigned.to_le_bytes(), signed.to_le_bytes());
    a.iter().zip(b).map(|(&a, b)| i32::from(a) * i32::from(b as i8)).sum()
}

fn pairs(a: u32, b: u32) -> i32 {
    let halves = |x: u32| [x as i16, (x >> 16) as i16].map(i32::from);
    halves(a).iter().zip(halves(b)).map(|(&a, b)| a.wrapping_mul(b)).fold(0, i32::wrapping_add)
}

fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

/// Every tile that this machine has, against the definition.
#[test]
fn tiles_are_exact() {
    // Functions, the columns of a tile of theirs, and how many tiles side by side they compute here.
    type Compute = unsafe fn(Tile, usize) -> usize;
    fn check<const R: usize, const SIGNED: bool>(tiles: &[(Compute, usize, usize)]) {
        for depth in [1, 2, 7, 65] {
            let pitch = 37;
            let mut sides = [groups(R * depth, depth, 300), groups(pitch * depth + 32, 1, 300)];
            if !SIGNED {
                // Halves of the signed bytes.
                for group in &mut sides[0] {
                    *group = u32::from_le_bytes(group.to_le_bytes().map(|x| (x as i8 / 2) as u8));
                }
            }
            let [left, right] = &sides;
            let mut words = left.clone();
            if SIGNED {
                words = vec![0; 2 * left.len()];
                widen(left, 1, false, &mut words);
            }
            let step = if SIGNED { 2 } else { 1 };
            for &(compute, columns, count) in tiles {
                let mut sums = vec![0; R * 72];
                let (row, out) = (step * depth, sums.as_mut_ptr());
                let (left_at, right_at) = (words.as_ptr(), right.as_ptr());
                let tile = Tile {
                    out,
                    columns: 72,
                    left: left_at,
                    row,
                    step,
                    right: right_at,
                    pitch,
                    depth,
                    adds: false,
                };
                // SAFETY: operands and sums have room for 64 columns; the processor has what the tiles ask for.
                let width = unsafe { compute(tile, count) };
                assert_eq!(width, count * columns);
                let once = sums.clone();
                let tile = Tile { out: sums.as_mut_ptr(), adds: true, ..tile };
                // SAFETY: as above.
                unsafe { compute(tile, count) };
                assert!(once.iter().zip(&sums).all(|(x, &y)| x.wrapping_mul(2) == y), "{R} × {width}");
                sums = once;
                for (r, sums) in sums.chunks(72).enumerate() {
                    for (j, &sum) in sums[..width].iter().enumerate() {
                        let want: i32 = (0..depth)
                            .map(|p| (left[r * depth + p], right[p * pitch + j]))
                            .map(|(a, b)| if SIGNED { dot(a, b) } else { dot(b, a) })
                            .sum();
                        assert_eq!(sum, want, "{R} × {width} × {depth}, {SIGNED}: {r} {j}");
                    }
                }
            }
        }
    }
    macro_rules! check {
        ($($rows:literal $signed:literal),*) => {$({
            let mut tiles: Vec<(Compute, usize, usize)> = Vec::new();
            if has_avx2() {
                tiles.push((x86::avx2::<$rows, 1, $signed>, 8, 3));
                tiles.push((x86::avx2::<$rows, 2, $signed>, 16, 2));
                tiles.push((x86::avx2::<$rows, 4, $signed>, 32, 1));
            }
            if has_avx512() {
                tiles.push((x86::avx512::<$rows, 1, $signed>, 16, 2));
                tiles.push((x86::avx512::<$rows, 2, $signed>, 32, 1));
                tiles.push((x86::avx512::<$rows, 2, $signed>, 32, 2));
            }
            check::<$rows, $signed>(&tiles);
        })*};
    }
    check!(1 true, 2 true, 4 true, 1 false, 4 false);
}

#[test]
fn columns_of_four_rows_are_exact() {
    if !has_avx2() {
        return;
    }
    for (depth, step) in [(1, 4), (2, 5), (65, 4)] {
        let (plain, right) = (groups(step * depth, depth, 300), groups(7 * depth, 1, 300));
        let mut cut = plain.clone();
        let rests = super::super::cut(&mut cut, step, 1).unwrap_or_default();
        for left in [&plain, &cut] {
            let mut sums = [0; 4 * 5];
            let (out, left_at, right_at) = (sums.as_mut_ptr(), left.as_ptr(), right.as_ptr());
            let tile = Tile {
                out,
                columns: 5,
                left: left_at,
                row: 1,
                step,
                right: right_at,
                pitch: 7,
                depth,
                adds: false,
            };
            // SAFETY: operands and sums have room for three columns; the processor has the instructions.
            unsafe {
                match std::ptr::eq(left, &plain) {
                    true => tile.compute_columns::<false>(3),
                    false => tile.compute_columns::<true>(3),
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                let (row, column) = (i / 5, i % 5);
                let each = (0..depth).map(|p| dot(right[p * 7 + column], left[p * step + row]));
                let want = if column < 3 { each.sum() } else { 0 };
                assert_eq!(sum, want, "{depth}, {row}: {column}");
            }
        }
        let rests = rests.into_iter().map(super::super::Rest::of);
        let all: i32 = rests.map(|rest| rest.product(right[rest.depth * 7])).sum();
        let total =
            |groups: &[u32]| -> i32 { (0..depth * step).map(|i| dot(right[i / step * 7], groups[i])).sum() };
        assert_eq!(total(&cut) + all, total(&plain));
    }
}

/// Pairs of the largest numbers, too.
#[test]
fn tiles_of_pairs_are_exact() {
    type Compute = unsafe fn(Tile);
    let mut tiles: Vec<(Compute, usize, usize)> = Vec::new();
    if has_avx2() {
        tiles.extend([(x86::wide_avx2::<4, 1> as Compute, 4, 8), (x86::wide_avx2::<6, 2>, 6, 16)]);
    }
    if has_avx512() {
        tiles.extend([(x86::wide_avx512::<4, 1> as Compute, 4, 16), (x86::wide_avx512::<6, 2>, 6, 32)]);
    }
    for (compute, rows, width) in tiles {
        for depth in [1, 2, 9] {
            let (left, right) = (groups(rows * depth, 3, 700), groups(37 * depth, 4, 700));
            let mut sums = vec![0; rows * 40];
            let (out, left_at, right_at) = (sums.as_mut_ptr(), left.as_ptr(), right.as_ptr());
            // SAFETY: operands and sums have room for 32 columns; the processor has what the tile asks for.
            unsafe {
                compute(Tile {
                    out,
                    columns: 40,
                    left: left_at,
                    row: 1,
                    step: rows,
                    right: right_at,
                    pitch: 37,
                    depth,
                    adds: false,
                });
            }
            for (r, sums) in sums.chunks(40).enumerate() {
                for (j, &sum) in sums[..width].iter().enumerate() {
                    let each = (0..depth).map(|p| pairs(left[p * rows + r], right[p * 37 + j]));
                    assert_eq!(sum, each.fold(0, i32::wrapping_add), "{rows} × {width} × {depth}: {r} {j}");
                }
            }
        }
    }
}
