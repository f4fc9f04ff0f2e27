//! Whether a model's graph fits: into memory as it is, and into a limit when its functions are expanded.

use std::collections::HashMap;

use prost::encoding::{WireType, decode_key, decode_varint};

use crate::error::{Result, fail};
use crate::graph::{Function, Graph};

/// How many nodes a graph may have when every call of a function is replaced by the function's body. The largest
/// exported models have a hundredth of it.
const MOST_NODES: u64 = 1 << 20;

/// Memory that opening takes for a node, and for each byte of its message: measured on graphs of a million nodes.
const BYTES_OF_NODE: u64 = 1024;
const BYTES_OF_MESSAGE_BYTE: u64 = 12;
/// What a message has beyond this are tensors in attributes, which stay where they are.
const LARGEST_MESSAGE: u64 = 4096;
/// Less than this is not asked for beforehand.
const WORTH_ASKING: u64 = 64 << 20;

/// Fails when memory for the graph of this `ModelProto` is not to be had. A vector that cannot grow ends the process,
/// so it is asked beforehand, once.
pub(super) fn check_memory(model: &[u8], origin: &str) -> Result<()> {
    let mut nodes = Nodes::default();
    nodes.add_model(model);
    let bytes = nodes.count * BYTES_OF_NODE + nodes.bytes * BYTES_OF_MESSAGE_BYTE;
    let there = |bytes: u64| {
        usize::try_from(bytes).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok())
    };
    if bytes >= WORTH_ASKING && !there(bytes) {
        fail!(
            OutOfMemory,
            "{origin} has {} nodes, which take about {} MiB of memory to open; so much is not to be had",
            nodes.count,
            bytes >> 20
        );
    }
    Ok(())
}

#[derive(Default)]
struct Nodes {
    count: u64,
    bytes: u64,
}

impl Nodes {
    /// The nodes of a `ModelProto`'s graph (field 7) and functions (field 25).
    fn add_model(&mut self, model: &[u8]) {
        for_each_field(model, |field, body| match field {
            7 => self.add_nodes(body, 1),
            25 => self.add_nodes(body, 7),
            _ => {}
        });
    }

    fn add_nodes(&mut self, graph: &[u8], nodes: u32) {
        for_each_field(graph, |field, body| {
            if field == nodes {
                self.count += 1;
                self.bytes += (body.len() as u64).min(LARGEST_MESSAGE);
            }
        });
    }
}

/// Calls `f` with the number and the bytes of each field that has a length. Ends where the bytes are no message; the
/// decoder reports that.
fn for_each_field(mut message: &[u8], mut f: impl FnMut(u32, &[u8])) {
    while !message.is_empty() {
        let Ok((field, wire)) = decode_key(&mut message) else { return };
        let skip = match wire {
            WireType::LengthDelimited => {
                let length = decode_varint(&mut message).ok().and_then(|n| usize::try_from(n).ok());
                let Some((body, rest)) = length.and_then(|n| message.split_at_checked(n)) else { return };
                f(field, body);
                message = rest;
                continue;
            }
            WireType::Varint => match decode_varint(&mut message) {
                Ok(_) => 0,
                Err(_) => return,
            },
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::StartGroup | WireType::EndGroup => return,
        };
        let Some(rest) = message.get(skip..) else { return };
        message = rest;
    }
}

type Functions = HashMap<(String, String), Function>;

/// Refuses a model whose functions expand into too many nodes: a few, each of which calls the next twice, are
/// enough. Functions do not recurse, which was checked before.
pub(super) fn check_expansion(graph: &Graph, functions: &Functions) -> Result<()> {
    let mut known = HashMap::new();
    let nodes = expanded(graph, functions, &mut known);
    if nodes > MOST_NODES {
        let count = if nodes == u64::MAX { "more than 10^19".to_owned() } else { nodes.to_string() };
        fail!(
            InvalidModel,
            "the model's functions expand into {count} nodes; at most {MOST_NODES} are allowed. Export the model without functions inside functions, or with its layers as nodes"
        );
    }
    Ok(())
}

/// The nodes of a graph and of its subgraphs, calls replaced.
fn expanded<'f>(
    graph: &Graph,
    functions: &'f Functions,
    known: &mut HashMap<&'f (String, String), u64>,
) -> u64 {
    let mut total = 0u64;
    for (_, node) in graph.nodes() {
        let called = functions.get_key_value(&(node.op.domain.clone(), node.op.name.clone()));
        let own = match called {
            Some((key, function)) => match known.get(key) {
                Some(&nodes) => nodes,
                None => {
                    let nodes = expanded(&function.body, functions, known);
                    known.insert(key, nodes);
                    nodes
                }
            },
            None => 1,
        };
        total = node
            .subgraphs()
            .map(|(_, body)| expanded(body, functions, known))
            .fold(total.saturating_add(own), u64::saturating_add);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::ModelBuilder;
    use crate::tensor::ElementType::F32;

    #[test]
    fn nodes_are_counted_without_decoding() {
        let model = ModelBuilder::new()
            .input("x", F32, &["2"])
            .node("Relu", &["x"], &["a"])
            .node("Neg", &["a"], &["y"])
            .function("F", vec![crate::model::testing::node("Identity", &[], &["v"], &["w"])])
            .output("y")
            .bytes();
        let count = |bytes: &[u8]| {
            let mut nodes = Nodes::default();
            nodes.add_model(bytes);
            nodes.count
        };
        assert_eq!(count(&model), 3);
        // Whatever the bytes are, it ends.
        (0..model.len()).for_each(|n| assert!(count(&model[..n]) <= 3));
    }
}
