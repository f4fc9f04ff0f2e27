//! Convolution as a matrix product `weight · patches`.
//!
//! Three ways, the first that fits: a window of one element is a product with the image itself; a depthwise one is applied
//! directly; every other goes through blocks of patches.

use super::depthwise::depthwise;
use super::patches::{PatchTable, Patches};
use crate::conv::common::weight::is_depthwise;
use crate::gemm::{
    Addend, FusedEpilogue, InMemory, Left, Matrix, Offsets, PackedA, Product, Right, Store, multiply,
};
use crate::kernel::{Argument, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;
use crate::loops::packing::Packing;
use crate::ops::OpError;
use crate::ops::conv::Conv;
use crate::ops::window::Geometry;
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

struct ConvKernel<T: Store> {
    op: Conv,
    /// The weight of each group, when it is constant.
    packed: Option<PackedA<T::Compute>>,
}

/// `None` for types that are no floats.
pub(crate) fn build(node: &NodeContext<'_>) -> Result<Option<Box<dyn Kernel>>, OpError> {
    let op = node.op::<Conv>().clone();
    dispatch!(node.input(0), T in [f32, f16, bf16, f64] => {
        let packed = match node.constant(1) {
            // A depthwise kernel reads the weight as it is.
            Some(w) if T::PACK && !is_depthwise(op.group, w) => {
                let (m, k) = (w.shape()[0] / op.group, w.shape()[1..].iter().product());
                Some(PackedA::of(w.aligned()?.view().slice::<T>(), false, op.group, m, k, Packing::of(node), true))
            }
            _ => None,
        };
        Ok(Some(Box::new(ConvKernel::<T> { op, packed })))
    }, else Ok(None))
}

/// What depends on shapes.
pub(crate) struct State {
    /// Images in the batch.
    images: usize,
    /// Input channels of a group.
    channels: usize,
    /// Output channels of a group.
    m: usize,
    /// Kernel positions.
    volume: usize,
    /// Output positions.
    n: usize,
    way: Way,
}

enum Way {
    /// The image is the right operand.
    Pointwise,
    Depthwise(PatchTable),
    Patches(PatchTable),
}

impl State {
    pub(crate) fn new(op: &Conv, x: &[usize], w: &[usize]) -> Result<Self, OpError> {
        let g = op.window.geometry(&x[2..], &w[2..])?;
        let way = if is_pointwise(&g) {
            Way::Pointwise
        } else if op.group > 1 && w[1] == 1 {
            Way::Depthwise(PatchTable::new(&g))
        } else {
            Way::Patches(PatchTable::new(&g))
        };
        Ok(State {
            images: x[0],
            channels: w[1],
            m: w[0] / op.group,
            volume: g.kernel.iter().product(),
            n: g.output.iter().product(),
            way,
        })
    }
}

/// Whether output positions are input positions.
fn is_pointwise(g: &Geometry) -> bool {
    let all = |list: &[usize], x: usize| list.iter().all(|&y| y == x);
    all(&g.kernel, 1) && all(&g.strides, 1) && all(&g.pads_begin, 0) && all(&g.pads_end, 0)
}

impl<T: Store> Kernel for ConvKernel<T> {
    fn algorithm(&self) -> &'static str {
        "im2col"
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (&inputs[0], &inputs[1]) else { return Ok(Prepared::default()) };
        let state = State::new(&self.op, x.shape, w.shape)?;
        Ok(Prepared { state: Some(Box::new(state)), scratch: 0 })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let packed = self.packed.as_ref();
        let packed = packed.map(|a| Left::Packed(a, Offsets::Cycle { period: self.op.group, stride: 1 }));
        convolve::<T>(cx, &self.op, cx.state(), packed, inputs, outputs);
        Ok(())
    }

    fn consumes(&self, input: usize) -> bool {
        input == 1 && self.packed.is_some()
    }
}

/// Convolves; `packed` stands for the weight where it is given.
pub(crate) fn convolve<T: Store>(
    cx: &KernelContext<'_>,
    op: &Conv,
    state: &State,
    packed: Option<Left<'_, T::Compute>>,
    inputs: &[Option<TensorView<'_>>],
    outputs: &mut [Option<TensorViewMut<'_>>],
) {
    let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return };
    let &State { images, channels, m, volume, n, ref way } = state;
    let (group, k) = (op.group, channels * volume);
    let x = x.slice::<T>();
    let epilogue = epilogue(op, m, n, inputs, y.slice::<T>());
    let weight = inputs[1].map(|w| w.slice::<T>());
    if let (Way::Depthwise(table), Some(weight)) = (way, weight) {
        return depthwise(cx.pool, table, x, weight, (images, group, m, volume), &epilogue);
    }
    let plain = weight.map(|w| InMemory {
        matrix: Matrix::new(w, k),
        offsets: Offsets::Cycle { period: group, stride: m * k },
    });
    let a = match (packed, &plain) {
        (Some(packed), _) => packed,
        (None, Some(plain)) => plain.left(),
        (None, None) => return,
    };
    let batch = images * group;
    match way {
        Way::Pointwise => {
            let image = InMemory { matrix: Matrix::new(x, n), offsets: Offsets::Stride(k * n) };
            multiply(cx.pool, &Product { batch, m, n, k, a, b: image.right() }, &epilogue);
        }
        Way::Depthwise(table) | Way::Patches(table) => {
            let padding = T::Compute::default();
            let patches = Patches { table, images: x, channels, interleaved: None, load: T::load, padding };
            let b = Right::Source(&patches);
            multiply(cx.pool, &Product { batch, m, n, k, a, b }, &epilogue);
        }
    }
}

/// What follows products of `m` output channels of a group and `n` positions: bias, residual, activation.
pub(crate) fn epilogue<'a, T: Store>(
    op: &Conv,
    m: usize,
    n: usize,
    inputs: &[Option<TensorView<'a>>],
    y: &'a mut [T],
) -> FusedEpilogue<'a, T> {
    let mut epilogue = FusedEpilogue::new(y, m, n);
    epilogue.activation = op.activation;
    let bias = inputs.get(2).copied().flatten().map(|bias| Addend {
        data: bias.slice::<T>(),
        offsets: Offsets::Cycle { period: op.group, stride: m },
        row_stride: 1,
        column_stride: 0,
        scale: 1.0,
    });
    let residual = inputs.get(3).copied().flatten().map(|z| Addend {
        data: z.slice::<T>(),
        offsets: Offsets::Stride(m * n),
        row_stride: n,
        column_stride: 1,
        scale: 1.0,
    });
    epilogue.addends = [bias, residual];
    epilogue
}
