//! Code that looks how the elements of a register of addresses lie.
//!
//! R8 to R11 hold the offset of each part's first lane; where only some lanes take part, what it would be by the first of
//! those, if the lanes before were one behind the other. EAX and EDX hold the lowest and the highest of them, EBP how
//! many bytes from a first lane's offset on are used.

use std::mem::offset_of;

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use crate::isa::sgpr;

use super::super::assembler::{Label, at};
use super::super::cache::{Key, SCRATCH, Zmm, xmm, zmm};
use super::super::call::Context;
use super::super::codes::{COMPARE_UNSIGNED, MOVE, SUB, integer};
use super::super::emitter::{BITS, Emitter, MORE_BITS, OTHER_BITS, SCALAR, TOGETHER, scalar_memory};
use super::place::{Addresses, Mode, highest_memory, lowest_memory, mode_memory, pointer_memory};
use super::{ranges, shape_memory};

/// Whether lanes are not near each other, and whether they lie otherwise, too.
const NOT_NEAR: Register = OTHER_BITS;
const OTHERWISE: Register = MORE_BITS;

const FIRST: [Register; 4] = [Register::R8, Register::R9, Register::R10, Register::R11];
const FIRST_32: [Register; 4] = [Register::R8D, Register::R9D, Register::R10D, Register::R11D];

/// With this as the highest offset there is room for none.
const NO_ROOM: i32 = i32::MIN;

const SAVE: Code = Code::EVEX_Vmovdqa32_zmmm512_k1z_zmm;

/// Makes the code for a place. `offset`: with which it is asked for first.
pub fn learn(e: &mut Emitter, addresses: Addresses, offset: i64, place: usize) {
    let [nowhere, done] = [e.assembler.label(), e.assembler.label()];
    let upper = addresses.is_pair().then(|| upper_half(e, addresses.vector));
    for part in e.parts() {
        shape(e, addresses, place, part);
        if let Some(upper) = upper {
            compare_upper(e, addresses, upper, part);
        }
    }
    let (lowest, highest) = (Register::EAX, Register::EDX);
    e.assembler.two(Code::Mov_r32_rm32, lowest, FIRST_32[0]);
    e.assembler.two(Code::Mov_r32_rm32, highest, FIRST_32[0]);
    for part in e.parts().skip(1) {
        e.assembler.two(Code::Cmp_r32_rm32, FIRST_32[part], lowest);
        e.assembler.two(Code::Cmovb_r32_rm32, lowest, FIRST_32[part]);
        e.assembler.two(Code::Cmp_r32_rm32, FIRST_32[part], highest);
        e.assembler.two(Code::Cmova_r32_rm32, highest, FIRST_32[part]);
    }
    match addresses.words {
        1 => choose_words(e, addresses, place, nowhere),
        words => choose_larger(e, words, place, nowhere),
    }
    match addresses.global {
        true => bound_global(e, addresses, offset, place, nowhere),
        false => bound_lds(e, place),
    }
    e.assembler.bind(done);
    e.aside(nowhere, move |e| {
        e.assembler.memory_immediate(Code::Mov_rm64_imm32, highest_memory(place), NO_ROOM);
        e.assembler.jump(Code::Jmp_rel32_64, done);
    });
}

/// ESI and a register get the upper half of the first lane's address.
fn upper_half(e: &mut Emitter, vector: usize) -> Zmm {
    let upper = e.fresh();
    if e.masked {
        first_active(e, Register::ESI, vector + 1, 0);
    } else {
        let row = e.load_key(Key::Row(vector as u16 + 1, 0));
        e.assembler.two(Code::EVEX_Vmovd_rm32_xmm, Register::ESI, xmm(row));
    }
    e.assembler.two(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(upper), Register::ESI);
    upper
}

/// The value of the first lane of a part that takes part, with its number in ECX; of the first lane where none does.
fn first_active(e: &mut Emitter, to: Register, row: usize, part: usize) {
    let exec = at(Register::RBX, SCALAR + 4 * usize::from(sgpr::EXEC) + 2 * part);
    e.assembler.load(Code::Movzx_r32_rm16, Register::ECX, exec);
    e.assembler.two(Code::Tzcnt_r32_rm32, Register::ECX, Register::ECX);
    e.assembler.immediate(Code::And_rm32_imm8, Register::ECX, TOGETHER as i32 - 1);
    let mut value = e.row_memory(row, part);
    (value.index, value.scale) = (Register::RCX, 4);
    e.assembler.load(Code::Mov_r32_rm32, to, value);
}

fn compare_upper(e: &mut Emitter, addresses: Addresses, upper: Zmm, part: usize) {
    let (row, mask) = (e.load_key(Key::Row(addresses.vector as u16 + 1, part)), e.exec(part));
    if addresses.words == 1 && part == 0 {
        return e.compare(COMPARE_UNSIGNED, OTHERWISE, mask, row, upper, integer::NOT_EQUAL);
    }
    e.compare(COMPARE_UNSIGNED, BITS, mask, row, upper, integer::NOT_EQUAL);
    e.masks(Code::VEX_Korw_kr_kr_kr, OTHERWISE, OTHERWISE, BITS);
    if addresses.words != 1 {
        e.masks(Code::VEX_Korw_kr_kr_kr, NOT_NEAR, NOT_NEAR, BITS);
    }
}

/// Saves how the lanes of a part lie, and adds to what is known of all.
fn shape(e: &mut Emitter, addresses: Addresses, place: usize, part: usize) {
    let offsets = e.load_key(Key::Row(addresses.vector as u16, part));
    let shape = e.fresh();
    let first = FIRST_32[part];
    if e.masked {
        first_active(e, first, addresses.vector, part);
        e.assembler.immediate(Code::Shl_rm32_imm8, Register::ECX, 2);
        e.assembler.two(Code::Sub_r32_rm32, first, Register::ECX);
    } else {
        e.assembler.two(Code::EVEX_Vmovd_rm32_xmm, first, xmm(offsets));
    }
    e.assembler.two(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(shape), first);
    e.three(SUB, shape, offsets, shape);
    if addresses.words == 1 {
        // What is no multiple of a word becomes large.
        e.two_immediate(Code::EVEX_Vprord_zmm_k1z_zmmm512b32_imm8, shape, shape, 2);
        let last = e.constant(TOGETHER as u32 - 1);
        collect(e, NOT_NEAR, part, shape, last, integer::GREATER);
    } else {
        let (first, steps) = (e.constant(0), e.pattern(steps(addresses.words)));
        collect(e, NOT_NEAR, part, shape, first, integer::NOT_EQUAL);
        collect(e, OTHERWISE, part, shape, steps, integer::NOT_EQUAL);
    }
    e.set_key(shape, Key::Shape(place, part));
    e.assembler.store(SAVE, shape_memory(place, part), zmm(shape));
}

/// Distances of elements one behind the other.
fn steps(words: usize) -> [u32; TOGETHER] {
    std::array::from_fn(|lane| (4 * words * lane) as u32)
}

/// A mask becomes a comparison, or what it was for other parts or the comparison.
fn collect(e: &mut Emitter, to: Register, part: usize, a: Zmm, b: Zmm, predicate: u32) {
    let (into, mask) = (if part == 0 { to } else { BITS }, e.exec(part));
    e.compare(COMPARE_UNSIGNED, into, mask, a, b, predicate);
    if part != 0 {
        e.masks(Code::VEX_Korw_kr_kr_kr, to, to, BITS);
    }
}

/// Words are near each other or, where all lanes take part, anywhere.
fn choose_words(e: &mut Emitter, addresses: Addresses, place: usize, nowhere: Label) {
    if addresses.is_pair() {
        e.assembler.two(Code::VEX_Kortestw_kr_kr, OTHERWISE, OTHERWISE);
        e.assembler.jump(Code::Jne_rel32_64, nowhere);
    }
    choose(e, place, Mode::Near, 4 * TOGETHER);
    e.assembler.two(Code::VEX_Kortestw_kr_kr, NOT_NEAR, NOT_NEAR);
    if e.masked {
        return e.assembler.jump(Code::Jne_rel32_64, nowhere);
    }
    let [far, chosen] = [e.assembler.label(), e.assembler.label()];
    e.assembler.jump(Code::Jne_rel32_64, far);
    e.assembler.bind(chosen);
    let vector = addresses.vector;
    e.aside(far, move |e| {
        reduce(e, vector, Code::EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32, Register::EAX);
        reduce(e, vector, Code::EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32, Register::EDX);
        choose(e, place, Mode::Far, 4);
        // Distances between lanes have a sign.
        e.assembler.two(Code::Mov_r32_rm32, Register::ECX, Register::EDX);
        e.assembler.two(Code::Sub_r32_rm32, Register::ECX, Register::EAX);
        e.assembler.jump(Code::Js_rel32_64, nowhere);
        e.assembler.jump(Code::Jmp_rel32_64, chosen);
    });
}

/// Larger elements are the same or one behind the other.
fn choose_larger(e: &mut Emitter, words: usize, place: usize, nowhere: Label) {
    let chosen = e.assembler.label();
    choose(e, place, Mode::Near, 4 * words);
    e.assembler.two(Code::VEX_Kortestw_kr_kr, NOT_NEAR, NOT_NEAR);
    e.assembler.jump(Code::Je_rel32_64, chosen);
    choose(e, place, Mode::Far, 4 * words * TOGETHER);
    e.assembler.two(Code::VEX_Kortestw_kr_kr, OTHERWISE, OTHERWISE);
    e.assembler.jump(Code::Jne_rel32_64, nowhere);
    e.assembler.bind(chosen);
}

fn choose(e: &mut Emitter, place: usize, mode: Mode, bytes: usize) {
    e.assembler.memory_immediate(Code::Mov_rm32_imm32, mode_memory(place), mode as i32);
    e.assembler.immediate(Code::Mov_r32_imm32, Register::EBP, bytes as i32);
}

/// The least or the largest of all lanes of a row.
fn reduce(e: &mut Emitter, row: usize, code: Code, to: Register) {
    let [value, other] = SCRATCH;
    let first = e.row_memory(row, 0);
    e.assembler.load(MOVE, zmm(value), first);
    for part in e.parts().skip(1) {
        let memory = e.row_memory(row, part);
        e.assembler.add(Instruction::with3(code, zmm(value), zmm(value), memory));
    }
    const HALVES: Code = Code::EVEX_Vshufi64x2_zmm_k1z_zmm_zmmm512b64_imm8;
    for order in [0x4e, 0xb1] {
        e.three_immediate(HALVES, other, value, value, order);
        e.three(code, value, value, other);
    }
    for order in [0x4e, 0xb1] {
        e.two_immediate(Code::EVEX_Vpshufd_zmm_k1z_zmmm512b32_imm8, other, value, order);
        e.three(code, value, value, other);
    }
    e.assembler.two(Code::EVEX_Vmovd_rm32_xmm, to, xmm(value));
}

/// Pointers into LDS, and the room that is left there. Offsets of its instructions are not negative.
fn bound_lds(e: &mut Emitter, place: usize) {
    let (base, room) = (Register::RCX, Register::RSI);
    e.assembler.load(Code::Mov_r64_rm64, room, at(Register::R13, offset_of!(Context, lds_bytes)));
    e.assembler.two(Code::Sub_r64_rm64, room, Register::RDX);
    e.assembler.two(Code::Sub_r64_rm64, room, Register::RBP);
    e.assembler.store(Code::Mov_rm64_r64, highest_memory(place), room);
    e.assembler.load(Code::Mov_r64_rm64, base, at(Register::R13, offset_of!(Context, lds)));
    save_pointers(e, place, base);
}

/// Pointers into an allocation, and the room before and behind them.
fn bound_global(e: &mut Emitter, addresses: Addresses, offset: i64, place: usize, nowhere: Label) {
    let (first, bytes, base) = (Register::RAX, Register::RDX, Register::RDI);
    match addresses.scalar {
        Some(register) => e.assembler.load(Code::Mov_r64_rm64, base, scalar_memory(register)),
        None => {
            e.assembler.two(Code::Mov_r64_rm64, base, Register::RSI);
            e.assembler.immediate(Code::Shl_rm64_imm8, base, 32);
        }
    }
    // Offsets of 32 bits that go round do not lie behind the first lane's.
    e.assembler.two(Code::Mov_r32_rm32, Register::ECX, Register::EDX);
    e.assembler.two(Code::Add_r32_rm32, Register::ECX, Register::EBP);
    e.assembler.jump(Code::Jb_rel32_64, nowhere);
    e.assembler.two(Code::Sub_r64_rm64, bytes, first);
    e.assembler.two(Code::Add_r64_rm64, bytes, Register::RBP);
    e.assembler.two(Code::Add_r64_rm64, first, base);
    e.assembler.immediate(Code::Add_rm64_imm32, first, offset as i32);
    ranges::find(e, nowhere);
    let (range, behind) = (Register::RCX, Register::RSI);
    e.assembler.two(Code::Sub_r64_rm64, behind, bytes);
    e.assembler.immediate(Code::Add_rm64_imm32, behind, offset as i32);
    e.assembler.store(Code::Mov_rm64_r64, highest_memory(place), behind);
    let before = Register::RDX;
    e.assembler.load(Code::Mov_r64_rm64, before, ranges::start_memory(range));
    e.assembler.two(Code::Sub_r64_rm64, before, first);
    e.assembler.immediate(Code::Add_rm64_imm32, before, offset as i32);
    e.assembler.store(Code::Mov_rm64_r64, lowest_memory(place), before);
    e.assembler.load(Code::Add_r64_rm64, base, ranges::host_memory(range));
    e.assembler.load(Code::Sub_r64_rm64, base, ranges::start_memory(range));
    save_pointers(e, place, base);
}

fn save_pointers(e: &mut Emitter, place: usize, base: Register) {
    for part in e.parts() {
        let pointer = MemoryOperand::with_base_index(base, FIRST[part]);
        e.assembler.load(Code::Lea_r64_m, Register::RSI, pointer);
        e.assembler.store(Code::Mov_rm64_r64, pointer_memory(place, part), Register::RSI);
    }
}
