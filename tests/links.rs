//! Every link between the Markdown files leads somewhere: the file exists, and so does the heading.
//!
//! A page under docs/ that docs/README.md does not name would not be found by a reader: that fails too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Folders that hold what was built or downloaded.
const NOT_OURS: [&str; 5] = ["target", "build", ".git", ".venv", "shared"];

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
    let named: BTreeSet<PathBuf> =
        links(&pages[index]).iter().map(|(_, to)| resolve(index, to.split('#').next().unwrap_or(to))).collect();
    let missing: Vec<&PathBuf> = pages
        .keys()
        .filter(|page| page.starts_with("docs") && *page != index && !named.contains(*page))
        .collect();
    assert!(missing.is_empty(), "docs/README.md has no link to {missing:?}");
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
    let expected = [(3, "b.md#c"), (3, "e.svg"), (11, "g.md")];
    assert_eq!(found, expected.map(|(line, to)| (line, to.to_owned())));
    assert_eq!(anchors(page), BTreeSet::from(["top".to_owned(), "top-1".to_owned()]));
    assert_eq!(resolve(Path::new("docs/a/b.md"), "../c.md"), Path::new("docs/c.md"));
    let pages = BTreeMap::from([(PathBuf::from("a.md"), page.to_owned())]);
    let nowhere = Path::new("/nonexistent");
    for (to, works) in
        [("#top", true), ("a.md#top-1", true), ("#none", false), ("b.md", false), ("https://x.example", true)]
    {
        assert_eq!(broken(nowhere, &pages, Path::new("a.md"), to).is_none(), works, "{to}");
    }
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
