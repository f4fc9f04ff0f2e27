//! Positions that are copied to strips of several tiles: with a constant weight, beside the product of patches without one.

use crate::graph::Attribute;
use crate::testing::{elements, ramp, run_constant, t, whole};

/// Strips of up to three tiles of 48 positions, of up to eight, and lines with gaps in between.
#[test]
fn several_tiles_a_strip() {
    for (x, w, dilation) in [
        // What is left over: a tile and 13 positions; one position, and two.
        ([1, 151, 31, 19], [113, 151, 1, 1], 1),
        ([2, 151, 1, 577], [113, 151, 1, 1], 1),
        ([1, 151, 1, 578], [113, 151, 1, 1], 1),
        ([1, 64, 1, 1201], [160, 64, 1, 1], 1),
        ([1, 20, 30, 41], [130, 20, 1, 1], 1),
        // With AVX2 strips pay from so many rows and channels on. Behind the last tile four positions, whose vector lies outside of the
        // planes; one vector, and two.
        ([1, 231, 14, 14], [121, 231, 1, 1], 1),
        ([2, 211, 1, 80], [120, 211, 1, 1], 1),
        ([2, 210, 1, 64], [120, 210, 1, 1], 1),
        // Groups.
        ([1, 96, 1, 1201], [200, 48, 1, 1], 1),
        ([1, 5, 66, 66], [34, 5, 3, 3], 12),
        ([1, 10, 66, 66], [68, 5, 3, 3], 12),
    ] {
        let ints = |x: i64, count| Attribute::Ints(vec![x; count]);
        let pads = if w[2] == 3 { dilation } else { 0 };
        let group = Attribute::Int((x[1] / w[1]) as i64);
        let attributes = [("pads", ints(pads, 4)), ("dilations", ints(dilation, 2)), ("group", group)];
        let tensor = |shape: &[usize]| t(shape, &ramp::<f32>(shape.iter().product()));
        let inputs = [tensor(&x), tensor(&w), tensor(&w[..1])];
        let run = |constants: &[usize]| {
            let out = run_constant("", "Conv", 22, &attributes, &inputs, constants, 1);
            let (shape, y) = elements::<f32>(&out.unwrap()[0]);
            (shape, whole(&y))
        };
        assert!(run(&[1]) == run(&[]), "{x:?} {w:?} {dilation}");
    }
}
