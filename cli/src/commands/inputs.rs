//! The inputs that the command line asks for.

use std::collections::BTreeMap;

use crate::arguments::InputArguments;
use crate::data::{Port, Value, generate, read_input};

/// Reads the files given and makes up the rest, when `fill` or `--generate` says so; but for those inputs that runs take
/// from elsewhere.
pub fn gather(
    arguments: &InputArguments,
    ports: &[Port],
    dims: &BTreeMap<String, usize>,
    fill: bool,
    elsewhere: &[String],
) -> Result<Vec<(String, Value)>, String> {
    let mut inputs: Vec<(String, Value)> = Vec::new();
    let mut position = 0;
    for argument in &arguments.files {
        for (name, value) in read_input(argument, ports, dims, &mut position)? {
            if inputs.iter().any(|(n, _)| *n == name) {
                return Err(format!("input \"{name}\" is given twice"));
            }
            inputs.push((name, value));
        }
    }
    for (i, port) in ports.iter().enumerate() {
        if inputs.iter().any(|(name, _)| *name == port.name) || elsewhere.contains(&port.name) {
            continue;
        }
        if !(fill || arguments.generate) {
            return Err(format!(
                "input \"{}\" ({}) is not given; give it with --input {}=FILE or a value, or have it made up with --generate",
                port.name,
                port.describe(),
                port.name
            ));
        }
        let seed = arguments.seed.wrapping_add((i as u64) << 32);
        inputs.push((port.name.clone(), generate(port, dims, seed)?));
    }
    Ok(inputs)
}
