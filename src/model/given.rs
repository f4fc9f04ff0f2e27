//! What a caller gives of a model from memory: weights, and files of weights.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;

use crate::error::{Result, fail};
use crate::tensor::Tensor;

use super::proto::TensorProto;
use super::types;

/// Weights, and files of weights, that are not read from where the model says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// Tensors for initializers of the main graph, by name.
    pub(crate) initializers: BTreeMap<String, Tensor>,
    /// The bytes of files, by the location that the model names.
    pub(crate) files: BTreeMap<String, Bytes>,
    /// Where other files are, in place of the model's folder.
    pub(crate) folder: Option<PathBuf>,
    /// Whether the model is the program of an artifact: nodes tell the version of their operator set, and weights may be
    /// nowhere.
    pub(crate) program: bool,
}

impl Given {
    /// The bytes that stand for the file at a location.
    pub(super) fn file(&self, location: &str) -> Option<&Bytes> {
        self.files.get(location).or_else(|| {
            let same = |name: &&String| is_same(Path::new(name), Path::new(location));
            self.files.keys().find(same).and_then(|name| self.files.get(name))
        })
    }

    /// The tensor that stands for an initializer, whose type and shape it must have.
    pub(super) fn initializer(&self, declared: &TensorProto, dims: &[i64]) -> Result<Option<&Tensor>> {
        let name = &declared.name;
        let Some(tensor) = self.initializers.get(name) else { return Ok(None) };
        let ty = types::element_type(&format!("tensor \"{name}\""), declared.data_type)?;
        let same = |(&size, &dim): (&usize, &i64)| usize::try_from(dim) == Ok(size);
        let shape = tensor.shape();
        if tensor.ty() != ty || shape.len() != dims.len() || !shape.iter().zip(dims).all(same) {
            fail!(
                InvalidArgument,
                "initializer \"{name}\" was given as {}{shape:?}; the model has {ty}{dims:?}, and both must be equal",
                tensor.ty()
            );
        }
        Ok(Some(tensor))
    }

    /// Whether each tensor stands for an initializer that the model has.
    pub(super) fn check_names(&self, has: impl Fn(&str) -> bool) -> Result<()> {
        match self.initializers.keys().find(|name| !has(name)) {
            Some(name) => fail!(
                NotFound,
                "initializer \"{name}\" was given, and the model has none of this name in its main graph"
            ),
            None => Ok(()),
        }
    }
}

/// Whether two locations name one file in a folder.
fn is_same(one: &Path, other: &Path) -> bool {
    let named = |path: &Path| -> Vec<PathBuf> {
        let kept = path.components().filter(|part| !matches!(part, Component::CurDir));
        kept.map(|part| PathBuf::from(part.as_os_str())).collect()
    };
    named(one) == named(other)
}
