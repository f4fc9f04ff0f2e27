//! Comparisons of 32 bits.

use iced_x86::Code;

use super::super::codes::{COMPARE_FLOATS, COMPARE_SIGNED, COMPARE_UNSIGNED};
use super::Emit;

/// Names of comparisons of floats, and the predicates of VCMPPS.
const FLOATS: [(&str, u32); 14] = [
    ("lt", 0x11),
    ("eq", 0x00),
    ("le", 0x12),
    ("gt", 0x1e),
    ("lg", 0x0c),
    ("ge", 0x1d),
    ("o", 0x07),
    ("u", 0x03),
    ("nge", 0x19),
    ("nlg", 0x08),
    ("ngt", 0x1a),
    ("nle", 0x16),
    ("neq", 0x04),
    ("nlt", 0x15),
];

/// Of integers, and the predicates of VPCMPD and VPCMPUD.
const INTEGERS: [(&str, u32); 7] =
    [("lt", 1), ("eq", 0), ("le", 2), ("gt", 6), ("ne", 4), ("lg", 4), ("ge", 5)];

/// The row of V_CMP_ or V_CMPX_, by the name behind it.
pub fn find(name: &str) -> Option<Emit> {
    let (operation, ty) = name.rsplit_once('_')?;
    let (code, predicates): (Code, &[(&str, u32)]) = match ty {
        "f32" => (COMPARE_FLOATS, &FLOATS),
        "i32" => (COMPARE_SIGNED, &INTEGERS),
        "u32" => (COMPARE_UNSIGNED, &INTEGERS),
        _ => return None,
    };
    let &(_, predicate) = predicates.iter().find(|(known, _)| *known == operation)?;
    Some(Emit::Compare(code, predicate))
}
