//! Loads of vector registers.

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::super::assembler::Label;
use super::super::cache::{Key, SCRATCH, Zmm, zmm};
use super::super::codes::{MOVE_UNALIGNED, XOR};
use super::super::constants::constant_memory;
use super::super::emitter::{BITS, Emitter, TOGETHER};
use super::super::memory::Access;
use super::place::{self, pointer_memory};

/// What is loaded for a part: the words of an element at an offset.
struct Loaded {
    part: usize,
    offset: i64,
    words: Vec<Zmm>,
    /// The first register.
    register: usize,
    /// How lanes lie, for elements of a word.
    shape: Option<Zmm>,
}

/// More registers of the host are not taken at once.
const MOST: usize = 16;

const TO_BYTES: u32 = 2;

pub fn load(e: &mut Emitter, access: &Access) -> Option<Label> {
    let second = access.second_register.map(|register| (access.second_offset, register));
    let elements: Vec<(i64, usize)> = [(access.offset, access.register)].into_iter().chain(second).collect();
    let fits = elements.len() * access.words * e.parts().len() <= MOST;
    if !fits || !matches!(access.words, 1 | 2 | 4) {
        return None;
    }
    let place = place::of(e, access);
    e.next_part();
    let (call, far, loaded) = (e.assembler.label(), e.assembler.label(), e.assembler.label());
    let mut parts = Vec::new();
    for part in e.parts() {
        let shape = (access.words == 1).then(|| e.load_key(Key::Shape(place, part)));
        for &(offset, register) in &elements {
            let words = (0..access.words).map(|_| e.fresh()).collect();
            parts.push(Loaded { part, offset, words, register, shape });
        }
    }
    place::guard(e, access, place, call, far);
    each(e, place, &parts, near);
    e.assembler.bind(loaded);
    for it in &parts {
        for (word, &value) in it.words.iter().enumerate() {
            e.write(it.register + word, it.part, value);
        }
    }
    e.next_part();
    e.aside(far, move |e| {
        each(e, place, &parts, far_elements);
        e.assembler.jump(Code::Jmp_rel32_64, loaded);
    });
    Some(call)
}

/// Loads all parts, with the pointer of each in RAX.
fn each(e: &mut Emitter, place: usize, parts: &[Loaded], load: fn(&mut Emitter, &Loaded)) {
    let mut last = None;
    for it in parts {
        if last != Some(it.part) {
            e.assembler.load(Code::Mov_r64_rm64, Register::RAX, pointer_memory(place, it.part));
            last = Some(it.part);
        }
        load(e, it);
    }
}

fn memory(offset: i64) -> MemoryOperand {
    MemoryOperand::with_base_displ(Register::RAX, offset)
}

/// Words of the 64 bytes from the first lane's on, or the same for all lanes.
fn near(e: &mut Emitter, it: &Loaded) {
    if let Some(shape) = it.shape {
        let code = Code::EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32;
        let from = memory(it.offset);
        return e.assembler.add(Instruction::with3(code, zmm(it.words[0]), zmm(shape), from));
    }
    for (word, &to) in it.words.iter().enumerate() {
        let from = memory(it.offset + 4 * word as i64);
        e.assembler.load(Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32, zmm(to), from);
    }
}

/// Words anywhere, or elements one behind the other.
fn far_elements(e: &mut Emitter, it: &Loaded) {
    if let Some(shape) = it.shape {
        return gather(e, it, shape);
    }
    match it.words[..] {
        [first, second] => run_of_two(e, it.offset, [first, second]),
        [first, second, third, fourth] => {
            // First words of eight elements, then second ones; third and fourth likewise.
            half_of_four(e, it.offset, 0, [first, second]);
            half_of_four(e, it.offset, 2, [third, fourth]);
        }
        _ => e.assembler.fail("an element of a size that is not loaded so".to_owned()),
    }
}

fn gather(e: &mut Emitter, it: &Loaded, shape: Zmm) {
    let ([distances, _], to) = (SCRATCH, it.words[0]);
    e.two_immediate(Code::EVEX_Vprold_zmm_k1z_zmmm512b32_imm8, distances, shape, TO_BYTES);
    e.masks(Code::VEX_Kxnorw_kr_kr_kr, BITS, BITS, BITS);
    e.three(XOR, to, to, to);
    let from = gathered(distances, it.offset);
    let code = Code::EVEX_Vpgatherdd_zmm_k1_vm32z;
    e.assembler.add(Instruction::with2(code, zmm(to), from).map(|it| masked(it, BITS)));
}

/// The memory of lanes with these distances from RAX.
pub fn gathered(distances: Zmm, offset: i64) -> MemoryOperand {
    MemoryOperand::with_base_index_scale_displ_size(Register::RAX, zmm(distances), 1, offset, 1)
}

/// The instruction for the lanes of a mask, if there is one.
pub fn masked(mut instruction: Instruction, mask: Register) -> Instruction {
    if mask != Register::None {
        instruction.set_op_mask(mask);
    }
    instruction
}

/// The 64 bytes of this number from the first element on.
fn line(offset: i64, index: usize) -> MemoryOperand {
    memory(offset + (64 * index) as i64)
}

const CHOOSE: Code = Code::EVEX_Vpermt2d_zmm_k1z_zmm_zmmm512b32;

fn run_of_two(e: &mut Emitter, offset: i64, to: [Zmm; 2]) {
    for (word, to) in to.into_iter().enumerate() {
        let order =
            e.constant_place(&std::array::from_fn::<u32, TOGETHER, _>(|lane| (2 * lane + word) as u32));
        let index = SCRATCH[0];
        e.assembler.load(MOVE_UNALIGNED, zmm(index), constant_memory(order));
        e.assembler.load(MOVE_UNALIGNED, zmm(to), line(offset, 0));
        e.assembler.add(Instruction::with3(CHOOSE, zmm(to), zmm(index), line(offset, 1)));
    }
}

/// Two words of each of sixteen elements of four, from `word` on.
fn half_of_four(e: &mut Emitter, offset: i64, word: u32, to: [Zmm; 2]) {
    const JOIN: Code = Code::EVEX_Vshufi64x2_zmm_k1z_zmm_zmmm512b64_imm8;
    const LOW_HALVES: u32 = 0x44;
    const HIGH_HALVES: u32 = 0xee;
    let order = e.constant_place(&std::array::from_fn::<u32, TOGETHER, _>(|lane| {
        4 * (lane as u32 % 8) + word + lane as u32 / 8
    }));
    let [low, index] = SCRATCH;
    let [first, second] = to;
    e.assembler.load(MOVE_UNALIGNED, zmm(index), constant_memory(order));
    for (to, begin) in [(low, 0), (second, 2)] {
        e.assembler.load(MOVE_UNALIGNED, zmm(to), line(offset, begin));
        e.assembler.add(Instruction::with3(CHOOSE, zmm(to), zmm(index), line(offset, begin + 1)));
    }
    e.three_immediate(JOIN, first, low, second, LOW_HALVES);
    e.three_immediate(JOIN, second, low, second, HIGH_HALVES);
}
