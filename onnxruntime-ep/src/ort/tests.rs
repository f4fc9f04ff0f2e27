//! No panic crosses the border to C.

use std::path::{Path, PathBuf};

use super::{guard_or, guard_with};

#[test]
fn a_panic_gives_what_was_agreed() {
    // What was thrown may itself panic when it is dropped.
    struct Thrown;
    impl Drop for Thrown {
        fn drop(&mut self) {
            panic!("on purpose, too");
        }
    }
    assert_eq!(guard_or(7, || 3), 3);
    assert_eq!(guard_or(7, || panic!("on purpose")), 7);
    guard_or((), || std::panic::panic_any(Thrown));
}

/// A function that gives a status tells of a panic by it, and not by success.
#[test]
fn a_panic_gives_a_status() {
    let mut told = String::new();
    let failed = || ort_sys::OrtStatusPtr(std::ptr::dangling_mut());
    let status = guard_with(
        |error| {
            told.clone_from(&error.message);
            failed()
        },
        || panic!("on purpose"),
    );
    assert_eq!(status.0, failed().0);
    assert!(told.contains("on purpose") && told.contains("defect"), "{told}");
    assert!(guard_with(|_| failed(), || Ok(())).0.is_null());
}

/// Every function that C calls works within a guard; before it are references alone.
#[test]
fn every_function_that_c_calls_has_a_guard() {
    let (mut found, mut without) = (0, Vec::new());
    for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let text =
            std::fs::read_to_string(&file).unwrap().replace("extern \"system\" fn ", "extern \"C\" fn ");
        for part in text.split("extern \"C\" fn ").skip(1) {
            let name = part.split('(').next().unwrap_or_default();
            // Types of functions have no name, or end before a body.
            if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let Some((head, body)) = part.split_once('{') else { continue };
            if head.contains(';') {
                continue;
            }
            found += 1;
            let body = body.split("\n}").next().unwrap_or_default();
            let mut lines =
                body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
            let first = lines.find(|line| !line.starts_with("let ")).unwrap_or_default();
            if !["guard(", "guard_or(", "guard_with("].iter().any(|guard| first.starts_with(guard)) {
                without.push(format!("{}: {name}", file.display()));
            }
        }
    }
    assert!(found >= 29, "{found} functions were found");
    assert!(without.is_empty(), "functions without a guard: {without:?}");
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") => {
                vec![path]
            }
            false => Vec::new(),
        })
        .collect()
}
