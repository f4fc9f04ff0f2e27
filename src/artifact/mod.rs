//! A compiled model as a file: optimised programs with their packed weights, for several targets.
//!
//! `container` is the file: named parts, each with a checksum, read only after all of it was checked; `writer` makes it.
//! `manifest` says what the parts are, `program` turns a program into parts and back, `store` keeps the bytes of weights
//! once, and `fit` says which program suits a device. There is no machine code in such a file: the programs name the
//! library's own operators, and kernels are chosen when it is opened.

mod checksum;
mod container;
mod digest;
mod fit;
mod manifest;
mod program;
mod store;
mod writer;

use std::path::Path;

use bytes::Bytes;

use crate::error::{Result, fail};
use crate::threads::Pool;

pub(crate) use digest::digest;
pub(crate) use fit::{Fit, Request, Verdict};
pub(crate) use manifest::{Kind, Manifest, Number, ProgramEntry, SourceFile, TuningEntry};
pub(crate) use program::{Encoded, OpenedProgram, encode};
pub(crate) use store::{Policy, SourceFiles, Store};
pub(crate) use writer::Writer;

use container::Container;
use prost::Message;

/// What artifacts of this library hold: raised whenever operators of the library's own or layouts of packed weights change.
pub(crate) const REVISION: u32 = 13;

/// The parts of every artifact.
const MANIFEST: &str = "manifest";
pub(crate) const WEIGHTS: &str = "weights";

/// Whether a file that begins so is an artifact, of whatever version.
pub(crate) fn is_artifact(start: &[u8]) -> bool {
    start.starts_with(&container::MAGIC)
}

/// An artifact all of whose bytes were checked against their checksums.
pub(crate) struct Artifact {
    pub(crate) manifest: Manifest,
    container: Container,
    origin: String,
}

impl Artifact {
    /// `origin`: what messages call it. Its bytes are read and checked on the threads of the pool.
    pub(crate) fn open(bytes: Bytes, origin: &str, pool: &Pool) -> Result<Self> {
        let container = Container::open(bytes, origin, pool)?;
        let manifest = container.part(MANIFEST, origin)?;
        let manifest = match Manifest::decode(manifest) {
            Ok(manifest) => manifest,
            Err(e) => fail!(InvalidModel, "{origin}: its part \"{MANIFEST}\" is no such message: {e}"),
        };
        manifest.check(origin)?;
        Ok(Artifact { manifest, container, origin: origin.to_owned() })
    }

    /// Name, length and checksum of each part.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&str, u64, &[u8])> {
        self.container.parts()
    }

    /// The program of this number. `folder`: where the artifact is, which its outside weights are found from.
    pub(crate) fn program(
        &self,
        number: usize,
        folder: Option<&Path>,
        map: bool,
        pool: &Pool,
    ) -> Result<OpenedProgram> {
        program::open_program(&self.manifest, number, &self.container, (&self.origin, folder), map, pool)
    }
}

/// Finishes an artifact that has its weights and programs.
pub(crate) fn finish(mut writer: Writer, manifest: &Manifest) -> Result<()> {
    writer.part(MANIFEST, &manifest.encode_to_vec())?;
    writer.finish()
}
