use std::f64::consts::{FRAC_PI_2, FRAC_PI_6, LN_2};

use crate::graph::Attribute;
use crate::tensor::{Bool, bf16, f16};

use crate::testing::{elements, run, t};

const X: [f64; 6] = [-2.5, -0.75, 0.0, 0.3, 1.7, 9.0];
/// Inside (−1, 1).
const U: [f64; 6] = [-0.9, -0.5, 0.0, 0.25, 0.6, 0.99];

/// Operator, attributes, inputs, and the results of torch in f64.
type Case = (&'static str, &'static [(&'static str, f32)], [f64; 6], [f64; 6]);

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("Abs", &[], X, [2.5, 0.75, 0.0, 0.3, 1.7, 9.0]),
    ("Acos", &[], U, [2.69056584, 2.0943951, FRAC_PI_2, 1.31811607, 0.927295218, 0.141539473]),
    ("Asin", &[], U, [-1.11976951, -FRAC_PI_6, 0.0, 0.252680255, 0.643501109, 1.42925685]),
    ("Asinh", &[], X, [-1.64723115, -LN_2, 0.0, 0.295673048, 1.30082043, 2.89344399]),
    ("Atan", &[], X, [-1.19028995, -0.643501109, 0.0, 0.291456794, 1.03907226, 1.46013911]),
    ("Atanh", &[], U, [-1.47221949, -0.549306144, 0.0, 0.255412812, LN_2, 2.64665241]),
    ("Ceil", &[], X, [-2.0, -0.0, 0.0, 1.0, 2.0, 9.0]),
    ("Celu", &[("alpha", 0.7)], X, [-0.680319038, -0.460236801, 0.0, 0.3, 1.7, 9.0]),
    ("Cos", &[], X, [-0.801143616, 0.731688869, 1.0, 0.955336489, -0.128844494, -0.911130262]),
    ("Cosh", &[], X, [6.13228948, 1.29468328, 1.0, 1.04533851, 2.82831546, 4051.54203]),
    ("Elu", &[("alpha", 0.7)], X, [-0.642540501, -0.369343413, 0.0, 0.3, 1.7, 9.0]),
    ("Erf", &[], X, [-0.999593048, -0.711155634, 0.0, 0.328626759, 0.983790459, 1.0]),
    ("Exp", &[], X, [0.0820849986, 0.472366553, 1.0, 1.34985881, 5.47394739, 8103.08393]),
    ("Floor", &[], X, [-3.0, -1.0, 0.0, 0.0, 1.0, 9.0]),
    ("Gelu", &[], X, [-0.0155241633, -0.169970514, 0.0, 0.185373427, 1.62423871, 9.0]),
    ("HardSigmoid", &[("alpha", 0.3), ("beta", 0.4)], X, [0.0, 0.175, 0.4, 0.49, 0.91, 1.0]),
    ("HardSwish", &[], X, [-0.208333333, -0.28125, 0.0, 0.165, 1.33166667, 9.0]),
    ("LeakyRelu", &[("alpha", 0.1)], X, [-0.25, -0.075, 0.0, 0.3, 1.7, 9.0]),
    ("Mish", &[], X, [-0.196816204, -0.276494715, 0.0, 0.208001372, 1.62076807, 8.99999973]),
    ("Neg", &[], X, [2.5, 0.75, -0.0, -0.3, -1.7, -9.0]),
    ("Relu", &[], X, [0.0, 0.0, 0.0, 0.3, 1.7, 9.0]),
    ("Round", &[], X, [-2.0, -1.0, 0.0, 0.0, 2.0, 9.0]),
    ("Selu", &[], X, [-1.61378576, -0.927632016, 0.0, 0.315210296, 1.78619168, 9.45630889]),
    ("Shrink", &[("lambd", 1.0), ("bias", 0.5)], X, [-2.0, 0.0, 0.0, 0.0, 1.2, 8.5]),
    ("Sigmoid", &[], X, [0.07585818, 0.320821301, 0.5, 0.574442517, 0.845534735, 0.999876605]),
    ("Sign", &[], X, [-1.0, -1.0, 0.0, 1.0, 1.0, 1.0]),
    ("Sin", &[], X, [-0.598472144, -0.68163876, 0.0, 0.295520207, 0.99166481, 0.412118485]),
    ("Sinh", &[], X, [-6.05020448, -0.822316732, 0.0, 0.304520293, 2.64563193, 4051.5419]),
    ("Softplus", &[], X, [0.0788897343, 0.386871006, LN_2, 0.854355244, 1.86778603, 9.0001234]),
    ("Softsign", &[], X, [-0.714285714, -0.428571429, 0.0, 0.230769231, 0.62962963, 0.9]),
    ("Swish", &[("alpha", 1.5)], X, [-0.0574434248, -0.18381376, 0.0, 0.18319177, 1.57687497, 8.99998766]),
    ("Tan", &[], X, [0.747022297, -0.93159646, 0.0, 0.30933625, -7.69660214, -0.452315659]),
    ("Tanh", &[], X, [-0.986614298, -0.635148952, 0.0, 0.291312612, 0.935409071, 0.99999997]),
    ("ThresholdedRelu", &[("alpha", 1.0)], X, [0.0, 0.0, 0.0, 0.0, 1.7, 9.0]),
];

#[test]
fn every_float_type_gives_torchs_numbers() {
    for (name, attributes, x, want) in CASES {
        let attributes: Vec<(&str, Attribute)> =
            attributes.iter().map(|(name, value)| (*name, Attribute::Float(*value))).collect();
        let check = |got: Vec<f64>, tolerance: f64| {
            for ((got, want), x) in got.iter().zip(want).zip(x) {
                let close = (got - want).abs() <= tolerance * (0.1 + want.abs());
                assert!(close, "{name}({x}) is {got}, want {want}");
            }
        };
        macro_rules! in_type {
            ($ty:ty, $of:expr, $to:expr, $tolerance:expr) => {
                let input = x.map($of);
                let out = run(name, 24, &attributes, &[t::<$ty>(&[2, 3], &input)], 1).unwrap();
                let (shape, got) = elements::<$ty>(&out[0]);
                assert_eq!(shape, [2, 3]);
                check(got.into_iter().map($to).collect(), $tolerance);
            };
        }
        // Attributes are f32, and torch was given their decimal values.
        in_type!(f64, |x| x, |x| x, 1e-7);
        in_type!(f32, |x| x as f32, f64::from, 3e-6);
        // Where a function is steep, rounding its argument alone moves the result.
        let steep =
            if matches!(*name, "Tan" | "Atanh" | "Acos" | "Exp" | "Cosh" | "Sinh") { 8.0 } else { 1.0 };
        // A step of floor, ceil and sign stays one: none of the arguments rounds across it.
        in_type!(f16, f16::from_f64, f16::to_f64, 2e-3 * steep);
        in_type!(bf16, bf16::from_f64, bf16::to_f64, 2e-2 * steep);
    }
}

#[test]
fn integers_and_truth_values() {
    let ints = [i32::MIN, -3, 0, 4];
    for (name, want) in [
        ("Abs", [i32::MIN, 3, 0, 4]),
        ("Neg", [i32::MIN, 3, 0, -4]),
        ("Relu", [0, 0, 0, 4]),
        ("Sign", [-1, -1, 0, 1]),
        ("BitwiseNot", [i32::MAX, 2, -1, -5]),
    ] {
        let out = run(name, 24, &[], &[t(&[4], &ints)], 1).unwrap();
        assert_eq!(elements::<i32>(&out[0]).1, want, "{name}");
    }
    let out = run("Sign", 13, &[], &[t(&[2], &[0u8, 200])], 1).unwrap();
    assert_eq!(elements::<u8>(&out[0]).1, [0, 1]);
    // Any non-zero byte is true.
    let out = run("Not", 1, &[], &[t(&[3], &[Bool(0), Bool(1), Bool(7)])], 1).unwrap();
    assert_eq!(elements::<Bool>(&out[0]).1, [Bool(1), Bool(0), Bool(0)]);
}

#[test]
fn special_values() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    for name in ["Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Gelu", "Clip", "HardSigmoid", "Elu", "Softplus"] {
        let out = run(name, 20, &[], &[t(&[1], &[nan])], 1).unwrap();
        assert!(elements::<f32>(&out[0]).1[0].is_nan(), "{name}(NaN)");
    }
    for (name, want) in
        [("Sigmoid", [0.0, 1.0]), ("Tanh", [-1.0, 1.0]), ("Exp", [0.0, inf]), ("Softplus", [0.0, inf])]
    {
        let out = run(name, 20, &[], &[t(&[2], &[-inf, inf])], 1).unwrap();
        assert_eq!(elements::<f32>(&out[0]).1, want, "{name}");
    }
    for (negative, positive, want) in [(1, 1, [1, 0, 1, 0]), (0, 1, [0, 0, 1, 0]), (1, 0, [1, 0, 0, 0])] {
        let attributes =
            [("detect_negative", Attribute::Int(negative)), ("detect_positive", Attribute::Int(positive))];
        let out = run("IsInf", 20, &attributes, &[t(&[4], &[-inf, 1.0, inf, nan])], 1).unwrap();
        assert_eq!(elements::<Bool>(&out[0]).1, want.map(Bool));
    }
    // A finite f64 beyond f32's range is not infinite.
    let out = run("IsInf", 20, &[], &[t(&[1], &[1e300f64])], 1).unwrap();
    assert_eq!(elements::<Bool>(&out[0]).1, [Bool(0)]);
}

#[test]
fn empty_and_scalar() {
    let out = run("Exp", 13, &[], &[t::<f32>(&[0, 3], &[])], 1).unwrap();
    assert_eq!(elements::<f32>(&out[0]), (vec![0, 3], vec![]));
    let out = run("Exp", 13, &[], &[t(&[], &[0.0f32])], 1).unwrap();
    assert_eq!(elements::<f32>(&out[0]), (vec![], vec![1.0]));
}

/// The results of the standard's reference implementation.
#[test]
fn erf_of_integers() {
    let out = run("Erf", 13, &[], &[t::<i16>(&[6], &[-9, -4, -3, 0, 3, 4])], 1).unwrap();
    assert_eq!(elements::<i16>(&out[0]).1, [-1, -1, 0, 0, 0, 1]);
    let out = run("Erf", 13, &[], &[t::<u8>(&[3], &[0, 3, 200])], 1).unwrap();
    assert_eq!(elements::<u8>(&out[0]).1, [0, 0, 1]);
}
