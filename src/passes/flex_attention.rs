//! Puts the operators in the place of `FlexAttention` that it stands for, its two graphs among them:
//! so every provider runs it, and the graphs are optimised with the rest.

use std::sync::Arc;

use crate::error::{Result, Status};
use crate::graph::{Attribute, Attributes, Fact, Graph, Node, NodeId, OpName, ValueId};
use crate::ops::attention::flex::FlexAttention;
use crate::ops::{self, OpError};
use crate::tensor::{ElementType, Tensor};

use super::expand::{Expansion, OPSET, expand_each};
use super::inline::splice;

/// Expands those there are, in subgraphs as well; tells whether there were any. Types must be inferred,
/// and inferred anew before those are expanded that came to light.
pub(super) fn expand(graph: &mut Graph) -> Result<bool> {
    expand_each(graph, ("ai.onnx.preview", "FlexAttention"), expand_node)
}

fn expand_node(graph: &mut Graph, id: NodeId) -> Result<()> {
    let node = graph.node(id).clone();
    let wrong = |e: OpError| e.at(&node.name, &node.op.to_string(), Status::InvalidModel);
    let (_, op) = ops::resolve(&node).map_err(wrong)?;
    let ([Some(query), Some(key), Some(value)], [Some(output)], Some(op)) =
        (&node.inputs[..], &node.outputs[..], op.downcast::<FlexAttention>())
    else {
        return Err(wrong(OpError::Unknown("it needs three inputs and one output".to_owned())));
    };
    let Some(ty) = graph.value(*query).fact.element_type() else {
        return Err(wrong(OpError::Unsupported("the type of input 0 (Q) is not known".to_owned())));
    };
    graph.remove_node(id);
    Expansion { graph, name: &node.name }.attention(op, ty, [*query, *key, *value], *output)
}

impl Expansion<'_> {
    fn attention(
        &mut self,
        op: &FlexAttention,
        ty: ElementType,
        [query, key, value]: [ValueId; 3],
        output: ValueId,
    ) -> Result<()> {
        let precision = op.precision(ty);
        let root = self.root_of_scale(op.scale, query)?;
        let root = self.cast(root, ty);
        let scaled_query = self.node("Mul", &[], &[query, root]);
        let scaled_key = self.node("Mul", &[], &[key, root]);

        // Query heads in groups, each of which shares one head of keys and values: one more dimension.
        let (query_heads, key_heads) = (self.sizes(query, 1, 2), self.sizes(key, 1, 2));
        let group = self.node("Div", &[], &[query_heads, key_heads]);
        let (front, back) = (self.sizes(key, 0, 2), self.sizes(query, 2, 4));
        let grouped = self.concat(&[front, group, back]);
        let scaled_query = self.reshape(scaled_query, grouped);
        let axis = self.constant(Tensor::from_slice(&[1], &[2i64])?);
        let scaled_key = self.node("Unsqueeze", &[], &[scaled_key, axis]);
        let value_groups = self.node("Unsqueeze", &[], &[value, axis]);

        let perm = Attribute::Ints(vec![0, 1, 2, 4, 3]);
        let transposed = self.node("Transpose", &[("perm", perm)], &[scaled_key]);
        let products = self.node("MatMul", &[], &[scaled_query, transposed]);
        let (front, keys) = (self.sizes(query, 0, 3), self.sizes(key, 2, 3));
        let shape = self.concat(&[front, keys]);
        let scores = self.reshape(products, shape);
        let scores = self.cast(scores, precision);

        let scores = self.modify("score_mod", op.score_mod.as_deref(), scores)?;
        let probabilities = self.node("Softmax", &[("axis", Attribute::Int(-1))], &[scores]);
        let probabilities = self.modify("prob_mod", op.prob_mod.as_deref(), probabilities)?;

        let shape = self.sizes(products, 0, 5);
        let probabilities = self.reshape(probabilities, shape);
        let value_groups = self.cast(value_groups, precision);
        let sums = self.node("MatMul", &[], &[probabilities, value_groups]);
        let sums = self.cast(sums, ty);
        let size = self.sizes(value, 3, 4);
        let shape = self.concat(&[front, size]);
        self.node_to("Reshape", &[("allowzero", Attribute::Int(1))], &[sums, shape], output);
        Ok(())
    }

    /// The root of the scale, in float.
    fn root_of_scale(&mut self, scale: Option<f32>, query: ValueId) -> Result<ValueId> {
        if let Some(scale) = scale {
            return Ok(self.constant(Tensor::from_slice(&[], &[scale.sqrt()])?));
        }
        let size = self.sizes(query, 3, 4);
        let size = self.cast(size, ElementType::F32);
        let root = self.node("Sqrt", &[], &[size]);
        let scale = self.node("Reciprocal", &[], &[root]);
        Ok(self.node("Sqrt", &[], &[scale]))
    }

    /// The values after one of the model's graphs.
    fn modify(&mut self, attribute: &str, body: Option<&Graph>, values: ValueId) -> Result<ValueId> {
        let Some(body) = body else { return Ok(values) };
        let name = format!("{}/{attribute}", self.name);
        let output = self.graph.add_value(&name, Fact::default());
        // The graph may give back its input, which takes the output's place in nodes that are there.
        let result = self.node("Identity", &[], &[output]);
        let call = Node {
            name,
            op: OpName { domain: String::new(), name: attribute.to_owned(), opset: OPSET },
            attributes: Attributes::default(),
            inputs: vec![Some(values)],
            outputs: vec![Some(output)],
        };
        splice(self.graph, &call, body, &Attributes::default())?;
        Ok(result)
    }

    /// Dimensions `start..end` of a value.
    fn sizes(&mut self, value: ValueId, start: i64, end: i64) -> ValueId {
        let range = [("start", Attribute::Int(start)), ("end", Attribute::Int(end))];
        self.node("Shape", &range, &[value])
    }

    fn concat(&mut self, parts: &[ValueId]) -> ValueId {
        self.node("Concat", &[("axis", Attribute::Int(0))], parts)
    }

    /// A reshape to dimensions of which 0 means 0.
    fn reshape(&mut self, value: ValueId, shape: ValueId) -> ValueId {
        self.node("Reshape", &[("allowzero", Attribute::Int(1))], &[value, shape])
    }

    fn constant(&mut self, tensor: Tensor) -> ValueId {
        let value = self.graph.add_value(&format!("{}/constant", self.name), Fact::default());
        self.graph.set_constant(value, Arc::new(tensor));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::super::infer::infer;
    use super::super::testing::GraphBuilder;
    use super::*;

    fn graph_of(name: &str, modifier: GraphBuilder) -> Graph {
        GraphBuilder::new()
            .floats("bias", &[], &[1.0])
            .input("q", &["b", "8", "l", "16"])
            .input("k", &["b", "2", "s", "16"])
            .input("v", &["b", "2", "s", "4"])
            .node_with(
                "ai.onnx.preview.FlexAttention",
                &[(name, Attribute::Graph(Arc::new(modifier.0)))],
                &["q", "k", "v"],
                &["y"],
            )
            .output("y")
            .0
    }

    fn scores() -> GraphBuilder {
        GraphBuilder::new().input("scores", &["B", "H", "L", "S"])
    }

    #[test]
    fn the_operators_replace_the_node() {
        let double =
            scores().floats("two", &[], &[2.0]).node("Mul", &["scores", "two"], &["out"]).output("out");
        let unchanged = scores().output("scores");
        let mut captured = scores().node("Add", &["scores", "bias"], &["out"]).output("out");
        let bias = captured.0.find_value("bias").unwrap();
        captured.0.captures.push(bias);
        for (name, modifier, want) in [
            ("score_mod", double, "float[b, 8, l, s] = Mul("),
            ("prob_mod", unchanged, "float[b, 8, l, s] = Softmax"),
            ("prob_mod", captured, "float[b, 8, l, s] = Add("),
        ] {
            let mut graph = graph_of(name, modifier);
            infer(&mut graph).unwrap();
            assert!(expand(&mut graph).unwrap());
            infer(&mut graph).unwrap();
            let text = graph.to_string();
            assert!(text.contains(want) && !text.contains("preview"), "{text}");
            assert!(text.contains("y: float[b, 8, l, 4] = Reshape"), "{text}");
            assert!(!expand(&mut graph).unwrap());
        }
    }

    #[test]
    fn wrong_graphs_are_refused() {
        let two = scores().node("Neg", &["scores"], &["out"]).output("out").output("scores");
        let shape = scores().node("Shape", &["scores"], &["out"]).output("out");
        let rank =
            scores().ints("axis", &[1], &[0]).node("Unsqueeze", &["scores", "axis"], &["out"]).output("out");
        for (modifier, want) in [
            (two, "attribute \"score_mod\": its graph has 2 outputs; allowed is 1"),
            (shape, "attribute \"score_mod\": its graph gives tensor(int64); allowed is tensor(float)"),
            (rank, "attribute \"score_mod\": its graph gives shape [1, b, 8, l, s]"),
        ] {
            let error = infer(&mut graph_of("score_mod", modifier)).unwrap_err();
            assert!(error.message.contains(want), "{error}");
        }
    }
}
