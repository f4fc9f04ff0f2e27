//! Pictures of graphs.

use std::collections::HashMap;
use std::ffi::c_char;
use std::fmt::Write;

use super::Graph;
use crate::runtime::call::{Failure, Handle, call, text};
use crate::runtime::errors::HipError;

/// Writes a file for Graphviz.
///
/// # Safety
///
/// `file` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphDebugDotPrint(graph: Handle, file: *const c_char, flags: u32) -> HipError {
    // SAFETY: by this function's contract.
    let file = unsafe { text(file, "path") };
    call("hipGraphDebugDotPrint", format_args!("{graph:#x}, {file:?}, {flags}"), |runtime| {
        runtime.graphs_are_supported()?;
        let file = file.clone()?;
        let picture = dot(runtime.state().graph_mut(graph)?);
        std::fs::write(&file, picture)
            .map_err(|error| Failure::new(HipError::OPERATING_SYSTEM, format!("{file}: {error}")))
    })
}

fn dot(graph: &Graph) -> String {
    let number: HashMap<Handle, usize> =
        graph.nodes.iter().enumerate().map(|(index, node)| (node.id, index)).collect();
    let mut text = "digraph dot {\n".to_owned();
    for (index, node) in graph.nodes.iter().enumerate() {
        let label = node.label.replace('"', "\\\"");
        // Writing to a string does not fail.
        let _ = writeln!(text, "  n{index} [shape=box label=\"{}\\n{label}\"];", node.work.kind());
    }
    for (index, node) in graph.nodes.iter().enumerate() {
        for before in node.dependencies.iter().filter_map(|it| number.get(it)) {
            let _ = writeln!(text, "  n{before} -> n{index};");
        }
    }
    text + "}\n"
}
