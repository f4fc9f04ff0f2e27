//! Maxima over windows of channel-blocked images. A window does not reach across the channels of a block, which fill 32 bits:
//! pooling over three axes, of which the last has as many elements. Bound by reading the input.

use std::marker::PhantomData;

use bytemuck::Pod;

use crate::ops::OpError;
use crate::ops::pool::Pool;
use crate::ops::window::Geometry;
use crate::tensor::{TensorView, TensorViewMut};

use super::fold::{Max, Ordered};
use super::geometry;
use super::windowed::Windowed;
use crate::conv::PatchTable;
use crate::kernel::{Argument, Kernel, KernelContext, Prepared};
use crate::loops::parallel::{Parts, threads_of_image};
use crate::loops::scratch::with_scratch;
use crate::loops::simd::{Loop, every, widest};

/// Elements of a dot group of 32 bits.
pub(super) const fn block_len<T>() -> usize {
    size_of::<u32>() / size_of::<T>()
}

pub(super) struct ChannelBlockedMax<T> {
    op: Pool,
    /// For other last axes.
    general: Box<dyn Kernel>,
    _element: PhantomData<fn(T)>,
}

impl<T: Ordered<Key: Ord + Pod>> ChannelBlockedMax<T> {
    /// `None` for other windows.
    pub(super) fn new(op: &Pool) -> Option<Self> {
        let window = &op.window;
        let alone = |list: &[i64]| list.last().is_none_or(|&x| x == 1);
        let channel_blocked = window.kernel.len() == 3
            && [&window.kernel, &window.strides, &window.dilations].into_iter().all(|list| alone(list));
        channel_blocked.then(|| ChannelBlockedMax {
            op: op.clone(),
            general: Windowed::<T, Max>::boxed(op.clone(), Max),
            _element: PhantomData,
        })
    }
}

impl<T: Ordered<Key: Ord + Pod>> Kernel for ChannelBlockedMax<T> {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let Some(x) = &inputs[0] else { return Ok(Prepared::default()) };
        let g = geometry(&self.op.window, x.shape)?;
        if g.input[2] != block_len::<T>() || g.output[2] != block_len::<T>() || g.pads_begin[2] != 0 {
            return self.general.prepare(inputs, outputs);
        }
        let two = |list: &[usize]| list[..2].to_vec();
        let table = PatchTable::new(&Geometry {
            input: two(&g.input),
            output: two(&g.output),
            kernel: two(&g.kernel),
            strides: two(&g.strides),
            dilations: two(&g.dilations),
            pads_begin: two(&g.pads_begin),
            pads_end: two(&g.pads_end),
        });
        Ok(Prepared { state: Some(Box::new(Planes(table))), scratch: 0 })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(Planes(table)) = cx.state.and_then(|state| state.downcast_ref()) else {
            return self.general.run(cx, inputs, outputs);
        };
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let (images, x, lines) = (x.shape()[0], x.slice::<T>(), table.lines());
        let (plane, line) = (block_len::<T>() * table.plane(), block_len::<T>() * table.line());
        let planes = y.len() / (lines * line).max(1);
        let y = Parts::new(y.slice::<T>());
        // As in `Windowed`.
        let bands = threads_of_image(images, cx.pool.threads()).min(lines).max(1);
        cx.pool.split(bands * planes, (1 << 15) / (lines * line).div_ceil(bands).max(1) + 1, |range| {
            with_scratch([table.width(), table.line()], |[columns, part]: [&mut [u32]; 2]| {
                for i in range {
                    let (band, at) = (i / planes, i % planes);
                    let lines = lines * band / bands..lines * (band + 1) / bands;
                    let out = at * table.lines() * line;
                    // SAFETY: each line is written by one piece of the split.
                    let y = unsafe { y.get(out + lines.start * line..out + lines.end * line) };
                    let (columns, part, image) = (&mut *columns, &mut *part, &x[at * plane..][..plane]);
                    widest(Lines { table, first: lines.start, image, columns, part, y });
                }
            });
        });
        Ok(())
    }
}

/// The planes of dot groups.
struct Planes(PatchTable);

/// Pools lines of one plane: for each the columns of its windows, then these along the line.
struct Lines<'a, T> {
    table: &'a PatchTable,
    /// The first line.
    first: usize,
    image: &'a [T],
    /// Dot groups of a line of the image, and of the output.
    columns: &'a mut [u32],
    part: &'a mut [u32],
    y: &'a mut [T],
}

impl<T: Ordered<Key: Ord + Pod>> Loop for Lines<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Lines { table, first, image, columns, part, y } = self;
        let (stride, each) = (table.stride(), block_len::<T>());
        for (i, y) in (first..).zip(y.chunks_mut((each * table.line()).max(1))) {
            let keys: &mut [T::Key] = bytemuck::cast_slice_mut(columns);
            keys.fill(T::LEAST.key());
            for start in table.rows(i) {
                for (key, x) in keys.iter_mut().zip(&image[each * start..]) {
                    *key = (*key).max(x.key());
                }
            }
            y.fill(T::LEAST);
            for (range, at) in table.spans().iter().filter(|(range, _)| !range.is_empty()) {
                let from = &columns[((range.start * stride) as isize + at) as usize..];
                let part = &mut part[range.clone()];
                every(from, stride, part, |x| x);
                let keys: &[T::Key] = bytemuck::cast_slice(part);
                for (y, &key) in y[each * range.start..].iter_mut().zip(keys) {
                    *y = T::of(y.key().max(key));
                }
            }
        }
    }
}
