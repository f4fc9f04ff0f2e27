//! Pooling of images with their channels innermost against the CPU's.

use crate::graph::Attribute;
use crate::tensor::ElementType;

use super::super::testing::data::{mixed, tolerance};
use super::super::testing::nhwc::both_nhwc;

#[test]
fn images_with_channels_innermost() {
    // Image, kernel, strides, pads, dilations, and whether incomplete windows count.
    type Case = (&'static [usize], &'static [i64], &'static [i64], &'static [i64], &'static [i64], i64);
    let cases: &[Case] = &[
        (&[2, 16, 9, 9], &[3, 3], &[2, 2], &[1, 1, 1, 1], &[1, 1], 0),
        (&[1, 3, 8, 10], &[2, 2], &[2, 2], &[0, 0, 0, 0], &[1, 1], 0),
        (&[3, 12, 8, 7], &[3, 2], &[2, 1], &[1, 0, 0, 1], &[1, 2], 1),
        (&[2, 8, 20], &[5], &[3], &[2, 1], &[1], 0),
        (&[1, 100, 5, 6, 7], &[2, 3, 2], &[1, 2, 2], &[0, 1, 1, 1, 1, 0], &[1, 1, 1], 1),
    ];
    for ty in [ElementType::F32, ElementType::F16, ElementType::BF16] {
        for &(x, kernel, strides, pads, dilations, ceil) in cases {
            let ints = |list: &[i64]| Attribute::Ints(list.to_vec());
            let mut attributes = vec![
                ("kernel_shape", ints(kernel)),
                ("strides", ints(strides)),
                ("pads", ints(pads)),
                ("dilations", ints(dilations)),
                ("ceil_mode", Attribute::Int(ceil)),
            ];
            let inputs = [mixed(ty, x)];
            let Some(out) = both_nhwc(("", "MaxPool", 22), ("NhwcMaxPool", &[]), &attributes, &inputs, &[])
            else {
                return;
            };
            out.assert_equal(&format!("{ty} maximum {x:?} {kernel:?}"));
            for count_padding in [0, 1] {
                attributes.push(("count_include_pad", Attribute::Int(count_padding)));
                let cpu = ("", "AveragePool", 22);
                let Some(out) = both_nhwc(cpu, ("NhwcAveragePool", &[]), &attributes, &inputs, &[]) else {
                    return;
                };
                out.assert_close(&format!("{ty} mean {x:?} {kernel:?} {count_padding}"), tolerance(ty));
                attributes.pop();
            }
        }
    }
}
