//! `rukh targets`.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::api;
use crate::arguments::TargetsArguments;
use crate::targets::{TARGETS, Target, resolve};
use crate::text;

pub fn targets(arguments: &TargetsArguments) -> Result<ExitCode, String> {
    let facts: Value =
        serde_json::from_str(&api::report()?).map_err(|e| format!("the library's report: {e}"))?;
    let built: Vec<String> =
        facts["kernel_targets"].as_array().into_iter().flatten().filter_map(owned).collect();
    let mut chosen: Vec<&Target> = Vec::new();
    for name in &arguments.names {
        for target in resolve(name)? {
            if !chosen.iter().any(|c| c.name == target.name) {
                chosen.push(target);
            }
        }
    }
    if arguments.names.is_empty() {
        chosen.extend(&TARGETS);
    }
    if arguments.json {
        println!("{:#}", json!(chosen.iter().map(|t| to_json(t, &built)).collect::<Vec<_>>()));
    } else {
        let heads = ["target", "family", "code names", "kernels", "products"].map(str::to_owned).to_vec();
        let rows = chosen.iter().map(|t| {
            let (chips, products) = (t.chips.join(" "), t.products.join(" "));
            vec![
                t.name.into(),
                t.family.into(),
                chips,
                t.kernels(&built).unwrap_or("none").to_owned(),
                products,
            ]
        });
        print!("{}", text::table(&[heads].into_iter().chain(rows).collect::<Vec<_>>(), &[]));
    }
    Ok(ExitCode::SUCCESS)
}

fn owned(name: &Value) -> Option<String> {
    name.as_str().map(str::to_owned)
}

fn to_json(target: &Target, built: &[String]) -> Value {
    json!({
        "name": target.name,
        "family": target.family,
        "code_names": target.chips,
        "products": target.products,
        "kernels": target.kernels(built),
    })
}
