use crate::graph::Attribute;
use crate::ops::OpError;
use crate::tensor::{I4, U4, Value, f16};
use crate::testing::{checksum, elements, run_constant, run_in, t};

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i * 37 % 251) as u8).collect()
}

fn left(m: usize, k: usize) -> Vec<f32> {
    (0..m * k).map(|i| ((i * 5 % 13) as f32 - 6.0) / 4.0).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Zero {
    None,
    Packed,
    Typed,
}

#[derive(Clone, Copy)]
struct Case {
    bits: usize,
    block: usize,
    n: usize,
    k: usize,
    m: usize,
    zero: Zero,
    groups: bool,
    bias: bool,
    /// `accuracy_level`: with 1 A is not rounded.
    level: i64,
}

impl Case {
    fn inputs(&self) -> Vec<Option<Value>> {
        let &Case { bits, block, n, k, m, zero, groups, bias, .. } = self;
        let blocks = k.div_ceil(block);
        let blob = block * bits / 8;
        let zero_row = (blocks * bits).div_ceil(8);
        let scales: Vec<f32> = (0..n * blocks).map(|i| ((i * 7 % 11) + 1) as f32 / 64.0).collect();
        vec![
            t(&[m, k], &left(m, k)),
            t(&[n, blocks, blob], &bytes(n * blocks * blob)),
            t(&[n * blocks], &scales),
            match zero {
                Zero::None => None,
                Zero::Packed => t(&[n * zero_row], &bytes(n * zero_row)),
                Zero::Typed => {
                    t(&[n, blocks], &(0..n * blocks).map(|i| (i * 3 % 9) as f32 + 0.5).collect::<Vec<_>>())
                }
            },
            match groups {
                true => t(&[k], &(0..k).map(|i| ((i * 3 + 1) % blocks) as i32).collect::<Vec<_>>()),
                false => None,
            },
            match bias {
                true => t(&[n], &(0..n).map(|i| (i as f32 - 2.0) / 2.0).collect::<Vec<_>>()),
                false => None,
            },
        ]
    }

    fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        let int = |x: usize| Attribute::Int(x as i64);
        let sizes = [("N", self.n), ("K", self.k), ("bits", self.bits), ("block_size", self.block)];
        let level = ("accuracy_level", Attribute::Int(self.level));
        sizes.map(|(name, size)| (name, int(size))).into_iter().chain([level]).collect()
    }

    /// With these inputs as constants.
    fn run_constant(&self, constants: &[usize]) -> Result<Value, OpError> {
        let (attributes, inputs) = (self.attributes(), self.inputs());
        run_constant("com.microsoft", "MatMulNBits", 1, &attributes, &inputs, constants, 1)
            .map(|mut out| out.remove(0))
    }

    fn run(&self) -> Result<Value, OpError> {
        nbits(&self.attributes(), &self.inputs())
    }
}

fn nbits(attributes: &[(&str, Attribute)], inputs: &[Option<Value>]) -> Result<Value, OpError> {
    run_in("com.microsoft", "MatMulNBits", 1, attributes, inputs, 1).map(|mut out| out.remove(0))
}

const PLAIN: Case =
    Case { bits: 4, block: 16, n: 3, k: 40, m: 2, zero: Zero::None, groups: false, bias: false, level: 1 };

/// Numbers of ONNX Runtime: the outputs, or the checksum of many. With groups they are numpy's, by the
/// definition: ONNX Runtime's CPU kernel leaves packed zero points out then.
#[test]
fn every_form_of_the_weight() {
    let packed = Case { zero: Zero::Packed, ..PLAIN };
    let eight = Case { bits: 8, block: 32, k: 70, ..PLAIN };
    let two = Case { bits: 2, ..eight };
    let cases: &[(Case, &[f32])] = &[
        (PLAIN, &[-3.125, 5.726_562_5, -0.429_687_5, 0.4375, -2.15625, 2.804_687_5]),
        (
            Case { bias: true, ..packed },
            &[-3.75, 6.304_687_5, -0.921875, 0.421875, -1.613_281_3, 2.570_312_5],
        ),
        (Case { block: 32, n: 5, k: 64, m: 9, zero: Zero::Typed, ..PLAIN }, &[99.279_3]),
        (Case { m: 1, groups: true, ..packed }, &[-6.34375, 3.445_312_5, -0.351_562_5]),
        (eight, &[-19.761_719, 41.417_97, 87.21875, 31.039_063, 74.019_53, -9.164_063]),
        (
            Case { zero: Zero::Packed, ..eight },
            &[-28.824_219, 45.183_594, 79.0, 14.320_313, 81.503_91, -55.421_875],
        ),
        (two, &[-0.808_593_75, 0.492_187_5, -0.554_687_5, -0.539_062_5, 1.777_343_8, 0.132_812_5]),
        (Case { k: 140, m: 20, zero: Zero::Packed, ..two }, &[-4.246_093_8]),
        (
            Case { block: 256, n: 2, k: 512, m: 3, ..PLAIN },
            &[0.015_625, 2.292_968_8, 0.398_437_5, -3.722_656_3, -1.605_468_8, -5.167_968_8],
        ),
    ];
    for (case, want) in cases {
        // Without a level A may become integers of 16 bits.
        let ways =
            [&[][..], &[1, 2], &[1, 2, 3]].map(|constants| [(constants, 1, 1e-4), (constants, 0, 5e-3)]);
        for (constants, level, tolerance) in ways.into_iter().flatten() {
            let (shape, y) = elements::<f32>(&Case { level, ..*case }.run_constant(constants).unwrap());
            assert_eq!(shape, [case.m, case.n]);
            let got = if want.len() == 1 { vec![checksum(&y) as f32] } else { y };
            let close = got.iter().zip(*want).all(|(y, want)| (y - want).abs() < tolerance);
            assert!(close, "{} bits, blocks of {}: {got:?} {want:?}", case.bits, case.block);
        }
    }
}

#[test]
fn many_rows_give_what_each_gives_alone() {
    let groups = Case { zero: Zero::Typed, groups: true, bias: true, ..PLAIN };
    let packed = Case { zero: Zero::Packed, ..PLAIN };
    for case in [
        Case { m: 19, ..groups },
        Case { m: 19, k: 700, n: 70, bits: 8, ..groups },
        // Rows, columns and depths in several pieces; blocks that are longer than these.
        Case { m: 270, k: 1100, n: 130, block: 32, ..packed },
        Case { m: 17, k: 1500, n: 99, bits: 2, block: 1024, bias: true, ..packed },
        Case { m: 40, k: 33, n: 1, bits: 8, ..packed },
        Case { m: 1030, k: 40, n: 20, ..packed },
    ] {
        let (_, whole) = elements::<f32>(&case.run().unwrap());
        let mut inputs = case.inputs();
        let a = left(case.m, case.k);
        let (_, packed) = elements::<f32>(&case.run_constant(&[1, 2, 3]).unwrap());
        assert!(packed.iter().zip(&whole).all(|(y, want)| (y - want).abs() <= 1e-5 * want.abs().max(100.0)));
        for (row, want) in a.chunks(case.k).zip(whole.chunks(case.n)).step_by(1 + case.m / 20) {
            inputs[0] = t(&[case.k], row);
            let (shape, y) = elements::<f32>(&nbits(&case.attributes(), &inputs).unwrap());
            assert_eq!(shape, [case.n]);
            assert!(y.iter().zip(want).all(|(y, want)| (y - want).abs() <= 1e-5 * want.abs().max(100.0)));
        }
    }
}

#[test]
fn half_precision() {
    let case = Case { zero: Zero::Packed, bias: true, ..PLAIN };
    let mut inputs = case.inputs();
    for i in [0, 2, 5] {
        let (shape, x) = elements::<f32>(inputs[i].as_ref().unwrap());
        inputs[i] = t(&shape, &x.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>());
    }
    // Many rows are computed another way: the same two again and again.
    let rows = elements::<f16>(inputs[0].as_ref().unwrap()).1;
    for m in [2, 20] {
        inputs[0] = t(&[m, case.k], &rows.repeat(m / 2));
        let y = elements::<f16>(&nbits(&case.attributes(), &inputs).unwrap()).1;
        let y: Vec<f32> = y.iter().map(|y| y.to_f32()).collect();
        let want = [-3.75, 6.304_687_5, -0.921875, 0.421875, -1.613_281_3, 2.570_312_5];
        assert_eq!(y, want.repeat(m / 2));
    }
}

/// Numbers of ONNX Runtime.
#[test]
fn four_bit_floats() {
    let (n, k, block) = (3usize, 50usize, 16usize);
    let factors: Vec<f32> = (0..(n * k).div_ceil(block)).map(|i| ((i * 7 % 11) + 1) as f32 / 8.0).collect();
    // Many rows are computed another way: the same two again and again.
    let inputs = |m: usize| {
        let rows = left(2, k).repeat(m / 2);
        [t(&[m, k], &rows), t(&[75, 1], &bytes(75)), t(&[factors.len()], &factors)]
    };
    for (code, want) in [
        (0, [0.0, -0.427_083, 0.043_619_7, -0.896_809_9, 4.654_459_5, -4.957_357]),
        (1, [0.530_679_35, -3.034_566_4, -2.548_606_6, 0.826_291_6, -5.816_727, 4.735_099f32]),
    ] {
        let attributes = [("N", 3), ("K", 50), ("block_size", 16), ("quant_type", code)]
            .map(|(name, x)| (name, Attribute::Int(x)));
        for m in [2, 20] {
            let out = run_in("com.microsoft", "MatMulBnb4", 1, &attributes, &inputs(m), 1).unwrap();
            let (shape, y) = elements::<f32>(&out[0]);
            assert_eq!(shape, [m, 3]);
            let close = y.iter().zip(want.iter().cycle()).all(|(y, want)| (y - want).abs() < 1e-5);
            assert!(close, "{y:?} {want:?}");
        }
    }
}

/// Checksums of ONNX Runtime's numbers.
#[test]
fn gather_from_a_quantized_table() {
    let gather = |attributes: &[(&'static str, i64)], inputs: &[Option<Value>]| {
        let attributes: Vec<_> = attributes.iter().map(|&(name, x)| (name, Attribute::Int(x))).collect();
        run_in("com.microsoft", "GatherBlockQuantized", 1, &attributes, inputs, 1)
            .map(|mut out| out.remove(0))
    };
    let scales = |shape: &[usize]| -> Option<Value> {
        let count = shape.iter().product::<usize>();
        t(shape, &(0..count).map(|i| ((i * 7 % 11) + 1) as f32 / 8.0).collect::<Vec<_>>())
    };
    for (bits, plain, shifted) in [(4, 52.625, -202.125), (8, -85.875, -176.125)] {
        let blocks = 32 * 8 / bits / 16;
        let zero_bytes = blocks * bits / 8;
        let zeros = t(&[4, zero_bytes], &bytes(4 * zero_bytes));
        for (zeros, want) in [(None, plain), (zeros, shifted)] {
            let indices = t(&[2, 2], &[2i64, 0, 3, -1]);
            let inputs = [t(&[4, 32], &bytes(128)), indices, scales(&[4, blocks]), zeros];
            let y = gather(&[("bits", bits as i64), ("block_size", 16)], &inputs).unwrap();
            let (shape, y) = elements::<f32>(&y);
            assert_eq!((shape, checksum(&y)), (vec![2, 2, 32 * 8 / bits], want));
        }
    }
    let indices = || t(&[2], &[1i64, -2]);
    let fours = |count: usize| (0..count).map(|i| (i * 5 % 16) as i8).collect::<Vec<_>>();
    let zeros = |count: usize| (0..count).map(|i| (i * 3 % 16) as i8).collect::<Vec<_>>();
    let signed = |x: Vec<i8>| x.into_iter().map(|x| I4(x - 8)).collect::<Vec<_>>();
    let unsigned = |x: Vec<i8>| x.into_iter().map(|x| U4(x as u8)).collect::<Vec<_>>();
    let axes = |gather: i64, quantize: i64| {
        [("gather_axis", gather), ("quantize_axis", quantize), ("block_size", 16)]
    };
    for (axes, inputs, shape, want) in [
        (
            axes(0, 1),
            [t(&[3, 40], &signed(fours(120))), indices(), scales(&[3, 3]), t(&[3, 3], &signed(zeros(9)))],
            vec![2, 40],
            -25.5,
        ),
        (
            axes(1, 0),
            [t(&[40, 3], &unsigned(fours(120))), indices(), scales(&[3, 3]), t(&[3, 3], &unsigned(zeros(9)))],
            vec![40, 2],
            -280.875,
        ),
        (
            axes(2, 1),
            [t(&[2, 40, 3], &unsigned(fours(240))), indices(), scales(&[2, 3, 3]), None],
            vec![2, 40, 2],
            -328.125,
        ),
    ] {
        let (got, y) = elements::<f32>(&gather(&axes, &inputs).unwrap());
        assert_eq!((got, checksum(&y)), (shape, want));
    }
    let table = || [t(&[4, 32], &bytes(128)), t(&[1], &[4i64]), scales(&[4, 4])];
    for (attributes, inputs, part) in [
        (&[("block_size", 16)][..], table(), "4"),
        (&[("block_size", 24)], table(), "powers of two"),
        (&[("bits", 2)], table(), "4 and 8"),
        (&[("block_size", 32)], table(), "input 2 (scales)"),
        (&[("block_size", 16), ("quantize_axis", 0)], table(), "\"quantize_axis\""),
    ] {
        let error = gather(attributes, &inputs).unwrap_err().to_string();
        assert!(error.contains(part), "{error}: {part}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let with = |name: &'static str, value: i64| {
        let mut attributes = PLAIN.attributes();
        attributes.retain(|(other, _)| *other != name);
        attributes.push((name, Attribute::Int(value)));
        nbits(&attributes, &PLAIN.inputs())
    };
    let without = |name: &'static str| {
        let mut attributes = PLAIN.attributes();
        attributes.retain(|(other, _)| *other != name);
        nbits(&attributes, &PLAIN.inputs())
    };
    let input = |i: usize, value: Option<Value>| {
        let mut inputs = PLAIN.inputs();
        inputs[i] = value;
        nbits(&PLAIN.attributes(), &inputs)
    };
    for (result, parts) in [
        (with("bits", 3), ["\"bits\"", "2, 4 and 8"]),
        (with("block_size", 24), ["\"block_size\"", "powers of two"]),
        (with("block_size", -16), ["\"block_size\"", "-16"]),
        (with("accuracy_level", 5), ["\"accuracy_level\"", "0 to 4"]),
        (with("weight_prepacked", 1), ["\"weight_prepacked\"", "allowed is 0"]),
        (with("K", 41), ["input 0 (A)", "41"]),
        (with("N", i64::MAX), ["\"N\"", "1 to"]),
        (without("N"), ["\"N\"", "required"]),
        (input(1, t(&[3, 3, 7], &bytes(63))), ["input 1 (B)", "allowed are 72"]),
        (input(2, t(&[8], &[1.0f32; 8])), ["input 2 (scales)", "allowed are 9"]),
        (input(3, t(&[5], &[0u8; 5])), ["input 3 (zero_points)", "allowed are 6"]),
        (input(4, t(&[40], &[3i32; 40])), ["g_idx has 3", "0 to 2"]),
        (input(5, t(&[2], &[0.0f32; 2])), ["input 5 (bias)", "allowed are 3"]),
    ] {
        let error = result.unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}: {parts:?}");
    }
}
