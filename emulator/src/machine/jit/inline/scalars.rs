//! Scalar loads.

use iced_x86::{Code, Register};

use crate::isa::sgpr;

use super::super::assembler::{Label, at};
use super::super::emitter::{Emitter, scalar_memory};
use super::super::memory::Access;
use super::ranges;

pub fn load(e: &mut Emitter, access: &Access) -> Option<Label> {
    let base = access.scalar.filter(|&register| register != sgpr::NULL)?;
    let offset = i32::try_from(access.offset).ok()?;
    let (address, bytes) = (Register::RAX, 4 * access.words);
    let call = e.assembler.label();
    e.assembler.load(Code::Mov_r64_rm64, address, scalar_memory(base));
    e.assembler.immediate(Code::Add_rm64_imm32, address, offset);
    e.assembler.immediate(Code::And_rm64_imm8, address, -4);
    e.assembler.immediate(Code::Mov_r32_imm32, Register::EDX, bytes as i32);
    ranges::find(e, call);
    e.assembler.load(Code::Sub_r64_rm64, address, ranges::start_memory(Register::RCX));
    e.assembler.load(Code::Add_r64_rm64, address, ranges::host_memory(Register::RCX));
    let register = |word: usize| (access.register + word) as u8;
    if access.words == 1 {
        e.assembler.load(Code::Mov_r32_rm32, Register::ECX, at(address, 0));
        e.assembler.store(Code::Mov_rm32_r32, scalar_memory(register(0)), Register::ECX);
    }
    for word in (0..access.words / 2 * 2).step_by(2) {
        e.assembler.load(Code::Mov_r64_rm64, Register::RCX, at(address, 4 * word));
        e.assembler.store(Code::Mov_rm64_r64, scalar_memory(register(word)), Register::RCX);
    }
    for word in 0..access.words {
        e.forget_scalar(register(word));
    }
    Some(call)
}
