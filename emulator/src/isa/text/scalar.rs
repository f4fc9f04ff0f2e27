//! SOP1, SOP2, SOPC, SOPK, SOPP.

use super::Writer;
use super::immediate::{self, index_mode};
use crate::isa::tables::Kind;
use crate::isa::{Encoding, Source};

pub(super) fn text(writer: &Writer<'_>) -> String {
    match writer.instruction.encoding {
        Encoding::Sopk => with_immediate(writer),
        Encoding::Sopp => program(writer),
        _ => operation(writer),
    }
}

fn operation(writer: &Writer<'_>) -> String {
    let instruction = writer.instruction;
    let mut operands = Vec::new();
    if writer.entry.operands.destinations[0] != Kind::None {
        operands.push(writer.operand(&instruction.destinations[0], Kind::Registers(1)));
    }
    for (source, kind) in instruction.sources.iter().zip(writer.entry.operands.sources) {
        match kind {
            Kind::None | Kind::Destination => {}
            Kind::Immediate if instruction.name == "s_set_gpr_idx_on" => {
                operands.push(index_mode(instruction.modifiers.immediate as u32));
            }
            Kind::Immediate => {
                operands.push(immediate::message(instruction.modifiers.immediate as u32, writer.generation));
            }
            kind => operands.push(writer.operand(source, kind)),
        }
    }
    writer.line("", &operands, "")
}

fn with_immediate(writer: &Writer<'_>) -> String {
    let instruction = writer.instruction;
    let value = instruction.modifiers.immediate as u16;
    let immediate = match instruction.name {
        "s_getreg_b32" | "s_setreg_b32" | "s_setreg_imm32_b32" => {
            immediate::register(value, writer.generation)
        }
        "s_cbranch_i_fork" | "s_call_b64" | "s_subvector_loop_begin" | "s_subvector_loop_end" => {
            value.to_string()
        }
        "s_version" => immediate::version(value),
        _ => format!("{value:#x}"),
    };
    let mut operands = vec![immediate];
    let source = &instruction.sources[0];
    match instruction.name {
        "s_setreg_b32" => operands.push(writer.operand(source, Kind::Registers(1))),
        "s_setreg_imm32_b32" => operands.push(writer.operand(source, Kind::Registers(1))),
        _ if instruction.destinations[0].source != Source::None => {
            operands.insert(0, writer.operand(&instruction.destinations[0], Kind::Registers(1)));
        }
        _ if source.source != Source::None => operands.insert(0, writer.operand(source, Kind::Registers(1))),
        _ => {}
    }
    writer.line("", &operands, "")
}

fn program(writer: &Writer<'_>) -> String {
    let value = writer.instruction.modifiers.immediate as u16;
    if writer.entry.operands.sources[0] == Kind::None {
        return writer.line("", &[], "");
    }
    let name = writer.instruction.name;
    let operand = match name {
        "s_endpgm" if value == 0 => return writer.line("", &[], ""),
        "s_waitcnt" => immediate::wait_counts(value, writer.generation),
        "s_waitcnt_depctr" => immediate::dependency_counters(value),
        "s_delay_alu" => immediate::delay(value),
        "s_sendmsg" | "s_sendmsghalt" => immediate::message(u32::from(value), writer.generation),
        "s_set_gpr_idx_mode" => index_mode(u32::from(value)),
        "s_endpgm" | "s_branch" | "s_call_b64" => value.to_string(),
        _ if name.starts_with("s_cbranch_") => value.to_string(),
        _ if is_hexadecimal(name) || value > 64 => format!("{value:#x}"),
        _ => value.to_string(),
    };
    writer.line("", &[operand], "")
}

/// Those whose small immediates are hexadecimal too.
fn is_hexadecimal(name: &str) -> bool {
    name.starts_with("s_wait_")
        || matches!(
            name,
            "s_set_inst_prefetch_distance"
                | "s_clause"
                | "s_round_mode"
                | "s_singleuse_vdst"
                | "s_ttracedata_imm"
        )
}
