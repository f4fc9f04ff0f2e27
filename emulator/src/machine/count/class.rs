//! What kind of work an instruction is.

use serde::{Deserialize, Serialize};

use crate::isa::{Encoding, Instruction};

/// Which unit of a compute unit does the work, and at which rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    ScalarAlu,
    /// Vector operations by the size of their numbers.
    Vector16,
    Vector32,
    Vector64,
    /// Shifts, moves and sums of integers of 64 bits.
    VectorWide,
    /// Products of integers of 32 bits, which take longer.
    VectorMultiply,
    /// Exponentials, logarithms, roots, reciprocals, sines.
    Transcendental,
    /// Two numbers of 16 or of 32 bits in one lane (`v_pk_`).
    Packed,
    /// Two operations in one instruction (VOPD).
    Dual,
    Dot,
    Matrix,
    ScalarMemory,
    VectorLoad,
    VectorStore,
    VectorAtomic,
    Scratch,
    LdsLoad,
    LdsStore,
    LdsAtomic,
    /// Exchanges between lanes through the LDS's crossbar.
    LdsExchange,
    Branch,
    Barrier,
    Wait,
    /// What only tells the hardware something: `s_nop`, `s_clause`, `s_endpgm`.
    Other,
}

/// Beginnings of names behind `v_` (or `v_s_`).
const TRANSCENDENTAL: [&str; 7] = ["exp_", "log_", "rcp_", "rsq_", "sqrt_", "sin_", "cos_"];
const MULTIPLY: [&str; 5] = ["mul_lo_u32", "mul_hi_u32", "mul_hi_i32", "mad_u64_u32", "mad_i64_i32"];
const MATRIX: [&str; 4] = ["mfma", "smfmac", "wmma", "swmmac"];

impl Class {
    /// In their order.
    pub const ALL: [Class; 24] = [
        Class::ScalarAlu,
        Class::Vector16,
        Class::Vector32,
        Class::Vector64,
        Class::VectorWide,
        Class::VectorMultiply,
        Class::Transcendental,
        Class::Packed,
        Class::Dual,
        Class::Dot,
        Class::Matrix,
        Class::ScalarMemory,
        Class::VectorLoad,
        Class::VectorStore,
        Class::VectorAtomic,
        Class::Scratch,
        Class::LdsLoad,
        Class::LdsStore,
        Class::LdsAtomic,
        Class::LdsExchange,
        Class::Branch,
        Class::Barrier,
        Class::Wait,
        Class::Other,
    ];

    pub fn of(instruction: &Instruction) -> Class {
        let name = instruction.name;
        match instruction.encoding {
            Encoding::Sopp => program_control(name),
            Encoding::Sop1 if name.starts_with("s_barrier") => Class::Barrier,
            Encoding::Sopk if name.starts_with("s_waitcnt") => Class::Wait,
            Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopk | Encoding::Sopc => {
                match ["s_setpc", "s_swappc", "s_call"].iter().any(|begin| name.starts_with(begin)) {
                    true => Class::Branch,
                    false => Class::ScalarAlu,
                }
            }
            Encoding::Smem => Class::ScalarMemory,
            Encoding::Vopd => Class::Dual,
            Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc | Encoding::Vop3 | Encoding::Vop3p => {
                vector(name)
            }
            Encoding::Ds => lds(name),
            Encoding::Scratch => Class::Scratch,
            Encoding::Flat | Encoding::Global | Encoding::Buffer => {
                if name.contains("_atomic_") {
                    Class::VectorAtomic
                } else if name.contains("_store_") {
                    Class::VectorStore
                } else if name.contains("_load_") {
                    Class::VectorLoad
                } else {
                    Class::Other
                }
            }
        }
    }

    /// Whether it is done for each lane.
    pub fn is_vector_alu(self) -> bool {
        (Class::Vector16..=Class::Matrix).contains(&self)
    }

    pub fn is_lds(self) -> bool {
        (Class::LdsLoad..=Class::LdsExchange).contains(&self)
    }

    pub fn is_vector_memory(self) -> bool {
        (Class::VectorLoad..=Class::Scratch).contains(&self)
    }
}

fn program_control(name: &str) -> Class {
    if name.starts_with("s_branch") || name.starts_with("s_cbranch") {
        Class::Branch
    } else if name.starts_with("s_barrier") {
        Class::Barrier
    } else if name.starts_with("s_wait") && name != "s_waitcnt_depctr" {
        Class::Wait
    } else {
        Class::Other
    }
}

fn vector(name: &str) -> Class {
    let kind = name.strip_prefix("v_").unwrap_or(name);
    let kind = kind.strip_prefix("s_").unwrap_or(kind);
    let begins = |with: &[&str]| with.iter().any(|begin| kind.starts_with(begin));
    if begins(&MATRIX) {
        Class::Matrix
    } else if begins(&["dot"]) {
        Class::Dot
    } else if begins(&["pk_"]) {
        Class::Packed
    } else if kind.contains("f64") {
        Class::Vector64
    } else if kind.contains("64") && !begins(&MULTIPLY) {
        Class::VectorWide
    } else if begins(&TRANSCENDENTAL) {
        Class::Transcendental
    } else if begins(&MULTIPLY) {
        Class::VectorMultiply
    } else if ["f16", "i16", "u16", "b16", "bf16"].iter().any(|end| kind.ends_with(end)) {
        Class::Vector16
    } else {
        Class::Vector32
    }
}

fn lds(name: &str) -> Class {
    if ["ds_permute", "ds_bpermute", "ds_swizzle"].iter().any(|begin| name.starts_with(begin)) {
        Class::LdsExchange
    } else if name.starts_with("ds_load") {
        Class::LdsLoad
    } else if name.starts_with("ds_storexchg") {
        Class::LdsAtomic
    } else if name.starts_with("ds_store") {
        Class::LdsStore
    } else if name == "ds_nop" {
        Class::Other
    } else {
        Class::LdsAtomic
    }
}
