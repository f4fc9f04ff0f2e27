//! Weights in files beside the model.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;

use crate::error::{Error, Result, Status, fail};

use super::counters::LoadCounters;
use super::file::{FileIdentity, Files};
use super::given::Given;
use super::outside::NOWHERE;
use super::proto::tensor_proto::DataLocation;
use super::proto::{StringStringEntryProto, TensorProto};

/// Opens each external file once.
pub(crate) struct ExternalData {
    /// The folder of the model, as its path was given; `None` for a model from memory.
    folder: Option<PathBuf>,
    /// The folders whose files belong to the model: that one, and the one that the model's file really lies in
    /// when the path is a link, as in a content-addressed cache.
    roots: Vec<PathBuf>,
    /// What the caller has in memory in place of files.
    pub(super) given: Given,
    files: Files,
    open: HashMap<PathBuf, Bytes>,
}

impl ExternalData {
    /// For the model file at `path`; `None` for a model from memory.
    pub(crate) fn new(path: Option<&Path>, files: Files, given: Given) -> Self {
        let (folder, real) = match &given.folder {
            Some(folder) => (Some(folder.clone()), None),
            None => {
                let folder = path.and_then(Path::parent);
                let beside = |f: &Path| if f.as_os_str().is_empty() { Path::new(".") } else { f }.to_owned();
                (folder.map(beside), path.and_then(|path| path.canonicalize().ok()))
            }
        };
        let roots = [
            folder.as_ref().and_then(|folder| folder.canonicalize().ok()),
            real.and_then(|real| Some(real.parent()?.to_owned())),
        ];
        let roots = roots.into_iter().flatten().collect();
        ExternalData { folder, roots, given, files, open: HashMap::new() }
    }

    /// What was opened, and how much of it.
    pub(crate) fn into_opened(self) -> (Vec<FileIdentity>, Vec<Bytes>, LoadCounters) {
        (self.files.opened, self.files.contents, self.files.counters)
    }

    /// Counts a weight that had to be copied.
    pub(crate) fn count_copy(&mut self, bytes: usize) {
        self.files.counters.copied_bytes += bytes as u64;
        self.files.counters.copied_weights += 1;
    }

    /// Whether the elements of a tensor are kept nowhere, which may be in artifacts.
    pub(crate) fn is_nowhere(&self, tensor: &TensorProto) -> bool {
        let nowhere = |e: &StringStringEntryProto| e.key == "location" && e.value == NOWHERE;
        self.given.program
            && tensor.data_location == DataLocation::External as i32
            && tensor.external_data.iter().any(nowhere)
    }

    /// The bytes of an external tensor, `expected` of them.
    pub(crate) fn bytes(&mut self, tensor: &TensorProto, expected: usize) -> Result<Bytes> {
        let name = &tensor.name;
        let entry = |key: &str| tensor.external_data.iter().find(|e| e.key == key).map(|e| e.value.as_str());
        let Some(location) = entry("location") else {
            fail!(InvalidModel, "tensor \"{name}\": its external data name no location");
        };
        let number = |key: &str| -> Result<Option<usize>> {
            match entry(key).map(|text| (text, text.trim().parse::<usize>())) {
                None => Ok(None),
                Some((_, Ok(n))) => Ok(Some(n)),
                Some((text, Err(_))) => {
                    fail!(
                        InvalidModel,
                        "tensor \"{name}\": external data {key} \"{text}\" is no number of bytes"
                    )
                }
            }
        };
        let offset = number("offset")?.unwrap_or(0);
        let length = number("length")?.unwrap_or(expected);
        if length != expected {
            fail!(
                InvalidModel,
                "tensor \"{name}\": its external data have {length} bytes, its shape needs {expected}"
            );
        }
        let file = match self.given.file(location) {
            Some(bytes) => bytes.clone(),
            None => self.file(name, location)?,
        };
        match offset.checked_add(length) {
            Some(end) if end <= file.len() => Ok(file.slice(offset..end)),
            _ => fail!(
                InvalidModel,
                "tensor \"{name}\": its external data are bytes {offset} to {offset}+{length} of \"{location}\", which has {}",
                file.len()
            ),
        }
    }

    /// The whole of an external file.
    fn file(&mut self, tensor: &str, location: &str) -> Result<Bytes> {
        let path = self.resolve(tensor, location)?;
        if let Some(bytes) = self.open.get(&path) {
            return Ok(bytes.clone());
        }
        let failed =
            |e: Error| Error::new(e.status, format!("tensor \"{tensor}\": external data: {}", e.message));
        let bytes = self.files.open(&path).map_err(failed)?;
        self.open.insert(path, bytes.clone());
        Ok(bytes)
    }

    /// The path of an external file, which must lie in a folder of the model.
    fn resolve(&self, tensor: &str, location: &str) -> Result<PathBuf> {
        let Some(folder) = &self.folder else {
            fail!(
                Unsupported,
                "tensor \"{tensor}\" has external data in \"{location}\", but the model was opened from memory; open it from its file, give the file's bytes \
                 (rukh_session_options_add_external_file), or set option \"external_data_folder\""
            );
        };
        let relative = Path::new(location);
        let inside = relative.components().all(|part| match part {
            Component::Normal(name) => !cfg!(windows) || is_plain_on_windows(&name.to_string_lossy()),
            part => part == Component::CurDir,
        });
        let refused = || {
            Error::new(
                Status::InvalidModel,
                format!(
                    "tensor \"{tensor}\": external data \"{location}\" lie outside the model's folder; allowed are files inside it, and inside the folder that the model's own link leads to"
                ),
            )
        };
        if !inside || location.is_empty() {
            return Err(refused());
        }
        // Beside the path that was given; else beside the file that it leads to.
        let path = folder.join(relative);
        let beside = self.roots.iter().map(|root| root.join(relative)).find(|path| path.exists());
        let path = if path.exists() { path } else { beside.unwrap_or(path) };
        // A symbolic link must not lead out either. A missing file is reported when it is opened.
        match path.canonicalize() {
            Ok(real) if !self.roots.iter().any(|root| real.starts_with(root)) => Err(refused()),
            _ => Ok(path),
        }
    }
}

/// Whether a part of a path names a file or a folder on Windows. `a:b` is another stream of the file `a`, `NUL` and the like
/// are devices in every folder, and dots and spaces at the end are not looked at.
fn is_plain_on_windows(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_uppercase();
    let numbered = |of: &str| {
        stem.strip_prefix(of)
            .is_some_and(|rest| rest.chars().count() == 1 && rest.contains(|c: char| c.is_numeric()))
    };
    let device = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].contains(&&*stem);
    !(name.contains(':') || name.ends_with(['.', ' ']) || device || numbered("COM") || numbered("LPT"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_devices_of_windows() {
        for (name, plain) in [
            ("weights.bin", true),
            ("nul.bin", false),
            ("NUL", false),
            ("nullable.bin", true),
            ("com1", false),
            ("COM\u{b9}.x", false),
            ("com10", true),
            ("common", true),
            ("weights.bin:hidden", false),
            ("C:", false),
            ("weights.", false),
            (".. ", false),
        ] {
            assert_eq!(is_plain_on_windows(name), plain, "{name}");
        }
    }
}
