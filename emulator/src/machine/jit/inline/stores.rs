//! Stores of vector registers, of a word for each lane.

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::super::assembler::Label;
use super::super::cache::{Key, SCRATCH, Zmm, zmm};
use super::super::codes::{COMPARE_UNSIGNED, integer};
use super::super::emitter::{BITS, Emitter, OTHER_BITS};
use super::super::memory::Access;
use super::loads::{gathered, masked};
use super::place::{self, pointer_memory};

/// What is stored of a part.
struct Stored {
    part: usize,
    offset: i64,
    value: Zmm,
    shape: Zmm,
}

pub fn store(e: &mut Emitter, access: &Access) -> Option<Label> {
    if access.words != 1 {
        return None;
    }
    let place = place::of(e, access);
    e.next_part();
    let second = access.second_register.map(|register| (access.second_offset, register));
    let mut parts = Vec::new();
    for (offset, register) in [(access.offset, access.register)].into_iter().chain(second) {
        for part in e.parts() {
            let value = e.load_key(Key::Row(register as u16, part));
            let shape = e.load_key(Key::Shape(place, part));
            parts.push(Stored { part, offset, value, shape });
        }
    }
    let lanes = e.pattern(std::array::from_fn(|lane| lane as u32));
    let (call, far, stored) = (e.assembler.label(), e.assembler.label(), e.assembler.label());
    place::guard(e, access, place, call, far);
    // Of lanes that store to the same word the last one counts.
    for it in parts.iter().take(e.parts().len()) {
        let (bits, mask) = (if it.part == 0 { OTHER_BITS } else { BITS }, e.exec(it.part));
        e.compare(COMPARE_UNSIGNED, bits, mask, it.shape, lanes, integer::NOT_EQUAL);
        if it.part != 0 {
            e.masks(Code::VEX_Korw_kr_kr_kr, OTHER_BITS, OTHER_BITS, BITS);
        }
    }
    e.assembler.two(Code::VEX_Kortestw_kr_kr, OTHER_BITS, OTHER_BITS);
    e.assembler.jump(Code::Jne_rel32_64, call);
    for it in &parts {
        e.assembler.load(Code::Mov_r64_rm64, Register::RAX, pointer_memory(place, it.part));
        let to = MemoryOperand::with_base_displ(Register::RAX, it.offset);
        let code = Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm;
        let mask = e.exec(it.part);
        e.assembler.add(Instruction::with2(code, to, zmm(it.value)).map(|store| masked(store, mask)));
    }
    e.assembler.bind(stored);
    e.next_part();
    e.aside(far, move |e| {
        for it in &parts {
            e.assembler.load(Code::Mov_r64_rm64, Register::RAX, pointer_memory(place, it.part));
            scatter(e, it);
        }
        e.assembler.jump(Code::Jmp_rel32_64, stored);
    });
    Some(call)
}

/// Lanes in order.
fn scatter(e: &mut Emitter, it: &Stored) {
    let [distances, _] = SCRATCH;
    e.two_immediate(Code::EVEX_Vprold_zmm_k1z_zmmm512b32_imm8, distances, it.shape, 2);
    e.masks(Code::VEX_Kxnorw_kr_kr_kr, BITS, BITS, BITS);
    let to = gathered(distances, it.offset);
    let code = Code::EVEX_Vpscatterdd_vm32z_k1_zmm;
    e.assembler.add(Instruction::with2(code, to, zmm(it.value)).map(|it| masked(it, BITS)));
}
