//! Puts the operators in the place of `LinearAttentionGate` that it stands for, in float: every provider runs them, and
//! where they stand alone they become one kernel.

use crate::error::{Result, Status};
use crate::graph::{Attribute, Graph, NodeId};
use crate::ops::{self, OpError};
use crate::tensor::ElementType;

use super::expand::{Expansion, expand_each};

/// Expands those there are, in subgraphs as well; tells whether there were any. Types must be inferred.
pub(super) fn expand(graph: &mut Graph) -> Result<bool> {
    expand_each(graph, ("com.microsoft", "LinearAttentionGate"), expand_node)
}

fn expand_node(graph: &mut Graph, id: NodeId) -> Result<()> {
    let node = graph.node(id).clone();
    let wrong = |e: OpError| e.at(&node.name, &node.op.to_string(), Status::InvalidModel);
    ops::resolve(&node).map_err(wrong)?;
    let [Some(a), Some(bias), Some(scale), ref rest @ ..] = node.inputs[..] else {
        return Err(wrong(OpError::Unknown("it needs a, dt_bias and decay_scale".to_owned())));
    };
    let Some(ty) = graph.value(a).fact.element_type() else {
        return Err(wrong(OpError::Unsupported("the type of input 0 (a) is not known".to_owned())));
    };
    graph.remove_node(id);
    let output = |i: usize| node.outputs.get(i).copied().flatten();
    let mut expansion = Expansion { graph, name: &node.name };
    let to = [("to", Attribute::Int(ty as i64))];
    if let Some(decay) = output(0) {
        let floats = expansion.cast(a, ElementType::F32);
        let sum = expansion.node("Add", &[], &[floats, bias]);
        let rate = expansion.node("Softplus", &[], &[sum]);
        let scaled = expansion.node("Mul", &[], &[rate, scale]);
        expansion.node_to("Cast", &to, &[scaled], decay);
    }
    if let (Some(beta), Some(&Some(b))) = (output(1), rest.first()) {
        let floats = expansion.cast(b, ElementType::F32);
        let gate = expansion.node("Sigmoid", &[], &[floats]);
        expansion.node_to("Cast", &to, &[gate], beta);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::infer::infer;
    use super::super::testing::GraphBuilder;
    use super::*;

    fn gate(inputs: &[&str], outputs: &[&str]) -> Graph {
        let mut graph = GraphBuilder::new()
            .input("a", &["b", "t", "3"])
            .input("b", &["b", "t", "3"])
            .floats("bias", &[3], &[0.5; 3])
            .floats("scale", &[3], &[-1.0; 3])
            .node_with("com.microsoft.LinearAttentionGate", &[], inputs, outputs);
        for output in outputs {
            graph = graph.output(output);
        }
        graph.0
    }

    #[test]
    fn the_operators_replace_the_node() {
        for outputs in [&["decay"][..], &["decay", "beta"]] {
            let mut graph = gate(&["a", "bias", "scale", "b"], outputs);
            infer(&mut graph).unwrap();
            assert!(expand(&mut graph).unwrap());
            infer(&mut graph).unwrap();
            let text = graph.to_string();
            assert!(text.contains("Softplus") && !text.contains("microsoft"), "{text}");
            assert_eq!(text.contains("beta: float[b, t, 3] = Cast"), outputs.len() == 2, "{text}");
            assert!(!expand(&mut graph).unwrap());
        }
    }

    #[test]
    fn beta_needs_its_projection() {
        let error = infer(&mut gate(&["a", "bias", "scale"], &["decay", "beta"])).unwrap_err();
        assert!(error.message.contains("output 1 (beta) needs it"), "{error}");
    }
}
