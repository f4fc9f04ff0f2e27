//! Operators on images with their channels innermost, `[batch, spatial…, channels]` (NHWC), which the passes make
//! for GPUs.

use std::sync::Arc;

use crate::graph::Dim;

use super::activation::Activation;
use super::conv::shape::conv_shape_of;
use super::conv::{RESIDUAL, read_group};
use super::norm::{GroupNorm, read_group_norm};
use super::pool::{Pool, Reduction, read_window};
use super::window::{Window, spatial};
use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// `activation(W ∗ X + B + residual)`, as `Conv`. The weight is `[out channels, kernel…, channels of a group]`, or
/// `[1, kernel…, channels]` where every channel is a group of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct NhwcConv {
    pub window: Window,
    pub group: usize,
    pub activation: Activation,
}

impl NhwcConv {
    /// Whether a weight of such a first dimension has one tap for each channel.
    pub fn is_depthwise(&self, first: usize) -> bool {
        self.group > 1 && first == 1
    }

    fn parse(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
        let (window, group, activation) = (Window::read(a)?, read_group(a)?, Activation::read(a)?);
        Ok(Arc::new(NhwcConv { window, group, activation }))
    }
}

/// `[batch, spatial…, channels]` as `[batch, channels, spatial…]`.
fn channels_first(shape: &[Dim]) -> Vec<Dim> {
    let [batch, space @ .., channels] = shape else { return shape.to_vec() };
    [&[batch.clone(), channels.clone()], space].concat()
}

fn channels_last(mut shape: Vec<Dim>) -> Vec<Dim> {
    shape[1..].rotate_left(1);
    shape
}

impl Operator for NhwcConv {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let (Some(_), Some(x)) = (spatial(cx)?, cx.shape(0)) else { return Ok(()) };
        let weight = cx.shape(1).map(|w| {
            let mut w = channels_first(w);
            if let [first, second, ..] = &mut w[..]
                && self.group > 1
                && first.known() == Some(1)
            {
                std::mem::swap(first, second);
            }
            w
        });
        let shape = conv_shape_of(&self.window, self.group, cx, &channels_first(x), (1, weight.as_deref()))?;
        if let (Some(bias), Some(w)) = (cx.shape_of_rank(2, 1)?, &weight) {
            cx.equal(2, "its length", &w[0], &bias[0])?;
        }
        let shape = channels_last(shape);
        if let Some(residual) = cx.shape_of_rank(RESIDUAL, shape.len())? {
            for (want, given) in shape.iter().zip(residual) {
                cx.equal(RESIDUAL, "its dimension", want, given)?;
            }
        }
        cx.set_shape(0, shape);
        Ok(())
    }
}

/// A maximum or mean over windows.
#[derive(Clone, Debug, PartialEq)]
pub struct NhwcPool(pub Pool);

impl NhwcPool {
    fn parse(a: &AttributeReader<'_>, reduction: Reduction) -> Result<Arc<dyn Operator>, OpError> {
        Ok(Arc::new(NhwcPool(Pool { window: read_window(a)?, reduction, column_major: false })))
    }
}

impl Operator for NhwcPool {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let (Some(_), Some(x)) = (spatial(cx)?, cx.shape(0)) else { return Ok(()) };
        let shape = channels_last(self.0.output(&channels_first(x))?);
        cx.set_shape(0, shape);
        Ok(())
    }
}

/// Group normalisation, with scale and shift as `by_group` says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NhwcGroupNorm(pub GroupNorm);

impl Operator for NhwcGroupNorm {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let (Some(_), Some(x)) = (spatial(cx)?, cx.shape(0)) else { return Ok(()) };
        self.0.infer_of(cx, x, &x[x.len() - 1])
    }
}

/// `X · activation(H · Wᵀ + B)`: each channel of an image times a gate, which is made of the image's few numbers
/// `[batch, 1…, inner]`. The weight is `[channels, 1…, inner]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NhwcExcite {
    pub activation: Activation,
}

impl Operator for NhwcExcite {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(x) = cx.shape(0) else { return Ok(()) };
        let ([batch, _, .., channels], rank) = (x, x.len()) else {
            return Err(cx.input_error(0, format!("its rank is {}; allowed is 3 and above", x.len())));
        };
        let (hidden, weight) = (cx.shape_of_rank(1, rank)?, cx.shape_of_rank(2, rank)?);
        for (i, shape, first) in [(1, hidden, batch), (2, weight, channels)] {
            let Some(shape) = shape else { continue };
            cx.equal(i, "its first dimension", first, &shape[0])?;
            for dim in &shape[1..rank - 1] {
                cx.equal(i, "its dimension", &Dim::Known(1), dim)?;
            }
        }
        if let (Some(hidden), Some(weight)) = (hidden, weight) {
            cx.equal(2, "its last dimension", &hidden[rank - 1], &weight[rank - 1])?;
        }
        if let Some(bias) = cx.shape_of_rank(3, 1)? {
            cx.equal(3, "its length", channels, &bias[0])?;
        }
        cx.set_shape(0, x.to_vec());
        Ok(())
    }
}

/// `[batch, channels, lines, columns]` as `[batch, lines / block, columns / block, channels of blocks]`: a pixel holds
/// each channel's block line by line, and then zeros up to `channels`. Zeros of `pads` (top, left, bottom, right) lie
/// around the image; lines and columns that fill no block are left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NhwcSpaceToDepth {
    /// Lines and columns of a block.
    pub blocks: [usize; 2],
    pub pads: [usize; 4],
    pub channels: usize,
}

impl NhwcSpaceToDepth {
    fn parse(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
        let list = |name: &str, least: i64| -> Result<Vec<usize>, OpError> {
            let list = a.ints(name)?.unwrap_or(&[]);
            let allowed = least..=i32::MAX as i64;
            match list.iter().find(|&n| !allowed.contains(n)) {
                Some(n) => Err(OpError::attribute(
                    name,
                    format!("{n} is not allowed; allowed is {least} to 2147483647"),
                )),
                None => Ok(list.iter().map(|&n| n as usize).collect()),
            }
        };
        let entries = |name: &str, want: usize, found: usize| {
            OpError::attribute(name, format!("it has {found} entries; allowed is {want}"))
        };
        let (blocks, pads, channels) = (list("blocks", 1)?, list("pads", 0)?, a.int("channels", 0)?);
        Ok(Arc::new(NhwcSpaceToDepth {
            blocks: blocks[..].try_into().map_err(|_| entries("blocks", 2, blocks.len()))?,
            pads: pads[..].try_into().map_err(|_| entries("pads", 4, pads.len()))?,
            channels: usize::try_from(channels).map_err(|_| {
                OpError::attribute("channels", format!("{channels} is not allowed; allowed is 0 and more"))
            })?,
        }))
    }
}

impl Operator for NhwcSpaceToDepth {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some([batch, channels, lines, columns]) = cx.shape_of_rank(0, 4)? else { return Ok(()) };
        let [height, width] = self.blocks;
        if let Some(channels) = channels.known()
            && channels.saturating_mul((height * width) as i64) > self.channels as i64
        {
            let reason = format!("blocks of {channels} channels have more than {}", self.channels);
            return Err(cx.input_error(0, reason));
        }
        let [top, left, bottom, right] = self.pads;
        let blocks =
            |size: &Dim, pad: usize, block: usize| size.add(&Dim::from(pad)).floor_div(&Dim::from(block));
        let shape = vec![
            batch.clone(),
            blocks(lines, top + bottom, height),
            blocks(columns, left + right, width),
            Dim::from(self.channels),
        ];
        cx.set_shape(0, shape);
        Ok(())
    }
}

const FLOAT: &[(&str, Types)] = &[("T", Types::FLOAT)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("NhwcConv", &[1], "X:T, W:T, B?:T, Z?:T -> Y:T", FLOAT, NhwcConv::parse).domain("rukh"),
    Declaration::new("NhwcMaxPool", &[1], "X:T -> Y:T", FLOAT, |a| NhwcPool::parse(a, Reduction::Max))
        .domain("rukh"),
    Declaration::new("NhwcAveragePool", &[1], "X:T -> Y:T", FLOAT, |a| {
        let count_padding = a.flag("count_include_pad", false)?;
        NhwcPool::parse(a, Reduction::Average { count_padding })
    })
    .domain("rukh"),
    Declaration::new("NhwcGroupNormalization", &[1], "X:T, scale:T, bias:T -> Y:T", FLOAT, |a| {
        Ok(Arc::new(NhwcGroupNorm(read_group_norm(a, a.flag("by_group", false)?)?)))
    })
    .domain("rukh"),
    Declaration::new("NhwcExcite", &[1], "X:T, H:T, W:T, B?:T -> Y:T", FLOAT, |a| {
        Ok(Arc::new(NhwcExcite { activation: Activation::read(a)? }))
    })
    .domain("rukh"),
    Declaration::new("NhwcSpaceToDepth", &[1], "X:T -> Y:T", FLOAT, NhwcSpaceToDepth::parse).domain("rukh"),
];
