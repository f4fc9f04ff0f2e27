//! The ELF file of a code object (LLVM, "User Guide for AMDGPU Backend", ELF Code Object).

use std::collections::BTreeMap;

use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, Rela, SectionHeader, SectionTable, Sym, SymbolTable};

use super::metadata::{self, KernelMetadata};
use super::{CodeObject, Error, Features, Global, Kernel, KernelDescriptor, Processor, Segment};

type Header = elf::FileHeader64<LittleEndian>;
type Sections<'data> = SectionTable<'data, Header>;
type Symbols<'data> = SymbolTable<'data, Header>;

const LE: LittleEndian = LittleEndian;
/// `e_ident[EI_ABIVERSION]` of code object version 4, the first whose flags have fields for features.
const ABI_VERSION_V4: u8 = 2;
/// Note type of the metadata.
const NT_AMDGPU_METADATA: u32 = 32;
/// Bytes that a code object may take in memory.
const MOST_BYTES: u64 = 1 << 30;

/// A place that depends on where the object is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Relocation {
    address: u64,
    kind: u32,
    /// The symbol's value if it has one, and the addend.
    addend: u64,
    /// Whether the value counts from the beginning of the object.
    relative: bool,
}

/// R_AMDGPU_* (LLVM, "User Guide for AMDGPU Backend", Relocation Records): number, bytes to write, bits to shift the
/// value to the right, whether the place's own address is taken off.
const RELOCATIONS: &[(u32, usize, u32, bool)] = &[
    (1, 4, 0, false),
    (2, 4, 32, false),
    (3, 8, 0, false),
    (4, 4, 0, true),
    (5, 8, 0, true),
    (6, 4, 0, false),
    (10, 4, 0, true),
    (11, 4, 32, true),
    (RELATIVE64, 8, 0, false),
];
const RELATIVE64: u32 = 13;

pub(super) fn parse(bytes: &[u8]) -> Result<CodeObject, Error> {
    let header = header(bytes)?;
    let flags = header.e_flags(LE);
    let features = match header.e_ident().abi_version {
        version if version >= ABI_VERSION_V4 => Features::from_flags(flags),
        _ => Features::default(),
    };
    let processor = Processor::find(flags & 0xff)?;
    let segments = segments(header, bytes)?;
    let size = segments.iter().map(|it| it.address + it.size).max().unwrap_or(0);
    if size == 0 {
        return Err(Error::Invalid("the code object has nothing to load".to_owned()));
    }
    let sections = header.sections(LE, bytes).map_err(|error| damaged("sections", error))?;
    let symbols = sections.symbols(LE, bytes, elf::SHT_DYNSYM).map_err(|error| damaged("symbols", error))?;
    let relocations = relocations(&sections, &symbols, bytes)?;
    let mut object = CodeObject {
        processor,
        features,
        segments,
        kernels: Vec::new(),
        globals: BTreeMap::new(),
        relocations,
        size,
    };
    object.globals = globals(&symbols, size);
    for metadata in notes(header, bytes)? {
        let kernel = kernel(metadata, &symbols, &object)?;
        object.kernels.push(kernel);
    }
    Ok(object)
}

fn damaged(what: &str, error: impl std::fmt::Display) -> Error {
    Error::Invalid(format!("the code object's {what} cannot be read: {error}"))
}

fn header(bytes: &[u8]) -> Result<&Header, Error> {
    let invalid = |text: String| Err(Error::Invalid(text));
    if !bytes.starts_with(&elf::ELFMAG) {
        return invalid("neither an ELF file nor an offload bundle".to_owned());
    }
    let header = Header::parse(bytes).map_err(|error| damaged("header", error))?;
    if !header.is_class_64() || !header.is_little_endian() {
        return invalid("the ELF file is not of 64 bits and little-endian".to_owned());
    }
    match header.e_machine(LE) {
        elf::EM_AMDGPU => {}
        machine => {
            return invalid(format!(
                "the ELF file is for machine {machine}, not for AMDGPU ({})",
                elf::EM_AMDGPU
            ));
        }
    }
    match header.e_type(LE) {
        elf::ET_DYN => Ok(header),
        kind => {
            invalid(format!("the code object is not linked: its ELF type is {kind}, not {}", elf::ET_DYN))
        }
    }
}

fn segments(header: &Header, bytes: &[u8]) -> Result<Vec<Segment>, Error> {
    let headers = header.program_headers(LE, bytes).map_err(|error| damaged("segments", error))?;
    let mut segments = Vec::new();
    for segment in headers.iter().filter(|it| it.p_type(LE) == elf::PT_LOAD) {
        let (address, size) = (segment.p_vaddr(LE), segment.p_memsz(LE));
        let cut = || Error::Invalid(format!("the segment at {address:#x} lies outside the file"));
        let data = segment.data(LE, bytes).map_err(|()| cut())?;
        let fits = address.checked_add(size).is_some_and(|end| end <= MOST_BYTES);
        if !fits || data.len() as u64 > size {
            return Err(Error::Invalid(format!(
                "a segment of {size} bytes at {address:#x} with {} bytes in the file; a code object ends below \
                 {MOST_BYTES:#x}",
                data.len()
            )));
        }
        let executable = segment.p_flags(LE) & elf::PF_X != 0;
        segments.push(Segment { address, size, bytes: data.to_vec(), executable });
    }
    Ok(segments)
}

fn notes(header: &Header, bytes: &[u8]) -> Result<Vec<KernelMetadata>, Error> {
    let headers = header.program_headers(LE, bytes).map_err(|error| damaged("segments", error))?;
    let mut kernels = Vec::new();
    for segment in headers {
        let Some(mut notes) = segment.notes(LE, bytes).map_err(|error| damaged("notes", error))? else {
            continue;
        };
        while let Some(note) = notes.next().map_err(|error| damaged("notes", error))? {
            if note.n_type(LE) == NT_AMDGPU_METADATA && note.name() == b"AMDGPU" {
                kernels.extend(metadata::parse(note.desc())?);
            }
        }
    }
    Ok(kernels)
}

fn globals(symbols: &Symbols<'_>, end: u64) -> BTreeMap<String, Global> {
    let defined =
        symbols.iter().filter(|it| it.st_type() == elf::STT_OBJECT && it.st_shndx(LE) != elf::SHN_UNDEF);
    defined
        .filter_map(|symbol| {
            let name = symbol.name(LE, symbols.strings()).ok()?;
            let (address, size) = (symbol.st_value(LE), symbol.st_size(LE));
            let inside = address.checked_add(size).is_some_and(|last| last <= end);
            inside.then(|| (String::from_utf8_lossy(name).into_owned(), Global { address, size }))
        })
        .collect()
}

fn relocations(
    sections: &Sections<'_>,
    symbols: &Symbols<'_>,
    bytes: &[u8],
) -> Result<Vec<Relocation>, Error> {
    let mut found = Vec::new();
    for section in sections.iter() {
        let Some((rows, _)) = section.rela(LE, bytes).map_err(|error| damaged("relocations", error))? else {
            continue;
        };
        if section.sh_flags(LE) & u64::from(elf::SHF_ALLOC) == 0 {
            continue;
        }
        for row in rows {
            let kind = row.r_type(LE, false);
            let addend = row.r_addend(LE) as u64;
            let (value, relative) = match row.r_sym(LE, false) {
                0 => (0, kind == RELATIVE64),
                index => symbol_value(symbols, index)?,
            };
            let addend = addend.wrapping_add(value);
            found.push(Relocation { address: row.r_offset(LE), kind, addend, relative });
        }
    }
    Ok(found)
}

/// A symbol's value, and whether it counts from the beginning of the object.
fn symbol_value(symbols: &Symbols<'_>, index: u32) -> Result<(u64, bool), Error> {
    let symbol =
        symbols.symbol(object::SymbolIndex(index as usize)).map_err(|error| damaged("relocations", error))?;
    if symbol.st_shndx(LE) != elf::SHN_UNDEF {
        return Ok((symbol.st_value(LE), true));
    }
    if symbol.st_bind() == elf::STB_WEAK {
        return Ok((0, false));
    }
    let name = symbol.name(LE, symbols.strings()).unwrap_or_default();
    Err(Error::UndefinedSymbol(format!("symbol {} is not defined", String::from_utf8_lossy(name))))
}

fn kernel(metadata: KernelMetadata, symbols: &Symbols<'_>, object: &CodeObject) -> Result<Kernel, Error> {
    let name = metadata.name;
    let invalid = |text: String| Error::Invalid(format!("kernel {name}: {text}"));
    let symbol = symbols
        .iter()
        .find(|it| it.name(LE, symbols.strings()).is_ok_and(|known| known == metadata.symbol.as_bytes()))
        .ok_or_else(|| invalid(format!("its descriptor {} is missing", metadata.symbol)))?;
    let descriptor_address = symbol.st_value(LE);
    let descriptor = object
        .segments
        .iter()
        .find_map(|it| it.bytes.get(usize::try_from(descriptor_address.checked_sub(it.address)?).ok()?..))
        .and_then(KernelDescriptor::parse)
        .ok_or_else(|| invalid(format!("its descriptor at {descriptor_address:#x} is in no segment")))?;
    let entry = descriptor_address.wrapping_add_signed(descriptor.kernel_code_entry_byte_offset);
    let executable =
        |it: &&Segment| it.executable && entry.checked_sub(it.address).is_some_and(|at| at < it.size);
    if object.segments.iter().find(executable).is_none() || !entry.is_multiple_of(4) {
        return Err(invalid(format!("its first instruction at {entry:#x} is not in the code")));
    }
    Ok(Kernel {
        descriptor_address,
        descriptor,
        entry,
        kernarg_size: metadata.kernarg_size,
        arguments: metadata.arguments,
        sgpr_count: metadata.sgpr_count,
        vgpr_count: metadata.vgpr_count,
        max_workgroup_size: metadata.max_workgroup_size,
        required_workgroup_size: metadata.required_workgroup_size,
        dynamic_stack: metadata.dynamic_stack,
        name,
    })
}

impl Relocation {
    /// Writes the value for an object that is loaded at `base`.
    pub fn apply(self, base: u64, image: &mut [u8]) -> Result<(), Error> {
        let Some(&(_, bytes, shift, from_place)) = RELOCATIONS.iter().find(|(kind, ..)| *kind == self.kind)
        else {
            return Err(Error::Unsupported(format!("relocation type {} at {:#x}", self.kind, self.address)));
        };
        let mut value = if self.relative { base.wrapping_add(self.addend) } else { self.addend };
        if from_place {
            value = value.wrapping_sub(base.wrapping_add(self.address));
        }
        let value = (value >> shift).to_le_bytes();
        let place = usize::try_from(self.address).ok().and_then(|at| image.get_mut(at..)?.get_mut(..bytes));
        match place {
            Some(place) => place.copy_from_slice(&value[..bytes]),
            None => {
                let text = format!("a relocation at {:#x} lies outside the code object", self.address);
                return Err(Error::Invalid(text));
            }
        }
        Ok(())
    }
}
