//! How many bytes a code object in memory has, when only its address is known.

use super::Error;
use super::bundle::{COMPRESSED, MAGIC, MOST_ENTRIES, compressed, entries};

/// More are taken for a damaged header.
const MOST_BYTES: u64 = 2 << 30;

/// The size of the ELF file or bundle at an address, by its headers. `read` gives bytes from an offset on, or an error
/// when they cannot be read.
pub fn size_in_memory(read: &dyn Fn(u64, u64) -> Result<Vec<u8>, Error>) -> Result<u64, Error> {
    let magic = read(0, 4)?;
    if magic == COMPRESSED {
        return Err(compressed());
    }
    let size = match &magic[..] {
        b"\x7fELF" => elf_size(read)?,
        b"__CL" => bundle_size(read)?,
        _ => {
            return Err(Error::Invalid(format!(
                "neither an ELF file nor an offload bundle: it begins with {magic:02x?}"
            )));
        }
    };
    if size > MOST_BYTES {
        return Err(Error::Invalid(format!(
            "its headers speak of {size} bytes, at most {MOST_BYTES} are possible"
        )));
    }
    Ok(size)
}

/// The end of the header, the segments and the table of sections, whichever is last.
fn elf_size(read: &dyn Fn(u64, u64) -> Result<Vec<u8>, Error>) -> Result<u64, Error> {
    let header = read(0, 64)?;
    let word = |bytes: &[u8], at: usize| bytes[at..].first_chunk().map_or(0, |it| u64::from_le_bytes(*it));
    let half = |at: usize| u64::from(header[at..].first_chunk().map_or(0, |it| u16::from_le_bytes(*it)));
    let (segments, segment_size, segment_count) = (word(&header, 32), half(54), half(56));
    let (sections, section_size, section_count) = (word(&header, 40), half(58), half(60));
    let mut size = 64
        .max(segments.saturating_add(segment_size * segment_count))
        .max(sections.saturating_add(section_size * section_count));
    if segment_size == 56 && segments < MOST_BYTES {
        for index in 0..segment_count {
            let segment = read(segments + index * 56, 56)?;
            size = size.max(word(&segment, 8).saturating_add(word(&segment, 32)));
        }
    }
    if section_size == 64 && sections < MOST_BYTES {
        const SHT_NOBITS: u32 = 8;
        for index in 0..section_count {
            let section = read(sections + index * 64, 64)?;
            let kind = section[4..].first_chunk().map_or(0, |it| u32::from_le_bytes(*it));
            if kind != SHT_NOBITS {
                size = size.max(word(&section, 24).saturating_add(word(&section, 32)));
            }
        }
    }
    Ok(size)
}

fn bundle_size(read: &dyn Fn(u64, u64) -> Result<Vec<u8>, Error>) -> Result<u64, Error> {
    let mut header = read(0, MAGIC.len() as u64 + 8)?;
    if !header.starts_with(MAGIC) {
        return Err(Error::Invalid("neither an ELF file nor an offload bundle".to_owned()));
    }
    let count = header[MAGIC.len()..].first_chunk().map_or(0, |it| u64::from_le_bytes(*it));
    for _ in 0..count.min(MOST_ENTRIES) {
        let row = read(header.len() as u64, 24)?;
        let length = row[16..].first_chunk().map_or(0, |it| u64::from_le_bytes(*it));
        header.extend(row);
        if length > 4096 {
            return Err(Error::Invalid(format!("an entry of the bundle has a name of {length} bytes")));
        }
        let name = read(header.len() as u64, length)?;
        header.extend(name);
    }
    let ends = entries(&header)?.into_iter().map(|it| it.offset.saturating_add(it.size));
    Ok(ends.max().unwrap_or(0).max(header.len() as u64))
}
