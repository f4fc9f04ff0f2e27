//! Cache policies of memory instructions.

use super::Writer;
use crate::isa::tables::Kind;
use crate::isa::{Encoding, Generation};

impl Writer<'_> {
    /// With a space before each word.
    pub fn policy(&self) -> String {
        let policy = self.instruction.modifiers.memory.policy;
        let scalar = self.instruction.encoding == Encoding::Smem;
        let flags = match self.generation {
            Generation::Gfx9 | Generation::Gfx10 | Generation::Gfx11 => ["glc", "slc", "dlc"],
            Generation::Gfx90a | Generation::Gfx940 if scalar => ["glc", "slc", "dlc"],
            Generation::Gfx90a => ["glc", "slc", "scc"],
            Generation::Gfx940 => ["sc0", "nt", "sc1"],
            Generation::Gfx12 => return self.temporal_hint() + scope(policy >> 3),
        };
        let set = flags.iter().enumerate().filter(|(bit, _)| policy >> bit & 1 != 0);
        set.map(|(_, flag)| format!(" {flag}")).collect()
    }

    /// TH of GFX12 (RDNA 4 ISA, "Memory temporal hints").
    fn temporal_hint(&self) -> String {
        let policy = self.instruction.modifiers.memory.policy;
        let (hint, scope) = (usize::from(policy & 7), policy >> 3);
        if hint == 0 {
            return String::new();
        }
        let operands = self.entry.operands;
        let is_load = operands.sources.iter().all(|kind| *kind == Kind::None);
        let is_atomic = self.instruction.name.contains("_atomic_");
        let name = if is_atomic {
            format!("TH_ATOMIC_{}", atomic_hint(hint, scope))
        } else if is_load || self.instruction.encoding == Encoding::Smem {
            const HINTS: [&str; 7] = ["RT", "NT", "HT", "LU", "NT_RT", "RT_NT", "NT_HT"];
            match HINTS.get(hint) {
                _ if hint == 3 && scope == 3 => "TH_LOAD_BYPASS".to_owned(),
                Some(name) => format!("TH_LOAD_{name}"),
                None => format!("{hint:#x}"),
            }
        } else {
            const HINTS: [&str; 8] = ["RT", "NT", "HT", "RT_WB", "NT_RT", "RT_NT", "NT_HT", "NT_WB"];
            let bypass = hint == 3 && scope == 3;
            format!("TH_STORE_{}", if bypass { "BYPASS" } else { HINTS[hint] })
        };
        format!(" th:{name}")
    }
}

fn atomic_hint(hint: usize, scope: u8) -> String {
    match (hint, scope) {
        (1, _) => "RETURN".to_owned(),
        (2, _) => "NT".to_owned(),
        (3, _) => "NT_RETURN".to_owned(),
        (4 | 5, 2..) => "CASCADE_RT".to_owned(),
        (6 | 7, 2..) => "CASCADE_NT".to_owned(),
        _ => format!("{hint:#x}"),
    }
}

fn scope(code: u8) -> &'static str {
    match code & 3 {
        0 => "",
        1 => " scope:SCOPE_SE",
        2 => " scope:SCOPE_DEV",
        _ => " scope:SCOPE_SYS",
    }
}
