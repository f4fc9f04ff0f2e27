//! Convolutions over three axes: those of a constant weight, which are convolutions of slices, against products of patches.

use crate::graph::Attribute;
use crate::testing::{elements, ramp, run_on, t};
use crate::threads::Pool;

#[test]
fn slices_make_what_patches_make() {
    // Image, weight, paddings, strides, dilations.
    let cases: &[[&[usize]; 5]] = &[
        [&[2, 3, 5, 6, 7], &[4, 3, 3, 3, 3], &[1; 6], &[1; 3], &[1; 3]],
        [&[1, 4, 6, 9, 8], &[9, 4, 3, 5, 5], &[1, 2, 2, 1, 2, 2], &[2; 3], &[1; 3]],
        [&[1, 3, 7, 12, 33], &[17, 3, 3, 3, 3], &[0, 1, 1, 2, 0, 1], &[1, 2, 2], &[1; 3]],
        [&[2, 2, 9, 6, 7], &[3, 2, 2, 3, 3], &[1, 0, 1, 0, 1, 1], &[2, 1, 1], &[3, 1, 2]],
        // Each position by itself, in the images as they lie.
        [&[2, 5, 4, 6, 7], &[7, 5, 1, 1, 1], &[0; 6], &[1; 3], &[1; 3]],
        [&[1, 5, 4, 6, 7], &[7, 5, 1, 1, 1], &[0; 6], &[2; 3], &[1; 3]],
        // Slices that are read as they lie, between such of zeros.
        [&[2, 5, 6, 4, 5], &[6, 5, 3, 1, 1], &[1, 0, 0, 1, 0, 0], &[1; 3], &[1; 3]],
        // Slices of the output that read nothing.
        [&[1, 3, 4, 5, 30], &[8, 3, 1, 3, 3], &[2, 1, 1, 3, 1, 1], &[1; 3], &[1; 3]],
        [&[1, 3, 1, 1, 1], &[2, 3, 3, 3, 3], &[1; 6], &[1; 3], &[1; 3]],
        // On two threads, which have enough to do in each slice.
        [&[1, 16, 3, 20, 20], &[32, 16, 3, 3, 3], &[1; 6], &[1; 3], &[1; 3]],
        // Many channels, whose strips are copied.
        [&[1, 40, 3, 15, 15], &[36, 40, 3, 3, 3], &[1; 6], &[1; 3], &[1; 3]],
    ];
    for &[x, w, pads, strides, dilations] in cases {
        let ints = |list: &[usize]| Attribute::Ints(list.iter().map(|&i| i as i64).collect());
        let lists = [("pads", ints(pads)), ("strides", ints(strides)), ("dilations", ints(dilations))];
        let input = |shape: &[usize]| t(shape, &ramp::<f32>(shape.iter().product()));
        let inputs = [input(x), input(w), input(&w[..1])];
        let run = |domain: &str, name: &str, inputs: &[_], constants: &[usize]| {
            let opset = if domain.is_empty() { 22 } else { 1 };
            let pool = Pool::new(if w[0] == 32 { 2 } else { 1 });
            let out = run_on(&pool, domain, name, opset, &lists, inputs, constants, 1).unwrap();
            elements::<f32>(&out[0])
        };
        let (shape, want) = run("", "Conv", &inputs, &[]);
        assert_eq!(run("", "Conv", &inputs, &[1, 2]), (shape.clone(), want.clone()), "{x:?} {w:?}");
        // What is added lies as outputs do.
        let [x_input, weight, bias] = inputs;
        let inputs = [x_input, weight, bias, input(&shape)];
        let added: Vec<f32> = ramp::<f32>(want.len()).iter().zip(&want).map(|(a, b)| a + b).collect();
        let got = run("com.microsoft", "FusedConv", &inputs, &[1, 2]);
        assert_eq!(got, (shape, added), "{x:?} {w:?} with a residual");
    }
}
