//! Weights of a model that is saved: inside of it, in a file beside it, or where an artifact keeps them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, Result, Status};
use crate::tensor::Tensor;

use super::proto::tensor_proto::DataLocation;
use super::proto::{StringStringEntryProto, TensorProto};

/// Smaller tensors stay in the model, unless somebody says otherwise.
pub(super) const SMALLEST_OUTSIDE: usize = 1024;
/// Elements begin at multiples of this, so that they can be used where they are mapped.
const ALIGNMENT: u64 = 64;

/// Where the elements of tensors go.
pub(super) enum Weights<'k> {
    /// Into the model.
    Inside,
    /// Those of large initializers of the main graph into a file of their own.
    Apart(Outside),
    /// Wherever an artifact keeps them.
    Kept(&'k mut dyn Keeper),
}

/// Decides where an artifact keeps the elements of tensors.
pub(crate) trait Keeper {
    /// `initializer`: a graph's, and no attribute of a node.
    fn keep(&mut self, tensor: &Tensor, bytes: &[u8], initializer: bool) -> Result<Kept>;
}

/// Where they are.
pub(crate) enum Kept {
    /// In the model.
    Inside,
    /// In what goes by the name of a file, from this byte on.
    At(String, u64),
    /// Nobody needs them.
    Nowhere,
}

/// What a tensor is in its model.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Role {
    MainInitializer,
    InnerInitializer,
    Attribute,
}

/// The location of elements that are kept nowhere.
pub(super) const NOWHERE: &str = "nowhere";

pub(super) struct Outside {
    /// What the model calls the file.
    location: String,
    path: PathBuf,
    file: BufWriter<File>,
    length: u64,
    /// Smaller tensors stay in the model.
    smallest: usize,
}

impl Weights<'_> {
    /// Into the file `location` in the model's folder, those of at least `smallest` bytes.
    pub(super) fn apart(model: &Path, location: String, smallest: usize) -> Result<Self> {
        let path = model.with_file_name(&location);
        let file = File::create(unfinished(&path)).map_err(|e| failed(&path, e))?;
        Ok(Weights::Apart(Outside { location, path, file: BufWriter::new(file), length: 0, smallest }))
    }

    /// Puts the elements of a tensor where they belong.
    pub(super) fn put(
        &mut self,
        proto: &mut TensorProto,
        tensor: &Tensor,
        bytes: &[u8],
        role: Role,
    ) -> Result<()> {
        let kept = match self {
            Weights::Apart(outside)
                if bytes.len() >= outside.smallest.max(1) && role == Role::MainInitializer =>
            {
                let offset = outside.append(bytes).map_err(|e| failed(&outside.path, e))?;
                Kept::At(outside.location.clone(), offset)
            }
            Weights::Kept(keeper) if bytes.len() >= SMALLEST_OUTSIDE => {
                keeper.keep(tensor, bytes, role != Role::Attribute)?
            }
            _ => Kept::Inside,
        };
        let (location, offset) = match kept {
            Kept::Inside => {
                proto.raw_data = bytes::Bytes::copy_from_slice(bytes);
                return Ok(());
            }
            Kept::At(location, offset) => (location, offset),
            Kept::Nowhere => (NOWHERE.to_owned(), 0),
        };
        proto.data_location = DataLocation::External as i32;
        let entries =
            [("location", location), ("offset", offset.to_string()), ("length", bytes.len().to_string())];
        proto.external_data =
            entries.map(|(key, value)| StringStringEntryProto { key: key.to_owned(), value }).into();
        Ok(())
    }

    /// A file that nothing went into is not kept.
    pub(super) fn finish(self) -> Result<()> {
        let Weights::Apart(mut outside) = self else { return Ok(()) };
        let unfinished = unfinished(&outside.path);
        let done = match outside.length {
            0 => std::fs::remove_file(unfinished),
            _ => outside.file.flush().and_then(|()| std::fs::rename(unfinished, &outside.path)),
        };
        done.map_err(|e| failed(&outside.path, e))
    }
}

impl Outside {
    /// Tells where they are.
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<u64> {
        let offset = self.length.next_multiple_of(ALIGNMENT);
        self.file.write_all(&vec![0; (offset - self.length) as usize])?;
        self.file.write_all(bytes)?;
        self.length = offset + bytes.len() as u64;
        Ok(offset)
    }
}

/// Writes a file under another name until all of it is there. What had the name is replaced then.
pub(super) fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
    /// For writers of one process.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    name.push(format!(".{}.{number}.unfinished", std::process::id()));
    let unfinished = path.with_file_name(name);
    let written = File::create(&unfinished).and_then(|file| {
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        file.flush()?;
        std::fs::rename(&unfinished, path)
    });
    written.map_err(|e| {
        let _ = std::fs::remove_file(&unfinished);
        failed(path, e)
    })
}

/// The name of a file until all of it is there.
pub(super) fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.unfinished", std::process::id()));
    path.with_file_name(name)
}

pub(crate) fn failed(path: &Path, e: std::io::Error) -> Error {
    let _ = std::fs::remove_file(unfinished(path));
    cannot_write(path, &e)
}

/// The error of a file that cannot be written. `path` is the name that the file was to get.
pub(crate) fn cannot_write(path: &Path, e: &std::io::Error) -> Error {
    // What Windows says of a file that is mapped, opened, or neither.
    let refused = matches!(e.raw_os_error(), Some(5 | 32 | 1224));
    let hint = if cfg!(windows) && refused && path.exists() {
        "; Windows keeps a file as long as a session that was opened from it lives: let it go, open it with option \"load\" = \"read\", or write another file"
    } else {
        ""
    };
    Error::new(Status::Io, format!("cannot write \"{}\": {e}{hint}", path.display()))
}
