//! The Markdown files agree with the tree: links lead to a file and a heading, files that are named exist, code that is
//! quoted stands in the source, and docs/README.md names every page under docs/.
//!
//! Code to be quoted follows a comment `<!-- quoted from: PATH -->`; every block of Rust must be such a quote. Other
//! examples are compiled and run by scripts/test_docs.py.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Folders that hold what was built or downloaded.
const NOT_OURS: [&str; 6] = ["target", "build", ".git", ".venv", "shared", "node_modules"];

#[test]
fn every_link_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = pages(root);
    assert!(pages.len() >= 10, "{} pages were found under {}", pages.len(), root.display());
    let broken: Vec<String> = pages
        .iter()
        .flat_map(|(page, text)| {
            let wrong = links(text).into_iter().filter_map(|(line, to)| {
                broken(root, &pages, page, &to).map(|why| format!("{}:{line}: ({to}): {why}", page.display()))
            });
            wrong.collect::<Vec<_>>()
        })
        .collect();
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn the_index_names_every_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = pages(root);
    let index = Path::new("docs/README.md");
    let named: BTreeSet<PathBuf> = links(&pages[index])
        .iter()
        .map(|(_, to)| resolve(index, to.split('#').next().unwrap_or(to)))
        .collect();
    let missing: Vec<&PathBuf> = pages
        .keys()
        .filter(|page| page.starts_with("docs") && *page != index && !named.contains(*page))
        .collect();
    assert!(missing.is_empty(), "docs/README.md has no link to {missing:?}");
}

/// The first part of a path that the project's files have.
const FOLDERS: [&str; 22] = [
    "abi",
    "benches",
    "bindings",
    "capi-tests",
    "cli",
    "client",
    "cmake",
    "core",
    "cpu",
    "docs",
    "examples",
    "fuzz",
    "generate",
    "include",
    "kernels",
    "onnxruntime-ep",
    "pkgconfig",
    "python",
    "scripts",
    "src",
    "tests",
    "triton",
];

#[test]
fn every_file_that_is_named_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut missing = Vec::new();
    for (page, text) in pages(root) {
        for path in named_files(&text) {
            if !root.join(&path).exists() {
                missing.push(format!("{}: {path}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "files that are named and do not exist:\n{}", missing.join("\n"));
}

/// Each feature of another program has a test that is there, or the reason why it is not here.
#[test]
fn features_of_other_programs_have_a_test_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("docs/coming-from.md")).unwrap();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("| ") && *line != "| there | here | test |")
        .map(|line| line.trim_matches('|').split(" |").map(str::trim).collect())
        .collect();
    assert!(rows.len() >= 90, "{} rows were found", rows.len());
    for row in rows {
        let [there, here, tests] = row[..] else { panic!("three columns are needed: {row:?}") };
        let files: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!files.is_empty() || here.starts_with("not here"), "no test and no reason: {there}");
        for file in files {
            assert!(root.join(file).is_file(), "{there}: there is no {file}");
            let tested = file.ends_with(".sh") || file.ends_with(".c") || {
                let source = std::fs::read_to_string(root.join(file)).unwrap();
                source.contains("#[test]") || source.contains("def test_")
            };
            assert!(tested, "{there}: {file} has no test");
        }
    }
}

#[test]
fn quoted_code_stands_in_the_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    let mut count = 0;
    for (page, text) in pages(root) {
        for (line, from, code) in quotes(&text) {
            let place = format!("{}:{line}", page.display());
            count += 1;
            match from.map(|from| (std::fs::read_to_string(root.join(&from)), from)) {
                None => wrong.push(format!("{place}: a block of Rust without <!-- quoted from: PATH -->")),
                Some((Ok(source), _)) if source.contains(&code) => {}
                Some((Ok(_), from)) => wrong.push(format!("{place}: not what {from} has")),
                Some((Err(e), from)) => wrong.push(format!("{place}: {from}: {e}")),
            }
        }
    }
    assert!(wrong.is_empty(), "quotes:\n{}", wrong.join("\n"));
    assert!(count >= 10, "{count} quotes were found");
}

#[test]
fn rules_themselves() {
    for (heading, anchor) in [
        ("A whole program", "a-whole-program"),
        ("C++", "c"),
        ("The `rukh` command", "the-rukh-command"),
        ("Threads, cancelling, running", "threads-cancelling-running"),
        ("0.1.0, not yet released", "010-not-yet-released"),
        ("snake_case and [a link](x.md)", "snake_case-and-a-link"),
    ] {
        assert_eq!(anchor_of(heading), anchor, "{heading}");
    }
    let page = "# Top\n\n[a](b.md#c) and ![d](e.svg)\n```c\n[no](link.md)\n# none\n```\n`[no](code.md)` <http://f>\n\
                ## Top\n\n[two\nlines](g.md \"title\")\n";
    let found: Vec<(usize, String)> = links(page);
    let expected = [(3, "b.md#c"), (3, "e.svg"), (12, "g.md")];
    assert_eq!(found, expected.map(|(line, to)| (line, to.to_owned())));
    assert_eq!(anchors(page), BTreeSet::from(["top".to_owned(), "top-1".to_owned()]));
    let spans =
        "see `src/lib.rs`, `src/FAMILY.rs`, `a/b.rs`\n```\n`src/none.rs`\n```\n`kernels/*.hip` `docs/x.md`\n";
    assert_eq!(named_files(spans), BTreeSet::from(["docs/x.md".to_owned(), "src/lib.rs".to_owned()]));
    let page_with_quotes =
        "<!-- quoted from: a.h -->\n```cpp\nint x;\n```\n```rust\nlet x;\n```\n```c\nint y;\n```\n";
    let expected = [(2, Some("a.h".to_owned()), "int x;\n".to_owned()), (5, None, "let x;\n".to_owned())];
    assert_eq!(quotes(page_with_quotes), expected);
    assert_eq!(resolve(Path::new("docs/a/b.md"), "../c.md"), Path::new("docs/c.md"));
    let pages = BTreeMap::from([(PathBuf::from("a.md"), page.to_owned())]);
    let nowhere = Path::new("/nonexistent");
    for (to, works) in
        [("#top", true), ("a.md#top-1", true), ("#none", false), ("b.md", false), ("https://x.example", true)]
    {
        assert_eq!(broken(nowhere, &pages, Path::new("a.md"), to).is_none(), works, "{to}");
    }
}

/// Paths of the project in code spans; one with a placeholder, such as `src/ops/FAMILY.rs` or `kernels/*.hip`, names no
/// file.
fn named_files(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        if fenced {
            continue;
        }
        for span in line.split('`').skip(1).step_by(2) {
            let plain =
                span.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "/._-+".contains(c));
            if plain && span.split_once('/').is_some_and(|(first, _)| FOLDERS.contains(&first)) {
                found.insert(span.to_owned());
            }
        }
    }
    found
}

/// Line, file and text of each quote; without a file for a block of Rust that names none.
fn quotes(text: &str) -> Vec<(usize, Option<String>, String)> {
    let mut found = Vec::new();
    let mut from: Option<String> = None;
    let mut lines = text.lines().enumerate();
    while let Some((i, line)) = lines.next() {
        if let Some(path) = line.strip_prefix("<!-- quoted from: ") {
            from = Some(path.trim_end_matches(" -->").to_owned());
        } else if let Some(language) = line.strip_prefix("```") {
            let code: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            if from.is_some() || language == "rust" {
                found.push((i + 1, from.take(), code.join("\n") + "\n"));
            }
        } else if !line.trim().is_empty() {
            from = None;
        }
    }
    found
}

/// Why a link of `page` leads nowhere.
fn broken(root: &Path, pages: &BTreeMap<PathBuf, String>, page: &Path, to: &str) -> Option<String> {
    if ["http://", "https://", "mailto:"].iter().any(|scheme| to.starts_with(scheme)) {
        return None;
    }
    let (file, anchor) = to.split_once('#').map_or((to, None), |(file, anchor)| (file, Some(anchor)));
    let target = if file.is_empty() { page.to_owned() } else { resolve(page, file) };
    let Some(anchor) = anchor else {
        let there = pages.contains_key(&target) || root.join(&target).exists();
        return (!there).then(|| format!("there is no {}", target.display()));
    };
    match pages.get(&target) {
        None => Some(format!("there is no page {}", target.display())),
        Some(text) if anchors(text).contains(anchor) => None,
        Some(_) => Some(format!("{} has no heading #{anchor}", target.display())),
    }
}

/// Line and target of each link and image outside of code.
fn links(text: &str) -> Vec<(usize, String)> {
    let text = without_code(text);
    text.match_indices("](")
        .filter_map(|(at, _)| {
            let target = text[at + 2..].split(')').next()?.split_whitespace().next()?;
            Some((text[..at].matches('\n').count() + 1, target.to_owned()))
        })
        .collect()
}

/// The anchors of a page's headings, as GitHub makes them: of equal ones the later get a number.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut fenced = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if fenced || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let anchor = anchor_of(heading.trim());
        let before = seen.entry(anchor.clone()).or_default();
        found.insert(if *before == 0 { anchor } else { format!("{anchor}-{before}") });
        *before += 1;
    }
    found
}

fn anchor_of(heading: &str) -> String {
    let mut shown = String::new();
    let mut rest = heading;
    // Of a link only the text is shown.
    while let Some((before, after)) = rest.split_once("](") {
        shown.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    shown.push_str(rest);
    shown
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            _ => c.is_alphanumeric().then_some(c),
        })
        .collect()
}

/// The text with code blocks and code spans blanked, line for line.
fn without_code(text: &str) -> String {
    let mut fenced = false;
    let lines = text.lines().map(|line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        if fenced || fence {
            return String::new();
        }
        line.split('`').enumerate().map(|(i, part)| if i % 2 == 0 { part } else { "" }).collect()
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// A relative path of a page as a path from the root.
fn resolve(page: &Path, file: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(file).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

/// Path from the root, and text, of each Markdown file of the project.
fn pages(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !NOT_OURS.contains(&name.as_str()) && !path.is_symlink() {
                    folders.push(path);
                }
            } else if name.ends_with(".md") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.insert(path.strip_prefix(root).unwrap().to_owned(), text);
            }
        }
    }
    found
}
