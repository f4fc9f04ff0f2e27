//! `rukh devices`.

use std::process::ExitCode;

use serde_json::json;

use crate::api::{Device, Environment};
use crate::arguments::DevicesArguments;
use crate::text;

pub fn devices(arguments: &DevicesArguments) -> Result<ExitCode, String> {
    let environment = Environment::new(1, false)?;
    let devices = environment.devices()?;
    if arguments.json {
        let list: Vec<_> = devices.iter().map(to_json).collect();
        println!("{:#}", json!(list));
        return Ok(ExitCode::SUCCESS);
    }
    for device in &devices {
        print!("{}", describe(device));
    }
    for (provider, reason) in environment.providers()? {
        if !reason.is_empty() {
            println!("{provider}: none here: {reason}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A line with the device's name, then a row a fact.
pub(super) fn describe(device: &Device) -> String {
    let mut rows = Vec::new();
    if device.memory > 0 {
        rows.push(vec!["memory".to_owned(), text::bytes(device.memory)]);
    }
    rows.extend(device.properties.iter().map(|(key, value)| vec![key.replace('_', " "), value.clone()]));
    format!("{}: {} ({})\n{}", device.provider, device.name, device.arch, text::table(&rows, &[]))
}

pub(super) fn to_json(device: &Device) -> serde_json::Value {
    let properties: serde_json::Map<_, _> =
        device.properties.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    json!({
        "provider": device.provider,
        "name": device.name,
        "arch": device.arch,
        "memory_bytes": device.memory,
        "properties": properties,
    })
}
