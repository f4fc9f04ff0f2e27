//! Finds and opens libraries of the platforms: `libamdhip64` over its sonames, `libcuda`, and the libraries
//! of kernels that may stand beside them.

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
    /// What was tried before it.
    pub(super) tried: Tries,
}

/// A file that could not be opened.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Try {
    pub(crate) path: PathBuf,
    /// What the loader said.
    pub(crate) reason: String,
}

/// Files that could not be opened, in the order in which they were tried.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tries(pub(crate) Vec<Try>);

impl std::fmt::Display for Tries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, Try { path, reason }) in self.0.iter().enumerate() {
            write!(f, "{}{} ({reason})", if i == 0 { "" } else { ", " }, path.display())?;
        }
        Ok(())
    }
}

/// Why a platform has no device.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NoDevice {
    pub(super) text: String,
    /// The files that could not be opened.
    pub(crate) tried: Tries,
}

impl std::fmt::Display for NoDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Opens the platform's runtime; `Err` lists each path that was tried, with what the loader said.
pub(super) fn open(platform: Platform) -> Result<Opened, Tries> {
    open_first(match platform {
        Platform::Nvidia => vec!["libcuda.so.1".into()],
        Platform::Amd => candidates(platform, LIBRARY_VARIABLE, &AMD_SONAMES),
    })
}

/// Opens a library of kernels by its names, the newest first, or the file that a variable names. A variable
/// that is set to nothing keeps the library away.
pub(super) fn open_kernels(platform: Platform, file: &str, names: &[&str]) -> Result<Opened, String> {
    if std::env::var_os(file).is_some_and(|value| value.is_empty()) {
        return Err(format!("{file} is empty"));
    }
    open_first(candidates(platform, file, names)).map_err(|tried| tried.to_string())
}

fn open_first(paths: Vec<PathBuf>) -> Result<Opened, Tries> {
    let mut tried = Tries::default();
    for path in paths {
        // SAFETY: loading runs the library's initialisers; it is one of the GPU's, or the one that the
        // user named.
        match unsafe { Library::new(&path) } {
            Ok(library) => return Ok(Opened { path: loaded_path(&path), library, tried }),
            Err(e) => tried.0.push(Try { reason: reason(&e), path }),
        }
    }
    Err(tried)
}

/// The file that the variable names, or the names on the loader's paths and then in the platform's folders.
fn candidates(platform: Platform, file: &str, names: &[&str]) -> Vec<PathBuf> {
    if let Some(path) = variable(file) {
        return vec![path];
    }
    let (variables, below, prefix): (&[&str], _, _) = match platform {
        Platform::Amd => (&["ROCM_PATH", "HIP_PATH"], "/opt", "rocm"),
        Platform::Nvidia => (&["CUDA_PATH", "CUDA_HOME"], "/usr/local", "cuda"),
    };
    let mut folders: Vec<PathBuf> = variables.iter().filter_map(|name| variable(name)).collect();
    folders.extend(versions(below, prefix));
    let mut found: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
    for folder in folders {
        let inside = names.iter().flat_map(|name| ["lib", "lib64"].map(|lib| folder.join(lib).join(name)));
        found.extend(inside.filter(|path| path.exists()));
    }
    found
}

/// `/opt/rocm` and `/opt/rocm-*`, or what stands for them, the newest version first.
fn versions(below: &str, prefix: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(below)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
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
