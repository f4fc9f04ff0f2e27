//! Files as bytes: mapped, or read in.

use std::fs::File;
use std::path::Path;

use bytes::Bytes;

use crate::error::{Error, Result, Status};

/// How many bytes of the model came into memory, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Bytes of files that are mapped.
    pub(crate) mapped_bytes: u64,
    /// Bytes of files that were read in, or copied from the caller.
    pub(crate) read_bytes: u64,
    /// Bytes of weights that were copied, to align or to unpack them.
    pub(crate) copied_bytes: u64,
    /// Weights that were copied.
    pub(crate) copied_weights: u64,
    /// Bytes of weights that kernels packed into a layout of their own.
    pub(crate) packed_bytes: u64,
}

/// Opens files in one of the two ways, and counts.
pub(crate) struct Files {
    map: bool,
    pub(crate) counters: Counters,
}

impl Files {
    pub(crate) fn new(map: bool) -> Self {
        Files { map, counters: Counters::default() }
    }

    /// The whole file.
    pub(crate) fn open(&mut self, path: &Path) -> Result<Bytes> {
        let failed = |doing: &str, e: std::io::Error| {
            let status = if e.kind() == std::io::ErrorKind::NotFound { Status::NotFound } else { Status::Io };
            Error::new(status, format!("{doing} \"{}\": {e}", path.display()))
        };
        let metadata = std::fs::metadata(path).map_err(|e| failed("cannot open", e))?;
        if !metadata.is_file() {
            return Err(Error::new(Status::Io, format!("\"{}\" is not a file", path.display())));
        }
        if metadata.len() == 0 {
            return Ok(Bytes::new());
        }
        if self.map {
            let file = File::open(path).map_err(|e| failed("cannot open", e))?;
            // SAFETY: the mapping is private and read only. A file that another process shortens
            // while it is mapped raises SIGBUS on access; the documentation of the option
            // "load" says so, and "read" avoids it.
            let map = unsafe { memmap2::Mmap::map(&file) }.map_err(|e| failed("cannot map", e))?;
            self.counters.mapped_bytes += map.len() as u64;
            Ok(Bytes::from_owner(map))
        } else {
            let bytes = std::fs::read(path).map_err(|e| failed("cannot read", e))?;
            self.counters.read_bytes += bytes.len() as u64;
            Ok(Bytes::from(bytes))
        }
    }

    /// A copy of bytes that the caller owns.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Bytes {
        self.counters.read_bytes += bytes.len() as u64;
        Bytes::copy_from_slice(bytes)
    }
}
