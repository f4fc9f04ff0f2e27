//! A convolution from the word that stands for it in records of tuning.

use crate::ops::OpError;
use crate::ops::channels_last::NhwcConv;
use crate::ops::conv::Conv;
use crate::ops::window::{Padding, Window};
use crate::providers::Argument;
use crate::tensor::ElementType;

use super::super::tuning::{Parts, fits, number, numbers};
use super::super::{HipKernel, PlanBuilder};
use super::{ConvKernel, names, nhwc};

/// A convolution with the shapes of its inputs.
struct Shape {
    ty: ElementType,
    window: Window,
    group: usize,
    activation: crate::ops::activation::Activation,
    x: Vec<usize>,
    w: Vec<usize>,
    bias: bool,
    residual: bool,
}

/// Appends the launches of the convolution that a word of `tuned::key` stands for, in the way that tuning chooses.
/// `None` for any other word.
pub(in super::super) fn plan(
    word: &str,
    channels_last: bool,
    plan: &mut PlanBuilder<'_>,
) -> Option<Result<(), OpError>> {
    let shape = read(word)?;
    let (result, outputs) = shape.result(channels_last)?;
    let argument = |shape| Some(Argument { shape, value: None });
    let bias = [outputs];
    let inputs = [
        argument(&shape.x[..]),
        argument(&shape.w[..]),
        argument(&bias[..]).filter(|_| shape.bias),
        argument(&result[..]).filter(|_| shape.residual),
    ];
    let Shape { ty, ref window, group, activation, .. } = shape;
    let kernel: Box<dyn HipKernel> = if channels_last {
        nhwc::kernel(NhwcConv { window: window.clone(), group, activation }, ty)?
    } else {
        Box::new(ConvKernel {
            op: Conv { window: window.clone(), group, activation, channel_blocked: [false; 2] },
            ty,
            names: names(ty)?,
        })
    };
    Some(kernel.plan(plan, &inputs, &[Some(&result)]))
}

fn read(word: &str) -> Option<Shape> {
    let mut parts = Parts::new(word);
    let ty = parts.element_type()?;
    let x = numbers(parts.after("x")?, 'x', None)?;
    let w = numbers(parts.after("w")?, 'x', Some(x.len()))?;
    let axes = x.len().checked_sub(2).filter(|&axes| axes > 0)?;
    let mut list = |prefix: &str| -> Option<Vec<i64>> {
        let all = numbers(parts.after(prefix)?, 'x', Some(axes))?;
        Some(all.into_iter().map(|number| number as i64).collect())
    };
    let (strides, dilations) = (list("stride")?, list("dilation")?);
    let (begin, end) = (list("pad")?, list("")?);
    let group = number(parts.after("group")?)?;
    let (bias, residual) = (parts.after("bias").is_some(), parts.after("residual").is_some());
    let activation = parts.activation()?;
    let positive = |list: &[i64]| list.iter().all(|&number| number > 0);
    let there =
        group > 0 && x.iter().chain(&w).all(|&size| size > 0) && positive(&strides) && positive(&dilations);
    if parts.next().is_some() || !there || !fits(x.iter().copied()) || !fits(w.iter().copied()) {
        return None;
    }
    let padding = Padding::Explicit([begin, end].concat());
    let window = Window { kernel: Vec::new(), strides, dilations, padding, ceil: false };
    Some(Shape { ty, window, group, activation, x, w, bias, residual })
}

impl Shape {
    /// The shape of the result and its channels; `None` where image and weight do not belong together.
    fn result(&self, channels_last: bool) -> Option<(Vec<usize>, usize)> {
        let rank = self.x.len();
        let (space, kernel) = if channels_last {
            (&self.x[1..rank - 1], &self.w[1..rank - 1])
        } else {
            (&self.x[2..], &self.w[2..])
        };
        let g = self.window.geometry(space, kernel).ok()?;
        let channels = self.w[0];
        let (given, wanted) = match channels_last {
            true => (self.x[rank - 1], self.w[rank - 1]),
            false => (self.x[1], self.w[1]),
        };
        // With channels innermost an image may have more channels than are read.
        let fitting = match channels_last {
            true => given >= wanted.checked_mul(self.group)?,
            false => given == wanted.checked_mul(self.group)?,
        };
        if !fitting || !channels.is_multiple_of(self.group) || g.output.contains(&0) {
            return None;
        }
        let mut shape = vec![self.x[0]];
        if !channels_last {
            shape.push(channels);
        }
        shape.extend(&g.output);
        if channels_last {
            shape.push(channels);
        }
        fits(shape.iter().copied()).then_some((shape, channels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        let shape = read("float16_x1x64x56x56_w128x64x3x3_stride2x2_dilation1x1_pad1x0_1x1_group1_bias_Relu")
            .unwrap();
        assert_eq!((shape.ty, shape.group, shape.bias, shape.residual), (ElementType::F16, 1, true, false));
        assert_eq!(shape.window.padding, Padding::Explicit(vec![1, 0, 1, 1]));
        assert_eq!(shape.result(false), Some((vec![1, 128, 28, 28], 128)));
        let last = read("float_x2x9x8_w4x3x4_stride1_dilation2_pad0_0_group2_residual_Identity").unwrap();
        assert_eq!(last.result(true), Some((vec![2, 5, 4], 4)));
    }

    #[test]
    fn other_words_are_refused() {
        for word in [
            "",
            "float_x1x2_w1x2_stride1_dilation1_pad0_0_group1_Identity",
            "float_x1x2x3_w1x2_stride1_dilation1_pad0_0_group1_Identity",
            "float_x1x2x3_w1x2x3_stride0_dilation1_pad0_0_group1_Identity",
            "float_x1x2x3_w1x2x3_stride1_dilation1_pad0_0_group0_Identity",
            "float_x1x2x3_w1x2x3_stride1_dilation1_pad0_0_group1_Identity_more",
            "float_x1x1073741823x1073741823_w1x1073741823x1_stride1_dilation1_pad0_0_group1_Identity",
        ] {
            assert!(read(word).is_none(), "{word}");
        }
        let apart = read("float_x1x4x5_w2x3x1_stride1_dilation1_pad0_0_group1_Identity").unwrap();
        assert_eq!(apart.result(false), None);
    }
}
