//! TopK.

use std::cmp::Ordering;
use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::movement::axis_of;
use crate::ops::topk::TopK;
use crate::tensor::{Element, ElementType, TensorView, TensorViewMut, bf16, f16};

use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared, data_shape};
use crate::loops::number::dispatch;
use crate::loops::order::Ordered;
use crate::loops::parallel::Parts;
use crate::loops::simd::{Loop, widest};

pub(super) const KERNELS: &[Entry] = &[Entry::new("TopK", build)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<TopK>().clone();
    let pieces = node.pool.threads() * 4;
    dispatch!(
        node.input(0),
        T in [f32, f64, f16, bf16, u8, u16, u32, u64, i8, i16, i32, i64] =>
            Ok(CpuKernel::Tensor(Box::new(TopKKernel::<T> { op, pieces, _element: PhantomData }))),
        else Err(node.no_kernel())
    )
}

struct TopKKernel<T> {
    op: TopK,
    /// How many parts the rows are cut into at most; each has scratch memory of its own.
    pieces: usize,
    _element: PhantomData<fn(T)>,
}

/// The input as `[outer, length, inner]`, the outputs as `[outer, k, inner]`.
struct Plan {
    outer: usize,
    length: usize,
    inner: usize,
    k: usize,
    pieces: usize,
}

/// Up to this many elements are kept sorted while a row is read once; for more, a row is partitioned.
const FEW: usize = 32;

impl<T: Element + Ordered> Kernel for TopKKernel<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let plan: &Plan = cx.state();
        let Some(input) = inputs[0] else { return Ok(()) };
        let input = input.slice::<T>();
        let (first, rest) = outputs.split_at_mut(1);
        let values = first[0].as_mut().map(|v| Parts::new(v.slice::<T>()));
        let indices = rest.first_mut().and_then(Option::as_mut).map(|v| Parts::new(v.slice::<i64>()));
        let (values, indices) = (values.as_ref(), indices.as_ref());
        let scratch = Parts::new(cx.scratch::<u64>());
        let rows = plan.outer * plan.inner;
        if plan.k == 0 || rows == 0 {
            return Ok(());
        }
        cx.pool.for_each(plan.pieces, &|piece| {
            // SAFETY: each piece has scratch memory and rows of its own.
            let order = unsafe { scratch.get(piece * plan.length..(piece + 1) * plan.length) };
            for row in rows * piece / plan.pieces..rows * (piece + 1) / plan.pieces {
                let (o, i) = (row / plan.inner, row % plan.inner);
                let from = o * plan.length * plan.inner + i;
                let at = |index: u64| &input[from + index as usize * plan.inner];
                let top = match T::HAS_KEY && plan.length <= u32::MAX as usize {
                    true => {
                        let row = (plan.inner == 1).then(|| &input[from..from + plan.length]);
                        self.select_by_keys(at, row, plan.k, order, &|| cx.pool.cancelled())
                    }
                    false => self.select(at, plan.k, order, &|| cx.pool.cancelled()),
                };
                for (j, &index) in top.iter().enumerate() {
                    let to = (o * plan.k + j) * plan.inner + i;
                    if let Some(values) = values {
                        // SAFETY: as above.
                        let place = unsafe { values.get(to..to + 1) };
                        place[0] = *at(index);
                    }
                    if let Some(indices) = indices {
                        // SAFETY: as above.
                        let place = unsafe { indices.get(to..to + 1) };
                        place[0] = index as i64;
                    }
                }
            }
        });
        Ok(())
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let shape = data_shape(inputs)?;
        let axis = axis_of(self.op.axis, shape.len())?;
        let (outer, inner) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
        let k = outputs.iter().flatten().next().map_or(0, |s| s[axis]);
        let pieces = self.pieces.min(outer * inner);
        let length = shape[axis];
        let plan = Plan { outer, length, inner, k, pieces };
        Ok(Prepared { state: Some(Box::new(plan)), scratch: pieces * length * size_of::<u64>() })
    }
}

impl<T: Element + Ordered> TopKKernel<T> {
    /// As `select`, for elements with keys and fewer than 2³² of them: `order` has keys with their indices below them, so
    /// that comparing numbers compares both. `row`: the elements, where they lie side by side.
    fn select_by_keys<'a, 'o>(
        &self,
        at: impl Fn(u64) -> &'a T,
        row: Option<&[T]>,
        k: usize,
        order: &'o mut [u64],
        cancelled: &dyn Fn() -> bool,
    ) -> &'o [u64]
    where
        T: 'a,
    {
        // What comes first has the least key.
        let flip = if self.op.largest { u32::MAX } else { 0 };
        let whole = |index: u64| u64::from(at(index).key() ^ flip) << 32 | index;
        if k <= FEW {
            match row {
                Some(row) => {
                    let few = FirstFew { row, flip, k, order: &mut *order };
                    // What models ask for, in the widest vectors.
                    if T::TYPE == ElementType::F32 { widest(few) } else { few.run() }
                }
                None => {
                    let mut kept = 0;
                    for index in 0..order.len() as u64 {
                        keep(order, &mut kept, k, whole(index));
                    }
                }
            }
        } else {
            order.iter_mut().zip(0..).for_each(|(x, index)| *x = whole(index));
            if k < order.len() {
                order.select_nth_unstable(k - 1);
            }
            if self.op.sorted {
                sort_in_pieces(&mut order[..k], &u64::cmp, cancelled);
            }
        }
        let top = &mut order[..k];
        top.iter_mut().for_each(|x| *x &= u64::from(u32::MAX));
        top
    }

    /// The indices of the first `k` elements of a row in the order wanted, within `order`, which has
    /// as many places as the row has elements.
    fn select<'a, 'o>(
        &self,
        at: impl Fn(u64) -> &'a T,
        k: usize,
        order: &'o mut [u64],
        cancelled: &dyn Fn() -> bool,
    ) -> &'o [u64]
    where
        T: 'a,
    {
        let compare = |a: &T, b: &T| if self.op.largest { b.order(a) } else { a.order(b) };
        if k <= FEW {
            let length = order.len() as u64;
            let mut kept = 0;
            for index in 0..length {
                let x = at(index);
                if kept == k && compare(x, at(order[k - 1])) != Ordering::Less {
                    continue;
                }
                // Equal elements keep the order of their indices: the new one goes behind them.
                let place =
                    order[..kept].partition_point(|&other| compare(at(other), x) != Ordering::Greater);
                kept = (kept + 1).min(k);
                order[place..kept].rotate_right(1);
                order[place] = index;
            }
            return &order[..k];
        }
        order.iter_mut().enumerate().for_each(|(i, x)| *x = i as u64);
        // One sort for all types that have no keys: of each its own machine code would be some twenty kilobytes.
        let by: &dyn Fn(&u64, &u64) -> Ordering = &|a, b| compare(at(*a), at(*b)).then(a.cmp(b));
        if k < order.len() {
            order.select_nth_unstable_by(k - 1, by);
        }
        let top = &mut order[..k];
        if self.op.sorted {
            sort_in_pieces(top, &by, cancelled);
        }
        top
    }
}

/// Puts a number among those that are kept, at most `k` of them in order, if it is one of the least.
#[inline(always)]
fn keep(order: &mut [u64], kept: &mut usize, k: usize, x: u64) {
    if *kept == k && x > order[k - 1] {
        return;
    }
    *kept = (*kept + 1).min(k);
    let mut place = *kept - 1;
    while place > 0 && order[place - 1] > x {
        order[place] = order[place - 1];
        place -= 1;
    }
    order[place] = x;
}

/// Keeps the `k` least keys of a row, with their indices.
struct FirstFew<'a, T> {
    row: &'a [T],
    flip: u32,
    k: usize,
    order: &'a mut [u64],
}

impl<T: Ordered> Loop for FirstFew<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        const TOGETHER: usize = 16;
        let FirstFew { row, flip, k, order } = self;
        let mut kept = 0;
        for (first, some) in (0u64..).step_by(TOGETHER).zip(row.chunks(TOGETHER)) {
            // Of most elements it is enough to know that none of several comes before the last one kept.
            if let (true, Some(some)) = (kept == k, some.first_chunk::<TOGETHER>()) {
                let last = (order[k - 1] >> 32) as u32;
                let mut before = [0; TOGETHER];
                for i in 0..TOGETHER {
                    before[i] = u32::from(some[i].key() ^ flip < last);
                }
                if before.iter().fold(0, |any, one| any | one) == 0 {
                    continue;
                }
            }
            for (index, x) in (first..).zip(some) {
                keep(order, &mut kept, k, u64::from(x.key() ^ flip) << 32 | index);
            }
        }
    }
}

/// Sorts; long ones piece by piece, so that a run can be cancelled in between. What is left is in any order then.
fn sort_in_pieces(order: &mut [u64], by: &impl Fn(&u64, &u64) -> Ordering, cancelled: &dyn Fn() -> bool) {
    const PIECE: usize = 1 << 18;
    if order.len() <= PIECE {
        return order.sort_unstable_by(by);
    }
    if cancelled() {
        return;
    }
    let middle = order.len() / 2;
    order.select_nth_unstable_by(middle, by);
    let (low, high) = order.split_at_mut(middle);
    sort_in_pieces(low, by, cancelled);
    sort_in_pieces(high, by, cancelled);
}

#[cfg(test)]
mod tests {
    use crate::graph::Attribute;
    use crate::testing::{elements, run, t};

    /// A row that is sorted in pieces is sorted as one that is not.
    #[test]
    fn long_rows() {
        let mut order: Vec<u64> = (0..700_000).collect();
        let key = |i: &u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
        super::sort_in_pieces(&mut order, &|a, b| key(a).cmp(&key(b)).then(a.cmp(b)), &|| false);
        assert!(order.windows(2).all(|w| (key(&w[0]), w[0]) < (key(&w[1]), w[1])));
        let before = order.clone();
        super::sort_in_pieces(&mut order, &|a, b| b.cmp(a), &|| true);
        assert_eq!(order, before);
    }

    #[test]
    fn orders_and_ties() {
        let nan = f32::NAN;
        // numpy.lexsort with NaN last; ties by the lower index.
        for (largest, k, values, indices) in
            [(1, 3, vec![nan, 5.0, 5.0], vec![3, 1, 4]), (0, 4, vec![1.0, 2.0, 5.0, 5.0], vec![0, 2, 1, 4])]
        {
            let x = t(&[5], &[1.0f32, 5.0, 2.0, nan, 5.0]);
            let out = run("TopK", 11, &[("largest", Attribute::Int(largest))], &[x, t(&[1], &[k as i64])], 2)
                .unwrap();
            let (_, v) = elements::<f32>(&out[0]);
            assert_eq!(
                v.iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
                values.iter().map(|x: &f32| x.to_bits()).collect::<Vec<_>>()
            );
            assert_eq!(elements::<i64>(&out[1]).1, indices);
        }
    }

    #[test]
    fn every_way_agrees() {
        let x: Vec<i32> = (0..200).map(|i| i * 7919 % 101).collect();
        let mut sorted: Vec<(i32, usize)> = x.iter().copied().zip(0..).collect();
        sorted.sort_by_key(|&(v, i)| (-v, i));
        for k in [1, 31, 32, 33, 199, 200] {
            let want: Vec<i64> = sorted[..k].iter().map(|p| p.1 as i64).collect();
            let out = run("TopK", 24, &[], &[t(&[200], &x), t(&[1], &[k as i64])], 2).unwrap();
            assert_eq!(elements::<i32>(&out[0]).1, sorted[..k].iter().map(|p| p.0).collect::<Vec<_>>());
            assert_eq!(elements::<i64>(&out[1]).1, want);
            // Elements without a key, and columns.
            let wide: Vec<i64> = x.iter().map(|&x| x.into()).collect();
            let out = run("TopK", 24, &[], &[t(&[200], &wide), t(&[1], &[k as i64])], 2).unwrap();
            assert_eq!(elements::<i64>(&out[1]).1, want);
            let columns: Vec<f32> = x.iter().flat_map(|&x| [x as f32, 0.5 - x as f32]).collect();
            let axis = [("axis", Attribute::Int(0))];
            let out = run("TopK", 24, &axis, &[t(&[200, 2], &columns), t(&[1], &[k as i64])], 2).unwrap();
            let first: Vec<i64> = elements::<i64>(&out[1]).1.into_iter().step_by(2).collect();
            assert_eq!(first, want);
        }
    }
}
