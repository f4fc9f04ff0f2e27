//! Runs cases with the crate ort: client-ort CASES [cpu|rocm|migraphx] [LIBRARY-OF-OPERATORS]

use std::path::Path;

use ort::environment::Environment;
use ort::ep::{ExecutionProviderDispatch, MIGraphX, ROCm};
use ort::session::{IoBinding, RunOptions, Session};
use ort::value::{DynValue, Tensor};
use serde_json::Value;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let provider = arguments.get(2).map_or("cpu", String::as_str);
    let environment = ort::init().with_name("client").build()?;
    let mut names: Vec<_> =
        std::fs::read_dir(&arguments[1])?.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
    names.sort();
    let mut failed = 0;
    for folder in &names {
        if let Err(error) = run(&environment, folder, provider, arguments.get(3)) {
            failed += 1;
            eprintln!("{}: {error}", folder.display());
        }
    }
    println!(
        "ort on {}: {}, {provider}: {} passed, {failed} failed",
        ort::info(),
        names.len(),
        names.len() - failed
    );
    std::process::exit(i32::from(failed > 0 || names.is_empty()));
}

fn providers(name: &str) -> Result<Vec<ExecutionProviderDispatch>> {
    Ok(match name {
        "cpu" => Vec::new(),
        "rocm" => vec![ROCm::default().with_device_id(0).build().error_on_failure()],
        "migraphx" => vec![MIGraphX::default().with_device_id(0).build().error_on_failure()],
        _ => return Err(format!("no provider {name}").into()),
    })
}

fn run(environment: &Environment, folder: &Path, provider: &str, operators: Option<&String>) -> Result<()> {
    let case: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("case.json"))?)?;
    let path = folder.join("model.onnx");
    let open = || -> Result<_> {
        let builder = Session::builder(environment)?.with_execution_providers(providers(provider)?)?;
        Ok(match operators {
            Some(path) => builder.with_operator_library(path)?,
            None => builder,
        })
    };
    let mut sessions =
        [open()?.commit_from_file(&path)?, open()?.commit_from_memory(&std::fs::read(&path)?)?];
    let outputs = case["outputs"].as_object().ok_or("no outputs")?;
    for session in &mut sessions {
        let described: Vec<&str> = session.outputs().iter().map(|output| output.name()).collect();
        if described.len() != outputs.len() || !described.iter().all(|name| outputs.contains_key(*name)) {
            return Err(format!("outputs are {described:?}").into());
        }
        for _ in 0..2 {
            let found = session.run(inputs(&case)?)?;
            for (name, wanted) in outputs {
                compare(name, &found[name.as_str()], wanted)?;
            }
        }
        bound(session, &case)?;
    }
    Ok(())
}

/// The same with an io binding, twice.
fn bound(session: &mut Session, case: &Value) -> Result<()> {
    let mut binding: IoBinding = session.create_binding()?;
    for (name, value) in inputs(case)? {
        binding.bind_input(&name, &value)?;
    }
    let outputs = case["outputs"].as_object().ok_or("no outputs")?;
    for name in outputs.keys() {
        binding.bind_output_to_device(name, &session.allocator().memory_info())?;
    }
    for _ in 0..2 {
        let found = session.run_binding_with_options(&binding, &RunOptions::new()?)?;
        for (name, wanted) in outputs {
            compare(name, &found[name.as_str()], wanted)?;
        }
    }
    Ok(())
}

fn inputs(case: &Value) -> Result<Vec<(String, DynValue)>> {
    let inputs = case["inputs"].as_object().ok_or("no inputs")?;
    inputs.iter().map(|(name, value)| Ok((name.clone(), tensor(value)?))).collect()
}

fn list<T>(value: &Value, item: impl Fn(&Value) -> Option<T>) -> Result<Vec<T>> {
    let items = value.as_array().ok_or("no list")?;
    items.iter().map(|one| item(one).ok_or_else(|| format!("{one} is of another type").into())).collect()
}

fn tensor(value: &Value) -> Result<DynValue> {
    let dims = list(&value["dims"], Value::as_i64)?;
    let data = &value["data"];
    Ok(match value["type"].as_str() {
        Some("float32") => {
            Tensor::from_array((dims, list(data, |n| n.as_f64().map(|n| n as f32))?))?.into_dyn()
        }
        Some("int64") => Tensor::from_array((dims, list(data, Value::as_i64)?))?.into_dyn(),
        Some("string") => {
            let texts = list(data, |text| text.as_str().map(str::to_owned))?;
            Tensor::from_string_array((dims, texts.as_slice()))?.into_dyn()
        }
        other => return Err(format!("no type {other:?}").into()),
    })
}

fn compare(name: &str, found: &DynValue, wanted: &Value) -> Result<()> {
    let dims = list(&wanted["dims"], Value::as_i64)?;
    let data = &wanted["data"];
    let (shape, same) = match wanted["type"].as_str() {
        Some("float32") => {
            let (shape, values) = found.try_extract_tensor::<f32>()?;
            let expected = list(data, Value::as_f64)?;
            let near = |(value, wanted): (&f32, &f64)| {
                (f64::from(*value) - wanted).abs() <= 1e-4 * (1.0 + wanted.abs())
            };
            (shape.to_vec(), values.len() == expected.len() && values.iter().zip(&expected).all(near))
        }
        Some("int64") => {
            let (shape, values) = found.try_extract_tensor::<i64>()?;
            (shape.to_vec(), values == list(data, Value::as_i64)?)
        }
        _ => {
            let (shape, values) = found.try_extract_strings()?;
            (shape.to_vec(), values == list(data, |text| text.as_str().map(str::to_owned))?)
        }
    };
    if shape != dims || !same {
        Err(format!("{name} differs: {found:?}, expected {wanted}").into())
    } else {
        Ok(())
    }
}
