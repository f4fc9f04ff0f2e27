//! Uses and names of values, changed in subgraphs as well.

use super::{Graph, ValueId};

impl Graph {
    /// Makes every use of `from` by nodes (inputs, captures) a use of `to`. The graph's outputs stay: their names
    /// are the model's.
    pub fn replace_uses(&mut self, from: ValueId, to: ValueId) {
        let new_name = self.value(to).name.clone();
        let old_name = self.value(from).name.clone();
        for node in self.nodes.iter_mut().flatten() {
            for input in node.inputs.iter_mut().flatten() {
                if *input == from {
                    *input = to;
                }
            }
            node.subgraphs_mut().for_each(|(_, graph)| graph.rename_capture(&old_name, &new_name));
        }
    }

    /// Lets the node that makes `from` make `to`, which nobody made, and its users use `to`. Tells whether there
    /// is such a node.
    pub fn make_instead(&mut self, from: ValueId, to: ValueId) -> bool {
        let port = self.nodes.iter_mut().flatten().flat_map(|n| &mut n.outputs).find(|v| **v == Some(from));
        let Some(port) = port else { return false };
        *port = Some(to);
        self.replace_uses(from, to);
        true
    }

    /// Renames a capture, in subgraphs of subgraphs as well; merges it when the new one is there.
    pub fn rename_capture(&mut self, old: &str, new: &str) {
        let Some(id) = self.captures.iter().copied().find(|&c| self.value(c).name == old) else { return };
        if let Some(other) = self.captures.iter().copied().find(|&c| self.value(c).name == new) {
            self.replace_uses(id, other);
            self.outputs.iter_mut().filter(|v| **v == id).for_each(|v| *v = other);
            self.captures.retain(|&c| c != id);
            return;
        }
        if let Some(local) = self.find_value(new) {
            // A value of the subgraph has that name: the local one steps aside.
            let mut unique = format!("{new}_local");
            while self.names.contains_key(&unique) {
                unique.push('_');
            }
            self.rename_value(local, &unique);
        }
        self.rename_value(id, new);
    }

    fn rename_value(&mut self, id: ValueId, new: &str) {
        let old = std::mem::replace(&mut self.values[id.index()].name, new.to_owned());
        self.names.remove(&old);
        self.names.insert(new.to_owned(), id);
        for node in self.nodes.iter_mut().flatten() {
            node.subgraphs_mut().for_each(|(_, graph)| graph.rename_capture(&old, new));
        }
    }
}
