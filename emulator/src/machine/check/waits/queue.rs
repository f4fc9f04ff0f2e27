//! What a wave has begun and not waited for.

use std::rc::Rc;

use super::operation::{Facts, Operation, in_order};
use crate::isa::Generation;
use crate::machine::check::counters::{Allowed, Counter};
use crate::machine::check::operands::Span;
use crate::machine::registers::ROWS;

/// Counters count no further; an instruction that would make them waits by itself.
const HIGHEST: u32 = 63;

/// The operations of a wave that may be under way.
pub struct Queue {
    generation: Generation,
    operations: Vec<Operation>,
    issued: u32,
    /// For each register the number of the operation that will write it, or 0.
    vector: Vec<u32>,
    scalar: Vec<u32>,
}

impl Queue {
    pub fn new(generation: Generation) -> Queue {
        Queue { generation, operations: Vec::new(), issued: 0, vector: vec![0; ROWS], scalar: vec![0; 128] }
    }

    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The newest, while its instruction is executed.
    pub fn newest(&mut self) -> Option<&mut Operation> {
        self.operations.last_mut()
    }

    /// The first register of a span that an operation will write, and the operation.
    pub fn pending(&self, span: &Span) -> Option<(usize, &Operation)> {
        let (numbers, first, count) = match *span {
            Span::Vector { first, count } => (&self.vector, first, count),
            Span::Scalar { first, count } => (&self.scalar, first, count),
        };
        let (at, number) = numbers.get(first..first + count)?.iter().enumerate().find(|(_, it)| **it != 0)?;
        let operation = self.operations.iter().find(|operation| operation.number == *number)?;
        Some((first + at, operation))
    }

    pub fn push(&mut self, facts: &Rc<Facts>, code: u64, copies: bool) {
        self.issued += 1;
        let number = self.issued;
        for span in &facts.writes {
            self.numbers(span).fill(number);
        }
        let counters = facts.counters.clone();
        let operation =
            Operation { facts: Rc::clone(facts), code, number, counters, lds: Vec::new(), copies };
        self.operations.push(operation);
        if self.operations.len() > HIGHEST as usize {
            self.wait(&[Some(HIGHEST); 4]);
        }
    }

    /// An instruction waits. An operation is done when fewer may be outstanding than itself and those that can return
    /// only after it.
    pub fn wait(&mut self, allowed: &Allowed) {
        for counter in [Counter::Load, Counter::Store, Counter::Lds, Counter::Scalar] {
            if let Some(count) = allowed[counter as usize] {
                self.wait_for(counter, count);
            }
        }
        let done: Vec<Operation> = self.operations.extract_if(.., |it| it.counters.is_empty()).collect();
        for operation in done {
            for span in &operation.facts.writes {
                for number in self.numbers(span) {
                    *number = if *number == operation.number { 0 } else { *number };
                }
            }
        }
    }

    fn wait_for(&mut self, counter: Counter, count: u32) {
        for index in 0..self.operations.len() {
            let operation = &self.operations[index];
            if !operation.counters.contains(&counter) {
                continue;
            }
            let class = operation.facts.class;
            let after = self.operations[index + 1..].iter().filter(|later| {
                later.counters.contains(&counter)
                    && in_order(later.facts.class, class, counter, self.generation)
            });
            if count == 0 || after.count() as u32 + 1 > count {
                self.operations[index].counters.retain(|it| *it != counter);
            }
        }
    }

    fn numbers(&mut self, span: &Span) -> &mut [u32] {
        let (numbers, first, count) = match *span {
            Span::Vector { first, count } => (&mut self.vector, first, count),
            Span::Scalar { first, count } => (&mut self.scalar, first, count),
        };
        numbers.get_mut(first..first + count).unwrap_or_default()
    }
}
