//! Channel-blocked images change where numbers lie, not which they are.

use super::{bytes, signed};
use crate::graph::Attribute;
use crate::ops::OpError;
use crate::tensor::{Element, ElementType, Value};
use crate::testing::{block_channels, elements, run, run_constant, run_in, t};

/// A shape and elements.
type Elements<T> = (Vec<usize>, Vec<T>);

struct Case {
    x: &'static [usize],
    w: &'static [usize],
    y: &'static [usize],
    group: i64,
    pads: &'static [i64],
    strides: &'static [i64],
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { x: &[2, 8, 9, 11], w: &[12, 8, 3, 3], y: &[2, 12, 9, 11], group: 1, pads: &[1; 4], strides: &[1, 1] },
    Case { x: &[2, 16, 9, 11], w: &[24, 8, 3, 3], y: &[2, 24, 5, 6], group: 2, pads: &[1; 4], strides: &[2, 2] },
    Case { x: &[1, 64, 14, 14], w: &[72, 64, 1, 1], y: &[1, 72, 14, 14], group: 1, pads: &[0; 4], strides: &[1, 1] },
    Case { x: &[1, 64, 14, 15], w: &[72, 64, 1, 1], y: &[1, 72, 7, 8], group: 1, pads: &[0; 4], strides: &[2, 2] },
    Case { x: &[1, 8, 20, 22], w: &[8, 8, 5, 3], y: &[1, 8, 16, 20], group: 1, pads: &[0; 4], strides: &[1, 1] },
    Case { x: &[1, 16, 7, 7], w: &[64, 16, 3, 3], y: &[1, 64, 7, 7], group: 1, pads: &[1; 4], strides: &[1, 1] },
    Case { x: &[3, 4, 1, 1], w: &[4, 4, 1, 1], y: &[3, 4, 1, 1], group: 1, pads: &[0; 4], strides: &[1, 1] },
    Case { x: &[1, 8, 37], w: &[8, 8, 4], y: &[1, 8, 12], group: 1, pads: &[1, 1], strides: &[3] },
    // Several strips of tiles, with a rest and with lines that fill the last step; and what is read where it lies.
    Case { x: &[1, 96, 19, 46], w: &[40, 96, 3, 3], y: &[1, 40, 19, 46], group: 1, pads: &[1; 4], strides: &[1, 1] },
    Case { x: &[1, 12, 30, 31], w: &[36, 12, 3, 3], y: &[1, 36, 30, 31], group: 1, pads: &[1; 4], strides: &[1, 1] },
    Case { x: &[1, 92, 9, 9], w: &[20, 92, 1, 1], y: &[1, 20, 9, 9], group: 1, pads: &[0; 4], strides: &[1, 1] },
    Case { x: &[1, 40, 32, 35], w: &[68, 40, 1, 1], y: &[1, 68, 32, 35], group: 1, pads: &[0; 4], strides: &[1, 1] },
    // Lines that nearly fill tiles.
    Case { x: &[2, 64, 9, 14], w: &[40, 64, 3, 3], y: &[2, 40, 9, 14], group: 1, pads: &[1; 4], strides: &[1, 1] },
    Case { x: &[1, 64, 29, 31], w: &[40, 64, 3, 3], y: &[1, 40, 15, 16], group: 1, pads: &[1; 4], strides: &[2, 2] },
    // Most of what products would read lies between lines.
    Case { x: &[1, 8, 60, 40], w: &[4, 8, 1, 40], y: &[1, 4, 60, 1], group: 1, pads: &[0; 4], strides: &[1, 1] },
];

/// The convolution of a case, and the same with these sides channel-blocked; `of` makes bytes of the image's type.
fn both<T: Element>(
    case: &Case,
    of: impl Fn(u8) -> T,
    residual: bool,
    weight_zero: i8,
    [input, output]: [bool; 2],
) -> [Result<Elements<T>, OpError>; 2] {
    let count = |shape: &[usize]| shape.iter().product::<usize>();
    let some = |shape: &[usize], step: usize| -> Vec<T> {
        (0..count(shape)).map(|i| of((i * step % 251) as u8)).collect()
    };
    let given = |shape: &[usize], step: usize, channel_blocked: bool| {
        let elements = some(shape, step);
        match channel_blocked {
            true => block_channels((shape.to_vec(), elements), 4),
            false => (shape.to_vec(), elements),
        }
    };
    let (scale, zero) = (|s: f32| t(&[], &[s]), |z: u8| t(&[], &[of(z)]));
    let run = |input: bool, output: bool| {
        let image = |(shape, elements): Elements<T>| t(&shape, &elements);
        let rows = case.w[0];
        let bias: Vec<i32> = (0..rows as i32).map(|i| 170 * i - 900).collect();
        let factors: Vec<f32> = (0..rows).map(|i| 0.002 + 0.0001 * i as f32).collect();
        let mut inputs = vec![image(given(case.x, 37, input)), scale(0.02), zero(100)];
        inputs.extend([t(case.w, &signed(count(case.w))), t(&[rows], &factors), t(&[], &[weight_zero])]);
        inputs.extend([scale(0.07), zero(9), t(&[rows], &bias)]);
        if residual {
            inputs.extend([image(given(case.y, 53, output)), scale(0.031), zero(200), scale(0.05), zero(77)]);
        }
        let attributes = [
            ("group", Attribute::Int(case.group)),
            ("pads", Attribute::Ints(case.pads.to_vec())),
            ("strides", Attribute::Ints(case.strides.to_vec())),
            ("channel_blocked_input", Attribute::Int(input.into())),
            ("channel_blocked_output", Attribute::Int(output.into())),
        ];
        let y: Value = run_constant("rukh", "QLinearConv", 1, &attributes, &inputs, &[3, 5], 1)?.remove(0);
        Ok(elements::<T>(&y))
    };
    let plain = run(false, false).map(|(shape, elements)| match output {
        true => block_channels((shape, elements), 4),
        false => (shape, elements),
    });
    [plain, run(input, output)]
}

#[test]
fn convolutions() {
    fn check<T: Element>(of: impl Fn(u8) -> T + Copy) {
        for case in CASES {
            for (channel_blocked, residual) in [[true, false], [false, true], [true, true]]
                .map(|channel_blocked| [(channel_blocked, false), (channel_blocked, true)])
                .as_flattened()
            {
                for weight_zero in [0, 3] {
                    let [plain, got] = both(case, of, *residual, weight_zero, *channel_blocked);
                    if crate::blocks_channels(ElementType::U8) {
                        assert_eq!(
                            got.unwrap(),
                            plain.unwrap(),
                            "{:?} {:?} {channel_blocked:?} {residual}",
                            case.x,
                            case.w
                        );
                    } else {
                        assert!(matches!(got, Err(OpError::Unsupported(_))));
                    }
                }
            }
        }
    }
    check(|x| x);
    check(|x| x.wrapping_sub(128) as i8);
}

#[test]
fn channels_that_are_no_whole_words_are_refused() {
    let pads: &[i64] = &[0; 4];
    let cases = [
        ([true, false], &[4usize, 6, 1, 1], 2, "channel_blocked_input", "channels of a group are 6"),
        ([false, true], &[4, 4, 1, 1], 2, "channel_blocked_output", "channels of a group are 2"),
    ];
    for (channel_blocked, w, group, attribute, part) in cases {
        let x = [&[1, w[1] * group], &[3usize, 3][..]].concat();
        let x = if channel_blocked[0] { vec![1, 3, 3, 3, 4] } else { x };
        let (scale, zero) = (|| t(&[], &[0.5f32]), || t(&[], &[3u8]));
        let count = |shape: &[usize]| shape.iter().product::<usize>();
        let mut inputs = vec![t(&x, &bytes(count(&x))), scale(), zero(), t(w, &signed(count(w))), scale()];
        inputs.extend([t(&[], &[0i8]), scale(), zero()]);
        let attributes = [
            ("group", Attribute::Int(group as i64)),
            ("pads", Attribute::Ints(pads.to_vec())),
            ("channel_blocked_input", Attribute::Int(channel_blocked[0].into())),
            ("channel_blocked_output", Attribute::Int(channel_blocked[1].into())),
        ];
        let error = run_in("rukh", "QLinearConv", 1, &attributes, &inputs, 1).unwrap_err().to_string();
        assert!(error.contains(attribute) && error.contains(part), "{error}");
    }
}

#[test]
fn maxima_and_means() {
    let shape = [2, 8, 9, 10];
    let data = bytes(2 * 8 * 9 * 10);
    let (channel_blocked, blocked) = block_channels((shape.to_vec(), data.clone()), 4);
    let ints = |list: &[i64]| Attribute::Ints(list.to_vec());
    for (kernel, strides, pads) in
        [([3, 3], [2, 2], [1, 1, 1, 1]), ([2, 3], [1, 1], [0, 1, 1, 2]), ([3, 4], [2, 3], [0; 4])]
    {
        let attributes =
            [("kernel_shape", ints(&kernel)), ("strides", ints(&strides)), ("pads", ints(&pads))];
        let plain = run("MaxPool", 22, &attributes, &[t(&shape, &data)], 1).unwrap();
        let want = elements::<u8>(&plain[0]);
        let more = |list: &[i64]| ints(&[list, &[1]].concat());
        let attributes = [
            ("kernel_shape", more(&kernel)),
            ("strides", more(&strides)),
            ("pads", ints(&[&pads[..2], &[0], &pads[2..], &[0]].concat())),
        ];
        let got = run("MaxPool", 22, &attributes, &[t(&channel_blocked, &blocked)], 1).unwrap();
        assert_eq!(elements::<u8>(&got[0]), block_channels(want, 4), "{kernel:?}");
    }
    let parameters = [0.02f32, 0.013].map(|scale| [t(&[], &[scale]), t(&[], &[scale as u8 + 90])]);
    let with = |x: Option<Value>| [vec![x], parameters.concat()].concat();
    let mean = |domain: &str, x| {
        elements::<u8>(&run_in(domain, "QLinearGlobalAveragePool", 1, &[], &with(x), 1).unwrap()[0])
    };
    assert_eq!(mean("rukh", t(&channel_blocked, &blocked)), mean("com.microsoft", t(&shape, &data)));
}
