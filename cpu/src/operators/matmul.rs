//! Matrix products: MatMul and Gemm. Bound: multiplications for large matrices, reading the weight
//! for a single row.

use std::marker::PhantomData;

use crate::loops::packing::Packing;
use crate::ops::OpError;
use crate::ops::matmul::{Gemm, MatMul};
use crate::tensor::{ElementType, TensorView, TensorViewMut, bf16, f16};

use crate::gemm::{
    Addend, Bf16Pair, DotGroup, FusedEpilogue, InMemory, Matrix, Offsets, PackedB, Product, Right, Store,
    keeps_halves, multiply,
};
use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("MatMul", build_matmul),
    Entry::new("FusedMatMul", build_matmul).domain("com.microsoft"),
    Entry::new("SparseToDenseMatMul", build_matmul).domain("com.microsoft"),
    Entry::new("MatMul", build_matmul).domain("rukh"),
    Entry::new("Gemm", build_gemm),
    Entry::new("FusedGemm", build_gemm).domain("com.microsoft"),
];

fn build_matmul(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    dispatch!(node.input(0), T in [f32, f16, bf16, f64, i32, i64, u32, u64] => {
        let op = *node.op::<MatMul>();
        let packed = match node.constant(1) {
            Some(b) if T::PACK && !op.transpose_batch[1] && !b.shape().is_empty() => {
                let (batch, k, n) = op.matrix(1, b.shape(), 1);
                let b = b.aligned()?;
                let transposed = op.transpose[1] && b.shape().len() > 1;
                let count = batch.iter().product();
                Some(PackedB::of(b.view().slice::<T>(), transposed, count, k, n, Packing::of(node), true))
            }
            _ => None,
        };
        Ok(CpuKernel::Tensor(Box::new(MatMulKernel::<T> { op, packed })))
    }, else Err(node.no_kernel()))
}

struct MatMulKernel<T: Store> {
    op: MatMul,
    /// The right operand, when it is constant.
    packed: Option<PackedB<T::Compute>>,
}

/// What multiplies a product of such elements, see the table in `gemm`.
fn multiplier<T: Store>(packed: bool) -> &'static str {
    match (packed, T::TYPE) {
        (true, ElementType::BF16) if <Bf16Pair as DotGroup>::available() => {
            "dot products of bfloat16 pairs, packed"
        }
        (true, ty) if keeps_halves(ty) => "packed, converted in registers",
        (true, ElementType::F32 | ElementType::F16 | ElementType::BF16) => "sgemm, packed",
        (false, ElementType::F32 | ElementType::F16 | ElementType::BF16) => "sgemm",
        _ => "plain",
    }
}

/// Sizes of the product, and for each of its batch where the operands begin.
pub(crate) struct Layout {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) batch: usize,
    /// The batch dimensions.
    pub(crate) batch_shape: Vec<usize>,
    /// Elements between rows and between columns.
    pub(crate) strides: [(usize, usize); 2],
    /// In elements.
    pub(crate) offsets: [Vec<usize>; 2],
    /// For a packed right operand: the index of the matrix.
    pub(crate) packed: Vec<usize>,
}

impl Layout {
    /// The layout with a batch of its own; see `fold`.
    pub(crate) fn new(op: &MatMul, a: &[usize], b: &[usize]) -> Self {
        let (a_batch, m, k) = op.matrix(0, a, 1);
        let (b_batch, _, n) = op.matrix(1, b, 1);
        let rank = a_batch.len().max(b_batch.len());
        let dim = |s: &[usize], i: usize| (i + s.len()).checked_sub(rank).map_or(1, |i| s[i]);
        let batch_shape: Vec<usize> = (0..rank)
            .map(|i| match (dim(&a_batch, i), dim(&b_batch, i)) {
                (1, d) | (d, _) => d,
            })
            .collect();
        let (a_batch_strides, a_strides) = memory_strides(op, 0, a);
        let (b_batch_strides, b_strides) = memory_strides(op, 1, b);
        let walk = |shape: &[usize], strides: &[usize]| offsets(&batch_shape, shape, strides);
        let b_index = row_major(&b_batch);
        Layout {
            m,
            n,
            k,
            batch: batch_shape.iter().product(),
            strides: [a_strides, b_strides],
            offsets: [walk(&a_batch, &a_batch_strides), walk(&b_batch, &b_batch_strides)],
            packed: walk(&b_batch, &b_index),
            batch_shape,
        }
    }

    fn operand<'a, T: Store>(&'a self, view: TensorView<'a>, i: usize) -> InMemory<'a, T> {
        let (row_stride, column_stride) = self.strides[i];
        let matrix = Matrix { data: view.slice(), row_stride, column_stride };
        InMemory { matrix, offsets: Offsets::Table(&self.offsets[i]) }
    }

    /// Makes one tall product of a batch whose matrices share the right operand and whose left
    /// operands follow one another.
    fn fold(&mut self) {
        let step = self.m * self.k;
        let follow = self.offsets[0].iter().enumerate().all(|(i, &at)| at == i * step);
        let shared = self.packed.iter().all(|&i| i == 0);
        if self.batch > 1 && shared && follow && (self.strides[0] == (self.k, 1) || self.m == 1) {
            self.strides[0] = (self.k, 1);
            self.m *= self.batch;
            self.batch = 1;
        }
    }
}

/// The strides of an operand's batch dimensions, and of its rows and columns as the product sees them.
fn memory_strides(op: &MatMul, operand: usize, shape: &[usize]) -> (Vec<usize>, (usize, usize)) {
    let strides = row_major(shape);
    match strides[..] {
        [] => (Vec::new(), (1, 1)),
        [_] if operand == 0 => (Vec::new(), (shape[0], 1)),
        [_] => (Vec::new(), (1, 1)),
        _ => {
            let (batch, rows, columns) = op.matrix(operand, &strides, 1);
            (batch, (rows, columns))
        }
    }
}

/// The strides of a row-major tensor.
pub(crate) fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i];
    }
    strides
}

/// The offset of each element of `batch`, broadcast from `shape` with `strides`.
pub(crate) fn offsets(batch: &[usize], shape: &[usize], strides: &[usize]) -> Vec<usize> {
    let skip = batch.len() - shape.len();
    let mut all = vec![0];
    for (i, &extent) in batch.iter().enumerate() {
        let stride = if i < skip || shape[i - skip] == 1 { 0 } else { strides[i - skip] };
        all = all.iter().flat_map(|&at| (0..extent).map(move |j| at + j * stride)).collect();
    }
    all
}

impl<T: Store> Kernel for MatMulKernel<T> {
    fn algorithm(&self) -> &'static str {
        multiplier::<T>(self.packed.is_some())
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(a), Some(b)) = (&inputs[0], &inputs[1]) else { return Ok(Prepared::default()) };
        let mut layout = Layout::new(&self.op, a.shape, b.shape);
        layout.fold();
        Ok(Prepared { state: Some(Box::new(layout)), scratch: 0 })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(a), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let layout = cx.state::<Layout>();
        let a = layout.operand::<T>(a, 0);
        let b = inputs[1].map(|b| layout.operand::<T>(b, 1));
        let b = match (&self.packed, &b) {
            (Some(packed), _) => Right::Packed(packed, Offsets::Table(&layout.packed)),
            (None, Some(b)) => b.right(),
            (None, None) => return Ok(()),
        };
        let &Layout { batch, m, n, k, .. } = layout;
        let mut epilogue = FusedEpilogue::new(y.slice::<T>(), m, n);
        epilogue.alpha = self.op.alpha;
        epilogue.activation = self.op.activation;
        let addend = |input: usize, matrix: usize, row_stride: usize| {
            let data = inputs.get(input).copied().flatten()?.slice::<T>();
            Some(Addend { data, offsets: Offsets::Stride(matrix), row_stride, column_stride: 1, scale: 1.0 })
        };
        epilogue.addends = [addend(2, 0, 0), addend(3, m * n, n)];
        multiply(cx.pool, &Product { batch, m, n, k, a: a.left(), b }, &epilogue);
        Ok(())
    }

    fn consumes(&self, input: usize) -> bool {
        input == 1 && self.packed.is_some()
    }
}

fn build_gemm(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    dispatch!(node.input(0), T in [f32, f16, bf16, f64, i32, i64, u32, u64] => {
        let op = *node.op::<Gemm>();
        let packed = match node.constant(1) {
            Some(b) if T::PACK => {
                let b = b.aligned()?;
                let (rows, columns) = (b.shape()[0], b.shape()[1]);
                let (k, n) = if op.transpose[1] { (columns, rows) } else { (rows, columns) };
                Some(PackedB::of(b.view().slice::<T>(), op.transpose[1], 1, k, n, Packing::of(node), true))
            }
            _ => None,
        };
        Ok(CpuKernel::Tensor(Box::new(GemmKernel::<T> { op, packed, _element: PhantomData })))
    }, else Err(node.no_kernel()))
}

struct GemmKernel<T: Store> {
    op: Gemm,
    packed: Option<PackedB<T::Compute>>,
    _element: PhantomData<fn(T)>,
}

impl<T: Store> GemmKernel<T> {
    fn operand<'a>(&self, view: TensorView<'a>, i: usize) -> InMemory<'a, T> {
        let (data, columns) = (view.slice(), view.shape()[1]);
        let matrix =
            if self.op.transpose[i] { Matrix::transposed(data, columns) } else { Matrix::new(data, columns) };
        InMemory { matrix, offsets: Offsets::Stride(0) }
    }
}

impl<T: Store> Kernel for GemmKernel<T> {
    fn algorithm(&self) -> &'static str {
        multiplier::<T>(self.packed.is_some())
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(a), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let (m, n) = (y.shape()[0], y.shape()[1]);
        let k = a.shape()[if self.op.transpose[0] { 0 } else { 1 }];
        let a = self.operand(a, 0);
        let b = inputs[1].map(|b| self.operand(b, 1));
        let b = match (&self.packed, &b) {
            (Some(packed), _) => Right::Packed(packed, Offsets::Stride(0)),
            (None, Some(b)) => b.right(),
            (None, None) => return Ok(()),
        };
        let mut epilogue = FusedEpilogue::new(y.slice::<T>(), m, n);
        epilogue.alpha = self.op.alpha;
        epilogue.activation = self.op.activation;
        if let Some(c) = inputs.get(2).copied().flatten()
            && self.op.beta != 0.0
        {
            let (rows, columns) = match *c.shape() {
                [.., rows, columns] => (rows, columns),
                [columns] => (1, columns),
                [] => (1, 1),
            };
            epilogue.addends[0] = Some(Addend {
                data: c.slice::<T>(),
                offsets: Offsets::Stride(0),
                row_stride: if rows == 1 { 0 } else { columns },
                column_stride: if columns == 1 { 0 } else { 1 },
                scale: self.op.beta,
            });
        }
        multiply(cx.pool, &Product { batch: 1, m, n, k, a: a.left(), b }, &epilogue);
        Ok(())
    }

    fn consumes(&self, input: usize) -> bool {
        input == 1 && self.packed.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Attribute;
    use crate::tensor::Value;
    use crate::testing::{elements, run, run_constant, t};

    /// 0, 1, … modulo 7, less 3: exact in every type.
    fn ramp(shape: &[usize]) -> (Vec<usize>, Vec<f32>) {
        (shape.to_vec(), (0..shape.iter().product()).map(|i| (i % 7) as f32 - 3.0).collect())
    }

    fn halves(x: &[f32]) -> Vec<f16> {
        x.iter().map(|&x| f16::from_f32(x)).collect()
    }

    #[test]
    fn matmul_follows_numpy() {
        // Shapes, the product's shape, its sum and its last element (numpy.matmul).
        type Case<'a> = (&'a [usize], &'a [usize], &'a [usize], f32, f32);
        let cases: &[Case<'_>] = &[
            (&[3], &[3], &[], 14.0, 14.0),
            (&[2, 3], &[3], &[2], 10.0, -4.0),
            (&[3], &[3, 4], &[4], 14.0, 5.0),
            (&[2, 3, 4], &[4, 5], &[2, 3, 5], -5.0, 10.0),
            (&[2, 1, 3, 4], &[5, 4, 2], &[2, 5, 3, 2], 16.0, 16.0),
            (&[1, 3, 300], &[2, 300, 70], &[2, 3, 70], 0.0, -3.0),
            (&[0, 3], &[3, 2], &[0, 2], 0.0, 0.0),
            (&[2, 0], &[0, 2], &[2, 2], 0.0, 0.0),
        ];
        for &(a, b, shape, sum, last) in cases {
            let ((a, x), (b, y)) = (ramp(a), ramp(b));
            for constants in [&[][..], &[1]] {
                let check = |out: (Vec<usize>, Vec<f32>)| {
                    assert_eq!(out.0, shape, "{a:?} · {b:?}");
                    assert_eq!(out.1.iter().sum::<f32>(), sum, "{a:?} · {b:?}");
                    assert_eq!(out.1.last().copied().unwrap_or(0.0), last, "{a:?} · {b:?}");
                };
                let multiply = |a: Option<Value>, b: Option<Value>| {
                    run_constant("", "MatMul", 13, &[], &[a, b], constants, 1).unwrap().remove(0)
                };
                check(elements(&multiply(t(&a, &x), t(&b, &y))));
                let half = elements::<f16>(&multiply(t(&a, &halves(&x)), t(&b, &halves(&y))));
                check((half.0, half.1.iter().map(|x| x.to_f32()).collect()));
                let whole = |v: &[f32]| v.iter().map(|&x| x as i64).collect::<Vec<_>>();
                let int = elements::<i64>(&multiply(t(&a, &whole(&x)), t(&b, &whole(&y))));
                check((int.0, int.1.iter().map(|&x| x as f32).collect()));
            }
        }
    }

    #[test]
    fn gemm_scales_and_broadcasts_c() {
        let a = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
        let b = [1.0f32, 0.0, -1.0, 2.0, 1.0, 1.0];
        let int = Attribute::Int;
        // 0.5·A'·B' + 2·C with numpy.
        type Case<'a> = (&'a [usize], i64, &'a [usize], i64, &'a [usize], &'a [f32], &'a [f32]);
        let cases: &[Case<'_>] = &[
            (&[2, 3], 0, &[3, 2], 0, &[], &[1.0], &[3.0, 5.5, 4.5, 10.0]),
            (&[3, 2], 1, &[2, 3], 1, &[2], &[1.0, -1.0], &[0.0, 3.0, 0.0, 5.0]),
            (&[2, 3], 0, &[2, 3], 1, &[2, 1], &[1.0, -1.0], &[1.0, 5.5, -3.0, 7.5]),
        ];
        for (sa, ta, sb, tb, sc, c, want) in cases {
            let attributes = [
                ("alpha", Attribute::Float(0.5)),
                ("beta", Attribute::Float(2.0)),
                ("transA", int(*ta)),
                ("transB", int(*tb)),
            ];
            for constants in [&[][..], &[1]] {
                let inputs = [t(sa, &a), t(sb, &b), t(sc, c)];
                let out = run_constant("", "Gemm", 13, &attributes, &inputs, constants, 1).unwrap();
                assert_eq!(elements::<f32>(&out[0]), (vec![2, 2], want.to_vec()), "{sa:?} {sb:?} {sc:?}");
            }
        }
    }

    #[test]
    fn wrong_shapes_are_named() {
        let error = run("MatMul", 13, &[], &[t(&[2, 3], &[0.0f32; 6]), t(&[2, 3], &[0.0f32; 6])], 1);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("input 1 (B)") && error.contains("allowed is 3"), "{error}");
    }
}
