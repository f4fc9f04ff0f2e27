//! The machine: waves and workgroups that run instructions.

use crate::code_object::KernelDescriptor;
use crate::isa::Target;
use crate::memory::Memory;

/// The code of a loaded code object. Instructions are decoded when they are first reached.
pub struct Program {
    pub target: Target,
    /// Device address of the first byte.
    pub base: u64,
    pub code: Vec<u8>,
}

impl Program {
    pub fn new(target: Target, base: u64, code: Vec<u8>) -> Program {
        Program { target, base, code }
    }
}

/// A launch of a kernel.
pub struct Dispatch<'a> {
    pub program: &'a Program,
    pub memory: &'a Memory,
    /// The kernel's name, for messages.
    pub kernel: &'a str,
    pub descriptor: &'a KernelDescriptor,
    /// Device address of the first instruction.
    pub entry: u64,
    /// How many of them there are in each direction.
    pub workgroups: [u32; 3],
    /// Work items of a full one.
    pub workgroup_size: [u32; 3],
    /// LDS in bytes beside what the descriptor asks for.
    pub dynamic_lds: u32,
    /// Device address of the arguments.
    pub kernarg: u64,
    /// Device address of a dispatch packet (HSA, hsa_kernel_dispatch_packet_t).
    pub packet: u64,
}

/// Why a kernel stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub kind: FaultKind,
    /// A sentence with kernel, instruction, address, lane, wave, workgroup.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An instruction that is unknown, or that cannot be executed.
    IllegalInstruction,
    /// An access outside all allocations, misaligned, or to freed memory.
    IllegalAddress,
    /// More instructions than allowed, or waves that wait for each other.
    Timeout,
    /// A check found a mistake (a race, a missing wait, an uninitialised value).
    Check,
}

/// Runs a kernel to its end.
pub fn run(dispatch: &Dispatch<'_>) -> Result<(), Fault> {
    let _ = dispatch;
    Err(Fault { kind: FaultKind::IllegalInstruction, message: "the machine is not there yet".to_owned() })
}
