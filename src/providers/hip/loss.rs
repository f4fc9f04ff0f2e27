//! Losses: the negative log-likelihood of class labels, made of log-softmax, a gather and sums.

use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::loss::{Loss, LossReduction};
use crate::ops::softmax::Normalizer;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::launch::{GROUP, KernelName, Operand};
use super::map::{Class, MapOp, MapTensor, Program};
use super::reduce::{Finish, Layout, Op, Reduction};
use super::softmax::softmax;
use super::{Entry, HipKernel, PlanBuilder};

pub(super) const KERNELS: &[Entry] =
    &[Entry::new("NegativeLogLikelihoodLoss", build), Entry::new("SoftmaxCrossEntropyLoss", build)];

/// `LossParams` of `kernels/loss.hip`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct LossParams {
    scores: u64,
    labels: u64,
    weights: u64,
    loss: u64,
    weight: u64,
    errors: u64,
    count: u64,
    inner: u64,
    classes: u64,
    ignored: i64,
    ty: u32,
    label_type: u32,
    weight_type: u32,
    loss_type: u32,
    own_type: u32,
    ignores: u32,
}

const _: () = assert!(size_of::<LossParams>() == 104);

fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).filter(|ty| ty.is_float()).ok_or_else(|| node.no_kernel())?;
    let labels = node.input(1).filter(|ty| ty.is_integer()).ok_or_else(|| node.no_kernel())?;
    Ok(Box::new(LossKernel { op: *node.op::<Loss>(), ty, labels }))
}

struct LossKernel {
    op: Loss,
    ty: ElementType,
    labels: ElementType,
}

impl HipKernel for LossKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let Some(shape @ [batch, classes, space @ ..]) = inputs[0].map(|x| x.shape) else { return Ok(()) };
        let inner: usize = space.iter().product();
        let (class, own) = match self.ty {
            ElementType::F64 => (Class::F64, ElementType::F64),
            _ => (Class::F32, ElementType::F32),
        };
        let wanted = |i: usize| outputs.get(i).copied().flatten().is_some();
        let mut scores = (Operand::Input(0), self.ty);
        if self.op.softmax {
            let direct = wanted(1) && self.ty == own;
            let bytes = shape.iter().product::<usize>() * own.size();
            scores = (if direct { Operand::Output(1) } else { plan.scratch(bytes) }, own);
            let from = (Operand::Input(0), self.ty);
            softmax(plan, Normalizer::LogSoftmax, [*batch, *classes, inner], from, scores)?;
            if wanted(1) && !direct {
                let to = MapTensor::new(Operand::Output(1), self.ty, shape);
                let from = MapTensor::new(scores.0, own, shape);
                Program::new(class).input(MapOp::Load, 0).launch(plan, &to, &[from])?;
            }
        }
        if !wanted(0) {
            return Ok(());
        }
        let count = batch * inner;
        let each = self.op.reduction == LossReduction::None;
        let params = LossParams {
            count: count as u64,
            inner: inner.max(1) as u64,
            classes: *classes as u64,
            ignored: self.op.ignore_index.unwrap_or(0),
            ignores: self.op.ignore_index.is_some() as u32,
            ty: scores.1 as u32,
            label_type: self.labels as u32,
            weight_type: self.ty as u32,
            loss_type: if each { self.ty } else { own } as u32,
            own_type: own as u32,
            ..LossParams::zeroed()
        };
        let losses = if each { Operand::Output(0) } else { plan.scratch(count * own.size()) };
        let mut addresses = vec![
            (offset_of!(LossParams, scores), scores.0),
            (offset_of!(LossParams, labels), Operand::Input(1)),
            (offset_of!(LossParams, loss), losses),
            (offset_of!(LossParams, errors), Operand::Errors),
        ];
        if inputs.get(2).copied().flatten().is_some() {
            addresses.push((offset_of!(LossParams, weights), Operand::Input(2)));
        }
        let weights = (self.op.reduction == LossReduction::Mean).then(|| plan.scratch(count * own.size()));
        addresses.extend(weights.map(|weights| (offset_of!(LossParams, weight), weights)));
        let name = if class == Class::F64 { c"loss_f64" } else { c"loss_f32" };
        let groups = count.div_ceil(GROUP as usize);
        plan.launch(KernelName { family: "loss", name }, [groups, 1, 1], &params, &addresses)?;
        if each {
            return Ok(());
        }
        let layout = Layout::new(&[count], &[true]);
        let sum = |from: Operand, to: (Operand, ElementType)| Reduction {
            class,
            op: Op::Sum,
            finish: Finish::Plain,
            power: 0.0,
            added: 0,
            layout: &layout,
            from: (from, own),
            center: None,
            to,
        };
        let Some(weights) = weights else {
            return sum(losses, (Operand::Output(0), self.ty)).launch(plan);
        };
        let (total, weight) = (plan.scratch(own.size()), plan.scratch(own.size()));
        sum(losses, (total, own)).launch(plan)?;
        sum(weights, (weight, own)).launch(plan)?;
        let tensor = |operand, ty| MapTensor::new(operand, ty, &[]);
        Program::new(class).input(MapOp::Load, 0).input(MapOp::Div, 1).launch(
            plan,
            &tensor(Operand::Output(0), self.ty),
            &[tensor(total, own), tensor(weight, own)],
        )
    }
}
