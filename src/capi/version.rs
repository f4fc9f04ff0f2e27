//! Versions.

use std::ffi::c_char;

use super::table::{TABLE, rukh_table};
use super::types::RUKH_ABI_VERSION;

/// The version of the library as `major * 1000000 + minor * 1000 + patch`.
///
/// Never fails. Threads: any, at the same time.
#[unsafe(no_mangle)]
pub extern "C" fn rukh_version() -> u32 {
    const PARTS: [u32; 3] = [
        number(env!("CARGO_PKG_VERSION_MAJOR")),
        number(env!("CARGO_PKG_VERSION_MINOR")),
        number(env!("CARGO_PKG_VERSION_PATCH")),
    ];
    PARTS[0] * 1_000_000 + PARTS[1] * 1000 + PARTS[2]
}

/// The version of the library as text, such as "0.1.0".
///
/// The text is static: never NULL, never freed. Never fails. Threads: any, at the same time.
#[unsafe(no_mangle)]
pub extern "C" fn rukh_version_string() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The `RUKH_ABI_VERSION` of the library that runs. A program that loads the library by hand compares
/// it with the `RUKH_ABI_VERSION` of its header.
///
/// Never fails. Threads: any, at the same time.
#[unsafe(no_mangle)]
pub extern "C" fn rukh_abi_version() -> u32 {
    RUKH_ABI_VERSION
}

/// The functions of the library as a table of pointers, for who loads the library at run time: one symbol to look up
/// in place of all. `rukh/rukh_table.h` has the table's members.
///
/// `version`: the `RUKH_ABI_VERSION` of the header that the program was compiled with.
///
/// The table is static: never freed. NULL where the library cannot serve the program: it is older than `version`, or of
/// another series (while the major is 0: another minor; else another major). Never fails otherwise. Threads: any, at the
/// same time.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub extern "C" fn rukh_api(version: u32) -> *const rukh_table {
    if serves(version) { &raw const TABLE } else { std::ptr::null() }
}

/// Whether this library runs what was compiled with the header of a version.
pub(super) const fn serves(version: u32) -> bool {
    const fn series(version: u32) -> u32 {
        match version / 1_000_000 {
            0 => version / 1000,
            major => major * 1000,
        }
    }
    series(version) == series(RUKH_ABI_VERSION) && version <= RUKH_ABI_VERSION
}

const fn number(text: &str) -> u32 {
    let mut n = 0;
    let mut digits = text.as_bytes();
    while let [digit, rest @ ..] = digits {
        n = n * 10 + (*digit - b'0') as u32;
        digits = rest;
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_agree_with_the_package() {
        let manifest = include_str!("../../Cargo.toml");
        let abi = format!(
            "{}.{}.{}",
            RUKH_ABI_VERSION / 1_000_000,
            RUKH_ABI_VERSION / 1000 % 1000,
            RUKH_ABI_VERSION % 1000
        );
        assert!(manifest.contains(&format!("[package.metadata.capi.library]\nversion = \"{abi}\"")), "{abi}");
        assert_eq!(rukh_version(), 1000);
        assert_eq!(rukh_abi_version(), RUKH_ABI_VERSION);
    }
    #[test]
    fn a_table_serves_programs_of_its_series_that_are_not_newer() {
        let table = &raw const TABLE;
        for (version, served) in [
            (RUKH_ABI_VERSION, true),
            (RUKH_ABI_VERSION - 1, true),
            (RUKH_ABI_VERSION + 1, false),
            (RUKH_ABI_VERSION + 1000, false),
            (RUKH_ABI_VERSION - 1000, false),
            (1_000_000 + RUKH_ABI_VERSION, false),
            (0, false),
            (u32::MAX, false),
        ] {
            assert_eq!(rukh_api(version) == table, served, "{version}");
            assert_eq!(rukh_api(version).is_null(), !served, "{version}");
        }
    }
}
