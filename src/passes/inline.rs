//! Puts a function's body in the place of each call to it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Result, fail};
use crate::graph::{
    Attribute, Attributes, Fact, Function, Graph, NEWEST_OPSET, Node, NodeId, OpName, ValueId,
};
use crate::ops::custom::Definition;

type Functions = HashMap<(String, String), Function>;

/// Inlines all calls, in subgraphs and in the bodies of what was inlined as well. Functions do not
/// recurse (`model` refuses that), so this ends. A node whose operator the caller defined learns its definition,
/// and is not inlined where the model has a function of the name for runtimes without the operator.
pub(super) fn inline(
    graph: &mut Graph,
    functions: &Functions,
    definitions: &[Arc<Definition>],
) -> Result<()> {
    if functions.is_empty() && definitions.is_empty() {
        return Ok(());
    }
    let mut waiting: Vec<NodeId> = graph.node_ids().collect();
    while let Some(id) = waiting.pop() {
        let node = graph.node(id);
        let key = (node.op.domain.clone(), node.op.name.clone());
        if let Some(definition) = Definition::find(definitions, &node.op) {
            definition.bind(graph.node_mut(id));
        } else if let Some(function) = functions.get(&key) {
            waiting.extend(inline_call(graph, id, function)?);
        } else {
            graph
                .node_mut(id)
                .subgraphs_mut()
                .try_for_each(|(_, body)| inline(body, functions, definitions))?;
        }
    }
    Ok(())
}

/// Replaces one call; gives the nodes that stand in its place.
fn inline_call(graph: &mut Graph, id: NodeId, function: &Function) -> Result<Vec<NodeId>> {
    let Some(call) = graph.remove_node(id) else { return Ok(Vec::new()) };
    splice(graph, &call, &function.body, &function.defaults)
}

/// Adds the nodes of a body in the place of `call`, which is no node of the graph any more; gives the
/// new ones. What the body captures must be values of the graph.
pub(super) fn splice(
    graph: &mut Graph,
    call: &Node,
    body: &Graph,
    defaults: &Attributes,
) -> Result<Vec<NodeId>> {
    if call.inputs.len() > body.inputs.len() || call.outputs.len() > body.outputs.len() {
        fail!(
            InvalidModel,
            "node \"{}\" ({}): it has {} inputs and {} outputs, the function has {} and {}",
            call.name,
            call.op,
            call.inputs.len(),
            call.outputs.len(),
            body.inputs.len(),
            body.outputs.len()
        );
    }
    // The caller's value for each value of the body; inputs that the call omits stay omitted.
    let mut values: HashMap<ValueId, Option<ValueId>> = HashMap::new();
    for (i, &input) in body.inputs.iter().enumerate() {
        values.insert(input, call.inputs.get(i).copied().flatten());
    }
    for &capture in &body.captures {
        values.insert(capture, graph.find_value(&body.value(capture).name));
    }
    for value in (0..body.value_count()).map(|i| ValueId(i as u32)) {
        if let Some(tensor) = &body.value(value).constant {
            let outer =
                graph.add_value(&format!("{}/{}", call.name, body.value(value).name), Fact::default());
            graph.set_constant(outer, tensor.clone());
            values.insert(value, Some(outer));
        }
    }
    let produced: Vec<ValueId> =
        body.nodes().flat_map(|(_, n)| n.outputs.iter().copied().flatten()).collect();
    for &value in &produced {
        let outer = body
            .outputs
            .iter()
            .position(|&o| o == value)
            .and_then(|i| call.outputs.get(i).copied().flatten());
        let outer = outer.unwrap_or_else(|| {
            graph.add_value(&format!("{}/{}", call.name, body.value(value).name), Fact::default())
        });
        values.insert(value, Some(outer));
    }
    let mut added = Vec::new();
    for (_, inner) in body.nodes() {
        let attributes = bind_attributes(&inner.attributes, call, defaults, &|name| {
            let id = body.find_value(name)?;
            values.get(&id).copied().flatten().map(|outer| graph.value(outer).name.clone())
        })?;
        let map = |v: &Option<ValueId>| v.and_then(|v| values.get(&v).copied().flatten());
        let node = Node {
            name: format!("{}/{}", call.name, inner.name),
            op: inner.op.clone(),
            attributes,
            inputs: inner.inputs.iter().map(map).collect(),
            outputs: inner.outputs.iter().map(map).collect(),
        };
        added.push(graph.add_node(node));
    }
    // An output that is an input passed through, or that several call outputs share, is made by no node of its
    // own: it gets one, so that the call's output keeps its name.
    for (i, &output) in body.outputs.iter().enumerate() {
        let Some(Some(outer)) = call.outputs.get(i).copied() else { continue };
        match values.get(&output).copied().flatten() {
            Some(source) if source == outer => {}
            Some(source) => added.push(graph.add_node(Node {
                name: format!("{}/output_{i}", call.name),
                op: OpName { domain: String::new(), name: "Identity".to_owned(), opset: NEWEST_OPSET },
                attributes: Attributes::default(),
                inputs: vec![Some(source)],
                outputs: vec![Some(outer)],
            })),
            None => fail!(
                InvalidModel,
                "node \"{}\" ({}): output {i} is an input that the call leaves out",
                call.name,
                call.op
            ),
        }
    }
    Ok(added)
}

/// A body node's attributes in this call: references replaced by the caller's values, captures of
/// subgraphs by the caller's names (which `outer_name` tells).
fn bind_attributes(
    attributes: &Attributes,
    call: &Node,
    defaults: &Attributes,
    outer_name: &dyn Fn(&str) -> Option<String>,
) -> Result<Attributes> {
    let mut bound = Attributes::default();
    for (name, attribute) in &attributes.0 {
        let mut value = match attribute {
            Attribute::Reference(reference) => {
                // Without a value on either side the attribute stays unset.
                match call.attributes.get(reference).or_else(|| defaults.get(reference)) {
                    Some(value) => value.clone(),
                    None => continue,
                }
            }
            other => other.clone(),
        };
        for graph in value.graphs_mut() {
            bind_graph(graph, call, defaults)?;
            let names = graph.captures.iter().map(|&c| graph.value(c).name.clone());
            let renamed: Vec<(String, String)> = names
                .filter_map(|inner| outer_name(&inner).map(|outer| (inner, outer)))
                .filter(|(inner, outer)| inner != outer)
                .collect();
            // All at once: one capture's new name may be another's old one.
            let between = |i: usize| format!("\0{i}");
            for (i, (inner, _)) in renamed.iter().enumerate() {
                graph.rename_capture(inner, &between(i));
            }
            for (i, (_, outer)) in renamed.iter().enumerate() {
                graph.rename_capture(&between(i), outer);
            }
        }
        bound.0.push((name.clone(), value));
    }
    Ok(bound)
}

/// Replaces the references inside a subgraph of a function's body.
fn bind_graph(graph: &mut Graph, call: &Node, defaults: &Attributes) -> Result<()> {
    let ids: Vec<NodeId> = graph.node_ids().collect();
    for id in ids {
        let attributes = std::mem::take(&mut graph.node_mut(id).attributes);
        graph.node_mut(id).attributes = bind_attributes(&attributes, call, defaults, &|_| None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::GraphBuilder;
    use super::*;

    #[test]
    fn a_call_becomes_the_body_with_the_callers_attributes() {
        let inner = GraphBuilder::new()
            .input("v", &[])
            .node_with("LeakyRelu", &[("alpha", Attribute::Reference("slope".into()))], &["v"], &["w"])
            .node("Relu", &["w"], &["u"])
            .output("u");
        let outer = GraphBuilder::new().input("p", &[]).node("my.Inner", &["p"], &["q"]).output("q");
        let defaults = Attributes(vec![("slope".into(), Attribute::Float(0.5))]);
        let functions = HashMap::from([
            (("my".to_owned(), "Inner".to_owned()), Function { body: inner.0, defaults }),
            (
                ("my".to_owned(), "Outer".to_owned()),
                Function { body: outer.0, defaults: Attributes::default() },
            ),
        ]);
        let mut graph = GraphBuilder::new()
            .input("x", &["2"])
            .node_with("my.Inner", &[("slope", Attribute::Float(0.25))], &["x"], &["a"])
            .node("my.Outer", &["a"], &["y"])
            .output("y")
            .0;
        inline(&mut graph, &functions, &[]).unwrap();
        let text = graph.to_string();
        assert!(
            text.contains("LeakyRelu<alpha=0.25>(x)") && text.contains("LeakyRelu<alpha=0.5>(a)"),
            "{text}"
        );
        assert_eq!(text.matches("= Relu(").count(), 2, "{text}");
        assert_eq!(graph.value(graph.outputs[0]).name, "y");
    }

    /// The caller has the function's names for other values.
    #[test]
    fn captures_take_each_others_names() {
        let branch = || {
            let mut body = Graph::new("branch");
            let captured = ["a", "b"].map(|name| body.add_value(name, Fact::default()));
            body.captures = captured.to_vec();
            let y = body.add_value("y", Fact::default());
            body.add_node(Node {
                name: "sub".into(),
                op: OpName { domain: String::new(), name: "Sub".into(), opset: NEWEST_OPSET },
                attributes: Attributes::default(),
                inputs: captured.map(Some).to_vec(),
                outputs: vec![Some(y)],
            });
            body.outputs.push(y);
            Attribute::Graph(Arc::new(body))
        };
        let body = GraphBuilder::new()
            .input("a", &[])
            .input("b", &[])
            .input("c", &[])
            .node_with("If", &[("then_branch", branch()), ("else_branch", branch())], &["c"], &["w"])
            .output("w");
        let function = Function { body: body.0, defaults: Attributes::default() };
        let functions = HashMap::from([(("my".to_owned(), "F".to_owned()), function)]);
        let mut graph = GraphBuilder::new()
            .input("b", &["2"])
            .input("a", &["2"])
            .input("c", &[])
            .node("my.F", &["b", "a", "c"], &["y"])
            .output("y")
            .0;
        inline(&mut graph, &functions, &[]).unwrap();
        let (_, node) = graph.nodes().next().unwrap();
        for (_, body) in node.subgraphs() {
            let (_, sub) = body.nodes().next().unwrap();
            let names: Vec<&str> = sub.inputs.iter().map(|v| body.value(v.unwrap()).name.as_str()).collect();
            assert_eq!(names, ["b", "a"]);
        }
    }

    #[test]
    fn too_many_arguments_are_refused() {
        let body = GraphBuilder::new().input("v", &[]).node("Relu", &["v"], &["w"]).output("w").0;
        let function = Function { body, defaults: Attributes::default() };
        let functions = HashMap::from([(("my".to_owned(), "F".to_owned()), function)]);
        let mut graph =
            GraphBuilder::new().input("x", &["2"]).node("my.F", &["x", "x"], &["y"]).output("y").0;
        let error = inline(&mut graph, &functions, &[]).unwrap_err();
        assert!(error.message.contains("\"F_node\" (my.F): it has 2 inputs"), "{error}");
    }
}
