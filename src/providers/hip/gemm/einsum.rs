//! Einstein summation as products of two operands at a time.
//!
//! A dimension of the result that both operands have, or that cannot join the rows or columns of the
//! product, is a batch; a product takes one dimension to sum over, so that several are joined first, by a
//! product with one where they are not neighbours.

use crate::ops::OpError;
use crate::ops::einsum::{Einsum, Label};
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::launch::Operand;
use super::super::{HipKernel, PlanBuilder};
use super::epilogue::Epilogue;
use super::product::{Axis, Matrix, Product};
use super::row_major;

pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    // What several products pass on is stored as the operands' type: half types would be rounded twice.
    let exact = match node.input(0) {
        Some(ElementType::F16 | ElementType::BF16) => node.input_types.len() <= 2,
        Some(ty) => super::supports(ty),
        None => false,
    };
    match node.input(0).filter(|_| exact) {
        Some(ty) => Ok(Box::new(EinsumKernel { op: node.op::<Einsum>().clone(), ty })),
        None => Err(node.no_kernel()),
    }
}

struct EinsumKernel {
    op: Einsum,
    ty: ElementType,
}

/// A tensor whose dimensions have labels; of a repeated label only the diagonal is left.
#[derive(Clone, Debug)]
struct Named {
    at: Operand,
    /// Label, size and stride.
    dims: Vec<(Label, usize, usize)>,
}

impl Named {
    fn new(at: Operand, labels: &[Label], sizes: &[usize]) -> Self {
        let mut dims: Vec<(Label, usize, usize)> = Vec::new();
        for ((&label, &size), stride) in labels.iter().zip(sizes).zip(row_major(sizes)) {
            // A dimension of 1 broadcasts.
            if size == 1 {
                continue;
            }
            match dims.iter_mut().find(|d| d.0 == label) {
                Some(dim) => dim.2 += stride,
                None => dims.push((label, size, stride)),
            }
        }
        Named { at, dims }
    }

    fn has(&self, label: Label) -> bool {
        self.dims.iter().any(|d| d.0 == label)
    }

    fn stride(&self, label: Label) -> usize {
        self.dims.iter().find(|d| d.0 == label).map_or(0, |d| d.2)
    }

    /// The stride of these labels as one dimension, outermost first, where they are neighbours.
    fn joined(&self, labels: &[(Label, usize)]) -> Option<usize> {
        let mut step = None;
        for &(label, size) in labels.iter().rev() {
            match step {
                None => step = Some((self.stride(label), self.stride(label) * size)),
                Some((inner, next)) if next == self.stride(label) => step = Some((inner, next * size)),
                Some(_) => return None,
            }
        }
        Some(step.map_or(0, |s| s.0))
    }
}

/// What a label is for in a product.
#[derive(Default)]
struct Roles {
    batch: Vec<(Label, usize)>,
    rows: Vec<(Label, usize)>,
    columns: Vec<(Label, usize)>,
    summed: Vec<(Label, usize)>,
}

impl Roles {
    fn new(a: &Named, b: &Named, out: &Named, all: &[(Label, usize)]) -> Self {
        let mut roles = Roles::default();
        for &(label, size) in all {
            let list = match (out.has(label), a.has(label), b.has(label)) {
                (_, false, false) => continue,
                (false, ..) => &mut roles.summed,
                (true, true, true) => &mut roles.batch,
                (true, true, false) => &mut roles.rows,
                (true, false, true) => &mut roles.columns,
            };
            list.push((label, size));
        }
        // Rows and columns that are no single dimension move to the batch, the outermost first.
        while roles.rows.len() > 1 && (a.joined(&roles.rows).is_none() || out.joined(&roles.rows).is_none()) {
            let moved = roles.rows.remove(0);
            roles.batch.push(moved);
        }
        while roles.columns.len() > 1
            && (b.joined(&roles.columns).is_none() || out.joined(&roles.columns).is_none())
        {
            let moved = roles.columns.remove(0);
            roles.batch.push(moved);
        }
        roles
    }
}

/// One product; its operands' summed dimensions are neighbours.
fn product(a: &Named, b: &Named, out: &Named, roles: &Roles) -> Product {
    let count = |list: &[(Label, usize)]| list.iter().map(|d| d.1).product::<usize>();
    let step = |named: &Named, list: &[(Label, usize)]| named.joined(list).unwrap_or(0);
    let axis = |&(label, size): &(Label, usize)| Axis {
        size,
        strides: [a.stride(label) as i64, b.stride(label) as i64, out.stride(label) as i64, 0, 0],
    };
    Product {
        m: count(&roles.rows),
        n: count(&roles.columns),
        k: count(&roles.summed),
        a: Matrix::new(a.at, step(a, &roles.rows), step(a, &roles.summed)),
        b: Matrix::new(b.at, step(b, &roles.summed), step(b, &roles.columns)),
        out: Matrix::new(out.at, step(out, &roles.rows), step(out, &roles.columns)),
        bias: None,
        residual: None,
        batch: roles.batch.iter().map(axis).collect(),
        epilogue: Epilogue::default(),
    }
}

/// Walks through the labels of an equation.
struct Steps<'s, 'p> {
    plan: &'s mut PlanBuilder<'p>,
    ty: ElementType,
    /// Every label with its size, in the result's order and then the operands'.
    all: Vec<(Label, usize)>,
    one: Named,
}

impl Steps<'_, '_> {
    fn size(&self, label: Label) -> usize {
        self.all.iter().find(|d| d.0 == label).map_or(1, |d| d.1)
    }

    /// A tensor of these labels without gaps, in temporary memory.
    fn temporary(&mut self, labels: &[Label]) -> Named {
        let sizes: Vec<usize> = labels.iter().map(|&l| self.size(l)).collect();
        let at = self.plan.scratch(sizes.iter().product::<usize>() * self.ty.size());
        Named::new(at, labels, &sizes)
    }

    /// The tensor with the summed labels innermost and in this order, copied where it is not so already.
    fn arrange(&mut self, named: Named, summed: &[(Label, usize)]) -> Result<Named, OpError> {
        if named.joined(summed).is_some() {
            return Ok(named);
        }
        let rest = named.dims.iter().map(|d| d.0).filter(|l| !summed.iter().any(|s| s.0 == *l));
        let labels: Vec<Label> = rest.chain(summed.iter().map(|s| s.0)).collect();
        let copy = self.temporary(&labels);
        let one = self.one.clone();
        self.multiply(&named, &one, &copy)?;
        Ok(copy)
    }

    /// Multiplies two operands into `out`.
    fn multiply(&mut self, a: &Named, b: &Named, out: &Named) -> Result<(), OpError> {
        let roles = Roles::new(a, b, out, &self.all);
        // A label that only one operand has is summed there by a stride of 0 on the other side.
        let a = self.arrange(a.clone(), &shared(a, &roles.summed))?;
        let b = self.arrange(b.clone(), &shared(b, &roles.summed))?;
        // A copy's rows may join where the tensor's did not, and the other way round.
        let roles = Roles::new(&a, &b, out, &self.all);
        if a.joined(&roles.summed).is_some() && b.joined(&roles.summed).is_some() {
            return product(&a, &b, out, &roles).plan(self.plan, self.ty);
        }
        // What only one side sums over is summed there first.
        let (a, b) = (self.reduce(a, &b, out)?, b);
        let b = self.reduce(b, &a, out)?;
        self.multiply(&a, &b, out)
    }

    /// Sums over labels that neither the other operand nor the result has.
    fn reduce(&mut self, named: Named, other: &Named, out: &Named) -> Result<Named, OpError> {
        let kept: Vec<Label> =
            named.dims.iter().map(|d| d.0).filter(|&l| other.has(l) || out.has(l)).collect();
        if kept.len() == named.dims.len() {
            return Ok(named);
        }
        let sums = self.temporary(&kept);
        let one = self.one.clone();
        self.multiply(&named, &one, &sums)?;
        Ok(sums)
    }
}

fn shared(named: &Named, summed: &[(Label, usize)]) -> Vec<(Label, usize)> {
    summed.iter().copied().filter(|s| named.has(s.0)).collect()
}

/// One as an element of the type.
fn one(ty: ElementType) -> u64 {
    match ty {
        ElementType::F32 => 1f32.to_bits() as u64,
        ElementType::F64 => 1f64.to_bits(),
        ElementType::F16 => 0x3c00,
        ElementType::BF16 => 0x3f80,
        _ => 1,
    }
}

impl HipKernel for EinsumKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let Some(Some(shape)) = outputs.first() else { return Ok(()) };
        let shapes: Vec<&[usize]> = inputs.iter().flatten().map(|a| a.shape).collect();
        let ranks: Vec<usize> = shapes.iter().map(|s| s.len()).collect();
        let (operands, output) = self.op.labels(&ranks)?;
        let mut all: Vec<(Label, usize)> = Vec::new();
        let places = operands.iter().zip(&shapes).flat_map(|(l, s)| l.iter().zip(*s));
        for (&label, &size) in output.iter().zip(*shape).chain(places) {
            match all.iter_mut().find(|d| d.0 == label) {
                Some(known) if known.1 == 1 => known.1 = size,
                Some(_) => {}
                None => all.push((label, size)),
            }
        }
        let one = Named { at: plan.table(&[one(self.ty)]), dims: Vec::new() };
        let mut named: Vec<Named> = operands
            .iter()
            .zip(&shapes)
            .enumerate()
            .map(|(i, (labels, sizes))| Named::new(Operand::Input(i), labels, sizes))
            .collect();
        if named.len() == 1 {
            named.push(one.clone());
        }
        let result = Named::new(Operand::Output(0), &output, shape);
        let mut steps = Steps { plan, ty: self.ty, all, one };
        let mut running = named.remove(0);
        for i in 0..named.len() {
            let out = if i + 1 == named.len() {
                result.clone()
            } else {
                let needed = |l: Label| result.has(l) || named[i + 1..].iter().any(|o| o.has(l));
                let mut labels: Vec<Label> =
                    running.dims.iter().chain(&named[i].dims).map(|d| d.0).filter(|&l| needed(l)).collect();
                labels.sort_unstable();
                labels.dedup();
                steps.temporary(&labels)
            };
            steps.multiply(&running, &named[i], &out)?;
            running = out;
        }
        Ok(())
    }
}
