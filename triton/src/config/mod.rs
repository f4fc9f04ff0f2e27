//! A model's configuration (config.pbtxt), as the server hands it over in JSON.

mod check;
mod complete;
pub(crate) mod types;

#[cfg(test)]
mod tests;

use serde_json::Value as Json;

use crate::error::{Result, fail};

pub(crate) use check::check;
pub(crate) use complete::complete;

/// What the backend needs to know of a configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    /// 0 for a model without batches.
    pub(crate) max_batch_size: i64,
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) outputs: Vec<Tensor>,
    /// Inputs that the server adds to requests of a sequence.
    pub(crate) controls: Vec<String>,
    /// What the server keeps of a sequence, as an input and as the output that it is next.
    pub(crate) states: Vec<(Tensor, Tensor)>,
    pub(crate) file: String,
    pub(crate) parameters: Vec<(String, String)>,
    /// The kind of the first instance group and its first device, where there is one.
    pub(crate) first_group: Option<(String, i64)>,
}

/// An input or output.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) data_type: String,
    /// As the model sees them, without the dimension of batches: those of `reshape` where there is one.
    pub(crate) dims: Vec<i64>,
    pub(crate) optional: bool,
}

impl Config {
    /// Whether the server fills the input by itself.
    pub(crate) fn is_servers_input(&self, name: &str) -> bool {
        self.controls.iter().any(|control| control == name)
            || self.states.iter().any(|(input, _)| input.name == name)
    }

    pub(crate) fn read(json: &Json) -> Result<Config> {
        refuse_what_is_not_there(json)?;
        let file = text(&json["default_model_filename"]);
        let parameters = json["parameters"].as_object().into_iter().flatten();
        let parameters = parameters.map(|(key, value)| (key.clone(), text(&value["string_value"])));
        let controls = &json["sequence_batching"]["control_input"];
        let group = json["instance_group"].get(0);
        Ok(Config {
            max_batch_size: integer(&json["max_batch_size"]).unwrap_or(0),
            inputs: list(&json["input"]).iter().map(tensor).collect(),
            outputs: list(&json["output"]).iter().map(tensor).collect(),
            controls: list(controls).iter().map(|control| text(&control["name"])).collect(),
            states: list(&json["sequence_batching"]["state"]).iter().map(state).collect(),
            file: if file.is_empty() { "model.onnx".into() } else { file },
            parameters: parameters.collect(),
            first_group: group.map(|group| (text(&group["kind"]), integer(&group["gpus"][0]).unwrap_or(0))),
        })
    }
}

fn tensor(json: &Json) -> Tensor {
    let shape = json["reshape"].get("shape").unwrap_or(&json["dims"]);
    let reshaped = json["reshape"].is_object();
    let dims = if reshaped { list(shape) } else { list(&json["dims"]) };
    Tensor {
        name: text(&json["name"]),
        data_type: text(&json["data_type"]),
        dims: dims.iter().filter_map(integer).collect(),
        optional: json["optional"].as_bool().unwrap_or(false),
    }
}

fn state(json: &Json) -> (Tensor, Tensor) {
    let named = |key: &str| Tensor { name: text(&json[key]), ..tensor(json) };
    (named("input_name"), named("output_name"))
}

fn refuse_what_is_not_there(json: &Json) -> Result<()> {
    for tensor in list(&json["input"]).iter().chain(list(&json["output"])) {
        let name = text(&tensor["name"]);
        for (key, instead) in [
            (
                "is_shape_tensor",
                "shape tensors are TensorRT's; leave the field out, an ONNX model takes shapes as plain tensors",
            ),
            (
                "allow_ragged_batch",
                "requests are gathered along the first dimension alone; leave the field out",
            ),
            ("is_non_linear_format_io", "tensors are row-major; leave the field out"),
        ] {
            if tensor[key].as_bool() == Some(true) {
                fail!(TRITONSERVER_ERROR_UNSUPPORTED, "\"{name}\": {key} is not supported: {instead}");
            }
        }
    }
    for (key, instead) in [
        ("batch_input", "give the model what it needs as inputs"),
        ("batch_output", "the model's outputs are split along the first dimension"),
    ] {
        if !list(&json[key]).is_empty() {
            fail!(TRITONSERVER_ERROR_UNSUPPORTED, "{key} is not supported: {instead}");
        }
    }
    if json["model_transaction_policy"]["decoupled"].as_bool() == Some(true) {
        fail!(
            TRITONSERVER_ERROR_UNSUPPORTED,
            "model_transaction_policy.decoupled is not supported: each request has one response"
        );
    }
    let accelerators = &json["optimization"]["execution_accelerators"];
    for key in ["gpu_execution_accelerator", "cpu_execution_accelerator"] {
        if let Some(first) = accelerators[key].get(0) {
            fail!(
                TRITONSERVER_ERROR_UNSUPPORTED,
                "optimization.execution_accelerators.{key} names \"{}\", which rukh does not have; leave the field out and choose the provider by the instance group or the parameter \"provider\"",
                text(&first["name"])
            );
        }
    }
    Ok(())
}

/// "" for what is no text.
fn text(json: &Json) -> String {
    json.as_str().unwrap_or_default().to_owned()
}

/// The server writes integers of 64 bits as numbers or as texts.
fn integer(json: &Json) -> Option<i64> {
    json.as_i64().or_else(|| json.as_str()?.parse().ok())
}

fn list(json: &Json) -> &[Json] {
    json.as_array().map(Vec::as_slice).unwrap_or_default()
}
