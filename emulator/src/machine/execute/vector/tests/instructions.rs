//! Instructions with random operands and modifiers.

use crate::isa::{Dpp, Encoding, Generation, Instruction, Operand, Sdwa, Source, sgpr};
use crate::machine::execute::testing::random::Random;
use crate::machine::execute::testing::*;

use super::reference::{Kind, Reference};
use super::values::value;

/// An instruction, and a wave whose registers hold what it is to read.
pub struct Trial {
    pub bench: Bench,
    pub instruction: Instruction,
}

/// What changes operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Dpp,
    Sdwa,
    /// Signs, halves, CLAMP.
    Vop3,
}

const TARGETS: &[(&str, usize)] = &[
    ("gfx906", 64),
    ("gfx90a", 64),
    ("gfx942", 64),
    ("gfx1030", 32),
    ("gfx1100", 32),
    ("gfx1100", 64),
    ("gfx1201", 32),
    ("gfx1201", 64),
];
/// Masks of lanes that are read, that are written, and where results go.
const MASK_READ: u8 = 30;
const MASK_WRITTEN: u8 = 34;
const RESULT: u16 = 40;
const CONSTANTS: &[f64] = &[0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0];

impl Trial {
    pub fn new(reference: &Reference, random: &mut Random) -> Trial {
        let (target, lanes) = random.pick(TARGETS);
        let mut bench = Bench::new(target, lanes);
        let forms = [Form::Plain, Form::Dpp, Form::Sdwa, Form::Vop3];
        let form =
            forms.into_iter().cycle().skip(random.below(4)).find(|&form| fits(form, reference, &bench));
        let mut sources = Vec::new();
        for (index, &kind) in reference.inputs.iter().enumerate() {
            sources.push(source(
                random,
                &mut bench,
                index,
                kind,
                form == Some(Form::Plain) || form == Some(Form::Vop3),
            ));
        }
        if reference.reads_bits {
            let mask = random.next();
            bench.wave.set_mask(MASK_READ, mask);
            sources.push(scalar(MASK_READ, (lanes / 32) as u8));
        }
        let name = Box::leak(reference.name.clone().into_boxed_str());
        let packed = reference.inputs.iter().any(|kind| kind.is_packed());
        let encoding = if packed { Encoding::Vop3p } else { Encoding::Vop3 };
        let mut made = instruction(name, encoding, NONE, &sources);
        destinations(reference, random, &mut bench, &mut made);
        match form {
            Some(Form::Dpp) => made.modifiers.dpp = Some(dpp(random, bench.target.generation)),
            Some(Form::Sdwa) => made.modifiers.sdwa = Some(sdwa(random, reference)),
            Some(Form::Vop3) => vop3(random, reference, &mut made),
            _ => made.modifiers.op_sel_high = if packed { 7 } else { 0 },
        }
        bench.wave.set_exec(exec(random) & bench.wave.all_lanes());
        Trial { bench, instruction: made }
    }
}

fn fits(form: Form, reference: &Reference, bench: &Bench) -> bool {
    let wide = reference.inputs.iter().chain(&reference.output).any(|kind| kind.registers() == 2);
    let packed = reference.inputs.iter().any(|kind| kind.is_packed());
    let old = [Generation::Gfx9, Generation::Gfx90a, Generation::Gfx940].contains(&bench.target.generation);
    match form {
        Form::Plain | Form::Vop3 => true,
        Form::Dpp => !wide && !packed,
        Form::Sdwa => !wide && !packed && old && reference.inputs.len() <= 2 && reference.output.is_some(),
    }
}

fn exec(random: &mut Random) -> u64 {
    match random.below(5) {
        0 | 1 => u64::MAX,
        2 => 1 << random.below(32),
        3 if random.once_in(4) => 0,
        _ => random.next(),
    }
}

/// An operand, and registers that hold values for it.
fn source(random: &mut Random, bench: &mut Bench, index: usize, kind: Kind, any: bool) -> Operand {
    let count = kind.registers();
    let at = |source: Source| Operand { source, registers: count };
    let integers = [Kind::B16, Kind::B32, Kind::B64];
    match random.below(8) {
        0 if any => {
            let register = (4 + 4 * index) as u8;
            let bits = value(random, kind);
            bench.wave.set_scalar64(register, bits);
            at(Source::Scalar(register))
        }
        1 if any && integers.contains(&kind) => at(Source::Integer(random.below(81) as i32 - 16)),
        1 if any && kind.is_float() => at(Source::Float(random.pick(CONSTANTS))),
        2 if any && (kind == Kind::B32 || kind == Kind::F32) => {
            at(Source::Literal(value(random, kind) as u32))
        }
        _ => {
            let register = 4 * index;
            for lane in 0..bench.wave.lanes {
                let bits = value(random, kind);
                bench.wave.vector.set(register, lane, bits as u32);
                bench.wave.vector.set(register + 1, lane, (bits >> 32) as u32);
            }
            at(Source::Vector(register as u16))
        }
    }
}

fn destinations(reference: &Reference, random: &mut Random, bench: &mut Bench, made: &mut Instruction) {
    let mask = match made.name.starts_with("v_cmpx_") {
        true => scalar(sgpr::EXEC, (bench.wave.lanes / 32) as u8),
        false => scalar(MASK_WRITTEN, (bench.wave.lanes / 32) as u8),
    };
    let Some(kind) = reference.output else {
        made.destinations[0] = mask;
        return;
    };
    // Now and then over a source.
    let register = if random.once_in(3) { 4 * random.below(3) as u16 } else { RESULT };
    if register == RESULT {
        for lane in 0..bench.wave.lanes {
            bench.wave.vector.set(usize::from(register), lane, random.next() as u32);
            bench.wave.vector.set(usize::from(register) + 1, lane, random.next() as u32);
        }
    }
    made.destinations[0] = vector(register, kind.registers());
    if reference.writes_bits {
        made.destinations[1] = mask;
    }
}

fn dpp(random: &mut Random, generation: Generation) -> Dpp {
    let is_old = generation < Generation::Gfx10;
    if !is_old && random.once_in(4) {
        let lanes = std::array::from_fn(|_| random.below(8) as u8);
        return Dpp::Dpp8 { lanes, fetch_inactive: random.once_in(2) };
    }
    let usual = [0x101, 0x107, 0x10f, 0x111, 0x118, 0x121, 0x12f, 0x140, 0x141];
    let control = match random.below(3) {
        0 => random.below(256) as u16,
        1 => random.pick(&usual),
        _ if is_old => random.pick(&[0x130, 0x138, 0x142]),
        _ => random.pick(&[0x150, 0x15f, 0x161, 0x16f]),
    };
    let mask = |random: &mut Random| if random.once_in(2) { 15 } else { random.below(16) as u8 };
    Dpp::Dpp16 {
        control,
        row_mask: mask(random),
        bank_mask: mask(random),
        bound_control: random.once_in(2),
        fetch_inactive: !is_old && random.once_in(2),
    }
}

fn sdwa(random: &mut Random, reference: &Reference) -> Sdwa {
    let selector = |random: &mut Random| random.below(7) as u8;
    let sources = [selector(random), selector(random)];
    let signed = std::array::from_fn(|index| {
        let integer = reference.inputs.get(index).is_some_and(|kind| !kind.is_float());
        integer && random.once_in(2)
    });
    // Of floats only whole numbers, which may be other NaNs than expected.
    let (destination, unused) = match reference.output {
        Some(Kind::F16) => (4 + random.below(3) as u8, 2 * random.below(2) as u8),
        Some(Kind::F32) => (6, 0),
        _ => (selector(random), random.below(3) as u8),
    };
    Sdwa { destination, unused, sources, signed }
}

fn vop3(random: &mut Random, reference: &Reference, made: &mut Instruction) {
    let bits = |random: &mut Random, fits: fn(Kind) -> bool| -> u8 {
        let chosen = reference.inputs.iter().map(|&kind| fits(kind) && random.once_in(3));
        chosen.enumerate().map(|(index, bit)| u8::from(bit) << index).sum()
    };
    let packed = reference.inputs.iter().any(|kind| kind.is_packed());
    let registers =
        made.sources.map(|operand| matches!(operand.source, Source::Vector(_) | Source::Scalar(_)));
    let of_registers = registers.iter().enumerate().map(|(index, &is)| u8::from(is) << index).sum::<u8>();
    made.modifiers.negate = bits(random, Kind::is_float);
    if packed {
        made.modifiers.negate_high = bits(random, Kind::is_float);
        (made.modifiers.op_sel, made.modifiers.op_sel_high) = (random.below(8) as u8, random.below(8) as u8);
    } else {
        made.modifiers.absolute = bits(random, Kind::is_float);
        made.modifiers.op_sel = bits(random, Kind::is_half) & of_registers & 7;
        if reference.output.is_some_and(Kind::is_half) && random.once_in(2) {
            made.modifiers.op_sel |= 8;
        }
    }
    let float = reference.output.is_some_and(Kind::is_float);
    made.modifiers.clamp = (float || reference.clamped.is_some()) && random.once_in(3);
}
