//! Operations of memory that are under way when the next instruction runs.

use std::rc::Rc;

use crate::isa::{Encoding, Generation, Instruction, Source};
use crate::machine::check::counters::{Allowed, Counter, allowed};
use crate::machine::check::operands::{Span, reads, writes};

/// What the check knows of an instruction.
pub struct Facts {
    pub reads: Vec<Span>,
    pub writes: Vec<Span>,
    pub allowed: Option<Allowed>,
    /// The counters of the operation that the instruction begins, if it begins one.
    pub counters: Vec<Counter>,
    pub class: Class,
}

/// Operations that return in the order of their issue are of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Vector,
    Lds,
    /// In any order.
    Scalar,
    /// By flat addresses: as `Vector` for its counter and as `Lds` for the other, but on GFX9 in any order.
    Flat,
}

/// An operation that is under way.
pub struct Operation {
    pub facts: Rc<Facts>,
    /// In bytes from the beginning of the code.
    pub code: u64,
    pub number: u32,
    /// Those by which nobody waited for it yet.
    pub counters: Vec<Counter>,
    /// Bytes of LDS that it writes.
    pub lds: Vec<(u64, u64)>,
    /// They come from global memory, and not in the order of other operations on LDS.
    pub copies: bool,
}

impl Facts {
    pub fn new(instruction: &Instruction, generation: Generation, lanes: usize) -> Facts {
        let (class, counters) = class(instruction);
        let counters = counters.iter().map(|counter| counter.of(generation)).collect();
        Facts {
            reads: reads(instruction, lanes),
            writes: writes(instruction),
            allowed: allowed(instruction, generation),
            counters,
            class,
        }
    }
}

fn class(instruction: &Instruction) -> (Class, &'static [Counter]) {
    let name = instruction.name;
    let returns = instruction.destinations[0].source != Source::None || instruction.modifiers.memory.lds;
    match instruction.encoding {
        Encoding::Smem if name.contains("prefetch") => (Class::Scalar, &[]),
        Encoding::Smem => (Class::Scalar, &[Counter::Scalar]),
        Encoding::Sop1 if name.starts_with("s_sendmsg_rtn") => (Class::Scalar, &[Counter::Scalar]),
        Encoding::Ds if name != "ds_nop" => (Class::Lds, &[Counter::Lds]),
        Encoding::Flat if returns => (Class::Flat, &[Counter::Load, Counter::Lds]),
        Encoding::Flat => (Class::Flat, &[Counter::Store, Counter::Lds]),
        Encoding::Global if name == "global_inv" => (Class::Vector, &[Counter::Load]),
        // Those that write caches back or make them invalid count nowhere.
        Encoding::Buffer if name.contains("inv") || name == "buffer_wbl2" => (Class::Vector, &[]),
        Encoding::Global | Encoding::Scratch | Encoding::Buffer if returns => {
            (Class::Vector, &[Counter::Load])
        }
        Encoding::Global | Encoding::Scratch | Encoding::Buffer => (Class::Vector, &[Counter::Store]),
        _ => (Class::Vector, &[]),
    }
}

/// Whether an operation can return only after `other`, which was issued before, as a counter sees it.
pub fn in_order(operation: Class, other: Class, counter: Counter, generation: Generation) -> bool {
    let of = |class: Class| match class {
        Class::Flat if generation < Generation::Gfx10 => Class::Scalar,
        Class::Flat if counter == Counter::Lds => Class::Lds,
        Class::Flat => Class::Vector,
        class => class,
    };
    of(operation) == of(other) && of(other) != Class::Scalar
}
