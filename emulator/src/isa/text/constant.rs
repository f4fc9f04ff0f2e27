//! Constants. Literals that equal an inline constant are written like one.

use half::{bf16, f16};

use crate::isa::tables::Kind;

/// Inline constants with a point, and their text. The last has more digits in operations with 64 bits.
const FLOATS: [(f32, &str); 9] = [
    (0.5, "0.5"),
    (-0.5, "-0.5"),
    (1.0, "1.0"),
    (-1.0, "-1.0"),
    (2.0, "2.0"),
    (-2.0, "-2.0"),
    (4.0, "4.0"),
    (-4.0, "-4.0"),
    (0.159_154_94, "0.15915494"),
];

/// An inline constant with a point.
pub(super) fn float(value: f64, kind: Kind) -> String {
    if kind == Kind::Integer16 {
        return format!("{:#x}", f16::from_f64(value).to_bits());
    }
    match FLOATS.iter().find(|(known, _)| *known == value as f32) {
        Some((_, text)) if *text == "0.15915494" && is_wide(kind) => "0.15915494309189532".to_owned(),
        Some((_, text)) => (*text).to_owned(),
        None => value.to_string(),
    }
}

/// A literal.
pub(super) fn literal(value: u32, kind: Kind) -> String {
    match kind {
        Kind::Literal | Kind::Float64 => format!("{value:#x}"),
        Kind::Float16 => half(value, |float| f16::from_f32(float).to_bits()),
        Kind::Bfloat16 => half(value, |float| bf16::from_f32(float).to_bits()),
        Kind::Pair16 => pair(value),
        Kind::Integer16 => word(value).unwrap_or_else(|| format!("{:#x}", value & 0xffff)),
        kind if is_wide(kind) && value <= 64 => value.to_string(),
        kind if is_wide(kind) => format!("{value:#x}"),
        _ => word(value).unwrap_or_else(|| format!("{value:#x}")),
    }
}

fn is_wide(kind: Kind) -> bool {
    matches!(kind, Kind::Float64 | Kind::Registers(2) | Kind::Tile(_))
        || matches!(kind, Kind::Registers(count) if count > 2)
}

/// A value of 32 bits that is an inline constant.
fn word(value: u32) -> Option<String> {
    if (-16..=64).contains(&(value as i32)) {
        return Some((value as i32).to_string());
    }
    let (_, text) = FLOATS.iter().find(|(float, _)| float.to_bits() == value)?;
    Some((*text).to_owned())
}

fn half(value: u32, bits: fn(f32) -> u16) -> String {
    let value = value as u16;
    if (-16..=64).contains(&(value as i16)) {
        return (value as i16).to_string();
    }
    match FLOATS.iter().find(|(float, _)| bits(*float) == value) {
        Some((_, text)) => (*text).to_owned(),
        None => format!("{value:#x}"),
    }
}

fn pair(value: u32) -> String {
    if (-16..=64).contains(&(value as i32)) {
        return (value as i32).to_string();
    }
    match FLOATS.iter().find(|(float, _)| u32::from(f16::from_f32(*float).to_bits()) == value) {
        Some((_, text)) => (*text).to_owned(),
        None => format!("{value:#x}"),
    }
}
