//! MUBUF and VBUFFER.

use super::Writer;
use crate::isa::Source;
use crate::isa::tables::Kind;

pub(super) fn text(writer: &Writer<'_>) -> String {
    let instruction = writer.instruction;
    let memory = instruction.modifiers.memory;
    let [address, resource, offset, data] = &instruction.sources;
    let any = Kind::Registers(1);
    if resource.source == Source::None {
        return writer.line("", &[], &writer.policy());
    }
    let mut operands = Vec::new();
    if data.source != Source::None {
        operands.push(writer.operand(data, any));
    } else if instruction.destinations[0].source != Source::None {
        operands.push(writer.operand(&instruction.destinations[0], any));
    }
    operands.extend([address, resource, offset].map(|operand| writer.operand(operand, any)));
    let mut modifiers = String::new();
    for (set, text) in [(memory.idxen, " idxen"), (memory.offen, " offen")] {
        modifiers += if set { text } else { "" };
    }
    if memory.offset != 0 {
        modifiers += &format!(" offset:{}", memory.offset);
    }
    modifiers += &writer.policy();
    let named = instruction.name.contains("_load_lds_");
    for (set, text) in [(memory.tfe, " tfe"), (memory.lds && !named, " lds")] {
        modifiers += if set { text } else { "" };
    }
    writer.line("", &operands, &modifiers)
}
