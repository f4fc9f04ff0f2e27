//! MatMulBlockQuantizedFp4Weight, and MatMulNBits, alone or with an RMS normalisation before it and a gated unit behind it.
//! MatMulNBits of few rows is one launch of `kernels/weight_gemv_*.hip` or `kernels/hopper_weight_rows.hip`; others are
//! launches of `kernels/weight_only.hip` with the rest one after the other.

mod chain;
mod chain_rows;
mod four_bit_float;
mod lines;
mod rows;
#[cfg(test)]
mod tests;

use std::ffi::CStr;
use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::activation::Activation;
use crate::ops::gated::GatedUnit;
use crate::ops::projection::PackedProjection;
use crate::ops::weight_only::MatMulNBits;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::fill::groups;
use super::gemm::{Epilogue, Fused, Matrix, Product, gate_function};
use super::launch::{GROUP, KernelName, Operand};
use super::norm::{Rms, launch_rms};
use super::{Entry, HipKernel, PlanBuilder, map};

#[cfg(test)]
pub(crate) use chain::PATIENCE_OF_TESTS;
pub(super) use chain::WORDS_OF_CHAINS;
pub(crate) use chain::{MOST_LINKS, ROWS_ADDED, plan_chain};
pub(crate) use chain_rows::Linked;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("MatMulBlockQuantizedFp4Weight", four_bit_float::build).domain("com.microsoft"),
    Entry::new("MatMulNBits", build_product).domain("com.microsoft"),
    Entry::new("PackedProjection", build_projection).domain("rukh"),
];

const X: usize = 0;
const WEIGHT: usize = 1;
const SCALES: usize = 2;
const ZEROS: usize = 3;
const ORDER: usize = 4;
const BIAS: usize = 5;
const SKIP: usize = 6;
const NORM_SCALE: usize = 7;

/// Rows that the kernel for few rows takes, and numbers of the weight that a work item unpacks at a time.
const FEW: usize = 4;
const RUN: usize = 16;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct WeightParams {
    a: u64,
    weight: u64,
    scales: u64,
    zeros: u64,
    groups: u64,
    bias: u64,
    out: u64,
    errors: u64,
    m: u32,
    n: u32,
    k: u32,
    bits: u32,
    block: u32,
    blocks: u32,
    zero_bytes: u32,
    zero_type: u32,
}

const _: () = assert!(size_of::<WeightParams>() == 96);

fn build_product(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    build(node, PackedProjection { product: *node.op::<MatMulNBits>(), epsilon: 0.0, gate: None })
}

fn build_projection(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    if node.has_input(ORDER) || node.has_input(SKIP) && !node.has_input(NORM_SCALE) {
        return Err(node.no_kernel());
    }
    build(node, *node.op::<PackedProjection>())
}

fn build(node: &NodeContext<'_>, op: PackedProjection) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(X).ok_or_else(|| node.no_kernel())?;
    let names = names(ty).ok_or_else(|| node.no_kernel())?;
    let function = |unit: GatedUnit| gate_function(unit.activation).ok_or_else(|| node.no_kernel());
    let gate = op.gate.map(function).transpose()?;
    let zero_type = node.input(ZEROS).unwrap_or(ElementType::U8) as u32;
    Ok(Box::new(WeightKernel { op, gate, ty, zero_type, names }))
}

/// Of the kernel for few rows, and of the one that unpacks.
fn names(ty: ElementType) -> Option<[&'static CStr; 2]> {
    Some(match ty {
        ElementType::F32 => [c"weight_few_f32", c"weight_unpack_f32"],
        ElementType::F16 => [c"weight_few_f16", c"weight_unpack_f16"],
        ElementType::BF16 => [c"weight_few_bf16", c"weight_unpack_bf16"],
        _ => return None,
    })
}

struct WeightKernel {
    op: PackedProjection,
    gate: Option<Activation>,
    ty: ElementType,
    zero_type: u32,
    /// Of the kernel for few rows, and of the one that unpacks.
    names: [&'static CStr; 2],
}

impl HipKernel for WeightKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let given = |i: usize| inputs.get(i).is_some_and(Option::is_some);
        let (Some(a), Some(&Some(shape))) = (inputs.first().copied().flatten(), outputs.first()) else {
            return Ok(());
        };
        let m: usize = a.shape.iter().rev().skip(1).product();
        let norm = given(NORM_SCALE).then(|| Rms {
            epsilon: self.op.epsilon,
            scale: Operand::Input(NORM_SCALE),
            skip: given(SKIP).then_some(Operand::Input(SKIP)),
            sum: outputs.get(1).copied().flatten().map(|_| Operand::Output(1)),
        });
        let form = lines::form(&self.op.product, self.ty, m, given, plan.provider.unit());
        let form = form.filter(|_| !given(ZEROS) || self.zero_type == ElementType::U8 as u32);
        let Some(form) = form else { return self.one_by_one(plan, m, given, norm.as_ref(), shape) };
        let mut product = self.product(m, Operand::Input(X), Operand::Input(WEIGHT), given(BIAS));
        let mut fused = Fused { norm: norm.clone(), gate: None };
        if let (Some(function), Some(unit)) = (self.gate, self.op.gate) {
            let columns = self.op.product.n / 2;
            product.out = Matrix::new(Operand::Output(0), columns, 1);
            product.epilogue.activation = function;
            fused.gate = Some(unit.columns(columns));
        }
        let of_lines = |plan: &mut PlanBuilder<'_>| {
            plan.by_alignment(
                16,
                &[(Operand::Input(WEIGHT), 0)],
                |plan| product.launch_form(plan, self.ty, &fused, &form),
                |plan| self.one_by_one(plan, m, given, norm.as_ref(), shape),
            )
        };
        let sharing = rows::sharing(&self.op.product, self.ty, m, given, plan.provider.unit());
        match sharing.filter(|_| rows::takes(&fused, product.epilogue.activation)) {
            Some(sharing) => sharing.plan(plan, &product, &fused, of_lines)?,
            None => of_lines(plan)?,
        }
        if m == 1 && self.ty == ElementType::F16 && ![ZEROS, ORDER, BIAS].into_iter().any(given) {
            let link = chain::link(plan, &self.op.product, &fused, product.epilogue.activation);
            plan.may_be_chained(link);
        }
        Ok(())
    }
}

impl WeightKernel {
    /// The product of rows at `a` with a weight that is packed or, where it lies elsewhere, unpacked.
    fn product(&self, m: usize, a: Operand, weight: Operand, has_bias: bool) -> Product {
        let MatMulNBits { n, k, .. } = self.op.product;
        Product {
            m,
            n,
            k,
            a: Matrix::new(a, k, 1),
            b: Matrix::new(weight, 1, k),
            out: Matrix::new(Operand::Output(0), n, 1),
            bias: has_bias.then(|| Matrix::new(Operand::Input(BIAS), 0, 1)),
            residual: None,
            batch: Vec::new(),
            epilogue: Epilogue::default(),
        }
    }

    /// The normalisation, the product and the gated unit, which gives an output of this shape.
    fn one_by_one(
        &self,
        plan: &mut PlanBuilder<'_>,
        m: usize,
        given: impl Fn(usize) -> bool,
        norm: Option<&Rms>,
        shape: &[usize],
    ) -> Result<(), OpError> {
        let MatMulNBits { n, k, .. } = self.op.product;
        let [mut from, mut to] = [Operand::Input(X), Operand::Output(0)];
        if let Some(norm) = norm {
            from = plan.scratch(m * k * self.ty.size());
            launch_rms(plan, self.ty, [m, k], norm, [Operand::Input(X), from])?;
        }
        if self.gate.is_some() {
            to = plan.scratch(m * n * self.ty.size());
        }
        self.unpacked(plan, m, given, [from, to])?;
        match self.op.gate {
            Some(unit) => map::launch_gated(plan, unit, self.ty, [to, Operand::Output(0)], shape),
            None => Ok(()),
        }
    }

    /// The launch for few rows of any weight, or those that unpack the weight and multiply.
    fn unpacked(
        &self,
        plan: &mut PlanBuilder<'_>,
        m: usize,
        given: impl Fn(usize) -> bool,
        [from, to]: [Operand; 2],
    ) -> Result<(), OpError> {
        let op = &self.op.product;
        let params = WeightParams {
            m: m.min(FEW) as u32,
            n: op.n as u32,
            k: op.k as u32,
            bits: op.bits as u32,
            block: op.block.trailing_zeros(),
            blocks: op.blocks() as u32,
            zero_bytes: op.zero_bytes() as u32,
            zero_type: self.zero_type,
            ..WeightParams::zeroed()
        };
        let mut addresses = vec![
            (offset_of!(WeightParams, a), from),
            (offset_of!(WeightParams, weight), Operand::Input(WEIGHT)),
            (offset_of!(WeightParams, scales), Operand::Input(SCALES)),
        ];
        let optional = [
            (ZEROS, offset_of!(WeightParams, zeros)),
            (ORDER, offset_of!(WeightParams, groups)),
            (BIAS, offset_of!(WeightParams, bias)),
        ];
        addresses.extend(optional.into_iter().filter(|o| given(o.0)).map(|(i, at)| (at, Operand::Input(i))));
        if given(ORDER) {
            addresses.push((offset_of!(WeightParams, errors), Operand::Errors));
        }
        let out = offset_of!(WeightParams, out);
        let [few, unpack] = self.names.map(|name| KernelName { family: "weight_only", name });
        if m <= FEW {
            addresses.push((out, to));
            let columns = GROUP as usize / plan.provider.unit().wave;
            let grid = if m == 0 { 0 } else { op.n.div_ceil(columns) };
            return plan.launch(few, [grid, 1, 1], &params, &addresses);
        }
        let whole = plan.scratch(op.n * op.k * self.ty.size());
        addresses.push((out, whole));
        plan.launch(unpack, groups(op.n * op.k.div_ceil(RUN)), &params, &addresses)?;
        let mut product = self.product(m, from, whole, given(BIAS));
        product.out.at = to;
        product.plan(plan, self.ty)
    }
}
