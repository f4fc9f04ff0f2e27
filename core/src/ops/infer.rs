//! What a shape rule sees and sets.

use crate::graph::{Dim, Fact};
use crate::tensor::{ElementType, Tensor, ValueType};

use super::OpError;
use super::signature::{Parameter, Signature};

/// Makes names for dimensions nothing is known of.
#[derive(Clone, Debug, Default)]
pub struct Unknowns(usize);

impl Unknowns {
    /// Names that inference of a graph does not reach: for one node beside an inferred graph.
    pub fn apart() -> Self {
        Unknowns(usize::MAX / 2)
    }

    pub fn fresh(&mut self) -> Dim {
        self.0 += 1;
        Dim::symbol(&format!("?{}", self.0))
    }
}

/// One node's inputs as far as they are known, and its outputs as they become known.
pub struct Infer<'a> {
    inputs: &'a [Option<&'a Fact>],
    constants: &'a [Option<&'a Tensor>],
    parameters: &'a [Parameter],
    outputs: Vec<Fact>,
    unknowns: &'a mut Unknowns,
}

impl<'a> Infer<'a> {
    /// `constants[i]` is the value of input `i` where it is known in full.
    pub fn new(
        signature: &'a Signature,
        inputs: &'a [Option<&'a Fact>],
        constants: &'a [Option<&'a Tensor>],
        outputs: usize,
        unknowns: &'a mut Unknowns,
    ) -> Result<Self, OpError> {
        let outputs =
            signature.check(inputs, outputs)?.into_iter().map(|ty| Fact { ty, ..Fact::default() }).collect();
        Ok(Infer { inputs, constants, parameters: &signature.inputs, outputs, unknowns })
    }

    pub fn into_outputs(self) -> Vec<Fact> {
        self.outputs
    }

    /// The number of inputs, trailing omitted ones included.
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    pub fn output_count(&self) -> usize {
        self.outputs.len()
    }

    /// Whether the node gives this input.
    pub fn has(&self, i: usize) -> bool {
        self.inputs.get(i).is_some_and(Option::is_some)
    }

    pub fn fact(&self, i: usize) -> Option<&'a Fact> {
        self.inputs.get(i).copied().flatten()
    }

    pub fn element_type(&self, i: usize) -> Option<ElementType> {
        self.fact(i)?.element_type()
    }

    /// The shape of an input, once its rank is known.
    pub fn shape(&self, i: usize) -> Option<&'a [Dim]> {
        self.fact(i)?.shape.as_deref()
    }

    /// The shape, which must have `rank` dimensions when it is known.
    pub fn shape_of_rank(&self, i: usize, rank: usize) -> Result<Option<&'a [Dim]>, OpError> {
        match self.shape(i) {
            Some(shape) if shape.len() != rank => {
                Err(self.input_error(i, format!("its rank is {}; allowed is {rank}", shape.len())))
            }
            shape => Ok(shape),
        }
    }

    /// The elements of an integer input (int32, int64), known or symbolic.
    pub fn ints(&self, i: usize) -> Option<Vec<Dim>> {
        if let Some(tensor) = self.constant(i)
            && let Some(ints) = tensor.to_ints()
        {
            return Some(ints.into_iter().map(Dim::from).collect());
        }
        self.fact(i)?.elements.clone()
    }

    /// The elements of an integer input when all of them are known.
    pub fn known_ints(&self, i: usize) -> Option<Vec<i64>> {
        self.ints(i)?.iter().map(Dim::known).collect()
    }

    /// The value of an input, when it is known in full. It may be misaligned.
    pub fn constant(&self, i: usize) -> Option<&'a Tensor> {
        self.constants.get(i).copied().flatten()
    }

    /// A dimension nothing is known of.
    pub fn unknown(&mut self) -> Dim {
        self.unknowns.fresh()
    }

    /// The shape of an output as far as it was set.
    pub fn output_shape(&self, output: usize) -> Option<&[Dim]> {
        self.outputs.get(output)?.shape.as_deref()
    }

    /// The type of an output as far as the signature or the rule told it.
    pub fn output_type(&self, output: usize) -> Option<&ValueType> {
        self.outputs.get(output)?.ty.as_ref()
    }

    /// Sets the shape of an output; its type comes from the signature.
    pub fn set_shape(&mut self, output: usize, shape: Vec<Dim>) {
        if let Some(fact) = self.outputs.get_mut(output) {
            fact.shape = Some(shape);
        }
    }

    /// Sets an output's rank, with unknown dimensions.
    pub fn set_rank(&mut self, output: usize, rank: usize) {
        let shape = (0..rank).map(|_| self.unknown()).collect();
        self.set_shape(output, shape);
    }

    pub fn set_element_type(&mut self, output: usize, ty: ElementType) {
        self.set_type(output, ValueType::Tensor(ty));
    }

    pub fn set_type(&mut self, output: usize, ty: ValueType) {
        if let Some(fact) = self.outputs.get_mut(output) {
            fact.ty = Some(ty);
        }
    }

    /// Tells the elements of a small integer output, so that shapes made from it become known.
    pub fn set_elements(&mut self, output: usize, elements: Option<Vec<Dim>>) {
        /// Longer tensors hold data, not shapes.
        const LIMIT: usize = 64;
        if let Some(fact) = self.outputs.get_mut(output) {
            fact.elements = elements.filter(|e| e.len() <= LIMIT);
        }
    }

    /// Makes an output like an input: type, shape and elements.
    pub fn copy_fact(&mut self, output: usize, input: usize) {
        if let (Some(fact), Some(out)) = (self.fact(input), self.outputs.get_mut(output)) {
            *out = fact.clone();
        }
    }

    /// An error about one input, with the name the standard gives it.
    pub fn input_error(&self, i: usize, reason: impl Into<String>) -> OpError {
        let name = Signature::parameter(self.parameters, i).map_or("-", |p| &p.name);
        OpError::Input { index: i, name: name.to_owned(), reason: reason.into() }
    }

    /// The axis counted from the front, or an error that says what is allowed.
    pub fn axis(&self, name: &str, axis: i64, rank: usize) -> Result<usize, OpError> {
        normalize_axis(name, axis, rank)
    }
}

/// An axis attribute counted from the front: −rank…rank−1 are allowed.
pub fn normalize_axis(name: &str, axis: i64, rank: usize) -> Result<usize, OpError> {
    let r = rank as i64;
    if (-r..r).contains(&axis) {
        Ok((if axis < 0 { axis + r } else { axis }) as usize)
    } else {
        Err(OpError::attribute(
            name,
            format!("{axis} is out of range for rank {rank}; allowed are {} to {}", -r, r - 1),
        ))
    }
}

/// The shape of the elementwise combination of two shapes (numpy's rule): dimensions are equal, or
/// one of them is 1. A symbol beside a number above 1 takes that number; two symbols that differ
/// leave the dimension unknown. `Err` names the first pair that does not fit.
pub fn broadcast(a: &[Dim], b: &[Dim], unknowns: &mut Unknowns) -> Result<Vec<Dim>, String> {
    let rank = a.len().max(b.len());
    let one = Dim::Known(1);
    (0..rank)
        .map(|i| {
            let at = |s: &[Dim]| (i + s.len()).checked_sub(rank).map_or(one.clone(), |k| s[k].clone());
            let (x, y) = (at(a), at(b));
            match (x.known(), y.known()) {
                _ if x == y => Ok(x),
                (Some(1), _) => Ok(y),
                (_, Some(1)) => Ok(x),
                (Some(_), Some(_)) => {
                    Err(format!("shapes {a:?} and {b:?} do not broadcast: {x} and {y} differ"))
                }
                (Some(_), None) => Ok(x),
                (None, Some(_)) => Ok(y),
                // min(n, 512) beside n: they fit only where both are n.
                (None, None) if y.is_limited(&x) => Ok(x),
                (None, None) if x.is_limited(&y) => Ok(y),
                (None, None) => Ok(unknowns.fresh()),
            }
        })
        .collect()
}

impl Infer<'_> {
    /// The broadcast of two shapes; an error is told of input `i`.
    pub fn broadcast_with(&mut self, i: usize, a: &[Dim], b: &[Dim]) -> Result<Vec<Dim>, OpError> {
        broadcast(a, b, self.unknowns).map_err(|reason| self.input_error(i, reason))
    }

    /// The broadcast of two shapes; see `broadcast`.
    pub fn broadcast(&mut self, a: &[Dim], b: &[Dim]) -> Result<Vec<Dim>, String> {
        broadcast(a, b, self.unknowns)
    }

    /// Two dimensions that must be equal: the one that is known, or an error where both are and differ.
    pub fn equal(&self, input: usize, what: &str, a: &Dim, b: &Dim) -> Result<Dim, OpError> {
        match (a.known(), b.known()) {
            (Some(x), Some(y)) if x != y => {
                Err(self.input_error(input, format!("{what} is {y}; allowed is {x}")))
            }
            (None, Some(_)) => Ok(b.clone()),
            _ => Ok(a.clone()),
        }
    }

    /// Refuses an input whose shape is known to differ from the one that it must have. Both have as many dimensions.
    pub fn equal_shape<'d>(
        &self,
        input: usize,
        want: impl IntoIterator<Item = &'d Dim>,
        given: &[Dim],
    ) -> Result<(), OpError> {
        for (i, (want, given)) in want.into_iter().zip(given).enumerate() {
            self.equal(input, &format!("its dimension {i}"), want, given)?;
        }
        Ok(())
    }

    /// The broadcast of the shapes of inputs; `None` while a rank is unknown.
    pub fn broadcast_inputs(&mut self, inputs: &[usize]) -> Result<Option<Vec<Dim>>, OpError> {
        let mut result: Vec<Dim> = Vec::new();
        for &i in inputs {
            let Some(shape) = self.shape(i) else { return Ok(None) };
            result =
                broadcast(&result, shape, self.unknowns).map_err(|reason| self.input_error(i, reason))?;
        }
        Ok(Some(result))
    }
}
