//! `ImageDecoder`: BMP, JPEG, JPEG 2000, PNG, PNM, TIFF and WebP.

use rukh_deps::images::decode;

use crate::ops::OpError;
use crate::ops::image_decoder::ImageDecoder;
use crate::tensor::{Tensor, Value, ValueRef};

use crate::kernel::{CpuKernel, Entry, KernelContext, NodeContext, ValueKernel};

pub(super) const KERNELS: &[Entry] = &[Entry::new("ImageDecoder", build)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    Ok(CpuKernel::Value(Box::new(Decode(*node.op::<ImageDecoder>()))))
}

struct Decode(ImageDecoder);

impl ValueKernel for Decode {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let Some(encoded) = inputs.first().copied().flatten().and_then(ValueRef::view) else {
            return Err(OpError::Data("input 0 (encoded_stream) must be a tensor of bytes".to_owned()));
        };
        // The standard wants an empty image where nothing can be decoded.
        let picture = decode(encoded.bytes()).unwrap_or_default();
        let shape = [picture.height, picture.width, self.0.channels()];
        let mut pixels = picture.pixels;
        match self.0 {
            ImageDecoder::Rgb => {}
            ImageDecoder::Bgr => pixels.chunks_exact_mut(3).for_each(|pixel| pixel.swap(0, 2)),
            ImageDecoder::Grayscale => pixels = pixels.chunks_exact(3).map(luma).collect(),
        }
        Ok(vec![Value::Tensor(Tensor::from_slice(&shape, &pixels)?)])
    }
}

/// The luma of ITU-R BT.601 with weights in units of 2⁻¹⁶, as Pillow has them, which the standard's
/// cases were made with.
fn luma(pixel: &[u8]) -> u8 {
    let [r, g, b] = [pixel[0], pixel[1], pixel[2]].map(u32::from);
    ((19595 * r + 38470 * g + 7471 * b + (1 << 15)) >> 16) as u8
}

#[cfg(test)]
mod tests {
    use crate::graph::Attribute;
    use crate::testing::{elements, run, t};

    /// Pixels [[255, 0, 0], [0, 128, 255]], [[10, 20, 30], [200, 100, 50]], as Pillow writes them.
    const PNG: &str = "89504e470d0a1a0a0000000d4948445200000002000000020802000000fdd49a73000000164944\
                       4154789c63f8cfc0c0d0f09f895b44eec41363001ef8049da487551a0000000049454e44ae426082";
    const BMP: &str = "424d460000000000000036000000280000000200000002000000010018000000000010000000\
                       c40e0000c40e000000000000000000001e140a3264c800000000ffff80000000";
    /// The same as a text: P3, two by two.
    const PNM: &str = "50330a3220320a3235350a32353520302030203020313238203235350a3130203230203330203230\
                       30203130302035300a";
    /// Pixels [7, 200], without colour.
    const GRAY: &str = "89504e470d0a1a0a0000000d4948445200000002000000010800000000d14920560000000b494441\
                        54789c63603f010000d900d0d7a6223c0000000049454e44ae426082";

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter_map(|c| (c as char).to_digit(16)).map(|d| d as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    #[test]
    fn pixels_match_pillows() {
        let rgb = [255u8, 0, 0, 0, 128, 255, 10, 20, 30, 200, 100, 50];
        let bgr = [0u8, 0, 255, 255, 128, 0, 30, 20, 10, 50, 100, 200];
        let nothing = "00ff";
        for (file, format, shape, want) in [
            (PNG, "RGB", [2, 2, 3], &rgb[..]),
            (BMP, "RGB", [2, 2, 3], &rgb),
            (PNM, "RGB", [2, 2, 3], &rgb),
            (PNG, "BGR", [2, 2, 3], &bgr),
            (PNG, "Grayscale", [2, 2, 1], &[76, 104, 18, 124]),
            (GRAY, "Grayscale", [1, 2, 1], &[7, 200]),
            (GRAY, "RGB", [1, 2, 3], &[7, 7, 7, 200, 200, 200]),
            (&PNG[..60], "RGB", [0, 0, 3], &[]),
            (nothing, "Grayscale", [0, 0, 1], &[]),
            ("0000000c6a5020200d0a870a00", "RGB", [0, 0, 3], &[]),
            ("", "BGR", [0, 0, 3], &[]),
        ] {
            let file = bytes(file);
            let format = [("pixel_format", Attribute::String(format.into()))];
            let got = run("ImageDecoder", 20, &format, &[t(&[file.len()], &file)], 1).unwrap();
            assert_eq!(elements::<u8>(&got[0]), (shape.to_vec(), want.to_vec()), "{format:?}");
        }
    }
}
