//! An emulated AMD GPU. Programs open this library as `libamdhip64.so`, load real code objects into it and launch their
//! kernels, which run on the processor, instruction by instruction.
//!
//! | room | what is in it |
//! |---|---|
//! | `isa` | targets, the tables of instructions, the decoder, the text of an instruction |
//! | `code_object` | ELF, its metadata, kernel descriptors |
//! | `memory` | the device's address space |
//! | `machine` | the state of a wave, what instructions do, workgroups and their scheduling |
//! | `cost` | predicted times on named cards, from counters of the machine |
//! | `runtime` | the functions of HIP's runtime |
//!
//! Imports go down this list of rooms only: `runtime` knows `machine`, `machine` knows `memory` and `isa`.

pub mod code_object;
pub mod cost;
pub mod isa;
pub mod machine;
pub mod memory;
mod runtime;
