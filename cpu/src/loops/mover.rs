//! Kernels that move elements without looking at them: written once for every element type, strings
//! included.
//!
//! A [`Mover`] is generic over the [`Item`] it moves. [`build`] makes of it a kernel over planned
//! memory, or one over values where the elements are strings.

use std::marker::PhantomData;

use crate::graph::Fact;
use crate::ops::{self, Infer, OpError, Operator, Unknowns};
use crate::tensor::{ElementType, Shape, Tensor, TensorView, TensorViewMut, Value, ValueRef};

use super::item::{Item, dispatch_item};
use crate::facts::{fact_of, known_shape};
use crate::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared, ValueKernel};

/// A kernel body that is generic over the elements it moves. What it moves are elements of input
/// `DATA`'s type; other inputs (indices) are read through [`Inputs::view`].
pub(crate) trait Mover: Send + Sync + 'static {
    const DATA: usize = 0;
    /// See [`Kernel::in_place`]; `Inputs::items` gives `None` for an input whose memory was taken.
    const IN_PLACE: &'static [usize] = &[];
    /// What depends on shapes (and on the values of shape inputs) alone.
    type Plan: Send + Sync + 'static;

    fn plan(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Self::Plan, OpError>;

    fn run<T: Item>(
        &self,
        plan: &Self::Plan,
        cx: &KernelContext<'_>,
        inputs: Inputs<'_>,
        outputs: &mut Outputs<'_, '_>,
    ) -> Result<(), OpError>;
}

/// The kernel of a node whose typed operator is `O`.
pub(crate) fn build<O: Operator + Clone, M: Mover>(
    node: &NodeContext<'_>,
    mover: M,
) -> Result<CpuKernel, OpError> {
    match node.input(M::DATA) {
        Some(ElementType::String) => Ok(CpuKernel::Value(Box::new(Strings::<O, M> {
            mover,
            op: node.op::<O>().clone(),
            domain: node.domain.to_owned(),
            name: node.name.to_owned(),
            outputs: node.output_types.len(),
        }))),
        Some(ty) => Ok(
            dispatch_item!(ty, T => CpuKernel::Tensor(Box::new(Plain::<M, T> { mover, _item: PhantomData }))),
        ),
        None => Err(node.no_kernel()),
    }
}

/// The inputs of a mover.
#[derive(Clone, Copy)]
pub(crate) enum Inputs<'a> {
    Views(&'a [Option<TensorView<'a>>]),
    Values(&'a [Option<ValueRef<'a>>]),
}

impl<'a> Inputs<'a> {
    fn value(self, i: usize) -> Option<ValueRef<'a>> {
        match self {
            Inputs::Views(views) => views.get(i).copied().flatten().map(ValueRef::Tensor),
            Inputs::Values(values) => values.get(i).copied().flatten(),
        }
    }

    /// The elements to move of an input; `None` when it is omitted or lies in the output's memory.
    pub(crate) fn items<T: Item>(self, i: usize) -> Option<&'a [T]> {
        T::read(self.value(i)?)
    }

    /// An input of another type than the moved one.
    pub(crate) fn view(self, i: usize) -> Option<TensorView<'a>> {
        self.value(i)?.view()
    }
}

/// The outputs of a mover.
pub(crate) enum Outputs<'a, 'b> {
    Views(&'a mut [Option<TensorViewMut<'b>>]),
    Strings(&'a mut [Vec<String>]),
}

impl Outputs<'_, '_> {
    /// The elements to write; `None` when the output is not wanted.
    pub(crate) fn items<T: Item>(&mut self, i: usize) -> Option<&mut [T]> {
        match self {
            Outputs::Views(views) => T::of_view(views.get_mut(i)?.as_mut()?),
            Outputs::Strings(strings) => T::of_strings(strings.get_mut(i)?),
        }
    }
}

struct Plain<M, T> {
    mover: M,
    _item: PhantomData<fn(T)>,
}

impl<M: Mover, T: Item> Kernel for Plain<M, T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        self.mover.run::<T>(cx.state(), cx, Inputs::Views(inputs), &mut Outputs::Views(outputs))
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        Ok(Prepared { state: Some(Box::new(self.mover.plan(inputs, outputs)?)), scratch: 0 })
    }

    fn in_place(&self) -> &[usize] {
        M::IN_PLACE
    }
}

struct Strings<O, M> {
    mover: M,
    op: O,
    domain: String,
    name: String,
    outputs: usize,
}

impl<O: Operator, M: Mover> ValueKernel for Strings<O, M> {
    fn run(&self, cx: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let shapes = infer_shapes(&self.op, &self.domain, &self.name, inputs, self.outputs)?;
        let arguments: Vec<Option<Argument<'_>>> = inputs.iter().map(|v| v.and_then(argument)).collect();
        let shape_refs: Vec<Option<&[usize]>> = shapes.iter().map(|s| Some(&s[..])).collect();
        let plan = self.mover.plan(&arguments, &shape_refs)?;
        let mut results: Vec<Vec<String>> =
            shapes.iter().map(|s| vec![String::new(); s.iter().product()]).collect();
        self.mover.run::<String>(&plan, cx, Inputs::Values(inputs), &mut Outputs::Strings(&mut results))?;
        let tensors = shapes.iter().zip(results).map(|(s, r)| Value::Tensor(Tensor::from_strings(s, r)));
        Ok(tensors.collect())
    }
}

fn argument(value: ValueRef<'_>) -> Option<Argument<'_>> {
    match value {
        ValueRef::Value(Value::Tensor(t)) if t.ty() == ElementType::String => {
            Some(Argument { shape: t.shape(), value: None })
        }
        value => {
            let view = value.view()?;
            Some(Argument { shape: view.shape(), value: Some(view) })
        }
    }
}

/// The shapes of an operator's tensor outputs, by its own rule.
pub(crate) fn infer_shapes(
    op: &dyn Operator,
    domain: &str,
    name: &str,
    inputs: &[Option<ValueRef<'_>>],
    outputs: usize,
) -> Result<Vec<Shape>, OpError> {
    let registered =
        ops::find(domain, name).ok_or_else(|| OpError::Unknown(format!("operator {name} is not known")))?;
    let values: Vec<Option<Value>> =
        inputs.iter().map(|v| v.map(ValueRef::to_value).transpose()).collect::<Result<_, _>>()?;
    let facts: Vec<Option<Fact>> = values.iter().map(|v| v.as_ref().map(fact_of)).collect();
    let facts: Vec<Option<&Fact>> = facts.iter().map(Option::as_ref).collect();
    let constants: Vec<Option<&Tensor>> =
        values.iter().map(|v| v.as_ref().and_then(Value::as_tensor)).collect();
    let mut unknowns = Unknowns::default();
    let mut cx = Infer::new(&registered.signature, &facts, &constants, outputs, &mut unknowns)?;
    op.infer(&mut cx)?;
    cx.into_outputs()
        .iter()
        .map(|fact| {
            known_shape(fact).ok_or_else(|| OpError::Data("an output's shape stays unknown".to_owned()))
        })
        .collect()
}
