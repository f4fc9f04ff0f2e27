//! Code objects: ELF files with the machine code of kernels.

mod bundle;
mod descriptor;
mod elf;
mod image;
mod metadata;
mod processor;

#[cfg(test)]
mod tests;

pub use bundle::select;
pub use descriptor::KernelDescriptor;
pub use image::size_in_memory;
pub use metadata::Argument;
pub use processor::{Features, Processor, device_features, device_name};

use std::collections::BTreeMap;

/// Why bytes are no code object that can be loaded. The text names what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// They are no code object, or a damaged one.
    Invalid(String),
    /// There is none for the device.
    OtherTarget(String),
    /// They are in a form that this loader does not read.
    Unsupported(String),
    /// A symbol is used that nothing defines.
    UndefinedSymbol(String),
}

/// A part of the file that is loaded. Addresses are those of the file, which begin at 0.
#[derive(Clone, Debug)]
pub struct Segment {
    pub address: u64,
    /// At least as many as there are `bytes`; the rest is zeros.
    pub size: u64,
    pub bytes: Vec<u8>,
    pub executable: bool,
}

/// A variable of the device code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Global {
    pub address: u64,
    pub size: u64,
}

/// A kernel: its metadata and its descriptor.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub name: String,
    /// Where its descriptor lies in the file's addresses.
    pub descriptor_address: u64,
    pub descriptor: KernelDescriptor,
    /// Its first instruction.
    pub entry: u64,
    pub kernarg_size: u32,
    /// Explicit ones first, in the order of the source, then the hidden ones.
    pub arguments: Vec<Argument>,
    pub sgpr_count: u32,
    pub vgpr_count: u32,
    /// Work items.
    pub max_workgroup_size: u32,
    pub required_workgroup_size: Option<[u32; 3]>,
    /// Whether it may need more stack than its descriptor says (calls of unknown functions).
    pub dynamic_stack: bool,
}

/// A parsed code object.
#[derive(Clone, Debug)]
pub struct CodeObject {
    pub processor: Processor,
    pub features: Features,
    pub segments: Vec<Segment>,
    pub kernels: Vec<Kernel>,
    pub globals: BTreeMap<String, Global>,
    relocations: Vec<elf::Relocation>,
    /// The address behind the last segment.
    pub size: u64,
}

impl CodeObject {
    /// Reads an ELF file. Bytes behind it do not matter.
    pub fn parse(bytes: &[u8]) -> Result<CodeObject, Error> {
        elf::parse(bytes)
    }

    /// What lies in memory when the object is loaded at a device address.
    pub fn image(&self, base: u64) -> Result<Vec<u8>, Error> {
        let mut image = vec![0; self.size as usize];
        for segment in &self.segments {
            let start = segment.address as usize;
            image[start..start + segment.bytes.len()].copy_from_slice(&segment.bytes);
        }
        for relocation in &self.relocations {
            relocation.apply(base, &mut image)?;
        }
        Ok(image)
    }

    /// The code: from the first executable segment to the last.
    pub fn code(&self) -> Option<(u64, u64)> {
        let executable = || self.segments.iter().filter(|it| it.executable);
        let start = executable().map(|it| it.address).min()?;
        let end = executable().map(|it| it.address + it.size).max()?;
        Some((start, end))
    }
}
