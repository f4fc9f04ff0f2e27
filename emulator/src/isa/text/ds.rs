//! DS.

use super::Writer;
use crate::isa::Source;
use crate::isa::tables::Kind;

pub(super) fn text(writer: &Writer<'_>) -> String {
    let instruction = writer.instruction;
    let memory = instruction.modifiers.memory;
    let mut operands = Vec::new();
    if writer.entry.operands.destinations[0] != Kind::None {
        operands.push(writer.operand(&instruction.destinations[0], Kind::Registers(1)));
    }
    let sources = instruction.sources.iter().filter(|source| source.source != Source::None);
    operands.extend(sources.map(|source| writer.operand(source, Kind::Registers(1))));
    let mut modifiers = String::new();
    if instruction.name.contains("_2addr_") {
        if memory.offset != 0 {
            modifiers += &format!(" offset0:{}", memory.offset);
        }
        if memory.offset1 != 0 {
            modifiers += &format!(" offset1:{}", memory.offset1);
        }
    } else if memory.offset != 0 {
        modifiers += &match instruction.name {
            "ds_swizzle_b32" => format!(" offset:{}", swizzle(memory.offset as u32)),
            _ => format!(" offset:{}", memory.offset),
        };
    }
    if memory.gds {
        modifiers += " gds";
    }
    writer.line("", &operands, &modifiers)
}

/// How DS_SWIZZLE exchanges lanes (RDNA 3 ISA, "DS_SWIZZLE_B32").
fn swizzle(value: u32) -> String {
    if value & 0xff00 == 0x8000 {
        let [a, b, c, d] = [0, 2, 4, 6].map(|shift| value >> shift & 3);
        return format!("swizzle(QUAD_PERM,{a},{b},{c},{d})");
    }
    if value & 0x8000 != 0 {
        return value.to_string();
    }
    let [and, or, xor] = [0, 5, 10].map(|shift| value >> shift & 31);
    let group = 32 - and;
    if and == 31 && or == 0 && xor.is_power_of_two() {
        return format!("swizzle(SWAP,{xor})");
    }
    if and == 31 && or == 0 && xor > 0 && (xor + 1).is_power_of_two() {
        return format!("swizzle(REVERSE,{})", xor + 1);
    }
    if group > 1 && group.is_power_of_two() && or < group && xor == 0 {
        return format!("swizzle(BROADCAST,{group},{or})");
    }
    let [zeros, ones] = [0, 31].map(|lane| ((lane & and) | or) ^ xor);
    let bit = |bit: u32| match (zeros >> bit & 1, ones >> bit & 1) {
        (0, 0) => '0',
        (1, 1) => '1',
        (0, _) => 'p',
        _ => 'i',
    };
    let mask: String = (0..5).rev().map(bit).collect();
    format!("swizzle(BITMASK_PERM,\"{mask}\")")
}
