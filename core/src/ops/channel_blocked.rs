//! Channel-blocked images (NCHW4c of bytes, NCHW2c of bfloat16): neighbouring channels that fill 32 bits lie side by side,
//! as the processor's dot products take them.
//! `[batch, channels, spatial…]` becomes `[batch, channels / count, spatial…, count]`.

use crate::graph::Dim;
use crate::tensor::ElementType;

use super::conv::shape::conv_shape;
use super::window::{Window, spatial};
use super::{AttributeReader, Infer, OpError};

/// Channels of a block; `None` for types of which products take no blocks.
pub fn channels_of_block(ty: ElementType) -> Option<usize> {
    match ty {
        ElementType::U8 | ElementType::I8 => Some(4),
        ElementType::BF16 => Some(2),
        _ => None,
    }
}

/// Whether a convolution's image is channel-blocked, and whether its output and residual are.
pub fn read_channel_blocked(a: &AttributeReader<'_>) -> Result<[bool; 2], OpError> {
    Ok([a.flag("channel_blocked_input", false)?, a.flag("channel_blocked_output", false)?])
}

/// The output's shape of a convolution of input 0, of which it is known what is channel-blocked; `None` while a rank or
/// type is unknown.
pub fn channel_blocked_conv_shape(
    cx: &mut Infer<'_>,
    window: &Window,
    group: usize,
    weight: usize,
    channel_blocked: [bool; 2],
) -> Result<Option<Vec<Dim>>, OpError> {
    let x = match channel_blocked[0] {
        true => channel_blocked_image_shape(cx)?,
        false => spatial(cx)?.and(cx.shape(0)).map(<[Dim]>::to_vec),
    };
    let (Some(x), Some(count)) = (x, count(cx)?) else { return Ok(None) };
    let mut shape = conv_shape(window, group, cx, &x, weight)?;
    if let Some(w) = cx.shape(weight) {
        let of_group = [w[1].clone(), w[0].floor_div(&Dim::from(group))];
        for (i, channels) in of_group.iter().enumerate().filter(|&(i, _)| channel_blocked[i]) {
            let blocks = channels.floor_div(&count);
            if channels.known().is_none() || blocks.mul(&count) != *channels {
                let reason = format!("channels of a group are {channels}; allowed are multiples of {count}");
                return Err(OpError::attribute(
                    ["channel_blocked_input", "channel_blocked_output"][i],
                    reason,
                ));
            }
        }
    }
    if channel_blocked[1] {
        shape[1] = shape[1].floor_div(&count);
        shape.push(count);
    }
    Ok(Some(shape))
}

/// The shape rule of a pooling over all spatial axes of a channel-blocked image: its output has channels.
pub fn infer_global_channel_blocked(cx: &mut Infer<'_>) -> Result<(), OpError> {
    if let Some(mut shape) = channel_blocked_image_shape(cx)? {
        shape[2..].fill(Dim::Known(1));
        cx.set_shape(0, shape);
    }
    Ok(())
}

/// The shape `[batch, channels, spatial…]` of input 0, which is channel-blocked; `None` while a rank or type is unknown.
pub fn channel_blocked_image_shape(cx: &Infer<'_>) -> Result<Option<Vec<Dim>>, OpError> {
    let (Some(x), Some(count)) = (cx.shape(0), count(cx)?) else { return Ok(None) };
    let [batch, blocks, space @ .., block] = x else { return Err(channel_blocked_rank_error(cx, x)) };
    if space.is_empty() {
        return Err(channel_blocked_rank_error(cx, x));
    }
    cx.equal(0, "its last dimension, the channels of a block", &count, block)?;
    Ok(Some([&[batch.clone(), blocks.mul(&count)], space].concat()))
}

/// The shape of an image with its channels in blocks, as many as those of input 0 have.
pub fn into_blocks(cx: &Infer<'_>, mut shape: Vec<Dim>) -> Result<Vec<Dim>, OpError> {
    if let Some(count) = count(cx)? {
        let blocks = shape[1].floor_div(&count);
        if shape[1].known().is_none() || blocks.mul(&count) != shape[1] {
            let reason = format!("there are {} channels; allowed are multiples of {count}", shape[1]);
            return Err(OpError::attribute("channel_blocked_output", reason));
        }
        shape[1] = blocks;
        shape.push(count);
    }
    Ok(shape)
}

fn channel_blocked_rank_error(cx: &Infer<'_>, x: &[Dim]) -> OpError {
    let reason = format!("its rank is {}; allowed are ranks from 4 where channels are blocked", x.len());
    cx.input_error(0, reason)
}

/// Channels of a block of input 0.
fn count(cx: &Infer<'_>) -> Result<Option<Dim>, OpError> {
    let Some(ty) = cx.element_type(0) else { return Ok(None) };
    match channels_of_block(ty) {
        Some(count) => Ok(Some(Dim::from(count))),
        None => Err(cx.input_error(0, format!("its type is {ty}; allowed are uint8, int8 and bfloat16"))),
    }
}
