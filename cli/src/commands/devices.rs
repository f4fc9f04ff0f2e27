//! `rukh devices`.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::api::{self, Device, Environment};
use crate::arguments::DevicesArguments;
use crate::text;

/// Properties that stand in the first line, or among the rows of the runtime.
const TOLD_ELSEWHERE: [&str; 2] = ["target", "runtime"];

pub fn devices(arguments: &DevicesArguments) -> Result<ExitCode, String> {
    let devices = Environment::new(1, false)?.devices()?;
    let facts: Value =
        serde_json::from_str(&api::report()?).map_err(|e| format!("the library's report: {e}"))?;
    let runtimes = facts["runtimes"].as_array().map(Vec::as_slice).unwrap_or_default();
    if arguments.json {
        let of_platform = |device: &Device| {
            runtimes.iter().find(|runtime| runtime["platform"].as_str() == device.property("platform"))
        };
        let each = devices.iter().map(|device| {
            let mut object = to_json(device);
            if let Some(runtime) = of_platform(device) {
                object["tried"] = runtime["tried"].clone();
            }
            object
        });
        let missing = runtimes.iter().filter(|runtime| is_missing(runtime)).map(|runtime| {
            json!({
                "provider": "hip",
                "platform": runtime["platform"],
                "reason": runtime["reason"],
                "tried": runtime["tried"],
            })
        });
        println!("{:#}", each.chain(missing).collect::<Value>());
        return Ok(ExitCode::SUCCESS);
    }
    for device in &devices {
        print!("{}", describe(device));
    }
    for runtime in runtimes {
        print!("{}", describe_runtime(runtime));
    }
    Ok(ExitCode::SUCCESS)
}

/// A line with the device's name, then a row a fact.
pub(super) fn describe(device: &Device) -> String {
    let mut rows = Vec::new();
    if device.memory > 0 {
        rows.push(vec!["memory".to_owned(), text::bytes(device.memory)]);
    }
    let properties = device.properties.iter().filter(|(key, _)| !TOLD_ELSEWHERE.contains(&key.as_str()));
    rows.extend(properties.map(|(key, value)| vec![key.replace('_', " "), value.clone()]));
    let target = device.property("target").unwrap_or(&device.arch);
    format!("{}: {} ({target})\n{}", device.provider, device.name, text::table(&rows, &[]))
}

/// Which file a platform's runtime was opened from, or why there is none; then each file that was not taken.
fn describe_runtime(runtime: &Value) -> String {
    let string = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut text = format!("runtime of {}: ", string(&runtime["platform"]));
    let tried = runtime["tried"].as_array().map(Vec::as_slice).unwrap_or_default();
    text.push_str(&match (is_missing(runtime), tried) {
        (false, _) => format!("{}, version {}", string(&runtime["file"]), string(&runtime["version"])),
        (true, []) => string(&runtime["reason"]),
        // The reason has the same list in one line.
        (true, _) => string(&runtime["reason"]).split("; tried ").next().unwrap_or_default().to_owned(),
    });
    text.push('\n');
    let rows: Vec<_> = tried
        .iter()
        .map(|file| vec!["not taken".to_owned(), string(&file["path"]), string(&file["reason"])])
        .collect();
    text.push_str(&text::table(&rows, &[]));
    text
}

fn is_missing(runtime: &Value) -> bool {
    runtime["file"].is_null()
}

pub(super) fn to_json(device: &Device) -> Value {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_tell_what_was_not_taken() {
        let tried = json!([{"path": "a.so.7", "reason": "no such file"}]);
        let there = json!({"platform": "amd", "file": "/lib/a.so.6", "version": "6.2", "tried": tried});
        assert_eq!(
            describe_runtime(&there),
            "runtime of amd: /lib/a.so.6, version 6.2\n  not taken a.so.7 no such file\n"
        );
        let reason = "no runtime found; tried a.so.7 (no such file)";
        let missing = json!({"platform": "amd", "reason": reason, "tried": tried});
        assert_eq!(
            describe_runtime(&missing),
            "runtime of amd: no runtime found\n  not taken a.so.7 no such file\n"
        );
        let blind = json!({"platform": "amd", "reason": "runtime 6.2 found (a), no AMD GPU", "tried": []});
        assert_eq!(describe_runtime(&blind), "runtime of amd: runtime 6.2 found (a), no AMD GPU\n");
    }
}
