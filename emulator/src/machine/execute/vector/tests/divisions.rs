//! The steps of a division have no second description: NumPy's quotients are what they are held to. Here both ways of
//! running them are compared, on numbers for which a step does something else than usual.

use crate::isa::{Encoding, Instruction, Operand, sgpr};
use crate::machine::execute::testing::random::Random;
use crate::machine::execute::testing::*;

use super::reference::Kind;
use super::values::value;

const TRIALS: usize = 3000;

#[test]
fn steps_of_divisions_are_the_same_both_ways() {
    let (mut random, mut translated) = (Random::new(), 0);
    for _ in 0..TRIALS {
        let (target, lanes) =
            random.pick(&[("gfx1100", 32), ("gfx1100", 64), ("gfx90a", 64), ("gfx1201", 32)]);
        let mut bench = Bench::new(target, lanes);
        for register in 0..3 {
            for lane in 0..lanes {
                bench.wave.vector.set(register, lane, number(&mut random));
            }
        }
        bench.wave.set_scalar(4, number(&mut random));
        bench.wave.set_mask(sgpr::VCC, random.next());
        if random.once_in(3) {
            let exec = random.next() & bench.wave.all_lanes();
            bench.wave.set_exec(exec);
        }
        let step = step(&mut random, lanes);
        translated += usize::from(is_translated(&step, &bench));
        bench.run(&step).unwrap();
    }
    assert!(translated > TRIALS / 2 || !crate::machine::translates(), "{translated} of {TRIALS} translated");
}

#[cfg(all(target_arch = "x86_64", unix))]
fn is_translated(step: &Instruction, bench: &Bench) -> bool {
    crate::machine::jit::is_translated(step, bench.setting())
}

#[cfg(not(all(target_arch = "x86_64", unix)))]
fn is_translated(_: &Instruction, _: &Bench) -> bool {
    false
}

/// One of those that are worth trying, or one whose exponent is near a limit.
fn number(random: &mut Random) -> u32 {
    let exponents = [0, 1, 22, 23, 24, 63, 64, 104, 127, 128, 190, 191, 230, 231, 252, 253, 254];
    match random.once_in(3) {
        true => value(random, Kind::F32) as u32,
        false => random.next() as u32 & 0x807f_ffff | random.pick(&exponents) << 23,
    }
}

fn step(random: &mut Random, lanes: usize) -> Instruction {
    let operand = |random: &mut Random, register: u16| match random.once_in(8) {
        true => scalar(4, 1),
        false => vector(register, 1),
    };
    let sources: [Operand; 3] = [0, 1, 2].map(|register| operand(random, register));
    let to = vector(random.pick(&[0, 1, 2, 8]), 1);
    let mut made = match random.below(3) {
        0 => {
            let scaled = sources[random.pick(&[1, 1, 2, 2, 0])];
            let mut made =
                instruction("v_div_scale_f32", Encoding::Vop3, to, &[scaled, sources[1], sources[2]]);
            let bits = scalar(random.pick(&[sgpr::VCC, 10]), (lanes / 32) as u8);
            made.destinations[1] = if random.once_in(4) { NULL } else { bits };
            return made;
        }
        1 => instruction("v_div_fmas_f32", Encoding::Vop3, to, &sources),
        _ => instruction("v_div_fixup_f32", Encoding::Vop3, to, &sources),
    };
    if random.once_in(3) {
        (made.modifiers.negate, made.modifiers.absolute) = (random.below(8) as u8, random.below(8) as u8);
    }
    made
}
