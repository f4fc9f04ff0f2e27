//! Convolutions of images with few channels: blocks as large as the strides become pixels, so that windows move by
//! one pixel each and kernels find whole packs of channels.

use crate::graph::{Attribute, Dim, Fact, NodeId, ValueId};
use crate::ops::conv::Conv;
use crate::ops::window::{Padding, Window};
use crate::tensor::Tensor;

use super::{Layout, ints, node};

/// The most numbers of a block.
const LARGEST: usize = 4096;

impl Layout<'_> {
    /// Image and weight of a convolution of a group, by blocks; `None` where it has none. `pack`: channels that
    /// kernels copy at once. The convolution then has no padding, and strides of 1.
    pub(super) fn blocks_of(&mut self, id: NodeId, conv: &Conv, pack: usize) -> Option<[ValueId; 2]> {
        let (x, weight) = (self.input(id, 0)?, self.input(id, 1)?);
        let [_, channels, kernel @ ..] = self.constant(weight)?.shape() else { return None };
        let (channels, kernel) = (*channels, <[usize; 2]>::try_from(kernel).ok()?);
        let Window { strides, dilations, padding, .. } = &conv.window;
        let pads = match padding {
            Padding::Valid => [0; 4],
            Padding::Explicit(pads) if pads.is_empty() => [0; 4],
            Padding::Explicit(pads) => <[i64; 4]>::try_from(&pads[..]).ok()?,
            _ => return None,
        };
        let stride = |i: usize| strides.get(i).map_or(1, |&stride| stride as usize);
        let blocks = [stride(0), stride(1)];
        let in_block = blocks[0].checked_mul(blocks[1])?.checked_mul(channels)?;
        let few = channels < pack && in_block <= LARGEST && conv.group == 1;
        if !few || dilations.iter().any(|&d| d != 1) || self.is_made(x) || self.image_rank(x)? != 4 {
            return None;
        }
        // Windows as large as so many blocks end with the last one that is there.
        let taps = [0, 1].map(|i| kernel[i].div_ceil(blocks[i]));
        let more = [0, 1].map(|i| taps[i] * blocks[i] - kernel[i]);
        let pads = [pads[0], pads[1], pads[2] + more[0] as i64, pads[3] + more[1] as i64];
        let all = in_block.next_multiple_of(pack);
        let weight = self.weight_of_blocks(weight, [blocks, taps, more], all)?;
        Some([self.image_of_blocks(x, blocks, pads, all)?, weight])
    }

    fn image_of_blocks(
        &mut self,
        x: ValueId,
        blocks: [usize; 2],
        pads: [i64; 4],
        all: usize,
    ) -> Option<ValueId> {
        let list = [&blocks.map(|n| n as i64)[..], &pads].concat();
        if let Some(&made) = self.blocks.get(&(x, list.clone())) {
            return Some(made);
        }
        let attributes = [
            ("blocks", ints(blocks)),
            ("pads", Attribute::Ints(pads.to_vec())),
            ("channels", Attribute::Int(all as i64)),
        ];
        let name = format!("{}_blocks{}x{}", self.graph.value(x).name, blocks[0], blocks[1]);
        let mut new = node(&name, "rukh.NhwcSpaceToDepth", &attributes, &[x]);
        if !self.runs(&new, self.graph.value(x).fact.ty.clone()) {
            return None;
        }
        let fact = &self.graph.value(x).fact;
        let [batch, _, lines, columns] = fact.shape.as_deref()? else { return None };
        let count = |size: &Dim, i: usize| {
            size.add(&Dim::Known(pads[i] + pads[i + 2])).floor_div(&Dim::from(blocks[i]))
        };
        let shape = vec![batch.clone(), count(lines, 0), count(columns, 1), Dim::from(all)];
        let fact = Fact { ty: fact.ty.clone(), shape: Some(shape), ..Fact::default() };
        let made = self.graph.add_value(&name, fact);
        new.outputs = vec![Some(made)];
        self.graph.add_node(new);
        self.blocks.insert((x, list), made);
        Some(made)
    }

    /// `[out, channels, lines, columns]` as `[out, taps down, taps right, channels of blocks]`.
    fn weight_of_blocks(
        &mut self,
        weight: ValueId,
        [blocks, taps, more]: [[usize; 2]; 3],
        all: usize,
    ) -> Option<ValueId> {
        self.made_of(weight, format!("blocks {blocks:?} of {all}"), |layout, tensor| {
            let &[out, channels, ..] = tensor.shape() else { return None };
            let whole = layout.padded(weight, tensor, &[0, 0, more[0], more[1]])?;
            let split = [out, channels, taps[0], blocks[0], taps[1], blocks[1]];
            let mut transpose = node("", "Transpose", &[("perm", ints([0, 2, 4, 1, 3, 5]))], &[weight]);
            transpose.outputs = vec![Some(weight)];
            let moved = layout.computed(&transpose, &[&whole.reshaped(&split)?])?;
            let in_block = channels * blocks[0] * blocks[1];
            let pixels = moved.reshaped(&[out, taps[0], taps[1], in_block])?;
            layout.padded(weight, &pixels, &[0, 0, 0, all - in_block])
        })
    }

    /// A constant with so many zeros behind each axis. `like`: a value of its type.
    pub(super) fn padded(&self, like: ValueId, tensor: &Tensor, behind: &[usize]) -> Option<Tensor> {
        let pads: Vec<i64> =
            vec![0; behind.len()].into_iter().chain(behind.iter().map(|&n| n as i64)).collect();
        let pads = Tensor::from_slice(&[pads.len()], &pads).ok()?;
        let mut pad = node("", "Pad", &[], &[like, like]);
        pad.outputs = vec![Some(like)];
        self.computed(&pad, &[tensor, &pads])
    }
}
