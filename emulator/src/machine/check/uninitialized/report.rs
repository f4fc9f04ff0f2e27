//! Where a wave and its twin must agree.

use super::plan::{Decision, Plan};
use crate::isa::{Encoding, Instruction, Operand, sgpr};
use crate::machine::check::data::Data;
use crate::machine::check::operands::Span;
use crate::machine::fault::Fault;
use crate::machine::group::Access;
use crate::machine::wave::{Wave, lanes_of};

/// Before an instruction: its addresses, and what decides a branch.
pub fn before(plan: &Plan, instruction: &Instruction, wave: &Wave, twin: &Wave) -> Result<(), Box<Fault>> {
    let depends =
        |what: &str| Fault::check(format!("uninitialized: {what} depends on a value that nobody wrote"));
    match plan {
        Plan::Branch(Decision::Scc) if wave.scc != twin.scc => Err(depends("the branch by SCC")),
        Plan::Branch(Decision::Vcc) if (wave.mask(sgpr::VCC) == 0) != (twin.mask(sgpr::VCC) == 0) => {
            Err(depends("the branch by VCC"))
        }
        Plan::Branch(Decision::Source) => address(instruction.sources[0], wave, twin),
        _ => addresses(instruction).iter().try_for_each(|operand| address(*operand, wave, twin)),
    }
}

/// What an instruction finds its memory by.
fn addresses(instruction: &Instruction) -> [Operand; 3] {
    let [first, second, third, _] = instruction.sources;
    let none = Operand::default();
    match instruction.encoding {
        Encoding::Smem => [first, second, none],
        Encoding::Ds if has_address(instruction.name) => [first, none, none],
        // The second is the data.
        Encoding::Flat | Encoding::Global | Encoding::Scratch => [first, third, none],
        Encoding::Buffer => [first, second, third],
        _ => [none; 3],
    }
}

/// DS instructions that exchange values between lanes find no memory.
fn has_address(name: &str) -> bool {
    !(name.contains("permute") || name.contains("swizzle") || name.contains("_addtid"))
}

fn address(operand: Operand, wave: &Wave, twin: &Wave) -> Result<(), Box<Fault>> {
    let depends = |name: String, lane: String| {
        Err(Fault::check(format!(
            "uninitialized: the address in {name}{lane} depends on a value that nobody wrote"
        )))
    };
    match Span::of(operand) {
        Some(Span::Vector { first, count }) => {
            for register in first..first + count {
                let (a, b) = (wave.vector.row(register), twin.vector.row(register));
                if let Some(lane) = lanes_of(wave.exec()).find(|&lane| a[lane] != b[lane]) {
                    return depends(Span::name(register, false), format!(", lane {lane},"));
                }
            }
            Ok(())
        }
        Some(Span::Scalar { first, count }) => {
            let registers = first..(first + count).min(128);
            match registers.clone().find(|&register| wave.scalar[register] != twin.scalar[register]) {
                Some(register) => depends(Span::name(register, true), String::new()),
                None => Ok(()),
            }
        }
        None => Ok(()),
    }
}

/// What is stored to global memory.
pub fn stored(data: Option<Data>, access: &Access<'_>, wave: &Wave, twin: &Wave) -> Result<(), Box<Fault>> {
    let Some(data) = data else { return Ok(()) };
    let bytes = (access.bytes as usize).min(16);
    for lane in lanes_of(access.mask) {
        let (a, b) = (data.value(wave, lane), data.value(twin, lane));
        if let Some(byte) = (0..bytes).find(|&byte| a[byte] != b[byte]) {
            return Err(Fault::check(format!(
                "uninitialized: lane {lane} stores to {:#x} what depends on a value that nobody wrote, byte {byte} of {bytes}",
                access.addresses[lane]
            )));
        }
    }
    Ok(())
}

/// After an instruction: which lanes run.
pub fn after(wave: &Wave, twin: &Wave) -> Result<(), Box<Fault>> {
    let different = wave.exec() ^ twin.exec();
    match lanes_of(different).next() {
        Some(lane) => Err(Fault::check(format!(
            "uninitialized: whether lane {lane} runs depends on a value that nobody wrote"
        ))),
        None => Ok(()),
    }
}
