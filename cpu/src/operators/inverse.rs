//! Inverses and determinants of square matrices.

use std::marker::PhantomData;

use num_traits::AsPrimitive;

use crate::ops::OpError;
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared, data_shape};
use crate::loops::number::{Float, dispatch};

pub(super) const KERNELS: &[Entry] =
    &[Entry::new("Det", det), Entry::new("Inverse", build).domain("com.microsoft")];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    dispatch!(node.input(0), T in [f32, f64, f16] => {
        Ok(CpuKernel::Tensor(Box::new(Inverse::<T>(PhantomData))))
    }, else Err(node.no_kernel()))
}

/// Gauss and Jordan's elimination with the largest pivot of each column, in f64.
struct Inverse<T>(PhantomData<fn(T)>);

impl<T: Float> Kernel for Inverse<T> {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let n = inputs[0].and_then(|x| x.shape.last().copied()).unwrap_or(0);
        Ok(Prepared { state: None, scratch: 2 * n * n * size_of::<f64>() })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let n = x.shape().last().copied().unwrap_or(0);
        if x.len() == 0 {
            return Ok(());
        }
        // Rows of the matrix and of the identity beside it.
        let rows = cx.scratch::<f64>();
        let matrices = x.slice::<T>().chunks_exact(n * n).zip(y.slice::<T>().chunks_exact_mut(n * n));
        for (i, (x, y)) in matrices.enumerate() {
            for (r, row) in rows.chunks_exact_mut(2 * n).enumerate() {
                row.fill(0.0);
                row.iter_mut().zip(&x[r * n..][..n]).for_each(|(to, x)| *to = x.up().as_());
                row[n + r] = 1.0;
            }
            if !eliminate(rows, n) {
                return Err(OpError::Data(format!("matrix {i} is singular and has no inverse")));
            }
            for (row, y) in rows.chunks_exact(2 * n).zip(y.chunks_exact_mut(n)) {
                y.iter_mut().zip(&row[n..]).for_each(|(y, &x)| *y = T::down(T::constant(x)));
            }
        }
        Ok(())
    }
}

/// Makes the left half of the rows the identity; `false` where there is no pivot.
fn eliminate(rows: &mut [f64], n: usize) -> bool {
    let width = 2 * n;
    for column in 0..n {
        let size = |r: usize, rows: &[f64]| rows[r * width + column].abs();
        let pivot =
            (column..n).fold(column, |best, r| if size(r, rows) > size(best, rows) { r } else { best });
        let value = rows[pivot * width + column];
        if value == 0.0 || value.is_nan() {
            return false;
        }
        for j in 0..width {
            rows.swap(pivot * width + j, column * width + j);
            rows[column * width + j] /= value;
        }
        for r in (0..n).filter(|&r| r != column) {
            let factor = rows[r * width + column];
            for j in column..width {
                rows[r * width + j] -= factor * rows[column * width + j];
            }
        }
    }
    true
}

fn det(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    dispatch!(
        node.input(0),
        T in [f32, f64, f16, bf16] => Ok(CpuKernel::Tensor(Box::new(Det::<T>(PhantomData)))),
        else Err(node.no_kernel())
    )
}

/// By Gaussian elimination with partial pivoting, in f64.
struct Det<T>(PhantomData<fn(T)>);

impl<T: Float> Kernel for Det<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(input), Some(output)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let n = input.shape().last().copied().unwrap_or(0);
        let input = input.slice::<T>();
        let matrix = cx.scratch::<f64>();
        for (i, y) in output.slice::<T>().iter_mut().enumerate() {
            let source = &input[i * n * n..(i + 1) * n * n];
            matrix.iter_mut().zip(source).for_each(|(m, x)| *m = x.up().as_());
            *y = T::down(T::constant(determinant(matrix, n)));
        }
        Ok(())
    }

    fn prepare(&self, inputs: &[Option<Argument<'_>>], _: &[Option<&[usize]>]) -> Result<Prepared, OpError> {
        let n = data_shape(inputs)?.last().copied().unwrap_or(0);
        Ok(Prepared { state: None, scratch: n * n * size_of::<f64>() })
    }
}

fn determinant(m: &mut [f64], n: usize) -> f64 {
    let mut product = 1.0;
    for k in 0..n {
        let pivot = (k..n).max_by(|&a, &b| m[a * n + k].abs().total_cmp(&m[b * n + k].abs())).unwrap_or(k);
        if m[pivot * n + k] == 0.0 {
            return 0.0;
        }
        if pivot != k {
            (0..n).for_each(|j| m.swap(pivot * n + j, k * n + j));
            product = -product;
        }
        product *= m[k * n + k];
        let (above, below) = m.split_at_mut((k + 1) * n);
        let row = &above[k * n..];
        for other in below.chunks_exact_mut(n) {
            let factor = other[k] / row[k];
            other[k..].iter_mut().zip(&row[k..]).for_each(|(x, r)| *x -= factor * r);
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use crate::testing::{elements, run_in, t};

    #[test]
    fn inverts() {
        // numpy.linalg.inv
        let x = t(&[2, 2, 2], &[0.0f32, 2.0, 1.0, 3.0, 4.0, 7.0, 2.0, 6.0]);
        let out = run_in("com.microsoft", "Inverse", 1, &[], &[x], 1).unwrap();
        let want = [-1.5, 1.0, 0.5, 0.0, 0.6, -0.7, -0.2, 0.4];
        for (got, want) in elements::<f32>(&out[0]).1.iter().zip(want) {
            assert!((got - want).abs() < 1e-6, "{got} {want}");
        }
        let singular = t(&[2, 2], &[1.0f64, 2.0, 2.0, 4.0]);
        let error = run_in("com.microsoft", "Inverse", 1, &[], &[singular], 1).unwrap_err().to_string();
        assert!(error.contains("matrix 0 is singular"), "{error}");
        let wide = t(&[2, 3], &[0.0f32; 6]);
        let error = run_in("com.microsoft", "Inverse", 1, &[], &[wide], 1).unwrap_err().to_string();
        assert!(error.contains("square"), "{error}");
    }
}
