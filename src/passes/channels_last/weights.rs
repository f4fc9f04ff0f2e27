//! Constants in another order.

use std::sync::Arc;

use crate::graph::{Attribute, Fact, ValueId};
use crate::tensor::Tensor;

use super::{Layout, ints, node};

impl Layout<'_> {
    /// A constant with its axes permuted, made once.
    pub(super) fn rearranged(&mut self, value: ValueId, perm: &[usize]) -> Option<ValueId> {
        self.made_of(value, format!("{perm:?}"), |layout, tensor| {
            let mut transpose = node("", "Transpose", &[("perm", ints(perm.iter().copied()))], &[value]);
            transpose.outputs = vec![Some(value)];
            layout.computed(&transpose, &[tensor])
        })
    }

    /// A weight `[out channels, channels of a group, kernel…]` with channels of zeros added up to so many, then
    /// permuted.
    pub(super) fn padded_weight(
        &mut self,
        weight: ValueId,
        channels: usize,
        perm: &[usize],
    ) -> Option<ValueId> {
        let padded = self.made_of(weight, format!("{channels} channels"), |layout, tensor| {
            let mut behind = vec![0; tensor.shape().len()];
            behind[1] = channels.checked_sub(tensor.shape()[1])?;
            layout.padded(weight, tensor, &behind)
        })?;
        self.rearranged(padded, perm)
    }

    /// A constant of lower rank as it broadcasts to images of `rank`.
    pub(super) fn of_rank(&mut self, value: ValueId, rank: usize) -> Option<ValueId> {
        let padded = self.made_of(value, format!("rank {rank}"), |_, tensor| {
            let shape = tensor.shape();
            tensor.reshaped(&[&vec![1; rank - shape.len()][..], shape].concat())
        })?;
        self.rearranged(padded, &super::to_last(rank))
    }

    pub(super) fn made_of(
        &mut self,
        value: ValueId,
        what: String,
        make: impl FnOnce(&Self, &Tensor) -> Option<Tensor>,
    ) -> Option<ValueId> {
        let key = (value, what);
        if let Some(&made) = self.weights.get(&key) {
            return Some(made);
        }
        let tensor = make(self, self.constant(value)?)?;
        let name = format!("{}_nhwc", self.graph.value(value).name);
        let made = self.graph.add_value(&name, Fact::default());
        self.graph.set_constant(made, Arc::new(tensor));
        self.weights.insert(key, made);
        Some(made)
    }

    /// An image with channels of zeros added up to so many.
    pub(super) fn padded_image(&mut self, value: ValueId, channels: usize) -> Option<ValueId> {
        if let Some(&padded) = self.padded.get(&(value, channels)) {
            return Some(padded);
        }
        let (form, rank) = (self.form(value)?, self.image_rank(value)?);
        let have = usize::try_from(self.shape(value)?[1].known()?).ok()?;
        let name = format!("{}_channels{channels}", self.graph.value(value).name);
        let mut pads = vec![0; 2 * rank];
        *pads.last_mut()? = channels.checked_sub(have)? as i64;
        let pads = self.add_ints(&format!("{name}/pads"), &pads)?;
        let mut fact = self.graph.value(form).fact.clone();
        *fact.shape.as_mut()?.last_mut()? = channels.into();
        let padded = self.graph.add_value(&name, fact);
        let mut pad = node(&name, "Pad", &[("mode", Attribute::String(b"constant".to_vec()))], &[form, pads]);
        pad.outputs = vec![Some(padded)];
        self.graph.add_node(pad);
        self.padded.insert((value, channels), padded);
        Some(padded)
    }
}
