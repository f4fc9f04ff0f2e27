//! Adapters: named tensors that stand in for a model's inputs, as those of a LoRA fine-tuning do; and their files, which
//! ONNX Runtime calls `.onnx_adapter`.
//!
//! A file is a FlatBuffer of two kinds of tables, Adapter (format_version, adapter_version, model_version, parameters) and
//! Parameter (name, dims, data_type, raw_data). They are read and written here by hand: two tables need no generated
//! code, and a message can name the part that is wrong.

mod flatbuffer;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::error::{Error, Result, Status, excerpt, fail};
use crate::tensor::{ElementType, Tensor};

use super::file::map_private;
use super::outside::replace;

/// What a file of adapters has behind its first four bytes.
const IDENTIFIER: &[u8; 4] = b"TORT";

/// The version of the format, of which there is one.
pub(crate) const FORMAT_VERSION: i32 = 1;

/// Numbers that the maker of an adapter gives it; nothing is compared with them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Versions {
    pub(crate) adapter: i32,
    pub(crate) model: i32,
}

/// A tensor for the input of this name.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: Arc<str>,
    pub(crate) tensor: Tensor,
}

/// Parameters in order, of which no two have one name.
#[derive(Default)]
struct Parameters {
    list: Vec<Parameter>,
    positions: HashMap<Arc<str>, usize>,
}

impl Parameters {
    /// `status`: of the error when the name is there already.
    fn add(&mut self, parameter: Parameter, status: Status) -> Result<()> {
        if self.positions.insert(parameter.name.clone(), self.list.len()).is_some() {
            let name = excerpt(&parameter.name);
            return Err(Error::new(status, format!("parameter \"{name}\" is there twice; names are unique")));
        }
        self.list.push(parameter);
        Ok(())
    }
}

/// Tensors for inputs, by name. They do not change.
pub(crate) struct Adapter {
    /// What messages call it.
    label: String,
    versions: Versions,
    parameters: Parameters,
    /// Copies in the memory of devices, by the device's number and the parameter's position.
    copies: Mutex<HashMap<(u32, usize), Tensor>>,
}

impl Adapter {
    /// Reads a file. Elements stay in it, mapped.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Self::read(&map_private(path)?, format!("adapter \"{}\"", path.display()))
    }

    /// Reads the bytes of a file. Elements stay there, where they are aligned to their type.
    pub(crate) fn from_bytes(bytes: &Bytes) -> Result<Self> {
        Self::read(bytes, "the adapter in memory".to_owned())
    }

    /// An adapter of these tensors, which are shared.
    pub(crate) fn of(versions: Versions, parameters: Vec<(String, Tensor)>) -> Result<Self> {
        let mut checked = Parameters::default();
        for (name, tensor) in parameters {
            let shown = excerpt(&name);
            if name.is_empty() || name.contains('\0') {
                fail!(
                    InvalidArgument,
                    "parameter \"{}\": a name has a character or more, and no NUL",
                    shown.escape_debug()
                );
            }
            if !is_allowed(tensor.ty()) {
                fail!(
                    InvalidArgument,
                    "parameter \"{shown}\" is tensor({}); an adapter holds elements of a byte or more up to float8, and no texts",
                    tensor.ty()
                );
            }
            if tensor.buffer().is_some_and(|buffer| buffer.device().is_some()) {
                fail!(
                    InvalidArgument,
                    "parameter \"{shown}\" is in device memory; rukh_value_copy brings it to the host"
                );
            }
            let tensor = tensor.aligned()?;
            checked.add(Parameter { name: name.into(), tensor }, Status::InvalidArgument)?;
        }
        Ok(Self::new("the adapter made of values".to_owned(), versions, checked))
    }

    fn read(bytes: &Bytes, label: String) -> Result<Self> {
        match read::read(bytes) {
            Ok((versions, parameters)) => Ok(Self::new(label, versions, parameters)),
            Err(e) => Err(Error::new(e.status, format!("{label}: {}", e.message))),
        }
    }

    fn new(label: String, versions: Versions, parameters: Parameters) -> Self {
        Adapter { label, versions, parameters, copies: Mutex::default() }
    }

    /// Writes a file. What was there is replaced once all is written.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let layout = write::Layout::of(self)?;
        replace(path, |file| layout.write(file))
    }

    /// What messages call it.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    pub(crate) fn versions(&self) -> Versions {
        self.versions
    }

    pub(crate) fn parameters(&self) -> &[Parameter] {
        &self.parameters.list
    }

    /// The position of the parameter of this name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.parameters.positions.get(name).copied()
    }

    /// The tensor of this name.
    pub(crate) fn tensor(&self, name: &str) -> Option<&Tensor> {
        Some(&self.parameters()[self.find(name)?].tensor)
    }

    /// A parameter in the memory of a device, where `copy` brings it the first time. It stays as long as the adapter.
    pub(crate) fn on_device(
        &self,
        position: usize,
        device: u32,
        copy: impl FnOnce(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let mut copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tensor) = copies.get(&(device, position)) {
            return Ok(tensor.clone());
        }
        let tensor = copy(&self.parameters()[position].tensor)?;
        copies.insert((device, position), tensor.clone());
        Ok(tensor)
    }
}

impl std::fmt::Debug for Adapter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} parameters)", self.label, self.parameters().len())
    }
}

/// Whether the format has elements of this type: numbers of a byte or more, those that ONNX Runtime's schema lists.
fn is_allowed(ty: ElementType) -> bool {
    ty as i32 <= ElementType::F8E5M2FNUZ as i32 && ty != ElementType::String
}
