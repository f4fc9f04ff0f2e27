//! Machine code of the host, with labels.

use iced_x86::{Code, Encoder, IcedError, Instruction, MemoryOperand, Register};

/// A place in the code that jumps lead to, before or after it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// Bytes of the distance at the end of a jump.
const DISTANCE: usize = 4;

pub struct Assembler {
    encoder: Encoder,
    length: usize,
    labels: Vec<Option<usize>>,
    /// Where jumps end, and where they lead.
    jumps: Vec<(usize, Label)>,
    error: Option<String>,
}

impl Assembler {
    pub fn new() -> Assembler {
        Assembler { encoder: Encoder::new(64), length: 0, labels: Vec::new(), jumps: Vec::new(), error: None }
    }

    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// The label is here.
    pub fn bind(&mut self, label: Label) {
        self.labels[label.0] = Some(self.length);
    }

    /// Adds an instruction.
    pub fn add(&mut self, instruction: Result<Instruction, IcedError>) {
        let done = instruction.and_then(|it| self.encoder.encode(&it, self.length as u64));
        match done {
            Ok(bytes) => self.length += bytes,
            Err(error) => self.fail(error.to_string()),
        }
    }

    /// Code that cannot be made; the first reason is what [`Assembler::finish`] gives.
    pub fn fail(&mut self, reason: String) {
        self.error.get_or_insert(reason);
    }

    /// A jump with a distance of 32 bits, conditional or not.
    pub fn jump(&mut self, code: Code, to: Label) {
        self.add(Instruction::with_branch(code, self.length as u64));
        self.jumps.push((self.length, to));
    }

    /// An instruction of vectors: registers, then an immediate. `mask`: only its lanes are written.
    pub fn vector(&mut self, code: Code, mask: Register, registers: &[Register], immediate: Option<u32>) {
        let instruction = match (registers, immediate) {
            (&[a, b], None) => Instruction::with2(code, a, b),
            (&[a, b], Some(value)) => Instruction::with3(code, a, b, value),
            (&[a, b, c], None) => Instruction::with3(code, a, b, c),
            (&[a, b, c], Some(value)) => Instruction::with4(code, a, b, c, value),
            _ => unreachable!("an instruction of vectors has two or three registers"),
        };
        self.add(instruction.map(|mut it| {
            if mask != Register::None {
                it.set_op_mask(mask);
            }
            it
        }));
    }

    /// A register and memory, which is read.
    pub fn load(&mut self, code: Code, register: Register, memory: MemoryOperand) {
        self.add(Instruction::with2(code, register, memory));
    }

    /// Memory, which is written, and a register.
    pub fn store(&mut self, code: Code, memory: MemoryOperand, register: Register) {
        self.add(Instruction::with2(code, memory, register));
    }

    /// A general register.
    pub fn one(&mut self, code: Code, a: Register) {
        self.add(Instruction::with1(code, a));
    }

    /// Two general registers.
    pub fn two(&mut self, code: Code, a: Register, b: Register) {
        self.add(Instruction::with2(code, a, b));
    }

    /// A general register or memory and an immediate.
    pub fn immediate(&mut self, code: Code, a: Register, value: i32) {
        self.add(Instruction::with2(code, a, value));
    }

    pub fn memory_immediate(&mut self, code: Code, a: MemoryOperand, value: i32) {
        self.add(Instruction::with2(code, a, value));
    }

    /// A constant of 64 bits.
    pub fn constant(&mut self, register: Register, value: u64) {
        self.add(Instruction::with2(Code::Mov_r64_imm64, register, value));
    }

    /// The code, with all jumps leading where their labels are, and where each label is.
    pub fn finish(mut self) -> Result<(Vec<u8>, Vec<Option<usize>>), String> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut bytes = self.encoder.take_buffer();
        for (end, label) in self.jumps {
            let Some(to) = self.labels[label.0] else {
                return Err("a jump to a label that is nowhere".to_owned());
            };
            let distance = to.wrapping_sub(end) as u32;
            bytes[end - DISTANCE..end].copy_from_slice(&distance.to_le_bytes());
        }
        Ok((bytes, self.labels))
    }
}

impl Label {
    /// Where it is, in what [`Assembler::finish`] gives.
    pub fn place(self, labels: &[Option<usize>]) -> Option<usize> {
        labels[self.0]
    }
}

/// The memory so many bytes behind a register.
pub fn at(base: Register, displacement: usize) -> MemoryOperand {
    MemoryOperand::with_base_displ(base, displacement as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_lead_to_their_labels() {
        let mut assembler = Assembler::new();
        let (back, ahead) = (assembler.label(), assembler.label());
        assembler.bind(back);
        assembler.jump(Code::Jmp_rel32_64, ahead);
        assembler.jump(Code::Je_rel32_64, back);
        assembler.bind(ahead);
        let (bytes, labels) = assembler.finish().unwrap();
        assert_eq!(bytes, [0xe9, 6, 0, 0, 0, 0x0f, 0x84, 0xf5, 0xff, 0xff, 0xff]);
        assert_eq!(ahead.place(&labels), Some(11));
    }

    #[test]
    fn what_cannot_be_encoded_is_an_error() {
        let mut assembler = Assembler::new();
        assembler.two(Code::Add_r32_rm32, Register::RAX, Register::ECX);
        assert!(assembler.finish().is_err());
    }
}
