//! Products of floats with a weight of a few bits. Bound: for a few rows by reading the weight, for
//! many by multiplications.
//!
//! Who computes a product, the first that fits:
//!
//! | weight | rows of A | by | reason |
//! |---|---|---|---|
//! | MatMulNBits, constant, without groups | `packed::serves` | `packed` | copied once into a layout for vectors, in large pages |
//! | MatMulNBits without groups | up to 16 | `dots` | unpacked in registers, where it lies |
//! | other | up to 8 | `product` | each piece of a row is multiplied right after it was unpacked |
//! | all | more | `many` | columns of the right operand of a product are unpacked at a time |

mod columns;
mod dots;
mod four_bit_float;
mod gather;
mod many;
mod packed;
mod weights;

use std::marker::PhantomData;
use std::ops::Range;

use crate::loops::packing::Packing;
use crate::ops::OpError;
use crate::ops::weight_only::{FourBitFloat, MatMulBnb4, MatMulNBits};
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

use crate::gemm::Store;
use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;
use crate::loops::parallel::Parts;
use crate::loops::scratch::with_scratch;
use crate::loops::simd::{Loop, widest};
use dots::{arrange, arranged_size, blocks_of_runs};
use many::many;
use packed::Packed;
use weights::{Codes, FP4, NBits, NF4, Weights, Zeros};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("MatMulNBits", build_nbits).domain("com.microsoft"),
    Entry::new("MatMulBnb4", build_codes).domain("com.microsoft"),
    Entry::new("MatMulBlockQuantizedFp4Weight", four_bit_float::build).domain("com.microsoft"),
    Entry::new("GatherBlockQuantized", gather::build).domain("com.microsoft"),
];

/// A row of the weight is unpacked in pieces of this many numbers.
const PIECE: usize = 256;

/// Up to this many rows of A are multiplied with each unpacked piece.
const FEW: usize = 8;

/// Up to this many rows of A are multiplied with numbers that are unpacked in registers.
const FEW_DOTS: usize = 16;

fn build_nbits(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<MatMulNBits>();
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), T in [f32, f16, bf16] =>
        Box::new(NBitsKernel::<T> { op, packed: packed(node)? }), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

/// The weight, when it is constant and has no groups.
fn packed<T: Store<Compute = f32>>(node: &NodeContext<'_>) -> Result<Option<Packed<T>>, OpError> {
    let [Some(b), Some(scales)] = [1, 2].map(|i| node.constant(i)) else { return Ok(None) };
    if node.has_input(4) || node.has_input(3) && node.constant(3).is_none() {
        return Ok(None);
    }
    let op = *node.op::<MatMulNBits>();
    let (b, scales) = (b.aligned()?, scales.aligned()?);
    let zeros = node.constant(3).map(|zeros| zeros.aligned()).transpose()?;
    let zeros = Zeros::new(zeros.as_ref().map(|zeros| zeros.view()), op.bits);
    let (data, scales) = (b.view().slice(), scales.view().slice::<T>());
    Ok(Some(Packed::new(&NBits { op, data, scales, zeros, groups: None }, Packing::of(node))))
}

struct NBitsKernel<T> {
    op: MatMulNBits,
    packed: Option<Packed<T>>,
}

impl<T: Store<Compute = f32>> Kernel for NBitsKernel<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let input = |i: usize| inputs.get(i).copied().flatten();
        let (Some(a), Some(y)) = (input(0), &mut outputs[0]) else { return Ok(()) };
        let bias = input(5).map(|bias| bias.slice::<T>());
        let (m, size) = (y.len() / self.op.n, (self.op.n, self.op.k));
        if let Some(packed) = &self.packed {
            match packed::serves(&self.op, m) {
                true => packed::rows(cx, m, a.slice::<T>(), packed, bias, y.slice::<T>()),
                false => product(cx, size, a.slice::<T>(), packed, bias, y.slice::<T>()),
            }
            return Ok(());
        }
        let (Some(b), Some(scales)) = (input(1), input(2)) else { return Ok(()) };
        let groups = input(4).map(|groups| &groups.slice::<i32>()[..self.op.k]);
        let blocks = self.op.blocks();
        if let Some(bad) = groups.and_then(|groups| groups.iter().find(|&&g| g < 0 || g as usize >= blocks)) {
            return Err(OpError::Data(format!("g_idx has {bad}; allowed are 0 to {}", blocks - 1)));
        }
        let zeros = Zeros::new(input(3), self.op.bits);
        let weights = NBits { op: self.op, data: b.slice(), scales: scales.slice::<T>(), zeros, groups };
        if arranges(m, groups.is_some()) {
            dots(cx, m, a.slice::<T>(), &weights, bias, y.slice::<T>());
            return Ok(());
        }
        product(cx, size, a.slice::<T>(), &weights, bias, y.slice::<T>());
        Ok(())
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let m = outputs[0].map_or(0, |y| y.iter().product::<usize>() / self.op.n);
        let groups = inputs.get(4).is_some_and(Option::is_some);
        let scratch = match &self.packed {
            Some(_) if packed::serves(&self.op, m) => packed::scratch(&self.op, m),
            None if arranges(m, groups) => m * arranged_size(&self.op) * size_of::<f32>(),
            _ => product_room::<T>(m, self.op.k),
        };
        Ok(Prepared { state: None, scratch })
    }

    fn consumes(&self, input: usize) -> bool {
        matches!(input, 1..=3) && self.packed.is_some()
    }
}

/// Whether `m` rows of A are few enough to be arranged for the weight, in scratch memory.
fn arranges(m: usize, groups: bool) -> bool {
    m <= FEW_DOTS && !groups
}

/// `y = a · weights' + bias` for a few rows.
fn dots<T: Store<Compute = f32>>(
    cx: &KernelContext<'_>,
    m: usize,
    a: &[T],
    weights: &NBits<'_, T>,
    bias: Option<&[T]>,
    y: &mut [T],
) {
    let op = &weights.op;
    let MatMulNBits { n, k, .. } = *op;
    let (size, blocks) = (arranged_size(op), blocks_of_runs(op));
    let arranged = &mut cx.scratch::<f32>()[..m * size];
    for (a, to) in a.chunks_exact(k).zip(arranged.chunks_exact_mut(size)) {
        arrange(op, |i| a[i].load(), to);
    }
    let arranged = &*arranged;
    let sink = ColumnSink { out: Parts::new(y), n, bias };
    cx.pool.split(n, (1 << 18) / (k * m).max(1) + 1, |columns| {
        with_scratch([blocks, blocks], |[scales, zeros]: [&mut [f32]; 2]| {
            for j in columns {
                let row = weights.row(j, scales, zeros);
                let mut i = 0;
                while i < m {
                    let rows = &arranged[i * size..];
                    let mut sums = [0.0; 4];
                    let count = match m - i {
                        1 => {
                            sums[..1].copy_from_slice(&row.dots::<1>(rows));
                            1
                        }
                        2 | 3 => {
                            sums[..2].copy_from_slice(&row.dots::<2>(rows));
                            2
                        }
                        _ => {
                            sums = row.dots::<4>(rows);
                            4
                        }
                    };
                    sink.write(j, i, &sums[..count]);
                    i += count;
                }
            }
        });
    });
}

fn build_codes(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<MatMulBnb4>();
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), T in [f32, f16, bf16] =>
        Box::new(CodesKernel::<T> { op, _type: PhantomData }), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

struct CodesKernel<T> {
    op: MatMulBnb4,
    _type: PhantomData<fn(T)>,
}

impl<T: Store<Compute = f32>> Kernel for CodesKernel<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(a), Some(b), Some(factors), Some(y)) = (inputs[0], inputs[1], inputs[2], &mut outputs[0])
        else {
            return Ok(());
        };
        let MatMulBnb4 { n, k, block, code } = self.op;
        let table = match code {
            FourBitFloat::Fp4 => &FP4,
            FourBitFloat::Nf4 => &NF4,
        };
        let weights = Codes { k, block, table, data: b.slice(), factors: factors.slice::<T>() };
        product(cx, (n, k), a.slice::<T>(), &weights, None, y.slice::<T>());
        Ok(())
    }

    fn prepare(
        &self,
        _inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let m = outputs[0].map_or(0, |y| y.iter().product::<usize>() / self.op.n);
        Ok(Prepared { state: None, scratch: product_room::<T>(m, self.op.k) })
    }
}

/// Bytes of scratch that `product` asks for.
fn product_room<T: Store>(m: usize, k: usize) -> usize {
    if m <= FEW || T::SAME { 0 } else { m * k * size_of::<f32>() }
}

/// `y = a · weights' + bias`, rows of `k` and of `n` numbers.
fn product<T: Store<Compute = f32>>(
    cx: &KernelContext<'_>,
    (n, k): (usize, usize),
    a: &[T],
    weights: &impl Weights,
    bias: Option<&[T]>,
    y: &mut [T],
) {
    let m = y.len() / n;
    if m > FEW {
        let a = T::same(a).unwrap_or_else(|| {
            let wide = &mut cx.scratch::<f32>()[..a.len()];
            T::load_all(a, wide);
            wide
        });
        return many(cx.pool, (n, k), a, weights, bias, y);
    }
    let sink = ColumnSink { out: Parts::new(y), n, bias };
    // Some 20 µs of work a piece.
    cx.pool.split(n, (1 << 17) / (k * m).max(1) + 1, |columns| {
        with_scratch([PIECE, PIECE], |[piece, wide]: [&mut [f32]; 2]| {
            for j in columns {
                let mut sums = [0.0; FEW];
                for start in (0..k).step_by(PIECE) {
                    let len = PIECE.min(k - start);
                    let piece = &mut piece[..len];
                    widest(Unpack { weights, row: j, depths: start..start + len, out: piece });
                    for (i, sum) in sums[..m].iter_mut().enumerate() {
                        let a = &a[i * k + start..][..len];
                        let a = match T::same(a) {
                            Some(a) => a,
                            None => {
                                wide[..len].iter_mut().zip(a).for_each(|(to, x)| *to = x.load());
                                &wide[..len]
                            }
                        };
                        *sum += widest(Dot { a, b: piece });
                    }
                }
                sink.write(j, 0, &sums[..m]);
            }
        });
    });
}

struct Unpack<'a, W> {
    weights: &'a W,
    row: usize,
    depths: Range<usize>,
    out: &'a mut [f32],
}

impl<W: Weights> Loop for Unpack<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.weights.unpack(self.row, self.depths, self.out);
    }
}

/// The dot product, summed in sixteen lanes.
struct Dot<'a> {
    a: &'a [f32],
    b: &'a [f32],
}

impl Loop for Dot<'_> {
    type Output = f32;

    #[inline(always)]
    fn run(self) -> f32 {
        let (a_chunks, a_rest) = self.a.as_chunks::<16>();
        let (b_chunks, b_rest) = self.b.as_chunks::<16>();
        let mut lanes = [0.0f32; 16];
        for (a, b) in a_chunks.iter().zip(b_chunks) {
            for i in 0..16 {
                lanes[i] += a[i] * b[i];
            }
        }
        let rest: f32 = a_rest.iter().zip(b_rest).map(|(&a, &b)| a * b).sum();
        lanes.iter().sum::<f32>() + rest
    }
}

/// Stores the products of a row of the weight: a column of the result, plus its bias.
struct ColumnSink<'a, T> {
    out: Parts<'a, T>,
    n: usize,
    bias: Option<&'a [T]>,
}

impl<T: Store<Compute = f32>> ColumnSink<'_, T> {
    /// From row `start` on. Each element is given once.
    fn write(&self, column: usize, start: usize, values: &[f32]) {
        let bias = self.bias.map_or(0.0, |bias| bias[column].load());
        for (row, x) in (start..).zip(values) {
            let at = row * self.n + column;
            // SAFETY: each element is given once.
            let out = unsafe { self.out.get(at..at + 1) };
            out[0] = T::store(x + bias);
        }
    }
}

#[cfg(test)]
mod tests;
