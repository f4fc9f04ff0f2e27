//! What stands behind the operands of vector operations.

use super::Writer;
use crate::isa::tables::Kind;
use crate::isa::{Encoding, Generation};

impl Writer<'_> {
    /// With a space before each word.
    pub fn modifiers(&self) -> String {
        let modifiers = &self.instruction.modifiers;
        let name = self.instruction.name;
        if name.starts_with("v_accvgpr_") && self.instruction.encoding == Encoding::Vop3p {
            return String::new();
        }
        if name.starts_with("v_mfma_") || name.starts_with("v_smfmac_") {
            return self.matrix();
        }
        let mut text = String::new();
        match self.instruction.encoding {
            Encoding::Vop3p => text += &self.packed(),
            Encoding::Vop3 if self.has_op_sel() => text += &self.op_sel(),
            _ => {}
        }
        text += if modifiers.clamp { " clamp" } else { "" };
        text += ["", " mul:2", " mul:4", " div:2"][usize::from(modifiers.omod & 3)];
        if let Some(dpp) = modifiers.dpp {
            text += &self.dpp(dpp);
        }
        if let Some(sdwa) = modifiers.sdwa {
            text += &self.sdwa(sdwa);
        }
        text
    }

    /// Packed operations. Their high half's selectors are 1 unless said otherwise, of V_FMA_MIX 0.
    fn packed(&self) -> String {
        let modifiers = &self.instruction.modifiers;
        let name = self.instruction.name;
        let mix = name.starts_with("v_fma_mix");
        let matrix = name.contains("wmma_") || name.contains("swmmac_");
        let count = self.entry.operands.source_count() - usize::from(name.contains("swmmac_"));
        let all = (1 << count) - 1;
        let usual = if mix { 0 } else { all };
        let mut text = list("op_sel", modifiers.op_sel & all, 0, count);
        if !matrix {
            text += &list("op_sel_hi", modifiers.op_sel_high & all, usual, count);
        }
        if !mix {
            text += &list("neg_lo", modifiers.negate & all, 0, count);
            text += &list("neg_hi", modifiers.negate_high & all, 0, count);
        }
        text
    }

    fn op_sel(&self) -> String {
        let op_sel = self.instruction.modifiers.op_sel;
        let sources = self.entry.operands.sources.iter();
        let count = sources.filter(|kind| !matches!(kind, Kind::None | Kind::Destination)).count();
        if self.instruction.name.starts_with("v_permlane") {
            return list("op_sel", op_sel & 3, 0, 2);
        }
        let all = op_sel & ((1 << count) - 1) | (op_sel >> 3 & 1) << count;
        list("op_sel", all, 0, count + 1)
    }

    /// Whether the assembler knows halves of an operation's registers. Of those with a short encoding it does not.
    fn has_op_sel(&self) -> bool {
        let name = self.instruction.name;
        let operands = &self.entry.operands;
        let gfx11 = self.generation >= Generation::Gfx11;
        if matches!(name, "v_fmac_f16" | "v_cvt_pk_f32_fp8" | "v_cvt_pk_f32_bf8") {
            return gfx11;
        }
        if name.starts_with("v_permlane16") || name.starts_with("v_permlanex16") {
            return true;
        }
        if name.starts_with("v_cvt_pk_") && name.ends_with("8_f32") || name.starts_with("v_cvt_sr_") {
            return name != "v_cvt_pk_u8_f32";
        }
        let halves = operands.sources.iter().any(|kind| kind.is_half() || *kind == Kind::Pair16);
        halves
            && !self.promoted
            && !name.contains("_legacy_")
            && !WHOLE.contains(&name)
            && !name.starts_with("v_s_")
    }

    fn matrix(&self) -> String {
        let modifiers = &self.instruction.modifiers;
        let mut text = String::new();
        for (name, value) in [("cbsz", modifiers.cbsz), ("abid", modifiers.abid)] {
            if value != 0 {
                text += &format!(" {name}:{value}");
            }
        }
        let negates =
            self.generation == Generation::Gfx940 && self.instruction.name.starts_with("v_mfma_f64_");
        match modifiers.blgp {
            0 => {}
            bits if negates => text += &list("neg", bits, 0, 3),
            bits => text += &format!(" blgp:{bits}"),
        }
        text
    }
}

/// Operations with 16 bits whose halves cannot be chosen.
const WHOLE: &[&str] = &[
    "v_mul_lo_u16",
    "v_lshlrev_b16",
    "v_lshrrev_b16",
    "v_ashrrev_i16",
    "v_max_u16",
    "v_max_i16",
    "v_min_u16",
    "v_min_i16",
    "v_and_b16",
    "v_or_b16",
    "v_xor_b16",
    "v_cndmask_b16",
    "v_maxmin_f16",
    "v_minmax_f16",
    "v_minimum_f16",
    "v_maximum_f16",
];

/// ` name:[0,1]`, nothing for the usual value.
fn list(name: &str, bits: u8, usual: u8, count: usize) -> String {
    if bits == usual {
        return String::new();
    }
    let bits: Vec<_> = (0..count).map(|bit| (bits >> bit & 1).to_string()).collect();
    format!(" {name}:[{}]", bits.join(","))
}
