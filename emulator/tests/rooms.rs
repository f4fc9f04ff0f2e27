//! Imports go down the list of rooms in src/lib.rs only.

use std::path::{Path, PathBuf};

/// Each room and those that it may import.
const ROOMS: &[(&str, &[&str])] = &[
    ("isa", &[]),
    ("code_object", &["isa"]),
    ("memory", &[]),
    ("machine", &["isa", "code_object", "memory"]),
    ("cost", &["isa", "machine"]),
    ("runtime", &["isa", "code_object", "memory", "machine", "cost"]),
];

#[test]
fn rooms_import_lower_ones() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (room, allowed) in ROOMS {
        for file in files(&source.join(room)) {
            // Tests may compute with anything.
            if file
                .components()
                .any(|part| ["tests", "testing", "tests.rs"].iter().any(|t| part.as_os_str() == *t))
            {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            for (other, _) in ROOMS.iter().filter(|(other, _)| other != room && !allowed.contains(other)) {
                assert!(!text.contains(&format!("crate::{other}")), "{} imports {other}", file.display());
            }
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}
