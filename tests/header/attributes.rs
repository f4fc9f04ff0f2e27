//! What the header tells compilers of each function: that its status must be looked at, and that it is deprecated.

use crate::api::{Api, Function};

/// What cbindgen writes before each function.
const PREFIX: &str = "\nRUKH_API\n";

/// The header with the attributes of its functions.
pub fn add(header: &str, api: &Api) -> String {
    let mut parts = header.split(PREFIX);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (declaration, _) = part.split_once('(').unwrap();
        let name = declaration.rsplit([' ', '*']).next().unwrap();
        let function = api.functions.iter().find(|function| function.name == name);
        let function = function.unwrap_or_else(|| panic!("{name} is not exported"));
        let must_check = if must_check(function) { "RUKH_MUST_CHECK " } else { "" };
        out += &format!("\n{}{must_check}RUKH_API\n{part}", deprecated(function));
    }
    out
}

/// A line that marks what is deprecated; else nothing.
pub fn deprecated(function: &Function) -> String {
    function.deprecated.as_ref().map_or_else(String::new, |note| format!("RUKH_DEPRECATED(\"{note}\")\n"))
}

/// Whether what a function returns must be looked at.
fn must_check(function: &Function) -> bool {
    function.returns.as_ref().is_some_and(|kind| kind.base == "rukh_status" && kind.pointers.is_empty())
}
