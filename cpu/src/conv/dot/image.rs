//! The images that are convolved.

use super::interleave::Interleave;
use crate::ops::OpError;
use crate::tensor::bytes_of;

/// An image to convolve.
#[derive(Clone, Copy)]
pub(crate) struct Image<'a, T> {
    pub(crate) pixels: Pixels<'a, T>,
    /// The sign bit of each byte where it is to be flipped, which makes signed bytes unsigned ones; else 0.
    pub(crate) flip: u8,
    /// The dot group of what lies around the image.
    pub(crate) border: u32,
}

/// All channels of an image, as a plan was told that they are given.
#[derive(Clone, Copy)]
pub(crate) enum Pixels<'a, T> {
    Nchw(&'a [T]),
    ChannelBlocked(&'a [u32]),
}

impl<'a, T: Interleave> Pixels<'a, T> {
    /// A channel-blocked image, which begins at a multiple of 4 bytes.
    pub(crate) fn channel_blocked(image: &'a [T]) -> Result<Self, OpError> {
        channel_blocked(image).map(Pixels::ChannelBlocked)
    }
}

/// The dot groups of a channel-blocked image, which begins at a multiple of 4 bytes.
pub(crate) fn channel_blocked<T: Interleave>(image: &[T]) -> Result<&[u32], OpError> {
    bytemuck::try_cast_slice::<u8, u32>(bytes_of(image)).map_err(|_| {
        OpError::Data("input 0, a channel-blocked image, does not begin at a multiple of 4 bytes".into())
    })
}

/// That channel-blocked images need a plan of dot groups, and there is none for an image and a weight of these shapes.
pub(crate) fn dot_plan_needed(image: &[usize], weight: &[usize]) -> OpError {
    OpError::Data(format!(
        "an image of {image:?} and a weight of {weight:?} are not allowed for channel-blocked images; allowed are those \
         with elements that fit into memory"
    ))
}
