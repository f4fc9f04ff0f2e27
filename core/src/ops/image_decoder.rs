//! `ImageDecoder`: the pixels of an image file.

use std::sync::Arc;

use crate::graph::Dim;

use super::{Declaration, Infer, OpError, Operator};

/// The order and number of a pixel's channels, which come last in the output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ImageDecoder {
    Rgb,
    Bgr,
    Grayscale,
}

impl ImageDecoder {
    pub fn channels(self) -> usize {
        match self {
            ImageDecoder::Rgb | ImageDecoder::Bgr => 3,
            ImageDecoder::Grayscale => 1,
        }
    }
}

impl Operator for ImageDecoder {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        cx.shape_of_rank(0, 1)?;
        let (height, width) = (cx.unknown(), cx.unknown());
        cx.set_shape(0, vec![height, width, Dim::from(self.channels())]);
        Ok(())
    }
}

const FORMATS: &[(&str, ImageDecoder)] =
    &[("RGB", ImageDecoder::Rgb), ("BGR", ImageDecoder::Bgr), ("Grayscale", ImageDecoder::Grayscale)];

pub(super) const DECLARATIONS: &[Declaration] =
    &[Declaration::new("ImageDecoder", &[20], "encoded_stream:uint8 -> image:uint8", &[], |a| {
        Ok(Arc::new(a.choice("pixel_format", "RGB", FORMATS)?))
    })
    .data_dependent()];
