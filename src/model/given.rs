//! What a caller gives of a model from memory: weights, and files of weights.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Result, excerpt, fail};
use crate::graph::{Dim, Fact};
use crate::tensor::Tensor;

use super::adapter::Adapter;
use super::proto::{GraphProto, TensorProto};
use super::types;

/// Weights, and files of weights, that are not read from where the model says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// Tensors for initializers of the main graph, by name.
    pub(crate) initializers: BTreeMap<String, Tensor>,
    /// Adapters, whose tensors stand for initializers that are not given above. Of two of a name the later one's counts.
    pub(crate) adapters: Vec<Arc<Adapter>>,
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

    /// Every tensor that stands for an initializer, by name.
    pub(crate) fn tensors(&self) -> BTreeMap<&str, &Tensor> {
        let parameters = self.adapters.iter().flat_map(|adapter| adapter.parameters());
        let adapted = parameters.map(|parameter| (&*parameter.name, &parameter.tensor));
        adapted.chain(self.initializers.iter().map(|(name, tensor)| (name.as_str(), tensor))).collect()
    }

    /// The tensor that stands for an initializer of the main graph, whose type and shape it must have.
    pub(super) fn initializer(
        &self,
        declared: &TensorProto,
        dims: &[i64],
        main: &GraphProto,
    ) -> Result<Option<&Tensor>> {
        let name = &declared.name;
        let Some(tensor) = self.initializers.get(name) else { return self.adapted(declared, dims, main) };
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

    /// The tensor of an adapter. Where the initializer is an input as well, it may have any shape that the input may.
    fn adapted(&self, declared: &TensorProto, dims: &[i64], main: &GraphProto) -> Result<Option<&Tensor>> {
        let name = &declared.name;
        let found = |adapter: &'_ Arc<Adapter>| adapter.find(name).is_some();
        let Some(adapter) = self.adapters.iter().rev().find(|adapter| found(adapter)) else {
            return Ok(None);
        };
        let Some(tensor) = adapter.tensor(name) else { return Ok(None) };
        let ty = types::element_type(&format!("tensor \"{name}\""), declared.data_type)?;
        let input = main.input.iter().find(|input| input.name == *name);
        let fact = match input {
            Some(input) => types::fact(&format!("input \"{name}\""), input.r#type.as_ref())?,
            None => Fact::default(),
        };
        let ty = fact.element_type().unwrap_or(ty);
        let shape = match (input, &fact.shape) {
            (Some(_), shape) => shape.clone(),
            (None, _) => Some(dims.iter().map(|&dim| Dim::from(usize::try_from(dim).unwrap_or(0))).collect()),
        };
        let fits = |shape: &Vec<Dim>| {
            let same = |(&size, dim): (&usize, &Dim)| dim.known().is_none_or(|_| *dim == Dim::from(size));
            shape.len() == tensor.shape().len() && tensor.shape().iter().zip(shape).all(same)
        };
        if tensor.ty() != ty || !shape.as_ref().is_none_or(fits) {
            fail!(
                InvalidArgument,
                "{}: parameter \"{name}\" is {}{:?}; the model has {ty}{}",
                adapter.label(),
                tensor.ty(),
                tensor.shape(),
                shape.map_or(String::new(), |shape| format!("{shape:?}"))
            );
        }
        Ok(Some(tensor))
    }

    /// Whether each tensor stands for an initializer that the model has. `is_input`: whether the model has such an
    /// input.
    pub(super) fn check_names(
        &self,
        has: impl Fn(&str) -> bool,
        is_input: impl Fn(&str) -> bool,
    ) -> Result<()> {
        if let Some(name) = self.initializers.keys().find(|name| !has(name)) {
            fail!(
                NotFound,
                "initializer \"{name}\" was given, and the model has none of this name in its main graph"
            );
        }
        for adapter in &self.adapters {
            let Some(parameter) = adapter.parameters().iter().find(|parameter| !has(&parameter.name)) else {
                continue;
            };
            let (label, name) = (adapter.label(), excerpt(&parameter.name));
            if is_input(&parameter.name) {
                fail!(
                    NotFound,
                    "{label}: parameter \"{name}\" is for an input that has no value of its own; give the adapter to runs, by rukh_run_options_add_adapter"
                );
            }
            fail!(
                NotFound,
                "{label}: the model has no initializer \"{name}\" in its main graph, and so the adapter was made for another model"
            );
        }
        Ok(())
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
