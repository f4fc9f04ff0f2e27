use crate::isa::{Operand, Source};
use crate::machine::execute::matrix::element::Element;
use crate::machine::execute::matrix::shapes::{self, Mfma};
use crate::machine::execute::testing::*;

use super::{A, B, C, Coded, D, Place, coded, expected, get, product, put};

/// A[i][k] of a block, and B[k][i] alike (AMD's matrix instruction calculator).
fn place_ab(shape: &Mfma, block: usize, i: usize, k: usize) -> Place {
    let in_lane = shape.depth / (64 / (shape.size * shape.blocks)).max(1);
    let lane = i + shape.size * (block + shape.blocks * (k / in_lane));
    (lane, shape.a.bits() * (k % in_lane))
}

/// D[i][j] of a block, and C[i][j] alike.
fn place_d(shape: &Mfma, block: usize, i: usize, j: usize) -> Place {
    match (shape.size, shape.a == Element::F64) {
        (16, true) => (16 * (i % 4) + j, 64 * (i / 4)),
        (_, true) => (j + 4 * block + 16 * i, 0),
        (4, false) => (j + 4 * block, 32 * i),
        (16, false) => (j + 16 * (i / 4), 32 * (4 * block + i % 4)),
        (_, false) => (j + 32 * (i / 4 % 2), 32 * (16 * block + 4 * (i / 8) + i % 4)),
    }
}

/// Which targets have a shape, one of each kind.
fn targets(shape: &Mfma) -> Vec<&'static str> {
    let name = shape.name;
    let is_of_gfx950 = shape.in_lane() * shape.a.bits() > 64;
    if is_of_gfx950 {
        vec!["gfx950"]
    } else if name.contains("xf32")
        || name.contains("8_bf8")
        || name.contains("8_fp8")
        || name.contains("_i8")
    {
        vec!["gfx942"]
    } else if name.ends_with("bf16") && !name.contains("_bf16") || shape.a == Element::I8 {
        vec!["gfx908", "gfx90a"]
    } else {
        vec!["gfx90a", "gfx942"]
    }
}

/// CBSZ, ABID, BLGP.
type Options = (u8, u8, u8);

/// The block of A that serves a block, and the lane of B that serves a lane.
fn shared(options: Options, block: usize) -> usize {
    let (cbsz, abid, _) = options;
    block >> cbsz << cbsz | usize::from(abid)
}

fn lane_of_b(options: Options, lane: usize) -> usize {
    match options.2 {
        0 => lane,
        1 => lane % 32,
        2 => 32 + lane % 32,
        3 => (lane + 16) % 64,
        group => 16 * (usize::from(group) - 4) + lane % 16,
    }
}

/// Fills A, B and C with numbers, runs the instruction and compares D.
fn check(shape: &Mfma, target: &str, options: Options, negate: bool) {
    let (size, depth, blocks) = (shape.size, shape.depth, shape.blocks);
    let mut bench = Bench::new(target, 64);
    let bytes = noise(3 << 16, 7);
    let mut random = bytes.iter().copied();
    let mut next = |element| coded(element, true, target != "gfx950", random.next().unwrap());
    // By block, index, k.
    let mut fill = |bench: &mut Bench, register: usize, element: Element| -> Vec<Coded> {
        let mut all = Vec::new();
        for block in 0..blocks {
            for (i, k) in (0..size).flat_map(|i| (0..depth).map(move |k| (i, k))) {
                let number = next(element);
                put(bench, register, place_ab(shape, block, i, k), element.bits(), number.0);
                all.push(number);
            }
        }
        all
    };
    let a = fill(&mut bench, A, shape.a);
    let b = fill(&mut bench, B, shape.b);
    let (width, is_integer) = (if shape.a == Element::F64 { 64 } else { 32 }, shape.a == Element::I8);
    let sum = |block: usize, i: usize, j: usize| ((block * 100 + i * 31 + j * 7) % 19) as f64 - 9.0;
    let code = |number: f64| match (width, is_integer) {
        (64, _) => number.to_bits(),
        (_, true) => u64::from(number as i64 as i32 as u32),
        _ => u64::from((number as f32).to_bits()),
    };
    let all = (0..blocks).flat_map(|block| (0..size * size).map(move |at| (block, at / size, at % size)));
    for (block, i, j) in all.clone() {
        put(&mut bench, C, place_d(shape, block, i, j), width, code(sum(block, i, j)));
    }
    let mut made = product(shape.name);
    (made.modifiers.cbsz, made.modifiers.abid, made.modifiers.blgp) = options;
    // EXEC does not matter.
    bench.wave.set_exec(5);
    bench.run(&made).unwrap();
    for (block, i, j) in all {
        let from = shared(if negate { (0, 0, 0) } else { options }, block);
        let row = (0..depth).map(|k| a[(from * size + i) * depth + k].1);
        let column = (0..depth).map(|k| {
            if negate || options.2 == 0 {
                return b[(block * size + j) * depth + k].1;
            }
            // Shapes with options hold all k in a lane.
            let lane = lane_of_b(options, j + size * block);
            b[lane * depth + k].1
        });
        let (sign, factor) = if negate { (-1.0, -1.0) } else { (1.0, 1.0) };
        let expected = expected(sign * sum(block, i, j), row.map(|a| factor * a), column);
        let got = get(&bench, D, place_d(shape, block, i, j), width);
        // -0 and 0 are the same number.
        let same = got == code(expected) || expected == 0.0 && got << (65 - width) == 0;
        assert!(
            same,
            "{} {target} {options:?} block {block} [{i}][{j}]: {got:#x}, not {expected}",
            shape.name
        );
    }
}

#[test]
fn all_shapes_multiply() {
    for shape in shapes::all().0 {
        for target in targets(shape) {
            check(shape, target, (0, 0, 0), false);
        }
    }
}

#[test]
fn blocks_and_lanes_are_shared() {
    let rows: [(&str, &[Options]); 2] = [
        ("v_mfma_f32_32x32x1_2b_f32", &[(1, 0, 0), (1, 1, 0), (0, 0, 1), (0, 0, 2), (0, 0, 3), (0, 0, 5)]),
        ("v_mfma_f32_4x4x4_16b_f16", &[(2, 1, 0), (4, 9, 4), (0, 0, 3), (3, 5, 7)]),
    ];
    for (name, all) in rows {
        let shape = shapes::find_mfma(name).unwrap();
        for &options in all {
            check(shape, "gfx90a", options, false);
        }
    }
    // Of f64 on gfx942 the same bits negate A, B and C.
    check(shapes::find_mfma("v_mfma_f64_16x16x4_f64").unwrap(), "gfx942", (0, 0, 5), true);
}

#[test]
fn constants_stand_for_c() {
    let mut bench = Bench::new("gfx942", 64);
    let mut made = product("v_mfma_f32_16x16x16_f16");
    made.sources[2] = Operand { source: Source::Float(1.0), registers: 1 };
    bench.run(&made).unwrap();
    assert!((0..4).all(|register| bench.row(D + register).iter().all(|&word| word == 1f32.to_bits())));
}

#[test]
fn gfx90a_takes_subnormal_halves_for_0() {
    for (target, expected) in [("gfx90a", 0.0), ("gfx942", 2f32.powi(-15))] {
        let mut bench = Bench::new(target, 64);
        let shape = shapes::find_mfma("v_mfma_f32_16x16x16_f16").unwrap();
        put(&mut bench, A, place_ab(shape, 0, 0, 0), 16, 0x0200);
        put(&mut bench, B, place_ab(shape, 0, 0, 0), 16, 0x3c00);
        bench.run(&product(shape.name)).unwrap();
        assert_eq!(bench.row(D)[0], expected.to_bits(), "{target}");
    }
}

#[test]
fn what_cannot_be_is_an_error() {
    // Target, lanes, name, options, and what the message says.
    let rows: [(&str, usize, &str, Options, &str); 4] = [
        ("gfx90a", 64, "v_mfma_f32_32x32x8_f16", (1, 0, 0), "cbsz:1"),
        ("gfx90a", 64, "v_mfma_f32_32x32x1_2b_f32", (1, 2, 0), "abid:2"),
        ("gfx90a", 64, "v_mfma_f64_16x16x4_f64", (0, 0, 1), "blgp:1"),
        ("gfx1100", 32, "v_mfma_f32_32x32x8_f16", (0, 0, 0), "32 lanes"),
    ];
    for (target, lanes, name, options, message) in rows {
        let mut made = product(shapes::find_mfma(name).unwrap().name);
        (made.modifiers.cbsz, made.modifiers.abid, made.modifiers.blgp) = options;
        let error = Bench::new(target, lanes).run(&made).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    let mut made = product("v_mfma_f32_32x32x8_f16");
    made.destinations[0] = vector(250, 16);
    assert!(Bench::new("gfx942", 64).run(&made).unwrap_err().contains("v_mfma_f32_32x32x8_f16"));
    made.name = "v_smfmac_f32_16x16x32_f16";
    made.destinations[0] = vector(0, 1);
    assert!(Bench::new("gfx942", 64).run(&made).unwrap_err().contains("v_smfmac_f32_16x16x32_f16"));
}
