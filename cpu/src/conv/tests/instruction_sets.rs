//! Every instruction set that this machine has, against the same numbers.

use rten_simd::ops::BitOps;
use rten_simd::{Isa, SimdOp};

use super::{CASES, Case};
use crate::conv::common::blocks::VECTORS;
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::lines::Lines;
use crate::conv::common::masks::LONGEST;
use crate::conv::common::planes::{CopyPlanes, Planes};
use crate::conv::depthwise::plane::{OutputPlanes, PlaneLayout};
use crate::conv::direct::gemv::{self, Vector};
use crate::conv::direct::panels::{Panels, rows_of};
use crate::conv::direct::plan;
use crate::conv::direct::tile::Block;
use crate::conv::winograd::conv3x3::scratch_lens;
use crate::conv::winograd::input_transform::InputTransform;
use crate::conv::winograd::output_transform::OutputTransform;
use crate::conv::winograd::tiling::{TileSize, Tiling};
use crate::conv::winograd::weight_transform;
use crate::loops::parallel::Parts;
use crate::ops::activation::Activation;
use crate::ops::window::{Padding, Window};
use crate::testing::{checksum, each_instruction_set, ramp, whole};
use crate::threads::Pool;

fn window(case: &Case) -> Window {
    Window {
        kernel: vec![],
        strides: case.strides.to_vec(),
        dilations: case.dilations.to_vec(),
        padding: Padding::Explicit(case.pads.to_vec()),
        ceil: false,
    }
}

/// The convolution of ramps, in blocks of two tiles; `None` where the general way is taken.
fn convolve<I: Isa>(isa: I, case: &Case) -> Option<Vec<f32>> {
    let planes = Planes::new(&window(case).geometry(&case.x[2..], &case.w[2..]).unwrap())?;
    let (images, channels, groups) = (case.x[0], case.x[1], case.group as usize);
    let (rows, columns) = (case.w[0], case.y[2..].iter().product());
    let (x, w) = (ramp::<f32>(case.x.iter().product()), ramp::<f32>(case.w.iter().product()));
    let bias = ramp::<f32>(rows);
    let mut y = vec![99.0; images * rows * columns];
    let out = Parts::new(&mut y);
    let activation = Activation::Identity;
    let epilogue =
        F32Epilogue { bias: Some(&bias), residual: None, activation, out: &out, start: 0, columns };
    let len = isa.f32().len();
    if groups > 1 && case.w[1] == 1 {
        let layout = PlaneLayout::new(&window(case).geometry(&case.x[2..], &case.w[2..]).unwrap())?;
        let work = OutputPlanes {
            layout: &layout,
            images: &x,
            kernels: &w,
            channels,
            multiplier: rows / channels,
            outputs: 0..images * rows,
            scratch: &mut vec![99.0; layout.scratch_len()],
            padded: false,
            epilogue,
        };
        work.eval(isa);
        return Some(y);
    }
    let (m, taps) = (rows / groups, plan::taps(&planes, case.w[1], planes.size(), 0));
    let panels = Panels::new(&w, rows_of(isa), groups, m, taps.len(), (&Pool::new(2)).into());
    for image in 0..images {
        let data = &x[image * channels * planes.image()..][..channels * planes.image()];
        let mut scratch = vec![99.0; channels * planes.size()];
        if planes.copied() {
            CopyPlanes { planes: &planes, image: data, channel: planes.image(), first: 0, out: &mut scratch }
                .eval(isa);
        }
        let source = if planes.copied() { &scratch } else { data };
        for g in 0..groups {
            for start in (0..planes.positions).step_by(2 * VECTORS * len) {
                let block = Block {
                    panels: panels.from(g, 0),
                    origin: 0,
                    panel: panels.size(),
                    taps: &taps,
                    planes: &source[g * case.w[1] * planes.size()..][..case.w[1] * planes.size()],
                    columns: start..(start + 2 * VECTORS * len).min(planes.positions),
                    lines: planes.lines,
                    rows: g * m..(g + 1) * m,
                    epilogue: F32Epilogue { start: image * rows * columns, ..epilogue },
                    scratch: &mut vec![0.0; 16 * taps.len()],
                    next: None,
                };
                block.eval(isa);
            }
        }
    }
    Some(y)
}

#[test]
fn as_torch_does_with_every_instruction_set() {
    let mut direct = 0;
    for case in CASES.iter().filter(|case| case.x.len() < 5) {
        each_instruction_set!(isa => if let Some(y) = convolve(isa, case) {
            assert_eq!(checksum(&y), case.checksum, "{:?} {:?} {} lanes", case.x, case.w, isa.f32().len());
            direct += 1;
        });
    }
    assert!(direct > CASES.len());
}

/// Tiles that end where lines do, and those that run over the gaps, in blocks of one line with its gap, of a part of one, of
/// some lines and of all.
#[test]
fn blocks_of_lines_with_gaps() {
    let mut count = 0;
    for (channels, image, kernel, activation) in [
        (4, [9, 120], [1, 27], Activation::Identity),
        (3, [6, 130], [1, 30], Activation::Relu),
        (2, [7, 61], [3, 14], Activation::Silu),
        (3, [8, 34], [5, 3], Activation::Relu),
        (5, [5, 115], [2, 2], Activation::HardSwish),
    ] {
        let window = Window {
            kernel: vec![],
            strides: vec![1, 1],
            dilations: vec![1, 1],
            padding: Padding::Valid,
            ceil: false,
        };
        let geometry = window.geometry(&image, &kernel).unwrap();
        let planes = Planes::of_any(&geometry).unwrap();
        let (m, area) = (11, geometry.output.iter().product::<usize>());
        let taps = plan::taps(&planes, channels, planes.size(), 0);
        let (x, w) = (ramp::<f32>(channels * planes.size()), ramp::<f32>(m * taps.len()));
        let mut want = vec![0.0; m * area];
        for (i, y) in want.iter_mut().enumerate() {
            let (row, line, column) =
                (i / area, i % area / geometry.output[1], i % area % geometry.output[1]);
            let at = line * planes.pitch + column;
            *y = taps.iter().zip(&w[row * taps.len()..]).map(|(tap, w)| x[at + tap] * w).sum();
        }
        crate::gemm::activate(activation, &mut want);
        each_instruction_set!(isa => for columns in [planes.pitch, 2 * VECTORS * isa.f32().len(), 3 * planes.pitch, usize::MAX] {
            let panels = Panels::new(&w, rows_of(isa), 1, m, taps.len(), (&Pool::new(2)).into());
            let mut y = vec![f32::NAN; m * area];
            let out = Parts::new(&mut y);
            for start in (0..planes.positions).step_by(columns) {
                let block = Block {
                    panels: panels.from(0, 0),
                    origin: 0,
                    panel: panels.size(),
                    taps: &taps,
                    planes: &x,
                    columns: start..start.saturating_add(columns).min(planes.positions),
                    lines: planes.lines,
                    rows: 0..m,
                    epilogue: F32Epilogue { bias: None, residual: None, activation, out: &out, start: 0, columns: area },
                    scratch: &mut vec![0.0; 16 * taps.len()],
                    next: None,
                };
                block.eval(isa);
            }
            let near = |(y, want): (&f32, &f32)| (y - want).abs() <= 1e-5 * want.abs().max(1.0);
            assert!(y.iter().zip(&want).all(near), "{image:?} {kernel:?}, blocks of {columns}, {} lanes", isa.f32().len());
            count += 1;
        });
    }
    assert!(count >= 20);
}

/// The same by way of tiles' numbers; `None` where that way is not taken.
fn convolve3x3<I: Isa>(isa: I, size: TileSize, case: &Case) -> Option<Vec<f32>> {
    let plain = [case.strides, case.dilations].iter().all(|list| list.iter().all(|&x| x == 1));
    let (&[m, channels, 3, 3], true, 1) = (case.w, plain, case.group) else { return None };
    if case.x.contains(&0) || case.y.contains(&0) {
        return None;
    }
    let tiling = &Tiling::new(size, &window(case).geometry(&case.x[2..], &[3, 3]).unwrap());
    let (columns, channel) = (case.y[2..].iter().product(), case.x[2..].iter().product());
    let (x, w) = (ramp::<f32>(case.x.iter().product()), ramp::<f32>(case.w.iter().product()));
    let bias = ramp::<f32>(m);
    let panels = weight_transform::panels(size, &w, rows_of(isa), [m, channels], (&Pool::new(2)).into());
    let mut y = vec![99.0; case.x[0] * m * columns];
    let out = Parts::new(&mut y);
    let activation = Activation::Identity;
    let plain = F32Epilogue { bias: None, residual: None, activation, out: &out, start: 0, columns };
    let [of_inputs, of_outputs] = scratch_lens(tiling);
    for (i, image) in x.chunks_exact(channels * channel).enumerate() {
        let count = tiling.count();
        let mut transformed = vec![99.0; size.elements() * channels * count];
        let (parts, step, scratch) =
            (Parts::new(&mut transformed), channels * count, &mut vec![f32::NAN; of_inputs]);
        InputTransform {
            tiling,
            image,
            channel,
            channels: 0..channels,
            first: 0,
            transformed: &parts,
            step,
            scratch,
        }
        .eval(isa);
        let mut sums = vec![99.0; size.elements() * m * count + LONGEST];
        let parts = Parts::new(&mut sums);
        for number in 0..size.elements() {
            let block = Block {
                panels: panels.from(number, 0),
                origin: 0,
                panel: panels.size(),
                taps: &(0..channels).map(|c| c * count).collect::<Vec<_>>(),
                planes: &transformed[number * channels * count..][..channels * count],
                columns: 0..count,
                lines: Lines::whole(count),
                rows: 0..m,
                epilogue: F32Epilogue { out: &parts, start: number * m * count, columns: count, ..plain },
                scratch: &mut vec![0.0; 16 * channels],
                next: None,
            };
            block.eval(isa);
        }
        let epilogue = F32Epilogue { bias: Some(&bias), start: i * m * columns, ..plain };
        let (step, scratch) = (m * count, &mut vec![f32::NAN; of_outputs]);
        OutputTransform { tiling, sums: &sums, step, first: 0, rows: 0..m, epilogue, scratch }.eval(isa);
    }
    Some(y)
}

#[test]
fn winograd_as_torch_does_with_every_instruction_set() {
    for size in [TileSize::Small, TileSize::Large] {
        let mut count = 0;
        for case in CASES.iter().filter(|case| case.x.len() == 4) {
            each_instruction_set!(isa => if let Some(y) = convolve3x3(isa, size, case) {
                let what = format!("{size:?} {:?} {:?} {} lanes", case.x, case.w, isa.f32().len());
                assert_eq!(checksum(&whole(&y)), case.checksum, "{what}");
                count += 1;
            });
        }
        assert!(count > 5);
    }
}

#[test]
fn a_vector_with_every_instruction_set() {
    // Panels of 4 and 8 rows: some, and so many that several are multiplied at a time; sums of one part and of several.
    for (m, k) in [(19, 21), (64, 8), (140, 37), (67, 1), (65, 300)] {
        let (x, w) = (ramp::<f32>(k), ramp::<f32>(m * k));
        let want: Vec<f32> = w.chunks(k).map(|row| row.iter().zip(&x).map(|(a, b)| a * b).sum()).collect();
        each_instruction_set!(isa => {
            let rows = rows_of(isa);
            let panels = Panels::new(&w, rows, 1, m, k, (&Pool::new(2)).into());
            let mut scratch = vec![0.0; rows * k];
            gemv::repeat(&x, rows, &mut scratch);
            let mut y = vec![99.0; m];
            let out = Parts::new(&mut y);
            let (activation, bias, residual) = (Activation::Identity, None, None);
            let epilogue = F32Epilogue { bias, residual, activation, out: &out, start: 0, columns: 1 };
            Vector { panels: panels.from(0, 0), x: &scratch, rows: 0..m, epilogue }.eval(isa);
            assert_eq!(y, want, "{m} rows of {k}");
            // Rows from the second panel on, of the second image, with all that may be added.
            let (bias, residual) = (ramp::<f32>(m), ramp::<f32>(2 * m));
            let mut y = vec![99.0; 2 * m];
            let out = Parts::new(&mut y);
            let epilogue = F32Epilogue {
                bias: Some(&bias),
                residual: Some(&residual),
                activation: Activation::Relu,
                out: &out,
                start: m,
                columns: 1,
            };
            Vector { panels: panels.from(0, rows), x: &scratch, rows: rows..m, epilogue }.eval(isa);
            let sum = |i: usize| (want[i] + bias[i] + residual[m + i]).max(0.0);
            let want: Vec<f32> = (0..2 * m).map(|i| if i < m + rows { 99.0 } else { sum(i - m) }).collect();
            assert_eq!(y, want, "{m} rows of {k}, from the second panel on");
        });
    }
}

#[test]
fn panels_are_a_left_operand_too() {
    use crate::gemm::Source;
    let (groups, m, k) = (2, 11, 5);
    let w = ramp::<f32>(groups * m * k);
    let panels = Panels::new(&w, 4, groups, m, k, (&Pool::new(2)).into());
    let mut block = vec![0.0; 7 * 3];
    panels.fill(3, 2..9, 1..4, &mut block);
    let want: Vec<f32> = (2..9).flat_map(|i| w[m * k + i * k..][1..4].to_vec()).collect();
    assert_eq!(block, want);
}

#[test]
fn activations_are_those_of_products() {
    let activations = [
        Activation::Identity,
        Activation::Relu,
        Activation::LeakyRelu { alpha: 0.25 },
        Activation::Clip { min: -1.0, max: 1.5 },
        Activation::Sigmoid,
        Activation::Tanh,
        Activation::HardSigmoid { alpha: 0.2, beta: 0.5 },
        Activation::HardSwish,
        Activation::Silu,
        Activation::Softplus,
    ];
    // A depthwise convolution and one of tiles, both with weight 1.
    let x: Vec<f32> = (0..2 * 37).map(|i| i as f32 * 0.25 - 9.0).collect();
    let (w, residual) = ([1.0, 1.0], vec![0.5; x.len()]);
    let none = Vec::new;
    let window =
        Window { kernel: none(), strides: none(), dilations: none(), padding: Padding::Valid, ceil: false };
    let geometry = window.geometry(&[37], &[1]).unwrap();
    for activation in activations {
        let mut want: Vec<f32> = x.iter().map(|x| x + 0.5).collect();
        crate::gemm::activate(activation, &mut want);
        let close =
            |y: &[f32]| y.iter().zip(&want).all(|(y, want)| (y - want).abs() <= 1e-6 * want.abs().max(1.0));
        each_instruction_set!(isa => {
            let mut y = vec![99.0; x.len()];
            let out = Parts::new(&mut y);
            let residual = Some(residual.as_slice());
            let epilogue = F32Epilogue { bias: None, residual, activation, out: &out, start: 0, columns: 37 };
            let layout = PlaneLayout::new(&geometry).unwrap();
            let scratch = &mut vec![0.0; layout.scratch_len()];
            let work = OutputPlanes {
                layout: &layout,
                images: &x,
                kernels: &w,
                channels: 2,
                multiplier: 1,
                outputs: 0..2,
                scratch,
                padded: false,
                epilogue,
            };
            work.eval(isa);
            assert!(close(&y), "{activation:?}: {y:?}");
            let mut y = vec![99.0; x.len()];
            let out = Parts::new(&mut y);
            for row in 0..2 {
                let panels = Panels::new(&w[..1], rows_of(isa), 1, 1, 1, (&Pool::new(1)).into());
                let block = Block {
                    panels: panels.from(0, 0),
                    origin: 0,
                    panel: panels.size(),
                    taps: &[0],
                    planes: &x[row * 37..][..37],
                    columns: 0..37,
                    lines: Lines::whole(37),
                    rows: row..row + 1,
                    epilogue: F32Epilogue { bias: None, residual, activation, out: &out, start: 0, columns: 37 },
                    scratch: &mut [0.0; 16],
                    next: None,
                };
                block.eval(isa);
            }
            assert!(close(&y), "{activation:?}: {y:?}");
        });
    }
}
