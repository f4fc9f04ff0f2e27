//! What becomes of each instruction of a block.

use iced_x86::{Code, Register};

use crate::isa::{Encoding, Instruction, Source, sgpr};
use crate::machine::program::Block;
use crate::machine::step::{Setting, ends_block};

use super::assembler::at;
use super::emitter::{Emitter, SCC, scalar_memory};
use super::memory::Kind;
use super::vector::{Planned, is_vector, plan};

/// One instruction.
pub enum Step {
    Nothing,
    Vector(Vec<Planned>),
    /// Code of the scalar unit, or a call.
    Other,
    /// A load or a store for which there is code, or a function of its own.
    Access,
    /// One that loads larger elements from LDS: a function serves several of them at once.
    LoadLds,
    Ends(Branch),
}

/// How a block ends.
#[derive(Clone, Copy)]
pub enum Branch {
    Always(u64),
    If(Condition, u64),
    End,
    Barrier,
    /// Only the instruction knows.
    Unknown,
}

/// What a conditional branch asks.
#[derive(Clone, Copy)]
pub struct Condition {
    /// SCC, or a mask of lanes.
    mask: Option<u8>,
    /// Whether it branches where that is not 0.
    set: bool,
}

impl Branch {
    /// `None` for instructions that do not end a block.
    pub fn of(instruction: &Instruction) -> Option<Branch> {
        if !ends_block(instruction) {
            return None;
        }
        let behind = instruction.offset + u64::from(instruction.size);
        let to = behind.wrapping_add_signed(4 * i64::from(instruction.modifiers.immediate));
        let when = |mask, set| Branch::If(Condition { mask, set }, to);
        Some(match instruction.name {
            "s_branch" => Branch::Always(to),
            "s_cbranch_scc0" => when(None, false),
            "s_cbranch_scc1" => when(None, true),
            "s_cbranch_vccz" => when(Some(sgpr::VCC), false),
            "s_cbranch_vccnz" => when(Some(sgpr::VCC), true),
            "s_cbranch_execz" => when(Some(sgpr::EXEC), false),
            "s_cbranch_execnz" => when(Some(sgpr::EXEC), true),
            "s_endpgm" | "s_endpgm_saved" => Branch::End,
            "s_barrier" | "s_barrier_wait" => Branch::Barrier,
            _ => Branch::Unknown,
        })
    }
}

impl Condition {
    /// Sets the flags; the jump that is taken where the condition holds.
    pub fn test(self, emitter: &mut Emitter) -> Code {
        let wide = emitter.lanes == 64;
        let (code, memory) = match self.mask {
            None => (Code::Cmp_rm8_imm8, at(Register::RBX, SCC)),
            Some(mask) if wide => (Code::Cmp_rm64_imm8, scalar_memory(mask)),
            Some(mask) => (Code::Cmp_rm32_imm8, scalar_memory(mask)),
        };
        emitter.assembler.memory_immediate(code, memory, 0);
        if self.set { Code::Jne_rel32_64 } else { Code::Je_rel32_64 }
    }
}

impl Step {
    /// Whether it is the end of its block.
    pub fn ends(&self) -> bool {
        matches!(self, Step::Ends(_))
    }
}

/// The instructions of a block.
pub struct Steps(Vec<Step>);

impl Steps {
    /// `indexed`: V_MOV_B32 may use other registers than it says.
    pub fn new(block: &Block, setting: Setting, indexed: bool) -> Steps {
        let step = |(instruction, action): (&Instruction, &Option<_>)| {
            if let Some(branch) = Branch::of(instruction) {
                return Step::Ends(branch);
            }
            if action.is_none() {
                return Step::Nothing;
            }
            if is_vector(instruction) {
                let fits = !(indexed && instruction.name == "v_mov_b32");
                let planned = fits.then(|| plan(instruction, setting)).flatten();
                return planned.map_or(Step::Other, Step::Vector);
            }
            match super::memory::find(instruction, setting.lanes) {
                None => Step::Other,
                Some((_, access)) if access.kind == Kind::LoadLds && access.words > 1 => Step::LoadLds,
                Some(_) => Step::Access,
            }
        };
        Steps(block.instructions.iter().zip(&block.actions).map(step).collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = &Step> {
        self.0.iter()
    }

    /// Behind the last of the loads from LDS that begin here and follow each other; the step itself if it is none.
    pub fn loads_lds_until(&self, from: usize) -> usize {
        let loads = |it: &Step| matches!(it, Step::LoadLds);
        if !loads(&self.0[from]) {
            return from;
        }
        let others = self.0[from..].iter().take_while(|it| loads(it) || matches!(it, Step::Nothing)).count();
        let last = self.0[from..from + others].iter().rposition(loads).unwrap_or(0);
        from + last + 1
    }

    /// Whether code from a step on depends on which lanes take part.
    pub fn uses_lanes(&self, from: usize) -> bool {
        self.0[from..].iter().any(|it| matches!(it, Step::Vector(_) | Step::Access | Step::LoadLds))
    }
}

/// Whether an instruction may write EXEC.
pub fn writes_exec(instruction: &Instruction) -> bool {
    let scalar = matches!(
        instruction.encoding,
        Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopk | Encoding::Sopc | Encoding::Sopp
    );
    let writes = instruction.destinations.iter().any(|operand| match operand.source {
        Source::Scalar(register) => {
            u16::from(register) + u16::from(operand.registers.max(2)) > u16::from(sgpr::EXEC)
        }
        _ => false,
    });
    let named = instruction.name.contains("exec") || instruction.name.starts_with("v_cmpx_");
    // Those that choose registers as they run.
    writes || named || scalar && instruction.name.contains("movrel")
}
