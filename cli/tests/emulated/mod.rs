//! The `rukh` command with the emulated GPU, where the tests are run with it.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The file of the emulated GPU's runtime, which `RUKH_HIP_LIBRARY` names where tests are to run with it: then it must be
/// there. Where nothing is named there is nothing to test, and that is said.
pub fn library() -> Option<String> {
    let library = std::env::var("RUKH_HIP_LIBRARY").ok();
    match &library {
        Some(named) => assert!(Path::new(named).exists(), "RUKH_HIP_LIBRARY: \"{named}\" is not there"),
        None => println!("skipped: RUKH_HIP_LIBRARY names no emulated GPU"),
    }
    library
}

/// Runs the command beside the digits model, with variables of the environment set.
pub fn rukh(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/digits");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rukh"));
    command.args(arguments).current_dir(example).envs(variables.iter().copied()).output().unwrap()
}

/// What the command printed, when it did what it was asked for.
pub fn printed(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let output = rukh(arguments, variables);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A file for a test alone, not there yet.
pub fn file(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}
