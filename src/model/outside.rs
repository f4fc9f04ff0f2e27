//! Weights of a model that is saved: inside of it, or in a file beside it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, Status};

use super::proto::tensor_proto::DataLocation;
use super::proto::{StringStringEntryProto, TensorProto};

/// Smaller tensors stay in the model.
const SMALLEST_OUTSIDE: usize = 1024;
/// Elements begin at multiples of this, so that they can be used where they are mapped.
const ALIGNMENT: u64 = 64;

/// Where the elements of tensors go.
pub(super) struct Weights {
    outside: Option<Outside>,
}

struct Outside {
    /// What the model calls the file.
    location: String,
    path: PathBuf,
    file: BufWriter<File>,
    length: u64,
}

impl Weights {
    pub(super) fn new(model: &Path, apart: bool) -> Result<Self> {
        let Some(name) = model.file_name().and_then(|name| name.to_str()).filter(|_| apart) else {
            return Ok(Weights { outside: None });
        };
        let location = format!("{name}.data");
        let path = model.with_file_name(&location);
        let file = File::create(unfinished(&path)).map_err(|e| failed(&path, e))?;
        Ok(Weights { outside: Some(Outside { location, path, file: BufWriter::new(file), length: 0 }) })
    }

    /// Puts the elements of a tensor where they belong. `may_leave`: they may be outside of the model.
    pub(super) fn put(&mut self, tensor: &mut TensorProto, bytes: &[u8], may_leave: bool) -> Result<()> {
        match &mut self.outside {
            Some(outside) if may_leave && bytes.len() >= SMALLEST_OUTSIDE => {
                outside.append(tensor, bytes).map_err(|e| failed(&outside.path, e))
            }
            _ => {
                tensor.raw_data = bytes::Bytes::copy_from_slice(bytes);
                Ok(())
            }
        }
    }

    pub(super) fn finish(self) -> Result<()> {
        let Some(mut outside) = self.outside else { return Ok(()) };
        let moved =
            outside.file.flush().and_then(|()| std::fs::rename(unfinished(&outside.path), &outside.path));
        moved.map_err(|e| failed(&outside.path, e))
    }
}

impl Outside {
    fn append(&mut self, tensor: &mut TensorProto, bytes: &[u8]) -> std::io::Result<()> {
        let offset = self.length.next_multiple_of(ALIGNMENT);
        self.file.write_all(&vec![0; (offset - self.length) as usize])?;
        self.file.write_all(bytes)?;
        self.length = offset + bytes.len() as u64;
        tensor.data_location = DataLocation::External as i32;
        let entries = [
            ("location", self.location.clone()),
            ("offset", offset.to_string()),
            ("length", bytes.len().to_string()),
        ];
        tensor.external_data =
            entries.map(|(key, value)| StringStringEntryProto { key: key.to_owned(), value }).into();
        Ok(())
    }
}

/// The name of a file until all of it is there.
pub(super) fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.unfinished", std::process::id()));
    path.with_file_name(name)
}

pub(super) fn failed(path: &Path, e: std::io::Error) -> Error {
    let _ = std::fs::remove_file(unfinished(path));
    Error::new(Status::Io, format!("cannot write \"{}\": {e}", path.display()))
}
