//! FLAT, GLOBAL, SCRATCH.

use super::Writer;
use crate::isa::tables::Kind;
use crate::isa::{Encoding, Source};

pub(super) fn text(writer: &Writer<'_>) -> String {
    let instruction = writer.instruction;
    let [address, data, scalar, _] = &instruction.sources;
    let any = Kind::Registers(1);
    let mut operands = Vec::new();
    if instruction.destinations[0].source != Source::None {
        operands.push(writer.operand(&instruction.destinations[0], any));
    }
    let without_address = matches!(instruction.name, "global_inv" | "global_wb" | "global_wbinv");
    if !without_address {
        if !instruction.name.contains("_addtid_") {
            operands.push(writer.operand(address, any));
        }
        if data.source != Source::None {
            operands.push(writer.operand(data, any));
        }
        if instruction.encoding != Encoding::Flat {
            operands.push(writer.operand(scalar, any));
        }
    }
    let offset = instruction.modifiers.memory.offset;
    let mut modifiers = if offset == 0 { String::new() } else { format!(" offset:{offset}") };
    modifiers += &writer.policy();
    writer.line("", &operands, &modifiers)
}
