//! VOP1, VOP2, VOPC, VOP3, VOP3P, VOPD.

use super::{Form, Maker};
use crate::isa::tables::{Kind, Row};
use crate::isa::{Encoding, Generation};

impl Maker<'_> {
    pub(super) fn source(&mut self, kind: Kind, literals: bool) -> u32 {
        let registers = self.registers(kind);
        match self.random.below(4) {
            0 if kind == Kind::Mask => self.scalar_register(registers),
            _ if kind == Kind::Mask => self.scalar_register(registers),
            0 if registers <= 2 => self.scalar_register(registers),
            1 => self.constant(literals),
            _ => 256 + self.vector(registers),
        }
    }

    pub(super) fn short(mut self, encoding: Encoding, row: &Row, opcode: u32, form: Form) -> Vec<u32> {
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
                let accumulation = row.name == "v_accvgpr_mov_b32";
                let code = if accumulation { 256 + self.vector(1) } else { self.source(*first, !fixed) };
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

    pub(super) fn exchange(&mut self, form: Form, kinds: &[Kind]) {
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
                    // LLVM writes the mask of V_CNDMASK_B32 between the bars of an absolute value.
                    let mask = self.bits as u32 >> 25 <= 1;
                    if kind.is_float() {
                        self.random_bits(52 + 2 * index as u32, if mask { 1 } else { 2 });
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

    pub(super) fn long(mut self, row: &Row, opcode: u32, form: Form) -> Vec<u32> {
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
            let code = match form {
                Form::Dpp16 if slot == 0 => 250,
                Form::Dpp8 if slot == 0 => 233,
                _ => self.source(*kind, !gfx9 && form == Form::Plain && !self.literal),
            };
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
            self.random_bits(59, 2);
        }
        if form == Form::Plain || kinds.is_empty() {
            return self.words(2);
        }
        let register = self.vector(self.registers(kinds[0]));
        self.put(64, register);
        match form {
            Form::Dpp8 => self.random_bits(72, 24),
            _ => self.put(72, 0x1b | 0xf3 << 16),
        }
        self.words(3)
    }

    pub(super) fn packed(mut self, row: &Row, opcode: u32) -> Vec<u32> {
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
            let cbsz = self.random.below(5);
            self.put(8, cbsz);
            self.random_bits(11, 4);
            if row.name.starts_with("v_mfma_") {
                self.random_bits(61, 3);
            }
        } else if matrix || row.name.starts_with("v_dot4_f32_") {
            self.put(14, 1);
            self.put(59, 3);
        } else {
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

    pub(super) fn dual(mut self, row: &Row, opcode: u32) -> Vec<u32> {
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
}
