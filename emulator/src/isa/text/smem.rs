//! SMEM.

use super::Writer;
use crate::isa::tables::Kind;
use crate::isa::{Generation, Source};

pub(super) fn text(writer: &Writer<'_>) -> String {
    let instruction = writer.instruction;
    let name = instruction.name;
    let [destination, _] = writer.entry.operands.destinations;
    let [base, stored, ..] = writer.entry.operands.sources;
    let prefetch = name.contains("_prefetch_");
    let mut operands = Vec::new();
    if name.starts_with("s_atc_probe") {
        operands.push(instruction.modifiers.immediate.to_string());
    } else if stored != Kind::None {
        operands.push(writer.operand(&instruction.sources[2], stored));
    } else if destination != Kind::None {
        operands.push(writer.operand(&instruction.destinations[0], destination));
    }
    if base != Kind::None {
        operands.push(writer.operand(&instruction.sources[0], base));
    }
    let mut modifiers = String::new();
    if prefetch {
        operands.push(hexadecimal(instruction.modifiers.memory.offset));
        operands.push(match instruction.sources[1].source {
            Source::None => "null".to_owned(),
            _ => writer.operand(&instruction.sources[1], Kind::Registers(1)),
        });
        operands.push(instruction.modifiers.immediate.to_string());
    } else if base != Kind::None {
        modifiers = offset(writer, &mut operands);
    }
    if !operands.is_empty() && !prefetch {
        modifiers += &writer.policy();
    }
    writer.line("", &operands, &modifiers)
}

/// A scalar offset goes to the operands, with the immediate as a modifier; otherwise the immediate goes there.
fn offset(writer: &Writer<'_>, operands: &mut Vec<String>) -> String {
    let instruction = writer.instruction;
    let offset = hexadecimal(instruction.modifiers.memory.offset);
    if instruction.sources[1].source == Source::None {
        let null = instruction.modifiers.memory.offset == 0
            && matches!(writer.generation, Generation::Gfx10 | Generation::Gfx11);
        operands.push(if null { "null".to_owned() } else { offset });
        return String::new();
    }
    operands.push(writer.operand(&instruction.sources[1], Kind::Registers(1)));
    if instruction.modifiers.memory.offset == 0 { String::new() } else { format!(" offset:{offset}") }
}

fn hexadecimal(value: i32) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{:#x}", value.unsigned_abs())
}
