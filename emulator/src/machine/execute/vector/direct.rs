//! The short way for the most common operations: registers, scalars and constants without modifiers go in, whole registers
//! come out.

use crate::isa::Source;
use crate::machine::step::Action;
use crate::machine::wave::{Temporary, Wave};

use super::kernel::{Loop, Placing, Rows};
use super::{MaskOutput, Operation, write_mask};

/// A source that needs no change.
pub enum Plain<'a> {
    /// A vector register.
    Row(usize),
    /// A vector register with a change of its words.
    Changed(usize, Words),
    Constant(&'a Temporary),
    /// A scalar register of 32 bits.
    Scalar(u8),
}

/// What modifiers make of each word: a part of it, with some bits removed and some inverted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Words {
    pub shift: u32,
    pub keep: u32,
    pub invert: u32,
}

impl Words {
    pub const SAME: Words = Words { shift: 0, keep: u32::MAX, invert: 0 };
}

enum From {
    /// Words from the beginning of the registers.
    Row(usize),
    Changed(usize, Words),
    Constant(Box<Temporary>),
    Scalar(u8),
    Nothing,
}

/// The action of an operation; the operation itself where it needs the long way.
pub fn action(operation: Operation, lanes: usize) -> Result<Action, Operation> {
    let Some((sources, destination)) = plain(&operation, lanes) else { return Err(operation) };
    let (kernel, mask) = (operation.kernel, operation.mask);
    let bits = match operation.bits {
        None => None,
        Some(Source::Scalar(register)) => Some(register),
        Some(_) => return Err(operation),
    };
    if bits.is_none()
        && mask.is_none()
        && let Some(destination) = destination
        && let Some(rows) = Addresses::new(&sources)
    {
        return Ok(Box::new(move |wave, _| {
            let written = wave.exec();
            if written != 0 {
                rows.run(wave, kernel, destination, written);
            }
            Ok(())
        }));
    }
    Ok(match (bits, mask) {
        (None, None) => Box::new(move |wave, _| {
            let written = wave.exec();
            if written != 0 {
                run(wave, kernel, &sources, destination, written, 0);
            }
            Ok(())
        }),
        _ => Box::new(move |wave, _| {
            let written = wave.exec();
            let bits = bits.map_or(0, |register| wave.mask(register));
            let result = run(wave, kernel, &sources, destination, written, bits);
            if let Some(mask) = mask {
                write_mask(wave, mask, result & written);
            }
            Ok(())
        }),
    })
}

/// Sources that are registers and constants, found without a branch.
struct Addresses {
    /// Words behind the first register, or behind nothing.
    words: [usize; 3],
    /// All ones where the words are those of registers.
    registers: [usize; 3],
    /// What the addresses lead to that are not in registers.
    _constants: [Option<Box<Temporary>>; 3],
}

impl Addresses {
    /// `None` where a source is a scalar register.
    fn new(sources: &[From; 3]) -> Option<Addresses> {
        let mut addresses = Addresses { words: [0; 3], registers: [0; 3], _constants: [None, None, None] };
        for (index, source) in sources.iter().enumerate() {
            match source {
                From::Row(word) => {
                    addresses.words[index] = word * size_of::<u32>();
                    addresses.registers[index] = usize::MAX;
                }
                From::Constant(row) => {
                    let row = row.clone();
                    addresses.words[index] = row.0.as_ptr().expose_provenance();
                    addresses._constants[index] = Some(row);
                }
                From::Scalar(_) | From::Changed(..) => return None,
                From::Nothing => {}
            }
        }
        Some(addresses)
    }

    #[inline(always)]
    fn run(&self, wave: &mut Wave, kernel: Loop, to: To, written: u64) {
        let lanes = wave.lanes;
        let registers = wave.vector.words_mut().as_mut_ptr();
        let first = registers.expose_provenance();
        let sources = std::array::from_fn(|index| {
            let address = (first & self.registers[index]).wrapping_add(self.words[index]);
            std::ptr::with_exposed_provenance::<u32>(address)
        });
        let destination = registers.wrapping_add(to.word);
        let placing = to.placing;
        let mut rows = Rows { sources, destination, written, bits: 0, result_bits: 0, lanes, placing };
        // SAFETY: as in `run`.
        unsafe { kernel(&mut rows) };
    }
}

/// Where a result goes.
#[derive(Clone, Copy)]
struct To {
    /// Words from the beginning of the registers.
    word: usize,
    placing: Placing,
}

fn plain(operation: &Operation, lanes: usize) -> Option<([From; 3], Option<To>)> {
    if operation.scalar || matches!(operation.mask, Some(MaskOutput::Exec(_))) && operation.output.is_some() {
        return None;
    }
    let destination = match &operation.output {
        Some(output) => {
            let (register, placing) = output.plain()?;
            Some(To { word: register * lanes, placing })
        }
        None => None,
    };
    let mut sources = [From::Nothing, From::Nothing, From::Nothing];
    for (source, input) in sources.iter_mut().zip(&operation.inputs) {
        *source = match input.plain()? {
            Plain::Row(register) => From::Row(register * lanes),
            Plain::Changed(register, words) => From::Changed(register * lanes, words),
            Plain::Constant(row) => From::Constant(Box::new(*row)),
            Plain::Scalar(register) => From::Scalar(register),
        };
    }
    Some((sources, destination))
}

#[inline(always)]
fn run(
    wave: &mut Wave,
    kernel: Loop,
    sources: &[From; 3],
    destination: Option<To>,
    written: u64,
    bits: u64,
) -> u64 {
    let lanes = wave.lanes;
    let registers = wave.vector.words_mut().as_mut_ptr();
    let mut rows = Rows {
        sources: [std::ptr::null(); 3],
        destination: destination.map_or(std::ptr::null_mut(), |to| registers.wrapping_add(to.word)),
        written,
        bits,
        result_bits: 0,
        lanes,
        placing: destination.map_or(Placing::WHOLE, |to| to.placing),
    };
    for (index, source) in sources.iter().enumerate() {
        rows.sources[index] = match source {
            From::Row(word) => registers.wrapping_add(*word).cast_const(),
            From::Constant(row) => row.0.as_ptr(),
            From::Changed(word, Words { shift, keep, invert }) => {
                let temporary = &mut wave.temporary[index].0;
                // SAFETY: `check_registers` found that the register is there.
                let row = unsafe { std::slice::from_raw_parts(registers.wrapping_add(*word), lanes) };
                for (to, from) in temporary.iter_mut().zip(row) {
                    *to = from >> shift & keep ^ invert;
                }
                temporary.as_ptr()
            }
            From::Scalar(register) => {
                let temporary = &mut wave.temporary[index].0;
                temporary[..lanes].fill(wave.scalar[usize::from(*register)]);
                temporary.as_ptr()
            }
            From::Nothing => std::ptr::null(),
        };
    }
    // SAFETY: `check_registers` found that the registers are there, `Input` that there are as many as the types say; the
    // other rows have room for two registers.
    unsafe { kernel(&mut rows) };
    rows.result_bits
}
