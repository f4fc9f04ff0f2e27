//! Missing waits: a register is read or written, or LDS is read, while a load that will write it may be under way.
//!
//! Operations are counted as the hardware does it (RDNA3, RDNA4 and CDNA3 ISA, "Data dependency resolution"): vector
//! memory and LDS return in the order of issue, scalar memory in any order, flat addresses count as both. An operation is
//! done when an instruction lets fewer of them be outstanding than it and those behind it.

mod operation;
mod queue;

use std::rc::Rc;

use super::Launch;
use super::cache::Cache;
use super::operands::Span;
use crate::isa::{Encoding, Instruction};
use crate::machine::fault::Fault;
use crate::machine::group::{Access, AccessKind, Observer, Space, Watch};
use crate::machine::wave::{State, Wave, lanes_of};
use operation::{Class, Facts, Operation, in_order};
use queue::Queue;

/// The missing waits of a launch.
pub struct Waits<'a> {
    launch: Launch<'a>,
}

impl<'a> Waits<'a> {
    pub fn new(launch: Launch<'a>) -> Waits<'a> {
        Waits { launch }
    }
}

impl Watch for Waits<'_> {
    fn observer(&self) -> Box<dyn Observer + '_> {
        Box::new(Observing {
            launch: self.launch,
            facts: Cache::default(),
            queues: Vec::new(),
            issued: false,
        })
    }
}

struct Observing<'a> {
    launch: Launch<'a>,
    facts: Cache<Facts>,
    /// By wave.
    queues: Vec<Queue>,
    /// The instruction that is executed begins an operation.
    issued: bool,
}

impl Observer for Observing<'_> {
    fn begin(&mut self, _: [u32; 3], waves: &[Wave]) -> Result<(), Box<Fault>> {
        let generation = self.launch.program.target.generation;
        self.queues = waves.iter().map(|_| Queue::new(generation)).collect();
        Ok(())
    }

    fn before(&mut self, wave: &Wave, instruction: &Instruction) -> Result<(), Box<Fault>> {
        let generation = self.launch.program.target.generation;
        let facts = self.facts.get(instruction, || Facts::new(instruction, generation, wave.lanes));
        self.issued = false;
        let queue = &mut self.queues[wave.id];
        if let Some(allowed) = &facts.allowed {
            queue.wait(allowed);
            return Ok(());
        }
        if !queue.operations().is_empty() {
            self.check_registers(wave, &facts)?;
        }
        if !facts.counters.is_empty() {
            let copies = instruction.modifiers.memory.lds && instruction.encoding != Encoding::Ds;
            self.queues[wave.id].push(&facts, instruction.offset, copies);
            self.issued = true;
        }
        Ok(())
    }

    fn access(&mut self, wave: &Wave, access: &Access<'_>) -> Result<(), Box<Fault>> {
        if access.space != Space::Lds {
            return Ok(());
        }
        let bytes = u64::from(access.bytes);
        let touched = || lanes_of(access.mask).map(|lane| (lane, access.addresses[lane]));
        for (other, queue) in self.queues.iter().enumerate() {
            let operations = queue.operations();
            let operations = &operations[..operations.len() - usize::from(self.issued && other == wave.id)];
            for operation in operations.iter().filter(|it| other != wave.id || it.copies) {
                for &(begin, end) in &operation.lds {
                    if let Some((lane, at)) = touched().find(|&(_, at)| at < end && at + bytes > begin) {
                        return Err(self.report_lds(wave, other, operation, lane, at));
                    }
                }
            }
        }
        if self.issued
            && access.kind != AccessKind::Load
            && let Some(operation) = self.queues[wave.id].newest()
        {
            operation.lds.extend(touched().map(|(_, at)| (at, at + bytes)));
        }
        Ok(())
    }

    fn after(&mut self, wave: &Wave, _: &Instruction) -> Result<(), Box<Fault>> {
        if wave.state == State::Ended {
            self.queues[wave.id] = Queue::new(self.launch.program.target.generation);
        }
        Ok(())
    }
}

impl Observing<'_> {
    fn check_registers(&self, wave: &Wave, facts: &Rc<Facts>) -> Result<(), Box<Fault>> {
        let queue = &self.queues[wave.id];
        for span in &facts.reads {
            if let Some((register, operation)) = queue.pending(span) {
                return Err(self.report(wave, "read", register, span, operation));
            }
        }
        for span in &facts.writes {
            match queue.pending(span) {
                Some((register, operation)) if !self.overtakes(facts, operation) => {
                    return Err(self.report(wave, "written", register, span, operation));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether an instruction writes its registers after an operation has, without a wait.
    fn overtakes(&self, facts: &Facts, operation: &Operation) -> bool {
        let generation = self.launch.program.target.generation;
        let same = |class: Class| operation.facts.class == class && facts.class == class;
        (same(Class::Vector) || same(Class::Lds))
            && facts.counters == operation.facts.counters
            && facts.counters.iter().all(|&it| in_order(facts.class, operation.facts.class, it, generation))
            && !facts.counters.is_empty()
    }

    #[cold]
    fn report(
        &self,
        wave: &Wave,
        how: &str,
        register: usize,
        span: &Span,
        operation: &Operation,
    ) -> Box<Fault> {
        let name = Span::name(register, matches!(span, Span::Scalar { .. }));
        Fault::check(format!(
            "a missing wait: {name} is {how} while {} may not have written it; nothing waits for {}",
            self.launch.text(operation.code, wave.lanes),
            self.counters(operation),
        ))
    }

    #[cold]
    fn report_lds(
        &self,
        wave: &Wave,
        other: usize,
        operation: &Operation,
        lane: usize,
        at: u64,
    ) -> Box<Fault> {
        Fault::check(format!(
            "a missing wait: lane {lane} uses byte {at:#x} of LDS while {} of wave {other} may not have written it; \
             that wave did not wait for {}",
            self.launch.text(operation.code, wave.lanes),
            self.counters(operation),
        ))
    }

    fn counters(&self, operation: &Operation) -> String {
        let generation = self.launch.program.target.generation;
        operation.counters.iter().map(|it| it.name(generation)).collect::<Vec<_>>().join(" and ")
    }
}
