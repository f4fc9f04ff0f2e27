//! The folders that a platform's libraries are installed into, on Linux and on Windows.

use std::path::{Path, PathBuf};

use super::Platform;

/// What an installation is found by.
struct Layout {
    /// Variables that name its folder.
    variables: &'static [&'static str],
    /// Where the folders of its versions are, whose names begin so.
    below: Option<PathBuf>,
    prefix: &'static str,
    /// Where the libraries are in it.
    inside: &'static [&'static str],
}

/// Every folder that is looked into, those that a user named first. `variable` gives the value of an environment
/// variable that is set.
pub(super) fn folders(
    platform: Platform,
    windows: bool,
    variable: impl Fn(&str) -> Option<PathBuf>,
) -> Vec<PathBuf> {
    let layout = layout(platform, windows, &variable);
    let mut roots: Vec<PathBuf> = layout.variables.iter().filter_map(|name| variable(name)).collect();
    roots.extend(layout.below.iter().flat_map(|below| versions(below, layout.prefix)));
    let mut found: Vec<PathBuf> =
        roots.iter().flat_map(|root| layout.inside.iter().map(|inside| root.join(inside))).collect();
    if windows {
        // The loader is kept from this list, because it would look into the current folder as well.
        let listed = variable("PATH").unwrap_or_default();
        found.extend(std::env::split_paths(&listed).filter(|folder| folder.is_absolute()));
    }
    found
}

fn layout(platform: Platform, windows: bool, variable: impl Fn(&str) -> Option<PathBuf>) -> Layout {
    let programs = || variable("ProgramFiles");
    match (platform, windows) {
        (Platform::Amd, false) => Layout {
            variables: &["ROCM_PATH", "HIP_PATH"],
            below: Some("/opt".into()),
            prefix: "rocm",
            inside: &["lib", "lib64"],
        },
        (Platform::Nvidia, false) => Layout {
            variables: &["CUDA_PATH", "CUDA_HOME"],
            below: Some("/usr/local".into()),
            prefix: "cuda",
            inside: &["lib", "lib64"],
        },
        (Platform::Amd, true) => Layout {
            variables: &["ROCM_PATH", "HIP_PATH"],
            below: programs().map(|folder| folder.join("AMD").join("ROCm")),
            prefix: "",
            inside: &["bin"],
        },
        (Platform::Nvidia, true) => Layout {
            variables: &["CUDA_PATH", "CUDA_HOME"],
            below: programs().map(|folder| folder.join("NVIDIA GPU Computing Toolkit").join("CUDA")),
            prefix: "v",
            inside: &["bin/x64", "bin"],
        },
    }
}

/// The folders in `below` whose names begin with `prefix`, the newest version first.
fn versions(below: &Path, prefix: &str) -> Vec<PathBuf> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_both_systems() {
        let root = std::env::temp_dir().join(format!("rukh-folders-{}", std::process::id()));
        let rocm = root.join("AMD").join("ROCm");
        std::fs::create_dir_all(rocm.join("6.2")).unwrap();
        std::fs::create_dir_all(rocm.join("6.4")).unwrap();
        let set = |pairs: &[(&str, &Path)]| {
            let pairs: Vec<(String, PathBuf)> =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            move |name: &str| pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        let own = root.join("own");
        let windows = folders(Platform::Amd, true, set(&[("ProgramFiles", &root), ("HIP_PATH", &own)]));
        assert_eq!(windows, [own.join("bin"), rocm.join("6.4").join("bin"), rocm.join("6.2").join("bin")]);
        let path = folders(Platform::Nvidia, true, set(&[("CUDA_PATH", &own), ("PATH", &root)]));
        assert_eq!(path, [own.join("bin/x64"), own.join("bin"), root.clone()]);
        let relative = folders(Platform::Nvidia, true, set(&[("PATH", Path::new("here"))]));
        assert!(relative.is_empty());
        let linux = folders(Platform::Amd, false, set(&[("ROCM_PATH", &own), ("PATH", &root)]));
        assert_eq!(linux[..2], [own.join("lib"), own.join("lib64")]);
        assert!(!linux.contains(&root));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
