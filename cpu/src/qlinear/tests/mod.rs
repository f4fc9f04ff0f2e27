mod channel_blocked;
mod elementwise;
mod large_weights;
mod transformer;

use crate::graph::Attribute;
use crate::tensor::Element;
use crate::testing::{checksum, elements, run, run_constant, run_in, t};

pub(crate) fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i * 37 % 251) as u8).collect()
}

pub(crate) fn signed(count: usize) -> Vec<i8> {
    bytes(count).iter().map(|&x| x.wrapping_sub(128) as i8).collect()
}

#[test]
fn matmul_integer_is_exact_over_a_long_depth() {
    // numpy, int64: zero points by row and by column.
    let (m, k, n) = (3, 700, 5);
    let out = run(
        "MatMulInteger",
        10,
        &[],
        &[
            t(&[m, k], &bytes(m * k)),
            t(&[k, n], &signed(k * n)),
            t(&[3], &[1u8, 128, 255]),
            t(&[5], &[0i8, 1, -1, 127, -128]),
        ],
        1,
    );
    let (shape, y) = elements::<i32>(&out.unwrap()[0]);
    assert_eq!((shape, checksum(&y)), (vec![m, n], MATMUL));
}

#[test]
fn conv_integer_and_qlinear_conv() {
    let x = t(&[2, 4, 7, 6], &bytes(2 * 4 * 7 * 6));
    let w = t(&[6, 2, 3, 3], &signed(6 * 2 * 9));
    let attributes = [
        ("group", Attribute::Int(2)),
        ("pads", Attribute::Ints(vec![1, 1, 1, 1])),
        ("strides", Attribute::Ints(vec![2, 1])),
    ];
    let zeros = t(&[6], &[1i8, 2, 3, -4, 5, 6]);
    let inputs = [x.clone(), w.clone(), t(&[], &[100u8]), zeros.clone()];
    let out = run("ConvInteger", 10, &attributes, &inputs, 1).unwrap();
    assert_eq!(checksum(&elements::<i32>(&out[0]).1), CONV);
    let scale = |s: f32| t(&[], &[s]);
    let inputs = [
        x,
        scale(0.02),
        t(&[], &[100u8]),
        w,
        t(&[6], &[0.01f32, 0.02, 0.03, 0.04, 0.05, 0.06]),
        zeros,
        scale(0.5),
        t(&[], &[7i8]),
        t(&[6], &[1000i32, -1000, 0, 500, 20, -77]),
    ];
    let out = run("QLinearConv", 10, &attributes, &inputs, 1).unwrap();
    assert_eq!(checksum(&elements::<i8>(&out[0]).1), QCONV);
}

/// A weight that is packed gives what one does that is not.
#[test]
fn constant_weights_change_nothing() {
    let scale = |s: f32| t(&[], &[s]);
    let attributes = [("group", Attribute::Int(2)), ("pads", Attribute::Ints(vec![2, 1, 1, 2]))];
    for zero in [-128i8, 5] {
        let inputs = [
            t(&[2, 10, 9, 11], &bytes(2 * 10 * 9 * 11)),
            scale(0.02),
            t(&[], &[100u8]),
            t(&[6, 5, 3, 3], &signed(6 * 5 * 9)),
            t(&[6], &[0.01f32, 0.02, 0.03, 0.04, 0.05, 0.06]),
            t(&[6], &[0i8; 6]),
            scale(0.9),
            t(&[], &[zero]),
            t(&[6], &[1000i32, -1000, 0, 500, 20, -77]),
        ];
        let y = |constants: &[usize]| {
            let out = run_constant("", "QLinearConv", 10, &attributes, &inputs, constants, 1).unwrap();
            elements::<i8>(&out[0])
        };
        assert_eq!(y(&[]), y(&[3, 5]));
    }
    let column = |s: &[f32]| t(&[s.len()], s);
    for rows in [1, 13] {
        let inputs = [
            t(&[2, rows, 70], &bytes(2 * rows * 70)),
            scale(0.02),
            t(&[], &[100u8]),
            t(&[70, 33], &signed(70 * 33)),
            column(&(0..33).map(|j| 0.01 + 0.001 * j as f32).collect::<Vec<_>>()),
            t(&[33], &signed(33)),
            scale(1.5),
            t(&[], &[7u8]),
        ];
        let y = |constants: &[usize]| {
            let out = run_constant("", "QLinearMatMul", 21, &[], &inputs, constants, 1).unwrap();
            elements::<u8>(&out[0])
        };
        assert_eq!(y(&[]), y(&[3]), "{rows} rows");
    }
}

/// Rows of one position have factors of their own, too.
#[test]
fn one_position_of_some_channels() {
    let scale = |s: f32| t(&[], &[s]);
    let scales: Vec<_> = (0..22).map(|i| 0.01 + 0.001 * i as f32).collect();
    let biases: Vec<_> = (0..22).map(|i| 500 - 90 * i).collect();
    for (kernel, zero) in [(1, 0i8), (1, 3), (3, 0)] {
        let w = [22, 37, kernel, kernel, kernel];
        let inputs = [
            t(&[2, 37, 1, 1, 1], &bytes(2 * 37)),
            scale(0.02),
            t(&[], &[100u8]),
            t(&w, &signed(w.iter().product())),
            t(&[22], &scales),
            t(&[22], &[zero; 22]),
            scale(0.9),
            t(&[], &[5u8]),
            t(&[22], &biases),
        ];
        let attributes = [("pads", Attribute::Ints(vec![kernel as i64 / 2; 6]))];
        let [want, got] = [&[][..], &[3, 5]].map(|constants| {
            let out = run_constant("", "QLinearConv", 10, &attributes, &inputs, constants, 1).unwrap();
            elements::<u8>(&out[0])
        });
        assert_eq!(got, want, "{kernel}, {zero}");
    }
}

/// With a residual, rounded twice: as QLinearConv and QLinearAdd one after the other.
#[test]
fn a_residual_is_added_as_by_an_operator_of_its_own() {
    fn check<T: Element>(
        case: (&[usize], &[usize], &[usize], i64),
        of: impl Fn(u8) -> T,
        constants: &[usize],
        scales: usize,
    ) {
        let (x, w, y, group) = case;
        let count = |shape: &[usize]| shape.iter().product::<usize>();
        let some = |shape: &[usize], step: usize| {
            t(shape, &(0..count(shape)).map(|i| of((i * step % 251) as u8)).collect::<Vec<_>>())
        };
        let (scale, zero) = (|s: f32| t(&[], &[s]), |z: u8| t(&[], &[of(z)]));
        let pads = vec![(w[2] / 2) as i64; 4];
        let attributes = [("group", Attribute::Int(group)), ("pads", Attribute::Ints(pads))];
        let weight = t(w, &signed(count(w)));
        let w_scales: Vec<f32> = (0..scales).map(|i| 0.003 + 0.0002 * i as f32).collect();
        // Sums of all rows become bytes together only if the weight's zero point is 0.
        let (w_scale, w_zero) = if scales == 1 { (scale(0.003), 3i8) } else { (t(&[scales], &w_scales), 0) };
        let mut inputs = vec![some(x, 37), scale(0.02), zero(100), weight, w_scale, t(&[], &[w_zero])];
        inputs.extend([scale(0.07), zero(9), t(&[w[0]], &vec![-300i32; w[0]])]);
        let sums = run_constant("", "QLinearConv", 10, &attributes, &inputs, constants, 1).unwrap().remove(0);
        let rest = [some(y, 53), scale(0.031), zero(200), scale(0.05), zero(77)];
        let add: Vec<_> = [Some(sums), scale(0.07), zero(9)].into_iter().chain(rest.clone()).collect();
        let want = run_in("com.microsoft", "QLinearAdd", 1, &[], &add, 1).unwrap().remove(0);
        inputs.extend(rest);
        let got =
            run_constant("rukh", "QLinearConv", 1, &attributes, &inputs, constants, 1).unwrap().remove(0);
        assert_eq!(elements::<T>(&got), elements::<T>(&want), "{case:?} {constants:?} {scales}");
    }
    type Case<'a> = (&'a [usize], &'a [usize], &'a [usize], i64);
    let cases: [Case<'_>; 7] = [
        (&[2, 10, 9, 11], &[12, 5, 3, 3], &[2, 12, 9, 11], 2),
        (&[1, 64, 14, 14], &[72, 64, 1, 1], &[1, 72, 14, 14], 1),
        (&[2, 33, 9, 11], &[37, 33, 3, 3], &[2, 37, 9, 11], 1),
        (&[1, 16, 7, 7], &[9, 16, 3, 3], &[1, 9, 7, 7], 1),
        (&[1, 5, 1, 1], &[4, 5, 1, 1], &[1, 4, 1, 1], 1),
        (&[2, 20, 1, 1], &[37, 20, 1, 1], &[2, 37, 1, 1], 1),
        (&[1, 6, 8, 8], &[6, 1, 3, 3], &[1, 6, 8, 8], 6),
    ];
    for case in cases {
        for constants in [&[][..], &[3, 5]] {
            for scales in [1, case.1[0]] {
                check(case, |x| x, constants, scales);
                check(case, |x| x.wrapping_sub(128) as i8, constants, scales);
            }
        }
    }
}

#[test]
fn convolutions_without_output_channels() {
    let inputs = [t(&[1, 4, 6, 6], &bytes(144)), t(&[0, 4, 3, 3], &[0i8; 0])];
    for constants in [&[][..], &[1]] {
        let out = run_constant("", "ConvInteger", 10, &[], &inputs, constants, 1).unwrap();
        assert_eq!(elements::<i32>(&out[0]), (vec![1, 0, 4, 4], vec![]), "{constants:?}");
    }
}

#[test]
fn a_residual_of_another_shape_is_an_error() {
    let (scale, zero) = (|| t(&[], &[0.5f32]), || t(&[], &[3u8]));
    let mut inputs =
        vec![t(&[1, 4, 2, 2], &bytes(16)), scale(), zero(), t(&[3, 4, 1, 1], &signed(12)), scale()];
    inputs.extend([t(&[], &[0i8]), scale(), zero(), None, t(&[1, 3, 2, 1], &bytes(6))]);
    inputs.extend([scale(), zero(), scale(), zero()]);
    let error = run_in("rukh", "QLinearConv", 1, &[], &inputs, 1).unwrap_err().to_string();
    assert!(error.contains("input 9 (residual)") && error.contains("allowed is [1, 3, 2, 2]"), "{error}");
}

/// Products of com.microsoft; the numbers are ONNX Runtime's.
#[test]
fn products_to_floats() {
    let scale = |s: f32| t(&[], &[s]);
    let close = |value: &crate::tensor::Value, want: &[f32]| {
        let got = elements::<f32>(value).1;
        assert_eq!(got.len(), want.len());
        got.iter().zip(want).for_each(|(y, want)| assert!((y - want).abs() < 2e-5, "{got:?} {want:?}"));
    };
    let (a, b) = (t(&[2, 3, 5], &bytes(30)), t(&[5, 4], &signed(20)));
    let columns = || (t(&[4], &[0.01f32, 0.02, 0.03, 0.04]), t(&[4], &[1i8, -2, 3, 0]));
    let bias = t(&[4], &[1.0f32, -1.0, 0.5, 0.0]);
    let inputs = [a.clone(), b.clone(), scale(0.02), scale(0.03), t(&[], &[100u8]), t(&[], &[3i8]), bias];
    let out = run_in("com.microsoft", "MatMulIntegerToFloat", 1, &[], &inputs, 1).unwrap();
    assert!((checksum(&elements::<f32>(&out[0]).1) + 189.964_591).abs() < 1e-3);
    let inputs = [a, b, scale(0.02), columns().0, t(&[], &[100u8]), columns().1];
    let out = run_in("com.microsoft", "MatMulIntegerToFloat", 1, &[], &inputs, 1).unwrap();
    assert!((checksum(&elements::<f32>(&out[0]).1) + 75.459_993).abs() < 1e-3);

    let x = t(&[3, 4], &[-1.25f32, 0.5, -0.75, 1.0, -0.25, 1.5, 0.25, -1.0, 0.75, -0.5, 1.25, 0.0]);
    let w = signed(8);
    let inputs = [x.clone(), t(&[4, 2], &w), scale(0.03), t(&[], &[2i8]), t(&[2], &[1.0f32, -1.0])];
    let out = run_in("com.microsoft", "DynamicQuantizeMatMul", 1, &[], &inputs, 1).unwrap();
    close(&out[0], &[7.4058824, -2.7088823, -3.1851764, 2.9176176, -0.4351765, -0.7592942]);
    let w: Vec<u8> = w.iter().map(|&x| x as u8).collect();
    let inputs = [x, t(&[4, 2], &w), t(&[2], &[0.03f32, 0.01]), t(&[2], &[2u8, 100])];
    let out = run_in("com.microsoft", "DynamicQuantizeMatMul", 1, &[], &inputs, 1).unwrap();
    close(&out[0], &[0.6082353, 0.5620784, 5.422353, 1.454_696, 0.5525882, -0.7367843]);
}

#[test]
fn qgemm_scales_transposes_and_adds() {
    // B as an input, and as a constant that is packed.
    check_qgemm(&[]);
    check_qgemm(&[3]);
}

fn check_qgemm(constants: &[usize]) {
    let scale = |s: f32| t(&[], &[s]);
    let (a, b) = (bytes(6), signed(12));
    let c = [10i32, -20, 300, 4];
    let alpha = ("alpha", Attribute::Float(1.5));
    let inputs = |shape: &[usize], c: &[i32]| {
        [
            t(&[2, 3], &a),
            scale(0.02),
            t(&[], &[100u8]),
            t(&[3, 4], &b),
            scale(0.03),
            t(&[], &[3i8]),
            t(shape, c),
            scale(0.5),
            t(&[], &[110u8]),
        ]
    };
    let gemm = |attributes: &[(&str, Attribute)], inputs: &[Option<crate::tensor::Value>]| {
        run_constant("com.microsoft", "QGemm", 1, attributes, inputs, constants, 1)
            .map(|mut out| out.remove(0))
    };
    let y = gemm(std::slice::from_ref(&alpha), &inputs(&[4], &c)).unwrap();
    assert_eq!(elements::<u8>(&y).1, [136, 123, 111, 126, 96, 105, 115, 103]);
    let hundreds: Vec<i32> = (0..8).map(|i| i * 100).collect();
    let y = gemm(&[], &inputs(&[2, 4], &hundreds)).unwrap();
    assert_eq!(elements::<u8>(&y).1, [127, 119, 111, 121, 101, 107, 114, 106]);
    let transposed = |x: usize, rows: usize, columns: usize| x % rows * columns + x / rows;
    let a_t: Vec<u8> = (0..6).map(|i| a[transposed(i, 2, 3)]).collect();
    let b_t: Vec<i8> = (0..12).map(|i| b[transposed(i, 3, 4)]).collect();
    let float = [
        t(&[3, 2], &a_t),
        scale(0.02),
        t(&[], &[100u8]),
        t(&[4, 3], &b_t),
        t(&[4], &[0.01f32, 0.02, 0.03, 0.04]),
        t(&[4], &[1i8, -2, 3, 0]),
        t(&[1, 4], &c),
    ];
    let y = gemm(&[alpha, ("transA", Attribute::Int(1)), ("transB", Attribute::Int(1))], &float).unwrap();
    let want = [4.1691, 3.7842, 0.5211, 10.2432, -2.2911, -1.1442, 2.7189, -4.2756];
    let got = elements::<f32>(&y).1;
    assert!(got.iter().zip(want).all(|(y, want)| (y - want).abs() < 2e-5), "{got:?}");
    let error = gemm(&[], &inputs(&[4], &c)[..8]).unwrap_err().to_string();
    assert!(error.contains("input 8 (y_zero_point)"), "{error}");
}

#[test]
fn qlinear_conv_with_channels_last() {
    let scale = |s: f32| t(&[], &[s]);
    let attributes = [
        ("group", Attribute::Int(2)),
        ("pads", Attribute::Ints(vec![1, 1, 1, 1])),
        ("strides", Attribute::Ints(vec![2, 1])),
        ("channels_last", Attribute::Int(1)),
    ];
    let inputs = [
        t(&[2, 7, 6, 4], &bytes(2 * 4 * 7 * 6)),
        scale(0.02),
        t(&[], &[100u8]),
        t(&[6, 2, 3, 3], &signed(6 * 2 * 9)),
        t(&[6], &[0.01f32, 0.02, 0.03, 0.04, 0.05, 0.06]),
        t(&[6], &[0i8; 6]),
        scale(0.5),
        t(&[], &[7u8]),
        t(&[6], &[1000i32, -1000, 0, 500, 20, -77]),
    ];
    let out = run_in("com.microsoft", "QLinearConv", 1, &attributes, &inputs, 1).unwrap();
    let (shape, y) = elements::<u8>(&out[0]);
    assert_eq!((shape, checksum(&y)), (vec![2, 4, 6, 6], -1675.0));
}

/// Checksums of numpy's and torch's results.
const MATMUL: f64 = 27112.0;
const CONV: f64 = -597945.0;
const QCONV: f64 = -586.0;
