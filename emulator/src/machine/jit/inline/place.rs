//! What is known of the places that registers of addresses lead to.

use std::mem::offset_of;

use iced_x86::{Code, MemoryOperand, Register};

use super::super::assembler::{Label, at};
use super::super::cache::Key;
use super::super::call::{Context, PLACES};
use super::super::emitter::{Emitter, TOGETHER};
use super::super::memory::{Access, Kind};

/// Where the elements of all lanes lie, as code has found out. Sixteen lanes are a part.
#[repr(C, align(64))]
pub struct Place {
    /// By part: how far each lane's element is behind that of the part's first lane. Where elements are words, in words,
    /// with what is no multiple above those.
    shapes: [[u32; TOGETHER]; 4],
    /// By part: where the element of its first lane lies in the host's memory, without the instruction's offset.
    pointers: [u64; 4],
    /// Offsets with which all elements lie within LDS or one allocation, from the lowest to the highest.
    lowest: i64,
    highest: i64,
    mode: Mode,
}

/// How elements lie within each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    /// Words within 64 bytes from the first lane's on, or larger elements that are the same for all lanes.
    Near,
    /// Words anywhere, or larger elements one behind the other.
    Far,
}

/// Registers of addresses, of elements of so many words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    pub global: bool,
    pub vector: usize,
    pub scalar: Option<u8>,
    pub words: usize,
}

/// Which places code knows of.
#[derive(Default)]
pub struct KnownPlaces {
    known: [Option<Addresses>; PLACES],
    /// The one that is forgotten next.
    next: usize,
}

impl KnownPlaces {
    fn find(&self, addresses: Addresses) -> Option<usize> {
        self.known.iter().position(|it| *it == Some(addresses))
    }

    fn add(&mut self, addresses: Addresses) -> usize {
        let place = self.next;
        self.known[place] = Some(addresses);
        self.next = (place + 1) % PLACES;
        place
    }

    pub fn forget_all(&mut self) {
        self.known = [None; PLACES];
    }

    /// A vector register was written.
    pub fn forget_row(&mut self, row: usize) {
        let uses = |it: &Addresses| it.vector == row || it.is_pair() && it.vector + 1 == row;
        self.forget(uses);
    }

    /// A scalar register was written.
    pub fn forget_scalar(&mut self, register: u8) {
        self.forget(|it| it.scalar.is_some_and(|first| register == first || register == first + 1));
    }

    fn forget(&mut self, uses: impl Fn(&Addresses) -> bool) {
        for it in &mut self.known {
            if it.as_ref().is_some_and(&uses) {
                *it = None;
            }
        }
    }
}

impl Addresses {
    pub fn of(access: &Access) -> Addresses {
        let global = matches!(access.kind, Kind::LoadGlobal | Kind::StoreGlobal);
        Addresses { global, vector: access.vector, scalar: access.scalar, words: access.words }
    }

    /// Whether each address is in two registers.
    pub fn is_pair(&self) -> bool {
        self.global && self.scalar.is_none()
    }
}

/// The place of an access, which is looked for if it is not known.
pub fn of(e: &mut Emitter, access: &Access) -> usize {
    let addresses = Addresses::of(access);
    if let Some(place) = e.places.find(addresses) {
        return place;
    }
    let place = e.places.add(addresses);
    for part in e.parts() {
        e.forget_key(Key::Shape(place, part));
    }
    super::learn::learn(e, addresses, access.offset, place);
    place
}

/// Jumps where offsets lead elsewhere, and where elements lie far from each other.
pub fn guard(e: &mut Emitter, access: &Access, place: usize, call: Label, far: Label) {
    let highest = access.furthest() as i32;
    e.assembler.memory_immediate(Code::Cmp_rm64_imm32, highest_memory(place), highest);
    e.assembler.jump(Code::Jl_rel32_64, call);
    if Addresses::of(access).global {
        e.assembler.memory_immediate(Code::Cmp_rm64_imm32, lowest_memory(place), highest);
        e.assembler.jump(Code::Jg_rel32_64, call);
    }
    if !e.masked {
        e.assembler.memory_immediate(Code::Cmp_rm32_imm8, mode_memory(place), Mode::Near as i32);
        e.assembler.jump(Code::Jne_rel32_64, far);
    }
}

pub fn shape_memory(place: usize, part: usize) -> MemoryOperand {
    field(place, offset_of!(Place, shapes) + size_of::<[u32; TOGETHER]>() * part)
}

pub fn pointer_memory(place: usize, part: usize) -> MemoryOperand {
    field(place, offset_of!(Place, pointers) + size_of::<u64>() * part)
}

pub fn lowest_memory(place: usize) -> MemoryOperand {
    field(place, offset_of!(Place, lowest))
}

pub fn highest_memory(place: usize) -> MemoryOperand {
    field(place, offset_of!(Place, highest))
}

pub fn mode_memory(place: usize) -> MemoryOperand {
    field(place, offset_of!(Place, mode))
}

fn field(place: usize, offset: usize) -> MemoryOperand {
    at(Register::R13, offset_of!(Context, places) + size_of::<Place>() * place + offset)
}
