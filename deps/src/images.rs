//! Pictures from files: BMP, JPEG, JPEG 2000, PNG, PNM, TIFF and WebP.

use std::io::Cursor;

use hayro_jpeg2000::{ColorSpace, DecodeSettings, DecoderContext, Image};
use image::{DynamicImage, GrayImage, ImageReader, RgbImage};

/// A picture with three bytes a pixel: red, green, blue; rows from the top.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    pub width: usize,
    pub height: usize,
    pub pixels: Vec<u8>,
}

/// Reads an encoded picture, whose format its first bytes tell; `None` where that fails.
pub fn decode(encoded: &[u8]) -> Option<Picture> {
    const JPEG_2000: [&[u8]; 2] = [b"\0\0\0\x0cjP  \r\n\x87\n", b"\xff\x4f\xff\x51"];
    let image = match JPEG_2000.iter().any(|magic| encoded.starts_with(magic)) {
        true => decode_jpeg_2000(encoded)?,
        // It has a limit of its own for the memory that a file may ask for.
        false => ImageReader::new(Cursor::new(encoded)).with_guessed_format().ok()?.decode().ok()?,
    };
    let image = image.into_rgb8();
    let (width, height) = image.dimensions();
    Some(Picture { width: width as usize, height: height as usize, pixels: image.into_raw() })
}

/// An image of more pixels counts as one that cannot be decoded: a file of a few bytes can claim any size.
const MOST_PIXELS: u64 = 1 << 28;

fn decode_jpeg_2000(encoded: &[u8]) -> Option<DynamicImage> {
    let image = Image::new(encoded, &DecodeSettings::default()).ok()?;
    let (width, height) = (image.width(), image.height());
    if width as u64 * height as u64 > MOST_PIXELS {
        return None;
    }
    let mut context = DecoderContext::default();
    let samples = image.decode(&mut context).ok()?.data_u8();
    let colors = match image.color_space() {
        ColorSpace::CMYK => return None,
        other => other.num_channels() as usize,
    };
    let stride = colors + usize::from(image.has_alpha());
    if colors == 1 {
        let gray = samples.chunks_exact(stride).map(|pixel| pixel[0]).collect();
        return GrayImage::from_raw(width, height, gray).map(DynamicImage::ImageLuma8);
    }
    if colors != 3 {
        return None;
    }
    let rgb = samples.chunks_exact(stride).flat_map(|pixel| &pixel[..3]).copied().collect();
    RgbImage::from_raw(width, height, rgb).map(DynamicImage::ImageRgb8)
}
