//! Versions.

use std::ffi::c_char;

use super::types::RUKH_ABI_VERSION;

/// The version of the library that this header came with, its first number. It counts releases; what a program may rely on
/// is `RUKH_ABI_VERSION`.
pub const RUKH_VERSION_MAJOR: u32 = 0;
/// The second number of the version of the library that this header came with.
pub const RUKH_VERSION_MINOR: u32 = 1;
/// The third number of the version of the library that this header came with.
pub const RUKH_VERSION_PATCH: u32 = 0;

/// The version that the package's manifest has.
const PARTS: [u32; 3] = [
    number(env!("CARGO_PKG_VERSION_MAJOR")),
    number(env!("CARGO_PKG_VERSION_MINOR")),
    number(env!("CARGO_PKG_VERSION_PATCH")),
];

// cbindgen reads literals alone.
const _: () = assert!(
    PARTS[0] == RUKH_VERSION_MAJOR && PARTS[1] == RUKH_VERSION_MINOR && PARTS[2] == RUKH_VERSION_PATCH,
    "RUKH_VERSION_MAJOR, RUKH_VERSION_MINOR and RUKH_VERSION_PATCH are those of Cargo.toml"
);

/// The version of the library as `major * 1000000 + minor * 1000 + patch`.
///
/// Never fails. Threads: any, at the same time.
#[unsafe(no_mangle)]
pub extern "C" fn rukh_version() -> u32 {
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
}
