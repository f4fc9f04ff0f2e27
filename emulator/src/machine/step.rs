//! Instructions made ready to be executed many times.

use crate::isa::{Encoding, Instruction, Target};

use super::execute;
use super::fault::Fault;
use super::group::Group;
use super::wave::Wave;

/// What an instruction does to a wave and its workgroup.
pub type Action = Box<dyn Fn(&mut Wave, &mut Group<'_>) -> Result<(), Box<Fault>> + Send + Sync>;

/// What is known when an instruction is made ready.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub target: Target,
    /// Lanes of a wave.
    pub lanes: usize,
    /// Device address of the code's first byte.
    pub base: u64,
}

/// Makes an instruction ready; `None` where there is nothing to do.  One that cannot be executed becomes an action that stops with an error, since it may never
/// be reached.
pub fn prepare(instruction: &Instruction, setting: Setting) -> Option<Action> {
    if execute::does_nothing(instruction) {
        return None;
    }
    Some(execute::action(instruction, setting).unwrap_or_else(|fault| stop(*fault)))
}

/// An action that stops the kernel.
pub fn stop(fault: Fault) -> Action {
    Box::new(move |_, _| Err(Box::new(fault.clone())))
}

/// Whether the next instruction may be another one than that behind it, or the wave may wait here.
pub fn ends_block(instruction: &Instruction) -> bool {
    let name = instruction.name;
    match instruction.encoding {
        Encoding::Sopp => {
            name.starts_with("s_branch")
                || name.starts_with("s_cbranch")
                || name.starts_with("s_endpgm")
                || name.starts_with("s_barrier")
                || name.starts_with("s_trap")
        }
        Encoding::Sop1 => {
            ["s_setpc_b64", "s_swappc_b64", "s_rfe_b64"].contains(&name) || name.starts_with("s_barrier")
        }
        Encoding::Sopk => ["s_call_b64", "s_subvector_loop_begin", "s_subvector_loop_end"].contains(&name),
        _ => false,
    }
}
