//! No files import each other in a circle, but for the few whose matter goes round.
//!
//! An arrow goes from a file to the one that defines what it names, through what modules hand on (`pub use`). What a
//! file takes from the modules that it stands in does not count: they are its surroundings. Nor do tests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A module as the names from the crate's root to it.
type Module = Vec<String>;

/// The circles that stay, by their files; each says at its top why.
const CIRCLES: &[&[&str]] = &[
    &["src/model/attribute.rs", "src/model/build.rs"],
    &[
        "cpu/src/gemm/compute.rs",
        "cpu/src/gemm/dot/bf16.rs",
        "cpu/src/gemm/epilogue.rs",
        "cpu/src/gemm/halves.rs",
        "cpu/src/gemm/operand.rs",
        "cpu/src/gemm/pack.rs",
        "cpu/src/gemm/plain.rs",
        "cpu/src/gemm/sgemm/block.rs",
        "cpu/src/gemm/tile.rs",
    ],
    &[
        "src/session/control.rs",
        "src/session/generation/decoder.rs",
        "src/session/generation/mod.rs",
        "src/session/output.rs",
        "src/session/run.rs",
    ],
];

struct File {
    name: String,
    /// Without comments and tests.
    code: String,
}

#[test]
fn files_import_each_other_in_no_other_circle() {
    let found: BTreeSet<BTreeSet<String>> =
        ["src", "core/src", "cpu/src"].into_iter().flat_map(|folder| circles(&sources(folder))).collect();
    let allowed: BTreeSet<BTreeSet<String>> =
        CIRCLES.iter().map(|circle| circle.iter().map(|&file| file.to_owned()).collect()).collect();
    assert_eq!(found, allowed, "move what two files share into a file below both");
}

/// The circles among the files of a crate, each by the names of its files.
fn circles(files: &BTreeMap<Module, File>) -> BTreeSet<BTreeSet<String>> {
    let arrows: BTreeMap<&Module, BTreeSet<Module>> =
        files.keys().map(|module| (module, arrows_of(files, module))).collect();
    let reach: BTreeMap<&Module, BTreeSet<&Module>> =
        arrows.keys().map(|&module| (module, reachable(&arrows, module))).collect();
    let circle_of = |(module, there): (&&Module, &BTreeSet<&Module>)| -> BTreeSet<String> {
        there
            .iter()
            .filter(|other| reach[*other].contains(module))
            .map(|other| files[*other].name.clone())
            .collect()
    };
    reach.iter().map(circle_of).filter(|circle| circle.len() > 1).collect()
}

#[test]
fn arrows_themselves() {
    let file = |name: &str, code: &str| File { name: name.to_owned(), code: code.to_owned() };
    let files: BTreeMap<Module, File> = [
        ("", file("lib.rs", "mod a; mod b;")),
        ("a", file("a/mod.rs", "mod c; mod d;\npub(super) use c::Deep;\nfn f() { d::g() }")),
        ("a c", file("a/c.rs", "use super::d::{self, X};\nuse super::Near;")),
        ("a d", file("a/d.rs", "fn g() -> crate::b::T { todo!() }")),
        ("b", file("b.rs", "use crate::{a::{Deep as D}, c::*};\nlet x = subcrate::a::Y;")),
    ]
    .into_iter()
    .map(|(module, file)| (module.split_whitespace().map(str::to_owned).collect(), file))
    .collect();
    for (module, expected) in [("a", "a d"), ("a c", "a d"), ("a d", "b"), ("b", "a c")] {
        let module: Module = module.split_whitespace().map(str::to_owned).collect();
        let found: Vec<String> = arrows_of(&files, &module).iter().map(|to| to.join(" ")).collect();
        assert_eq!(found, [expected], "{module:?}");
    }
}

/// Every module that another reaches, itself when it lies on a circle.
fn reachable<'m>(arrows: &'m BTreeMap<&Module, BTreeSet<Module>>, from: &'m Module) -> BTreeSet<&'m Module> {
    let (mut found, mut todo) = (BTreeSet::new(), vec![from]);
    while let Some(next) = todo.pop() {
        todo.extend(arrows[next].iter().filter(|to| found.insert(*to)));
    }
    found
}

/// The modules that a file takes something from.
fn arrows_of(files: &BTreeMap<Module, File>, module: &Module) -> BTreeSet<Module> {
    let mut found = BTreeSet::new();
    for line in statements(&files[module].code) {
        // What a module hands on is an arrow of those who take it.
        if line.starts_with("pub") && line.contains(" use ") {
            continue;
        }
        for path in paths(files, module, line) {
            let to = resolve(files, module, &path, 0);
            if to != *module && !module.starts_with(&to) && files.contains_key(&to) {
                found.insert(to);
            }
        }
    }
    found
}

/// The module that defines what a path names.
fn resolve(files: &BTreeMap<Module, File>, from: &Module, path: &[String], depth: usize) -> Module {
    let mut at = from.clone();
    let mut rest = path.iter();
    let mut name = None;
    for word in rest.by_ref() {
        match word.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => drop(at.pop()),
            _ => {
                let below: Module = at.iter().chain([word]).cloned().collect();
                if !files.contains_key(&below) {
                    name = Some(word);
                    break;
                }
                at = below;
            }
        }
    }
    let (Some(name), Some(file)) = (name, files.get(&at)) else { return at };
    // A name that the module takes from another and hands on. Eight steps are more than there are.
    let handed_on = statements(&file.code)
        .into_iter()
        .filter(|line| depth < 8 && line.starts_with("pub") && line.contains(" use "))
        .flat_map(|line| paths(files, &at, line))
        .find(|path| path.last() == Some(name));
    handed_on.map_or(at.clone(), |path| resolve(files, &at, &path, depth + 1))
}

/// The code up to each `;` or `{` at the begin of a line's item: enough to keep a `use` in one piece.
fn statements(code: &str) -> Vec<&str> {
    code.split(';').map(str::trim_start).collect()
}

/// The paths of a text that begin with `crate`, `super`, `self` or a module right below this one, lists unfolded.
fn paths(files: &BTreeMap<Module, File>, module: &Module, text: &str) -> Vec<Vec<String>> {
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let start = at;
        let word = read_word(bytes, &mut at);
        if word.is_empty() {
            at += 1;
            continue;
        }
        let inside = start > 0 && bytes[start - 1] == b':';
        let below = || files.contains_key(&module.iter().cloned().chain([word.clone()]).collect::<Module>());
        let begins = ["crate", "super", "self"].contains(&word.as_str()) || below();
        if !inside && begins && text[at..].starts_with("::") {
            at = start;
            unfold(bytes, &mut at, Vec::new(), &mut found);
        }
    }
    found
}

/// Reads one path, or each of a braced list, at `at`.
fn unfold(text: &[u8], at: &mut usize, mut path: Vec<String>, found: &mut Vec<Vec<String>>) {
    let skip = |at: &mut usize| {
        while text.get(*at).is_some_and(u8::is_ascii_whitespace) {
            *at += 1;
        }
    };
    loop {
        skip(at);
        if text.get(*at) == Some(&b'{') {
            *at += 1;
            while !matches!(text.get(*at), None | Some(b'}')) {
                let before = *at;
                unfold(text, at, path.clone(), found);
                // Over an alias and the comma.
                while !matches!(text.get(*at), None | Some(b'}' | b',')) {
                    *at += 1;
                }
                if text.get(*at) == Some(&b',') || *at == before {
                    *at += 1;
                }
                skip(at);
            }
            *at += 1;
            return;
        }
        let word = read_word(text, at);
        if word.is_empty() {
            break;
        }
        if word != "self" || path.is_empty() {
            path.push(word);
        }
        if !text[*at..].starts_with(b"::") {
            break;
        }
        *at += 2;
    }
    found.push(path);
}

fn read_word(text: &[u8], at: &mut usize) -> String {
    let start = *at;
    while text.get(*at).is_some_and(|c| c.is_ascii_alphanumeric() || *c == b'_') {
        *at += 1;
    }
    String::from_utf8_lossy(&text[start..*at]).into_owned()
}

/// Every file of one of the library's crates by its module, but for tests.
fn sources(crate_folder: &str) -> BTreeMap<Module, File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(crate_folder);
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
            if stem.starts_with("tests") || stem == "testing" {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let inside = path.strip_prefix(&root).unwrap().to_str().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(&text);
            let code = text.lines().flat_map(|line| [line.split("//").next().unwrap_or(""), "\n"]).collect();
            let mut module: Module = inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            if ["mod", "lib"].contains(&stem.as_str()) {
                module.pop();
            }
            found.insert(module, File { name: format!("{crate_folder}/{inside}"), code });
        }
    }
    found
}
