//! DPP: lanes take the first source of an instruction from other lanes (RDNA3 ISA, "DPP"; CDNA3 ISA, "DPP").

use crate::isa::{Dpp, Generation};

/// Lanes of a row.
const ROW: usize = 16;

/// What a DPP modifier does, as far as it is known before the instruction runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DppPattern {
    /// The lane that each lane reads; its own where there is none.
    pub sources: [u8; 64],
    /// Lanes whose source exists.
    exists: u64,
    /// Lanes that row_mask and bank_mask let through.
    enabled: u64,
    /// Lanes without a source read 0 in place of being left out.
    zero: bool,
    /// Lanes that are not active may be read.
    inactive: bool,
    lanes: usize,
}

/// What lanes do with a DPP modifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DppPlan {
    /// The lane that each lane reads.
    pub sources: [u8; 64],
    /// Lanes that read 0 in its place.
    pub zero: u64,
    /// Lanes whose result is written, all of them active.
    pub write: u64,
}

impl DppPattern {
    /// `lanes`: 32 or 64. A control that the generation does not have gives no lane a source.
    pub fn new(dpp: Dpp, lanes: usize, generation: Generation) -> DppPattern {
        let mut pattern = DppPattern {
            sources: std::array::from_fn(|lane| lane as u8),
            exists: 0,
            enabled: 0,
            zero: true,
            inactive: false,
            lanes,
        };
        for lane in 0..lanes {
            let (source, enabled) = match dpp {
                Dpp::Dpp8 { lanes: from, .. } => (Some(lane & !7 | usize::from(from[lane & 7] & 7)), true),
                Dpp::Dpp16 { control, row_mask, bank_mask, .. } => {
                    let (row, bank) = (lane / ROW, lane % ROW / 4);
                    let enabled = row_mask >> row & 1 != 0 && bank_mask >> bank & 1 != 0;
                    (source(control, lane, lanes, generation), enabled)
                }
            };
            if let Some(source) = source {
                pattern.sources[lane] = source as u8;
                pattern.exists |= 1 << lane;
            }
            pattern.enabled |= u64::from(enabled) << lane;
        }
        match dpp {
            Dpp::Dpp16 { bound_control, fetch_inactive, .. } => {
                (pattern.zero, pattern.inactive) = (bound_control, fetch_inactive);
            }
            Dpp::Dpp8 { fetch_inactive, .. } => pattern.inactive = fetch_inactive,
        }
        pattern
    }

    /// The plan for the active lanes.
    pub fn plan(&self, exec: u64) -> DppPlan {
        let all = u64::MAX >> (64 - self.lanes);
        let mut valid = self.exists;
        if !self.inactive && exec & all != all {
            for lane in 0..self.lanes {
                valid &= !(u64::from(exec >> self.sources[lane] & 1 == 0) << lane);
            }
        }
        let written = if self.zero { all } else { valid };
        DppPlan { sources: self.sources, zero: all & !valid, write: exec & self.enabled & written }
    }
}

/// The lane that `lane` reads; `None` where there is none.
fn source(control: u16, lane: usize, lanes: usize, generation: Generation) -> Option<usize> {
    let (row, within) = (lane & !(ROW - 1), lane % ROW);
    let amount = usize::from(control & 15);
    let is_old = generation < Generation::Gfx10;
    match control {
        // quad_perm
        0x000..=0x0ff => Some(lane & !3 | usize::from(control >> (2 * (lane & 3)) & 3)),
        // row_shl, row_shr, row_ror
        0x101..=0x10f => (within + amount < ROW).then_some(lane + amount),
        0x111..=0x11f => (within >= amount).then(|| lane - amount),
        0x121..=0x12f => Some(row | ((within + ROW - amount) % ROW)),
        // wave_shl, wave_rol, wave_shr, wave_ror
        0x130 if is_old => (lane + 1 < lanes).then_some(lane + 1),
        0x134 if is_old => Some((lane + 1) % lanes),
        0x138 if is_old => lane.checked_sub(1),
        0x13c if is_old => Some((lane + lanes - 1) % lanes),
        // row_mirror, row_half_mirror
        0x140 => Some(row | (ROW - 1 - within)),
        0x141 => Some(lane & !7 | (7 - (lane & 7))),
        // row_bcast:15, row_bcast:31
        0x142 if is_old => row.checked_sub(1),
        0x143 if is_old => (lane >= 32).then_some(31),
        // row_newbcast of GFX90A and later, row_share of GFX10 and later
        0x150..=0x15f if generation != Generation::Gfx9 => Some(row | amount),
        // row_xmask
        0x160..=0x16f if !is_old => Some(row | within ^ amount),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
