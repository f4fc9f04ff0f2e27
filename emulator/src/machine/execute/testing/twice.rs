//! Instructions run twice: by the interpreter and as translated code.

use crate::isa::{Encoding, Instruction, Operand, Source};
use crate::machine::group::Group;
use crate::machine::ranges::Ranges;
use crate::machine::step::{ends_block, prepare};

use super::Bench;

/// What instructions may change.
#[derive(Clone)]
struct State {
    scalar: [u32; 128],
    scc: bool,
    vector: Vec<u32>,
    scratch: Vec<u8>,
    gpr_index_mode: u32,
    mode: u32,
    lds: Vec<u8>,
    memory: Vec<Vec<u8>>,
    result: Result<(), String>,
}

impl State {
    fn of(bench: &Bench, result: Result<(), String>) -> State {
        let wave = &bench.wave;
        State {
            scalar: wave.scalar,
            scc: wave.scc,
            vector: wave.vector.words().to_vec(),
            scratch: wave.scratch.clone(),
            gpr_index_mode: wave.gpr_index_mode,
            mode: wave.mode,
            lds: bench.lds.clone(),
            memory: bench.compared.iter().map(|&address| bench.bytes(address).to_vec()).collect(),
            result,
        }
    }

    fn restore(&self, bench: &mut Bench) {
        let wave = &mut bench.wave;
        (wave.scalar, wave.scc) = (self.scalar, self.scc);
        wave.vector.words_mut().copy_from_slice(&self.vector);
        wave.scratch.clone_from(&self.scratch);
        (wave.gpr_index_mode, wave.mode) = (self.gpr_index_mode, self.mode);
        // Which allocations it used last is to be found out again.
        wave.ranges = Ranges::default();
        bench.lds.clone_from(&self.lds);
        for (&address, bytes) in bench.compared.iter().zip(&self.memory) {
            bench.bytes(address).copy_from_slice(bytes);
        }
    }
}

/// How many instructions run before one meets two NaNs: from there on the ways may differ in all that is made of its result.
pub fn defined(bench: &mut Bench, instructions: &[Instruction]) -> usize {
    let (lanes, setting) = (bench.wave.lanes, bench.setting());
    let before = State::of(bench, Ok(()));
    let defined = with_group(bench, |wave, group| {
        for (index, instruction) in instructions.iter().enumerate() {
            let chooses = |lane| may_choose(instruction, wave.vector.words(), &wave.scalar, lanes, lane);
            if (0..lanes).any(chooses) {
                return index;
            }
            if prepare(instruction, setting).is_some_and(|action| action(wave, group).is_err()) {
                break;
            }
        }
        instructions.len()
    });
    before.restore(bench);
    defined
}

/// Runs instructions; what is left are the interpreter's results.
pub fn run(bench: &mut Bench, instructions: &[Instruction]) -> Result<(), String> {
    let before = State::of(bench, Ok(()));
    let result = interpret(bench, instructions);
    let interpreted = State::of(bench, result.clone());
    let (pc, state) = (bench.wave.pc, bench.wave.state);
    // Waves that index registers are interpreted.
    if instructions.iter().all(can_be_repeated) && before.gpr_index_mode == 0 {
        before.restore(bench);
        if let Some(result) = translated(bench, instructions) {
            let lanes = bench.wave.lanes;
            compare(&before, &interpreted, &State::of(bench, result), lanes, instructions);
        }
        interpreted.restore(bench);
    }
    (bench.wave.pc, bench.wave.state) = (pc, state);
    result
}

/// What was added to memory once should not be added again, and clocks go on.
fn can_be_repeated(instruction: &Instruction) -> bool {
    let name = instruction.name;
    let memory = [Encoding::Flat, Encoding::Global, Encoding::Buffer, Encoding::Scratch];
    !name.starts_with("s_mem")
        && (!memory.contains(&instruction.encoding) || name.contains("load") || name.contains("store"))
}

fn with_group<T>(
    bench: &mut Bench,
    run: impl FnOnce(&mut crate::machine::wave::Wave, &mut Group<'_>) -> T,
) -> T {
    let mut group = Group {
        target: bench.target,
        memory: &bench.memory,
        id: [0; 3],
        lds: std::mem::take(&mut bench.lds),
        observers: Vec::new(),
        observed: false,
    };
    let result = run(&mut bench.wave, &mut group);
    bench.lds = group.lds;
    result
}

fn interpret(bench: &mut Bench, instructions: &[Instruction]) -> Result<(), String> {
    let setting = bench.setting();
    with_group(bench, |wave, group| {
        for action in instructions.iter().filter_map(|it| prepare(it, setting)) {
            action(wave, group).map_err(|fault| fault.to_string())?;
        }
        Ok(())
    })
}

#[cfg(all(target_arch = "x86_64", unix))]
fn translated(bench: &mut Bench, instructions: &[Instruction]) -> Option<Result<(), String>> {
    use crate::machine::jit::tests::{end_of_kernel, run_translated};
    let mut instructions = instructions.to_vec();
    if !instructions.last().is_some_and(ends_block) {
        instructions.push(end_of_kernel());
    }
    let target = bench.target;
    with_group(bench, |wave, group| run_translated(target, &instructions, wave, group))
}

/// Other processors have no translated code.
#[cfg(not(all(target_arch = "x86_64", unix)))]
fn translated(_: &mut Bench, _: &[Instruction]) -> Option<Result<(), String>> {
    None
}

fn compare(
    before: &State,
    interpreted: &State,
    translated: &State,
    lanes: usize,
    instructions: &[Instruction],
) {
    let what = || {
        let text = |it: &Instruction| {
            format!("{} {:?} {:?} {:?}", it.name, it.destinations, it.sources, it.modifiers)
        };
        instructions.iter().map(text).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(translated.result, interpreted.result, "{}", what());
    let may_be_either = |lane| match instructions {
        [one] => may_choose(one, &before.vector, &before.scalar, lanes, lane),
        _ => false,
    };
    for (index, (&new, &old)) in translated.vector.iter().zip(&interpreted.vector).enumerate() {
        let (register, lane) = (index / lanes, index % lanes);
        let same = new == old || are_nans(new, old) && may_be_either(lane);
        assert!(same, "v{register} lane {lane}: {new:#x}, not {old:#x}\n{}", what());
    }
    for (register, (&new, &old)) in translated.scalar.iter().zip(&interpreted.scalar).enumerate() {
        assert_eq!(new, old, "s{register}: {new:#x}, not {old:#x}\n{}", what());
    }
    assert_eq!(translated.scc, interpreted.scc, "SCC\n{}", what());
    assert_eq!(translated.gpr_index_mode, interpreted.gpr_index_mode, "{}", what());
    assert_eq!(translated.mode, interpreted.mode, "{}", what());
    assert!(translated.scratch == interpreted.scratch, "scratch\n{}", what());
    assert!(translated.lds == interpreted.lds, "LDS\n{}", what());
    assert!(translated.memory == interpreted.memory, "memory\n{}", what());
}

fn are_nans(a: u32, b: u32) -> bool {
    f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan()
}

/// Whether an instruction meets two NaNs in a lane. Which of them goes on is said nowhere. Instructions with DPP or SDWA are
/// never translated.
fn may_choose(
    instruction: &Instruction,
    vector: &[u32],
    scalar: &[u32; 128],
    lanes: usize,
    lane: usize,
) -> bool {
    if instruction.second.as_ref().is_some_and(|it| may_choose(it, vector, scalar, lanes, lane)) {
        return true;
    }
    let modifiers = &instruction.modifiers;
    if !instruction.name.contains("_f32") || modifiers.dpp.is_some() || modifiers.sdwa.is_some() {
        return false;
    }
    // A product may be a NaN that no factor is.
    let rounds_product = ["v_mad_", "v_mac_"].iter().any(|begin| instruction.name.starts_with(begin));
    let counts = |bits: u32| match f32::from_bits(bits) {
        value if rounds_product => !value.is_finite(),
        value => value.is_nan(),
    };
    let words = |operand: &Operand| -> Vec<u32> {
        // Pairs use either of two registers.
        let registers = if instruction.encoding == Encoding::Vop3p { 2 } else { 1 };
        match operand.source {
            Source::Vector(first) => {
                (0..registers).map(|it| vector[(usize::from(first) + it) * lanes + lane]).collect()
            }
            Source::Scalar(first) => (0..registers).map(|it| scalar[usize::from(first) + it]).collect(),
            Source::Literal(bits) => vec![bits],
            _ => Vec::new(),
        }
    };
    instruction.sources.iter().flat_map(words).filter(|&bits| counts(bits)).count() > 1
}
