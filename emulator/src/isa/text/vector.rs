//! VOP1, VOP2, VOPC, VOP3, VOP3P, VOPD.

use super::Writer;
use crate::isa::tables::Kind;
use crate::isa::{Encoding, Generation, Operand, Source, Target};

pub(super) fn text(writer: &Writer<'_>) -> String {
    writer.line(suffix(writer), &operands(writer), &writer.modifiers())
}

/// Both halves of a dual operation.
pub(super) fn dual(writer: &Writer<'_>, target: Target) -> String {
    let name = writer.name().replacen("v_", "v_dual_", 1);
    let mut operands = operands(writer);
    if writer.instruction.name == "v_cndmask_b32" {
        operands.pop();
    }
    let first = format!("{name} {}", operands.join(", "));
    match &writer.instruction.second {
        Some(second) => format!("{first} :: {}", super::text(second, target)),
        None => first,
    }
}

fn suffix(writer: &Writer<'_>) -> &'static str {
    let modifiers = &writer.instruction.modifiers;
    let (dpp, sdwa) = (modifiers.dpp.is_some(), modifiers.sdwa.is_some());
    match writer.instruction.encoding {
        Encoding::Vop3 | Encoding::Vop3p if dpp => "_e64_dpp",
        Encoding::Vop3 if writer.promoted && !is_empty(writer) => "_e64",
        Encoding::Vop3 | Encoding::Vop3p => "",
        Encoding::Vopc if dpp => "",
        _ if dpp => "_dpp",
        _ if sdwa => "_sdwa",
        _ if is_plain(writer) => "",
        _ => "_e32",
    }
}

fn is_empty(writer: &Writer<'_>) -> bool {
    writer.entry.operands.source_count() == 0
}

/// Operations without a long encoding, which need no suffix.
fn is_plain(writer: &Writer<'_>) -> bool {
    let gfx10 = writer.generation >= Generation::Gfx10;
    match writer.instruction.name {
        "v_readfirstlane_b32" | "v_swap_b32" | "v_swaprel_b32" | "v_accvgpr_mov_b32" | "v_permlane64_b32" => {
            true
        }
        "v_pk_fmac_f16" | "v_dot2acc_f32_f16" | "v_dot4c_i32_i8" => gfx10,
        _ => is_empty(writer) || writer.entry.operands.sources.contains(&Kind::Literal),
    }
}

fn operands(writer: &Writer<'_>) -> Vec<String> {
    let instruction = writer.instruction;
    let kinds = &writer.entry.operands;
    let mut operands = Vec::new();
    let gfx9 = writer.is_gfx9();
    if !instruction.name.starts_with("v_cmpx_") || gfx9 {
        for (destination, kind) in instruction.destinations.iter().zip(kinds.destinations) {
            if kind == Kind::None {
                continue;
            }
            let half = kind == Kind::Bits16 && instruction.name == "v_mov_b16";
            let high = instruction.modifiers.op_sel >> 3 & 1 != 0;
            let suffix = if !half {
                ""
            } else if high {
                ".h"
            } else {
                ".l"
            };
            operands.push(writer.operand(destination, kind) + suffix);
        }
    }
    for (index, (source, kind)) in instruction.sources.iter().zip(kinds.sources).enumerate() {
        if !matches!(kind, Kind::None | Kind::Destination) {
            operands.push(self::source(writer, index, source, kind));
        }
    }
    operands
}

fn source(writer: &Writer<'_>, index: usize, operand: &Operand, kind: Kind) -> String {
    let instruction = writer.instruction;
    let modifiers = &instruction.modifiers;
    let text = writer.operand(operand, kind);
    let mix = instruction.name.starts_with("v_fma_mix");
    if instruction.encoding == Encoding::Vop3p && !mix {
        return text;
    }
    if instruction.name == "v_mov_b16" && matches!(operand.source, Source::Vector(_)) {
        return text + if modifiers.op_sel >> index & 1 != 0 { ".h" } else { ".l" };
    }
    let bit = 1u8 << index;
    let absolute = if mix { modifiers.negate_high } else { modifiers.absolute } & bit != 0;
    let negate = modifiers.negate & bit != 0;
    let signed = modifiers.sdwa.is_some_and(|sdwa| index < 2 && sdwa.signed[index]);
    let constant = matches!(operand.source, Source::Integer(_) | Source::Float(_) | Source::Literal(_));
    let text = if absolute { format!("|{text}|") } else { text };
    match (negate, signed) {
        (true, _) if constant && !absolute => format!("neg({text})"),
        (true, _) => format!("-{text}"),
        (_, true) => format!("sext({text})"),
        _ => text,
    }
}
