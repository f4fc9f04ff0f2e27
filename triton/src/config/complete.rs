//! What a configuration leaves out is taken from the model.

use rukh_client::{Kind, Port};
use serde_json::{Value as Json, json};

use super::{Config, list, text, types};
use crate::error::{Result, fail};

/// Fills in inputs, outputs, `max_batch_size` and `dynamic_batching`. `default_batch` is the `max_batch_size` of models
/// whose first dimension is open everywhere. Says whether anything changed.
pub(crate) fn complete(
    json: &mut Json,
    inputs: &[Port],
    outputs: &[Port],
    default_batch: i64,
) -> Result<bool> {
    let config = Config::read(json)?;
    let before = json.clone();
    let batches = config.max_batch_size > 0
        || (default_batch > 0
            && has_batches(inputs, outputs)
            && given_without_batch(&config, inputs, outputs));
    if config.max_batch_size == 0 && batches {
        json["max_batch_size"] = default_batch.into();
    }
    for (key, kind, ports) in [("input", "input", inputs), ("output", "output", outputs)] {
        if list(&json[key]).is_empty() {
            json[key] = ports
                .iter()
                .filter(|port| kind == "input" || port.kind == Kind::Tensor)
                .filter(|port| !config.is_servers_input(&port.name))
                .filter(|port| {
                    kind == "input" || config.states.iter().all(|(_, state)| state.name != port.name)
                })
                .map(|port| whole(port, kind, batches))
                .collect::<Result<Vec<_>>>()?
                .into();
        } else if let Some(tensors) = json[key].as_array_mut() {
            for tensor in tensors {
                fill(tensor, kind, ports, batches)?;
            }
        }
    }
    let scheduled = ["dynamic_batching", "sequence_batching", "ensemble_scheduling"];
    let batch = super::integer(&json["max_batch_size"]).unwrap_or(0);
    if config.max_batch_size == 0 && batch > 1 && scheduled.iter().all(|key| json[*key].is_null()) {
        json["dynamic_batching"] = json!({});
    }
    Ok(*json != before)
}

/// Whether the first dimension of all is open, and one and the same by its name.
fn has_batches(inputs: &[Port], outputs: &[Port]) -> bool {
    let mut name = "";
    let mut all = inputs.iter().chain(outputs).filter(|port| port.kind == Kind::Tensor);
    let open = all.all(|port| {
        if port.dims().first() != Some(&-1) {
            return false;
        }
        let own = port.names.first().map_or("", String::as_str);
        if name.is_empty() {
            name = own;
        }
        own.is_empty() || own == name
    });
    open && !inputs.is_empty()
}

/// Whether the dimensions that were given, if any, are those without the first one.
fn given_without_batch(config: &Config, inputs: &[Port], outputs: &[Port]) -> bool {
    let given = config.inputs.iter().map(|tensor| (tensor, inputs));
    let given = given.chain(config.outputs.iter().map(|tensor| (tensor, outputs)));
    given.filter(|(tensor, _)| !tensor.dims.is_empty()).all(|(tensor, ports)| {
        let port = ports.iter().find(|port| port.name == tensor.name);
        port.is_none_or(|port| tensor.dims.len() + 1 == port.dims().len())
    })
}

fn whole(port: &Port, kind: &str, batches: bool) -> Result<Json> {
    let mut tensor = json!({ "name": port.name });
    fill(&mut tensor, kind, std::slice::from_ref(port), batches)?;
    Ok(tensor)
}

/// Fills in type and dimensions of one input or output, where they are not given and the model has it.
fn fill(tensor: &mut Json, kind: &str, ports: &[Port], batches: bool) -> Result<()> {
    let name = text(&tensor["name"]);
    let Some(port) = ports.iter().find(|port| port.name == name) else {
        return Ok(());
    };
    let data_type = text(&tensor["data_type"]);
    if data_type.is_empty() || data_type == "TYPE_INVALID" {
        tensor["data_type"] = type_of(port, kind)?.into();
    }
    if list(&tensor["dims"]).is_empty() {
        let Some(shape) = &port.shape else {
            fail!(
                TRITONSERVER_ERROR_INVALID_ARG,
                "the model does not say how many dimensions {kind} \"{name}\" has; give its dims in config.pbtxt"
            );
        };
        let dims = if batches { shape.get(1..).unwrap_or_default() } else { shape };
        if dims.is_empty() {
            // Triton wants at least one dimension. With batches it takes it away again by itself.
            tensor["dims"] = json!([1]);
            if batches {
                tensor["reshape"] = json!({ "shape": [] });
            }
        } else {
            tensor["dims"] = dims.into();
        }
    }
    Ok(())
}

/// Triton's name of a port's type.
pub(super) fn type_of(port: &Port, kind: &str) -> Result<&'static str> {
    let what = match port.kind {
        Kind::Tensor => match port.element {
            Some(element) => match types::name_of(element) {
                Some(name) => return Ok(name),
                None => format!("a tensor of {}", element.name()),
            },
            None => "a tensor of a type that the model does not say".into(),
        },
        Kind::Sequence => "a sequence".into(),
        Kind::Map => "a map".into(),
        Kind::Optional => "an optional".into(),
        Kind::Undefined => "of a kind that the model does not say".into(),
    };
    fail!(
        TRITONSERVER_ERROR_UNSUPPORTED,
        "{kind} \"{}\" is {what}, which Triton cannot exchange; it has tensors of bool, integers of 8 to 64 bits, fp16, bf16, fp32, fp64 and strings",
        port.name
    )
}
