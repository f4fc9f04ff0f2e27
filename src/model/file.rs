//! Files as bytes: mapped, or read in.

use std::fs::{File, FileTimes, Metadata, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;

use crate::error::{Error, Result, Status, fail};
use crate::tensor::Buffer;

use super::counters::LoadCounters;

/// A file as it was when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    pub(crate) path: PathBuf,
    content: Content,
}

/// What changes with a file's content: device, number of the file there, size, and the times when the content and the
/// file's entry changed, in the system's units.
type Content = (u64, u64, u64, [i64; 4]);

impl FileIdentity {
    /// Whether the file at `path` is this one, unchanged.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        content_at(path).is_ok_and(|content| content == self.content)
    }
}

#[cfg(unix)]
fn content_at(path: &Path) -> std::io::Result<Content> {
    std::fs::metadata(path).map(|file| content(&file))
}

#[cfg(unix)]
fn content_of(file: &File) -> std::io::Result<Content> {
    file.metadata().map(|file| content(&file))
}

#[cfg(unix)]
fn content(file: &std::fs::Metadata) -> Content {
    use std::os::unix::fs::MetadataExt;
    let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
    (file.dev(), file.ino(), file.size(), times)
}

/// Opened without any access, which asks about a file and keeps nobody from it.
#[cfg(windows)]
fn content_at(path: &Path) -> std::io::Result<Content> {
    use std::os::windows::fs::OpenOptionsExt;
    content_of(&OpenOptions::new().access_mode(0).open(path)?)
}

#[cfg(windows)]
fn content_of(file: &File) -> std::io::Result<Content> {
    use std::os::windows::io::AsRawHandle;
    use windows_sys::Win32::Storage::FileSystem::{
        BY_HANDLE_FILE_INFORMATION, FILE_BASIC_INFO, FileBasicInfo, GetFileInformationByHandle,
        GetFileInformationByHandleEx,
    };
    let (mut names, mut basic) = (BY_HANDLE_FILE_INFORMATION::default(), FILE_BASIC_INFO::default());
    // SAFETY: the handle is open; both calls write one struct of the type and size that they are told.
    let told = unsafe {
        GetFileInformationByHandle(file.as_raw_handle(), &mut names) != 0
            && GetFileInformationByHandleEx(
                file.as_raw_handle(),
                FileBasicInfo,
                (&raw mut basic).cast(),
                size_of::<FILE_BASIC_INFO>() as u32,
            ) != 0
    };
    if !told {
        return Err(std::io::Error::last_os_error());
    }
    let long = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let (number, size) =
        (long(names.nFileIndexHigh, names.nFileIndexLow), long(names.nFileSizeHigh, names.nFileSizeLow));
    let times = [basic.LastWriteTime, basic.ChangeTime, basic.CreationTime, 0];
    Ok((names.dwVolumeSerialNumber.into(), number, size, times))
}

/// Sets the time when a file was written last to now, which asks for no right to write to it.
pub(crate) fn touch(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    #[cfg(not(windows))]
    options.read(true);
    #[cfg(windows)]
    std::os::windows::fs::OpenOptionsExt::access_mode(
        &mut options,
        windows_sys::Win32::Storage::FileSystem::FILE_WRITE_ATTRIBUTES,
    );
    options.open(path)?.set_times(FileTimes::new().set_modified(SystemTime::now()))
}

/// The whole file, which file it is, and what opening it took. `map` maps it where the other way reads it in, to memory
/// aligned to 64 bytes.
pub(crate) fn open_file(path: &Path, map: bool) -> Result<(Bytes, FileIdentity, LoadCounters)> {
    let mut files = Files::new(map);
    let bytes = files.open(path)?;
    match files.opened.pop() {
        Some(identity) => Ok((bytes, identity, files.counters)),
        None => fail!(Internal, "\"{}\" was opened and not written down", path.display()),
    }
}

/// The whole file, mapped; what is written to this memory stays in the process.
pub(super) fn map_private(path: &Path) -> Result<Bytes> {
    let (file, metadata) = open_regular(path)?;
    if metadata.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the mapping is private. A file that another process shortens while it is mapped raises SIGBUS on access;
    // the documentation of who maps so says it, and what may be called instead.
    let map = unsafe { memmap2::MmapOptions::new().map_copy(&file) };
    Ok(Bytes::from_owner(map.map_err(|e| failed("cannot map", path, e))?))
}

/// Opens a file to read it, which is no folder, pipe or device.
fn open_regular(path: &Path) -> Result<(File, Metadata)> {
    // Asked before it is opened: opening a named pipe would wait.
    if !std::fs::metadata(path).map_err(|e| failed("cannot open", path, e))?.is_file() {
        return Err(Error::new(Status::Io, format!("\"{}\" is not a file", path.display())));
    }
    let file = File::open(path).map_err(|e| failed("cannot open", path, e))?;
    let metadata = file.metadata().map_err(|e| failed("cannot open", path, e))?;
    Ok((file, metadata))
}

fn failed(doing: &str, path: &Path, e: std::io::Error) -> Error {
    let status = if e.kind() == std::io::ErrorKind::NotFound { Status::NotFound } else { Status::Io };
    Error::new(status, format!("{doing} \"{}\": {e}", path.display()))
}

/// The first bytes of a file, up to 16; none where it cannot be read.
pub(crate) fn start_of_file(path: &Path) -> Vec<u8> {
    let mut start = Vec::new();
    // Opening a named pipe would wait.
    if std::fs::metadata(path).is_ok_and(|file| file.is_file())
        && let Ok(file) = File::open(path)
        && file.take(16).read_to_end(&mut start).is_err()
    {
        start.clear();
    }
    start
}

/// The bytes of a file of this length, aligned as every buffer is.
fn read(file: &mut File, length: u64) -> std::io::Result<Bytes> {
    struct Owner(Buffer);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            self.0.bytes()
        }
    }
    let too_large = || std::io::Error::from(std::io::ErrorKind::OutOfMemory);
    let length = usize::try_from(length).map_err(|_| too_large())?;
    let buffer = Buffer::unspecified(length).map_err(|_| too_large())?;
    // SAFETY: the buffer was just made, and nothing else holds it.
    file.read_exact(unsafe { buffer.bytes_mut() })?;
    Ok(Bytes::from_owner(Owner(buffer)))
}

/// Opens files in one of the two ways, and counts.
pub(crate) struct Files {
    map: bool,
    pub(crate) counters: LoadCounters,
    /// The files that were opened, in order.
    pub(crate) opened: Vec<FileIdentity>,
    /// The bytes of each.
    pub(crate) contents: Vec<Bytes>,
}

impl Files {
    pub(crate) fn new(map: bool) -> Self {
        Files { map, counters: LoadCounters::default(), opened: Vec::new(), contents: Vec::new() }
    }

    /// The whole file.
    pub(crate) fn open(&mut self, path: &Path) -> Result<Bytes> {
        let (mut file, metadata) = open_regular(path)?;
        let content = content_of(&file).map_err(|e| failed("cannot open", path, e))?;
        self.opened.push(FileIdentity { path: path.to_owned(), content });
        if metadata.len() == 0 {
            self.contents.push(Bytes::new());
            return Ok(Bytes::new());
        }
        let bytes = if self.map {
            // SAFETY: the mapping is private and read only. A file that another process shortens
            // while it is mapped raises SIGBUS on access; the documentation of the option
            // "load" says so, and "read" avoids it.
            let map = unsafe { memmap2::Mmap::map(&file) }.map_err(|e| failed("cannot map", path, e))?;
            self.counters.mapped_bytes += map.len() as u64;
            Bytes::from_owner(map)
        } else {
            let bytes = read(&mut file, metadata.len()).map_err(|e| failed("cannot read", path, e))?;
            self.counters.read_bytes += bytes.len() as u64;
            bytes
        };
        self.contents.push(bytes.clone());
        Ok(bytes)
    }

    /// A copy of bytes that the caller owns.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Bytes {
        self.counters.read_bytes += bytes.len() as u64;
        Bytes::copy_from_slice(bytes)
    }
}
