use crate::machine::execute::matrix::shapes::{self, Product, Wmma};
use crate::machine::execute::testing::*;
use crate::machine::numbers::*;

use super::{A, B, C, Coded, D, Place, coded, expected, get, product, put};

/// Where an instruction runs, and its modifiers.
#[derive(Clone, Copy, Debug, Default)]
struct Case {
    is_later: bool,
    lanes: usize,
    signed: [bool; 2],
    clamp: bool,
    upper_half: bool,
    /// NEG_LO and NEG_HI.
    negate: [u8; 2],
}

/// All places of A[i][k], and B[k][i] alike (AMD's matrix instruction calculator).
fn places_ab(shape: &Wmma, case: Case, i: usize, k: usize) -> Vec<Place> {
    let (bits, half) = (shape.a.bits(), shape.depth / 2);
    if !case.is_later {
        return (i..case.lanes).step_by(16).map(|lane| (lane, bits * k)).collect();
    }
    if case.lanes == 32 || bits == 4 && shape.depth == 16 {
        return vec![(i + 16 * (k / half), bits * (k % half))];
    }
    let quarter = half / 2;
    vec![(i + 16 * (k / half) + 32 * (k % half / quarter), bits * (k % quarter))]
}

/// The place of D[i][j], and C[i][j] alike.
fn place_d(case: Case, width: usize, i: usize, j: usize) -> Place {
    if !case.is_later {
        let rows = case.lanes / 16;
        return (j + 16 * (i % rows), 32 * (i / rows) + if case.upper_half { 16 } else { 0 });
    }
    match case.lanes {
        32 => (j + 16 * (i / 8), width * (i % 8)),
        _ => (j + 16 * (i / 8) + 32 * (i / 4 % 2), width * (i % 4)),
    }
}

fn width(result: Product) -> usize {
    if matches!(result, Product::F16 | Product::Bf16) { 16 } else { 32 }
}

fn code(result: Product, number: f64) -> u64 {
    match result {
        Product::F32 => (number as f32).to_bits().into(),
        Product::F16 => f32_to_f16(number as f32).into(),
        Product::Bf16 => f32_to_bf16(number as f32).into(),
        Product::I32 => u64::from(number as i64 as u32),
    }
}

fn check(shape: &Wmma, case: Case) {
    let target = if case.is_later { "gfx1201" } else { "gfx1100" };
    let mut bench = Bench::new(target, case.lanes);
    let mut random = noise(4096, 11).into_iter();
    let mut fill = |bench: &mut Bench, register: usize, operand: usize| -> Vec<Coded> {
        let element = [shape.a, shape.b][operand];
        let mut all = Vec::new();
        for (i, k) in (0..16).flat_map(|i| (0..shape.depth).map(move |k| (i, k))) {
            let number = coded(element, case.signed[operand], false, random.next().unwrap());
            for place in places_ab(shape, case, i, k) {
                put(bench, register, place, element.bits(), number.0);
            }
            all.push(number);
        }
        all
    };
    let a = fill(&mut bench, A, 0);
    let b = fill(&mut bench, B, 1);
    let (result, bits) = (shape.result, width(shape.result));
    let base = if case.clamp { f64::from(i32::MAX - 20) } else { 0.0 };
    let sum = |i: usize, j: usize| base + ((i * 31 + j * 7) % 19) as f64 - 9.0;
    for (i, j) in (0..256).map(|at| (at / 16, at % 16)) {
        put(&mut bench, C, place_d(case, bits, i, j), bits, code(result, sum(i, j)));
    }
    let mut made = product(shape.name);
    let modifiers = &mut made.modifiers;
    let signed = u8::from(case.signed[0]) | u8::from(case.signed[1]) << 1;
    modifiers.negate = if result == Product::I32 { signed } else { case.negate[0] };
    modifiers.negate_high = case.negate[1];
    modifiers.clamp = case.clamp;
    modifiers.op_sel = if case.upper_half { 4 } else { 0 };
    bench.set_vector(D, |_| 0x5a5a_5a5a);
    bench.run(&made).unwrap();
    let sign = |operand: usize, k: usize| {
        if case.negate[k & 1] >> operand & 1 != 0 { -1.0 } else { 1.0 }
    };
    for (i, j) in (0..256).map(|at| (at / 16, at % 16)) {
        let row = (0..shape.depth).map(|k| sign(0, k) * a[i * shape.depth + k].1);
        let column = (0..shape.depth).map(|k| sign(1, k) * b[j * shape.depth + k].1);
        let c = if case.negate[1] & 4 != 0 { sum(i, j).abs() } else { sum(i, j) };
        let c = if case.negate[0] & 4 != 0 { -c } else { c };
        let mut expected = expected(c, row, column);
        if case.clamp {
            expected = expected.clamp(f64::from(i32::MIN), f64::from(i32::MAX));
        }
        let got = get(&bench, D, place_d(case, bits, i, j), bits);
        let same = got == code(result, expected) || expected == 0.0 && got << (65 - bits) == 0;
        assert!(same, "{} {case:?} [{i}][{j}]: {got:#x}, not {expected}", shape.name);
    }
    if bits == 16 && !case.is_later {
        let kept = bench.row(D)[0] >> if case.upper_half { 0 } else { 16 } & 0xffff;
        assert_eq!(kept & 0xffff, 0x5a5a, "the other half stays");
    }
}

#[test]
fn all_shapes_multiply() {
    for shape in shapes::all().1 {
        let only_later = shape.depth == 32 || shape.name.contains("p8") || shape.name.contains("bf8");
        for (is_later, lanes) in [(false, 32), (false, 64), (true, 32), (true, 64)] {
            if only_later && !is_later {
                continue;
            }
            let case = Case { is_later, lanes, ..Case::default() };
            check(shape, case);
            if shape.result == Product::I32 {
                for signed in [[true, false], [false, true], [true, true]] {
                    check(shape, Case { signed, clamp: signed == [true, true], ..case });
                }
            } else {
                for negate in [[1, 0], [0, 1], [2, 2], [4, 0], [0, 4], [4, 4], [7, 3]] {
                    check(shape, Case { negate, ..case });
                }
            }
            if width(shape.result) == 16 && !is_later {
                check(shape, Case { upper_half: true, ..case });
            }
        }
    }
}

#[test]
fn sums_wrap_unless_clamped() {
    let shape = shapes::find_wmma("v_wmma_i32_16x16x16_iu8").unwrap();
    let mut bench = Bench::new("gfx1201", 32);
    put(&mut bench, A, (0, 0), 8, 1);
    put(&mut bench, B, (0, 0), 8, 1);
    put(&mut bench, C, (0, 0), 32, 0x7fff_ffff);
    let mut made = product(shape.name);
    bench.run(&made).unwrap();
    assert_eq!(bench.row(D)[0], 0x8000_0000);
    made.modifiers.clamp = true;
    bench.run(&made).unwrap();
    assert_eq!(bench.row(D)[0], 0x7fff_ffff);
}

#[test]
fn lanes_must_repeat_and_be_active() {
    let made = product("v_wmma_f32_16x16x16_f16");
    for (register, what) in [(A, "of A"), (B + 7, "of B")] {
        let mut bench = Bench::new("gfx1100", 32);
        bench.wave.vector.set(register, 17, 1);
        let message = bench.run(&made).unwrap_err();
        assert!(message.contains(what) && message.contains("repeat"), "{message}");
    }
    let mut bench = Bench::new("gfx1201", 32);
    bench.wave.set_exec(1);
    assert!(bench.run(&made).unwrap_err().contains("not active"));
}
