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
        match Planes::new(table) {
            Some(planes) => Ok(Prepared { state: Some(Box::new(planes)), scratch: 0 }),
            None => self.general.prepare(inputs, outputs),
        }
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(planes_of) = cx.state.and_then(|state| state.downcast_ref::<Planes>()) else {
            return self.general.run(cx, inputs, outputs);
        };
        let table = &planes_of.table;
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let (images, x, lines) = (x.shape()[0], x.slice::<T>(), table.lines());
        let (plane, line) = (block_len::<T>() * table.plane(), block_len::<T>() * table.line());
        let planes = y.len() / (lines * line).max(1);
        let y = Parts::new(y.slice::<T>());
        // As in `Windowed`.
        let bands = threads_of_image(images, cx.pool.threads()).min(lines).max(1);
        cx.pool.split(bands * planes, (1 << 15) / (lines * line).div_ceil(bands).max(1) + 1, |range| {
            with_scratch(planes_of.lengths(), |[columns, windows, part]: [&mut [u32]; 3]| {
                for i in range {
                    let (band, at) = (i / planes, i % planes);
                    let lines = lines * band / bands..lines * (band + 1) / bands;
                    let out = at * table.lines() * line;
                    // SAFETY: each line is written by one piece of the split.
                    let y = unsafe { y.get(out + lines.start * line..out + lines.end * line) };
                    let (columns, windows, part) = (&mut *columns, &mut *windows, &mut *part);
                    let (of, first, image) = (planes_of, lines.start, &x[at * plane..][..plane]);
                    widest(Lines { of, first, image, columns, windows, part, y });
                }
            });
        });
        Ok(())
    }
}

/// The most dot groups of a line with what is around it; a part of the first cache.
const LONGEST: usize = 4 * 1024;

/// The planes of dot groups.
struct Planes {
    table: PatchTable,
    /// Dot groups from a column of a window to the next.
    dilation: usize,
    /// How many of the first window are before the image.
    before: usize,
    /// Dot groups of a line of the image with what is before and behind it.
    padded: usize,
}

impl Planes {
    /// `None` where lines are too long, as with very large padding.
    fn new(table: PatchTable) -> Option<Self> {
        let (first, last) = (table.spans().first()?.1, table.spans().last()?.1);
        let dilation = table.spans().get(1).map_or(0, |(_, at)| at.abs_diff(first));
        let before = first.unsigned_abs();
        let windows = table.line().checked_mul(table.stride())?;
        let padded = windows.checked_add(last.abs_diff(first))?.max(before.checked_add(table.width())?);
        (padded <= LONGEST).then_some(Planes { table, dilation, before, padded })
    }

    /// Dot groups of a padded line, of windows that begin at each of them, and of a line of the output.
    fn lengths(&self) -> [usize; 3] {
        [self.padded, self.table.line() * self.table.stride(), self.table.line()]
    }
}

/// Pools lines of one plane: for each the columns of its windows, of these the windows at all columns, then every
/// `stride`-th.
struct Lines<'a, T> {
    of: &'a Planes,
    /// The first line.
    first: usize,
    image: &'a [T],
    /// As `Planes::lengths` has them.
    columns: &'a mut [u32],
    windows: &'a mut [u32],
    part: &'a mut [u32],
    y: &'a mut [T],
}

impl<T: Ordered<Key: Ord + Pod>> Loop for Lines<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Lines { of, first, image, columns, windows, part, y } = self;
        let (table, each) = (&of.table, block_len::<T>());
        let (width, kernel) = (each * table.width(), table.spans().len());
        let columns: &mut [T::Key] = bytemuck::cast_slice_mut(columns);
        columns.fill(T::LEAST.key());
        for (i, y) in (first..).zip(y.chunks_mut((each * table.line()).max(1))) {
            let rows = table.rows(i).map(|start| &image[each * start..][..width]);
            let inside = &mut columns[each * of.before..][..width];
            inside.fill(T::LEAST.key());
            largest(rows, T::key, inside);
            let all: &mut [T::Key] = bytemuck::cast_slice_mut(windows);
            all.fill(T::LEAST.key());
            let len = all.len();
            let taps = (0..kernel).map(|k| &columns[each * k * of.dilation..][..len]);
            largest(taps, |key| key, all);
            every(windows, table.stride(), part, |x| x);
            let keys: &[T::Key] = bytemuck::cast_slice(part);
            for (y, &key) in y.iter_mut().zip(keys) {
                *y = T::of(key);
            }
        }
    }
}

/// Keys that are at least those of each list, three lists at a time.
#[inline(always)]
fn largest<'a, X: Copy + 'a, K: Ord + Copy>(
    mut lists: impl Iterator<Item = &'a [X]>,
    key: impl Fn(X) -> K,
    keys: &mut [K],
) {
    while let Some(a) = lists.next() {
        // The same once more where there are not so many.
        let (b, c) = (lists.next().unwrap_or(a), lists.next().unwrap_or(a));
        for (to, ((&a, &b), &c)) in keys.iter_mut().zip(a.iter().zip(b).zip(c)) {
            *to = (*to).max(key(a)).max(key(b).max(key(c)));
        }
    }
}
