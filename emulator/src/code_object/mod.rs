//! Code objects: ELF files with the machine code of kernels.

mod descriptor;

pub use descriptor::KernelDescriptor;
