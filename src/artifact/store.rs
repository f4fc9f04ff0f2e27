//! The bytes of weights, each once, whichever programs use them.

use std::collections::HashMap;

use bytes::Bytes;

use crate::error::Result;
use crate::model::{Keeper, Kept};
use crate::plan::RecordedPacks;
use crate::tensor::Tensor;

use super::writer::Writer;
use super::{WEIGHTS, digest};

/// Elements begin at multiples of this, so that they are used where they are mapped.
const ALIGNMENT: u64 = 64;

/// Which weights an artifact holds besides packed ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Those that its programs read.
    Used,
    /// All of the optimised model, so that any machine can pack them anew.
    All,
    /// None that the model's own files have as well: those are read from there.
    External,
}

impl Policy {
    pub(crate) const NAMES: [(&'static str, Policy); 3] =
        [("used", Policy::Used), ("all", Policy::All), ("external", Policy::External)];

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, policy)| *policy == self).map_or("used", |(name, _)| name)
    }
}

/// The mapped files of the model, in the order of the manifest.
pub(crate) struct SourceFiles(pub(crate) Vec<Bytes>);

impl SourceFiles {
    /// The number of the file whose memory the bytes are of, and where in it.
    fn find(&self, bytes: &[u8]) -> Option<(usize, u64)> {
        let start = bytes.as_ptr().addr();
        let inside = |file: &Bytes| {
            let first = file.as_ptr().addr();
            (first <= start && start + bytes.len() <= first + file.len()).then(|| (start - first) as u64)
        };
        self.0.iter().enumerate().find_map(|(number, file)| Some((number, inside(file)?)))
    }
}

/// The location of the model's file of this number.
pub(super) fn source_location(number: usize) -> String {
    format!("source.{number}")
}

/// Writes the part "weights".
pub(crate) struct Store {
    writer: Writer,
    policy: Policy,
    sources: SourceFiles,
    /// Where bytes of this digest are.
    known: HashMap<blake3::Hash, u64>,
    /// The model's files that programs read from.
    pub(crate) needed: Vec<bool>,
}

impl Store {
    pub(crate) fn new(mut writer: Writer, policy: Policy, sources: SourceFiles) -> Result<Self> {
        writer.begin(WEIGHTS)?;
        let needed = vec![false; sources.0.len()];
        Ok(Store { writer, policy, sources, known: HashMap::new(), needed })
    }

    /// Where these bytes are in the part.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<u64> {
        let digest = blake3::hash(bytes);
        if let Some(&offset) = self.known.get(&digest) {
            return Ok(offset);
        }
        let offset = self.writer.append(bytes, ALIGNMENT)?;
        self.known.insert(digest, offset);
        Ok(offset)
    }

    /// For the weights of a program with these packs.
    pub(super) fn keeper<'s>(&'s mut self, packs: Option<&'s RecordedPacks>) -> ProgramKeeper<'s> {
        ProgramKeeper { store: self, packs }
    }

    /// The writer, with the part "weights" written.
    pub(crate) fn into_writer(self) -> Writer {
        self.writer
    }
}

/// Keeps the weights of one program.
pub(super) struct ProgramKeeper<'s> {
    store: &'s mut Store,
    packs: Option<&'s RecordedPacks>,
}

impl Keeper for ProgramKeeper<'_> {
    fn keep(&mut self, tensor: &Tensor, bytes: &[u8], initializer: bool) -> Result<Kept> {
        let packed = self.packs.is_some_and(|packs| !packs.needs(tensor));
        if initializer && packed && self.store.policy == Policy::Used {
            return Ok(Kept::Nowhere);
        }
        if self.store.policy == Policy::External
            && let Some((number, offset)) = self.store.sources.find(bytes)
        {
            self.store.needed[number] = true;
            return Ok(Kept::At(source_location(number), offset));
        }
        Ok(Kept::At(WEIGHTS.to_owned(), self.store.put(bytes)?))
    }
}

/// What a file's digest must be.
pub(super) fn matches(bytes: &[u8], length: u64, wanted: &[u8], pool: &crate::threads::Pool) -> bool {
    bytes.len() as u64 == length && digest(bytes, pool) == *wanted
}
