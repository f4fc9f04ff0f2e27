//! Where the operands of a node lie.

use super::Operand;

/// Which of a node's operands lie where the caller of a run says; the others are aligned, as planned memory and
/// constants are.
pub(crate) enum Given {
    All,
    None,
    These { inputs: Vec<bool>, outputs: Vec<bool> },
}

impl Given {
    pub(super) fn has(&self, operand: Operand) -> bool {
        match (self, operand) {
            (Given::All, Operand::Input(_) | Operand::Output(_)) => true,
            (Given::These { inputs, .. }, Operand::Input(i)) => inputs.get(i).is_none_or(|&given| given),
            (Given::These { outputs, .. }, Operand::Output(i)) => outputs.get(i).is_none_or(|&given| given),
            _ => false,
        }
    }
}
