mod channel_blocked;
mod instruction_sets;
mod lanes;
mod pairs;
mod strips;
mod volume;

use crate::graph::Attribute;
use crate::tensor::{Element, Value, bf16, f16};
use crate::testing::{checksum, elements, ramp, run_constant, t, whole};

pub(crate) struct Case {
    pub(crate) x: &'static [usize],
    pub(crate) w: &'static [usize],
    pub(crate) pads: &'static [i64],
    pub(crate) strides: &'static [i64],
    pub(crate) dilations: &'static [i64],
    pub(crate) group: i64,
    pub(crate) y: &'static [usize],
    /// Of torch's result for ramps as input, weight and bias.
    pub(crate) checksum: f64,
}

#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    Case { x: &[2, 3, 10], w: &[4, 3, 3], pads: &[1, 1], strides: &[2], dilations: &[1], group: 1, y: &[2, 4, 5], checksum: 88.0 },
    Case { x: &[1, 4, 9, 8], w: &[6, 4, 3, 3], pads: &[1, 1, 1, 1], strides: &[1, 1], dilations: &[1, 1], group: 1, y: &[1, 6, 9, 8], checksum: -418.0 },
    Case { x: &[2, 4, 9, 8], w: &[6, 2, 3, 2], pads: &[0, 1, 2, 1], strides: &[2, 1], dilations: &[1, 2], group: 2, y: &[2, 6, 5, 8], checksum: 210.0 },
    Case { x: &[1, 6, 12, 13], w: &[6, 1, 3, 3], pads: &[1, 1, 1, 1], strides: &[2, 2], dilations: &[1, 1], group: 6, y: &[1, 6, 6, 7], checksum: 51.0 },
    Case { x: &[2, 3, 7, 6], w: &[6, 1, 5, 5], pads: &[4, 4, 4, 4], strides: &[1, 1], dilations: &[2, 2], group: 3, y: &[2, 6, 7, 6], checksum: 842.0 },
    Case { x: &[2, 5, 4, 4], w: &[7, 5, 1, 1], pads: &[], strides: &[], dilations: &[], group: 1, y: &[2, 7, 4, 4], checksum: -112.0 },
    Case { x: &[1, 5, 4, 4], w: &[7, 5, 1, 1], pads: &[], strides: &[2, 2], dilations: &[], group: 1, y: &[1, 7, 2, 2], checksum: 62.0 },
    Case { x: &[1, 70, 40, 40], w: &[130, 70, 3, 3], pads: &[1, 1, 1, 1], strides: &[], dilations: &[], group: 1, y: &[1, 130, 40, 40], checksum: -2494.0 },
    // Whole steps of tiles, and positions and output channels beyond whole tiles.
    Case { x: &[1, 32, 7, 7], w: &[24, 32, 1, 1], pads: &[], strides: &[], dilations: &[], group: 1, y: &[1, 24, 7, 7], checksum: -841.0 },
    Case { x: &[2, 64, 5, 6], w: &[40, 32, 3, 3], pads: &[1, 1, 1, 1], strides: &[], dilations: &[], group: 2, y: &[2, 40, 5, 6], checksum: -4835.0 },
    Case { x: &[1, 16, 17, 17], w: &[17, 16, 3, 3], pads: &[1, 1, 1, 1], strides: &[2, 2], dilations: &[], group: 1, y: &[1, 17, 9, 9], checksum: -5124.0 },
    Case { x: &[1, 96, 3, 21], w: &[8, 96, 1, 3], pads: &[], strides: &[], dilations: &[], group: 1, y: &[1, 8, 3, 19], checksum: -124.0 },
    // Lines that nearly fill tiles.
    Case { x: &[2, 64, 9, 14], w: &[40, 64, 3, 3], pads: &[1, 1, 1, 1], strides: &[], dilations: &[], group: 1, y: &[2, 40, 9, 14], checksum: -669.0 },
    Case { x: &[1, 64, 29, 31], w: &[40, 64, 3, 3], pads: &[1, 1, 1, 1], strides: &[2, 2], dilations: &[], group: 1, y: &[1, 40, 15, 16], checksum: -1593.0 },
    Case { x: &[1, 96, 10, 14], w: &[40, 48, 3, 3], pads: &[1, 1, 1, 1], strides: &[], dilations: &[], group: 2, y: &[1, 40, 10, 14], checksum: -618.0 },
    Case { x: &[1, 32, 7, 46], w: &[18, 32, 3, 5], pads: &[0, 2, 1, 2], strides: &[], dilations: &[], group: 1, y: &[1, 18, 6, 46], checksum: 884.0 },
    Case { x: &[1, 64, 45], w: &[24, 64, 3], pads: &[1, 1], strides: &[], dilations: &[], group: 1, y: &[1, 24, 45], checksum: 757.0 },
    Case { x: &[1, 2, 5, 6, 7], w: &[3, 2, 2, 3, 3], pads: &[1, 0, 1, 0, 1, 1], strides: &[1, 2, 1], dilations: &[2, 1, 1], group: 1, y: &[1, 3, 4, 3, 7], checksum: -128.0 },
    Case { x: &[1, 3, 23, 19], w: &[9, 3, 7, 7], pads: &[3, 3, 3, 3], strides: &[2, 2], dilations: &[], group: 1, y: &[1, 9, 12, 10], checksum: 268.0 },
    Case { x: &[2, 3, 24, 76], w: &[9, 3, 4, 4], pads: &[], strides: &[4, 4], dilations: &[], group: 1, y: &[2, 9, 6, 19], checksum: 1709.0 },
    Case { x: &[1, 3, 21, 45], w: &[9, 3, 4, 4], pads: &[2, 1, 1, 2], strides: &[4, 4], dilations: &[], group: 1, y: &[1, 9, 6, 12], checksum: -651.0 },
    Case { x: &[1, 2, 12, 23], w: &[5, 2, 3, 5], pads: &[0, 0, 0, 2], strides: &[4, 4], dilations: &[], group: 1, y: &[1, 5, 3, 6], checksum: -234.0 },
    Case { x: &[2, 5, 7, 7], w: &[13, 5, 3, 3], pads: &[1, 1, 1, 1], strides: &[], dilations: &[], group: 1, y: &[2, 13, 7, 7], checksum: 1025.0 },
    Case { x: &[1, 4, 1, 1], w: &[3, 4, 1, 1], pads: &[], strides: &[], dilations: &[], group: 1, y: &[1, 3, 1, 1], checksum: -28.0 },
    Case { x: &[3, 21, 1, 1], w: &[19, 21, 1, 1], pads: &[], strides: &[], dilations: &[], group: 1, y: &[3, 19, 1, 1], checksum: -744.0 },
    Case { x: &[1, 6, 9, 9], w: &[8, 3, 2, 2], pads: &[0, 0, 1, 1], strides: &[3, 2], dilations: &[1, 2], group: 2, y: &[1, 8, 3, 4], checksum: -96.0 },
    Case { x: &[1, 4, 20, 20], w: &[4, 4, 3, 3], pads: &[2, 2, 2, 2], strides: &[], dilations: &[2, 2], group: 1, y: &[1, 4, 20, 20], checksum: -416.0 },
    Case { x: &[2, 3, 1, 70], w: &[5, 3, 1, 9], pads: &[0, 4, 0, 4], strides: &[1, 3], dilations: &[], group: 1, y: &[2, 5, 1, 24], checksum: 445.0 },
    Case { x: &[1, 2, 40], w: &[3, 2, 5], pads: &[2, 2], strides: &[], dilations: &[], group: 1, y: &[1, 3, 40], checksum: -205.0 },
    Case { x: &[1, 1, 64, 6], w: &[2, 1, 3, 6], pads: &[1, 0, 1, 0], strides: &[], dilations: &[], group: 1, y: &[1, 2, 64, 1], checksum: -801.0 },
    Case { x: &[1, 2, 3, 100], w: &[4, 2, 3, 90], pads: &[], strides: &[], dilations: &[], group: 1, y: &[1, 4, 1, 11], checksum: -1528.0 },
    Case { x: &[2, 4, 33, 17], w: &[4, 1, 3, 3], pads: &[1, 1, 1, 1], strides: &[], dilations: &[], group: 4, y: &[2, 4, 33, 17], checksum: -157.0 },
    Case { x: &[1, 5, 15, 15], w: &[10, 1, 5, 5], pads: &[2, 2, 2, 2], strides: &[2, 2], dilations: &[], group: 5, y: &[1, 10, 8, 8], checksum: 777.0 },
    Case { x: &[1, 3, 9, 40], w: &[3, 1, 3, 3], pads: &[2, 2, 2, 2], strides: &[3, 1], dilations: &[2, 2], group: 3, y: &[1, 3, 3, 40], checksum: 276.0 },
    Case { x: &[2, 7, 30], w: &[7, 1, 4], pads: &[1, 2], strides: &[], dilations: &[], group: 7, y: &[2, 7, 30], checksum: -370.0 },
    Case { x: &[1, 4, 3, 3], w: &[4, 1, 1, 1], pads: &[1, 1, 1, 1], strides: &[2, 2], dilations: &[], group: 4, y: &[1, 4, 3, 3], checksum: 49.0 },
    Case { x: &[1, 3, 2, 2], w: &[2, 3, 1, 1], pads: &[3, 3, 3, 3], strides: &[2, 2], dilations: &[], group: 1, y: &[1, 2, 4, 4], checksum: 51.0 },
    Case { x: &[2, 33, 7, 9], w: &[35, 33, 3, 3], pads: &[1, 1, 1, 1], strides: &[], dilations: &[], group: 1, y: &[2, 35, 7, 9], checksum: -164.0 },
    Case { x: &[1, 32, 12, 5], w: &[40, 32, 3, 3], pads: &[0, 1, 2, 1], strides: &[], dilations: &[], group: 1, y: &[1, 40, 12, 5], checksum: -17630.0 },
    Case { x: &[1, 40, 1, 1], w: &[32, 40, 3, 3], pads: &[1, 1, 1, 1], strides: &[], dilations: &[], group: 1, y: &[1, 32, 1, 1], checksum: -317.0 },
    Case { x: &[1, 32, 0, 3], w: &[32, 32, 3, 3], pads: &[2, 1, 2, 1], strides: &[], dilations: &[], group: 1, y: &[1, 32, 2, 3], checksum: -35.0 },
    Case { x: &[1, 32, 40, 50], w: &[33, 32, 3, 3], pads: &[1, 1, 1, 1], strides: &[], dilations: &[], group: 1, y: &[1, 33, 40, 50], checksum: -1070.0 },
    Case { x: &[2, 3, 11, 28], w: &[3, 1, 3, 3], pads: &[1, 1, 1, 1], strides: &[1, 1], dilations: &[], group: 3, y: &[2, 3, 11, 28], checksum: 464.0 },
    Case { x: &[1, 4, 13, 17], w: &[8, 1, 3, 3], pads: &[2, 0, 1, 3], strides: &[1, 1], dilations: &[], group: 4, y: &[1, 8, 14, 18], checksum: 1256.0 },
    Case { x: &[1, 3, 21, 45], w: &[3, 1, 3, 3], pads: &[1, 1, 1, 1], strides: &[2, 2], dilations: &[], group: 3, y: &[1, 3, 11, 23], checksum: 19.0 },
    Case { x: &[2, 2, 9, 12], w: &[2, 1, 3, 3], pads: &[0, 3, 2, 0], strides: &[2, 2], dilations: &[], group: 2, y: &[2, 2, 5, 7], checksum: 109.0 },
    Case { x: &[1, 2, 6, 33], w: &[4, 1, 3, 3], pads: &[0, 0, 0, 0], strides: &[1, 1], dilations: &[], group: 2, y: &[1, 4, 4, 31], checksum: 676.0 },
    Case { x: &[1, 4, 9, 37], w: &[4, 1, 5, 5], pads: &[2, 2, 2, 2], strides: &[], dilations: &[], group: 4, y: &[1, 4, 9, 37], checksum: -1600.0 },
    Case { x: &[1, 2, 20, 71], w: &[2, 1, 3, 3], pads: &[0, 1, 1, 0], strides: &[2, 2], dilations: &[], group: 2, y: &[1, 2, 10, 35], checksum: -106.0 },
    Case { x: &[2, 3, 5, 6], w: &[3, 1, 5, 5], pads: &[4, 7, 3, 9], strides: &[1, 1], dilations: &[], group: 3, y: &[2, 3, 8, 18], checksum: -611.0 },
    Case { x: &[1, 3, 0, 6], w: &[3, 1, 3, 3], pads: &[2, 1, 2, 1], strides: &[1, 1], dilations: &[], group: 3, y: &[1, 3, 2, 6], checksum: 26.0 },
    Case { x: &[1, 4, 1], w: &[5, 4, 3], pads: &[1, 1], strides: &[], dilations: &[], group: 1, y: &[1, 5, 1], checksum: 9.0 },
    Case { x: &[2, 4, 1], w: &[5, 4, 5], pads: &[2, 2], strides: &[], dilations: &[], group: 1, y: &[2, 5, 1], checksum: 8.0 },
    Case { x: &[1, 3, 1], w: &[2, 3, 1], pads: &[1, 1], strides: &[3], dilations: &[], group: 1, y: &[1, 2, 1], checksum: 23.0 },
    Case { x: &[1, 3, 1, 1], w: &[4, 3, 3, 3], pads: &[1, 1, 1, 1], strides: &[], dilations: &[], group: 1, y: &[1, 4, 1, 1], checksum: 63.0 },
    Case { x: &[1, 6, 33, 20], w: &[10, 3, 1, 1], pads: &[], strides: &[], dilations: &[], group: 2, y: &[1, 10, 33, 20], checksum: 96.0 },
    Case { x: &[1, 9, 40, 31], w: &[11, 9, 1, 1], pads: &[], strides: &[], dilations: &[], group: 1, y: &[1, 11, 40, 31], checksum: 1369.0 },
    Case { x: &[1, 151, 33, 34], w: &[113, 151, 1, 1], pads: &[], strides: &[], dilations: &[], group: 1, y: &[1, 113, 33, 34], checksum: -1.0 },
    Case { x: &[1, 6, 65, 33], w: &[9, 6, 1, 1], pads: &[], strides: &[2, 2], dilations: &[], group: 1, y: &[1, 9, 33, 17], checksum: 48.0 },
    Case { x: &[2, 5, 9, 11], w: &[4, 5, 1, 1], pads: &[], strides: &[1, 3], dilations: &[], group: 1, y: &[2, 4, 9, 4], checksum: 89.0 },
    Case { x: &[2, 33, 7, 9], w: &[35, 33, 3, 3], pads: &[2, 2, 2, 2], strides: &[], dilations: &[2, 2], group: 1, y: &[2, 35, 7, 9], checksum: 221.0 },
    Case { x: &[1, 32, 5, 3], w: &[32, 32, 3, 3], pads: &[3, 5, 3, 5], strides: &[], dilations: &[3, 5], group: 1, y: &[1, 32, 5, 3], checksum: 189.0 },
    Case { x: &[1, 40, 13, 12], w: &[34, 40, 3, 3], pads: &[1, 4, 1, 4], strides: &[], dilations: &[1, 4], group: 1, y: &[1, 34, 13, 12], checksum: -8073.0 },
    Case { x: &[1, 5, 19, 23], w: &[34, 5, 3, 3], pads: &[12, 12, 12, 12], strides: &[], dilations: &[12, 12], group: 1, y: &[1, 34, 19, 23], checksum: 258.0 },
    Case { x: &[2, 6, 9, 10], w: &[64, 3, 3, 3], pads: &[6, 7, 6, 7], strides: &[], dilations: &[6, 7], group: 2, y: &[2, 64, 9, 10], checksum: 348.0 },
    Case { x: &[1, 4, 7, 8], w: &[32, 4, 3, 3], pads: &[9, 10, 9, 10], strides: &[], dilations: &[9, 10], group: 1, y: &[1, 32, 7, 8], checksum: 96.0 },
    Case { x: &[3, 4, 30, 17], w: &[33, 4, 2, 3], pads: &[0, 2, 3, 6], strides: &[], dilations: &[5, 4], group: 1, y: &[3, 33, 28, 17], checksum: -294.0 },
    Case { x: &[2, 4, 17, 17], w: &[36, 4, 3, 3], pads: &[6, 6, 6, 6], strides: &[], dilations: &[6, 6], group: 1, y: &[2, 36, 17, 17], checksum: -4034.0 },
    Case { x: &[1, 6, 17, 17], w: &[64, 3, 3, 3], pads: &[18, 18, 18, 18], strides: &[], dilations: &[18, 18], group: 2, y: &[1, 64, 17, 17], checksum: 164.0 },
    Case { x: &[1, 5, 33, 33], w: &[34, 5, 3, 3], pads: &[12, 12, 12, 12], strides: &[], dilations: &[12, 12], group: 1, y: &[1, 34, 33, 33], checksum: -53.0 },
    Case { x: &[1, 3, 9, 26], w: &[33, 3, 3, 5], pads: &[5, 8, 5, 9], strides: &[], dilations: &[5, 8], group: 1, y: &[1, 33, 9, 11], checksum: -25.0 },
];

impl Case {
    fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        let mut attributes = vec![("group", Attribute::Int(self.group))];
        for (name, list) in [("pads", self.pads), ("strides", self.strides), ("dilations", self.dilations)] {
            if !list.is_empty() {
                attributes.push((name, Attribute::Ints(list.to_vec())));
            }
        }
        attributes
    }

    /// Whether with a constant weight in bfloat16 Winograd's algorithm may serve it, which has other sums.
    fn bf16_winograd(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        let available = super::winograd::bf16::available();
        #[cfg(not(target_arch = "x86_64"))]
        let available = false;
        let plain = self.group == 1 && self.strides.iter().chain(self.dilations).all(|&x| x == 1);
        let channels = self.w[..2].iter().all(|&n| n >= 32 && n % 2 == 0);
        available && plain && channels && self.w[2..] == [3, 3]
    }
}

fn check<T: Element + num_traits::FromPrimitive + num_traits::ToPrimitive>() {
    for case in CASES {
        let input = |shape: &[usize]| t(shape, &ramp::<T>(shape.iter().product()));
        let inputs = [input(case.x), input(case.w), input(&case.w[..1])];
        let attributes = case.attributes();
        for constants in [&[][..], &[1, 2]] {
            let out = run_constant("", "Conv", 22, &attributes, &inputs, constants, 1).unwrap();
            let (shape, y) = elements::<T>(&out[0]);
            assert_eq!(
                (shape.as_slice(), checksum(&whole(&y))),
                (case.y, case.checksum),
                "{:?} {:?}",
                case.x,
                case.w
            );
        }
    }
}

#[test]
fn as_torch_does() {
    check::<f32>();
    check::<f64>();
    // Sums of these cases stay where half precision is exact.
    check::<f16>();
}

/// Against `f32`, rounded: with and without residual, and activations that make use of every sum or take other ways.
#[test]
fn bfloat16_is_rounded_once() {
    fn run<T: Element + num_traits::FromPrimitive>(
        case: &Case,
        (activation, parameters, residual): (&str, &[f32], bool),
        constants: &[usize],
    ) -> Vec<T> {
        let input = |shape: &[usize]| t(shape, &ramp::<T>(shape.iter().product()));
        let inputs = [input(case.x), input(case.w), input(&case.w[..1]), input(case.y)];
        let inputs = if residual { &inputs[..] } else { &inputs[..3] };
        let mut attributes = case.attributes();
        attributes.push(("activation", Attribute::String(activation.into())));
        attributes.push(("activation_params", Attribute::Floats(parameters.to_vec())));
        let out = run_constant("com.microsoft", "FusedConv", 1, &attributes, inputs, constants, 1).unwrap();
        elements::<T>(&out[0]).1
    }
    // Of the last ones the result may be another number of `f32`, so of bfloat16 its neighbour.
    for (activation, parameters, residual, tolerance) in [
        ("LeakyRelu", &[0.25][..], true, 0.0),
        ("Relu", &[], false, 0.0),
        ("Relu", &[], true, 0.0),
        ("HardSwish", &[], false, 1.0 / 128.0),
        ("Tanh", &[], true, 1.0 / 128.0),
    ] {
        let way = (activation, parameters, residual);
        for case in CASES {
            let want = run::<f32>(case, way, &[]);
            for constants in [&[][..], &[1, 2]] {
                let got = run::<bf16>(case, way, constants);
                assert_eq!(got.len(), want.len());
                let exact = constants.is_empty() || !case.bf16_winograd();
                let (tolerance, least) = match exact {
                    true => (tolerance, 0.0),
                    false => {
                        let sums = run::<f32>(case, ("Relu", &[], residual), &[]);
                        (1.0 / 128.0, 1e-5 * sums.into_iter().fold(0.0, f32::max))
                    }
                };
                let close = |(got, want): (&bf16, &f32)| {
                    let want = bf16::from_f32(*want).to_f32();
                    (got.to_f32() - want).abs() <= tolerance * want.abs() + least
                };
                assert!(got.iter().zip(&want).all(close), "{way:?} {:?} {:?} {constants:?}", case.x, case.w);
            }
        }
    }
}

/// Infinity stays that where channels do not fill the dot groups that they are multiplied in.
#[test]
fn infinity_beside_missing_channels() {
    let x = [1.0, 2.0, f32::INFINITY].map(bf16::from_f32);
    let inputs = [t(&[1, 3, 1, 1], &x), t(&[1, 3, 1, 1], &[bf16::ONE; 3])];
    let out = run_constant("", "Conv", 22, &[], &inputs, &[1], 1).unwrap();
    assert_eq!(elements::<bf16>(&out[0]).1, [bf16::INFINITY]);
}

/// Images and weights of bytes about zero points, as ConvInteger takes them.
#[test]
fn integers_as_torch_does() {
    fn run<X: Element, W: Element>(
        case: &Case,
        of_x: impl Fn(i64) -> X,
        // With the output channel, which may have a zero point of its own.
        of_w: impl Fn(i64, usize) -> W,
        constants: &[usize],
    ) {
        let bytes = |shape: &[usize]| ramp::<i64>(shape.iter().product());
        let x: Vec<X> = bytes(case.x).into_iter().map(&of_x).collect();
        let volume: usize = case.w[1..].iter().product();
        let w: Vec<W> = bytes(case.w).into_iter().enumerate().map(|(i, w)| of_w(w, i / volume)).collect();
        let zeros: Vec<W> = (0..case.w[0]).map(|row| of_w(0, row)).collect();
        let zeros = match zeros.iter().all(|&zero| zero == zeros[0]) {
            true => t(&[], &zeros[..1]),
            false => t(&[zeros.len()], &zeros),
        };
        let inputs = [t(case.x, &x), t(case.w, &w), t(&[], &[of_x(0)]), zeros];
        let out = run_constant("", "ConvInteger", 10, &case.attributes(), &inputs, constants, 1).unwrap();
        let (shape, mut y) = elements::<i32>(&out[0]);
        assert_eq!(shape, case.y);
        // The checksum is that of sums with a bias.
        let (rows, columns) = (case.y[1], case.y[2..].iter().product::<usize>());
        for (i, y) in y.chunks_exact_mut(columns).enumerate() {
            y.iter_mut().for_each(|y| *y += ramp::<i32>(rows)[i % rows]);
        }
        assert_eq!(checksum(&y), case.checksum, "{:?} {:?} {constants:?}", case.x, case.w);
    }
    for case in CASES.iter().filter(|case| case.x[2..].len() < 3) {
        for constants in [&[][..], &[1, 3]] {
            run(case, |x| (x + 100) as u8, |w, _| w as i8, constants);
            run(case, |x| (x - 100) as i8, |w, _| (w + 128) as u8, constants);
            run(case, |x| (x + 3) as u8, |w, row| (w + 77 + row as i64) as u8, constants);
            run(case, |x| (x - 3) as i8, |w, row| (w - 77 + row as i64) as i8, constants);
        }
    }
}

#[test]
fn fused_residual_and_activation() {
    // 1×1 with weight 2: 2·x + bias 1 + residual, then Relu.
    let inputs: Vec<Option<Value>> = vec![
        t(&[1, 1, 1, 3], &[1.0f32, -2.0, 3.0]),
        t(&[1, 1, 1, 1], &[2.0f32]),
        t(&[1], &[1.0f32]),
        t(&[1, 1, 1, 3], &[0.5f32, 1.0, -10.0]),
    ];
    let attributes = [("activation", Attribute::String(b"Relu".to_vec()))];
    let out = run_constant("com.microsoft", "FusedConv", 1, &attributes, &inputs, &[1], 1).unwrap();
    assert_eq!(elements::<f32>(&out[0]).1, [3.5, 0.0, 0.0]);
}

#[test]
fn wrong_channels_are_named() {
    let inputs = [t(&[1, 3, 4, 4], &[0.0f32; 48]), t(&[2, 4, 1, 1], &[0.0f32; 8])];
    let error = run_constant("", "Conv", 22, &[], &inputs, &[], 1).unwrap_err().to_string();
    assert!(error.contains("input 1 (W)") && error.contains("allowed is 3"), "{error}");
}

/// With a constant weight, threads have lines or images; without one the convolution is a product of patches.
#[test]
fn shared_out_by_lines_and_images() {
    let ints = |list: &[i64]| Attribute::Ints(list.to_vec());
    for (x, w, stride, pads, group) in [
        ([1, 32, 40, 37], [40, 32, 3, 3], 1, [1; 4], 1),
        ([1, 64, 26, 28], [64, 64, 3, 3], 1, [1; 4], 1),
        ([2, 33, 9, 150], [32, 33, 3, 3], 1, [2; 4], 1),
        ([4, 64, 14, 14], [160, 64, 3, 3], 1, [1; 4], 1),
        ([1, 160, 7, 7], [64, 160, 3, 3], 1, [1; 4], 1),
        ([1, 3, 61, 50], [24, 3, 7, 7], 2, [3; 4], 1),
        ([3, 24, 33, 35], [20, 12, 3, 3], 2, [1; 4], 2),
        ([2, 24, 12, 14], [130, 24, 1, 1], 2, [0; 4], 1),
        ([2, 24, 12, 14], [20, 24, 1, 1], 1, [0; 4], 1),
        ([8, 2, 6, 5], [9, 2, 3, 3], 1, [1; 4], 1),
        // Parts that have no padding, of an image that has.
        ([1, 7, 62, 65], [18, 7, 3, 3], 1, [2, 0, 1, 0], 1),
        ([3, 6, 50, 31], [8, 3, 5, 5], 1, [3, 0, 2, 0], 2),
        // Lines of whole vectors with gaps between them.
        ([1, 2, 5, 37], [8, 2, 7, 7], 2, [4, 0, 4, 1], 1),
        ([1, 3, 4, 19], [8, 3, 3, 4], 1, [0; 4], 1),
        ([2, 32, 5, 0], [32, 32, 3, 3], 1, [1; 4], 1),
        ([2, 32, 0, 5], [32, 32, 3, 3], 1, [2; 4], 1),
        ([0, 32, 9, 5], [32, 32, 3, 3], 1, [1; 4], 1),
        ([0, 8, 9, 5], [32, 8, 3, 3], 1, [1; 4], 1),
    ] {
        let attributes = [
            ("strides", ints(&[stride; 2])),
            ("pads", ints(&pads)),
            ("group", Attribute::Int(group)),
            ("activation", Attribute::String(b"Relu".to_vec())),
        ];
        let tensor = |shape: &[usize]| t(shape, &ramp::<f32>(shape.iter().product()));
        let inputs = [tensor(&x), tensor(&w), tensor(&[w[0]])];
        let run = |constants: &[usize]| {
            let out = run_constant("com.microsoft", "FusedConv", 1, &attributes, &inputs, constants, 1);
            let (shape, y) = elements::<f32>(&out.unwrap()[0]);
            (shape, whole(&y))
        };
        assert!(run(&[1]) == run(&[]), "{x:?} {w:?}");
    }
}

/// With a constant weight by Winograd's algorithm, without one as a product of patches: dilated, and images of few tiles.
#[test]
fn three_by_three_with_a_residual() {
    let ints = |list: &[i64]| Attribute::Ints(list.to_vec());
    let tensor = |shape: &[usize]| t(shape, &ramp::<f32>(shape.iter().product()));
    for (x, w, dilations) in [
        ([1, 32, 33, 29], [40, 32, 3, 3], [2, 2]),
        ([3, 64, 12, 17], [33, 64, 3, 3], [6, 4]),
        ([2, 32, 2, 3], [32, 32, 3, 3], [5, 1]),
        ([1, 96, 13, 14], [96, 96, 3, 3], [2, 3]),
        ([2, 112, 70, 9], [100, 112, 3, 3], [4, 1]),
        ([1, 32, 0, 3], [32, 32, 3, 3], [2, 2]),
        ([0, 32, 4, 3], [32, 32, 3, 3], [2, 2]),
        ([1, 64, 7, 7], [64, 64, 3, 3], [1, 1]),
        ([3, 35, 5, 9], [45, 35, 3, 3], [1, 1]),
        ([2, 32, 1, 4], [33, 32, 3, 3], [1, 1]),
        ([1, 48, 16, 13], [45, 48, 3, 3], [1, 1]),
        ([1, 32, 4, 30], [37, 32, 3, 3], [1, 1]),
        ([2, 200, 7, 6], [170, 200, 3, 3], [1, 1]),
        ([1, 190, 13, 14], [180, 190, 3, 3], [1, 1]),
    ] {
        let [down, across] = dilations;
        let attributes = [
            ("pads", ints(&[down, across, down, across])),
            ("dilations", ints(&dilations)),
            ("activation", Attribute::String(b"Relu".to_vec())),
        ];
        let inputs = [tensor(&x), tensor(&w), tensor(&w[..1]), tensor(&[x[0], w[0], x[2], x[3]])];
        let run = |constants: &[usize]| {
            let out = run_constant("com.microsoft", "FusedConv", 1, &attributes, &inputs, constants, 1);
            let (shape, y) = elements::<f32>(&out.unwrap()[0]);
            (shape, whole(&y))
        };
        assert!(run(&[1]) == run(&[]), "{x:?} {w:?}");
    }
}
