//! Graph in, better graph out. One file a pass; none changes what the model means.
//!
//! The order: functions are inlined, types and shapes inferred, and operators replaced that no provider
//! runs; constants and shape arithmetic are folded and identities removed until nothing changes; dead code
//! goes. Then come the fusions that the chosen provider can run, those of quantized graphs first, after which
//! weights that are still quantized become floats; half precision where it is wanted; and the layout of images: blocks of
//! channels on the CPU, channels innermost on GPUs.

mod attention_gate;
mod channel_layout;
mod channels_last;
mod dead;
mod expand;
mod flex_attention;
mod fold;
mod fusion;
mod identity;
mod infer;
mod inline;
mod precision;
mod quantized_rnn;

#[cfg(test)]
mod testing;

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::Result;
use crate::graph::{Function, Graph, Node};
use crate::ops::OpError;
use crate::ops::custom::Definition;
use crate::tensor::Value;

pub(crate) use channel_layout::channel_layout;
pub(crate) use channels_last::channels_last;
pub(crate) use fusion::{Target, fuse};
pub(crate) use infer::infer;
pub(crate) use precision::lower;

/// Computes one node on values. The session lends the CPU provider for it, so that passes know no
/// provider.
pub(crate) trait Evaluate {
    /// The node's outputs; `inputs` as the node has them, all known.
    fn evaluate(&self, node: &Node, inputs: &[Option<&Value>]) -> std::result::Result<Vec<Value>, OpError>;
}

/// What folding makes of DequantizeLinear of a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Weights {
    /// It stays, for fusions that compute with integers.
    Quantized,
    /// Floats.
    Dequantized,
}

/// The rewrites that every provider profits from. Without `optimize`, only those that running needs: inlining,
/// inference and replacement.
pub(crate) fn canonicalise(
    graph: &mut Graph,
    functions: &HashMap<(String, String), Function>,
    definitions: &[Arc<Definition>],
    optimize: Option<Weights>,
    evaluate: &dyn Evaluate,
) -> Result<()> {
    inline::inline(graph, functions, definitions)?;
    infer::infer(graph)?;
    while flex_attention::expand(graph)? | quantized_rnn::expand(graph)? | attention_gate::expand(graph)? {
        infer::infer(graph)?;
    }
    match optimize {
        Some(weights) => simplify(graph, evaluate, weights),
        None => Ok(()),
    }
}

/// Folds constants and shapes of a graph whose facts were inferred, and removes what has no effect.
fn simplify(graph: &mut Graph, evaluate: &dyn Evaluate, weights: Weights) -> Result<()> {
    // Folding makes shapes known, and known shapes make more foldable: a few rounds suffice.
    const ROUNDS: usize = 8;
    for _ in 0..ROUNDS {
        let changed = fold::fold(graph, evaluate, weights) | identity::remove(graph);
        if !changed {
            break;
        }
        infer::infer(graph)?;
    }
    dead::remove(graph);
    Ok(())
}
