//! Channel-blocked images in bfloat16 change where numbers lie, not which they are.

use crate::graph::Attribute;
use crate::ops::OpError;
use crate::tensor::{ElementType, Value, bf16};
use crate::testing::{block_channels, elements, run_constant, t};

/// A shape and elements.
type Elements = (Vec<usize>, Vec<bf16>);

fn some(shape: &[usize], step: usize) -> Elements {
    let count = shape.iter().product::<usize>();
    let number = |i: usize| bf16::from_f32((i * step % 251) as f32 / 128.0 - 1.0);
    (shape.to_vec(), (0..count).map(number).collect())
}

struct Case {
    x: &'static [usize],
    w: &'static [usize],
    y: &'static [usize],
    group: i64,
    pads: &'static [i64],
    strides: &'static [i64],
    activation: Option<&'static str>,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { x: &[2, 6, 9, 11], w: &[12, 6, 3, 3], y: &[2, 12, 9, 11], group: 1, pads: &[1; 4], strides: &[1, 1], activation: Some("Relu") },
    Case { x: &[2, 16, 9, 11], w: &[20, 8, 3, 3], y: &[2, 20, 5, 6], group: 2, pads: &[1; 4], strides: &[2, 2], activation: Some("HardSwish") },
    Case { x: &[1, 64, 14, 14], w: &[70, 64, 1, 1], y: &[1, 70, 14, 14], group: 1, pads: &[0; 4], strides: &[1, 1], activation: None },
    Case { x: &[1, 64, 14, 15], w: &[72, 64, 1, 1], y: &[1, 72, 7, 8], group: 1, pads: &[0; 4], strides: &[2, 2], activation: Some("Silu") },
    Case { x: &[1, 16, 7, 7], w: &[64, 16, 3, 3], y: &[1, 64, 7, 7], group: 1, pads: &[1; 4], strides: &[1, 1], activation: Some("Relu") },
    Case { x: &[3, 4, 1, 1], w: &[2, 4, 1, 1], y: &[3, 2, 1, 1], group: 1, pads: &[0; 4], strides: &[1, 1], activation: None },
    Case { x: &[1, 8, 37], w: &[8, 8, 4], y: &[1, 8, 12], group: 1, pads: &[1, 1], strides: &[3], activation: Some("Sigmoid") },
    // Several strips of tiles, with a rest and with lines that fill the last step; and what is read where it lies.
    Case { x: &[1, 96, 19, 23], w: &[40, 96, 3, 3], y: &[1, 40, 19, 23], group: 1, pads: &[1; 4], strides: &[1, 1], activation: Some("Relu") },
    Case { x: &[1, 12, 30, 31], w: &[34, 12, 3, 3], y: &[1, 34, 30, 31], group: 1, pads: &[1; 4], strides: &[1, 1], activation: Some("Silu") },
    Case { x: &[1, 46, 9, 9], w: &[20, 46, 1, 1], y: &[1, 20, 9, 9], group: 1, pads: &[0; 4], strides: &[1, 1], activation: Some("Relu") },
    Case { x: &[1, 20, 64, 65], w: &[290, 20, 1, 1], y: &[1, 290, 64, 65], group: 1, pads: &[0; 4], strides: &[1, 1], activation: Some("Relu") },
    // Lines that nearly fill tiles.
    Case { x: &[2, 64, 9, 14], w: &[40, 64, 3, 3], y: &[2, 40, 9, 14], group: 1, pads: &[1; 4], strides: &[1, 1], activation: Some("Relu") },
    Case { x: &[1, 64, 29, 31], w: &[40, 64, 3, 3], y: &[1, 40, 15, 16], group: 1, pads: &[1; 4], strides: &[2, 2], activation: Some("Relu") },
    // By Winograd's algorithm where there are dot products: threads have tiles, or share them.
    Case { x: &[1, 96, 33, 32], w: &[98, 96, 3, 3], y: &[1, 98, 33, 32], group: 1, pads: &[1; 4], strides: &[1, 1], activation: Some("Silu") },
    Case { x: &[1, 160, 18, 66], w: &[144, 160, 3, 3], y: &[1, 144, 16, 64], group: 1, pads: &[0; 4], strides: &[1, 1], activation: Some("Relu") },
    // Most of what products would read lies between lines.
    Case { x: &[1, 8, 60, 40], w: &[4, 8, 1, 40], y: &[1, 4, 60, 1], group: 1, pads: &[0; 4], strides: &[1, 1], activation: Some("Relu") },
];

fn convolve(case: &Case, residual: bool, [input, output]: [bool; 2]) -> Result<Elements, OpError> {
    let given = |shape: &[usize], step: usize, channel_blocked: bool| {
        let elements = some(shape, step);
        let (shape, elements) = if channel_blocked { block_channels(elements, 2) } else { elements };
        t(&shape, &elements)
    };
    let mut inputs = vec![given(case.x, 37, input), given(case.w, 53, false), given(&case.w[..1], 29, false)];
    if residual {
        inputs.push(given(case.y, 59, output));
    }
    let mut attributes = vec![
        ("group", Attribute::Int(case.group)),
        ("pads", Attribute::Ints(case.pads.to_vec())),
        ("strides", Attribute::Ints(case.strides.to_vec())),
    ];
    attributes
        .extend(case.activation.map(|name| ("activation", Attribute::String(name.as_bytes().to_vec()))));
    if !input && !output {
        let y: Value =
            run_constant("com.microsoft", "FusedConv", 1, &attributes, &inputs, &[1], 1)?.remove(0);
        return Ok(elements(&y));
    }
    attributes.push(("channel_blocked_input", Attribute::Int(input.into())));
    attributes.push(("channel_blocked_output", Attribute::Int(output.into())));
    let y: Value = run_constant("rukh", "FusedConv", 1, &attributes, &inputs, &[1], 1)?.remove(0);
    Ok(elements(&y))
}

#[test]
fn convolutions() {
    for case in CASES {
        for residual in [false, true] {
            for channel_blocked in [[true, false], [false, true], [true, true]] {
                let got = convolve(case, residual, channel_blocked);
                if !crate::blocks_channels(ElementType::BF16) {
                    assert!(matches!(got, Err(OpError::Unsupported(_))));
                    continue;
                }
                let plain = convolve(case, residual, [false; 2]).unwrap();
                let (want, got) =
                    (if channel_blocked[1] { block_channels(plain, 2) } else { plain }, got.unwrap());
                assert_eq!(got.0, want.0);
                for (got, want) in got.1.iter().zip(&want.1) {
                    // Without dot groups, sums are rounded in another order.
                    let (got, want) = (got.to_f32(), want.to_f32());
                    assert!(
                        (got - want).abs() <= 0.01 * want.abs().max(1.0),
                        "{:?} {channel_blocked:?} {residual}",
                        case.x
                    );
                }
            }
        }
    }
}

/// Sums of bfloat16 numbers are as exact as those of floats, whatever multiplies.
#[test]
fn sums_are_those_of_floats() {
    for case in CASES {
        let wide = |shape: &[usize], step: usize| {
            t(shape, &some(shape, step).1.iter().map(|x| x.to_f32()).collect::<Vec<_>>())
        };
        let inputs = [wide(case.x, 37), wide(case.w, 53), wide(&case.w[..1], 29), wide(case.y, 59)];
        let mut attributes = vec![
            ("group", Attribute::Int(case.group)),
            ("pads", Attribute::Ints(case.pads.to_vec())),
            ("strides", Attribute::Ints(case.strides.to_vec())),
        ];
        attributes.extend(case.activation.map(|a| ("activation", Attribute::String(a.as_bytes().to_vec()))));
        let want: Value =
            run_constant("com.microsoft", "FusedConv", 1, &attributes, &inputs, &[1], 1).unwrap().remove(0);
        let (_, want): (Vec<usize>, Vec<f32>) = elements(&want);
        let largest = want.iter().fold(0.0f32, |a, b| a.max(b.abs()));
        for channel_blocked in [[false; 2], [true; 2]] {
            let (shape, got) = match convolve(case, true, channel_blocked) {
                Err(OpError::Unsupported(_)) => continue,
                got => got.unwrap(),
            };
            let (blocked, want) = match channel_blocked[1] {
                true => block_channels((case.y.to_vec(), want.clone()), 2),
                false => (case.y.to_vec(), want.clone()),
            };
            assert_eq!(shape, blocked);
            for (got, want) in got.iter().zip(&want) {
                let off = (got.to_f32() - want).abs();
                assert!(off <= want.abs() / 128.0 + largest * 1e-4, "{:?}: {got} {want}", case.x);
            }
        }
    }
}
