//! `rukh compile`.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::api::{Artifact, Environment, compile as compile_model};
use crate::arguments::CompileArguments;
use crate::targets::resolve;
use crate::text;

pub fn compile(arguments: &CompileArguments) -> Result<ExitCode, String> {
    let model = &arguments.model;
    let out = match &arguments.output {
        Some(path) => path.clone(),
        None => model.path.with_extension("rukh"),
    };
    let environment = Environment::new(model.threads, model.verbose)?;
    let settings = [
        ("targets", targets(&arguments.targets)?.join(",")),
        ("weights", arguments.weights.clone()),
        ("shapes", arguments.shapes.join(";")),
        ("tuning_files", tuning_files(&arguments.tuning)?),
    ];
    let told = |step: &str, done: u64, total: u64| eprintln!("[{}/{total}] {step}", done + 1);
    compile_model(&environment, &model.path, &model.session_options(), &settings, &out, &told)?;
    let artifact = Artifact::open(&environment, &out)?;
    let info: serde_json::Value =
        serde_json::from_str(&artifact.info()?).map_err(|e| format!("the library's answer: {e}"))?;
    let names: Vec<&str> =
        info["targets"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_str).collect();
    let size = std::fs::metadata(&out).map_or(0, |file| file.len());
    println!("{}: {} for {}", out.display(), text::bytes(size), names.join(", "));
    Ok(ExitCode::SUCCESS)
}

/// The names as the library takes them.
fn tuning_files(files: &[PathBuf]) -> Result<String, String> {
    let name = |file: &PathBuf| match file.to_str().filter(|name| !name.contains(';')) {
        Some(name) => Ok(name.to_owned()),
        None => Err(format!(
            "--tuning {}: the name must be UTF-8 without a semicolon, which stands between names in the option; rename \
             the file",
            file.display()
        )),
    };
    Ok(files.iter().map(name).collect::<Result<Vec<_>, _>>()?.join(";"))
}

/// The library's names for targets that may also be products, families or code names.
fn targets(names: &[String]) -> Result<Vec<String>, String> {
    let mut found: Vec<String> = Vec::new();
    for name in names.iter().flat_map(|list| list.split(',')).map(str::trim).filter(|name| !name.is_empty()) {
        let targets = match name {
            "cpu" | "native" | "all" => vec![name.to_owned()],
            _ => resolve(name)?.iter().map(|target| target.name.to_owned()).collect(),
        };
        found.extend(targets.into_iter().filter(|target| !found.contains(target)).collect::<Vec<_>>());
    }
    Ok(found)
}
