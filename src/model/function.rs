//! `FunctionProto` as functions, which a pass puts in the place of their calls.

use std::collections::HashMap;

use crate::error::{Result, fail};
use crate::graph::{Attributes, Fact, Function, Graph};

use super::build::Builder;
use super::external::ExternalData;
use super::proto::{FunctionProto, ModelProto};
use super::{Opsets, attribute, normal_domain};

/// All functions of the model, by domain and name (with its overload, as in `name:overload`).
pub(super) fn functions(
    model: &ModelProto,
    external: &mut ExternalData,
) -> Result<HashMap<(String, String), Function>> {
    let model_opsets: Opsets =
        model.opset_import.iter().map(|o| (normal_domain(&o.domain).to_owned(), o.version)).collect();
    let mut functions = HashMap::new();
    for proto in &model.functions {
        let key = key(proto);
        let function = function(proto, &model_opsets, external)?;
        if functions.insert(key, function).is_some() {
            fail!(
                InvalidModel,
                "the function \"{}\" of domain \"{}\" is defined twice",
                proto.name,
                proto.domain
            );
        }
    }
    check_recursion(&functions)?;
    Ok(functions)
}

fn key(proto: &FunctionProto) -> (String, String) {
    let name = match proto.overload.as_str() {
        "" => proto.name.clone(),
        overload => format!("{}:{overload}", proto.name),
    };
    (normal_domain(&proto.domain).to_owned(), name)
}

fn function(proto: &FunctionProto, model_opsets: &Opsets, external: &mut ExternalData) -> Result<Function> {
    // A function names the operator sets of its body; a call to another function of the model may
    // be of a domain that only the model imports.
    let mut opsets = model_opsets.clone();
    opsets.extend(proto.opset_import.iter().map(|o| (normal_domain(&o.domain).to_owned(), o.version)));
    let mut builder = Builder { scopes: vec![Graph::new(&proto.name)], opsets: &opsets, external };
    for input in &proto.input {
        let id = builder.declare(input, Fact::default())?;
        builder.current().inputs.push(id);
    }
    builder.add_nodes(&proto.node)?;
    for output in &proto.output {
        let Some(id) = builder.find(0, output) else {
            fail!(InvalidModel, "function \"{}\": output \"{output}\" is made by no node", proto.name);
        };
        builder.current().outputs.push(id);
    }
    let defaults = attribute::attributes(&proto.attribute_proto, &proto.name, &mut builder)?;
    Ok(Function { body: builder.finish()?, defaults: Attributes(defaults.0) })
}

/// Refuses functions that call themselves, directly or through others.
fn check_recursion(functions: &HashMap<(String, String), Function>) -> Result<()> {
    type Key = (String, String);
    fn visit<'a>(
        key: &'a Key,
        functions: &'a HashMap<Key, Function>,
        path: &mut Vec<&'a Key>,
        done: &mut Vec<&'a Key>,
    ) -> Result<()> {
        if path.contains(&key) {
            let names: Vec<&str> = path.iter().chain([&key]).map(|k| k.1.as_str()).collect();
            fail!(
                InvalidModel,
                "the function \"{}\" calls itself ({}); recursion is not allowed",
                key.1,
                names.join(" → ")
            );
        }
        if done.contains(&key) {
            return Ok(());
        }
        path.push(key);
        if let Some(function) = functions.get(key) {
            visit_graph(&function.body, functions, path, done)?;
        }
        path.pop();
        done.push(key);
        Ok(())
    }
    fn visit_graph<'a>(
        graph: &'a Graph,
        functions: &'a HashMap<Key, Function>,
        path: &mut Vec<&'a Key>,
        done: &mut Vec<&'a Key>,
    ) -> Result<()> {
        for (_, node) in graph.nodes() {
            if let Some((key, _)) = functions.get_key_value(&(node.op.domain.clone(), node.op.name.clone())) {
                visit(key, functions, path, done)?;
            }
            for (_, subgraph) in node.subgraphs() {
                visit_graph(subgraph, functions, path, done)?;
            }
        }
        Ok(())
    }
    let mut done = Vec::new();
    functions.keys().try_for_each(|key| visit(key, functions, &mut Vec::new(), &mut done))
}
