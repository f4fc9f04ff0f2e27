use super::*;
use crate::conv::depthwise::nchw16c::nchw16c_kernels;

/// Against the definition, with small whole numbers, whose sums are exact.
#[test]
fn windows_of_planes() {
    if !crate::isa::has_avx2() {
        println!("skipped: this processor has no such vectors");
        return;
    }
    let number = |i: usize| ((i * 7919) % 7) as f32 - 3.0;
    let affine = Activation::Affine { alpha: 2.0, beta: 1.0 };
    // Image, kernel, stride, dilation, paddings at the begin and the end, channels, threads.
    for (image, kernel, stride, dilation, [begin, end], channels, threads) in [
        (&[7, 7][..], &[5, 5][..], 1, 1, [2, 2], 19, 1),
        (&[14, 13], &[3, 3], 2, 1, [0, 1], 16, 2),
        (&[14, 14], &[3, 3], 2, 1, [1, 1], 33, 1),
        (&[60, 55], &[3, 3], 1, 1, [1, 1], 24, 2),
        (&[61, 58], &[5, 5], 2, 1, [2, 1], 40, 2),
        (&[9, 400], &[3, 5], 2, 1, [2, 2], 8, 2),
        (&[9, 21], &[3, 2], 1, 2, [3, 0], 5, 1),
        (&[40, 9], &[7, 7], 1, 3, [9, 9], 17, 1),
        (&[1, 1], &[3, 3], 1, 1, [1, 1], 2, 1),
        (&[2, 3], &[3, 3], 1, 1, [4, 4], 12, 2),
        (&[6, 5], &[1, 1], 2, 1, [0, 0], 17, 1),
        (&[300], &[9], 1, 1, [8, 0], 20, 2),
        (&[25], &[3], 2, 2, [1, 2], 9, 1),
    ] {
        let extents = image.iter().zip(kernel);
        let extents = extents.map(|(&x, &k)| (x + begin + end - (k - 1) * dilation - 1) / stride + 1);
        let (axes, output) = (image.len(), extents.collect::<Vec<usize>>());
        let geometry = Geometry {
            input: image.to_vec(),
            output: output.clone(),
            kernel: kernel.to_vec(),
            strides: vec![stride; axes],
            dilations: vec![dilation; axes],
            pads_begin: vec![begin; axes],
            pads_end: vec![end; axes],
        };
        let way = Nchw8c::new(&geometry, channels, 2, threads).unwrap();
        let [size, taps, outputs] = [image, kernel, &output].map(|list| list.iter().product::<usize>());
        let planes = 2 * channels;
        let x: Vec<f32> = (0..planes * size).map(number).collect();
        let weight: Vec<f32> = (0..channels * taps).map(|i| number(3 * i + 1)).collect();
        let bias: Vec<f32> = (0..channels).map(|i| number(5 * i + 2)).collect();
        let kernels = nchw16c_kernels(&weight, taps);
        for activation in [Activation::Relu, affine] {
            let mut y = vec![0.0; planes * outputs];
            let all = Nchw8cOutputs {
                images: 2,
                channels,
                kernels: &kernels,
                bias: Some(&bias),
                activation,
                out: &Parts::new(&mut y),
            };
            way.convolve_planes(&Pool::new(threads), &x, &all);
            for (i, &y) in y.iter().enumerate() {
                let (plane, at) = (i / outputs, i % outputs);
                let channel = plane % channels;
                // One axis is many lines of one element.
                let last = |list: &[usize]| if axes == 1 { 1 } else { list[1] };
                let mut want = bias[channel];
                for tap in 0..taps {
                    let place = |position: usize, k: usize, extent: usize| {
                        (position * stride + k * dilation).checked_sub(begin).filter(|&at| at < extent)
                    };
                    let line = place(at / last(&output), tap / last(kernel), image[0]);
                    let column = match axes {
                        1 => Some(0),
                        _ => place(at % last(&output), tap % last(kernel), last(image)),
                    };
                    if let (Some(line), Some(column)) = (line, column) {
                        want += weight[channel * taps + tap] * x[plane * size + line * last(image) + column];
                    }
                }
                let want = if activation == affine { 2.0 * want + 1.0 } else { want.max(0.0) };
                assert_eq!(y, want, "{image:?} {kernel:?}, {i}");
            }
        }
    }
}
