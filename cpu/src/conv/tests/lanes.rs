//! Output channels in lanes, with every instruction set that this machine has.

use rten_simd::ops::BitOps;
use rten_simd::{Isa, SimdOp};

use super::CASES;
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::lanes::{LanePanels, LanePlan, LaneTile, Outputs};
use crate::loops::parallel::Parts;
use crate::ops::activation::Activation;
use crate::ops::window::{Geometry, Padding, Window};
use crate::testing::{checksum, each_instruction_set, ramp};
use crate::threads::Pool;

/// A convolution of ramps, or the transposed one whose outputs are the image of the geometry.
struct Shape {
    geometry: Geometry,
    transposed: bool,
    images: usize,
    groups: usize,
    /// Output and input channels of a group.
    outputs: usize,
    channels: usize,
}

/// Input, weight, bias.
type Operands = [Vec<f32>; 3];

impl Shape {
    /// Positions of input, output and kernel.
    fn positions(&self) -> [usize; 3] {
        let g = &self.geometry;
        let [image, outputs, kernel] =
            [&g.input, &g.output, &g.kernel].map(|list| list.iter().product::<usize>());
        if self.transposed { [outputs, image, kernel] } else { [image, outputs, kernel] }
    }

    fn operands(&self) -> Operands {
        let [inputs, _, volume] = self.positions();
        let (channels, outputs) = (self.groups * self.channels, self.groups * self.outputs);
        [self.images * channels * inputs, outputs * self.channels * volume, outputs].map(ramp::<f32>)
    }

    fn convolve<I: Isa>(&self, isa: I) -> Vec<f32> {
        let ([x, w, bias], [_, columns, volume]) = (self.operands(), self.positions());
        let (shape, pool) = ([self.outputs, self.channels, volume], Pool::new(2));
        let tile = LaneTile::of_vectors(isa.f32().len());
        let panels = match self.transposed {
            false => LanePanels::new(&w, tile, self.groups, shape, (&pool).into()),
            true => LanePanels::transposed(&w, tile, self.groups, shape, (&pool).into()),
        };
        let mut y = vec![99.0; self.images * self.groups * self.outputs * columns];
        let out = Parts::new(&mut y);
        let activation = Activation::Identity;
        let epilogue =
            F32Epilogue { bias: Some(&bias), residual: None, activation, out: &out, start: 0, columns };
        for threads in [1, 3] {
            let plan = match self.transposed {
                false => LanePlan::new(&self.geometry, &panels, self.images, threads),
                true => LanePlan::transposed(&self.geometry, &panels, self.images, threads),
            };
            for i in 0..plan.count(&panels, self.images) {
                let mut sums = vec![99.0; plan.scratch_len(&panels)];
                let write = |outputs: Outputs<'_>| outputs.eval(isa);
                plan.piece(&panels, i, &x, epilogue, &mut sums, |block| block.eval(isa), write);
            }
        }
        y
    }

    /// The same by its definition.
    fn reference(&self) -> Vec<f32> {
        let ([x, w, bias], [inputs, columns, volume]) = (self.operands(), self.positions());
        let (g, outputs) = (&self.geometry, self.groups * self.outputs);
        // The element of the image that an output of the geometry reads for a position of the kernel.
        let place = |mut o: usize, mut k: usize| {
            let (mut at, mut step) = (0, 1);
            for axis in (0..g.input.len()).rev() {
                let i = o % g.output[axis] * g.strides[axis] + k % g.kernel[axis] * g.dilations[axis];
                let i = i.checked_sub(g.pads_begin[axis]).filter(|&i| i < g.input[axis])?;
                (o, k) = (o / g.output[axis], k / g.kernel[axis]);
                (at, step) = (at + i * step, step * g.input[axis]);
            }
            Some(at)
        };
        let mut y: Vec<f32> =
            (0..self.images * outputs * columns).map(|i| bias[i / columns % outputs]).collect();
        for o in 0..g.output.iter().product::<usize>() {
            for (k, image) in (0..volume).filter_map(|k| Some((k, place(o, k)?))) {
                let (from, to) = if self.transposed { (o, image) } else { (image, o) };
                for row in 0..self.images * outputs {
                    let (group, output) = (row / self.outputs, row % self.outputs);
                    for c in 0..self.channels {
                        let of_weight = match self.transposed {
                            false => row % outputs * self.channels + c,
                            true => (group % self.groups * self.channels + c) * self.outputs + output,
                        };
                        let x = x[(group * self.channels + c) * inputs + from];
                        y[row * columns + to] += x * w[of_weight * volume + k];
                    }
                }
            }
        }
        y
    }
}

#[test]
fn as_torch_does() {
    let mut count = 0;
    for case in CASES.iter().filter(|case| case.x.len() < 5 && !case.y.contains(&0)) {
        let window = Window {
            kernel: vec![],
            strides: case.strides.to_vec(),
            dilations: case.dilations.to_vec(),
            padding: Padding::Explicit(case.pads.to_vec()),
            ceil: false,
        };
        let g = window.geometry(&case.x[2..], &case.w[2..]).unwrap();
        let groups = case.group as usize;
        let [images, outputs, channels] = [case.x[0], case.w[0] / groups, case.w[1]];
        let shape = Shape { geometry: g, transposed: false, images, groups, outputs, channels };
        // Much to do for a build that is not optimised.
        if channels == 0 || case.x.iter().product::<usize>() > 50_000 {
            continue;
        }
        each_instruction_set!(isa => {
            let y = shape.convolve(isa);
            assert_eq!(checksum(&y), case.checksum, "{:?} {:?} {} lanes", case.x, case.w, isa.f32().len());
            count += 1;
        });
    }
    assert!(count > CASES.len());
}

#[test]
fn any_convolution_is_as_defined() {
    let mut state = 12345u32;
    let mut below = |count: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % count
    };
    for _ in 0..150 {
        let axes = 1 + below(2);
        let mut list = |least: usize, most: usize| -> Vec<usize> {
            (0..axes).map(|_| least + below(most - least + 1)).collect()
        };
        let (input, kernel, strides, dilations) = (list(1, 24), list(1, 5), list(1, 3), list(1, 7));
        let (pads_begin, pads_end) = (list(0, 9), list(0, 9));
        // A kernel with its gaps may be larger than the image, but not than that with its padding.
        let output: Vec<usize> = (0..axes)
            .filter_map(|i| {
                let room = input[i] + pads_begin[i] + pads_end[i];
                Some(room.checked_sub((kernel[i] - 1) * dilations[i] + 1)? / strides[i] + 1)
            })
            .collect();
        if output.len() < axes {
            continue;
        }
        let geometry = Geometry { input, kernel, output, strides, dilations, pads_begin, pads_end };
        let (groups, outputs, channels) = (1 + below(3), 1 + below(80), 1 + below(9));
        let (images, transposed) = (1 + below(2), below(3) == 0);
        let shape = Shape { geometry, transposed, images, groups, outputs, channels };
        let want = shape.reference();
        each_instruction_set!(isa => {
            let (got, lanes) = (shape.convolve(isa), isa.f32().len());
            let Shape { geometry, .. } = &shape;
            assert!(got == want, "{geometry:?} {images} {groups} {outputs} {channels} {transposed} {lanes}");
        });
    }
}
