//! Images times gates of their channels, against the CPU's convolution of a pixel and product.

use crate::graph::Attribute;
use crate::tensor::{ElementType, Value};

use super::super::super::testing::data::{mixed, tolerance};
use super::super::super::testing::{Both, node, on_cpu, on_device, provider};

fn reshaped(value: Option<Value>, shape: &[usize]) -> Option<Value> {
    let Some(Value::Tensor(tensor)) = value else { return None };
    tensor.reshaped(shape).map(Value::Tensor)
}

#[test]
fn gates_of_channels() {
    let Some(provider) = provider(&[]) else { return };
    // Images, side, channels and numbers that gates are made of: slabs of every width, packs that are not whole,
    // several chunks of pixels, more rows than one, and weights that are worth a launch of their own.
    let cases = [
        (1, 7, 96, 4),
        (2, 5, 72, 24),
        (1, 30, 32, 8),
        (3, 3, 20, 6),
        (1, 4, 9, 5),
        (1, 9, 136, 240),
        (40, 3, 512, 128),
    ];
    for ty in [ElementType::F32, ElementType::F16, ElementType::BF16] {
        for (function, constants) in
            [("Sigmoid", &[][..]), ("HardSigmoid", &[0.2f32, 0.5]), ("Relu", &[]), ("", &[])]
        {
            for (images, side, channels, inner) in cases {
                for biased in [false, true] {
                    let activation = [
                        ("activation", Attribute::String(function.as_bytes().into())),
                        ("activation_params", Attribute::Floats(constants.to_vec())),
                    ];
                    let x = mixed(ty, &[images, side, side, channels]);
                    let (hidden, weight) = (mixed(ty, &[images, inner]), mixed(ty, &[channels, inner]));
                    let bias = mixed(ty, &[channels]).filter(|_| biased);
                    let inputs = [
                        reshaped(hidden.clone(), &[images, inner, 1, 1]),
                        reshaped(weight.clone(), &[channels, inner, 1, 1]),
                        bias.clone(),
                    ];
                    let conv = node("com.microsoft", "FusedConv", 1, &activation, &inputs, 1);
                    let gates = on_cpu(&conv, &inputs).remove(0);
                    let gates = reshaped(Some(Value::Tensor(gates)), &[images, 1, 1, channels]);
                    let inputs = [gates, x.clone()];
                    let cpu = on_cpu(&node("", "Mul", 14, &[], &inputs, 1), &inputs);
                    let inputs = [
                        x,
                        reshaped(hidden, &[images, 1, 1, inner]),
                        reshaped(weight, &[channels, 1, 1, inner]),
                        bias,
                    ];
                    let excite = node("rukh", "NhwcExcite", 1, &activation, &inputs, 1);
                    let what = format!("{ty} {function} {images} {side} {channels} {inner} {biased}");
                    let device = on_device(&provider, &excite, &inputs, &cpu)
                        .unwrap_or_else(|e| panic!("{what}: {e}"));
                    // The CPU rounds the gates to their type.
                    Both { device, cpu }.assert_close(&what, 4.0 * tolerance(ty).max(2e-4));
                }
            }
        }
    }
}
