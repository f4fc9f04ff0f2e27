//! The header include/rukh/rukh.h, the description abi/rukh-api.json and the declarations sys/src/lib.rs are what
//! src/capi says. `RUKH_UPDATE=1 cargo test --test header` writes them anew.

mod api;
mod attributes;
mod declarations;
mod description;
mod sections;
mod table;

use std::collections::HashSet;
use std::path::Path;

/// The files with exported items, in the order in which they appear in the header.
const SOURCES: &[&str] = &[
    "types",
    "version",
    "api",
    "error",
    "environment",
    "log",
    "parallel",
    "devices",
    "report",
    "memory",
    "fourier",
    "session_options",
    "session_providers",
    "session",
    "weights",
    "compile",
    "artifact",
    "adapter",
    "placement",
    "plan",
    "ports",
    "model_info",
    "values",
    "device_values",
    "locations",
    "external_memory",
    "strings",
    "containers",
    "dlpack",
    "run_options",
    "run",
    "asynchronous",
    "binding",
    "completion",
    "tuning",
    "operator",
    "operator_attributes",
    "operator_library",
    "node_info",
    "node_outputs",
    "node_attributes",
    "kernel_context",
];

#[test]
fn the_header_is_up_to_date() {
    let root = root();
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(root.join(format!("src/capi/{source}.rs")));
    }
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    // C90 has no comments of this form.
    let text = String::from_utf8(text).unwrap().replace("#endif // __cplusplus", "#endif  /* __cplusplus */");
    let text = text.replace("#endif  // __cplusplus", "#endif  /* __cplusplus */");
    let folder = root.join("src/capi");
    let api = api::read(&folder, SOURCES);
    let text = attributes::add(&sections::add(&text, &folder, SOURCES, &api), &api);
    compare("include/rukh/rukh.h", &text);
}

#[test]
fn the_description_is_up_to_date() {
    compare("abi/rukh-api.json", &description::json(&api::read(&root().join("src/capi"), SOURCES)));
}

#[test]
fn the_declarations_for_rust_are_up_to_date() {
    compare("sys/src/lib.rs", &declarations::rust(&api::read(&root().join("src/capi"), SOURCES)));
}

#[test]
fn the_table_is_up_to_date() {
    let api = api::read(&root().join("src/capi"), SOURCES);
    let order = std::fs::read_to_string(root().join(table::ORDER)).unwrap();
    let order = table::with_new_functions(&order, &api);
    compare(table::ORDER, &order);
    compare("include/rukh/rukh_table.h", &table::header(&order, &api));
    compare("src/capi/table.rs", &table::rust(&order, &api));
}

#[test]
fn the_description_has_every_function_of_the_header() {
    let header = std::fs::read_to_string(root().join("include/rukh/rukh.h")).unwrap();
    let api = api::read(&root().join("src/capi"), SOURCES);
    for name in api.functions.iter().map(|function| &function.name) {
        assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
    }
    let symbols = std::fs::read_to_string(root().join("abi/rukh.symbols")).unwrap();
    for symbol in symbols.lines().filter(|line| line.starts_with("rukh_")) {
        assert!(api.functions.iter().any(|function| function.name == symbol), "{symbol} is not described");
    }
}

/// Functions that rukh.hpp leaves to C.
const ONLY_C: &[(&str, &str)] = &[("rukh_api", "a program that includes rukh.hpp is linked to the library")];

#[test]
fn rukh_hpp_reaches_every_function() {
    let mut text = String::new();
    for entry in std::fs::read_dir(root().join("include/rukh")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "hpp") {
            text += &std::fs::read_to_string(path).unwrap();
        }
    }
    let names: HashSet<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let api = api::read(&root().join("src/capi"), SOURCES);
    for function in &api.functions {
        let name = &*function.name;
        let is_left = function.deprecated.is_some() || ONLY_C.iter().any(|(left, _)| *left == name);
        let reached = names.contains(name);
        assert!(reached != is_left, "{name}: rukh.hpp reaches it: {reached}; it should: {}", !is_left);
    }
}

#[test]
fn the_version_is_the_packages() {
    let header = std::fs::read_to_string(root().join("include/rukh/rukh.h")).unwrap();
    let parts = env!("CARGO_PKG_VERSION").split('.');
    for (part, value) in ["MAJOR", "MINOR", "PATCH"].into_iter().zip(parts) {
        assert!(
            header.contains(&format!("\n#define RUKH_VERSION_{part} {value}\n")),
            "{part} is not {value}"
        );
    }
}

#[test]
fn each_status_must_be_looked_at_and_what_is_deprecated_names_another() {
    let header = std::fs::read_to_string(root().join("include/rukh/rukh.h")).unwrap();
    let api = api::read(&root().join("src/capi"), SOURCES);
    let marks = |text: &str| header.lines().filter(|line| line.starts_with(text)).count();
    let statuses = header.lines().filter(|line| line.starts_with("rukh_status rukh_")).count();
    assert_eq!(marks("RUKH_MUST_CHECK RUKH_API"), statuses);
    let deprecated =
        api.functions.iter().filter_map(|function| Some((function, function.deprecated.as_ref()?)));
    for (function, note) in deprecated.clone() {
        let named = |other: &&api::Function| note.split([' ', ',', ';']).any(|word| word == other.name);
        let other = api.functions.iter().find(named).unwrap_or_else(|| panic!("{}: {note}", function.name));
        assert!(
            other.deprecated.is_none(),
            "{} leads to {}, which is deprecated too",
            function.name,
            other.name
        );
        assert!(function.doc.contains("Deprecated"), "{}: the comment says nothing of it", function.name);
    }
    assert_eq!(marks("RUKH_DEPRECATED("), deprecated.count());
}

#[test]
fn every_source_with_exports_is_in_the_header() {
    let folder = root().join("src/capi");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if std::fs::read_to_string(&path).unwrap().contains("no_mangle") {
            assert!(SOURCES.contains(&name.as_str()), "{name}");
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compares a file with what it should be, or writes it.
fn compare(file: &str, text: &str) {
    let path = root().join(file);
    if std::env::var_os("RUKH_UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // A file that stays as it is need not be compiled again.
        if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
            return;
        }
        std::fs::write(&path, text).unwrap();
        return;
    }
    let checked_in = std::fs::read_to_string(&path).unwrap();
    assert!(
        text == checked_in,
        "{file} is not what src/capi says; write it anew with RUKH_UPDATE=1 cargo test --test header"
    );
}
