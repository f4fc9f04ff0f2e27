//! Files as bytes: mapped, or read in.

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::error::{Error, Result, Status};

use super::counters::LoadCounters;

/// A file as it was when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    pub(crate) path: PathBuf,
    content: Content,
}

/// What changes with a file's content: device, inode, size, and the times (seconds and nanoseconds) when the content
/// and the inode changed.
type Content = (u64, u64, u64, [i64; 4]);

impl FileIdentity {
    fn of(path: &Path, file: &Metadata) -> Self {
        let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
        FileIdentity { path: path.to_owned(), content: (file.dev(), file.ino(), file.size(), times) }
    }

    /// Whether the file at `path` is this one, unchanged.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|file| Self::of(path, &file).content == self.content)
    }
}

/// Opens files in one of the two ways, and counts.
pub(crate) struct Files {
    map: bool,
    pub(crate) counters: LoadCounters,
    /// The files that were opened, in order.
    pub(crate) opened: Vec<FileIdentity>,
}

impl Files {
    pub(crate) fn new(map: bool) -> Self {
        Files { map, counters: LoadCounters::default(), opened: Vec::new() }
    }

    /// The whole file.
    pub(crate) fn open(&mut self, path: &Path) -> Result<Bytes> {
        let failed = |doing: &str, e: std::io::Error| {
            let status = if e.kind() == std::io::ErrorKind::NotFound { Status::NotFound } else { Status::Io };
            Error::new(status, format!("{doing} \"{}\": {e}", path.display()))
        };
        // Asked before it is opened: opening a named pipe would wait.
        if !std::fs::metadata(path).map_err(|e| failed("cannot open", e))?.is_file() {
            return Err(Error::new(Status::Io, format!("\"{}\" is not a file", path.display())));
        }
        let mut file = File::open(path).map_err(|e| failed("cannot open", e))?;
        let metadata = file.metadata().map_err(|e| failed("cannot open", e))?;
        self.opened.push(FileIdentity::of(path, &metadata));
        if metadata.len() == 0 {
            return Ok(Bytes::new());
        }
        if self.map {
            // SAFETY: the mapping is private and read only. A file that another process shortens
            // while it is mapped raises SIGBUS on access; the documentation of the option
            // "load" says so, and "read" avoids it.
            let map = unsafe { memmap2::Mmap::map(&file) }.map_err(|e| failed("cannot map", e))?;
            self.counters.mapped_bytes += map.len() as u64;
            Ok(Bytes::from_owner(map))
        } else {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(|e| failed("cannot read", e))?;
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
