//! Registers and other operands.

use super::{Writer, constant};
use crate::isa::tables::Kind;
use crate::isa::{Operand, Source, Special, sgpr};

impl Writer<'_> {
    /// An operand; `off` for none.
    pub fn operand(&self, operand: &Operand, kind: Kind) -> String {
        match operand.source {
            Source::None => "off".to_owned(),
            Source::Vector(number @ 0..=255) => range("v", number, operand.registers),
            Source::Vector(number) => range("a", number - 256, operand.registers),
            Source::Scalar(number) => self.scalar(number, operand.registers),
            Source::Integer(value) => value.to_string(),
            Source::Float(value) => constant::float(value, kind),
            Source::Literal(value) => constant::literal(value, kind),
            Source::Special(special) => special_name(special).to_owned(),
        }
    }

    fn scalar(&self, number: u8, registers: u8) -> String {
        const FLAT_SCRATCH_HIGH: u8 = sgpr::FLAT_SCRATCH + 1;
        const VCC_HIGH: u8 = sgpr::VCC + 1;
        const EXEC_HIGH: u8 = sgpr::EXEC + 1;
        let name = match (number, registers) {
            (sgpr::FLAT_SCRATCH, 2) if self.is_gfx9() => "flat_scratch",
            (sgpr::FLAT_SCRATCH, 1) if self.is_gfx9() => "flat_scratch_lo",
            (FLAT_SCRATCH_HIGH, 1) if self.is_gfx9() => "flat_scratch_hi",
            (104, 2) if self.is_gfx9() => "xnack_mask",
            (104, 1) if self.is_gfx9() => "xnack_mask_lo",
            (105, 1) if self.is_gfx9() => "xnack_mask_hi",
            (sgpr::VCC, 2) => "vcc",
            (sgpr::VCC, 1) => "vcc_lo",
            (VCC_HIGH, 1) => "vcc_hi",
            (sgpr::EXEC, 2) => "exec",
            (sgpr::EXEC, 1) => "exec_lo",
            (EXEC_HIGH, 1) => "exec_hi",
            (sgpr::M0, _) => "m0",
            (sgpr::NULL, _) => "null",
            (sgpr::TTMP..=123, _) => return range("ttmp", u16::from(number - sgpr::TTMP), registers),
            _ => return range("s", u16::from(number), registers),
        };
        name.to_owned()
    }
}

fn range(prefix: &str, first: u16, registers: u8) -> String {
    match registers {
        0 | 1 => format!("{prefix}{first}"),
        count => format!("{prefix}[{first}:{}]", first + u16::from(count) - 1),
    }
}

fn special_name(special: Special) -> &'static str {
    match special {
        Special::SharedBase => "src_shared_base",
        Special::SharedLimit => "src_shared_limit",
        Special::PrivateBase => "src_private_base",
        Special::PrivateLimit => "src_private_limit",
        Special::VccIsZero => "src_vccz",
        Special::ExecIsZero => "src_execz",
        Special::Scc => "src_scc",
    }
}
