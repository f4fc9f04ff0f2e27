//! Operators of com.microsoft between quantized tensors, but for products.

use super::bytes;
use crate::graph::Attribute;
use crate::ops::OpError;
use crate::tensor::{Bool, Value};
use crate::testing::{checksum, elements, run_in, t};

type Attributes<'a> = &'a [(&'a str, Attribute)];

fn run(name: &str, attributes: Attributes<'_>, inputs: &[Option<Value>]) -> Result<Value, OpError> {
    run_in("com.microsoft", name, 1, attributes, inputs, 1).map(|mut out| out.remove(0))
}

fn scale(s: f32) -> Option<Value> {
    t(&[], &[s])
}

fn u8s(x: &[u8]) -> Option<Value> {
    t(&[], x)
}

fn i8s(x: &[i8]) -> Option<Value> {
    t(&[], x)
}

const A: [u8; 6] = [0, 50, 100, 150, 200, 255];
const B: [u8; 3] = [3, 128, 250];

fn signed(x: &[u8]) -> Vec<i8> {
    x.iter().map(|&x| x as i8).collect()
}

// The numbers are ONNX Runtime's.

#[test]
fn binary_operators_broadcast() {
    for (name, unsigned, negative) in [
        ("QLinearAdd", [39u8, 95, 151, 114, 170, 228], [-1i8, -9, 47, -54, -62, -4]),
        ("QLinearMul", [100, 0, 90, 85, 255, 255], [0, -128, -33, 11, 127, 0]),
    ] {
        let (a, b) = (t(&[2, 3], &A), t(&[3], &B));
        let inputs = [a, scale(0.1), u8s(&[100]), b, scale(0.05), u8s(&[7]), scale(0.2), u8s(&[90])];
        assert_eq!(elements::<u8>(&run(name, &[], &inputs).unwrap()), (vec![2, 3], unsigned.to_vec()));
        let (a, b) = (t(&[2, 3], &signed(&A)), t(&[3], &signed(&B)));
        let inputs = [a, scale(0.1), None, b, scale(0.05), i8s(&[7]), scale(0.2), None];
        assert_eq!(elements::<i8>(&run(name, &[], &inputs).unwrap()), (vec![2, 3], negative.to_vec()));
    }
}

#[test]
fn unary_operators_and_where() {
    let a = || t(&[2, 3], &A);
    let inputs = [a(), scale(0.05), u8s(&[100]), scale(1.0 / 256.0), None];
    let out = run("QLinearSigmoid", &[], &inputs).unwrap();
    assert_eq!(elements::<u8>(&out).1, [2, 19, 128, 237, 254, 255]);
    let inputs = [t(&[2, 3], &signed(&A)), scale(0.05), i8s(&[3]), scale(1.0 / 256.0), i8s(&[-128])];
    let out = run("QLinearSigmoid", &[], &inputs).unwrap();
    assert_eq!(elements::<i8>(&out).1, [-10, 106, 126, -127, -115, -13]);
    let inputs = [a(), scale(0.05), u8s(&[100]), scale(0.06), u8s(&[30])];
    let out = run("QLinearLeakyRelu", &[("alpha", Attribute::Float(0.3))], &inputs).unwrap();
    assert_eq!(elements::<u8>(&out).1, [5, 18, 30, 72, 113, 159]);
    let inputs = [
        t(&[2, 1], &[Bool(1), Bool(0)]),
        a(),
        scale(0.1),
        u8s(&[100]),
        t(&[3], &B),
        scale(0.05),
        u8s(&[7]),
        scale(0.2),
        u8s(&[90]),
    ];
    assert_eq!(elements::<u8>(&run("QLinearWhere", &[], &inputs).unwrap()).1, [40, 65, 90, 89, 120, 151]);
}

#[test]
fn softmax_and_concat() {
    let x = [10u8, 20, 40, 25, 33, 60, 0, 255, 1, 250, 2, 240];
    type Case<'a> = (i64, i64, &'a [u8]);
    let cases: &[Case<'_>] = &[
        (13, -1, &[69, 187, 209, 47, 16, 240, 0, 255, 0, 255, 0, 255]),
        (13, 1, &[8, 4, 166, 7, 82, 244, 77, 140, 85, 85, 94, 31]),
        (12, 1, &[1, 4, 28, 6, 14, 204, 0, 140, 0, 85, 0, 31]),
    ];
    for &(opset, axis, want) in cases {
        let attributes = [("opset", Attribute::Int(opset)), ("axis", Attribute::Int(axis))];
        let inputs = [t(&[2, 3, 2], &x), scale(0.1), u8s(&[3]), scale(1.0 / 256.0), u8s(&[0])];
        let out = run("QLinearSoftmax", &attributes, &inputs).unwrap();
        assert_eq!(elements::<u8>(&out), (vec![2, 3, 2], want.to_vec()), "opset {opset}, axis {axis}");
    }
    let inputs = [t(&[2, 3, 2], &signed(&x)), scale(0.05), i8s(&[3]), scale(1.0 / 256.0), i8s(&[-128])];
    let out = run("QLinearSoftmax", &[("opset", Attribute::Int(13))], &inputs).unwrap();
    assert_eq!(elements::<i8>(&out).1, [-31, 31, 46, -46, -75, 75, 3, -3, 22, -22, 54, -54]);

    let inputs = [
        scale(0.2),
        u8s(&[90]),
        t(&[2, 3], &A),
        scale(0.1),
        u8s(&[100]),
        t(&[2, 2], &[A[0], A[1], A[3], A[4]]),
        scale(0.05),
        u8s(&[7]),
    ];
    let out = run("QLinearConcat", &[("axis", Attribute::Int(1))], &inputs).unwrap();
    assert_eq!(elements::<u8>(&out), (vec![2, 5], vec![40, 65, 90, 88, 101, 115, 140, 168, 126, 138]));
}

#[test]
fn poolings() {
    let x = bytes(2 * 3 * 5 * 4);
    let unsigned = || t(&[2, 3, 5, 4], &x);
    let negative = || t(&[2, 3, 5, 4], &signed(&x));
    let ints = |v: &[i64]| Attribute::Ints(v.to_vec());
    let window = [("kernel_shape", ints(&[3, 2])), ("strides", ints(&[2, 1])), ("pads", ints(&[1, 0, 1, 1]))];
    let with = |name: &'static str, value: i64| [&window[..], &[(name, Attribute::Int(value))]].concat();
    for (padding, want) in [(0, -2246.0), (1, -1668.0)] {
        let inputs = [unsigned(), scale(0.1), u8s(&[100]), scale(0.07), u8s(&[120])];
        let out = run("QLinearAveragePool", &with("count_include_pad", padding), &inputs).unwrap();
        let (shape, y) = elements::<u8>(&out);
        assert_eq!((shape, checksum(&y)), (vec![2, 3, 3, 4], want));
    }
    let attributes = [with("channels_last", 1), vec![("ceil_mode", Attribute::Int(1))]].concat();
    let inputs = [negative(), scale(0.1), i8s(&[-10]), scale(0.07), i8s(&[20])];
    let (shape, y) = elements::<i8>(&run("QLinearAveragePool", &attributes, &inputs).unwrap());
    assert_eq!((shape, checksum(&y)), (vec![2, 2, 5, 4], -977.0));

    let (shape, y) = elements::<u8>(&run("NhwcMaxPool", &window, &[unsigned()]).unwrap());
    assert_eq!((shape, checksum(&y)), (vec![2, 2, 5, 4], -1221.0));
    let attributes =
        [("kernel_shape", ints(&[2, 2])), ("auto_pad", Attribute::String(b"SAME_UPPER".as_slice().into()))];
    let (shape, y) = elements::<i8>(&run("NhwcMaxPool", &attributes, &[negative()]).unwrap());
    assert_eq!((shape, checksum(&y)), (vec![2, 3, 5, 4], -262.0));
}

#[test]
fn means() {
    let x = bytes(2 * 3 * 5 * 4);
    let inputs = |y: f32| [t(&[2, 3, 5, 4], &x), scale(0.1), u8s(&[100]), scale(y), u8s(&[120])];
    for (last, shape, want) in [
        (0, vec![2, 3, 1, 1], &[185u8, 246, 244, 241, 239, 237][..]),
        (1, vec![2, 1, 1, 4], &[198, 216, 234, 251, 254, 255, 206, 224]),
    ] {
        let attributes = [("channels_last", Attribute::Int(last))];
        let out = run("QLinearGlobalAveragePool", &attributes, &inputs(0.02)).unwrap();
        assert_eq!(elements::<u8>(&out), (shape, want.to_vec()));
    }
    // ONNX Runtime has no kernel for this one: numpy.
    for (axes, shape, want) in [(vec![1, 3], vec![2, 5], MEAN_ROWS), (vec![0], vec![3, 5, 4], MEAN_FIRST)] {
        let attributes = [("axes", Attribute::Ints(axes)), ("keepdims", Attribute::Int(0))];
        let out = run("QLinearReduceMean", &attributes, &inputs(0.05)).unwrap();
        let (got, y) = elements::<u8>(&out);
        assert_eq!((got, checksum(&y)), (shape, want));
    }
}

#[test]
fn what_is_wrong_is_named() {
    let a = || t(&[2, 3], &A);
    let good = [a(), scale(0.05), u8s(&[100]), scale(0.06), u8s(&[30])];
    let with = |i: usize, value: Option<Value>| {
        let mut inputs = good.clone();
        inputs[i] = value;
        inputs
    };
    let softmax = |attributes: Attributes<'_>| run("QLinearSoftmax", attributes, &good);
    for (result, parts) in [
        (run("QLinearSigmoid", &[], &with(1, scale(f32::INFINITY))), ["input 1 (X_scale)", "inf"]),
        (run("QLinearSigmoid", &[], &with(3, t(&[2], &[1.0f32, 2.0]))), ["input 3 (Y_scale)", "one element"]),
        (run("QLinearSigmoid", &[], &with(2, i8s(&[1]))), ["input 2 (X_zero_point)", "int8"]),
        (run("QLinearSigmoid", &[("alpha", Attribute::Float(1.0))], &good), ["\"alpha\"", "no such"]),
        (softmax(&[]), ["\"opset\"", "required"]),
        (softmax(&[("opset", Attribute::Int(13)), ("axis", Attribute::Int(2))]), ["\"axis\"", "-2 to 1"]),
        (run("QLinearConcat", &[("axis", Attribute::Int(0))], &good[1..4]), ["3 inputs", "2 and 3 for each"]),
        (run("QLinearAveragePool", &[], &good), ["\"kernel_shape\"", "required"]),
        (run("QLinearGlobalAveragePool", &[], &good), ["input 0 (X)", "rank is 2"]),
        (run("QLinearReduceMean", &[], &good), ["\"axes\"", "required"]),
    ] {
        let error = result.unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}: {parts:?}");
    }
}

const MEAN_ROWS: f64 = -759.0;
const MEAN_FIRST: f64 = -1424.0;
