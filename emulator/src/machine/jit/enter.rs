//! From Rust into translated code and back.

use std::sync::OnceLock;

use iced_x86::{Code, Instruction, Register};

use crate::machine::group::Group;
use crate::machine::wave::Wave;

use super::assembler::Assembler;
use super::call::Context;
use super::emitter::ROWS_BIAS;
use super::pages::Pages;

/// Registers that belong to the caller, in the order they are saved.
const SAVED: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

type Enter = unsafe extern "sysv64" fn(*mut Wave, *mut Group<'_>, *mut Context, rows: *mut u32, code: usize);

/// Runs translated code of a wave until it leaves. Where it stopped with an error the context has it.
///
/// # Safety
///
/// At this address is a block of the program that the wave runs, translated for waves of as many lanes, and the program
/// keeps it.
pub unsafe fn enter(wave: &mut Wave, group: &mut Group<'_>, context: &mut Context, code: usize) {
    let Some(pages) = pages() else { return };
    // SAFETY: the pages begin with a function of this type, and stay until the process ends.
    let enter: Enter = unsafe { std::mem::transmute(pages.address(0)) };
    let rows = wave.vector.words_mut().as_mut_ptr();
    // SAFETY: the caller promises that the code fits the wave. It accesses the wave, its rows, the workgroup and the context
    // through these pointers alone, one call at a time, and none of them after it has left.
    unsafe { enter(wave, group, context, rows, code) };
}

/// Whether the system lets code be made.
pub fn is_possible() -> bool {
    pages().is_some()
}

fn pages() -> Option<&'static Pages> {
    static PAGES: OnceLock<Option<Pages>> = OnceLock::new();
    PAGES.get_or_init(|| Pages::new(&function()?)).as_ref()
}

fn function() -> Option<Vec<u8>> {
    let mut assembler = Assembler::new();
    for register in SAVED {
        assembler.one(Code::Push_r64, register);
    }
    // The stack is a multiple of 16 bytes where functions are called.
    assembler.immediate(Code::Sub_rm64_imm8, Register::RSP, 8);
    let given = [Register::RDI, Register::RSI, Register::RDX];
    for (to, from) in [Register::RBX, Register::R14, Register::R13].into_iter().zip(given) {
        assembler.two(Code::Mov_r64_rm64, to, from);
    }
    let rows = iced_x86::MemoryOperand::with_base_displ(Register::RCX, ROWS_BIAS as i64);
    assembler.load(Code::Lea_r64_m, Register::R12, rows);
    assembler.one(Code::Jmp_rm64, Register::R8);
    assembler.finish().ok().map(|(code, _)| code)
}

/// The end of translated code.
pub fn leave(assembler: &mut Assembler) {
    assembler.add(Ok(Instruction::with(Code::VEX_Vzeroupper)));
    assembler.immediate(Code::Add_rm64_imm8, Register::RSP, 8);
    for register in SAVED.into_iter().rev() {
        assembler.one(Code::Pop_r64, register);
    }
    assembler.add(Ok(Instruction::with(Code::Retnq)));
}
