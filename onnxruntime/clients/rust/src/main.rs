//! Runs cases with the crate ort: client-ort CASES [cpu|rocm|migraphx] [LIBRARY-OF-OPERATORS]

mod case;

use std::path::Path;

use ort::environment::Environment;
use ort::ep::{ExecutionProviderDispatch, MIGraphX, ROCm};
use ort::session::{IoBinding, RunOptions, Session};
use ort::value::DynValue;

use case::{Case, Named};

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
    let case = Case::read(folder)?;
    let path = folder.join("model.onnx");
    let open = || -> Result<_> {
        let mut builder = Session::builder(environment)?.with_execution_providers(providers(provider)?)?;
        if case.strict && provider != "cpu" {
            builder = builder.with_disable_cpu_fallback()?;
        }
        Ok(match operators {
            Some(path) => builder.with_operator_library(path)?,
            None => builder,
        })
    };
    let mut sessions =
        [open()?.commit_from_file(&path)?, open()?.commit_from_memory(&std::fs::read(&path)?)?];
    for session in &mut sessions {
        let described: Vec<&str> = session.outputs().iter().map(|output| output.name()).collect();
        let expected: Vec<&str> = case.outputs.iter().map(|output| output.name.as_str()).collect();
        if described != expected {
            return Err(format!("outputs are {described:?}, expected {expected:?}").into());
        }
        for _ in 0..2 {
            let found = session.run(inputs(&case)?)?;
            for wanted in &case.outputs {
                wanted.compare(&found[wanted.name.as_str()])?;
            }
        }
        bound(session, &case)?;
    }
    Ok(())
}

/// The same with an io binding, twice.
fn bound(session: &mut Session, case: &Case) -> Result<()> {
    let mut binding: IoBinding = session.create_binding()?;
    for (name, value) in inputs(case)? {
        binding.bind_input(&name, &value)?;
    }
    for wanted in &case.outputs {
        binding.bind_output_to_device(&wanted.name, session.allocator().memory_info())?;
    }
    for _ in 0..2 {
        let found = session.run_binding_with_options(&binding, &RunOptions::new()?)?;
        for wanted in &case.outputs {
            wanted.compare(&found[wanted.name.as_str()])?;
        }
    }
    Ok(())
}

fn inputs(case: &Case) -> Result<Vec<(String, DynValue)>> {
    case.inputs.iter().map(|Named { name, tensor, .. }| Ok((name.clone(), tensor.value()?))).collect()
}
