//! Counts what the waves of one thread's workgroups do.

use crate::isa::Instruction;
use crate::machine::fault::Fault;
use crate::machine::group::{Access, AccessKind, Observer, Space};
use crate::machine::wave::{State, Wave};

use super::banks;
use super::cache::Cache;
use super::class::Class;
use super::clock::{Clock, Prepared};
use super::counts::{Alone, LdsCounts, MemoryCounts};
use super::hierarchy::Request;
use super::segments::{doubled, touched};
use super::{CLASSES, Counting};

/// What was counted of one workgroup.
#[derive(Clone, Default)]
pub struct GroupCounts {
    pub instructions: [u64; CLASSES],
    pub active_lanes: u64,
    pub matrix_cycles: u64,
    pub lds: LdsCounts,
    pub memory: MemoryCounts,
    pub requests: Vec<Request>,
    pub alone: Alone,
}

/// Watches one workgroup after the other.
pub struct Counter<'a> {
    counting: &'a Counting,
    /// The workgroup is the n-th that is counted; `None` while it is not.
    index: Option<u64>,
    /// By the instruction's word in the code.
    prepared: Vec<Option<Box<Prepared>>>,
    clocks: Vec<Clock>,
    /// The caches of the compute unit, for vectors and for scalars.
    near: Cache,
    scalar: Cache,
    /// Clocks until the memory operation of the current instruction is done.
    latency: u32,
    counts: GroupCounts,
    lines: Vec<u64>,
}

/// Scalar loads by their cache's lines (RDNA and CDNA ISA manuals, "Scalar Memory").
const SCALAR_LINE: u64 = 64;

impl<'a> Counter<'a> {
    pub fn new(counting: &'a Counting) -> Counter<'a> {
        let scalar = super::cache::Shape { bytes: 16 << 10, line: SCALAR_LINE, ways: 4 };
        Counter {
            counting,
            index: None,
            prepared: Vec::new(),
            clocks: Vec::new(),
            near: Cache::new(counting.caches.near, 1),
            scalar: Cache::new(scalar, 1),
            latency: 0,
            counts: GroupCounts::default(),
            lines: Vec::new(),
        }
    }

    fn prepare(&mut self, instruction: &Instruction) -> usize {
        let at = instruction.offset as usize / 4;
        if at >= self.prepared.len() {
            self.prepared.resize(at + 1, None);
        }
        let counting = self.counting;
        self.prepared[at].get_or_insert_with(|| {
            let generation = counting.target.generation;
            Box::new(Prepared::new(instruction, counting.lanes, generation, &counting.timing))
        });
        at
    }

    fn count_global(&mut self, access: &Access<'_>) {
        let caches = &self.counting.caches;
        let mut lines = std::mem::take(&mut self.lines);
        touched(access, 32, &mut lines);
        let memory = &mut self.counts.memory;
        memory.segments_32 += lines.len() as u64;
        lines.iter_mut().for_each(|line| *line /= 2);
        lines.dedup();
        let segments = lines.len() as u64;
        memory.segments_64 += segments;
        memory.segments_128 += doubled(&lines);
        memory.moved_bytes += segments * 64;
        let asked = u64::from(access.mask.count_ones()) * u64::from(access.bytes);
        memory.asked_bytes += asked;
        memory.requests += 1;
        lines.iter_mut().for_each(|line| *line = *line * 64 / caches.near.line);
        lines.dedup();
        let cycles = (lines.len() as u64).max(asked.div_ceil(caches.near_width));
        memory.near_cycles += cycles;
        let writes = access.kind != AccessKind::Load;
        if writes {
            memory.l2_written_bytes += segments * 64;
        }
        let mut missed = 0;
        for &line in &lines {
            // Stores and atomic operations go through to the L2.
            if writes || !self.near.access(line, false).hit {
                missed += 1;
                let line = line * caches.near.line / caches.l2.line;
                self.counts.requests.push(Request { line, write: writes });
            }
        }
        if access.kind == AccessKind::Load {
            self.counts.memory.l2_read_bytes += missed * caches.near.line;
        }
        let timing = &self.counting.timing;
        let hit = access.kind == AccessKind::Load && missed == 0;
        let latency = if hit { timing.load_near } else { timing.load };
        self.latency = self.latency.max(latency + cycles as u32 - 1);
        self.lines = lines;
    }

    fn count_scalar(&mut self, access: &Access<'_>) {
        let timing = &self.counting.timing;
        let mut lines = std::mem::take(&mut self.lines);
        touched(access, SCALAR_LINE, &mut lines);
        self.latency = self.latency.max(timing.scalar_load);
        for &line in &lines {
            if !self.scalar.access(line, false).hit {
                self.latency = self.latency.max(timing.scalar_load_far);
                self.counts.memory.l2_read_bytes += SCALAR_LINE;
                let line = line * SCALAR_LINE / self.counting.caches.l2.line;
                self.counts.requests.push(Request { line, write: false });
            }
        }
        self.lines = lines;
    }

    fn count_lds(&mut self, access: &Access<'_>) {
        let cycles = banks::cycles(access, self.counting.lanes as usize, self.counting.target.generation);
        let lds = &mut self.counts.lds;
        lds.bytes += u64::from(access.mask.count_ones()) * u64::from(access.bytes);
        lds.cycles += cycles.all;
        lds.conflict_cycles += cycles.conflicts;
        self.latency = self.latency.max(self.counting.timing.lds) + cycles.all as u32 - 1;
    }

    /// Lanes' private memory lies interleaved, so it is read in whole lines. It is taken to be in the L2.
    fn count_scratch(&mut self, access: &Access<'_>) {
        let bytes = u64::from(access.mask.count_ones()) * u64::from(access.bytes);
        let memory = &mut self.counts.memory;
        memory.requests += 1;
        memory.asked_bytes += bytes;
        memory.moved_bytes += bytes;
        memory.near_cycles += bytes.div_ceil(self.counting.caches.near_width);
        match access.kind {
            AccessKind::Load => memory.l2_read_bytes += bytes,
            _ => memory.l2_written_bytes += bytes,
        }
        self.latency = self.latency.max(self.counting.timing.load);
    }
}

impl Observer for Counter<'_> {
    fn watches(&mut self, number: u64) -> bool {
        self.index = number.is_multiple_of(self.counting.every).then(|| number / self.counting.every);
        self.index.is_some()
    }

    fn begin(&mut self, _: [u32; 3], waves: &[Wave]) -> Result<(), Box<Fault>> {
        if self.index.is_some() {
            self.counts = GroupCounts::default();
            self.clocks.clear();
            self.clocks.resize(waves.len(), Clock::new());
            self.near.clear();
            self.scalar.clear();
        }
        Ok(())
    }

    fn before(&mut self, _: &Wave, _: &Instruction) -> Result<(), Box<Fault>> {
        self.latency = 0;
        Ok(())
    }

    fn access(&mut self, _: &Wave, access: &Access<'_>) -> Result<(), Box<Fault>> {
        if self.index.is_some() {
            match access.space {
                Space::Global => self.count_global(access),
                Space::Scalar => self.count_scalar(access),
                Space::Lds => self.count_lds(access),
                Space::Scratch => self.count_scratch(access),
            }
        }
        Ok(())
    }

    fn after(&mut self, wave: &Wave, instruction: &Instruction) -> Result<(), Box<Fault>> {
        if self.index.is_none() {
            return Ok(());
        }
        let at = self.prepare(instruction);
        let Some(prepared) = &self.prepared[at] else { return Ok(()) };
        let class = prepared.class;
        self.counts.instructions[class as usize] += 1;
        if class.is_vector_alu() || class.is_vector_memory() || class.is_lds() {
            self.counts.active_lanes += u64::from(wave.exec().count_ones());
        }
        if class == Class::Matrix {
            self.counts.matrix_cycles += u64::from(prepared.busy);
        }
        let timing = &self.counting.timing;
        let latency = match class {
            Class::LdsExchange => timing.lds,
            _ => self.latency,
        };
        let clock = &mut self.clocks[wave.id];
        clock.issue(prepared, latency, timing);
        if class == Class::Branch && wave.pc != prepared.end {
            clock.branch(timing);
        }
        Ok(())
    }

    fn barrier(&mut self, waves: &[Wave]) -> Result<(), Box<Fault>> {
        if self.index.is_some() {
            let latest = self.clocks.iter().map(|clock| clock.now).max().unwrap_or(0);
            for (clock, wave) in self.clocks.iter_mut().zip(waves) {
                if wave.state == State::AtBarrier {
                    clock.now = latest + u64::from(self.counting.timing.barrier);
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, _: &[Wave]) -> Result<(), Box<Fault>> {
        if let Some(index) = self.index {
            if let Some(slowest) = self.clocks.iter().max_by_key(|clock| clock.now) {
                self.counts.alone = Alone {
                    cycles: slowest.now as f64,
                    memory_waits: slowest.memory_waits as f64,
                    memory_cycles: slowest.memory_cycles as f64,
                };
            }
            self.counting.add(index, std::mem::take(&mut self.counts));
        }
        Ok(())
    }
}
