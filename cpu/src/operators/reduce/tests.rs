use std::f32::consts::LN_2;

use crate::graph::Attribute;
use crate::tensor::Bool;

use crate::testing::{elements, run, t};

#[test]
fn any_axes_as_attribute_and_as_input() {
    let x: Vec<f32> = (0..24).map(|i| i as f32).collect();
    // numpy.arange(24).reshape(2, 3, 4).sum(axes)
    let cases: &[(&[i64], &[usize], &[f32])] = &[
        (&[0, 1, 2], &[1, 1, 1], &[276.0]),
        (&[2], &[2, 3, 1], &[6.0, 22.0, 38.0, 54.0, 70.0, 86.0]),
        (&[-2], &[2, 1, 4], &[12.0, 15.0, 18.0, 21.0, 48.0, 51.0, 54.0, 57.0]),
        (&[0, 2], &[1, 3, 1], &[60.0, 92.0, 124.0]),
        (&[1, 0], &[1, 1, 4], &[60.0, 66.0, 72.0, 78.0]),
    ];
    for (axes, shape, want) in cases {
        let attribute = [("axes", Attribute::Ints(axes.to_vec()))];
        let out = run("ReduceSum", 11, &attribute, &[t(&[2, 3, 4], &x)], 1).unwrap();
        assert_eq!(elements::<f32>(&out[0]), (shape.to_vec(), want.to_vec()));
        let keep = [("keepdims", Attribute::Int(0))];
        let inputs = [t(&[2, 3, 4], &x), t(&[axes.len()], axes)];
        let out = run("ReduceSum", 13, &keep, &inputs, 1).unwrap();
        let squeezed: Vec<usize> = shape.iter().copied().filter(|&d| d != 1).collect();
        assert_eq!(elements::<f32>(&out[0]), (squeezed, want.to_vec()));
    }
}

#[test]
fn extremes_over_any_axes() {
    let x: Vec<f32> = (0..24).map(|i| i as f32).collect();
    // numpy.arange(24).reshape(2, 3, 4).max(axes) and .min(axes)
    let cases: &[(&[i64], &[f32], &[f32])] = &[
        (&[0, 1, 2], &[23.0], &[0.0]),
        (&[2], &[3.0, 7.0, 11.0, 15.0, 19.0, 23.0], &[0.0, 4.0, 8.0, 12.0, 16.0, 20.0]),
        (
            &[1],
            &[8.0, 9.0, 10.0, 11.0, 20.0, 21.0, 22.0, 23.0],
            &[0.0, 1.0, 2.0, 3.0, 12.0, 13.0, 14.0, 15.0],
        ),
        (&[0, 2], &[15.0, 19.0, 23.0], &[0.0, 4.0, 8.0]),
        (&[0, 1], &[20.0, 21.0, 22.0, 23.0], &[0.0, 1.0, 2.0, 3.0]),
    ];
    for (axes, most, least) in cases {
        let keep = [("keepdims", Attribute::Int(0))];
        let inputs = [t(&[2, 3, 4], &x), t(&[axes.len()], axes)];
        for (name, want) in [("ReduceMax", most), ("ReduceMin", least)] {
            let out = run(name, 18, &keep, &inputs, 1).unwrap();
            assert_eq!(elements::<f32>(&out[0]).1, *want, "{name} {axes:?}");
        }
    }
    let out = run("ReduceMax", 18, &[], &[t::<f32>(&[0, 3], &[]), t(&[1], &[1i64])], 1).unwrap();
    assert_eq!(elements::<f32>(&out[0]), (vec![0, 1], vec![]));
}

#[test]
fn every_reduction_over_rows_and_columns() {
    // numpy over [[1, -2, 3], [0.5, 4, -1]], along the rows and along the columns.
    let x = [1.0f32, -2.0, 3.0, 0.5, 4.0, -1.0];
    let cases: &[(&str, [f32; 2], [f32; 3])] = &[
        ("ReduceL1", [6.0, 5.5], [1.5, 6.0, 4.0]),
        ("ReduceL2", [3.741_657_4, 4.153_312], [1.118_034, 4.472_136, 3.162_277_7]),
        ("ReduceLogSum", [LN_2, 1.252_763], [0.405_465_1, LN_2, LN_2]),
        ("ReduceLogSumExp", [3.132845, 4.03627], [1.474077, 4.002476, 3.01815]),
        ("ReduceMax", [3.0, 4.0], [1.0, 4.0, 3.0]),
        ("ReduceMean", [0.666_666_7, 1.166_666_6], [0.75, 1.0, 1.0]),
        ("ReduceMin", [-2.0, -1.0], [0.5, -2.0, -1.0]),
        ("ReduceProd", [-6.0, -2.0], [0.5, -8.0, -3.0]),
        ("ReduceSum", [2.0, 3.5], [1.5, 2.0, 2.0]),
        ("ReduceSumSquare", [14.0, 17.25], [1.25, 20.0, 10.0]),
    ];
    for (name, rows, columns) in cases {
        for (axis, want) in [(1, rows.as_slice()), (0, columns.as_slice())] {
            let out = run(name, 18, &[], &[t(&[2, 3], &x), t(&[1], &[axis as i64])], 1).unwrap();
            for (got, want) in elements::<f32>(&out[0]).1.iter().zip(want) {
                assert!((got - want).abs() <= 2e-6 * want.abs().max(1.0), "{name} {axis}: {got} {want}");
            }
        }
    }
}

#[test]
fn nothing_integers_and_truth() {
    for (name, want) in [
        ("ReduceSum", 0.0),
        ("ReduceProd", 1.0),
        ("ReduceMax", f32::NEG_INFINITY),
        ("ReduceMin", f32::INFINITY),
        ("ReduceLogSumExp", f32::NEG_INFINITY),
    ] {
        let out = run(name, 20, &[], &[t::<f32>(&[2, 0], &[]), t(&[1], &[1i64])], 1).unwrap();
        assert_eq!(elements::<f32>(&out[0]), (vec![2, 1], vec![want; 2]), "{name}");
    }
    let out = run("ReduceMean", 18, &[], &[t(&[4], &[1i32, 2, 3, 5])], 1).unwrap();
    assert_eq!(elements::<i32>(&out[0]).1, [2]);
    let out =
        run("ReduceMax", 20, &[], &[t(&[2, 2], &[Bool(0), Bool(2), Bool(0), Bool(0)]), t(&[1], &[1i64])], 1);
    assert_eq!(elements::<Bool>(&out.unwrap()[0]).1, [Bool(1), Bool(0)]);
}

#[test]
fn extremes_of_long_rows() {
    // Beside the greatest and least of the numbers, in rows longer than what is compared at a time, and NaN anywhere.
    let x: Vec<f32> = (0..2 * 300).map(|i| (i * 7919 % 1009) as f32 - 500.0).collect();
    for length in [1, 63, 64, 65, 128, 300] {
        for wrong in [None, Some(0), Some(length / 2), Some(length - 1)] {
            let mut x = x[..2 * length].to_vec();
            wrong.into_iter().for_each(|at| x[length + at] = f32::NAN);
            let tensor = || [t(&[2, length], &x), t(&[1], &[1i64])];
            for (name, join) in [("ReduceMax", f32::max as fn(f32, f32) -> f32), ("ReduceMin", f32::min)] {
                let got = elements::<f32>(&run(name, 18, &[], &tensor(), 1).unwrap()[0]).1;
                let row = |i: usize| x[i * length..][..length].iter().copied().reduce(join);
                assert_eq!(Some(got[0]), row(0), "{name} of {length}");
                match wrong {
                    None => assert_eq!(Some(got[1]), row(1), "{name} of {length}"),
                    Some(at) => assert!(got[1].is_nan(), "{name} of {length}, NaN at {at}: {}", got[1]),
                }
            }
        }
    }
}

#[test]
fn extremes_of_columns() {
    // More rows than are compared at a time; NaN in one column, and infinite numbers of both signs or none.
    let (rows, columns) = (21, 19);
    let wrongs = [None, Some(0), Some(13), Some(rows - 1)];
    for (wrong, infinite) in wrongs.into_iter().flat_map(|wrong| [(wrong, false), (wrong, true)]) {
        let number = |i: usize| match i * 7919 % 1009 {
            n if infinite && n % 29 == 0 => f32::INFINITY * if n % 2 == 0 { 1.0 } else { -1.0 },
            n => n as f32 - 500.0,
        };
        let mut x: Vec<f32> = (0..rows * columns).map(number).collect();
        wrong.into_iter().for_each(|row| x[row * columns + 7] = f32::NAN);
        let by_columns: Vec<f32> = (0..x.len()).map(|i| x[i % rows * columns + i / rows]).collect();
        for (name, join) in [("ReduceMax", f32::max as fn(f32, f32) -> f32), ("ReduceMin", f32::min)] {
            for (shape, x, axis) in [([rows, columns], &x, 0i64), ([columns, rows], &by_columns, 1)] {
                let got = run(name, 18, &[], &[t(&shape, x), t(&[1], &[axis])], 1).unwrap();
                for (column, got) in elements::<f32>(&got[0]).1.into_iter().enumerate() {
                    let numbers = &by_columns[column * rows..][..rows];
                    let want = match numbers.iter().any(|x| x.is_nan()) {
                        true => f32::NAN,
                        false => numbers.iter().copied().fold(numbers[0], join),
                    };
                    assert!(
                        got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
                        "{name} {column}: {got} {want}"
                    );
                }
            }
        }
    }
}

#[test]
fn sums_that_overflow_on_the_way_do_not() {
    // Along rows and columns of 8 and more, whose parts are added in f32.
    let (count, half) = (256, 2f32.powi(127));
    let number = |i: usize| if i % 8 < 4 { half } else { -half } + if i == 0 { half / 4.0 } else { 0.0 };
    let x: Vec<f32> = (0..count).map(number).collect();
    let columns: Vec<f32> = x.iter().flat_map(|&x| [x, -x, x]).collect();
    for (shape, x, axis, want) in [
        ([1, count], &x, 1i64, vec![half / 4.0]),
        ([count, 3], &columns, 0, vec![half / 4.0, half / -4.0, half / 4.0]),
    ] {
        let out = run("ReduceSum", 13, &[], &[t(&shape, x), t(&[1], &[axis])], 1).unwrap();
        assert_eq!(elements::<f32>(&out[0]).1, want, "{shape:?}");
    }
    let wrong: Vec<f32> = (0..count).map(|i| if i == 17 { f32::NAN } else { 1.0 }).collect();
    for (shape, axis) in [([1, count], 1i64), ([count, 1], 0)] {
        let out = run("ReduceMean", 18, &[], &[t(&shape, &wrong), t(&[1], &[axis])], 1).unwrap();
        assert!(elements::<f32>(&out[0]).1[0].is_nan());
    }
}

/// As near as the sum in f64, but for the roundings of sums of eight.
#[test]
fn sums_of_many_numbers_are_near() {
    let count = 4099;
    let x: Vec<f32> = (0..count * 2).map(|i| (i * 7919 % 10_007) as f32 / 10_007.0).collect();
    for (shape, axis) in [([2, count], 1i64), ([count, 2], 0)] {
        let out = run("ReduceSum", 13, &[], &[t(&shape, &x), t(&[1], &[axis])], 1).unwrap();
        for (i, &got) in elements::<f32>(&out[0]).1.iter().enumerate() {
            let (first, step) = if axis == 1 { (i * count, 1) } else { (i, 2) };
            let want: f64 = x[first..].iter().step_by(step).take(count).map(|&x| f64::from(x)).sum();
            assert!((f64::from(got) - want).abs() <= 1e-7 * want, "{shape:?} {i}: {got}, not {want}");
        }
    }
}

#[test]
fn long_sums_stay_exact() {
    let x = vec![0.1f32; 3_000_000];
    let out = run("ReduceSum", 13, &[], &[t(&[x.len()], &x)], 1).unwrap();
    assert_eq!(elements::<f32>(&out[0]).1, [(0.1f32 as f64 * 3e6) as f32]);
}
