//! Inputs from files, outputs into files.
//!
//! A file is known by the end of its name: `.npy`, `.npz`, `.pb`; anything else is raw little-endian
//! elements of the type and shape that the model declares. A folder holds `input_0.pb`, `input_1.pb`,
//! … and `output_0.pb`, … as in ONNX's own test data. An `.npz` may hold a whole sample, with arrays
//! named `in:NAME` and `out:NAME`.

use std::collections::BTreeMap;
use std::path::Path;

use super::{
    Kind, Port, Tensor, Value, parse_literal, read_npy, read_npz, read_protobuf, write_npy, write_npz,
};

/// Reads what `argument` says: a file or a value, either with `NAME=` before it or without; gives values with
/// the names of inputs. Values and files after "@" that have no name go by their place among those, `position`,
/// which is counted up.
pub fn read_input(
    argument: &str,
    ports: &[Port],
    dims: &BTreeMap<String, usize>,
    position: &mut usize,
) -> Result<Vec<(String, Value)>, String> {
    // A name may itself contain "=": take the longest that the model has.
    let named = ports
        .iter()
        .filter_map(|port| Some((port, argument.strip_prefix(&port.name)?.strip_prefix('=')?)))
        .max_by_key(|(port, _)| port.name.len());
    let known = || ports.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", ");
    if let Some((port, source)) = named {
        return read_source(source, argument, port, dims).map(|v| vec![(port.name.clone(), v)]);
    }
    if Path::new(argument).exists() {
        return read_all(Path::new(argument), ports, dims, "in:", "input_");
    }
    if argument.starts_with('@') || parse_literal(argument).is_some() {
        let port = ports.get(*position).ok_or_else(|| match ports.len() {
            0 => format!("--input {argument}: the model has no inputs"),
            n => format!("--input {argument}: the model has only {n} inputs: {}", known()),
        })?;
        *position += 1;
        return read_source(argument, argument, port, dims).map(|v| vec![(port.name.clone(), v)]);
    }
    match argument.split_once('=') {
        Some((name, _)) => Err(format!("the model has no input \"{name}\"; it has {}", known())),
        None => read_all(Path::new(argument), ports, dims, "in:", "input_"),
    }
}

/// Reads `source` for `port`: `@FILE`, a file that is there, a value, or else a file.
fn read_source(
    source: &str,
    argument: &str,
    port: &Port,
    dims: &BTreeMap<String, usize>,
) -> Result<Value, String> {
    let named = |e: String| format!("--input {argument}: {e}");
    if Path::new(source).exists() {
        return read_one(Path::new(source), port, dims);
    }
    match (source.strip_prefix('@'), parse_literal(source)) {
        (Some(file), _) => read_one(Path::new(file), port, dims),
        (None, Some(literal)) => literal.and_then(|l| l.value(port)).map_err(named),
        (None, None) => read_one(Path::new(source), port, dims),
    }
}

/// Reads expected outputs: an archive, a folder, or one file for a model with one output.
pub fn read_expected(path: &Path, ports: &[Port]) -> Result<Vec<(String, Value)>, String> {
    read_all(path, ports, &BTreeMap::new(), "out:", "output_")
}

/// Writes outputs, into one archive when `path` ends in `.npz`, else as files of a folder.
pub fn save(path: &Path, outputs: &[(String, Value)]) -> Result<(), String> {
    let mut arrays = Vec::new();
    for (name, value) in outputs {
        flatten(name, value, &mut arrays);
    }
    let named = |e: String| format!("{}: {e}", path.display());
    if extension(path) == "npz" {
        return write_npz(path, &arrays).map_err(named);
    }
    std::fs::create_dir_all(path).map_err(|e| named(e.to_string()))?;
    for (name, tensor) in arrays {
        let file = path.join(format!("{}.npy", name.replace(['/', '\\', ':'], "_")));
        std::fs::write(&file, write_npy(tensor)).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(())
}

/// The tensors within a value: items get their number, keys and values of a map their word.
fn flatten<'a>(name: &str, value: &'a Value, arrays: &mut Vec<(String, &'a Tensor)>) {
    match value {
        Value::Tensor(tensor) => arrays.push((name.to_owned(), tensor)),
        Value::Sequence(items) => {
            items.iter().enumerate().for_each(|(i, item)| flatten(&format!("{name}.{i}"), item, arrays));
        }
        Value::Map { keys, values } => {
            arrays.push((format!("{name}.keys"), keys));
            flatten(&format!("{name}.values"), values, arrays);
        }
        Value::Nothing => {}
    }
}

fn read_all(
    path: &Path,
    ports: &[Port],
    dims: &BTreeMap<String, usize>,
    prefix: &str,
    stem: &str,
) -> Result<Vec<(String, Value)>, String> {
    let shown = path.display();
    if path.is_dir() {
        return read_folder(path, ports, stem);
    }
    if extension(path) == "npz" {
        let arrays = read_npz(path).map_err(|e| format!("{shown}: {e}"))?;
        // Arrays of a sample carry a prefix; then those with the other prefix are not meant.
        let sample = arrays.iter().any(|(name, _)| name.starts_with(prefix));
        let named = arrays.into_iter().filter_map(|(name, tensor)| {
            let name = if sample { name.strip_prefix(prefix)?.to_owned() } else { name };
            Some((name, Value::Tensor(tensor)))
        });
        return Ok(named.collect());
    }
    match ports {
        [port] => Ok(vec![(port.name.clone(), read_one(path, port, dims)?)]),
        _ => {
            let known: Vec<&str> = ports.iter().map(|p| p.name.as_str()).collect();
            Err(format!("{shown}: say which it is, as NAME={shown}; the names are {}", known.join(", ")))
        }
    }
}

fn read_folder(path: &Path, ports: &[Port], stem: &str) -> Result<Vec<(String, Value)>, String> {
    let mut values = Vec::new();
    for (i, port) in ports.iter().enumerate() {
        let file = path.join(format!("{stem}{i}.pb"));
        if file.exists() {
            values.push((port.name.clone(), read_one(&file, port, &BTreeMap::new())?));
        }
    }
    match values.is_empty() && !ports.is_empty() {
        true => Err(format!("{}: there is no {stem}0.pb in this folder", path.display())),
        false => Ok(values),
    }
}

fn read_one(path: &Path, port: &Port, dims: &BTreeMap<String, usize>) -> Result<Value, String> {
    let named = |e: String| format!("{}: {e}", path.display());
    let bytes = std::fs::read(path).map_err(|e| named(e.to_string()))?;
    match extension(path) {
        "npy" => read_npy(&bytes).map(Value::Tensor).map_err(named),
        "pb" => read_protobuf(&bytes, port.kind).map_err(named),
        "npz" => Err(named("an archive has names of its own; give it without NAME=".to_owned())),
        _ => {
            let (Kind::Tensor, Some(element)) = (port.kind, port.element) else {
                return Err(named(format!("\"{}\" is not a tensor; give a .pb file", port.name)));
            };
            let dims = port.concrete(dims, None).map_err(named)?;
            Tensor::from_bytes(element, dims, bytes).map(Value::Tensor).map_err(named)
        }
    }
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(|e| e.to_str()).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dim, ElementType};

    fn port(name: &str) -> Port {
        let shape = Some(vec![Dim::Symbol("n".into())]);
        Port { name: name.into(), kind: Kind::Tensor, element: Some(ElementType::INT32), shape }
    }

    fn ints(values: &[i32]) -> Value {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Value::Tensor(Tensor::from_bytes(ElementType::INT32, vec![values.len()], bytes).unwrap())
    }

    #[test]
    fn every_form_of_file_reads() {
        let folder = std::env::temp_dir().join(format!("rukh-files-{}", std::process::id()));
        let outputs = [("x".to_owned(), ints(&[1, 2])), ("y=z".to_owned(), ints(&[3]))];
        save(&folder, &outputs).unwrap();
        let ports = [port("x"), port("y=z")];
        let at = |name: &str| folder.join(name).display().to_string();
        let none = BTreeMap::new();

        let argument = format!("y=z={}", at("y=z.npy"));
        assert_eq!(read_input(&argument, &ports, &none, &mut 0).unwrap(), [outputs[1].clone()]);

        save(&folder.join("both.npz"), &outputs).unwrap();
        assert_eq!(read_input(&at("both.npz"), &ports, &none, &mut 0).unwrap(), outputs);
        let sample = outputs.clone().map(|(name, value)| (format!("in:{name}"), value));
        save(&folder.join("sample.npz"), &sample).unwrap();
        assert_eq!(read_input(&at("sample.npz"), &ports, &none, &mut 0).unwrap(), outputs);

        std::fs::write(folder.join("x.raw"), [1, 0, 0, 0, 2, 0, 0, 0]).unwrap();
        let two = BTreeMap::from([("n".to_owned(), 2)]);
        assert_eq!(
            read_input(&format!("x={}", at("x.raw")), &ports, &two, &mut 0).unwrap(),
            [outputs[0].clone()]
        );
        for (argument, part) in [
            (format!("x={}", at("x.raw")), "--dim n=N"),
            (format!("q={}", at("x.npy")), "no input \"q\"; it has x, y=z"),
            (at("x.npy"), "say which it is"),
            (at("no.npz"), "No such file"),
            (at("."), "no input_0.pb"),
            ("@no.npy".to_owned(), "no.npy: No such file"),
            ("x=@no.npy".to_owned(), "no.npy: No such file"),
            ("x=2xf32=1".to_owned(), "--input x=2xf32=1: the type is f32, but input \"x\" is int32[n]"),
        ] {
            let error = read_input(&argument, &ports, &none, &mut 0).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let mut position = 0;
        let mut next = |argument: &str| read_input(argument, &ports, &none, &mut position);
        assert_eq!(next(&format!("@{}", at("x.npy"))).unwrap(), [outputs[0].clone()]);
        assert_eq!(next("1xi32=3").unwrap(), [outputs[1].clone()]);
        assert!(next("1xi32=3").unwrap_err().contains("only 2 inputs: x, y=z"));
        assert_eq!(next("y=z=1xi32=3").unwrap(), [outputs[1].clone()]);
        assert_eq!(next(&format!("x=@{}", at("x.npy"))).unwrap(), [outputs[0].clone()]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
