//! The text form of a graph, which tests compare and people read.

use std::fmt::{Display, Formatter, Result};

use super::{Attribute, Fact, Graph, ValueId};

impl Display for Graph {
    /// One line for the signature, one for each node in execution order, one for the outputs:
    ///
    /// ```text
    /// graph name(x: float[batch, 3]) {
    ///   y: float[batch, 3] = Relu(x)
    ///   return y
    /// }
    /// ```
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write_graph(self, f, 0)
    }
}

fn write_graph(graph: &Graph, f: &mut Formatter<'_>, depth: usize) -> Result {
    let pad = "  ".repeat(depth);
    write!(f, "graph {}(", graph.name)?;
    write_values(graph, f, &graph.inputs)?;
    f.write_str(")")?;
    if !graph.captures.is_empty() {
        f.write_str(" captures (")?;
        write_values(graph, f, &graph.captures)?;
        f.write_str(")")?;
    }
    f.write_str(" {\n")?;
    let order = graph.order().unwrap_or_else(|_| graph.node_ids().collect());
    for id in order {
        let node = graph.node(id);
        write!(f, "{pad}  ")?;
        for (i, output) in node.outputs.iter().enumerate() {
            f.write_str(if i > 0 { ", " } else { "" })?;
            match output {
                Some(v) => write_value(graph, f, *v)?,
                None => f.write_str("_")?,
            }
        }
        write!(f, " = {}", node.op)?;
        if !node.attributes.0.is_empty() {
            f.write_str("<")?;
            for (i, (name, attribute)) in node.attributes.0.iter().enumerate() {
                write!(f, "{}{name}=", if i > 0 { ", " } else { "" })?;
                write_attribute(attribute, f, depth + 1)?;
            }
            f.write_str(">")?;
        }
        f.write_str("(")?;
        for (i, input) in node.inputs.iter().enumerate() {
            f.write_str(if i > 0 { ", " } else { "" })?;
            f.write_str(input.map_or("_", |v| &graph.value(v).name))?;
        }
        f.write_str(")\n")?;
    }
    write!(f, "{pad}  return ")?;
    for (i, output) in graph.outputs.iter().enumerate() {
        f.write_str(if i > 0 { ", " } else { "" })?;
        f.write_str(&graph.value(*output).name)?;
    }
    write!(f, "\n{pad}}}")
}

fn write_values(graph: &Graph, f: &mut Formatter<'_>, values: &[ValueId]) -> Result {
    for (i, &value) in values.iter().enumerate() {
        f.write_str(if i > 0 { ", " } else { "" })?;
        write_value(graph, f, value)?;
    }
    Ok(())
}

fn write_value(graph: &Graph, f: &mut Formatter<'_>, value: ValueId) -> Result {
    let info = graph.value(value);
    f.write_str(&info.name)?;
    if info.fact.ty.is_some() { write!(f, ": {}", info.fact) } else { Ok(()) }
}

impl Display for Fact {
    /// `float[batch, 3]`; `float[…]` while the rank is unknown; `seq(tensor(float))` for the rest.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match (self.element_type(), &self.ty, &self.shape) {
            (Some(ty), _, Some(shape)) => {
                write!(f, "{ty}[")?;
                for (i, dim) in shape.iter().enumerate() {
                    write!(f, "{}{dim}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            (Some(ty), _, None) => write!(f, "{ty}[…]"),
            (None, Some(ty), _) => write!(f, "{ty}"),
            (None, None, _) => f.write_str("?"),
        }
    }
}

fn write_attribute(attribute: &Attribute, f: &mut Formatter<'_>, depth: usize) -> Result {
    match attribute {
        Attribute::Int(n) => write!(f, "{n}"),
        Attribute::Float(x) => write!(f, "{x:?}"),
        Attribute::String(s) => write!(f, "{:?}", String::from_utf8_lossy(s)),
        Attribute::Tensor(t) => write!(f, "{}{:?}", t.ty(), t.shape()),
        Attribute::SparseTensor(t) => write!(f, "sparse {}{:?}", t.values.ty(), t.shape),
        Attribute::Graph(g) => write_graph(g, f, depth),
        Attribute::Type(t) => write!(f, "{t}"),
        Attribute::Ints(v) => write!(f, "{v:?}"),
        Attribute::Floats(v) => write!(f, "{v:?}"),
        Attribute::Strings(v) => {
            write!(f, "{:?}", v.iter().map(|s| String::from_utf8_lossy(s)).collect::<Vec<_>>())
        }
        Attribute::Tensors(v) => write!(f, "[{} tensors]", v.len()),
        Attribute::Graphs(v) => {
            f.write_str("[")?;
            for g in v {
                write_graph(g, f, depth)?;
            }
            f.write_str("]")
        }
        Attribute::Reference(name) => write!(f, "@{name}"),
        Attribute::Definition(_) => f.write_str("defined by the caller"),
    }
}
