//! Makes an instruction of a row with random fields.

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

    /// The words of an instruction. VOP3 is also for rows of VOP1, VOP2 and VOPC, whose opcode is given then.
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

    fn words(mut self, count: u32) -> Vec<u32> {
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

    /// A vector register that so many behind it follow. GFX90A wants even ones.
    fn vector(&mut self, registers: u8) -> u32 {
        let step = if registers > 1 { 2 } else { 1 };
        self.random.below((128 - u32::from(registers)) / step) * step
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

    fn smem(mut self, row: &Row, opcode: u32) -> Vec<u32> {
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

    /// A source of a vector operation, with 9 bits.
    fn source(&mut self, kind: Kind, literals: bool) -> u32 {
        let registers = self.registers(kind);
        match self.random.below(4) {
            0 if kind == Kind::Mask => self.scalar_register(registers),
            _ if kind == Kind::Mask => self.scalar_register(registers),
            0 if registers <= 2 => self.scalar_register(registers),
            1 => self.constant(literals),
            _ => 256 + self.vector(registers),
        }
    }

    fn destination(&mut self, kind: Kind) -> u32 {
        let registers = self.registers(kind);
        match kind {
            Kind::Scalar | Kind::Mask => self.scalar_register(registers),
            _ => self.vector(registers),
        }
    }

    fn short(mut self, encoding: Encoding, row: &Row, opcode: u32, form: Form) -> Vec<u32> {
        let operands = row.operands();
        match encoding {
            Encoding::Vop1 => self.put(0, 0x7e00_0000 | opcode << 9),
            Encoding::Vop2 => self.put(0, opcode << 25),
            _ => self.put(0, 0x7c00_0000 | opcode << 17),
        }
        if encoding != Encoding::Vopc && operands.destinations[0] != Kind::None {
            let register = self.destination(operands.destinations[0]);
            self.put(17, register);
        }
        let in_fields =
            |kind: &Kind| !matches!(kind, Kind::None | Kind::Destination | Kind::Literal | Kind::Mask);
        let kinds: Vec<Kind> = operands.sources.into_iter().filter(in_fields).collect();
        let fixed = operands.sources.contains(&Kind::Literal);
        if let Some(kind) = kinds.get(1) {
            let register = self.vector(self.registers(*kind));
            self.put(9, register);
        }
        let Some(first) = kinds.first() else { return self.words(1) };
        match form {
            Form::Plain => {
                let code = self.source(*first, !fixed);
                self.put(0, code);
                self.literal |= fixed;
                return self.words(1);
            }
            Form::Dpp16 => self.put(0, 250),
            Form::Dpp8 => self.put(0, 233),
            Form::Sdwa => self.put(0, 249),
        }
        let register = self.vector(self.registers(*first));
        self.put(32, register);
        self.exchange(form, &kinds);
        self.words(2)
    }

    /// The word of DPP or SDWA at bit 32.
    fn exchange(&mut self, form: Form, kinds: &[Kind]) {
        match form {
            Form::Plain => {}
            Form::Dpp8 => self.random_bits(40, 24),
            Form::Dpp16 => {
                let controls = [0x1b, 0x101, 0x11f, 0x123, 0x140, 0x141];
                let control = controls[self.random.below(controls.len() as u32) as usize];
                self.put(40, control);
                self.random_bits(51, 1);
                self.random_bits(56, 8);
                for (index, kind) in kinds.iter().enumerate().take(2) {
                    if kind.is_float() {
                        self.random_bits(52 + 2 * index as u32, 2);
                    }
                }
            }
            Form::Sdwa => {
                let selector = self.random.below(7);
                self.put(48, selector);
                if kinds.len() > 1 {
                    let selector = self.random.below(7);
                    self.put(56, selector);
                }
                for (index, kind) in kinds.iter().enumerate().take(2) {
                    let at = 51 + 8 * index as u32;
                    if kind.is_float() { self.random_bits(at + 1, 2) } else { self.random_bits(at, 1) }
                }
                if self.bits as u32 >> 25 != 0x3e {
                    let selector = self.random.below(7);
                    self.put(40, selector);
                    let unused = self.random.below(3);
                    self.put(43, unused);
                }
            }
        }
    }

    fn long(mut self, row: &Row, opcode: u32, form: Form) -> Vec<u32> {
        let operands = row.operands();
        let gfx9 = self.gfx9();
        self.put(0, (if gfx9 { 0xd000_0000 } else { 0xd400_0000 }) | opcode << 16);
        match operands.destinations[0] {
            Kind::None => {}
            Kind::Mask if row.name.starts_with("v_cmpx_") && !gfx9 => self.put(0, 126),
            kind => {
                let register = self.destination(kind);
                self.put(0, register);
            }
        }
        if operands.destinations[1] == Kind::Mask {
            let register = self.scalar_register(self.registers(Kind::Mask));
            self.put(8, register);
        }
        let kinds: Vec<Kind> = operands
            .sources
            .into_iter()
            .filter(|kind| !matches!(kind, Kind::None | Kind::Destination))
            .collect();
        for (slot, kind) in kinds.iter().enumerate() {
            let code = self.source(*kind, !gfx9 && form == Form::Plain && !self.literal);
            self.put(32 + 9 * slot as u32, code);
            if kind.is_float() && self.random.once_in(2) {
                self.random_bits(61 + slot as u32, 1);
                if operands.destinations[1] == Kind::None {
                    self.random_bits(8 + slot as u32, 1);
                }
            }
        }
        if kinds.iter().all(|kind| kind.is_float()) && !kinds.is_empty() && self.random.once_in(2) {
            self.random_bits(15, 1);
        }
        self.words(2)
    }

    fn packed(mut self, row: &Row, opcode: u32) -> Vec<u32> {
        let operands = row.operands();
        self.put(0, (if self.gfx9() { 0xd380_0000 } else { 0xcc00_0000 }) | opcode << 16);
        let register = self.destination(operands.destinations[0]);
        self.put(0, register);
        let matrix =
            ["mfma", "smfmac", "wmma", "swmmac", "accvgpr"].iter().any(|word| row.name.contains(word));
        let kinds: Vec<Kind> = operands
            .sources
            .into_iter()
            .filter(|kind| !matches!(kind, Kind::None | Kind::Destination))
            .collect();
        for (slot, kind) in kinds.iter().enumerate() {
            let registers = self.registers(*kind);
            let code = if matrix {
                256 + self.vector(registers)
            } else {
                self.source(*kind, !self.gfx9() && !self.literal)
            };
            self.put(32 + 9 * slot as u32, code);
        }
        let count = kinds.len() as u32;
        if row.name.contains("mfma") || row.name.contains("smfmac") {
            if self.generation >= Generation::Gfx90a {
                self.random_bits(15, 1);
            }
            self.random_bits(59, 2);
        } else if row.name.contains("wmma") || row.name.contains("swmmac") {
            self.put(14, 1);
            self.put(59, 3);
        } else if !matrix {
            self.random_bits(11, count);
            self.random_bits(59, count.min(2));
            if count > 2 {
                self.random_bits(14, 1);
            } else if self.generation >= Generation::Gfx10 || self.random.once_in(1) {
                self.put(14, 1);
            }
            if kinds.contains(&Kind::Pair16) {
                self.random_bits(61, count);
                self.random_bits(8, count);
            }
        }
        self.words(2)
    }

    /// The other half is V_MOV_B32, or V_ADD_NC_U32 for opcodes that only the second half has.
    fn dual(mut self, row: &Row, opcode: u32) -> Vec<u32> {
        let operands = row.operands();
        let first = opcode < 16 && self.random.once_in(2);
        self.put(0, 0xc800_0000);
        let [own, other] = if first { [opcode, 8] } else { [8, opcode] };
        self.put(22, own);
        self.put(17, other);
        let [x, y] = if first { [0, 32] } else { [32, 0] };
        self.put(56, 10);
        self.put(49, 3);
        let literal = operands.sources.contains(&Kind::Literal);
        let code = self.source(operands.sources[0], !literal);
        self.put(x, code);
        if operands.sources[1] != Kind::None {
            let register = self.vector(1);
            self.put(x + 9, register);
        }
        self.literal |= literal;
        let register = self.vector(1);
        self.put(y, 256 + register);
        self.words(2)
    }

    fn ds(mut self, row: &Row, opcode: u32) -> Vec<u32> {
        let operands = row.operands();
        self.put(0, 0xd800_0000 | opcode << if self.gfx9() { 17 } else { 18 });
        self.random_bits(0, 16);
        if row.name.contains("gws") || row.name == "ds_ordered_count" || row.name.contains("gs_reg") {
            self.put(if self.gfx9() { 16 } else { 17 }, 1);
        }
        if operands.destinations[0] != Kind::None {
            let register = self.destination(operands.destinations[0]);
            self.put(56, register);
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

    fn flat(mut self, encoding: Encoding, row: &Row, opcode: u32) -> Vec<u32> {
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
            self.random_bits(if gfx12 { 72 } else { 0 }, if gfx12 { 23 } else { 11 });
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

    fn buffer(mut self, row: &Row, opcode: u32) -> Vec<u32> {
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
        self.words(size)
    }
}
