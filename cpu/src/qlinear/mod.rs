//! Products of 8-bit numbers: the numbers less their zero points, multiplied exactly; then, where the
//! output is quantized, scaled and rounded.

mod along;
mod attention;
mod convolution;
mod elementwise;
mod embed;
mod epilogue;
mod gemm;
mod matmul;
mod parameter;
mod pool;

use crate::gemm::Offsets;
use crate::kernel::Entry;
use crate::loops::parallel::split_mut;
use crate::loops::scratch::with_scratch;
use crate::loops::simd::{Loop, widest};
use crate::tensor::{
    ElementType, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, TensorView, TensorViewMut, bf16, f16,
};
use crate::threads::Pool;

const DOMAIN: &str = "com.microsoft";
pub(crate) const KERNELS: &[Entry] = &[
    Entry::new("MatMulInteger", matmul::build),
    Entry::new("QLinearMatMul", matmul::build),
    Entry::new("ConvInteger", convolution::build),
    Entry::new("QLinearConv", convolution::build),
    Entry::new("QLinearConv", convolution::build).domain(DOMAIN),
    Entry::new("QLinearConv", convolution::build).domain("rukh"),
    Entry::new("MatMulIntegerToFloat", matmul::build).domain(DOMAIN),
    Entry::new("DynamicQuantizeMatMul", matmul::build).domain(DOMAIN),
    Entry::new("QGemm", gemm::build).domain(DOMAIN),
    Entry::new("QAttention", attention::build).domain(DOMAIN),
    Entry::new("QEmbedLayerNormalization", embed::build).domain(DOMAIN),
    Entry::new("QLinearAdd", elementwise::build_binary).domain(DOMAIN),
    Entry::new("QLinearMul", elementwise::build_binary).domain(DOMAIN),
    Entry::new("QLinearSigmoid", elementwise::build_unary).domain(DOMAIN),
    Entry::new("QLinearLeakyRelu", elementwise::build_unary).domain(DOMAIN),
    Entry::new("QLinearWhere", elementwise::build_where).domain(DOMAIN),
    Entry::new("QLinearSoftmax", along::build_softmax).domain(DOMAIN),
    Entry::new("QLinearConcat", along::build_concat).domain(DOMAIN),
    Entry::new("QLinearAveragePool", pool::build_pool).domain(DOMAIN),
    Entry::new("NhwcMaxPool", pool::build_pool).domain(DOMAIN),
    Entry::new("QLinearGlobalAveragePool", pool::build_mean).domain(DOMAIN),
    Entry::new("QLinearGlobalAveragePool", pool::build_mean).domain("rukh"),
    Entry::new("QLinearReduceMean", pool::build_mean).domain(DOMAIN),
];

/// Eight-bit numbers to read, each as the `f32` that equals it.
#[derive(Clone, Copy)]
enum Bytes<'a> {
    U8(&'a [u8]),
    I8(&'a [i8]),
    E4M3FN(&'a [F8E4M3FN]),
    E4M3FNUZ(&'a [F8E4M3FNUZ]),
    E5M2(&'a [F8E5M2]),
    E5M2FNUZ(&'a [F8E5M2FNUZ]),
}

impl<'a> Bytes<'a> {
    fn new(view: TensorView<'a>) -> Self {
        match view.ty() {
            ElementType::I8 => Bytes::I8(view.slice()),
            ElementType::F8E4M3FN => Bytes::E4M3FN(view.slice()),
            ElementType::F8E4M3FNUZ => Bytes::E4M3FNUZ(view.slice()),
            ElementType::F8E5M2 => Bytes::E5M2(view.slice()),
            ElementType::F8E5M2FNUZ => Bytes::E5M2FNUZ(view.slice()),
            _ => Bytes::U8(view.slice()),
        }
    }

    fn at(self, i: usize) -> f32 {
        match self {
            Bytes::U8(x) => x[i] as f32,
            Bytes::I8(x) => x[i] as f32,
            Bytes::E4M3FN(x) => x[i].to_f32(),
            Bytes::E4M3FNUZ(x) => x[i].to_f32(),
            Bytes::E5M2(x) => x[i].to_f32(),
            Bytes::E5M2FNUZ(x) => x[i].to_f32(),
        }
    }

    /// Writes the numbers from `start` at a stride, less `zero`.
    fn load(self, start: usize, stride: usize, zero: f32, out: &mut [f32]) {
        match (self, stride) {
            (Bytes::U8(x), 1) => out.iter_mut().zip(&x[start..]).for_each(|(y, &x)| *y = x as f32 - zero),
            (Bytes::I8(x), 1) => out.iter_mut().zip(&x[start..]).for_each(|(y, &x)| *y = x as f32 - zero),
            _ => out.iter_mut().enumerate().for_each(|(j, y)| *y = self.at(start + j * stride) - zero),
        }
    }
}

impl<'a> Bytes<'a> {
    /// Integers as bytes, and which bits of each to flip for signed or unsigned ones, which are 128 apart.
    fn as_bytes(self, signed: bool) -> Option<(&'a [u8], u8)> {
        let (bytes, own): (&[u8], bool) = match self {
            Bytes::I8(x) => (bytemuck::cast_slice(x), true),
            Bytes::U8(x) => (x, false),
            _ => return None,
        };
        Some((bytes, if own == signed { 0 } else { 128 }))
    }

    /// Whether these are integers, and signed ones.
    fn signed(self) -> Option<bool> {
        match self {
            Bytes::U8(_) => Some(false),
            Bytes::I8(_) => Some(true),
            _ => None,
        }
    }

    /// Writes the integers from `start` at a stride as signed or unsigned ones, which are 128 apart.
    fn load_bytes(self, start: usize, stride: usize, signed: bool, out: &mut [u8]) {
        let Some((bytes, flip)) = self.as_bytes(signed) else { return };
        let from = &bytes[start..];
        match stride {
            1 if flip == 0 => out.copy_from_slice(&from[..out.len()]),
            1 => out.iter_mut().zip(from).for_each(|(y, &x)| *y = x ^ flip),
            _ => out.iter_mut().zip(from.iter().step_by(stride.max(1))).for_each(|(y, &x)| *y = x ^ flip),
        }
    }
}

/// One number for all, or one for each row or column.
#[derive(Clone, Copy)]
struct Zeros<'a> {
    /// `None`: zero.
    values: Option<Bytes<'a>>,
    offsets: Offsets<'a>,
    /// 0 where one number serves a whole matrix.
    stride: usize,
}

impl Zeros<'_> {
    fn at(&self, batch: usize, i: usize) -> f32 {
        self.values.map_or(0.0, |v| v.at(self.offsets.at(batch) + i * self.stride))
    }

    /// The same of integers, as a signed or an unsigned byte; `own` tells what the operand's are.
    fn byte(&self, batch: usize, i: usize, own: bool, signed: bool) -> u8 {
        let flip = if signed { 128 } else { 0 };
        match self.values {
            Some(Bytes::U8(x)) => x[self.offsets.at(batch) + i * self.stride] ^ flip,
            Some(Bytes::I8(x)) => x[self.offsets.at(batch) + i * self.stride] as u8 ^ (flip ^ 128),
            _ => u8::from(own != signed) << 7,
        }
    }
}

/// A factor of each element of a result, from the index in the batch and the row or column.
type Factor<'a> = &'a (dyn Fn(usize, usize) -> f64 + Sync);

/// What becomes of exact sums: `sum · row · column + bias + zero`.
struct Requantize<'a> {
    row: Factor<'a>,
    column: Option<Factor<'a>>,
    /// By column, in the output's units.
    bias: Option<&'a (dyn Fn(usize) -> f64 + Sync)>,
    zero: f32,
    m: usize,
    n: usize,
}

impl Requantize<'_> {
    /// Stores floats, or integers rounded half to even and saturated.
    fn store(&self, pool: &Pool, sums: &[f64], y: &mut TensorViewMut<'_>) {
        match y.ty() {
            ElementType::F32 => self.store_as(pool, sums, y.slice(), |x| x as f32),
            ElementType::F16 => self.store_as(pool, sums, y.slice(), f16::from_f64),
            ElementType::I8 => self.store_as(pool, sums, y.slice(), |x| nearest(x, -128.0, 127.0) as i8),
            ElementType::F8E4M3FN => {
                self.store_as(pool, sums, y.slice(), |x| F8E4M3FN::from_f32(x as f32, true));
            }
            ElementType::F8E4M3FNUZ => {
                self.store_as(pool, sums, y.slice(), |x| F8E4M3FNUZ::from_f32(x as f32, true));
            }
            ElementType::F8E5M2 => {
                self.store_as(pool, sums, y.slice(), |x| F8E5M2::from_f32(x as f32, true));
            }
            ElementType::F8E5M2FNUZ => {
                self.store_as(pool, sums, y.slice(), |x| F8E5M2FNUZ::from_f32(x as f32, true));
            }
            _ => self.store_as(pool, sums, y.slice(), |x| nearest(x, 0.0, 255.0) as u8),
        }
    }

    fn store_as<T: Send>(&self, pool: &Pool, sums: &[f64], y: &mut [T], cast: impl Fn(f64) -> T + Sync) {
        let (n, zero) = (self.n, self.zero as f64);
        split_mut(pool, y, n, 8192 / n.max(1) + 1, |rows, out| {
            with_scratch([n, n], |[columns, biases]: [&mut [f64]; 2]| {
                columns.fill(1.0);
                biases.fill(zero);
                if let Some(bias) = self.bias {
                    biases.iter_mut().enumerate().for_each(|(j, y)| *y = bias(j) + zero);
                }
                let mut ready = None;
                for (row, y) in rows.zip(out.chunks_exact_mut(n.max(1))) {
                    let batch = row / self.m;
                    if let Some(column) = self.column.filter(|_| ready != Some(batch)) {
                        columns.iter_mut().enumerate().for_each(|(j, y)| *y = column(batch, j));
                        ready = Some(batch);
                    }
                    let factor = (self.row)(batch, row % self.m);
                    widest(Scaled { y, sums: &sums[row * n..][..n], factor, columns, biases, cast: &cast });
                }
            });
        });
    }
}

/// A row of results.
struct Scaled<'a, T, F> {
    y: &'a mut [T],
    sums: &'a [f64],
    factor: f64,
    columns: &'a [f64],
    biases: &'a [f64],
    cast: &'a F,
}

impl<T, F: Fn(f64) -> T> Loop for Scaled<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let numbers = self.sums.iter().zip(self.columns).zip(self.biases);
        for (y, ((&sum, &column), &bias)) in self.y.iter_mut().zip(numbers) {
            *y = (self.cast)(sum * self.factor * column + bias);
        }
    }
}

/// The nearest integer, ties to even, limited. Beside 1.5·2⁵² an f64 has no room for fractions: the number lies
/// in its last bits. A cast is no vector instruction, since it saturates.
#[inline(always)]
fn nearest(x: f64, low: f64, high: f64) -> i32 {
    (x.max(low).min(high) + 6_755_399_441_055_744.0).to_bits() as i32
}

/// The elements of a tensor of scales.
fn scales(view: TensorView<'_>) -> impl Fn(usize) -> f64 + Sync + '_ {
    move |i| match view.ty() {
        ElementType::F16 => view.slice::<f16>()[i].to_f64(),
        ElementType::BF16 => view.slice::<bf16>()[i].to_f64(),
        _ => view.slice::<f32>()[i] as f64,
    }
}

#[cfg(test)]
mod tests;
