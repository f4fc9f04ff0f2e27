//! Attention of com.microsoft: the projection of its input, then attention on it.

use num_traits::AsPrimitive;

use crate::loops::packing::Packing;
use crate::ops::OpError;
use crate::ops::attention::multi_head::ProjectedAttention;
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

use super::extent::Extent;
use super::flash::attention;
use super::gather::{Operand, Past};
use super::heads::{Heads, head_strides};
use super::mask::{Mask, MaskTensor};
use super::multi_head::past_rows;
use super::padding::Padding;
use super::problem::Problem;
use crate::gemm::{
    Activate, Addend, FusedEpilogue, InMemory, Matrix, Offsets, PackedB, Product, Right, Store, multiply,
};
use crate::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;

pub(super) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    dispatch!(node.input(0), T in [f32, f16, bf16, f64] => {
        let packed = match node.constant(1) {
            Some(w) if T::PACK => {
                let w = w.aligned()?;
                let (k, n) = (w.shape()[0], w.shape()[1]);
                Some(PackedB::of(w.view().slice::<T>(), false, 1, k, n, Packing::of(node), true))
            }
            _ => None,
        };
        Ok(CpuKernel::Tensor(Box::new(Projected::<T> { op: *node.op(), packed })))
    }, else Err(node.no_kernel()))
}

struct Projected<T: Store> {
    op: ProjectedAttention,
    /// The weights, when they are constant.
    packed: Option<PackedB<T::Compute>>,
}

/// Extents, and columns of queries, keys and values.
type State = (Extent, [usize; 3]);

impl<T: Store<Compute: Activate + AsPrimitive<f64>>> Kernel for Projected<T> {
    fn algorithm(&self) -> &'static str {
        super::flash::algorithm::<T>()
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (inputs[0], inputs[1]) else { return Ok(Prepared::default()) };
        let (&[batch, rows, _], &[_, columns]) = (x.shape, w.shape) else { return Ok(Prepared::default()) };
        let heads = self.op.options.heads;
        let split = self.op.columns(columns);
        let past = inputs.get(4).copied().flatten().map(|p| p.shape[3]);
        let mut extent = Extent {
            batch,
            heads,
            kv_heads: heads,
            queries: rows,
            new: rows,
            size: split[0] / heads,
            v_size: split[2] / heads,
            past: past.unwrap_or(0),
            capacity: if self.op.shared { past.unwrap_or(0) } else { past.unwrap_or(0) + rows },
            scratch: [batch * rows * columns, 0, 0, 0],
        };
        if past.is_some() && !outputs.get(1).is_some_and(Option::is_some) {
            [_, extent.scratch[2], extent.scratch[3]] = extent.spaces();
        }
        Ok(Prepared { scratch: extent.bytes::<T>(), state: Some(Box::new((extent, split))) })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let &(extent, split) = cx.state::<State>();
        let input = |i: usize| inputs.get(i).copied().flatten();
        let mut slots = outputs.iter_mut().map(Option::as_mut);
        let (Some(x), Some(y)) = (input(0), slots.next().flatten()) else { return Ok(()) };
        let present = slots.next().flatten();
        let Extent { batch, heads, queries, size, v_size, capacity, .. } = extent;
        let past = past_rows(input(6).filter(|_| self.op.shared), &extent)?;
        let [projection, _, k_space, v_space] = extent.split::<T>(cx);
        self.project(cx, x, input(1), input(2), split.iter().sum(), projection);

        let columns: usize = split.iter().sum();
        let operand = |start: usize, size: usize| Operand {
            rows_of: Heads {
                data: &projection[start.min(projection.len())..],
                strides: [queries * columns, size, columns],
            },
            batch,
            heads,
            rows: queries,
            size,
            bias: None,
        };
        let (q, k, v) = (operand(0, size), operand(split[0], size), operand(split[0] + split[1], v_size));
        let (k, v) = if present.is_some() || input(4).is_some() {
            let [_, k_len, _] = extent.spaces();
            let (k_out, v_out) = match present {
                Some(present) => present.slice::<T>().split_at_mut(k_len),
                None => (k_space, v_space),
            };
            let rows = |_| past;
            let halves = input(4).map(|view| view.slice::<T>()).map(|data| data.split_at(data.len() / 2));
            let part =
                |data| Past { data, capacity: extent.past, rows: &rows, whole: extent.past == capacity };
            (
                k.gather(cx.pool, halves.map(|h| part(h.0)), None, capacity, k_out),
                v.gather(cx.pool, halves.map(|h| part(h.1)), None, capacity, v_out),
            )
        } else {
            (k.rows_of, v.rows_of)
        };
        let options = self.op.options;
        let keys = past + queries;
        let filter = options.filter;
        let padding = input(3).map(|m| Padding::new(m, batch, past, keys, filter)).transpose()?;
        let problem = Problem {
            batch,
            heads,
            kv_heads: heads,
            queries,
            keys,
            size,
            v_size,
            q: q.rows_of,
            k: k.into(),
            v: v.into(),
            scale: options.scale.unwrap_or(1.0 / (size as f32).sqrt()),
            softcap: 0.0,
            mask: Mask {
                tensor: input(5).map(MaskTensor::new),
                padding,
                blocks: None,
                causal: options.causal,
                window: [None; 2],
                offset: past as isize,
                lengths: None,
                aligned_to_length: None,
            },
            sink: None,
            y_strides: head_strides(3, heads, queries, v_size),
        };
        attention(cx.pool, &problem, y.slice::<T>(), None);
        Ok(())
    }

    fn consumes(&self, input: usize) -> bool {
        input == 1 && self.packed.is_some()
    }
}

impl<T: Store<Compute: Activate>> Projected<T> {
    /// `x · weights + bias`, row by row.
    fn project(
        &self,
        cx: &KernelContext<'_>,
        x: TensorView<'_>,
        weights: Option<TensorView<'_>>,
        bias: Option<TensorView<'_>>,
        n: usize,
        out: &mut [T],
    ) {
        let k = x.shape()[2];
        let m = x.shape()[0] * x.shape()[1];
        let matrix =
            |data, columns| InMemory { matrix: Matrix::new(data, columns), offsets: Offsets::Stride(0) };
        let a = matrix(x.slice::<T>(), k);
        let b = weights.map(|w| matrix(w.slice::<T>(), n));
        let b = match (&self.packed, &b) {
            (Some(packed), _) => Right::Packed(packed, Offsets::Stride(0)),
            (None, Some(b)) => b.right(),
            (None, None) => return,
        };
        let mut epilogue = FusedEpilogue::new(out, m, n);
        epilogue.addends[0] = bias.map(|bias| Addend {
            data: bias.slice::<T>(),
            offsets: Offsets::Stride(0),
            row_stride: 0,
            column_stride: 1,
            scale: 1.0,
        });
        multiply(cx.pool, &Product { batch: 1, m, n, k, a: a.left(), b }, &epilogue);
    }
}
