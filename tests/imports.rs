//! Keeps the walls between the rooms: a lower room never imports a higher one.
//!
//! The rules are those of docs/architecture.md. Every `crate::room` in src/ and core/src counts, in a `use`, a path
//! or a macro; comments do not, nor do tests, which may use what stands above to check what is below. What lies in a crate
//! of its own cannot import what is above it anyhow: so it is with the CPU's provider.

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
    ("providers::cpu", &["provider"]),
    ("providers::hip", &["provider", "memory", "hip"]),
    ("provider", &["ops"]),
    ("hip", &["memory"]),
    ("ops", &["graph"]),
    ("graph", &[]),
    ("memory", &[]),
    ("error", &["tensor"]),
];

/// The floor: every room above may import these.
const FLOOR: &[&str] = &["error", "tensor", "threads"];

/// The crates that the library is made of, and those of them that have several rooms.
const CRATES: &[&str] = &["src", "core/src", "cpu/src"];
const WITH_ROOMS: &[&str] = &["src", "core/src"];

#[test]
fn no_room_imports_a_higher_one() {
    let mut broken = Vec::new();
    for (source, file) in files_of(WITH_ROOMS) {
        let room = room_of(file.strip_prefix(&source).unwrap());
        if is_test_module(&file) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        for (line, target) in imports(&text) {
            if !allowed(&room, &target) {
                broken.push(format!("{}:{line}: {room} imports {target}", named(&file)));
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
            "src/hip/library.rs",
            "cpu/src/isa.rs",
            "src/providers/hip/options.rs",
            "src/providers/hip/variables.rs",
            "src/session/devices.rs",
            "src/session/log.rs",
        ],
    ),
    (
        "files",
        &["std::fs::", "File::open", "Mmap"],
        &[
            "src/artifact/writer.rs",
            "src/hip/amd.rs",
            "src/hip/library.rs",
            "src/hip/library_folders.rs",
            "src/model/file.rs",
            "src/model/outside.rs",
            "src/model/save.rs",
            "src/providers/hip/tuning/files.rs",
            "src/session/devices.rs",
            "src/session/model_cache.rs",
        ],
    ),
    ("libraries of the system", &["libloading"], &["src/capi/operator_library.rs", "src/hip/"]),
    (
        "threads",
        &["thread::Builder", "thread::spawn"],
        &["src/capi/executor.rs", "src/session/watch.rs", "core/src/threads/"],
    ),
    ("callers in C", &["extern \"C\" fn rukh_"], &["src/capi/"]),
];

#[test]
fn only_some_files_reach_outside() {
    let mut broken = Vec::new();
    let mut seen = BTreeSet::new();
    for (_, file) in files_of(CRATES) {
        if is_test_module(&file) {
            continue;
        }
        let name = named(&file);
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(&text);
        let code: String =
            text.lines().map(|line| line.split("//").next().unwrap_or("").to_owned() + "\n").collect();
        for (what, words, places) in
            OUTSIDE.iter().filter(|(_, words, _)| words.iter().any(|w| code.contains(w)))
        {
            match places.iter().find(|place| name.starts_with(**place)) {
                Some(place) => drop(seen.insert((*what, *place))),
                None => broken.push(format!("{name}: {what} ({})", words.join(", "))),
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
    for (source, file) in files_of(WITH_ROOMS) {
        let room = room_of(file.strip_prefix(&source).unwrap());
        let known = room == "lib" || FLOOR.contains(&&*room) || BELOW.iter().any(|(name, _)| *name == room);
        assert!(known, "{}: room \"{room}\" has no import rule", named(&file));
    }
}

#[test]
fn rules_themselves() {
    for (room, target, expected) in [
        ("capi", "graph", true),
        ("session", "providers::cpu", true),
        ("passes", "providers::cpu", false),
        ("providers::hip", "ops", true),
        ("providers::hip", "providers", true),
        ("providers::hip", "providers::cpu", false),
        ("ops", "provider", false),
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

/// The files of crates, each with the folder of its crate's source.
fn files_of(crates: &[&str]) -> Vec<(PathBuf, PathBuf)> {
    let sources = crates.iter().map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join(name));
    sources
        .flat_map(|source| rust_files(&source).into_iter().map(move |file| (source.clone(), file)))
        .collect()
}

/// A file's path from the root of the project.
fn named(file: &Path) -> String {
    file.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().to_str().unwrap().to_owned()
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

/// `providers/hip/conv.rs` is in `providers::hip`, `graph/dim.rs` in `graph`, `error.rs` in `error`.
fn room_of(inside: &Path) -> String {
    let parts: Vec<&str> = inside.iter().filter_map(|p| p.to_str()).collect();
    match parts[..] {
        ["providers", "hip", _, ..] => "providers::hip".to_owned(),
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
        ["", "pub ", "pub(crate) ", "pub(super) "].map(|scope| format!("#[cfg(test)]\n{scope}mod {name};"));
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
