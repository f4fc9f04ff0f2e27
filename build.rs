//! Link arguments of the shared library, the GPU kernels, and the CMake version file that
//! `cargo capi install` ships.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

#[path = "kernels/build.rs"]
mod kernels;

fn main() {
    kernels::build();
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=Cargo.toml");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // dlclose must not unload code that threads of the library, or its fork handlers, still run.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    if env::var("PROFILE").as_deref() == Ok("release") && linker_folds(&out) {
        // Generic functions for types of one size are often the same machine code: half a megabyte of it.
        println!("cargo::rustc-cdylib-link-arg={FOLD}");
    }
    // cargo-c installs what lies here beside cmake/rukh-config.cmake.
    let folder = out.join("capi/share");
    let version = env::var("CARGO_PKG_VERSION").expect("cargo sets the version");
    fs::create_dir_all(&folder).expect("OUT_DIR can be written");
    fs::write(folder.join("rukh-config-version.cmake"), version_file(&version))
        .expect("OUT_DIR can be written");
}

/// Keeps functions once that are the same machine code. Nothing compares addresses of functions, which Rust allows to be
/// the same, and capi-tests/run.sh looks whether those that are exported have addresses of their own.
const FOLD: &str = "-Wl,--icf=all";

/// Whether the linker knows that option, which LLVM's, gold and mold do and GNU's and Windows' do not: links a library of
/// nothing with it.
fn linker_folds(out: &Path) -> bool {
    // A folder that is removed afterwards: the library of nothing takes megabytes.
    let out = out.join("folds");
    let source = out.join("nothing.rs");
    let Ok(()) = fs::create_dir_all(&out).and_then(|()| fs::write(&source, "")) else { return false };
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let flags = flags.split('\u{1f}').filter(|flag| !flag.is_empty());
    let linker = env::var("RUSTC_LINKER").map(|linker| format!("-Clinker={linker}"));
    let mut rustc = Command::new(env::var_os("RUSTC").expect("cargo sets RUSTC"));
    rustc
        .args(flags)
        .args(linker.ok())
        .arg("--target")
        .arg(env::var_os("TARGET").expect("cargo sets TARGET"));
    rustc.args(["--crate-type=cdylib", &format!("-Clink-arg={FOLD}"), "--out-dir"]).arg(&out).arg(&source);
    let folds =
        rustc.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    // What cannot be removed is in nobody's way.
    let _ = fs::remove_dir_all(&out);
    folds
}

/// While the version is 0.x, a program that asks for 0.N takes any 0.N of at least its patch number.
fn version_file(version: &str) -> String {
    let mut numbers = version.split('.');
    let (major, minor) = (numbers.next().unwrap_or("0"), numbers.next().unwrap_or("0"));
    format!(
        r#"set(PACKAGE_VERSION "{version}")
set(PACKAGE_VERSION_COMPATIBLE FALSE)
set(PACKAGE_VERSION_EXACT FALSE)
if(PACKAGE_FIND_VERSION_MAJOR STREQUAL "{major}"
   AND ("{major}" GREATER 0 OR PACKAGE_FIND_VERSION_COUNT EQUAL 1 OR PACKAGE_FIND_VERSION_MINOR STREQUAL "{minor}")
   AND NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
if(NOT CMAKE_SIZEOF_VOID_P STREQUAL "" AND NOT CMAKE_SIZEOF_VOID_P EQUAL {pointer})
  set(PACKAGE_VERSION_UNSUITABLE TRUE)
endif()
"#,
        pointer = env::var("CARGO_CFG_TARGET_POINTER_WIDTH").map_or(8, |w| w.parse().unwrap_or(64) / 8),
    )
}
