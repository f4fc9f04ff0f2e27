//! Symbolic dimensions that options fix.

use std::collections::BTreeSet;

use crate::error::{Result, fail};
use crate::graph::{Dim, Graph};
use crate::model;

use super::options::SessionOptions;

/// Replaces the symbolic dimensions that the options fix.
pub(super) fn fix_dimensions(graph: &mut Graph, options: &SessionOptions) -> Result<()> {
    if options.dimensions.is_empty() {
        return Ok(());
    }
    let mut known = BTreeSet::new();
    for &input in &graph.inputs {
        let symbols = graph.value(input).fact.shape.iter().flatten().filter_map(Dim::as_symbol);
        known.extend(symbols.filter(|s| !model::is_unnamed(s)).map(str::to_owned));
    }
    if let Some(name) = options.dimensions.keys().find(|name| !known.contains(*name)) {
        let known: Vec<String> = known.into_iter().collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        fail!(
            InvalidArgument,
            "option \"dim.{name}\": the model's inputs have no dimension of this name; they have {known}"
        );
    }
    let size = |name: &str| options.dimensions.get(name).map(|&n| Dim::from(n).known().unwrap_or(i64::MAX));
    for value in graph.inputs.iter().chain(&graph.outputs).copied().collect::<Vec<_>>() {
        if let Some(shape) = &mut graph.value_mut(value).fact.shape {
            shape.iter_mut().for_each(|d| *d = d.substitute(&size));
        }
    }
    Ok(())
}
