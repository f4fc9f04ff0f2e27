//! Runs the standard's node cases below the folder that RUKH_ONNX_DATA names (each a `model.onnx` with
//! `test_data_set_0/{input,output}_N.pb`); RUKH_CASES selects by a part of the name. Only tensors.

use std::path::Path;
use std::sync::Arc;

use super::{Environment, Log, RunOptions, Session, SessionOptions, Source};
use crate::tensor::{C64, C128, ElementType, Tensor, Value, bf16, f16};

#[test]
fn node_cases() {
    let Ok(folder) = std::env::var("RUKH_ONNX_DATA") else {
        println!("skipped: RUKH_ONNX_DATA is not set");
        return;
    };
    let filter = std::env::var("RUKH_CASES").unwrap_or_default();
    let environment = Arc::new(Environment::new(2, Log::default()));
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    let (mut passed, mut failed) = (0, 0);
    std::panic::set_hook(Box::new(|_| {}));
    for path in names {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !filter.split(',').any(|f| name.contains(f)) {
            continue;
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(&path, &environment)))
            .unwrap_or_else(|p| {
                Err(format!(
                    "PANIC {:?}",
                    p.downcast_ref::<String>().cloned().or(p.downcast_ref::<&str>().map(|s| s.to_string()))
                ))
            });
        match result {
            Ok(()) => passed += 1,
            Err(reason) => {
                failed += 1;
                println!("FAILED {name}: {}", reason.chars().take(300).collect::<String>());
            }
        }
    }
    println!("{passed} passed, {failed} failed");
}

fn case(path: &Path, environment: &Arc<Environment>) -> Result<(), String> {
    let session = Session::open(
        environment.clone(),
        Source::Path(&path.join("model.onnx")),
        &SessionOptions::default(),
    )
    .map_err(|e| e.to_string())?;
    let set = path.join("test_data_set_0");
    let read = |kind: &str, i: usize| -> Result<Option<Tensor>, String> {
        let Ok(bytes) = std::fs::read(set.join(format!("{kind}_{i}.pb"))) else { return Ok(None) };
        crate::model::read_tensor(&bytes).map(Some).map_err(|e| e.to_string())
    };
    let mut inputs = Vec::new();
    for i in 0..session.inputs().len() {
        if let Some(t) = read("input", i)? {
            inputs.push((i, Value::Tensor(t)));
        }
    }
    let wanted: Vec<usize> = (0..session.outputs().len()).collect();
    let outputs = session.run(&RunOptions::default(), &inputs, &wanted).map_err(|e| e.to_string())?;
    for (i, output) in outputs.iter().enumerate() {
        let Some(want) = read("output", i)? else { continue };
        let Value::Tensor(got) = output else { return Err("not a tensor".into()) };
        compare(i, got, &want.aligned().map_err(|e| e.to_string())?)?;
    }
    Ok(())
}

fn compare(i: usize, got: &Tensor, want: &Tensor) -> Result<(), String> {
    if got.ty() != want.ty() || got.shape() != want.shape() {
        return Err(format!(
            "output {i} is {}{:?}, want {}{:?}",
            got.ty(),
            got.shape(),
            want.ty(),
            want.shape()
        ));
    }
    if got.ty() == ElementType::String {
        return if got.strings() == want.strings() {
            Ok(())
        } else {
            Err(format!("output {i}: strings differ: {:?} want {:?}", got.strings(), want.strings()))
        };
    }
    let (g, w) = (floats(got), floats(want));
    for (k, (&a, &b)) in g.iter().zip(&w).enumerate() {
        let fine = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-7 + 1e-3 * b.abs();
        if !fine {
            return Err(format!("output {i} at {k}: {a}, want {b}"));
        }
    }
    Ok(())
}

fn floats(t: &Tensor) -> Vec<f64> {
    let v = t.view();
    match t.ty() {
        ElementType::F32 => v.slice::<f32>().iter().map(|&x| x as f64).collect(),
        ElementType::F64 => v.slice::<f64>().to_vec(),
        ElementType::F16 => v.slice::<f16>().iter().map(|x| x.to_f64()).collect(),
        ElementType::BF16 => v.slice::<bf16>().iter().map(|x| x.to_f64()).collect(),
        ElementType::I64 => v.slice::<i64>().iter().map(|&x| x as f64).collect(),
        ElementType::I32 => v.slice::<i32>().iter().map(|&x| x as f64).collect(),
        ElementType::C64 => v.slice::<C64>().iter().flat_map(|x| [x.re as f64, x.im as f64]).collect(),
        ElementType::C128 => v.slice::<C128>().iter().flat_map(|x| [x.re, x.im]).collect(),
        _ => v.bytes().iter().map(|&b| b as f64).collect(),
    }
}
