use super::*;
use crate::tensor::bf16;
use crate::testing::block_channels;

/// Against the definition, with small whole numbers, whose sums are exact.
fn shapes<T: Nchw16cElement + PartialEq>(of: impl Fn(f32) -> T) {
    if !T::available() {
        println!("skipped: this processor has no such vectors");
        return;
    }
    let number = |i: usize| ((i * 7919) % 7) as f32 - 3.0;
    // Image, kernel, stride, dilation, paddings at the begin and the end, channels, room.
    for (image, kernel, stride, dilation, [begin, end], channels, scratch) in [
        ([7, 7], [5, 5], 1, 1, [2, 2], 19, IMAGE_FLOATS),
        ([14, 13], [3, 3], 2, 1, [0, 1], 16, IMAGE_FLOATS),
        ([14, 14], [3, 3], 2, 1, [1, 1], 33, 5 * 16 * 16),
        ([9, 21], [3, 2], 1, 2, [3, 0], 5, 6 * 24 * 16),
        ([1, 1], [3, 3], 1, 1, [1, 1], 2, IMAGE_FLOATS),
        ([6, 5], [1, 1], 2, 1, [0, 0], 17, IMAGE_FLOATS),
    ] {
        let extent =
            |axis: usize| (image[axis] + begin + end - (kernel[axis] - 1) * dilation - 1) / stride + 1;
        let output = [extent(0), extent(1)];
        let geometry = Geometry {
            input: image.to_vec(),
            output: output.to_vec(),
            kernel: kernel.to_vec(),
            strides: vec![stride; 2],
            dilations: vec![dilation; 2],
            pads_begin: vec![begin; 2],
            pads_end: vec![end; 2],
        };
        let lanes = Nchw16c::with_image_of(&geometry, scratch).unwrap();
        let (planes, size, taps) = (2 * channels, image[0] * image[1], kernel[0] * kernel[1]);
        let x: Vec<f32> = (0..planes * size).map(number).collect();
        let kernels: Vec<f32> = (0..channels * taps).map(|i| number(3 * i + 1)).collect();
        let bias: Vec<f32> = (0..channels).map(|i| number(5 * i + 2)).collect();
        let elements = |x: &[f32]| x.iter().map(|&x| of(x)).collect::<Vec<_>>();
        let mut y = vec![of(0.0); planes * output[0] * output[1]];
        lanes.convolve(
            &Pool::new(2),
            &Planes { x: &elements(&x), channels, area: size, width: image[1] },
            1,
            &Nchw16cOutputs {
                images: 2,
                channels,
                kernels: &nchw16c_kernels(&kernels, taps),
                bias: Some(&elements(&bias)),
                activation: Activation::Relu,
                blocked: false,
                out: &Parts::new(&mut y),
            },
        );
        for (i, &y) in y.iter().enumerate() {
            let (plane, row, column) = (i / output[1] / output[0], i / output[1] % output[0], i % output[1]);
            let channel = plane % channels;
            let mut want = bias[channel];
            for tap in 0..taps {
                let at = |position: usize, k: usize, extent: usize| {
                    (position * stride + k * dilation).checked_sub(begin).filter(|&at| at < extent)
                };
                let (v, h) = (at(row, tap / kernel[1], image[0]), at(column, tap % kernel[1], image[1]));
                if let (Some(v), Some(h)) = (v, h) {
                    want += kernels[channel * taps + tap] * x[plane * size + v * image[1] + h];
                }
            }
            let want: f32 = of(want.max(0.0)).into();
            assert_eq!(Into::<f32>::into(y), want, "{image:?} {kernel:?}, {i}");
        }
    }
}

#[test]
fn of_floats() {
    shapes(|x| x);
}

#[test]
fn of_halves() {
    shapes(bf16::from_f32);
}

/// Outputs in NCHW2c are those in NCHW, in another order: with counts of every kind for the last vectors, and in several
/// bands.
#[test]
fn blocked_outputs_of_halves() {
    if !bf16::available() {
        println!("skipped: this processor has no such vectors");
        return;
    }
    for (image, channels, scratch) in [
        ([1, 1], 2, IMAGE_FLOATS),
        ([3, 5], 16, IMAGE_FLOATS),
        ([4, 4], 34, IMAGE_FLOATS),
        ([1, 17], 6, IMAGE_FLOATS),
        ([1, 31], 18, IMAGE_FLOATS),
        ([4, 8], 20, IMAGE_FLOATS),
        ([13, 21], 40, 6 * 24 * 16),
    ] {
        let geometry = Geometry {
            input: image.to_vec(),
            output: image.to_vec(),
            kernel: vec![3; 2],
            strides: vec![1; 2],
            dilations: vec![1; 2],
            pads_begin: vec![1; 2],
            pads_end: vec![1; 2],
        };
        let lanes = Nchw16c::with_image_of(&geometry, scratch).unwrap();
        let area = image[0] * image[1];
        let x: Vec<bf16> =
            (0..2 * channels * area).map(|i| bf16::from_f32((i * 37 % 29) as f32 - 14.0)).collect();
        let kernels: Vec<f32> = (0..channels * 9).map(|i| (i * 11 % 7) as f32 - 3.0).collect();
        let run = |blocked: bool| {
            let mut y = vec![bf16::ZERO; x.len()];
            let outputs = Nchw16cOutputs {
                images: 2,
                channels,
                kernels: &nchw16c_kernels(&kernels, 9),
                bias: None,
                activation: Activation::Identity,
                blocked,
                out: &Parts::new(&mut y),
            };
            let planes = Planes { x: &x, channels, area, width: image[1] };
            lanes.convolve(&Pool::new(3), &planes, 1, &outputs);
            y
        };
        let (_, want) = block_channels((vec![2, channels, image[0], image[1]], run(false)), 2);
        assert_eq!(run(true), want, "{image:?} {channels}");
    }
}
