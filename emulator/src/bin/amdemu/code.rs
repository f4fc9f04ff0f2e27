//! The instructions of code objects.

use amdhip64::code_object::Processor;
use amdhip64::isa::{DecodeError, Generation, Instruction, Target, decode, text};
use object::{Object, ObjectSection};

/// The instructions of a code object.
pub struct Code {
    pub target: Target,
    pub address: u64,
    pub bytes: Vec<u8>,
}

impl Code {
    pub fn read(path: &str) -> Result<Code, String> {
        let file = std::fs::read(path).map_err(|error| error.to_string())?;
        let elf = object::File::parse(&*file).map_err(|error| error.to_string())?;
        let object::FileFlags::Elf { e_flags, .. } = elf.flags() else {
            return Err("this is not an ELF file".to_owned());
        };
        let target = target(e_flags & 0xff)?;
        let section = elf.section_by_name(".text").ok_or("there is no section .text")?;
        let bytes = section.data().map_err(|error| error.to_string())?.to_vec();
        Ok(Code { target, address: section.address(), bytes })
    }

    fn decode(&self, offset: u64) -> Result<Instruction, DecodeError> {
        decode(self.target, self.target.generation >= Generation::Gfx10, &self.bytes, offset)
    }
}

/// The target by the number in the file's header.
fn target(machine: u32) -> Result<Target, String> {
    let name = Processor::find(machine).map_err(|error| error.to_string())?.name;
    Target::find(name).ok_or_else(|| format!("a code object for {name}, which is not decoded"))
}

/// A line for each instruction: address, words, text.
pub fn disassemble(code: &Code) {
    let mut output = String::new();
    let mut offset = 0;
    while offset < code.bytes.len() as u64 {
        let address = code.address + offset;
        match code.decode(offset) {
            Ok(instruction) => {
                output +=
                    &format!("{address:012X} {:2} {}\n", instruction.size, text(&instruction, code.target));
                offset += u64::from(instruction.size);
            }
            Err(error) => {
                output += &format!("{address:012X}  4 unknown: {error}\n");
                offset += 4;
            }
        }
    }
    print!("{output}");
}

/// The words that are no instruction.
pub fn unknown(code: &Code) {
    let mut offset = 0;
    while offset < code.bytes.len() as u64 {
        match code.decode(offset) {
            Ok(instruction) => offset += u64::from(instruction.size),
            Err(error) => {
                println!("{error}");
                offset += 4;
            }
        }
    }
}
