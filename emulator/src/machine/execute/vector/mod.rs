//! Operations of the vector unit: from a table of what each computes in a lane to actions on whole waves.

mod direct;
mod dual;
mod indexed;
mod input;
mod kernel;
mod output;
mod packed;
pub mod simple;
mod tables;
mod types;

pub use tables::rounding;

use crate::isa::{Encoding, Instruction, Source, sgpr};
use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};
use crate::machine::wave::Wave;

use super::unsupported;
use input::Input;
use kernel::{Kernel, Placing, Rows};
use output::Output;

/// What a vector instruction does.
pub fn action(instruction: &Instruction, setting: Setting) -> Result<Action, Box<Fault>> {
    if instruction.encoding == Encoding::Vopd {
        return dual::action(instruction, setting);
    }
    if let Some(action) = indexed::action(instruction, setting)? {
        return Ok(action);
    }
    if let Some(action) = packed::action(instruction, setting)? {
        return Ok(action);
    }
    Ok(execute(Operation::new(instruction, setting)?, setting))
}

/// The action of an operation.
fn execute(operation: Operation, setting: Setting) -> Action {
    direct::action(operation, setting.lanes).unwrap_or_else(|operation| {
        Box::new(move |wave, _| {
            if let Some(written) = operation.compute(wave, RESULT)? {
                operation.write(wave, RESULT, written);
            }
            Ok(())
        })
    })
}

/// The temporary rows that results are computed in; those before serve the sources.
const RESULT: usize = 3;
const SECOND_RESULT: usize = 4;

/// A kernel with its operands.
struct Operation {
    kernel: kernel::Loop,
    inputs: Vec<Input>,
    bits: Option<Source>,
    output: Option<Output>,
    mask: Option<MaskOutput>,
    /// Works on the first lane only, whatever EXEC says.
    scalar: bool,
}

/// Where a bit for each lane goes.
#[derive(Clone, Copy)]
pub enum MaskOutput {
    Register(u8),
    /// EXEC, and a register on GFX9 (V_CMPX).
    Exec(Option<u8>),
}

impl Operation {
    fn new(instruction: &Instruction, setting: Setting) -> Result<Operation, Box<Fault>> {
        let kernel = tables::find(instruction, setting).ok_or_else(|| unsupported(instruction))?;
        Operation::with_kernel(instruction, kernel, setting)
    }

    fn with_kernel(
        instruction: &Instruction,
        kernel: Kernel,
        setting: Setting,
    ) -> Result<Operation, Box<Fault>> {
        let modifiers = &instruction.modifiers;
        let inputs = kernel
            .inputs
            .iter()
            .enumerate()
            .map(|(index, &ty)| Input::new(instruction, index, ty, setting))
            .collect::<Result<Vec<_>, _>>()?;
        let clamp = modifiers.clamp && kernel.clamped.is_none();
        if let Some(ty) = kernel.output.filter(|ty| clamp && !ty.is_float()) {
            return Err(Fault::instruction(format!("{} has CLAMP for {ty:?}", instruction.name)));
        }
        let output = match kernel.output {
            Some(ty) => Some(Output::new(instruction, ty, setting, clamp)?),
            None => None,
        };
        Ok(Operation {
            kernel: kernel.clamped.filter(|_| modifiers.clamp).unwrap_or(kernel.run),
            bits: bits_source(instruction, &kernel),
            mask: mask_output(instruction, &kernel)?,
            scalar: matches!(instruction.destinations[0].source, Source::Scalar(_))
                && kernel.output.is_some(),
            inputs,
            output,
        })
    }

    /// A result of 16 bits leaves the other half of its register as it is, on all generations.
    fn keep_other_half(&mut self) {
        if let Some(output) = &mut self.output {
            output.keep_other_half();
        }
    }

    /// Computes the result in the temporary row `result`; lanes to be written. `None` where no lane takes part.
    fn compute(&self, wave: &mut Wave, result: usize) -> Result<Option<u64>, Box<Fault>> {
        let exec = if self.scalar { wave.all_lanes() } else { wave.exec() };
        if exec == 0 && self.mask.is_none() {
            return Ok(None);
        }
        let mut scalars = [0; 3];
        for (scalar, input) in scalars.iter_mut().zip(&self.inputs) {
            *scalar = input.scalar(wave)?;
        }
        let bits = match self.bits {
            Some(source) => wave.read_mask(source)?,
            None => 0,
        };
        let lanes = wave.lanes;
        let mut written = exec;
        let (sources, results) = wave.temporary.split_at_mut(RESULT);
        let mut rows = Rows {
            sources: [std::ptr::null(); 3],
            destination: results[result - RESULT].0.as_mut_ptr(),
            written: u64::MAX,
            bits,
            result_bits: 0,
            lanes,
            placing: Placing::WHOLE,
        };
        for (index, (input, temporary)) in self.inputs.iter().zip(sources).enumerate() {
            let row = input.row(&wave.vector, scalars[index], exec, lanes, temporary, &mut written);
            rows.sources[index] = row.as_ptr();
        }
        // SAFETY: the sources are rows of their types, which the registers and temporary rows they lie in outlive, and the
        // destination is a temporary row, which has room for two registers.
        unsafe { (self.kernel)(&mut rows) };
        let result_bits = rows.result_bits;
        if let Some(mask) = self.mask {
            write_mask(wave, mask, result_bits & written);
        }
        Ok(Some(written))
    }

    fn write(&self, wave: &mut Wave, result: usize, written: u64) {
        if let Some(output) = &self.output {
            output.write(wave, result, written);
        }
    }
}

fn write_mask(wave: &mut Wave, output: MaskOutput, bits: u64) {
    match output {
        MaskOutput::Register(register) => wave.set_mask(register, bits),
        MaskOutput::Exec(register) => {
            if let Some(register) = register {
                wave.set_mask(register, bits);
            }
            wave.set_exec(bits);
        }
    }
}

/// Which bit for each lane is read: the source behind the values, or VCC.
fn bits_source(instruction: &Instruction, kernel: &Kernel) -> Option<Source> {
    if !kernel.reads_bits {
        return None;
    }
    match instruction.sources.get(kernel.inputs.len()).map(|operand| operand.source) {
        Some(source) if source != Source::None => Some(source),
        _ => Some(Source::Scalar(sgpr::VCC)),
    }
}

fn mask_output(instruction: &Instruction, kernel: &Kernel) -> Result<Option<MaskOutput>, Box<Fault>> {
    if !kernel.writes_bits {
        return Ok(None);
    }
    let index = usize::from(kernel.output.is_some());
    let register = match instruction.destinations[index].source {
        Source::Scalar(register) => Some(register),
        Source::None => None,
        _ => return Err(Fault::instruction(format!("{} writes no mask", instruction.name))),
    };
    if instruction.name.starts_with("v_cmpx_") {
        return Ok(Some(MaskOutput::Exec(register.filter(|&register| register != sgpr::EXEC))));
    }
    // Carries of instructions whose carry nobody named are lost.
    Ok(register.map(MaskOutput::Register))
}

#[cfg(test)]
mod tests;
