//! All declared operators, and how a node finds its own.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::graph::Node;

use super::custom::Definition;
use super::registered::Registered;
use super::signature::Signature;
use super::{AttributeReader, Declaration, OpError, Operator};

/// Every family's table.
const FAMILIES: &[&[Declaration]] = &[
    super::along::DECLARATIONS,
    super::attention::DECLARATIONS,
    super::attention::flex::DECLARATIONS,
    super::attention::group_query::DECLARATIONS,
    super::attention::multi_head::DECLARATIONS,
    super::attention::paged::DECLARATIONS,
    super::attention::recurrent::DECLARATIONS,
    super::attention::rotary::DECLARATIONS,
    super::attention::sparse::DECLARATIONS,
    super::binary::DECLARATIONS,
    super::cast::DECLARATIONS,
    super::channels_last::DECLARATIONS,
    super::choose::DECLARATIONS,
    super::col2im::DECLARATIONS,
    super::concat::DECLARATIONS,
    super::control::DECLARATIONS,
    super::conv::DECLARATIONS,
    super::conv::deform::DECLARATIONS,
    super::conv::transpose::DECLARATIONS,
    super::crop::DECLARATIONS,
    super::detection::DECLARATIONS,
    super::dropout::DECLARATIONS,
    super::einsum::DECLARATIONS,
    super::fourier::DECLARATIONS,
    super::fused::DECLARATIONS,
    super::gated::DECLARATIONS,
    super::projection::DECLARATIONS,
    super::gather::DECLARATIONS,
    super::generate::DECLARATIONS,
    super::generation::DECLARATIONS,
    super::grid::DECLARATIONS,
    super::image_decoder::DECLARATIONS,
    super::image_scaler::DECLARATIONS,
    super::inverse::DECLARATIONS,
    super::language::DECLARATIONS,
    super::layer_norm::DECLARATIONS,
    super::lookup::DECLARATIONS,
    super::loss::DECLARATIONS,
    super::matmul::DECLARATIONS,
    super::ml::FAMILIES[0],
    super::ml::FAMILIES[1],
    super::ml::FAMILIES[2],
    super::ml::FAMILIES[3],
    super::ml::FAMILIES[4],
    super::moe::DECLARATIONS,
    super::movement::DECLARATIONS,
    super::ngram::DECLARATIONS,
    super::norm::DECLARATIONS,
    super::norm_axes::DECLARATIONS,
    super::optional::DECLARATIONS,
    super::pad::DECLARATIONS,
    super::permuted::DECLARATIONS,
    super::pool::DECLARATIONS,
    super::qlinear::DECLARATIONS,
    super::qlinear::elementwise::DECLARATIONS,
    super::qlinear::pool::DECLARATIONS,
    super::qlinear::transformer::DECLARATIONS,
    super::quantize::DECLARATIONS,
    super::random::DECLARATIONS,
    super::reduce::DECLARATIONS,
    super::reshape::DECLARATIONS,
    super::resize::DECLARATIONS,
    super::rnn::DECLARATIONS,
    super::roi::DECLARATIONS,
    super::scatter::DECLARATIONS,
    super::select::DECLARATIONS,
    super::sequence::DECLARATIONS,
    super::shape::DECLARATIONS,
    super::signal::DECLARATIONS,
    super::slice::DECLARATIONS,
    super::softmax::DECLARATIONS,
    super::text::DECLARATIONS,
    super::tokenizer::DECLARATIONS,
    super::topk::DECLARATIONS,
    super::training::DECLARATIONS,
    super::unary::DECLARATIONS,
    super::unique::DECLARATIONS,
    super::unpool::DECLARATIONS,
    super::variadic::DECLARATIONS,
    super::weight_only::DECLARATIONS,
    super::weight_only::four_bit_float::DECLARATIONS,
    super::weight_only::gather::DECLARATIONS,
];

/// By domain, then by name.
type Registry = HashMap<&'static str, HashMap<&'static str, (&'static Declaration, Arc<Registered>)>>;

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut registry = Registry::new();
        for declaration in declarations() {
            // A signature that does not parse leaves its operator out; a test finds it.
            if let Ok(signature) = Signature::parse(declaration.signature, declaration.types) {
                let domain = registry.entry(declaration.domain).or_default();
                let registered = Registered {
                    signature,
                    shape_inputs: Cow::Borrowed(declaration.shape_inputs),
                    data_dependent: declaration.data_dependent,
                    repeatable: repeats(declaration.name),
                };
                domain.insert(declaration.name, (declaration, Arc::new(registered)));
            }
        }
        registry
    })
}

/// Makes the table of operators, if it is not there. To be called before a process forks: if another thread was making it, the
/// child would wait for that thread, which it does not have.
pub fn settle() {
    registry();
}

/// Every declaration.
pub fn declarations() -> impl Iterator<Item = &'static Declaration> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// An operator of the library.
pub fn find(domain: &str, name: &str) -> Option<&'static Registered> {
    registry().get(domain)?.get(name).map(|(_, registered)| &**registered)
}

/// Whether the standard has an operator of this name in this domain.
pub fn is_standard(domain: &str, name: &str) -> bool {
    let domain = if domain == "ai.onnx" { "" } else { domain };
    (domain.is_empty() || domain.starts_with("ai.onnx")) && find(domain, name).is_some()
}

/// Whether a node gives the same outputs for the same inputs each time. Those that draw random numbers do not; of an
/// operator of the caller's the caller says it.
pub fn is_repeatable(node: &Node) -> bool {
    match Definition::of(node) {
        Some(definition) => definition.is_repeatable(),
        None => repeats(&node.op.name),
    }
}

fn repeats(name: &str) -> bool {
    !matches!(
        name,
        "RandomNormal"
            | "RandomNormalLike"
            | "RandomUniform"
            | "RandomUniformLike"
            | "Bernoulli"
            | "Multinomial"
            | "Dropout"
    )
}

/// The typed operator of a node, its attributes checked.
pub fn resolve(node: &Node) -> Result<(Arc<Registered>, Arc<dyn Operator>), OpError> {
    if let Some(definition) = Definition::of(node) {
        let operator = definition.operator(node)?;
        return Ok((definition.registered.clone(), Arc::new(operator)));
    }
    let op = &node.op;
    let found = registry().get(&*op.domain).and_then(|domain| domain.get(&*op.name));
    let (declaration, registered) = found.ok_or_else(|| unknown(node))?;
    let first = declaration.since.first().copied().unwrap_or(1);
    if op.opset < first {
        return Err(OpError::Unknown(format!(
            "operator {op} exists since opset {first}; the model imports opset {}",
            op.opset
        )));
    }
    let inputs = node.inputs.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    let reader = AttributeReader::new(&node.attributes, op.opset, inputs, node.outputs.len());
    let operator = (declaration.parse)(&reader)?;
    reader.finish()?;
    Ok((registered.clone(), operator))
}

fn unknown(node: &Node) -> OpError {
    let op = &node.op;
    let domain = if op.domain.is_empty() { "ai.onnx" } else { &op.domain };
    if declarations().any(|d| d.domain == op.domain) {
        OpError::Unknown(format!("operator {} is not known in domain {domain} (opset {})", op.name, op.opset))
    } else {
        let mut domains: Vec<&str> =
            declarations().map(|d| if d.domain.is_empty() { "ai.onnx" } else { d.domain }).collect();
        domains.sort();
        domains.dedup();
        OpError::Unknown(format!(
            "operator {} is of domain {domain}, which is not known; known are {}",
            op.name,
            domains.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::NEWEST_OPSET;

    #[test]
    fn every_declaration_is_well_formed() {
        let mut seen = std::collections::HashSet::new();
        for d in declarations() {
            assert!(seen.insert((d.domain, d.name)), "{} is declared twice", d.name);
            let signature =
                Signature::parse(d.signature, d.types).unwrap_or_else(|e| panic!("{}: {e}", d.name));
            assert!(!d.since.is_empty() && d.since.is_sorted(), "{}: since", d.name);
            assert!(
                d.since.iter().all(|&v| v >= 1 && (!d.domain.is_empty() || v <= NEWEST_OPSET)),
                "{}",
                d.name
            );
            assert!(
                d.shape_inputs.iter().all(|&i| Signature::parameter(&signature.inputs, i).is_some()),
                "{}",
                d.name
            );
        }
    }
}
