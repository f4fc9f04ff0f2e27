//! Finds and opens the runtime libraries: `libamdhip64` over its sonames, and `libcuda`.

use std::path::{Path, PathBuf};

use libloading::Library;

use super::Platform;

/// Names this library file, for a runtime that stands in no usual place.
const LIBRARY_VARIABLE: &str = "RUKH_HIP_LIBRARY";

/// The newest first. Without a version the name is a development link, which may be all there is.
const AMD_SONAMES: [&str; 4] = ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"];

/// An opened library and where it was found.
pub(super) struct Opened {
    pub(super) library: Library,
    pub(super) path: PathBuf,
}

/// Opens the first library of the platform that is there; `Err` lists each path that was tried, with
/// what the loader said.
pub(super) fn open(platform: Platform) -> Result<Opened, String> {
    let mut tried = Vec::new();
    for path in candidates(platform) {
        // SAFETY: loading runs the library's initialisers; it is the GPU's runtime, or the one that
        // the user named.
        match unsafe { Library::new(&path) } {
            Ok(library) => return Ok(Opened { path: loaded_path(&path), library }),
            Err(e) => tried.push(format!("{} ({})", path.display(), reason(&e))),
        }
    }
    Err(tried.join(", "))
}

fn candidates(platform: Platform) -> Vec<PathBuf> {
    if platform == Platform::Nvidia {
        return vec!["libcuda.so.1".into()];
    }
    if let Some(path) = variable(LIBRARY_VARIABLE) {
        return vec![path];
    }
    let mut folders: Vec<PathBuf> =
        ["ROCM_PATH", "HIP_PATH"].iter().filter_map(|name| Some(variable(name)?.join("lib"))).collect();
    let mut found: Vec<PathBuf> = AMD_SONAMES.iter().map(PathBuf::from).collect();
    folders.extend(rocm_folders());
    for folder in folders {
        found.extend(AMD_SONAMES.iter().map(|name| folder.join(name)).filter(|path| path.exists()));
    }
    found
}

/// `/opt/rocm/lib` and `/opt/rocm-*/lib`, the newest version first.
fn rocm_folders() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir("/opt")
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("rocm"))
        .map(|entry| entry.path().join("lib"))
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// Where the loader found a library that was opened by name alone.
fn loaded_path(path: &Path) -> PathBuf {
    let Some(name) = path.file_name().filter(|name| path.as_os_str() == *name) else {
        return path.to_owned();
    };
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let stem = name.to_string_lossy();
    let found = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..])).find(|mapped| {
        Path::new(mapped).file_name().is_some_and(|f| f.to_string_lossy().starts_with(&*stem))
    });
    found.map_or_else(|| path.to_owned(), PathBuf::from)
}

/// The loader's words, without the path that it repeats.
fn reason(error: &libloading::Error) -> String {
    let text = error.to_string();
    let text = std::error::Error::source(error).map_or(text, ToString::to_string);
    text.rsplit(": ").next().unwrap_or(&text).to_owned()
}
