//! Code that finds the allocation of an address among those that the wave used last.

use std::mem::offset_of;

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use crate::machine::ranges::Ranges;
use crate::machine::wave::Wave;
use crate::memory::Range;

use super::super::assembler::{Label, at};
use super::super::emitter::Emitter;

const LAST: usize = offset_of!(Wave, ranges) + offset_of!(Ranges, last);
const COUNT: usize = size_of::<[Range; 4]>() / size_of::<Range>();

/// RCX becomes the allocation of the RDX bytes from the address RAX on, and RSI how many bytes it has from there on. Jumps
/// where it is none of the last.
pub fn find(e: &mut Emitter, none: Label) {
    let finder = *e.range_finder.get_or_insert_with(|| e.assembler.label());
    e.assembler.jump(Code::Call_rel32_64, finder);
    e.assembler.jump(Code::Jb_rel32_64, none);
}

/// The function that [`find`] calls, if it does: the carry says that there is none.
pub fn finish_range_finder(e: &mut Emitter) {
    let Some(begin) = e.range_finder else { return };
    let assembler = &mut e.assembler;
    let found = assembler.label();
    assembler.bind(begin);
    for index in 0..COUNT {
        let next = assembler.label();
        let (range, behind) = (Register::RCX, Register::RSI);
        assembler.load(Code::Lea_r64_m, range, at(Register::RBX, LAST + size_of::<Range>() * index));
        assembler.load(Code::Mov_r64_rm64, behind, at(range, offset_of!(Range, end)));
        assembler.load(Code::Cmp_r64_rm64, Register::RAX, start_memory(range));
        assembler.jump(Code::Jb_rel32_64, next);
        assembler.two(Code::Sub_r64_rm64, behind, Register::RAX);
        assembler.jump(Code::Jb_rel32_64, next);
        assembler.two(Code::Cmp_r64_rm64, behind, Register::RDX);
        // Without a carry.
        assembler.jump(Code::Jae_rel32_64, found);
        assembler.bind(next);
    }
    assembler.add(Ok(Instruction::with(Code::Stc)));
    assembler.bind(found);
    assembler.add(Ok(Instruction::with(Code::Retnq)));
}

pub fn start_memory(range: Register) -> MemoryOperand {
    at(range, offset_of!(Range, start))
}

pub fn host_memory(range: Register) -> MemoryOperand {
    at(range, offset_of!(Range, host))
}
