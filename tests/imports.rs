//! Keeps the walls between the rooms: a lower room never imports a higher one.
//!
//! The rules are those of docs/architecture.md. Every `crate::room` in src/ counts, in a `use`, a path
//! or a macro; comments do not, nor do tests, which may use what stands above to check what is below.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Each room with the rooms right below it; it may also import what those may import.
const BELOW: &[(&str, &[&str])] = &[
    ("capi", &["session"]),
    ("session", &["artifact", "passes"]),
    ("artifact", &["plan", "model"]),
    ("plan", &["providers"]),
    ("passes", &["ops"]),
    ("model", &["graph"]),
    ("providers", &["providers::cpu", "providers::hip"]),
    ("providers::cpu", &["ops", "memory"]),
    ("providers::hip", &["ops", "memory", "hip"]),
    ("hip", &["memory"]),
    ("ops", &["graph"]),
    ("graph", &[]),
    ("memory", &[]),
    ("error", &["tensor"]),
];

/// The floor: every room above may import these.
const FLOOR: &[&str] = &["error", "tensor", "threads"];

#[test]
fn no_room_imports_a_higher_one() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut broken = Vec::new();
    for file in rust_files(&source) {
        let inside = file.strip_prefix(&source).unwrap().to_owned();
        let room = room_of(&inside);
        if is_test_module(&file) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        for (line, target) in imports(&text) {
            if !allowed(&room, &target) {
                broken.push(format!("src/{}:{line}: {room} imports {target}", inside.display()));
            }
        }
    }
    assert!(broken.is_empty(), "imports that docs/architecture.md does not allow:\n{}", broken.join("\n"));
}

/// What is outside of the library, by the words that reach it, and the files or folders that may. The table of
/// docs/architecture.md says what for.
const OUTSIDE: &[(&str, &[&str], &[&str])] = &[
    (
        "environment variables",
        &["env::var"],
        &[
            "hip/library.rs",
            "providers/cpu/isa.rs",
            "providers/hip/options.rs",
            "providers/hip/variables.rs",
            "session/devices.rs",
            "session/log.rs",
        ],
    ),
    (
        "files",
        &["std::fs::", "File::open", "Mmap"],
        &[
            "artifact/writer.rs",
            "hip/amd.rs",
            "hip/library.rs",
            "hip/library_folders.rs",
            "model/file.rs",
            "model/outside.rs",
            "model/save.rs",
            "providers/hip/tuning/files.rs",
            "session/devices.rs",
            "session/model_cache.rs",
        ],
    ),
    ("libraries of the system", &["libloading"], &["capi/operator_library.rs", "hip/"]),
    ("threads", &["thread::Builder", "thread::spawn"], &["capi/executor.rs", "session/watch.rs", "threads/"]),
    ("callers in C", &["extern \"C\" fn rukh_"], &["capi/"]),
];

#[test]
fn only_some_files_reach_outside() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut broken = Vec::new();
    let mut seen = BTreeSet::new();
    for file in rust_files(&source) {
        if is_test_module(&file) {
            continue;
        }
        let inside = file.strip_prefix(&source).unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(&text);
        let code: String =
            text.lines().map(|line| line.split("//").next().unwrap_or("").to_owned() + "\n").collect();
        for (what, words, places) in
            OUTSIDE.iter().filter(|(_, words, _)| words.iter().any(|w| code.contains(w)))
        {
            match places.iter().find(|place| inside.starts_with(**place)) {
                Some(place) => drop(seen.insert((*what, *place))),
                None => broken.push(format!("src/{inside}: {what} ({})", words.join(", "))),
            }
        }
    }
    assert!(
        broken.is_empty(),
        "files that reach outside, which docs/architecture.md does not allow:\n{}",
        broken.join("\n")
    );
    let allowed =
        OUTSIDE.iter().flat_map(|(what, _, places)| places.iter().map(move |place| (*what, *place)));
    let idle: Vec<_> = allowed.filter(|pair| !seen.contains(pair)).collect();
    assert!(idle.is_empty(), "these may reach outside and do not: {idle:?}");
}

#[test]
fn every_room_has_a_rule() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in rust_files(&source) {
        let inside = file.strip_prefix(&source).unwrap().to_owned();
        let room = room_of(&inside);
        let known = room == "lib" || FLOOR.contains(&&*room) || BELOW.iter().any(|(name, _)| *name == room);
        assert!(known, "src/{}: room \"{room}\" has no import rule", inside.display());
    }
}

#[test]
fn rules_themselves() {
    for (room, target, expected) in [
        ("capi", "graph", true),
        ("session", "providers::cpu", true),
        ("passes", "providers::cpu", false),
        ("providers::cpu", "ops", true),
        ("providers::cpu", "providers", true),
        ("providers::cpu", "providers::hip", false),
        ("graph", "ops", false),
        ("model", "ops", false),
        ("memory", "tensor", true),
        ("tensor", "graph", false),
        ("tensor", "error", false),
        ("error", "tensor", true),
    ] {
        assert_eq!(allowed(room, target), expected, "{room} imports {target}");
    }
    let text = "use crate::{graph::Graph, ops::{self, Op}};\nlet x = crate::session::f(); // crate::capi\n\
                #[cfg(test)]\nmod tests {\n    use crate::plan::Plan;\n}\n";
    let found: Vec<String> = imports(text).into_iter().map(|(_, target)| target).collect();
    assert_eq!(found, ["graph", "ops", "session"]);
}

fn allowed(room: &str, target: &str) -> bool {
    // The face that all providers share stands in src/providers/mod.rs.
    room == "lib"
        || room == target
        || (FLOOR.contains(&target) && !FLOOR.contains(&room))
        || (target == "providers" && room.starts_with("providers::"))
        || reachable(room).contains(target)
}

/// Every room below `room`.
fn reachable(room: &str) -> BTreeSet<&'static str> {
    let rules: BTreeMap<&str, &[&'static str]> = BELOW.iter().copied().collect();
    let (mut found, mut todo) = (BTreeSet::new(), vec![room]);
    while let Some(next) = todo.pop() {
        for &below in rules.get(next).copied().unwrap_or_default() {
            if found.insert(below) {
                todo.push(below);
            }
        }
    }
    found
}

/// `providers/cpu/conv.rs` is in `providers::cpu`, `graph/dim.rs` in `graph`, `error.rs` in `error`.
fn room_of(inside: &Path) -> String {
    let parts: Vec<&str> = inside.iter().filter_map(|p| p.to_str()).collect();
    match parts[..] {
        ["providers", provider @ ("cpu" | "hip"), _, ..] => format!("providers::{provider}"),
        [file] => file.trim_end_matches(".rs").to_owned(),
        _ => parts[0].to_owned(),
    }
}

/// Whether the module above declares this file under `#[cfg(test)]`, or is such a file itself.
fn is_test_module(file: &Path) -> bool {
    let (Some(folder), Some(name)) = (file.parent(), file.file_stem().and_then(|s| s.to_str())) else {
        return false;
    };
    if name == "mod" {
        return folder.file_name().is_some() && is_test_module(folder);
    }
    let above = [folder.join("mod.rs"), folder.join("lib.rs"), folder.with_extension("rs")];
    let declared =
        ["", "pub(crate) ", "pub(super) "].map(|scope| format!("#[cfg(test)]\n{scope}mod {name};"));
    let declares = |file: &PathBuf| {
        std::fs::read_to_string(file).is_ok_and(|text| declared.iter().any(|line| text.contains(line)))
    };
    above.iter().any(declares) || (folder.join("mod.rs").exists() && is_test_module(folder))
}

/// The rooms that a source text names, with line numbers. The tests at its end do not count.
fn imports(text: &str) -> Vec<(usize, String)> {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
    let mut found = Vec::new();
    for (number, line) in code.iter().enumerate() {
        for (at, _) in line.match_indices("crate::") {
            // `$crate::` in a macro counts; the end of another word (`subcrate::`) does not.
            if line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let rest = [&line[at + "crate::".len()..], &code[number + 1..].join("\n")].join("\n");
            found.extend(targets(&rest).into_iter().map(|target| (number + 1, target)));
        }
    }
    found
}

/// The rooms at the start of `rest`, which follows `crate::`: one path, or a braced list of them.
fn targets(rest: &str) -> Vec<String> {
    let Some(list) = rest.strip_prefix('{') else {
        return room_named(rest).into_iter().collect();
    };
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                found.extend(room_named(list[start..at].trim()));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    found
}

fn room_named(path: &str) -> Option<String> {
    let word = |s: &str| s.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("").to_owned();
    let first = word(path);
    if first == "providers" {
        let second = path.strip_prefix("providers::").map(word).unwrap_or_default();
        if second == "cpu" || second == "hip" {
            return Some(format!("providers::{second}"));
        }
    }
    (!first.is_empty()).then_some(first)
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found
}
