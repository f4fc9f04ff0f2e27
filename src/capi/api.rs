//! The functions as a table of pointers, for who loads the library at run time.

use super::table::{TABLE, rukh_table};
use super::types::serves;

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

#[cfg(test)]
mod tests {
    use super::super::types::RUKH_ABI_VERSION;
    use super::*;

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
