//! Instructions run twice: by the interpreter and as translated code.

use crate::isa::{Encoding, Instruction};
use crate::machine::group::Group;
use crate::machine::step::{Setting, ends_block, prepare};

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
            result,
        }
    }

    fn restore(&self, bench: &mut Bench) {
        let wave = &mut bench.wave;
        (wave.scalar, wave.scc) = (self.scalar, self.scc);
        wave.vector.words_mut().copy_from_slice(&self.vector);
        wave.scratch.clone_from(&self.scratch);
        (wave.gpr_index_mode, wave.mode) = (self.gpr_index_mode, self.mode);
        bench.lds.clone_from(&self.lds);
    }
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
            compare(&interpreted, &State::of(bench, result), bench.wave.lanes, instructions);
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
    let setting = Setting { target: bench.target, lanes: bench.wave.lanes, base: 0 };
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

fn compare(interpreted: &State, translated: &State, lanes: usize, instructions: &[Instruction]) {
    let what = || {
        let text = |it: &Instruction| {
            format!("{} {:?} {:?} {:?}", it.name, it.destinations, it.sources, it.modifiers)
        };
        instructions.iter().map(text).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(translated.result, interpreted.result, "{}", what());
    let floats = instructions.iter().any(|it| it.name.contains("_f32"));
    for (index, (&new, &old)) in translated.vector.iter().zip(&interpreted.vector).enumerate() {
        // Which of two NaNs goes on is said nowhere.
        let both = floats && f32::from_bits(new).is_nan() && f32::from_bits(old).is_nan();
        let (register, lane) = (index / lanes, index % lanes);
        assert!(new == old || both, "v{register} lane {lane}: {new:#x}, not {old:#x}\n{}", what());
    }
    for (register, (&new, &old)) in translated.scalar.iter().zip(&interpreted.scalar).enumerate() {
        assert_eq!(new, old, "s{register}: {new:#x}, not {old:#x}\n{}", what());
    }
    assert_eq!(translated.scc, interpreted.scc, "SCC\n{}", what());
    assert_eq!(translated.gpr_index_mode, interpreted.gpr_index_mode, "{}", what());
    assert_eq!(translated.mode, interpreted.mode, "{}", what());
    assert!(translated.scratch == interpreted.scratch, "scratch\n{}", what());
    assert!(translated.lds == interpreted.lds, "LDS\n{}", what());
}
