use super::super::testing::{checksum, elements, run, t};
use crate::graph::Attribute;

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i * 37 % 251) as u8).collect()
}

fn signed(count: usize) -> Vec<i8> {
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

/// Checksums of numpy's and torch's results.
const MATMUL: f64 = 27112.0;
const CONV: f64 = -597945.0;
const QCONV: f64 = -586.0;
