//! Attention reads heads where a product left them, and writes its result as the next product reads it: the splits,
//! transposes and reshapes around it go.

mod operands;
mod order;
#[cfg(test)]
mod tests;

use crate::graph::{Attribute, NodeId};

use super::attention::permutes;
use super::rewriter::Rewriter;
pub(super) use operands::Operand;
use operands::Operands;
pub(super) use order::transposes;

const NAMES: [&str; 2] = ["Attention", "rukh.Attention"];

/// Attention on heads `[batch, heads, rows, size]`, whose result is brought to rows of all heads.
pub(super) fn beside(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Reshape") {
        return None;
    }
    let output = rw.output(root)?;
    let transposed = rw.input(root, 0)?;
    let transpose = rw.private(transposed, "Transpose")?;
    let to_rows_first = permutes(rw, transpose, &[2, 0, 1, 3]);
    if !to_rows_first && !permutes(rw, transpose, &[0, 2, 1, 3]) {
        return None;
    }
    let attended = rw.input(transpose, 0)?;
    let node = NAMES.into_iter().find_map(|op| rw.private(attended, op))?;
    if rw.node(node).attributes.get("q_num_heads").is_some() || rw.node(node).inputs.len() > 4 {
        return None;
    }
    let [_, _, heads, size] = rw.shape(transposed)? else { return None };
    let wanted = [&rw.shape(transposed)?[..2], &[heads.mul(size)]].concat();
    let operands = Operands::of(rw, node, to_rows_first)?;
    let new = operands.draft(rw, node, root);
    let same_order = operands.rows_first == to_rows_first;
    let transposed = [("perm", Attribute::Ints(vec![1, 0, 2]))];
    if rw.shape(output)? == wanted {
        let new = match same_order {
            true => new,
            false => {
                let rows = rw.insert_node(new)?;
                rw.draft(root, "Transpose", &transposed, &[Some(rows)])
            }
        };
        return rw.replace(root, new).then_some(());
    }
    // The result goes on in another shape, which must not ask for a dimension of the old one.
    let elements = rw.constant(rw.input(root, 1)?).and_then(|t| t.to_ints())?;
    if elements.contains(&0) {
        return None;
    }
    let mut rows = rw.insert_node(new)?;
    if !same_order {
        rows = rw.insert(root, "Transpose", &transposed, &[Some(rows)])?;
    }
    let mut new = rw.node(root).clone();
    new.inputs[0] = Some(rows);
    rw.replace(root, new).then_some(())
}

/// Attention on rows of all heads that are parts of the columns of others.
pub(super) fn within(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !NAMES.iter().any(|op| rw.is(root, op)) || rw.node(root).inputs.len() > 4 {
        return None;
    }
    rw.output(root)?;
    rw.node(root).attributes.get("q_num_heads")?;
    if rw.node(root).attributes.get("head_sizes").is_some() {
        return None;
    }
    let operands = Operands::of(rw, root, false).filter(|operands| !operands.rows_first)?;
    let same = (0..3).all(|i| rw.input(root, i) == Some(operands.all[i].source));
    let new = operands.draft(rw, root, root);
    (!same && rw.replace(root, new)).then_some(())
}
