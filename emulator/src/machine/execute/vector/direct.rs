//! The short way for the most common operations: registers, scalars and constants without modifiers go in, whole registers
//! come out.

use crate::isa::Source;
use crate::machine::step::Action;
use crate::machine::wave::{Temporary, Wave};

use super::kernel::{Loop, Rows};
use super::{MaskOutput, Operation, write_mask};

/// A source that needs no change.
pub enum Plain<'a> {
    /// A vector register.
    Row(usize),
    Constant(&'a Temporary),
    /// A scalar register of 32 bits.
    Scalar(u8),
}

enum From {
    /// Words from the beginning of the registers.
    Row(usize),
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

fn plain(operation: &Operation, lanes: usize) -> Option<([From; 3], Option<usize>)> {
    if operation.scalar || matches!(operation.mask, Some(MaskOutput::Exec(_))) && operation.output.is_some() {
        return None;
    }
    let destination = match &operation.output {
        Some(output) => Some(output.plain_register()? * lanes),
        None => None,
    };
    let mut sources = [From::Nothing, From::Nothing, From::Nothing];
    for (source, input) in sources.iter_mut().zip(&operation.inputs) {
        *source = match input.plain()? {
            Plain::Row(register) => From::Row(register * lanes),
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
    destination: Option<usize>,
    written: u64,
    bits: u64,
) -> u64 {
    let lanes = wave.lanes;
    let registers = wave.vector.words_mut().as_mut_ptr();
    let mut rows = Rows {
        sources: [std::ptr::null(); 3],
        destination: destination.map_or(std::ptr::null_mut(), |word| registers.wrapping_add(word)),
        written,
        bits,
        result_bits: 0,
        lanes,
    };
    for (index, source) in sources.iter().enumerate() {
        rows.sources[index] = match source {
            From::Row(word) => registers.wrapping_add(*word).cast_const(),
            From::Constant(row) => row.0.as_ptr(),
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
