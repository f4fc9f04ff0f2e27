//! When the instructions of one wave begin, as if it ran alone: they are issued in order, wait for registers that are
//! not there yet, and at wait instructions for memory.

use std::collections::VecDeque;

use crate::isa::{Generation, Instruction, Operand, Source};

use super::class::Class;
use super::timing::Timing;
use super::waits::{QUEUES, Queue, Wait, queue, wait};

/// What the clock needs to know of an instruction; made once for each.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub class: Class,
    pub busy: u32,
    latency: u32,
    wait: Option<Wait>,
    queue: Option<Queue>,
    reads: Vec<u16>,
    writes: Vec<u16>,
    /// A branch goes to the instruction behind it when it is not taken.
    pub end: u64,
}

/// The clock of a wave.
#[derive(Clone, Debug)]
pub struct Clock {
    /// When the next instruction can begin.
    pub now: u64,
    /// By register: vector registers, then scalar ones, then SCC.
    ready: Vec<u64>,
    /// Scalar registers that a vector operation wrote.
    masks: [bool; REGISTERS - SCALARS as usize],
    /// When a vector operation last used a register, and the time until memory instructions may.
    used: Vec<u64>,
    under_way: [VecDeque<u64>; QUEUES],
    /// When the unit for matrices or transcendental operations is free.
    unit_free: u64,
    /// How often and for how long it waited for vector memory.
    pub memory_waits: u64,
    pub memory_cycles: u64,
}

const SCALARS: u16 = 512;
const SCC: u16 = SCALARS + 128;
const REGISTERS: usize = SCC as usize + 1;

impl Prepared {
    pub fn new(instruction: &Instruction, lanes: u32, generation: Generation, timing: &Timing) -> Prepared {
        let class = Class::of(instruction);
        let busy = timing.busy(class, instruction.name, lanes, generation);
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let halves = [Some(instruction), instruction.second.as_deref()];
        for half in halves.into_iter().flatten() {
            half.sources.iter().for_each(|operand| registers(operand, &mut reads));
            half.destinations.iter().for_each(|operand| registers(operand, &mut writes));
        }
        let name = instruction.name;
        let hidden = [("scc", SCC), ("select", SCC), ("vcc", SCALARS + 106), ("exec", SCALARS + 126)];
        if name.starts_with("s_cbranch") || name.starts_with("s_cselect") {
            reads.extend(hidden.iter().filter(|(word, _)| name.contains(word)).map(|row| row.1));
        }
        if class == Class::ScalarAlu {
            writes.push(SCC);
        }
        Prepared {
            class,
            busy,
            latency: timing.latency(class, busy),
            wait: wait(instruction, generation),
            queue: queue_of(class).map(|it| queue(it, generation)),
            reads,
            writes,
            end: instruction.offset + u64::from(instruction.size),
        }
    }

    /// Whether it waits until vector loads are done.
    pub fn waits_for_loads(&self) -> bool {
        const ANY: u32 = 63;
        self.wait.is_some_and(|wait| wait[Queue::Load as usize].is_some_and(|count| count < ANY))
    }
}

impl Clock {
    pub fn new() -> Clock {
        Clock {
            now: 0,
            ready: vec![0; REGISTERS],
            masks: [false; REGISTERS - SCALARS as usize],
            used: vec![0; SCALARS as usize],
            under_way: Default::default(),
            unit_free: 0,
            memory_waits: 0,
            memory_cycles: 0,
        }
    }

    /// An instruction is issued. `memory`: clocks until its memory operation is done. Gives the time of issue.
    pub fn issue(&mut self, prepared: &Prepared, memory: u32, timing: &Timing) -> u64 {
        let class = prepared.class;
        let mut at = self.now;
        if let Some(wait) = &prepared.wait {
            at = self.wait(wait, at);
        }
        at = at.max(self.operands(prepared, timing));
        if class == Class::Branch && prepared.reads.contains(&SCC) {
            at = at.max(self.ready[usize::from(SCC)] + u64::from(timing.scalar_to_branch - timing.scalar));
        }
        let shares_unit = matches!(class, Class::Matrix | Class::Transcendental);
        if shares_unit {
            at = at.max(self.unit_free);
            self.unit_free = at + u64::from(prepared.busy);
        }
        if let Some(queue) = prepared.queue {
            let entries = &mut self.under_way[queue as usize];
            let done = (at + u64::from(memory)).max(entries.back().copied().unwrap_or(0));
            entries.push_back(done);
        } else {
            self.result(prepared, at, timing);
        }
        let beside = !class.is_vector_alu() || shares_unit && (timing.matrix_alone || class != Class::Matrix);
        self.now = at + u64::from(if beside { timing.issue } else { timing.issue.max(prepared.busy) });
        at
    }

    /// When the registers of an instruction can be used.
    fn operands(&self, prepared: &Prepared, timing: &Timing) -> u64 {
        // Masks of lanes go from one vector operation to the next without a delay.
        let early = if prepared.class.is_vector_alu() { u64::from(timing.vector_to_scalar) } else { 0 };
        let ready = prepared.reads.iter().map(|&register| match register {
            SCALARS.. if self.masks[usize::from(register - SCALARS)] => {
                self.ready[usize::from(register)].saturating_sub(early)
            }
            _ => self.ready[usize::from(register)],
        });
        let ready = ready.max();
        // Memory instructions also wait for those that read what they overwrite.
        let vectors = prepared.reads.iter().chain(&prepared.writes).filter(|&&register| register < SCALARS);
        let used = match prepared.queue {
            Some(_) => vectors.map(|&register| self.used[usize::from(register)]).max(),
            None => None,
        };
        ready.max(used).unwrap_or(0)
    }

    fn result(&mut self, prepared: &Prepared, at: u64, timing: &Timing) {
        let vector = prepared.class.is_vector_alu();
        let latency = if vector { prepared.latency } else { prepared.latency.max(timing.issue) };
        for &register in &prepared.writes {
            let to_scalar = vector && register >= SCALARS;
            if register >= SCALARS {
                self.masks[usize::from(register - SCALARS)] = vector;
            }
            let latency = if to_scalar { timing.vector_to_scalar.max(latency) } else { latency };
            self.ready[usize::from(register)] = at + u64::from(latency);
        }
        if vector {
            let busy = prepared.busy.saturating_sub(1) + timing.vector_to_memory;
            for &register in prepared.reads.iter().chain(&prepared.writes) {
                if register < SCALARS {
                    self.used[usize::from(register)] = at + u64::from(busy);
                }
            }
        }
    }

    /// Vector loads that no wait instruction has waited for.
    pub fn loads_under_way(&self) -> usize {
        self.under_way[Queue::Load as usize].len()
    }

    /// The wave went elsewhere than to the next instruction.
    pub fn branch(&mut self, timing: &Timing) {
        self.now += u64::from(timing.branch);
    }

    fn wait(&mut self, wait: &Wait, from: u64) -> u64 {
        let mut at = from;
        for (queue, count) in wait.iter().enumerate() {
            let Some(count) = count else { continue };
            let mut waited = from;
            while self.under_way[queue].len() > *count as usize {
                waited = waited.max(self.under_way[queue].pop_front().unwrap_or(0));
            }
            if queue == Queue::Load as usize && waited > from {
                self.memory_waits += 1;
                self.memory_cycles += waited - from;
            }
            at = at.max(waited);
        }
        at
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::new()
    }
}

fn queue_of(class: Class) -> Option<Queue> {
    match class {
        Class::VectorLoad | Class::VectorAtomic | Class::Scratch => Some(Queue::Load),
        Class::VectorStore => Some(Queue::Store),
        Class::ScalarMemory => Some(Queue::Scalar),
        _ if class.is_lds() => Some(Queue::Lds),
        _ => None,
    }
}

fn registers(operand: &Operand, into: &mut Vec<u16>) {
    let (first, end) = match operand.source {
        Source::Vector(first) => (first, SCALARS),
        Source::Scalar(first) => (SCALARS + u16::from(first), SCC),
        _ => return,
    };
    into.extend((first..first.saturating_add(operand.registers.into())).filter(|&register| register < end));
}
