//! Puts an LSTM of floats in the place of `DynamicQuantizeLSTM`: its weights, which are bytes with scales, become
//! floats once, and nothing is rounded while it runs.

use std::sync::Arc;

use crate::error::{Result, Status};
use crate::graph::{Attribute, Fact, Graph, Node, NodeId, OpName, ValueId};
use crate::ops::{self, OpError};
use crate::tensor::{ElementType, Tensor};

use super::expand::{Expansion, OPSET, expand_each};

/// Expands those there are, in subgraphs as well; tells whether there were any. Types must be inferred.
pub(super) fn expand(graph: &mut Graph) -> Result<bool> {
    expand_each(graph, ("com.microsoft", "DynamicQuantizeLSTM"), expand_node)
}

fn expand_node(graph: &mut Graph, id: NodeId) -> Result<()> {
    let node = graph.node(id).clone();
    let wrong = |e: OpError| e.at(&node.name, &node.op.to_string(), Status::InvalidModel);
    ops::resolve(&node).map_err(wrong)?;
    let input = |i: usize| node.inputs.get(i).copied().flatten();
    let mut inputs: Vec<Option<ValueId>> = (0..8).map(input).collect();
    graph.remove_node(id);
    let mut expansion = Expansion { graph, name: &node.name };
    for (weights, scale, zero_point) in [(1, 8, 9), (2, 10, 11)] {
        if let (Some(w), Some(scale)) = (input(weights), input(scale)) {
            inputs[weights] = Some(expansion.floats(w, scale, input(zero_point)).map_err(wrong)?);
        }
    }
    while inputs.last().is_some_and(Option::is_none) {
        inputs.pop();
    }
    graph.add_node(Node {
        name: node.name.clone(),
        op: OpName { domain: String::new(), name: "LSTM".to_owned(), opset: OPSET },
        attributes: node.attributes,
        inputs,
        outputs: node.outputs,
    });
    Ok(())
}

impl Expansion<'_> {
    /// Weights of the shape [directions, inputs, rows] as LSTM wants them: floats, [directions, rows, inputs]. Scale
    /// and zero point are one for each direction, or one for each direction and row.
    fn floats(
        &mut self,
        weights: ValueId,
        scale: ValueId,
        zero_point: Option<ValueId>,
    ) -> std::result::Result<ValueId, OpError> {
        let mut values = self.cast(weights, ElementType::F32);
        if let Some(zero_point) = zero_point {
            let floats = self.cast(zero_point, ElementType::F32);
            let zero_point = self.aligned(floats, zero_point)?;
            values = self.node("Sub", &[], &[values, zero_point]);
        }
        let scale = self.aligned(scale, scale)?;
        let scaled = self.node("Mul", &[], &[values, scale]);
        Ok(self.node("Transpose", &[("perm", Attribute::Ints(vec![0, 2, 1]))], &[scaled]))
    }

    /// `value`, which has the shape of `like`, with the dimensions that let it broadcast over weights.
    fn aligned(&mut self, value: ValueId, like: ValueId) -> std::result::Result<ValueId, OpError> {
        let rank = self.graph.value(like).fact.shape.as_ref().map(Vec::len);
        let axes: &[i64] = match rank {
            Some(1) => &[1, 2],
            Some(2) => &[1],
            _ => {
                let reason = "the rank of its scales and zero points must be 1 or 2 and known".to_owned();
                return Err(OpError::Unsupported(reason));
            }
        };
        let axes = Tensor::from_slice(&[axes.len()], axes)?;
        let constant = self.graph.add_value(&format!("{}/axes", self.name), Fact::default());
        self.graph.set_constant(constant, Arc::new(axes));
        Ok(self.node("Unsqueeze", &[], &[value, constant]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::infer::infer;
    use super::super::testing::GraphBuilder;
    use super::*;

    #[test]
    fn an_lstm_of_floats_replaces_the_node() {
        let bytes = |shape: &[usize]| vec![3u8; shape.iter().product()];
        for scales in [&[1usize][..], &[1, 8]] {
            let floats = vec![0.5f32; scales.iter().product()];
            let mut graph = GraphBuilder::new()
                .input("x", &["t", "b", "3"])
                .constant("w", &[1, 3, 8], &bytes(&[1, 3, 8]))
                .constant("r", &[1, 2, 8], &bytes(&[1, 2, 8]))
                .floats("scale", scales, &floats)
                .constant("zero", scales, &bytes(scales))
                .node_with(
                    "com.microsoft.DynamicQuantizeLSTM",
                    &[("hidden_size", Attribute::Int(2))],
                    &["x", "w", "r", "", "", "", "", "", "scale", "zero", "scale", "zero"],
                    &["y"],
                )
                .output("y")
                .0;
            infer(&mut graph).unwrap();
            assert!(expand(&mut graph).unwrap());
            infer(&mut graph).unwrap();
            let text = graph.to_string();
            assert!(text.contains("y: float[t, 1, b, 2] = LSTM") && !text.contains("microsoft"), "{text}");
            assert!(text.contains("float[1, 8, 3] = Transpose"), "{text}");
            assert!(!expand(&mut graph).unwrap());
        }
    }
}
