//! The images that are convolved.

use super::interleave::Weave;
use crate::ops::OpError;
use crate::tensor::bytes_of;

/// An image to convolve.
#[derive(Clone, Copy)]
pub(crate) struct Image<'a, T> {
    pub(crate) pixels: Pixels<'a, T>,
    /// Bits of each byte that are turned round.
    pub(crate) flip: u8,
    /// The word of what lies around the image.
    pub(crate) border: u32,
}

/// All channels of an image, as a plan was told that they are given.
#[derive(Clone, Copy)]
pub(crate) enum Pixels<'a, T> {
    Channels(&'a [T]),
    Words(&'a [u32]),
}

impl<'a, T: Weave> Pixels<'a, T> {
    /// A woven image, which begins at a multiple of 4 bytes.
    pub(crate) fn words(image: &'a [T]) -> Result<Self, OpError> {
        bytemuck::try_cast_slice::<u8, u32>(bytes_of(image)).map(Pixels::Words).map_err(|_| {
            OpError::Data("input 0, of woven channels, does not begin at a multiple of 4 bytes".into())
        })
    }
}

/// That woven channels need a plan of words, and there is none for an image and a weight of these shapes.
pub(crate) fn words_needed(image: &[usize], weight: &[usize]) -> OpError {
    OpError::Data(format!(
        "an image of {image:?} and a weight of {weight:?} are not allowed where channels are woven; allowed are those \
         with elements that fit into memory"
    ))
}
