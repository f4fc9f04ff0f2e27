//! Products of 8-bit numbers: the numbers less their zero points, multiplied exactly; then, where the
//! output is quantised, scaled and rounded.

mod along;
mod attention;
mod convolution;
mod elementwise;
mod embed;
mod gemm;
mod parameter;
mod pool;
mod product;

use crate::tensor::{
    ElementType, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, TensorView, TensorViewMut, bf16, f16,
};
use crate::threads::Pool;

use super::Entry;
use super::gemm::Offsets;
use super::parallel::split_mut;

const DOMAIN: &str = "com.microsoft";

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("MatMulInteger", product::build),
    Entry::new("QLinearMatMul", product::build),
    Entry::new("ConvInteger", convolution::build),
    Entry::new("QLinearConv", convolution::build),
    Entry::new("QLinearConv", convolution::build).domain(DOMAIN),
    Entry::new("MatMulIntegerToFloat", product::build).domain(DOMAIN),
    Entry::new("DynamicQuantizeMatMul", product::build).domain(DOMAIN),
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
        let round = f64::round_ties_even;
        match y.ty() {
            ElementType::F32 => self.store_as(pool, sums, y.slice(), |x| x as f32),
            ElementType::F16 => self.store_as(pool, sums, y.slice(), f16::from_f64),
            ElementType::I8 => self.store_as(pool, sums, y.slice(), |x| round(x).clamp(-128.0, 127.0) as i8),
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
            _ => self.store_as(pool, sums, y.slice(), |x| round(x).clamp(0.0, 255.0) as u8),
        }
    }

    fn store_as<T: Send>(&self, pool: &Pool, sums: &[f64], y: &mut [T], cast: impl Fn(f64) -> T + Sync) {
        let (n, zero) = (self.n, self.zero as f64);
        split_mut(pool, y, n, 8192 / n.max(1) + 1, |rows, out| {
            for (row, out) in rows.zip(out.chunks_exact_mut(n.max(1))) {
                let batch = row / self.m;
                let factor = (self.row)(batch, row % self.m);
                let pairs = out.iter_mut().zip(&sums[row * n..][..n]);
                match (self.column, self.bias) {
                    (None, None) => pairs.for_each(|(y, &sum)| *y = cast(sum * factor + zero)),
                    (column, bias) => pairs.enumerate().for_each(|(j, (y, &sum))| {
                        let column = column.map_or(1.0, |column| column(batch, j));
                        let bias = bias.map_or(0.0, |bias| bias(j));
                        *y = cast(sum * factor * column + bias + zero);
                    }),
                }
            }
        });
    }
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
#[cfg(test)]
mod tests_elementwise;
#[cfg(test)]
mod tests_transformer;
