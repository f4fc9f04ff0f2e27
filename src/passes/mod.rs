//! Graph in, better graph out. One file a pass; none changes what the model means.
//!
//! The order: functions are inlined, types and shapes inferred, and operators replaced that no provider
//! runs; constants and shape arithmetic are folded and identities removed until nothing changes; dead code
//! goes. Then come the fusions that the chosen provider can run, and half precision where it is wanted.

mod dead;
mod flex_attention;
mod fold;
mod fusion;
mod identity;
mod infer;
mod inline;
mod precision;

#[cfg(test)]
mod testing;

use std::collections::HashMap;

use crate::error::Result;
use crate::graph::{Function, Graph, Node};
use crate::ops::OpError;
use crate::tensor::Value;

pub(crate) use fusion::{Target, fuse};
pub(crate) use precision::lower;

/// Computes one node on values. The session lends the CPU provider for it, so that passes know no
/// provider.
pub(crate) trait Evaluate {
    /// The node's outputs; `inputs` as the node has them, all known.
    fn evaluate(&self, node: &Node, inputs: &[Option<&Value>]) -> std::result::Result<Vec<Value>, OpError>;
}

/// The rewrites that every provider profits from. With `optimize` unset, only those that running
/// needs: inlining, inference and replacement.
pub(crate) fn canonicalise(
    graph: &mut Graph,
    functions: &HashMap<(String, String), Function>,
    optimize: bool,
    evaluate: &dyn Evaluate,
) -> Result<()> {
    inline::inline(graph, functions)?;
    infer::infer(graph)?;
    while flex_attention::expand(graph)? {
        infer::infer(graph)?;
    }
    if !optimize {
        return Ok(());
    }
    // Folding makes shapes known, and known shapes make more foldable: a few rounds suffice.
    const ROUNDS: usize = 8;
    for _ in 0..ROUNDS {
        let changed = fold::fold(graph, evaluate) | identity::remove(graph);
        if !changed {
            break;
        }
        infer::infer(graph)?;
    }
    dead::remove(graph);
    Ok(())
}
