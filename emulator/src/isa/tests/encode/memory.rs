//! SMEM, DS, FLAT, MUBUF.

use super::Maker;
use crate::isa::tables::{Kind, Row};
use crate::isa::{Encoding, Generation};

impl Maker<'_> {
    pub(super) fn smem(mut self, row: &Row, opcode: u32) -> Vec<u32> {
        let operands = row.operands();
        let [data, base] = match operands.sources {
            [base, Kind::None, ..] => [operands.destinations[0], base],
            [base, data, ..] => [data, base],
        };
        let gfx12 = self.generation == Generation::Gfx12;
        let start = if self.gfx9() { 0xc000_0000 } else { 0xf400_0000 };
        self.put(0, start | opcode << if gfx12 { 13 } else { 18 });
        if data != Kind::None {
            let register = self.scalar_register(self.registers(data));
            self.put(6, register);
        }
        if base != Kind::None {
            let register = self.scalar_register(self.registers(base).max(3)) / 2;
            self.put(0, register);
            self.random_bits(32, 20);
        }
        if operands == Default::default() && !row.name.contains("prefetch") {
            return self.words(2);
        }
        let null = if self.generation == Generation::Gfx10 { 125 } else { 124 };
        match (base, self.gfx9()) {
            (Kind::None, true) => {}
            (_, true) => self.put(17, 1),
            (_, false) => {
                let offset =
                    if self.random.once_in(2) && base != Kind::None { self.random.below(100) } else { null };
                self.put(57, offset);
            }
        }
        self.words(2)
    }

    pub(super) fn ds(mut self, row: &Row, opcode: u32) -> Vec<u32> {
        let operands = row.operands();
        self.put(0, 0xd800_0000 | opcode << if self.gfx9() { 17 } else { 18 });
        if operands != Default::default() {
            self.random_bits(0, 16);
        }
        if row.name.contains("gws") || row.name == "ds_ordered_count" || row.name.contains("gs_reg") {
            self.put(if self.gfx9() { 16 } else { 17 }, 1);
        }
        if operands.destinations[0] != Kind::None {
            let register = self.destination(operands.destinations[0]);
            self.put(56, register);
        }
        if matches!(self.generation, Generation::Gfx90a | Generation::Gfx940) {
            self.random_bits(25, 1);
        }
        let mut data = 40;
        for kind in operands.sources {
            match kind {
                Kind::None => {}
                Kind::Address => self.random_bits(32, 8),
                kind => {
                    let register = self.vector(self.registers(kind));
                    self.put(data, register);
                    data += 8;
                }
            }
        }
        self.words(2)
    }

    pub(super) fn flat(mut self, encoding: Encoding, row: &Row, opcode: u32) -> Vec<u32> {
        let operands = row.operands();
        let segment =
            [Encoding::Flat, Encoding::Scratch, Encoding::Global].iter().position(|one| *one == encoding);
        let segment = segment.unwrap_or_default() as u32;
        let gfx12 = self.generation == Generation::Gfx12;
        let addtid = row.name.contains("_addtid_");
        let bare = operands == Default::default() && !row.name.contains("_lds_");
        let scalar = encoding != Encoding::Flat && self.random.once_in(2) && !bare;
        let off = match self.generation {
            Generation::Gfx10 => 0x7d,
            Generation::Gfx11 | Generation::Gfx12 => 0x7c,
            _ => 0x7f,
        };
        let off = if encoding == Encoding::Flat && self.gfx9() { 0 } else { off };
        let address =
            if addtid || bare || scalar && encoding == Encoding::Scratch { 0 } else { self.vector(2) };
        let scalar_address = if scalar { 2 * self.random.below(50) } else { off };
        let with_vector = encoding == Encoding::Scratch && !scalar;
        let data = operands.sources[0];
        let is_atomic = data != Kind::None && operands.destinations[0] != Kind::None;
        let returns = is_atomic && self.random.once_in(2);
        let stored = self.vector(self.registers(data));
        let loaded = self.vector(self.registers(operands.destinations[0]));
        let [address_at, data_at, destination_at, scalar_at, return_at] = if gfx12 {
            [64, 55, 32, 0, 52]
        } else {
            [32, 40, 56, 48, if self.generation == Generation::Gfx11 { 14 } else { 16 }]
        };
        match self.generation {
            Generation::Gfx12 => self.put(0, 0xec00_0000 | segment << 24 | opcode << 14),
            Generation::Gfx11 => self.put(0, 0xdc00_0000 | segment << 16 | opcode << 18),
            _ => self.put(0, 0xdc00_0000 | segment << 14 | opcode << 18),
        }
        match self.generation {
            Generation::Gfx12 if with_vector => self.put(49, 1),
            Generation::Gfx11 if with_vector => self.put(55, 1),
            Generation::Gfx940 if with_vector => self.put(13, 1),
            _ => {}
        }
        if !bare {
            self.flat_offset(encoding);
            self.flat_policy(is_atomic);
        }
        self.put(address_at, address);
        self.put(scalar_at, scalar_address);
        if data != Kind::None {
            self.put(data_at, stored);
        }
        if operands.destinations[0] != Kind::None && (!is_atomic || returns) {
            self.put(destination_at, loaded);
        }
        if returns {
            self.put(return_at, 1);
        }
        self.words(if gfx12 { 3 } else { 2 })
    }

    pub(super) fn buffer(mut self, row: &Row, opcode: u32) -> Vec<u32> {
        let operands = row.operands();
        let gfx12 = self.generation == Generation::Gfx12;
        let size = if gfx12 { 3 } else { 2 };
        self.put(0, if gfx12 { 0xc400_0000 | opcode << 14 } else { 0xe000_0000 | opcode << 18 });
        let data = match operands.sources[0] {
            Kind::None => operands.destinations[0],
            data => data,
        };
        if data == Kind::None && !row.name.contains("_lds_") {
            if gfx12 {
                self.put(0, 0x7c);
            }
            return self.words(size);
        }
        let [offen, idxen] = match self.generation {
            Generation::Gfx12 => [62, 63],
            Generation::Gfx11 => [54, 55],
            _ => [12, 13],
        };
        let [address_at, data_at, offset_at, offset_bits] =
            if gfx12 { [64, 32, 72, 23] } else { [32, 40, 0, 12] };
        let modes = self.random.bits(2);
        self.put(offen, modes & 1);
        self.put(idxen, modes >> 1);
        if modes != 0 {
            let address = self.vector(2);
            self.put(address_at, address);
        }
        if data != Kind::None {
            let register = self.vector(self.registers(data));
            self.put(data_at, register);
        }
        let resource = self.random.below(24);
        let scalar_offset = self.random.below(100);
        self.put(if gfx12 { 41 } else { 48 }, if gfx12 { 4 * resource } else { resource });
        self.put(if gfx12 { 0 } else { 56 }, scalar_offset);
        self.random_bits(offset_at, offset_bits);
        let flags: &[u32] = match self.generation {
            Generation::Gfx9 => &[14, 17],
            Generation::Gfx90a | Generation::Gfx940 => &[14, 15, 17, 55],
            Generation::Gfx10 => &[14, 15, 54],
            Generation::Gfx11 => &[12, 13, 14],
            Generation::Gfx12 => &[50, 51, 52, 53, 54],
        };
        for flag in flags {
            self.random_bits(*flag, 1);
        }
        self.words(size)
    }

    /// Without a sign in FLAT itself, but for GFX12.
    fn flat_offset(&mut self, encoding: Encoding) {
        let flat = encoding == Encoding::Flat;
        let (first, bits) = match self.generation {
            Generation::Gfx12 => (72, 24),
            Generation::Gfx10 => (0, if flat { 11 } else { 12 }),
            _ => (0, if flat { 12 } else { 13 }),
        };
        self.random_bits(first, bits);
    }

    /// Cache policies and accumulation registers. The bit with which an atomic returns is set elsewhere.
    fn flat_policy(&mut self, is_atomic: bool) {
        let (returns, flags): (u32, &[u32]) = match self.generation {
            Generation::Gfx9 => (16, &[17]),
            Generation::Gfx90a => (16, &[17, 25, 55]),
            Generation::Gfx940 => (16, &[17, 25, 55]),
            Generation::Gfx10 => (16, &[12, 17]),
            Generation::Gfx11 => (14, &[13, 15]),
            Generation::Gfx12 => (52, &[50, 51, 53]),
        };
        for flag in flags {
            self.random_bits(*flag, 1);
        }
        if !is_atomic {
            self.random_bits(returns, 1);
        }
    }
}
