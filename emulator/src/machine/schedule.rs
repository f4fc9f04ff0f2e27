//! How the waves of a workgroup take turns.

use std::cell::RefCell;
use std::ops::Range;

use crate::isa::Instruction;

use super::fault::Fault;
use super::group::Group;
use super::hot_blocks;
use super::launch::Dispatch;
use super::program::Block;
use super::ranges::Ranges;
use super::start::Start;
use super::step::Action;
use super::wave::{State, Wave};

/// How waves run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A wave that executes more instructions is stopped.
    pub most_instructions: u64,
    /// Waves run in random order and are interrupted at random instructions: the seed. 0: they do not.
    pub shuffle: u64,
    /// Host threads that run workgroups. 0: as many as there are processors.
    pub threads: usize,
    /// Blocks that were interpreted so often become machine code of the host. 0: none does.
    pub translate: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { most_instructions: 4_000_000_000, shuffle: 0, threads: 0, translate: 100 }
    }
}

/// Runs workgroups one after the other, with the same waves.
pub struct Workgroups<'a> {
    dispatch: &'a Dispatch<'a>,
    waves: Vec<Wave>,
    /// What they begin with; made for the first workgroup.
    start: Option<Start>,
    /// In which order they take turns.
    order: Vec<usize>,
    group: Group<'a>,
    random: Random,
    /// Whether blocks may be translated: not where waves are interrupted anywhere.
    translates: bool,
}

impl<'a> Workgroups<'a> {
    pub fn new(dispatch: &'a Dispatch<'a>) -> Workgroups<'a> {
        let lanes = dispatch.lanes();
        let waves = spare_waves(dispatch.items().div_ceil(lanes), lanes);
        let order = (0..waves.len()).collect();
        let group = Group {
            target: dispatch.program.target,
            memory: dispatch.memory,
            id: [0; 3],
            lds: vec![0; (dispatch.descriptor.group_segment_fixed_size + dispatch.dynamic_lds) as usize],
            observers: dispatch.watches.iter().map(|watch| watch.observer()).collect(),
            observed: false,
        };
        let Settings { shuffle, translate, .. } = dispatch.settings;
        let translates = shuffle == 0 && translate != 0 && hot_blocks::is_possible();
        Workgroups { dispatch, waves, start: None, order, group, random: Random(1), translates }
    }

    /// Runs the workgroup of this number to its end.
    pub fn run(&mut self, number: u64) -> Result<(), Box<Fault>> {
        self.group.id = self.dispatch.workgroup(number);
        // Not a number as a float, and no small index: what was never written is seen.
        self.group.lds.fill(0xff);
        let shuffle = self.dispatch.settings.shuffle;
        self.random = Random(shuffle.wrapping_add(number).wrapping_mul(2) + 1);
        let start = match &mut self.start {
            Some(start) => start,
            none => none.insert(Start::new(&mut self.waves, self.dispatch)?),
        };
        for wave in &mut self.waves {
            start.apply(wave, self.dispatch, self.group.id);
        }
        // Every observer is asked.
        self.group.observed =
            self.group.observers.iter_mut().fold(false, |any, observer| observer.watches(number) | any);
        if self.group.observed {
            let (waves, id) = (&self.waves, self.group.id);
            self.group.observers.iter_mut().try_for_each(|observer| observer.begin(id, waves))?;
        }
        for (turn, wave) in self.order.iter_mut().enumerate() {
            *wave = turn;
        }
        loop {
            if shuffle != 0 {
                self.random.shuffle(&mut self.order);
            }
            let mut interrupted = false;
            for turn in 0..self.order.len() {
                let wave = self.order[turn];
                if self.waves[wave].state == State::Running {
                    self.run_wave(wave)?;
                    interrupted |= self.waves[wave].state == State::Running;
                }
            }
            if !interrupted && !self.pass_barrier()? {
                return self.end();
            }
        }
    }

    fn end(&mut self) -> Result<(), Box<Fault>> {
        let waves = &self.waves;
        match self.group.observed {
            true => self.group.observers.iter_mut().try_for_each(|observer| observer.end(waves)),
            false => Ok(()),
        }
    }

    /// Lets waves go on that wait at a barrier; whether there were any. Waves that ended count as arrived, as on the
    /// hardware.
    fn pass_barrier(&mut self) -> Result<bool, Box<Fault>> {
        if self.group.observed && self.waves.iter().any(|wave| wave.state == State::AtBarrier) {
            let waves = &self.waves;
            self.group.observers.iter_mut().try_for_each(|observer| observer.barrier(waves))?;
        }
        let mut waited = false;
        for wave in &mut self.waves {
            if wave.state == State::AtBarrier {
                wave.state = State::Running;
                waited = true;
            }
        }
        Ok(waited)
    }

    /// Runs a wave until it waits or ends, or until its turn is over.
    fn run_wave(&mut self, index: usize) -> Result<(), Box<Fault>> {
        if index > 0 && self.waves[index].ranges.is_empty() {
            // It uses the same allocations.
            self.waves[index].ranges = self.waves[index - 1].ranges;
        }
        let (wave, group) = (&mut self.waves[index], &mut self.group);
        let Settings { most_instructions, shuffle, .. } = self.dispatch.settings;
        let mut turn = if shuffle == 0 { usize::MAX } else { 1 + self.random.next() as usize % 64 };
        let translates = self.translates && !group.observed;
        while wave.state == State::Running && turn > 0 {
            if translates && hot_blocks::run(wave, group, self.dispatch)? {
                continue;
            }
            let block = self.dispatch.program.block(wave.pc, wave.lanes)?;
            let (begin, last) = (wave.step, block.actions.len() - 1);
            let end = block.actions.len().min(begin.saturating_add(turn));
            turn -= end - begin;
            wave.executed += (end - begin) as u64;
            if end > last {
                // Before the last one, which may branch elsewhere.
                run_steps(wave, group, block, begin..last)?;
                (wave.pc, wave.step) = (block.end, 0);
                run_steps(wave, group, block, last..end)?;
            } else {
                run_steps(wave, group, block, begin..end)?;
                wave.step = end;
            }
            if wave.executed > most_instructions {
                return Err(too_many(wave, group, most_instructions));
            }
        }
        Ok(())
    }
}

thread_local! {
    /// Waves of the last launch. Making their registers takes longer than a small kernel.
    static SPARE: RefCell<Vec<Wave>> = const { RefCell::new(Vec::new()) };
}

/// How many of them are kept: those of the largest workgroup.
const MOST_SPARE: usize = 32;

fn spare_waves(count: usize, lanes: usize) -> Vec<Wave> {
    let mut waves = SPARE.take();
    waves.retain(|wave| wave.lanes == lanes);
    let others = waves.split_off(count.min(waves.len()));
    SPARE.set(others);
    for (id, wave) in waves.iter_mut().enumerate() {
        // The allocations that it used last may be others now.
        (wave.id, wave.ranges) = (id, Ranges::default());
    }
    for id in waves.len()..count {
        waves.push(Wave::new(id, lanes));
    }
    waves
}

impl Drop for Workgroups<'_> {
    fn drop(&mut self) {
        let mut waves = std::mem::take(&mut self.waves);
        // A thread that ends has no place for them any more.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            waves.append(&mut spare);
            waves.truncate(MOST_SPARE);
            *spare = waves;
        });
    }
}

/// Runs some of a block's instructions.
fn run_steps(
    wave: &mut Wave,
    group: &mut Group<'_>,
    block: &Block,
    steps: Range<usize>,
) -> Result<(), Box<Fault>> {
    let observed = group.is_observed();
    for (step, action) in steps.clone().zip(&block.actions[steps]) {
        let instruction = || &block.instructions[step];
        let done = match action {
            _ if observed => run_observed(wave, group, action.as_ref(), instruction()),
            Some(action) => action(wave, group),
            None => continue,
        };
        if let Err(fault) = done {
            return Err(place(fault, instruction(), wave, group));
        }
    }
    Ok(())
}

fn run_observed(
    wave: &mut Wave,
    group: &mut Group<'_>,
    action: Option<&Action>,
    instruction: &Instruction,
) -> Result<(), Box<Fault>> {
    for observer in &mut group.observers {
        observer.before(wave, instruction)?;
    }
    if let Some(action) = action {
        action(wave, group)?;
    }
    group.observers.iter_mut().try_for_each(|observer| observer.after(wave, instruction))
}

/// A wave that does not end.
#[cold]
pub fn too_many(wave: &Wave, group: &Group<'_>, most: u64) -> Box<Fault> {
    Fault::timeout(format!(
        "wave {} of workgroup {:?} executed more than {most} instructions (AMDEMU_MAX_INSTS)",
        wave.id, group.id
    ))
}

/// A fault with the instruction, the wave and the workgroup.
#[cold]
pub fn place(fault: Box<Fault>, instruction: &Instruction, wave: &Wave, group: &Group<'_>) -> Box<Fault> {
    fault.at(format_args!(
        "by '{}' at byte {:#x} of the code, wave {} of workgroup {:?}, exec {:#x}",
        crate::isa::text(instruction, group.target),
        instruction.offset,
        wave.id,
        group.id,
        wave.exec()
    ))
}

/// Random numbers (Marsaglia, "Xorshift RNGs"). The state is never 0.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn shuffle(&mut self, order: &mut [usize]) {
        for i in (1..order.len()).rev() {
            let other = (self.next() % (i as u64 + 1)) as usize;
            order.swap(i, other);
        }
    }
}
