//! Whether a configuration fits its model.

use rukh_client::Port;

use super::complete::type_of;
use super::{Config, Tensor};
use crate::error::{Result, fail};

/// Names everything that does not fit by its first case.
pub(crate) fn check(config: &Config, inputs: &[Port], outputs: &[Port]) -> Result<()> {
    for tensor in &config.inputs {
        fits(config, tensor, "input", inputs)?;
    }
    for tensor in &config.outputs {
        fits(config, tensor, "output", outputs)?;
    }
    for (input, output) in &config.states {
        fits(config, input, "input", inputs)?;
        fits(config, output, "output", outputs)?;
    }
    for control in &config.controls {
        find(control, "input", inputs)?;
    }
    for port in inputs {
        let given = config.inputs.iter().find(|tensor| tensor.name == port.name);
        if given.is_none() && !config.is_servers_input(&port.name) {
            fail!(
                TRITONSERVER_ERROR_INVALID_ARG,
                "the model needs the input \"{}\", which the configuration does not have; add it, or leave all inputs out to have them taken from the model",
                port.name
            );
        }
        if given.is_some_and(|tensor| tensor.optional) {
            fail!(
                TRITONSERVER_ERROR_INVALID_ARG,
                "input \"{}\" is optional in the configuration, but the model needs it; leave `optional` out",
                port.name
            );
        }
    }
    if config.outputs.is_empty() {
        fail!(TRITONSERVER_ERROR_INVALID_ARG, "the configuration has no outputs; add at least one");
    }
    Ok(())
}

fn fits(config: &Config, tensor: &Tensor, kind: &str, ports: &[Port]) -> Result<()> {
    let name = &tensor.name;
    let port = find(name, kind, ports)?;
    let data_type = type_of(port, kind)?;
    if tensor.data_type != data_type {
        fail!(
            TRITONSERVER_ERROR_INVALID_ARG,
            "{kind} \"{name}\": the configuration says {}, and the model has {data_type}",
            if tensor.data_type.is_empty() { "no type" } else { &tensor.data_type }
        );
    }
    let Some(shape) = &port.shape else {
        return Ok(());
    };
    let rest = if config.max_batch_size == 0 {
        &shape[..]
    } else {
        match shape.split_first() {
            Some((-1, rest)) => rest,
            Some((first, _)) => fail!(
                TRITONSERVER_ERROR_INVALID_ARG,
                "{kind} \"{name}\": max_batch_size is {}, but the model's first dimension is always {first}; set max_batch_size to 0 and give all dimensions",
                config.max_batch_size
            ),
            None => fail!(
                TRITONSERVER_ERROR_INVALID_ARG,
                "{kind} \"{name}\": max_batch_size is {}, but the model has a scalar there, which has no dimension for batches; set max_batch_size to 0",
                config.max_batch_size
            ),
        }
    };
    // Triton has no scalars without batches: what has one element stands for them.
    let scalar = config.max_batch_size == 0 && shape.is_empty() && tensor.dims == [1];
    let agree = scalar
        || rest.len() == tensor.dims.len()
            && rest.iter().zip(&tensor.dims).all(|(model, given)| *model == -1 || model == given);
    if !agree {
        let batch = if config.max_batch_size == 0 {
            "with max_batch_size 0, dims are all of the model's"
        } else {
            "with max_batch_size above 0, dims are without the model's first one"
        };
        fail!(
            TRITONSERVER_ERROR_INVALID_ARG,
            "{kind} \"{name}\": the configuration has dims {:?}, and the model {rest:?} ({batch}; -1 stands for any size)",
            tensor.dims
        );
    }
    Ok(())
}

fn find<'a>(name: &str, kind: &str, ports: &'a [Port]) -> Result<&'a Port> {
    match ports.iter().find(|port| port.name == name) {
        Some(port) => Ok(port),
        None => {
            let names: Vec<&str> = ports.iter().map(|port| &*port.name).collect();
            fail!(
                TRITONSERVER_ERROR_INVALID_ARG,
                "the configuration has the {kind} \"{name}\", which the model does not have; it has {}",
                names.join(", ")
            )
        }
    }
}
