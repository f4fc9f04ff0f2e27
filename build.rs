//! Link arguments of the shared library, the GPU kernels, and the CMake version file that
//! `cargo capi install` ships.

use std::path::PathBuf;
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
    // cargo-c installs what lies here beside cmake/rukh-config.cmake.
    let folder = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("capi/share");
    let version = env::var("CARGO_PKG_VERSION").expect("cargo sets the version");
    fs::create_dir_all(&folder).expect("OUT_DIR can be written");
    fs::write(folder.join("rukh-config-version.cmake"), version_file(&version))
        .expect("OUT_DIR can be written");
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
