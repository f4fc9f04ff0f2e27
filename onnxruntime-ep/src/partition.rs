//! Which nodes of a graph become one: parts as large as can be, none of which needs itself.

use std::collections::HashMap;

/// What the partition needs to know of a node.
pub(crate) struct Vertex<'a> {
    pub(crate) needs: &'a [String],
    pub(crate) makes: &'a [String],
    /// Whether the node may be in a part.
    pub(crate) takeable: bool,
}

/// The parts, each with its nodes in the order of the graph. `vertices` come each after those that they need.
///
/// Nodes get levels that never fall along an edge, even ones for nodes that may be in a part and odd ones for the
/// others. A part is what has the same even level: a way out of it and back would have to rise and to fall.
pub(crate) fn partition(vertices: &[Vertex<'_>]) -> Vec<Vec<usize>> {
    let mut makers: HashMap<&str, usize> = HashMap::new();
    let mut levels: Vec<usize> = Vec::with_capacity(vertices.len());
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for (index, vertex) in vertices.iter().enumerate() {
        let before =
            vertex.needs.iter().filter_map(|name| makers.get(name.as_str())).map(|maker| levels[*maker]);
        let highest = before.max().unwrap_or(0);
        let level = if (highest % 2 == 0) == vertex.takeable { highest } else { highest + 1 };
        levels.push(level);
        for name in vertex.makes.iter().filter(|name| !name.is_empty()) {
            makers.insert(name, index);
        }
        if vertex.takeable {
            let part = level / 2;
            parts.resize_with(parts.len().max(part + 1), Vec::new);
            parts[part].push(index);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of a graph that is written as "makes = needs" a node, with `!` before nodes that may not be in a part.
    fn parts(graph: &str) -> Vec<Vec<usize>> {
        let names = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let nodes: Vec<_> = graph
            .split(';')
            .map(|node| {
                let node = node.trim();
                let (makes, needs) = node.trim_start_matches('!').split_once('=').unwrap();
                (names(makes), names(needs), !node.starts_with('!'))
            })
            .collect();
        let vertices: Vec<_> = nodes
            .iter()
            .map(|(makes, needs, takeable)| Vertex { needs, makes, takeable: *takeable })
            .collect();
        partition(&vertices)
    }

    #[test]
    fn parts_are_large_and_without_cycles() {
        for (graph, expected) in [
            ("a = x; b = a; c = b", vec![vec![0, 1, 2]]),
            ("! a = x; b = a", vec![vec![1]]),
            ("! a = x", vec![]),
            // The node in the middle needs the first and is needed by the third.
            ("a = x; ! b = a; c = a b", vec![vec![0], vec![2]]),
            // Beside a node that is left out, both sides stay together.
            ("a = x; ! b = x; c = a; d = c b", vec![vec![0, 2], vec![3]]),
            // Two branches that do not touch are one part.
            ("a = x; b = y", vec![vec![0, 1]]),
            // c and e could be one part by themselves; d needs one of them and the other needs d.
            ("a = x; ! b = a; c = b; ! d = c; e = d a", vec![vec![0], vec![2], vec![4]]),
        ] {
            assert_eq!(parts(graph), expected, "{graph}");
        }
    }

    /// Every part of many random graphs is such that no way leaves it and comes back.
    #[test]
    fn parts_of_random_graphs_are_convex() {
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for _ in 0..500 {
            let count = 2 + random(20);
            let makes: Vec<Vec<String>> = (0..count).map(|node| vec![format!("v{node}")]).collect();
            let needs: Vec<Vec<String>> = (0..count)
                .map(|node| (0..random(4)).map(|_| format!("v{}", random(node + 1))).collect())
                .map(|needs: Vec<String>| needs)
                .collect();
            let takeable: Vec<bool> = (0..count).map(|_| random(3) > 0).collect();
            let vertices: Vec<_> = (0..count)
                .map(|node| Vertex { needs: &needs[node], makes: &makes[node], takeable: takeable[node] })
                .collect();
            for part in partition(&vertices) {
                // Nodes that are reached from the part by a way through a node outside of it.
                let mut outside_after = vec![false; count];
                for node in 0..count {
                    let from = |name: &String| name[1..].parse::<usize>().unwrap();
                    let before = || needs[node].iter().map(from).filter(|maker| *maker < node);
                    let inside = part.contains(&node);
                    let reached = before().any(|maker| outside_after[maker]);
                    assert!(!(inside && reached), "node {node} of {part:?} needs its own part from outside");
                    outside_after[node] = reached || (!inside && before().any(|maker| part.contains(&maker)));
                }
            }
        }
    }
}
