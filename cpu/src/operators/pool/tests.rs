use crate::graph::Attribute;
use crate::tensor::{bf16, f16};
use crate::testing::{block_channels, checksum, elements, ramp, run, t};

fn ints(list: &[i64]) -> Attribute {
    Attribute::Ints(list.to_vec())
}

struct Case {
    x: &'static [usize],
    kernel: &'static [i64],
    strides: &'static [i64],
    pads: &'static [i64],
    dilations: &'static [i64],
    ceil: i64,
    y: &'static [usize],
    /// Checksums of torch's results for a ramp: maxima, their indices, mean without and with padding.
    max: f64,
    indices: f64,
    mean: Option<[f64; 2]>,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { x: &[2, 3, 11], kernel: &[3], strides: &[2], pads: &[1, 1], dilations: &[1], ceil: 0, y: &[2, 3, 6], max: 3.0, indices: -138.0, mean: Some([25.833333333333336, 11.0]) },
    Case { x: &[2, 3, 9, 10], kernel: &[3, 2], strides: &[2, 2], pads: &[1, 1, 1, 1], dilations: &[1, 1], ceil: 1, y: &[2, 3, 5, 6], max: -1.0, indices: -1926.0, mean: Some([10.666666666666668, 2.166666666666667]) },
    Case { x: &[1, 2, 9, 9], kernel: &[3, 3], strides: &[1, 1], pads: &[1, 1, 1, 1], dilations: &[2, 2], ceil: 0, y: &[1, 2, 7, 7], max: -26.0, indices: 134.0, mean: None },
    Case { x: &[1, 2, 5, 6, 7], kernel: &[2, 2, 3], strides: &[1, 2, 2], pads: &[1, 0, 1, 1, 0, 1], dilations: &[1, 1, 1], ceil: 1, y: &[1, 2, 6, 3, 4], max: -3.0, indices: 2138.0, mean: Some([-2.0, 5.833333333333338]) },
];

#[test]
fn windows_as_torch_has_them() {
    for c in CASES {
        let attributes = |more: &[(&'static str, Attribute)]| {
            let mut all = vec![
                ("kernel_shape", ints(c.kernel)),
                ("strides", ints(c.strides)),
                ("pads", ints(c.pads)),
                ("dilations", ints(c.dilations)),
                ("ceil_mode", Attribute::Int(c.ceil)),
            ];
            all.extend_from_slice(more);
            all
        };
        let count = c.x.iter().product();
        let out = run("MaxPool", 22, &attributes(&[]), &[t(c.x, &ramp::<f64>(count))], 2).unwrap();
        let (shape, y) = elements::<f64>(&out[0]);
        assert_eq!((shape.as_slice(), checksum(&y)), (c.y, c.max), "{:?}", c.x);
        assert_eq!(checksum(&elements::<i64>(&out[1]).1), c.indices, "{:?}", c.x);
        let out = run("MaxPool", 22, &attributes(&[]), &[t(c.x, &ramp::<f16>(count))], 1).unwrap();
        assert_eq!(checksum(&elements::<f16>(&out[0]).1), c.max, "{:?}", c.x);
        let out = run("MaxPool", 22, &attributes(&[]), &[t(c.x, &ramp::<f32>(count))], 1).unwrap();
        assert_eq!(checksum(&elements::<f32>(&out[0]).1), c.max, "{:?}", c.x);
        for (include, want) in c.mean.iter().flatten().enumerate() {
            let attributes = attributes(&[("count_include_pad", Attribute::Int(include as i64))]);
            let out = run("AveragePool", 22, &attributes, &[t(c.x, &ramp::<f64>(count))], 1).unwrap();
            let got = checksum(&elements::<f64>(&out[0]).1);
            assert!((got - want).abs() < 1e-9, "{:?}: {got}, not {want}", c.x);
        }
    }
}

#[test]
fn norms_and_planes() {
    let x = [t(&[1, 2, 9, 10], &ramp::<f32>(180))];
    let kernel = [("kernel_shape", ints(&[3, 2])), ("strides", ints(&[2, 2]))];
    for (p, want) in [(3, -54.845860525378725), (2, -64.16416904473766)] {
        let attributes = [kernel.to_vec(), vec![("p", Attribute::Int(p))]].concat();
        let got = checksum(&elements::<f32>(&run("LpPool", 22, &attributes, &x, 1).unwrap()[0]).1);
        assert!((got - want).abs() < 1e-4, "p = {p}: {got}");
    }
    for (name, attributes, want) in [
        ("GlobalLpPool", &[("p", Attribute::Int(3))][..], -87.45084239349484),
        ("GlobalAveragePool", &[], 0.25555555555555554),
        ("GlobalMaxPool", &[], -27.0),
    ] {
        let out = run(name, 22, attributes, &x, 1).unwrap();
        let (shape, y) = elements::<f32>(&out[0]);
        assert_eq!(shape, [1, 2, 1, 1]);
        assert!((checksum(&y) - want).abs() < 1e-4, "{name}: {}", checksum(&y));
    }
}

#[test]
fn column_major_indices_and_bytes() {
    let attributes = [("kernel_shape", ints(&[2, 3])), ("storage_order", Attribute::Int(1))];
    let out = run("MaxPool", 12, &attributes, &[t(&[1, 1, 2, 3], &[1u8, 5, 2, 3, 4, 0])], 2).unwrap();
    assert_eq!(elements::<u8>(&out[0]).1, [5]);
    assert_eq!(elements::<i64>(&out[1]).1, [2]);
}

#[test]
fn nan_is_a_maximum() {
    let x = [1.0, f32::NAN, 2.0].map(bf16::from_f32);
    let out = run("GlobalMaxPool", 22, &[], &[t(&[1, 1, 3], &x)], 1).unwrap();
    assert!(elements::<bf16>(&out[0]).1[0].is_nan());
}

#[test]
fn a_window_larger_than_its_input_is_refused() {
    let error = run("MaxPool", 12, &[("kernel_shape", ints(&[9]))], &[t(&[1, 1, 3], &[0.0f32; 3])], 1);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("kernel_shape") && error.contains("covers 9"), "{error}");
}

/// Channels that lie beside each other in a word, as the last axis.
#[test]
fn maxima_of_channel_blocked_bfloat16() {
    let number = |i: usize| match i * 37 % 251 {
        3 => bf16::NEG_INFINITY,
        x => bf16::from_f32(x as f32 / 16.0 - 8.0),
    };
    for (height, width, kernel, strides, pads, dilations) in [
        (9, 10, [3, 3], [2, 2], [1, 1, 1, 1], [1, 1]),
        (9, 10, [2, 3], [1, 1], [0, 1, 1, 2], [1, 1]),
        (7, 67, [3, 3], [2, 2], [1, 1, 1, 1], [1, 1]),
        (6, 40, [5, 5], [1, 1], [2, 2, 2, 2], [1, 1]),
        (9, 35, [4, 2], [3, 3], [1, 0, 2, 1], [1, 1]),
        (9, 21, [3, 3], [2, 1], [1, 2, 1, 2], [2, 2]),
        (1, 1, [3, 3], [1, 2], [1, 1, 1, 1], [1, 1]),
        (5, 33, [1, 1], [2, 2], [0, 0, 0, 0], [1, 1]),
        // Too long for lines with what is around them.
        (3, 4200, [2, 3], [1, 2], [0, 1, 1, 1], [1, 1]),
    ] {
        let shape = [2, 6, height, width];
        let data: Vec<bf16> = (0..2 * 6 * height * width).map(number).collect();
        let (channel_blocked, blocked) = block_channels((shape.to_vec(), data.clone()), 2);
        let list = |kernel: &[i64], strides: &[i64], pads: &[i64], dilations: &[i64]| {
            let lists = [kernel, strides, pads, dilations].map(ints);
            ["kernel_shape", "strides", "pads", "dilations"].into_iter().zip(lists).collect::<Vec<_>>()
        };
        let attributes = list(&kernel, &strides, &pads, &dilations);
        let want = elements::<bf16>(&run("MaxPool", 22, &attributes, &[t(&shape, &data)], 1).unwrap()[0]);
        let with_one = |list: [i64; 2]| [list[0], list[1], 1];
        let attributes = list(
            &with_one(kernel),
            &with_one(strides),
            &[pads[0], pads[1], 0, pads[2], pads[3], 0],
            &with_one(dilations),
        );
        let got = run("MaxPool", 22, &attributes, &[t(&channel_blocked, &blocked)], 1).unwrap();
        assert_eq!(elements::<bf16>(&got[0]), block_channels(want, 2), "{height} {width} {kernel:?}");
    }
}

/// Against the same windows of `f64`: sizes that are compiled in and others, strides, planes smaller than a vector, and
/// what is no number.
#[test]
fn floats_as_wider_ones() {
    let number = |i: usize| match i * 7919 % 1009 {
        5 => f32::NAN,
        6 | 7 => f32::INFINITY,
        8 => f32::NEG_INFINITY,
        x => x as f32 / 8.0 - 60.0,
    };
    for (shape, kernel, strides, pads, dilations, ceil) in [
        (vec![1, 5, 14, 14], vec![3, 3], vec![1, 1], vec![1, 1, 1, 1], vec![1, 1], 0),
        (vec![2, 3, 1, 1], vec![3, 3], vec![1, 1], vec![1, 1, 1, 1], vec![1, 1], 0),
        (vec![2, 2, 5, 1], vec![2, 2], vec![1, 2], vec![0, 1, 1, 1], vec![1, 1], 0),
        (vec![1, 2, 40, 67], vec![3, 3], vec![2, 2], vec![0, 1, 1, 0], vec![1, 1], 1),
        (vec![1, 2, 9, 33], vec![2, 2], vec![2, 2], vec![0, 0, 0, 0], vec![1, 1], 0),
        (vec![1, 3, 13, 20], vec![5, 4], vec![3, 3], vec![2, 1, 2, 2], vec![1, 1], 0),
        (vec![1, 2, 17, 16], vec![3, 3], vec![1, 1], vec![2, 2, 2, 2], vec![2, 2], 0),
        (vec![1, 3, 13, 13], vec![3, 3], vec![2, 2], vec![0, 0, 0, 0], vec![1, 1], 1),
        (vec![1, 3, 9, 10], vec![5, 2], vec![1, 1], vec![2, 0, 2, 1], vec![1, 1], 0),
        (vec![1, 2, 9, 64], vec![2, 3], vec![3, 3], vec![1, 2, 0, 1], vec![1, 1], 1),
        (vec![1, 2, 9, 65], vec![8, 3], vec![1, 1], vec![4, 1, 3, 1], vec![1, 1], 0),
        (vec![1, 2, 9, 12], vec![1, 1], vec![2, 3], vec![0, 0, 0, 0], vec![1, 1], 0),
        (vec![1, 2, 30, 40], vec![11, 9], vec![1, 2], vec![5, 4, 5, 4], vec![1, 1], 0),
        (vec![2, 3, 7, 230], vec![2, 3], vec![2, 2], vec![0, 1, 1, 1], vec![1, 1], 0),
        // Enough planes of long lines, of one band of lines and more.
        (vec![1, 16, 9, 230], vec![3, 3], vec![2, 2], vec![1, 1, 1, 1], vec![1, 1], 0),
        (vec![1, 17, 81, 241], vec![2, 2], vec![2, 2], vec![0, 0, 0, 0], vec![1, 1], 1),
        (vec![2, 8, 500], vec![3], vec![2], vec![1, 1], vec![1], 0),
        (vec![1, 2, 40, 300], vec![3, 3], vec![1, 1], vec![1, 1, 1, 1], vec![1, 1], 0),
        (vec![3, 2, 50], vec![3], vec![2], vec![1, 1], vec![1], 0),
        (vec![1, 2, 6, 5, 9], vec![2, 2, 2], vec![2, 2, 2], vec![0, 0, 0, 1, 0, 1], vec![1, 1, 1], 1),
        (vec![2, 3, 7, 7], vec![7, 7], vec![1, 1], vec![0, 0, 0, 0], vec![1, 1], 0),
        (vec![1, 2, 0, 4], vec![3, 3], vec![1, 1], vec![2, 2, 2, 2], vec![1, 1], 0),
        (vec![1, 2, 0, 4], vec![3, 3], vec![2, 2], vec![2, 2, 2, 2], vec![1, 1], 0),
        (vec![1, 2, 3, 4, 7], vec![3, 2, 3], vec![1, 1, 2], vec![1, 0, 1, 1, 1, 1], vec![2, 1, 1], 0),
    ] {
        let count = shape.iter().product();
        for (name, special) in [("MaxPool", false), ("MaxPool", true), ("AveragePool", false)] {
            let x: Vec<f32> =
                (0..count).map(number).map(|x| if special || x.is_finite() { x } else { 1.0 }).collect();
            let wide: Vec<f64> = x.iter().map(|&x| x.into()).collect();
            let attributes = [
                ("kernel_shape", ints(&kernel)),
                ("strides", ints(&strides)),
                ("pads", ints(&pads)),
                ("dilations", ints(&dilations)),
                ("ceil_mode", Attribute::Int(ceil)),
            ];
            let (got_shape, got) =
                elements::<f32>(&run(name, 22, &attributes, &[t(&shape, &x)], 1).unwrap()[0]);
            let (want_shape, want) =
                elements::<f64>(&run(name, 22, &attributes, &[t(&shape, &wide)], 1).unwrap()[0]);
            assert_eq!(got_shape, want_shape);
            for (i, (&got, &want)) in got.iter().zip(&want).enumerate() {
                let (got, near) = (f64::from(got), (f64::from(got) - want).abs() <= 1e-4);
                assert!(
                    near || got == want || (got.is_nan() && want.is_nan()),
                    "{name} {shape:?} {kernel:?}, {i}: {got}, not {want}"
                );
            }
        }
    }
}

/// Against the same windows of `f64`: lines shorter and longer than a vector of bytes, bands of lines, other strides.
#[test]
fn bytes_as_wider_ones() {
    for (shape, kernel, strides, pads, dilations, ceil) in [
        (vec![1, 5, 14, 14], vec![3, 3], vec![1, 1], vec![1, 1, 1, 1], vec![1, 1], 0),
        (vec![2, 3, 1, 1], vec![3, 3], vec![2, 2], vec![1, 1, 1, 1], vec![1, 1], 0),
        (vec![1, 3, 112, 112], vec![3, 3], vec![2, 2], vec![1, 1, 1, 1], vec![1, 1], 0),
        (vec![2, 2, 13, 67], vec![3, 3], vec![2, 2], vec![0, 1, 1, 0], vec![1, 1], 1),
        (vec![1, 2, 9, 64], vec![2, 2], vec![2, 2], vec![0, 0, 0, 0], vec![1, 1], 0),
        (vec![1, 2, 17, 96], vec![5, 7], vec![1, 1], vec![2, 3, 2, 3], vec![1, 1], 0),
        (vec![1, 2, 17, 31], vec![4, 3], vec![2, 2], vec![2, 2, 2, 2], vec![2, 2], 0),
        (vec![1, 2, 9, 130], vec![2, 3], vec![3, 3], vec![1, 2, 0, 1], vec![1, 1], 1),
        (vec![1, 16, 33, 230], vec![3, 3], vec![2, 1], vec![1, 1, 1, 1], vec![1, 1], 0),
        (vec![2, 8, 500], vec![3], vec![2], vec![1, 1], vec![1], 0),
        (vec![1, 2, 6, 5, 39], vec![2, 2, 2], vec![2, 2, 2], vec![0, 0, 0, 1, 0, 1], vec![1, 1, 1], 1),
        (vec![1, 2, 0, 4], vec![3, 3], vec![2, 2], vec![2, 2, 2, 2], vec![1, 1], 0),
    ] {
        let count: usize = shape.iter().product();
        let bytes: Vec<u8> = (0..count).map(|i| (i * 7919 % 1009) as u8).collect();
        let signed: Vec<i8> = bytes.iter().map(|&x| x as i8).collect();
        let attributes = [
            ("kernel_shape", ints(&kernel)),
            ("strides", ints(&strides)),
            ("pads", ints(&pads)),
            ("dilations", ints(&dilations)),
            ("ceil_mode", Attribute::Int(ceil)),
        ];
        let wide =
            |x: Vec<f64>| elements::<f64>(&run("MaxPool", 22, &attributes, &[t(&shape, &x)], 1).unwrap()[0]);
        let (want_shape, want) = wide(bytes.iter().map(|&x| x.into()).collect());
        let (got_shape, got) =
            elements::<u8>(&run("MaxPool", 22, &attributes, &[t(&shape, &bytes)], 1).unwrap()[0]);
        assert_eq!(got_shape, want_shape);
        assert!(got.iter().zip(&want).all(|(&x, &y)| f64::from(x) == y.max(0.0)), "{shape:?} {kernel:?}");
        let (_, want) = wide(signed.iter().map(|&x| x.into()).collect());
        let (_, got) = elements::<i8>(&run("MaxPool", 22, &attributes, &[t(&shape, &signed)], 1).unwrap()[0]);
        assert!(got.iter().zip(&want).all(|(&x, &y)| f64::from(x) == y.max(-128.0)), "{shape:?} {kernel:?}");
    }
}
