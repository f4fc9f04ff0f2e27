//! Attention whose batch is put behind the rows before it and back after it: the products between do not mind, and
//! attention reads either order.

use crate::graph::{Attribute, NodeId, ValueId};

use super::super::attention::permutes;
use super::super::rewriter::Rewriter;

/// A transpose of batch and rows that undoes another one, with products and attention between them.
pub(in super::super) fn transposes(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !swaps(rw, root) {
        return None;
    }
    rw.output(root)?;
    let last = rw.input(root, 0)?;
    let chain = chain(rw, last)?;
    let mut x = rw.input(*chain.last()?, 0)?;
    // From the first transpose on, which is left out, to what the last one takes.
    for (i, &id) in chain[..chain.len() - 1].iter().enumerate().rev() {
        let mut new = rw.node(id).clone();
        let first = new.inputs[0];
        new.inputs.iter_mut().filter(|input| **input == first).for_each(|input| *input = Some(x));
        if rw.is(id, "rukh.Attention") {
            let rows_first = matches!(new.attributes.get("rows_first"), Some(Attribute::Int(1)));
            new.attributes.0.retain(|(name, _)| name != "rows_first");
            if !rows_first {
                new.attributes.0.push(("rows_first".to_owned(), Attribute::Int(1)));
            }
        }
        if i == 0 {
            new.outputs = rw.node(root).outputs.clone();
            return rw.replace(root, new).then_some(());
        }
        x = rw.insert_node(new)?;
    }
    None
}

/// The nodes that lead from a value up to a transpose of batch and rows, which comes last.
fn chain(rw: &Rewriter<'_>, last: ValueId) -> Option<Vec<NodeId>> {
    let (mut value, mut chain, mut has_attention) = (last, Vec::new(), false);
    loop {
        let id = rw.producer(value)?;
        chain.push(id);
        if swaps(rw, id) {
            return has_attention.then_some(chain);
        }
        let product = (rw.is(id, "MatMul") || rw.is(id, "rukh.MatMul"))
            && rw.input(id, 3).is_none()
            && rw.shape(rw.input(id, 1)?)?.len() == 2
            && !["transA", "transBatchA"].iter().any(|name| rw.node(id).attributes.get(name).is_some());
        let packed = rw.node(id).attributes.get("head_sizes").is_some();
        let x = rw.input(id, 0)?;
        let all_same = (0..3).all(|i| rw.input(id, i) == Some(x));
        let attention = rw.is(id, "rukh.Attention") && packed && all_same;
        has_attention |= attention;
        let uses = rw.uses(value);
        let users = if chain.len() == 1 { 1 } else { used_by(rw, chain[chain.len() - 2], value) };
        if !(product || attention) || uses != users || rw.output(id) != Some(value) {
            return None;
        }
        value = x;
    }
}

/// How often a node uses a value.
fn used_by(rw: &Rewriter<'_>, id: NodeId, value: ValueId) -> usize {
    rw.node(id).inputs.iter().filter(|&&input| input == Some(value)).count()
}

/// Whether a node exchanges the first two of three dimensions.
fn swaps(rw: &Rewriter<'_>, id: NodeId) -> bool {
    rw.is(id, "Transpose") && permutes(rw, id, &[1, 0, 2])
}
