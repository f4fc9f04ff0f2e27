//! Offload bundles of Clang: several code objects in one file (Clang, "Clang Offload Bundler").

use crate::isa::Target;

use super::processor::{Features, Processor};
use super::{Error, device_features, device_name};

pub(super) const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
pub(super) const COMPRESSED: &[u8] = b"CCOB";
/// More are taken for a damaged file.
pub(super) const MOST_ENTRIES: u64 = 1024;

/// The code object for a device: the bytes themselves, or an entry of the bundle that they are. An entry for this
/// very GPU goes before one for its family.
pub fn select(bytes: &[u8], target: Target) -> Result<&[u8], Error> {
    if bytes.starts_with(COMPRESSED) {
        return Err(compressed());
    }
    if !bytes.starts_with(MAGIC) {
        return Ok(bytes);
    }
    let entries = entries(bytes)?;
    let fitting = entries.iter().filter_map(|it| Some((it, it.processor(target)?)));
    let best = fitting.max_by_key(|(_, processor)| processor.is_exactly(target));
    let Some((entry, _)) = best else {
        let names: Vec<&str> = entries.iter().map(|it| it.name.as_str()).collect();
        return Err(Error::OtherTarget(format!(
            "the bundle has nothing for {}; it has: {}",
            device_name(target),
            names.join(", ")
        )));
    };
    let end = entry.offset.checked_add(entry.size);
    end.and_then(|end| bytes.get(entry.offset as usize..end as usize)).ok_or_else(|| {
        Error::Invalid(format!(
            "entry {} of the bundle lies at {:#x} and has {} bytes, the file ends at {:#x}",
            entry.name,
            entry.offset,
            entry.size,
            bytes.len()
        ))
    })
}

/// One row of a bundle's header.
pub(super) struct Entry {
    pub offset: u64,
    pub size: u64,
    /// `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`
    name: String,
}

impl Entry {
    /// For which processor it is, if the device runs it.
    fn processor(&self, target: Target) -> Option<Processor> {
        let (_, name) = self.name.rsplit_once("--")?;
        let processor = Processor::named(name.split(':').next()?)?;
        let fits = Features::from_name(name).fit(device_features(target));
        (fits && processor.includes(target)).then_some(processor)
    }
}

/// The header of a bundle.
pub(super) fn entries(bytes: &[u8]) -> Result<Vec<Entry>, Error> {
    let cut = || Error::Invalid("the header of the offload bundle is cut off".to_owned());
    let mut rest = &bytes[MAGIC.len()..];
    let word = |rest: &mut &[u8]| -> Result<u64, Error> {
        let (first, others) = rest.split_first_chunk().ok_or_else(cut)?;
        *rest = others;
        Ok(u64::from_le_bytes(*first))
    };
    let count = word(&mut rest)?;
    if count > MOST_ENTRIES {
        return Err(Error::Invalid(format!("an offload bundle of {count} entries, at most {MOST_ENTRIES}")));
    }
    let mut entries = Vec::new();
    for _ in 0..count {
        let (offset, size, length) = (word(&mut rest)?, word(&mut rest)?, word(&mut rest)?);
        let name = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length));
        let (name, others) = name.ok_or_else(cut)?;
        rest = others;
        entries.push(Entry { offset, size, name: String::from_utf8_lossy(name).into_owned() });
    }
    Ok(entries)
}

pub(super) fn compressed() -> Error {
    Error::Unsupported(
        "a compressed offload bundle (CCOB); build it with --no-offload-compress, or unbundle it".to_owned(),
    )
}
