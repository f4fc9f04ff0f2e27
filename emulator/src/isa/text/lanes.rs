//! DPP and SDWA.

use super::Writer;
use crate::isa::{Dpp, Encoding, Generation, Sdwa};

impl Writer<'_> {
    /// With a space before each word.
    pub fn dpp(&self, dpp: Dpp) -> String {
        match dpp {
            Dpp::Dpp8 { lanes, fetch_inactive } => {
                let lanes = lanes.map(|lane| lane.to_string()).join(",");
                format!(" dpp8:[{lanes}]{}", if fetch_inactive { " fi:1" } else { "" })
            }
            Dpp::Dpp16 { control, row_mask, bank_mask, bound_control, fetch_inactive } => {
                let control = dpp_control(control, self.generation);
                let bound_control = if bound_control { " bound_ctrl:1" } else { "" };
                let fetch_inactive = if fetch_inactive { " fi:1" } else { "" };
                format!(
                    " {control} row_mask:{row_mask:#x} bank_mask:{bank_mask:#x}{bound_control}{fetch_inactive}"
                )
            }
        }
    }

    pub fn sdwa(&self, sdwa: Sdwa) -> String {
        const SELECTORS: [&str; 8] =
            ["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD", ""];
        const UNUSED: [&str; 4] = ["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE", ""];
        let select = |code: u8| SELECTORS[usize::from(code & 7)];
        let mut text = String::new();
        if self.instruction.encoding != Encoding::Vopc {
            let unused = UNUSED[usize::from(sdwa.unused & 3)];
            text += &format!(" dst_sel:{} dst_unused:{unused}", select(sdwa.destination));
        }
        text += &format!(" src0_sel:{}", select(sdwa.sources[0]));
        if self.instruction.encoding != Encoding::Vop1 {
            text += &format!(" src1_sel:{}", select(sdwa.sources[1]));
        }
        text
    }
}

/// DPP_CTRL (ISA manuals, "DPP").
fn dpp_control(control: u16, generation: Generation) -> String {
    let old = generation < Generation::Gfx10;
    let (low, new) = (control & 15, !old);
    match control {
        0..=0xff => {
            let [a, b, c, d] = [0, 2, 4, 6].map(|shift| control >> shift & 3);
            format!("quad_perm:[{a},{b},{c},{d}]")
        }
        0x101..=0x10f => format!("row_shl:{low}"),
        0x111..=0x11f => format!("row_shr:{low}"),
        0x121..=0x12f => format!("row_ror:{low}"),
        0x130 if old => "wave_shl:1".to_owned(),
        0x134 if old => "wave_rol:1".to_owned(),
        0x138 if old => "wave_shr:1".to_owned(),
        0x13c if old => "wave_ror:1".to_owned(),
        0x140 => "row_mirror".to_owned(),
        0x141 => "row_half_mirror".to_owned(),
        0x142 if old => "row_bcast:15".to_owned(),
        0x143 if old => "row_bcast:31".to_owned(),
        0x150..=0x15f if new => format!("row_share:{low}"),
        0x150..=0x15f if generation != Generation::Gfx9 => format!("row_newbcast:{low}"),
        0x160..=0x16f if new => format!("row_xmask:{low}"),
        _ => "/* Invalid dpp_ctrl value */".to_owned(),
    }
}
