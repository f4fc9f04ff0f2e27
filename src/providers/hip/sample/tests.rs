//! Resampling on the device against that of the CPU.

use crate::graph::Attribute;
use crate::tensor::{Element, Tensor, Value, f16};

use super::super::testing::both;

fn t<T: Element>(shape: &[usize], elements: &[T]) -> Option<Value> {
    Some(Value::Tensor(Tensor::from_slice(shape, elements).expect("memory for a test")))
}

fn text(s: &str) -> Attribute {
    Attribute::String(s.into())
}

/// Numbers between −60 and 60.
fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i * 7919 % 1201) as f32 / 10.0 - 60.0).collect()
}

#[test]
fn resizes() {
    let shape = [1, 3, 9, 14];
    let x = numbers(shape.iter().product());
    let halves: Vec<f16> = x.iter().map(|&x| f16::from_f32(x)).collect();
    let doubles: Vec<f64> = x.iter().map(|&x| x as f64).collect();
    let bytes: Vec<i8> = x.iter().map(|&x| x as i8).collect();
    for mode in ["nearest", "linear", "cubic"] {
        for coordinates in ["half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"] {
            for (sizes, antialias) in
                [([1i64, 3, 20, 31], 0), ([1, 3, 4, 5], 1), ([1, 3, 4, 30], 0), ([2, 5, 7, 6], 0)]
            {
                let attributes = [
                    ("mode", text(mode)),
                    ("coordinate_transformation_mode", text(coordinates)),
                    ("antialias", Attribute::Int(if mode == "nearest" { 0 } else { antialias })),
                    ("extrapolation_value", Attribute::Float(7.0)),
                ];
                let roi = t(&[8], &[0.0f32, 0.0, 0.1, 0.2, 1.0, 1.0, 1.1, 0.8]);
                for (x, close) in [
                    (t(&shape, &x), 1e-5),
                    (t(&shape, &doubles), 1e-12),
                    (t(&shape, &halves), 2e-3),
                    // Where a sum is half an integer, its rounding may fall either way.
                    (t(&shape, &bytes), 1.0),
                ] {
                    let inputs = [x, roi.clone(), None, t(&[4], &sizes)];
                    let Some(result) = both("Resize", 19, &attributes, &inputs, 1) else { return };
                    result.assert_close(&format!("Resize {mode} {coordinates} {sizes:?}"), close);
                }
            }
        }
    }
}

#[test]
fn grids() {
    for (shape, points) in [(&[2, 3, 7, 9][..], &[2, 4, 5, 2][..]), (&[1, 11, 4, 5, 6], &[1, 2, 3, 4, 3])] {
        let x = numbers(shape.iter().product());
        let grid: Vec<f32> = numbers(points.iter().product()).iter().map(|x| x / 40.0).collect();
        for mode in ["nearest", "linear", "cubic"] {
            for padding in ["zeros", "border", "reflection"] {
                for align in [0, 1] {
                    let attributes = [
                        ("mode", text(mode)),
                        ("padding_mode", text(padding)),
                        ("align_corners", Attribute::Int(align)),
                    ];
                    let inputs = [t(shape, &x), t(points, &grid)];
                    let Some(result) = both("GridSample", 20, &attributes, &inputs, 1) else { return };
                    result.assert_close(&format!("GridSample {shape:?} {mode} {padding} {align}"), 2e-5);
                }
            }
        }
    }
}

#[test]
fn affine_grids() {
    for (maps, size) in [(&[2, 2, 3][..], &[2i64, 3, 5, 7][..]), (&[2, 3, 4], &[2, 1, 4, 1, 6])] {
        let x: Vec<f32> = numbers(maps.iter().product()).iter().map(|x| x / 30.0).collect();
        let halves: Vec<f16> = x.iter().map(|&x| f16::from_f32(x)).collect();
        for align in [0, 1] {
            let attributes = [("align_corners", Attribute::Int(align))];
            for (theta, close) in [(t(maps, &x), 1e-6), (t(maps, &halves), 1e-3)] {
                let inputs = [theta, t(&[size.len()], size)];
                let Some(result) = both("AffineGrid", 20, &attributes, &inputs, 1) else { return };
                result.assert_close(&format!("AffineGrid {size:?} {align}"), close);
            }
        }
    }
}

#[test]
fn columns() {
    let x = numbers(2 * 3 * 6 * 12);
    let attributes = [
        ("pads", Attribute::Ints(vec![1, 0, 0, 1])),
        ("strides", Attribute::Ints(vec![2, 1])),
        ("dilations", Attribute::Ints(vec![1, 2])),
    ];
    // Blocks of 2 x 3 in an image of 5 x 7, padded to 6 x 8: 3 x 4 of them.
    let inputs = [t(&[2, 18, 12], &x), t(&[2], &[5i64, 7]), t(&[2], &[2i64, 3])];
    let Some(result) = both("Col2Im", 18, &attributes, &inputs, 1) else { return };
    result.assert_close("Col2Im", 1e-6);
}
