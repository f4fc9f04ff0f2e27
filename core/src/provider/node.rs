//! What every provider is told of a node.

use crate::ops::{OpError, Operator};
use crate::tensor::{ElementType, Shape, Tensor, TensorView, ValueType};
use crate::threads::Pool;

use super::packs::NodePacks;

/// What a kernel is made from.
pub struct NodeContext<'a> {
    /// The provider that is asked, for messages.
    pub provider: &'static str,
    pub domain: &'a str,
    pub name: &'a str,
    pub op: &'a dyn Operator,
    /// `None` where an input is omitted.
    pub input_types: &'a [Option<ValueType>],
    /// `None` where an output is not wanted.
    pub output_types: &'a [Option<ValueType>],
    /// Inputs that are constants. They may be misaligned: `Tensor::aligned` before a view.
    pub constants: &'a [Option<&'a Tensor>],
    pub pool: &'a Pool,
    /// The node's packed weights, where they are kept.
    pub packs: Option<&'a NodePacks>,
}

impl<'a> NodeContext<'a> {
    /// The typed operator. The registry pairs names and types, so another type is a defect.
    pub fn op<T: Operator>(&self) -> &'a T {
        self.op.downcast().expect("the operator type of this declaration")
    }

    /// The element type of a tensor input.
    pub fn input(&self, i: usize) -> Option<ElementType> {
        self.input_types.get(i)?.as_ref()?.element()
    }

    /// The element type of a tensor output.
    pub fn output(&self, i: usize) -> Option<ElementType> {
        self.output_types.get(i)?.as_ref()?.element()
    }

    pub fn has_input(&self, i: usize) -> bool {
        self.input_types.get(i).is_some_and(Option::is_some)
    }

    pub fn constant(&self, i: usize) -> Option<&'a Tensor> {
        self.constants.get(i).copied().flatten()
    }

    /// The error for a type that has no kernel.
    pub fn no_kernel(&self) -> OpError {
        let types: Vec<String> = self
            .input_types
            .iter()
            .map(|t| t.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string))
            .collect();
        OpError::Unsupported(format!(
            "the {} provider has no kernel for {} with inputs ({})",
            self.provider,
            self.name,
            types.join(", ")
        ))
    }
}

/// What a kernel that prepares for given shapes knows of an input.
#[derive(Clone, Copy)]
pub struct Argument<'a> {
    pub shape: &'a [usize],
    pub value: Option<TensorView<'a>>,
}

/// What a kernel is told of its inputs: the shape of each that the node does not leave out, and what can be read.
pub fn arguments<'a>(
    shapes: &'a [Option<Shape>],
    views: &[Option<TensorView<'a>>],
) -> Vec<Option<Argument<'a>>> {
    let argument = |(shape, view): (&'a Option<Shape>, &Option<TensorView<'a>>)| {
        Some(Argument { shape: shape.as_ref()?, value: *view })
    };
    shapes.iter().zip(views).map(argument).collect()
}
