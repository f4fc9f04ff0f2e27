//! Finds and opens libraries of the platforms: HIP's runtime by its names, CUDA's driver, and the libraries of kernels
//! that may stand beside them.

use std::path::PathBuf;

use libloading::Library;

use super::Platform;
use super::library_folders::folders;

/// Names this library file, for a runtime that stands in no usual place.
const LIBRARY_VARIABLE: &str = "RUKH_HIP_LIBRARY";

/// What the file of a library is called, the newest version first.
pub(super) struct Names {
    pub(super) linux: &'static [&'static str],
    pub(super) windows: &'static [&'static str],
}

impl Names {
    fn on(&self, windows: bool) -> &'static [&'static str] {
        if windows { self.windows } else { self.linux }
    }
}

/// HIP's runtime. Without a version the name is a development link on Linux, which may be all there is, and version 5 on
/// Windows.
const AMD: Names = Names {
    linux: &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"],
    windows: &["amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"],
};

/// CUDA's driver, which the system's own loader finds.
const NVIDIA: Names = Names { linux: &["libcuda.so.1"], windows: &["nvcuda.dll"] };

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
    open_first(runtimes(platform, cfg!(windows)))
}

fn runtimes(platform: Platform, windows: bool) -> Vec<PathBuf> {
    match platform {
        Platform::Nvidia => NVIDIA.on(windows).iter().map(PathBuf::from).collect(),
        Platform::Amd => candidates(platform, LIBRARY_VARIABLE, &AMD, windows),
    }
}

/// Opens a library of kernels by its names, the newest first, or the file that a variable names. A variable
/// that is set to nothing keeps the library away.
pub(super) fn open_kernels(platform: Platform, file: &str, names: &Names) -> Result<Opened, String> {
    if std::env::var_os(file).is_some_and(|value| value.is_empty()) {
        return Err(format!("{file} is empty"));
    }
    open_first(candidates(platform, file, names, cfg!(windows))).map_err(|tried| tried.to_string())
}

fn open_first(paths: Vec<PathBuf>) -> Result<Opened, Tries> {
    let mut tried = Tries::default();
    for path in paths {
        // SAFETY: loading runs the library's initialisers; it is one of the GPU's, or the one that the
        // user named.
        match unsafe { system::open(&path) } {
            Ok(library) => return Ok(Opened { path: system::loaded_path(&library, &path), library, tried }),
            Err(e) => tried.0.push(Try { reason: reason(&e), path }),
        }
    }
    Err(tried)
}

/// The file that the variable names, or the names as the loader finds them and then in the platform's folders.
fn candidates(platform: Platform, file: &str, names: &Names, windows: bool) -> Vec<PathBuf> {
    if let Some(path) = variable(file) {
        return vec![path];
    }
    let names = names.on(windows);
    let mut found: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
    for folder in folders(platform, windows, variable) {
        found.extend(names.iter().map(|name| folder.join(name)).filter(|path| path.exists()));
    }
    found
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// The loader's words, without the path that it repeats.
fn reason(error: &libloading::Error) -> String {
    let text = error.to_string();
    let text = std::error::Error::source(error).map_or(text, ToString::to_string);
    text.rsplit(": ").next().unwrap_or(&text).to_owned()
}

#[cfg(not(windows))]
mod system {
    use std::path::{Path, PathBuf};

    use libloading::{Error, Library};

    /// # Safety
    /// As for `Library::new`: the library's initialisers run.
    pub(super) unsafe fn open(path: &Path) -> Result<Library, Error> {
        // SAFETY: the caller's promise.
        unsafe { Library::new(path) }
    }

    /// Where the loader found a library that was opened by name alone.
    pub(super) fn loaded_path(_library: &Library, path: &Path) -> PathBuf {
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
}

#[cfg(windows)]
mod system {
    use std::os::windows::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use libloading::os::windows::{
        LOAD_LIBRARY_SEARCH_DEFAULT_DIRS, LOAD_WITH_ALTERED_SEARCH_PATH, Library as WindowsLibrary,
    };
    use libloading::{Error, Library};
    use windows_sys::Win32::System::LibraryLoader::{GetModuleFileNameW, GetModuleHandleW};

    /// A name alone is looked for in the program's folder and the system's, and never in the current one, where anybody
    /// may put a file. What a library with a path needs is looked for beside it first.
    ///
    /// # Safety
    /// As for `Library::new`: the library's initialisers run.
    pub(super) unsafe fn open(path: &Path) -> Result<Library, Error> {
        let alone = path.file_name() == Some(path.as_os_str());
        let (path, flags) = if alone {
            (path.to_owned(), LOAD_LIBRARY_SEARCH_DEFAULT_DIRS)
        } else {
            (std::path::absolute(path).unwrap_or_else(|_| path.to_owned()), LOAD_WITH_ALTERED_SEARCH_PATH)
        };
        // SAFETY: the caller's promise.
        unsafe { WindowsLibrary::load_with_flags(path, flags) }.map(Library::from)
    }

    /// Where the loader found a library that was opened by name alone.
    pub(super) fn loaded_path(_library: &Library, path: &Path) -> PathBuf {
        let name: Vec<u16> = path.as_os_str().encode_wide().chain([0]).collect();
        let mut found = [0u16; 1024];
        // SAFETY: the name ends in NUL, and the library that it names stays loaded; the buffer is as long as told.
        let length = unsafe {
            let module = GetModuleHandleW(name.as_ptr());
            if module.is_null() {
                0
            } else {
                GetModuleFileNameW(module, found.as_mut_ptr(), found.len() as u32)
            }
        };
        match found.get(..length as usize) {
            Some(text) if (1..found.len()).contains(&text.len()) => {
                std::ffi::OsString::from_wide(text).into()
            }
            _ => path.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_tried_by_the_names_of_the_system() {
        let names = |platform, windows| -> Vec<String> {
            let paths = match platform {
                Platform::Nvidia => runtimes(platform, windows),
                // Without the folders of this machine.
                Platform::Amd => AMD.on(windows).iter().map(PathBuf::from).collect(),
            };
            paths.iter().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(names(Platform::Amd, true), ["amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"]);
        assert_eq!(names(Platform::Nvidia, true), ["nvcuda.dll"]);
        assert_eq!(
            names(Platform::Amd, false),
            ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"]
        );
        assert_eq!(names(Platform::Nvidia, false), ["libcuda.so.1"]);
        for windows in [false, true] {
            let tried = candidates(Platform::Amd, "RUKH_NO_SUCH_VARIABLE", &AMD, windows);
            let first = tried.iter().take(AMD.on(windows).len()).map(|path| path.display().to_string());
            assert_eq!(first.collect::<Vec<_>>(), names(Platform::Amd, windows));
        }
    }

    #[test]
    fn what_cannot_be_opened_is_told_with_the_loaders_reason() {
        let tried = open_first(vec!["rukh-no-such-library.7".into(), "/rukh/none.so".into()]).err().unwrap();
        assert_eq!(tried.0.len(), 2);
        assert!(tried.0.iter().all(|one| !one.reason.is_empty()), "{tried}");
    }
}
