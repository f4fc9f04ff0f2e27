//! Dilated convolution with kernels of 3 × 3 as one without dilation. Outputs whose rows and columns are alike modulo the
//! dilations read only elements that are, too: each of these parts of an image is convolved by itself. They are laid out
//! beside and below each other in one image, with zeros between them for the padding, which Winograd's algorithm takes
//! then. The copies are bound by memory, and small beside products over many channels.

use rten_simd::{Isa, SimdOp};

use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::masks::Masks;
use crate::isa::Dispatch;
use crate::kernel::{Argument, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::parallel::{GRAIN, Parts};
use crate::loops::scratch::with_scratch;
use crate::loops::simd::{Loop, every, vector_len, widest};
use crate::ops::OpError;
use crate::ops::activation::Activation;
use crate::ops::conv::Conv;
use crate::ops::window::{Padding, Window};
use crate::tensor::{ElementType, TensorView, TensorViewMut};

/// Where this is faster than a direct convolution, whose lines of outputs have gaps: dilations and channels from and up
/// to which. With more parts, these are so small on the usual images that the zeros between them take what is gained.
struct Gain {
    dilation: i64,
    channels: usize,
    kernels: usize,
}

/// With AVX2 1.1 (64 channels by 2) to 1.35 times (128 channels by 4) as fast as direct ones.
const NARROW: Gain = Gain { dilation: 4, channels: 64, kernels: 1 << 18 };
/// With longer vectors, where products take half of the time and the copies as long, up to 1.2 times (128 channels by 4), but
/// 0.96 with 64 channels and 0.8 with 256, for which tiles are of 2 × 2.
const WIDE: Gain = Gain { dilation: 4, channels: 96, kernels: 1 << 15 };
/// Floats to which scratch is aligned.
const ALIGNED: usize = 16;

struct Dilated {
    dilations: [usize; 2],
    activation: Activation,
    outputs: usize,
    channels: usize,
    /// Convolves the image of parts, without bias and activation.
    plain: Box<dyn Kernel>,
}

/// What depends on shapes.
struct State {
    layout: Layout,
    /// Shapes of one image of parts, and of its sums.
    shapes: [[usize; 4]; 2],
    plain: Prepared,
}

/// `None` for other convolutions than those described above.
pub(crate) fn build(node: &NodeContext<'_>) -> Result<Option<Box<dyn Kernel>>, OpError> {
    let op = node.op::<Conv>();
    let &[down, across] = &op.window.dilations[..] else { return Ok(None) };
    let gain = if vector_len() > 8 { WIDE } else { NARROW };
    let dilated = (down, across) != (1, 1) && [down, across].iter().all(|d| (1..=gain.dilation).contains(d));
    // As many outputs as elements.
    if !dilated || op.window.padding != Padding::Explicit(vec![down, across, down, across]) {
        return Ok(None);
    }
    let padding = Padding::Explicit(vec![1; 4]);
    let window = Window { dilations: vec![1; 2], padding, ..op.window.clone() };
    let plain = Conv { window, activation: Activation::Identity, ..op.clone() };
    let Some(weight) = node.constant(1) else { return Ok(None) };
    let &[outputs, channels, 3, 3] = weight.shape() else { return Ok(None) };
    if channels.min(outputs) < gain.channels || channels * outputs > gain.kernels {
        return Ok(None);
    }
    let Some(plain) = super::build(&NodeContext { op: &plain, ..*node })? else { return Ok(None) };
    let dilations = [down as usize, across as usize];
    Ok(Some(Box::new(Dilated { dilations, activation: op.activation, outputs, channels, plain })))
}

impl Kernel for Dilated {
    fn algorithm(&self) -> &'static str {
        "Winograd 3×3, dilated"
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (&inputs[0], &inputs[1]) else { return Ok(Prepared::default()) };
        let layout = Layout::new([x.shape[2], x.shape[3]], self.dilations);
        let [height, width] = layout.size;
        let shapes = [self.channels, self.outputs].map(|channels| [1, channels, height, width]);
        let argument = Argument { shape: &shapes[0], value: None };
        let plain = self.plain.prepare(&[Some(argument), Some(*w)], &[Some(&shapes[1])])?;
        let elements = room(&plain) + (self.channels + self.outputs) * plane(&layout);
        let state = State { layout, shapes, plain };
        Ok(Prepared { state: Some(Box::new(state)), scratch: elements * size_of::<f32>() })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let State { layout, shapes, plain } = cx.state::<State>();
        let [height, width] = layout.image;
        let (columns, images) = (height * width, x.shape()[0]);
        if columns == 0 {
            return Ok(());
        }
        let size = plane(layout);
        let (scratch, rest) = cx.scratch::<f32>().split_at_mut(room(plain));
        let (parts, sums) = rest.split_at_mut(self.channels * size);
        let (x, out) = (x.slice::<f32>(), Parts::new(y.slice::<f32>()));
        let epilogue = F32Epilogue::new(self.activation, inputs, &out, columns);
        let whole = layout.size[0] * layout.size[1];
        for image in 0..images {
            let from = &x[image * self.channels * columns..][..self.channels * columns];
            let all = Parts::new(&mut parts[..self.channels * whole]);
            cx.pool.split(self.channels, GRAIN.div_ceil(4 * whole), |channels| {
                for channel in channels {
                    // SAFETY: each channel is written once.
                    let to = unsafe { all.get(channel * whole..(channel + 1) * whole) };
                    widest(Apart { layout, from: &from[channel * columns..][..columns], to });
                }
            });
            let image_of_parts = bytemuck::cast_slice(&parts[..self.channels * whole]);
            let image_of_parts = TensorView::new(ElementType::F32, &shapes[0], image_of_parts);
            let of_sums = bytemuck::cast_slice_mut(&mut sums[..self.outputs * whole]);
            let of_sums = TensorViewMut::new(ElementType::F32, &shapes[1], of_sums);
            // SAFETY: the scratch is what `plain` asked for, aligned as all of it is, and nobody else's.
            let inner =
                unsafe { cx.prepared(plain.state.as_deref(), scratch.as_mut_ptr().cast(), plain.scratch) };
            self.plain.run(&inner, &[Some(image_of_parts), None], &mut [Some(of_sums)])?;
            let epilogue = F32Epilogue { start: image * self.outputs * columns, ..epilogue };
            let sums = &sums[..self.outputs * whole];
            cx.pool.split(self.outputs, GRAIN.div_ceil(4 * whole), |rows| {
                with_scratch([width], |[line]: [&mut [f32]; 1]| {
                    for row in rows {
                        let sums = &sums[row * whole..][..whole];
                        Together { layout, sums, row, epilogue, line: &mut *line }.widest();
                    }
                });
            });
        }
        Ok(())
    }

    fn consumes(&self, input: usize) -> bool {
        input == 1
    }
}

/// Floats of scratch for the convolution of parts.
fn room(plain: &Prepared) -> usize {
    plain.scratch.div_ceil(size_of::<f32>()).next_multiple_of(ALIGNED)
}

/// Elements of a channel of parts, with what keeps the next one aligned.
fn plane(layout: &Layout) -> usize {
    (layout.size[0] * layout.size[1]).next_multiple_of(ALIGNED)
}

/// How the parts of an image lie in one.
struct Layout {
    image: [usize; 2],
    dilations: [usize; 2],
    /// Rows and columns from a part to the next: its own and one of zeros.
    steps: [usize; 2],
    size: [usize; 2],
}

impl Layout {
    fn new(image: [usize; 2], dilations: [usize; 2]) -> Self {
        let steps = [0, 1].map(|axis| image[axis].div_ceil(dilations[axis]) + 1);
        let size = [0, 1].map(|axis| steps[axis] * dilations[axis] - 1);
        Layout { image, dilations, steps, size }
    }

    /// Where the elements of a line go that belong to a part: the first, and how many there are.
    #[inline(always)]
    fn line(&self, y: usize, part: usize) -> (usize, usize) {
        let row = y % self.dilations[0] * self.steps[0] + y / self.dilations[0];
        let count = (self.image[1] + self.dilations[1] - 1 - part) / self.dilations[1];
        (row * self.size[1] + part * self.steps[1], count)
    }
}

/// Takes a channel of an image apart.
struct Apart<'a> {
    layout: &'a Layout,
    from: &'a [f32],
    to: &'a mut [f32],
}

impl Loop for Apart<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Apart { layout, from, to } = self;
        to.fill(0.0);
        for (y, line) in from.chunks_exact(layout.image[1]).enumerate() {
            for part in 0..layout.dilations[1].min(line.len()) {
                let (at, count) = layout.line(y, part);
                let to = bytemuck::cast_slice_mut(&mut to[at..][..count]);
                every(bytemuck::cast_slice(&line[part..]), layout.dilations[1], to, |x| x);
            }
        }
    }
}

/// Puts the sums of an output channel together again, and writes what becomes of them.
struct Together<'a> {
    layout: &'a Layout,
    sums: &'a [f32],
    row: usize,
    epilogue: F32Epilogue<'a>,
    line: &'a mut [f32],
}

impl SimdOp for Together<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Together { layout, sums, row, epilogue, line } = self;
        let masks = Masks::new(isa);
        let ([height, width], step) = (layout.image, layout.dilations[1]);
        for y in 0..height {
            for part in 0..step.min(width) {
                let (at, count) = layout.line(y, part);
                for (to, &sum) in line[part..].iter_mut().step_by(step).zip(&sums[at..][..count]) {
                    *to = sum;
                }
            }
            let at = epilogue.start + row * epilogue.columns + y * width;
            // SAFETY: each line is written once.
            let out = unsafe { epilogue.out.get(at..at + width) };
            epilogue.line(isa, &masks, line, row, at, out);
        }
    }
}
