//! Products as the platform's libraries take them.

use std::sync::Arc;

use crate::hip::blas::{Algorithm, Gemm, Stored};
use crate::ops::OpError;
use crate::ops::activation::Activation;
use crate::tensor::{ALIGNMENT, ElementType};

use super::super::PlanBuilder;
use super::super::launch::Operand;
use super::product::{Matrix, Product};

/// A product as a library computes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Described {
    pub(super) gemm: Gemm,
    /// Whether it leaves sums, which a kernel of ours finishes.
    finish: bool,
    /// What is added, unless a kernel of ours does.
    addend: Addend,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Addend {
    None,
    /// A number for each column of the result: rows of the column-major matrix.
    Bias(Matrix),
    /// A matrix that is stored like the result, by a factor.
    Matrix(Matrix),
}

impl Described {
    /// The forms in which a library may take a product: all of it, or its sums alone. None where matrices
    /// lie in memory as no library knows it.
    pub(super) fn forms(product: &Product, ty: ElementType) -> Vec<Self> {
        if !matches!(ty, ElementType::F16 | ElementType::BF16 | ElementType::F32 | ElementType::F64) {
            return Vec::new();
        }
        let whole = Self::whole(product, ty);
        // Sums of products alone need no second launch.
        let sums = if product.is_plain() { None } else { Self::sums(product, ty) };
        whole.into_iter().chain(sums).collect()
    }

    /// With everything that becomes of the sums.
    fn whole(product: &Product, ty: ElementType) -> Option<Self> {
        let epilogue = product.epilogue;
        let relu = match epilogue.activation {
            Activation::Identity => false,
            Activation::Relu => true,
            _ => return None,
        };
        let (addend, beta) = match (product.bias, product.residual) {
            (None, None) => (Addend::None, 0.0),
            (Some(c), None) if epilogue.beta == 1.0 && c.strides == [0, 1] && shared(product, 3) => {
                (Addend::Bias(c), 0.0)
            }
            (Some(c), None) if like_result(product, c, 3) => (Addend::Matrix(c), f64::from(epilogue.beta)),
            (None, Some(c)) if like_result(product, c, 4) => (Addend::Matrix(c), 1.0),
            _ => return None,
        };
        let mut gemm = row_major(product, ty)?;
        (gemm.alpha, gemm.beta) = (f64::from(epilogue.alpha), beta);
        (gemm.bias, gemm.relu) = (matches!(addend, Addend::Bias(_)), relu);
        let described = Described { gemm, finish: false, addend };
        Some(described.aligned(product, ty))
    }

    /// The sums as `[batch][m][n]`, in `f32` (`f64` for that type).
    fn sums(product: &Product, ty: ElementType) -> Option<Self> {
        let mut gemm = row_major(product, ty)?;
        gemm.out = if ty == ElementType::F64 { ty } else { ElementType::F32 };
        gemm.d = Stored { transposed: false, leading: product.n, step: product.m * product.n };
        let described = Described { gemm, finish: true, addend: Addend::None };
        Some(described.aligned(product, ty))
    }

    /// With what is known of addresses: planned values are aligned, and operands begin at offsets in them.
    fn aligned(mut self, product: &Product, ty: ElementType) -> Self {
        let offsets = product.matrices().into_iter().flatten().map(|matrix| matrix.offset * ty.size());
        let all = offsets.fold(ALIGNMENT, |all, offset| all | offset);
        self.gemm.alignment = 1 << all.trailing_zeros();
        self
    }

    /// Appends the product by an algorithm; `otherwise` appends it for operands that are aligned less.
    pub(super) fn plan(
        &self,
        product: &Product,
        ty: ElementType,
        plan: &mut PlanBuilder<'_>,
        algorithm: &Arc<dyn Algorithm>,
        otherwise: impl FnOnce(&mut PlanBuilder<'_>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let at = |matrix: Matrix| Some((matrix.at, (matrix.offset * ty.size()) as u64));
        let sums = self.finish.then(|| product.sums(plan, ty, 1));
        let d = sums.map_or_else(|| at(product.out), |sums: Operand| Some((sums, 0)));
        let (c, bias) = match self.addend {
            Addend::None => (None, None),
            Addend::Bias(bias) => (None, at(bias)),
            Addend::Matrix(c) => (at(c), None),
        };
        // Column-major, the result's transpose is computed: operands change places.
        let operands = [at(product.b), at(product.a), c, d, bias];
        let rest = |plan: &mut PlanBuilder<'_>| match sums {
            Some(sums) => product.finish_sums(plan, ty, sums),
            None => Ok(()),
        };
        plan.library(algorithm.clone(), operands, self.gemm.alignment, rest, otherwise)
    }

    /// What the names of its algorithms end with.
    pub(super) fn suffix(&self) -> &'static str {
        if self.finish { "+finish" } else { "" }
    }
}

/// The product A · B of row-major matrices as Bᵀ · Aᵀ of column-major ones, with nothing done to the sums.
fn row_major(product: &Product, ty: ElementType) -> Option<Gemm> {
    let batch = match product.batch[..] {
        [] => None,
        [axis] => Some(axis),
        _ => return None,
    };
    let step = |i: usize| usize::try_from(batch.map_or(0, |axis| axis.strides[i])).ok();
    let (a, b) = (stored(product.a, product.m, product.k)?, stored(product.b, product.k, product.n)?);
    let out = stored(product.out, product.m, product.n).filter(|out| !out.transposed)?;
    Some(Gemm {
        ty,
        out: ty,
        m: product.n,
        n: product.m,
        k: product.k,
        batch: batch.map_or(1, |axis| axis.size),
        a: Stored { step: step(1)?, ..b },
        b: Stored { step: step(0)?, ..a },
        d: Stored { step: step(2)?, ..out },
        alpha: 1.0,
        beta: 0.0,
        bias: false,
        relu: false,
        alignment: 1,
    })
}

/// How a row-major matrix is stored in column-major terms.
fn stored(matrix: Matrix, rows: usize, columns: usize) -> Option<Stored> {
    let leading = |stride: i64, least: usize| usize::try_from(stride).ok().filter(|&s| s >= least.max(1));
    // Where a dimension is 1, its stride means nothing.
    match matrix.strides {
        [row, 1] if rows == 1 || leading(row, columns).is_some() => {
            let leading = if rows == 1 { columns.max(1) } else { row as usize };
            Some(Stored { transposed: false, leading, step: 0 })
        }
        [1, column] if columns == 1 || leading(column, rows).is_some() => {
            let leading = if columns == 1 { rows.max(1) } else { column as usize };
            Some(Stored { transposed: true, leading, step: 0 })
        }
        _ => None,
    }
}

/// Whether an operand (by its place among the strides of a batch) is the same for every matrix of the batch.
fn shared(product: &Product, operand: usize) -> bool {
    product.batch.iter().all(|axis| axis.strides[operand] == 0)
}

/// Whether an operand has the strides of the result.
fn like_result(product: &Product, matrix: Matrix, operand: usize) -> bool {
    matrix.strides == product.out.strides
        && product.batch.iter().all(|axis| axis.strides[operand] == axis.strides[2])
}

#[cfg(test)]
mod tests {
    use super::super::Epilogue;
    use super::super::product::Axis;
    use super::*;

    fn product() -> Product {
        Product {
            m: 6,
            n: 8,
            k: 4,
            a: Matrix::new(Operand::Input(0), 4, 1),
            b: Matrix::new(Operand::Input(1), 8, 1),
            out: Matrix::new(Operand::Output(0), 8, 1),
            bias: None,
            residual: None,
            batch: Vec::new(),
            epilogue: Epilogue::default(),
        }
    }

    fn forms(change: impl FnOnce(&mut Product)) -> Vec<Described> {
        let mut product = product();
        change(&mut product);
        Described::forms(&product, ElementType::F16)
    }

    #[test]
    fn operands_change_places() {
        let [form] = &forms(|p| p.b.strides = [1, 4])[..] else { panic!("one form") };
        let gemm = &form.gemm;
        assert_eq!((gemm.m, gemm.n, gemm.k, gemm.batch), (8, 6, 4, 1));
        assert_eq!(gemm.a, Stored { transposed: true, leading: 4, step: 0 });
        assert_eq!(gemm.b, Stored { transposed: false, leading: 4, step: 0 });
        assert_eq!((gemm.d.leading, gemm.alignment), (8, 64));
        // The batch's strides follow their operands; offsets limit the alignment.
        let [form] = &forms(|p| {
            p.batch = vec![Axis { size: 3, strides: [24, 0, 48, 0, 0] }];
            p.a.offset = 8;
        })[..] else {
            panic!("one form")
        };
        assert_eq!((form.gemm.batch, form.gemm.alignment), (3, 16));
        assert_eq!([form.gemm.a, form.gemm.b, form.gemm.d].map(|s| s.step), [0, 24, 48]);
    }

    #[test]
    fn epilogues_decide_forms() {
        let matrix = |row, column| Some(Matrix::new(Operand::Input(2), row, column));
        /// A change to a product; bias, beta and ReLU where the library does all of it; whether it may leave
        /// the sums.
        type Case = (fn(&mut Product), Option<(bool, f64, bool)>, bool);
        let cases: [Case; 5] = [
            (|_| {}, Some((false, 0.0, false)), false),
            (|p| p.epilogue.activation = Activation::Relu, Some((false, 0.0, true)), true),
            (|p| p.epilogue.activation = Activation::Tanh, None, true),
            (|p| p.epilogue.alpha = 0.5, Some((false, 0.0, false)), true),
            (|p| p.batch = vec![Axis { size: 2, strides: [0; 5] }; 2], None, false),
        ];
        for (i, (change, whole, sums)) in cases.into_iter().enumerate() {
            let forms = forms(change);
            let found = forms.iter().find(|f| !f.finish).map(|f| (f.gemm.bias, f.gemm.beta, f.gemm.relu));
            assert_eq!((found, forms.iter().any(|f| f.finish)), (whole, sums), "case {i}");
        }
        for (bias, beta, whole) in [
            (matrix(0, 1), 1.0, Some((true, 0.0))),
            (matrix(0, 1), 2.0, None),
            (matrix(1, 0), 1.0, None),
            (matrix(8, 1), 2.0, Some((false, 2.0))),
        ] {
            let forms = forms(|p| (p.bias, p.epilogue.beta) = (bias, beta));
            let found = forms.iter().find(|f| !f.finish).map(|f| (f.gemm.bias, f.gemm.beta));
            assert_eq!(found, whole, "{bias:?} {beta}");
            assert!(forms.iter().any(|f| f.finish));
        }
    }
}
