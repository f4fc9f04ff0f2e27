//! Libraries that stand in for those of a GPU.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a source of this folder into a library.
pub fn library(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hip").join(source);
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stand_in_{name}.so"));
    let status = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
        .args([&library, &source])
        .args(flags)
        .status()
        .unwrap();
    assert!(status.success(), "{} compiles", source.display());
    library
}
