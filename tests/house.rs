//! Keeps the habits of the source: how long a file is, and what files of tests are called.

use std::path::{Path, PathBuf};

/// A file is about one thing. In lines.
const LONGEST: usize = 400;

/// Files that may be longer, with the reason.
const LONGER: &[(&str, &str)] = &[
    ("bindings/go/raw/constants.go", "made from abi/rukh-api.json"),
    ("bindings/go/raw/functions.go", "made from abi/rukh-api.json"),
    ("bindings/go/raw/functions.h", "made from abi/rukh-api.json"),
    ("bindings/node/lib/functions.d.ts", "made from abi/rukh-api.json"),
    ("bindings/node/lib/functions.js", "made from abi/rukh-api.json"),
    ("include/rukh/rukh.h", "made from src/capi by cbindgen, and one header is what C programs want"),
    ("sys/src/lib.rs", "made from src/capi, as the header is"),
    ("src/model/proto.rs", "made by prost-build from the standard's onnx.proto3"),
];

const SOURCES: &[&str] = &["rs", "hip", "h", "hpp", "py", "c", "cpp", "js", "mjs", "ts", "go"];

#[test]
fn no_file_is_too_long() {
    let mut long: Vec<String> = Vec::new();
    for file in files(SOURCES) {
        let lines = std::fs::read_to_string(root().join(&file)).unwrap().lines().count();
        let excepted = LONGER.iter().any(|(name, _)| *name == file);
        if lines > LONGEST && !excepted {
            long.push(format!("{file}: {lines} lines; move a whole thing into a file of its own"));
        } else if lines <= LONGEST && excepted {
            long.push(format!("{file}: {lines} lines; it needs no exception"));
        }
    }
    assert!(long.is_empty(), "files may have {LONGEST} lines:\n{}", long.join("\n"));
}

#[test]
fn files_of_tests_are_named_alike() {
    let mut odd: Vec<String> = Vec::new();
    for file in files(&["rs"]).into_iter().filter(|file| {
        [
            "src/",
            "core/src/",
            "cpu/src/",
            "cli/src/",
            "client/src/",
            "generate/src/",
            "onnxruntime-ep/src/",
            "triton/src/",
        ]
        .iter()
        .any(|folder| file.starts_with(folder))
    }) {
        if !is_well_named(&file) {
            odd.push(file.clone());
        }
        let text = std::fs::read_to_string(root().join(&file)).unwrap();
        let here = test_modules(&text).into_iter().filter(|name| !["tests", "testing"].contains(&&**name));
        odd.extend(here.map(|name| format!("{file}: mod {name}")));
    }
    assert!(
        odd.is_empty(),
        "tests stand in tests.rs or tests/TOPIC.rs beside the code, what they share in testing.rs or testing/:\n{}",
        odd.join("\n")
    );
}

#[test]
fn the_rules_themselves() {
    for (file, expected) in [
        ("src/plan/tests.rs", true),
        ("src/plan/tests/order.rs", true),
        ("src/plan/tests/mod.rs", true),
        ("src/plan/testing.rs", true),
        ("src/plan/testing/data.rs", true),
        ("src/plan/latest.rs", true),
        ("src/plan/order_tests.rs", false),
        ("src/plan/tests_order.rs", false),
        ("src/plan/test.rs", false),
    ] {
        assert_eq!(is_well_named(file), expected, "{file}");
    }
    let text =
        "mod a;\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\npub(crate) mod fake;\n#[cfg(test)]\nmod tests {\n";
    assert_eq!(test_modules(text), ["tests", "fake"]);
}

/// Whether a file that is about tests by its name is called as the rule says.
fn is_well_named(file: &str) -> bool {
    let path = Path::new(file);
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let folders = path.parent().into_iter().flat_map(Path::iter);
    let inside = folders.filter_map(|name| name.to_str()).any(|name| name == "tests" || name == "testing");
    let about_tests = stem.split('_').any(|word| ["test", "tests", "testing"].contains(&word));
    inside || !about_tests || stem == "tests" || stem == "testing"
}

/// The modules with a file of their own that a text declares under `#[cfg(test)]`.
fn test_modules(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]"
            && let Some(declared) = lines.next()
            && let Some((_, name)) = declared.split_once("mod ")
            && let Some(name) = name.strip_suffix(';')
        {
            found.push(name.to_owned());
        }
    }
    found
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file with one of these extensions, from the root, with `/`.
fn files(extensions: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = folder.join(&name);
            if entry.file_type().unwrap().is_dir() {
                // What is built, and what tools keep for themselves.
                if !name.starts_with('.') && !["target", "build", "node_modules"].contains(&&*name) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|e| extensions.iter().any(|extension| e == *extension)) {
                found.push(path.to_str().unwrap().replace('\\', "/"));
            }
        }
    }
    assert!(!found.is_empty(), "no sources under {}", root().display());
    found.sort();
    found
}
