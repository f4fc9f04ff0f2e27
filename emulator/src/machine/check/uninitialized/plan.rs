//! What a twin does for an instruction.

use crate::isa::{Encoding, Instruction};

/// What can be known of it before the instruction runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    Execute,
    /// A branch: only the wave takes it. What decides is compared.
    Branch(Decision),
    /// The result is taken from the wave: clocks, the state of the hardware, scalar memory.
    Take,
    /// By addresses in vector registers: it depends on where they lead.
    Memory,
}

/// What decides where a wave goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Nothing,
    Scc,
    Vcc,
    /// The address that is the first source.
    Source,
}

/// What the twin does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Nothing,
    Take,
    Execute,
}

impl Plan {
    pub fn of(instruction: &Instruction) -> Plan {
        let name = instruction.name;
        match instruction.encoding {
            Encoding::Smem => Plan::Take,
            Encoding::Flat | Encoding::Global | Encoding::Scratch | Encoding::Buffer => {
                if instruction.modifiers.memory.lds { Plan::Execute } else { Plan::Memory }
            }
            Encoding::Sopp => match name {
                "s_cbranch_scc0" | "s_cbranch_scc1" => Plan::Branch(Decision::Scc),
                "s_cbranch_vccz" | "s_cbranch_vccnz" => Plan::Branch(Decision::Vcc),
                "s_set_gpr_idx_off" | "s_set_gpr_idx_mode" | "s_round_mode" | "s_denorm_mode" => {
                    Plan::Execute
                }
                _ => Plan::Branch(Decision::Nothing),
            },
            Encoding::Sop1 if name == "s_setpc_b64" || name == "s_swappc_b64" => {
                Plan::Branch(Decision::Source)
            }
            Encoding::Sop1 if name.starts_with("s_sendmsg_rtn") => Plan::Take,
            Encoding::Sop1 if name.starts_with("s_barrier") => Plan::Branch(Decision::Nothing),
            Encoding::Sopk if name == "s_getreg_b32" || name == "s_call_b64" => Plan::Take,
            _ => Plan::Execute,
        }
    }

    /// `global`, `other`: whether there were accesses to global memory, or to LDS and scratch.
    pub fn action(self, global: bool, other: bool) -> Action {
        match self {
            Plan::Execute => Action::Execute,
            Plan::Memory if other && !global => Action::Execute,
            // A call's return address is the result.
            Plan::Take | Plan::Memory | Plan::Branch(Decision::Source) => Action::Take,
            Plan::Branch(_) => Action::Nothing,
        }
    }
}
