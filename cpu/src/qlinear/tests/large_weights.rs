//! Weights whose products may not fit into 16 bits: convolutions, against those whose weight is not packed, and products.

use super::bytes;
use crate::graph::Attribute;
use crate::testing::{elements, run_constant, t};

/// What lies around an image that is empty: zero points, so that all sums are 0.
#[test]
fn empty_images_have_padding() {
    for (channels, image) in
        [3, 37].into_iter().flat_map(|channels| [[0, 4], [4, 0], [0, 0]].map(|x| (channels, x)))
    {
        let inputs = [
            t(&[1, channels, image[0], image[1]], &[0u8; 0]),
            t(
                &[5, channels, 3, 3],
                &(0..45 * channels).map(|i| (i * 37 % 101) as i8 - 40).collect::<Vec<_>>(),
            ),
            t(&[], &[100u8]),
            t(&[], &[0i8]),
        ];
        for stride in [1, 2] {
            let attributes =
                [("pads", Attribute::Ints(vec![2; 4])), ("strides", Attribute::Ints(vec![stride; 2]))];
            let out = run_constant("", "ConvInteger", 10, &attributes, &inputs, &[1, 3], 1).unwrap();
            let (_, sums) = elements::<i32>(&out[0]);
            assert!(!sums.is_empty() && sums.iter().all(|&sum| sum == 0), "{channels}, {image:?}: {sums:?}");
        }
    }
}

/// Weights some of which are large, which some processors multiply apart from the others.
#[test]
fn some_large_weights_change_nothing() {
    // As many of 97 are large.
    let weights = |count: usize, large: usize| -> Vec<i8> {
        let other = |i: usize| (i * 37 % 101) as i8 - 50;
        let weight = |i: usize| if i % 97 < large { [127, -128, 126][i / 2 % 3] } else { other(i) };
        (0..count).map(weight).collect()
    };
    let sizes = [(1, 70, 40), (7, 257, 33), (30, 64, 100), (70, 30, 40)];
    for ((m, k, n), large) in sizes.into_iter().flat_map(|size| [3, 12, 97].map(|large| (size, large))) {
        let (a, w) = (bytes(m * k), weights(k * n, large));
        let inputs = [t(&[m, k], &a), t(&[k, n], &w), t(&[], &[9u8]), t(&[], &[3i8])];
        let product =
            |i: usize, j: usize, p: usize| (i32::from(a[i * k + p]) - 9) * (i32::from(w[p * n + j]) - 3);
        let want: Vec<i32> = (0..m * n).map(|at| (0..k).map(|p| product(at / n, at % n, p)).sum()).collect();
        for constants in [&[][..], &[1, 3]] {
            let out = run_constant("", "MatMulInteger", 10, &[], &inputs, constants, 1).unwrap();
            assert_eq!(elements::<i32>(&out[0]).1, want, "{m} × {k} × {n}, {large} large, {constants:?}");
        }
    }
    // Volumes have no dot products of four bytes on any processor.
    let convolutions = [
        (12, 10, 1, 3, 1, &[9, 23][..]),
        (8, 6, 2, 3, 2, &[9, 23]),
        (5, 9, 1, 1, 1, &[9, 23]),
        (16, 33, 1, 1, 2, &[9, 23]),
        (33, 37, 1, 3, 1, &[9, 11]),
        (6, 9, 1, 3, 1, &[4, 5, 19]),
        (10, 6, 2, 3, 2, &[5, 4, 7]),
        (5, 7, 1, 1, 1, &[2, 3, 11]),
        (5, 40, 1, 1, 1, &[3, 3, 2]),
        (6, 90, 1, 3, 2, &[5, 4, 7]),
        (10, 130, 2, 3, 1, &[3, 1, 11]),
        (70, 23, 1, 1, 1, &[1, 1, 1]),
        (24, 30, 2, 1, 1, &[1, 1, 1]),
        (10, 30, 1, 3, 1, &[1, 1, 1]),
        // So many multiplications that two threads divide them: strips of one position and of few, positions, groups.
        (1100, 1030, 1, 1, 1, &[1, 1, 1]),
        (300, 1030, 1, 1, 1, &[2, 2, 2]),
        (130, 70, 1, 1, 1, &[4, 9, 9]),
        (390, 270, 3, 1, 1, &[4, 5, 5]),
        // Positions of every second or third line and column, with few channels and with many; longer lines.
        (33, 9, 1, 1, 2, &[3, 5, 41]),
        (33, 9, 1, 1, 2, &[9, 43]),
        (6, 9, 1, 1, 3, &[3, 7, 40]),
        (33, 9, 1, 3, 2, &[2, 5, 41]),
        (33, 9, 1, 3, 2, &[9, 42]),
        (12, 9, 1, 3, 3, &[1, 7, 90]),
        (3, 9, 1, 3, 2, &[19, 150]),
        (3, 9, 1, 5, 1, &[9, 33]),
        (5, 9, 1, 3, 3, &[20, 47]),
        (2, 10, 2, 3, 1, &[3, 70]),
    ];
    let zeros = |of: i8, count: usize| (0..count).map(|i| of * (i % 5) as i8).collect::<Vec<_>>();
    let shares = [(3, 0), (12, 0), (97, 0), (3, 30), (97, -25)];
    let all = convolutions.into_iter().flat_map(|each| shares.map(|share| (each, share)));
    for ((channels, outputs, group, kernel, stride, image), (large, zero)) in all {
        let axes = image.len();
        let shape = [&[outputs, channels / group][..], &vec![kernel; axes]].concat();
        let x = [&[2, channels][..], image].concat();
        let inputs = [
            t(&x, &bytes(x.iter().product())),
            t(&shape, &weights(shape.iter().product(), large)),
            t(&[], &[100u8]),
            t(&[outputs], &zeros(zero, outputs)),
        ];
        let pad = kernel as i64 / 2;
        let attributes = [
            ("group", Attribute::Int(group as i64)),
            ("pads", Attribute::Ints(vec![pad; 2 * axes])),
            ("strides", Attribute::Ints(vec![stride; axes])),
        ];
        let [want, got] = [&[][..], &[1, 3]].map(|constants| {
            let out = run_constant("", "ConvInteger", 10, &attributes, &inputs, constants, 1).unwrap();
            elements::<i32>(&out[0])
        });
        assert_eq!(
            got, want,
            "{channels} to {outputs} channels, kernel {kernel}, stride {stride}, {image:?}, {large} large, {zero}"
        );
    }
}
