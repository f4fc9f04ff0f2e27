//! Makes an instruction of a row with random fields.

mod memory;
mod vector;

use super::random::Random;
use crate::isa::tables::{Kind, Row};
use crate::isa::{Encoding, Generation};

/// The way a vector operation is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Plain,
    Dpp16,
    Dpp8,
    Sdwa,
}

/// The fields of an instruction that is being made.
pub struct Maker<'a> {
    pub random: &'a mut Random,
    pub generation: Generation,
    bits: u128,
    literal: bool,
}

impl<'a> Maker<'a> {
    pub fn new(random: &'a mut Random, generation: Generation) -> Maker<'a> {
        Maker { random, generation, bits: 0, literal: false }
    }

    pub fn make(mut self, encoding: Encoding, row: &Row, opcode: u16, form: Form) -> Vec<u32> {
        let opcode = u32::from(opcode);
        match encoding {
            Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopc | Encoding::Sopk | Encoding::Sopp => {
                self.scalar(encoding, row, opcode);
                self.words(1)
            }
            Encoding::Smem => self.smem(row, opcode),
            Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc => self.short(encoding, row, opcode, form),
            Encoding::Vop3 => self.long(row, opcode, form),
            Encoding::Vop3p => self.packed(row, opcode),
            Encoding::Vopd => self.dual(row, opcode),
            Encoding::Ds => self.ds(row, opcode),
            Encoding::Flat | Encoding::Global | Encoding::Scratch => self.flat(encoding, row, opcode),
            Encoding::Buffer => self.buffer(row, opcode),
        }
    }

    fn put(&mut self, first: u32, value: u32) {
        self.bits |= u128::from(value) << first;
    }

    fn random_bits(&mut self, first: u32, count: u32) {
        let value = self.random.bits(count);
        self.put(first, value);
    }

    fn words(self, count: u32) -> Vec<u32> {
        let mut words: Vec<u32> = (0..count).map(|index| (self.bits >> (32 * index)) as u32).collect();
        if self.literal {
            let literals = [7, 0xffff_fff5, 0x3f00_0000, 0x3c00, 0x4048_f5c3, 0x1234_5678, 0x0000_bc00];
            words.push(literals[self.random.below(literals.len() as u32) as usize]);
        }
        words
    }

    fn gfx9(&self) -> bool {
        self.generation < Generation::Gfx10
    }

    fn vector(&mut self, registers: u8) -> u32 {
        let step = if registers > 1 { 2 } else { 1 };
        self.random.below((256 - u32::from(registers)) / step) * step
    }

    fn scalar_register(&mut self, registers: u8) -> u32 {
        match registers {
            1 if self.random.once_in(8) => [106, 107, 126, 127, 124][self.random.below(5) as usize],
            2 if self.random.once_in(8) => [106, 126][self.random.below(2) as usize],
            1 => self.random.below(100),
            2 => 2 * self.random.below(48),
            count => 4 * self.random.below((100 - u32::from(count)) / 4),
        }
    }

    fn registers(&self, kind: Kind) -> u8 {
        kind.registers(!self.gfx9())
    }

    fn constant(&mut self, literals: bool) -> u32 {
        match self.random.below(if literals { 3 } else { 2 }) {
            0 => 128 + self.random.below(81),
            1 => 240 + self.random.below(9),
            _ => {
                self.literal = true;
                255
            }
        }
    }

    fn scalar(&mut self, encoding: Encoding, row: &Row, opcode: u32) {
        let operands = row.operands();
        match encoding {
            Encoding::Sop1 => self.put(0, 0xbe80_0000 | opcode << 8),
            Encoding::Sop2 => self.put(0, 0x8000_0000 | opcode << 23),
            Encoding::Sopc => self.put(0, 0xbf00_0000 | opcode << 16),
            Encoding::Sopk => self.put(0, 0xb000_0000 | opcode << 23),
            _ => self.put(0, 0xbf80_0000 | opcode << 16),
        }
        if operands.destinations[0] != Kind::None {
            let register = self.scalar_register(self.registers(operands.destinations[0]));
            self.put(16, register);
        }
        let mut slot = 0;
        for kind in operands.sources {
            match kind {
                Kind::None | Kind::Destination => {}
                Kind::Literal => self.literal = true,
                Kind::Immediate if matches!(encoding, Encoding::Sopk | Encoding::Sopp) => {
                    let count = [4, 7, 16][self.random.below(3) as usize];
                    self.random_bits(0, count);
                }
                Kind::Immediate => self.random_bits(8 * slot, 4),
                kind if encoding == Encoding::Sopk => {
                    if operands.destinations[0] == Kind::None {
                        let register = self.scalar_register(self.registers(kind));
                        self.put(16, register);
                    }
                }
                kind => {
                    let register = self.scalar_register(self.registers(kind));
                    let code = if self.random.once_in(3) { self.constant(true) } else { register };
                    self.put(8 * slot, code);
                    slot += 1;
                }
            }
        }
    }

    fn destination(&mut self, kind: Kind) -> u32 {
        let registers = self.registers(kind);
        match kind {
            Kind::Scalar | Kind::Mask => self.scalar_register(registers),
            _ => self.vector(registers),
        }
    }
}
