//! Sessions of one environment that open the same files, or the same memory of the caller's, with the same options share all that does not change: mapped,
//! packed and device-resident weights, kernels, plans, and the memory that runs have given back.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;

use crate::model::{FileIdentity, Source};
use crate::ops::custom::Definition;
use crate::tensor::{Buffer, ElementType, Shape, Tensor};

use super::Opened;
use super::options::SessionOptions;

/// What a model was made of: two models of one identity compute the same in the same way.
#[derive(PartialEq)]
pub(super) struct Identity {
    origin: Origin,
    /// The files of its weights.
    weights: Vec<FileIdentity>,
    given: Vec<Memory>,
    options: Vec<(String, String)>,
}

#[derive(PartialEq)]
enum Origin {
    File(FileIdentity),
    Memory(Memory),
}

/// Memory of the caller's, which does not change as long as it is kept here: its address stands for its content.
#[derive(Clone)]
struct Memory {
    name: String,
    /// Of a tensor.
    layout: Option<(ElementType, Shape)>,
    buffer: Buffer,
}

impl PartialEq for Memory {
    fn eq(&self, other: &Self) -> bool {
        let span = |memory: &Memory| (memory.buffer.as_ptr(), memory.buffer.len());
        self.name == other.name && self.layout == other.layout && span(self) == span(other)
    }
}

impl Memory {
    fn of_file(name: &str, bytes: &Bytes) -> Self {
        Memory { name: name.to_owned(), layout: None, buffer: Buffer::from_bytes(bytes.clone()) }
    }

    fn of_tensor(name: &str, tensor: &Tensor) -> Option<Self> {
        let layout = Some((tensor.ty(), tensor.shape().into()));
        Some(Memory { name: name.to_owned(), layout, buffer: tensor.buffer()?.clone() })
    }
}

/// What a session asks for that may share a model.
pub(super) struct Wanted {
    /// The model's file.
    path: Option<PathBuf>,
    /// Or the model in memory of the caller's.
    memory: Option<Memory>,
    given: Vec<Memory>,
    options: Vec<(String, String)>,
}

impl Wanted {
    /// `None` when a session must not share: the options forbid it, ask for the model to be saved, hold what is the caller's own (operators with state,
    /// memory, streams, strings), or a limit of memory that is meant for one session; or the model is a copy of memory
    /// that may change. `operators`: those that the caller defined.
    pub(super) fn of(
        source: Source<'_>,
        options: &SessionOptions,
        operators: &[Arc<Definition>],
    ) -> Option<Self> {
        let alone = !options.share_weights
            || options.optimized_model.is_some()
            || options.external_allocator.is_some()
            || options.hip().is_some_and(|hip| hip.is_for_one_session(options.use_env_allocators))
            || !operators.is_empty();
        if alone {
            return None;
        }
        let (path, memory) = match source {
            Source::Path(path) => (Some(path.to_owned()), None),
            Source::Kept(bytes) => (None, Some(Memory::of_file("", bytes))),
            Source::Bytes(_) => return None,
        };
        let files = options.given.files.iter().map(|(name, bytes)| Some(Memory::of_file(name, bytes)));
        let tensors = options.given.tensors();
        let tensors = tensors.into_iter().map(|(name, tensor)| Memory::of_tensor(name, tensor));
        let given = tensors.chain(files).collect::<Option<Vec<Memory>>>()?;
        Some(Wanted { path, memory, given, options: options.identity() })
    }

    /// The identity of the model that was made of it and of these files, its own first when it has one.
    pub(super) fn identity(self, files: Vec<FileIdentity>) -> Option<Identity> {
        let mut files = files.into_iter();
        let origin = match self.memory {
            Some(memory) => Origin::Memory(memory),
            None => Origin::File(files.next()?),
        };
        Some(Identity { origin, weights: files.collect(), given: self.given, options: self.options })
    }
}

impl Identity {
    /// Whether opening what is wanted would give the same.
    fn is(&self, wanted: &Wanted) -> bool {
        let origin = match (&self.origin, &wanted.path, &wanted.memory) {
            (Origin::File(file), Some(path), _) => {
                // Weights are looked up beside the path that is given, unless the options name a folder.
                let folder = self.weights.is_empty()
                    || file.path.parent() == path.parent()
                    || wanted
                        .options
                        .iter()
                        .any(|(key, value)| key == "external_data_folder" && !value.is_empty());
                folder && file.is_at(path)
            }
            (Origin::Memory(memory), _, Some(given)) => memory == given,
            _ => false,
        };
        origin
            && self.options == wanted.options
            && self.given == wanted.given
            && self.weights.iter().all(|file| file.is_at(&file.path))
    }
}

/// The models that the sessions of an environment have open.
#[derive(Default)]
pub(super) struct Shared(Mutex<Vec<Weak<Opened>>>);

impl Shared {
    /// A model that a living session opened from the same files with the same options.
    pub(super) fn find(&self, wanted: &Wanted) -> Option<Arc<Opened>> {
        let same = |opened: &Arc<Opened>| opened.identity.as_ref().is_some_and(|i| i.is(wanted));
        // Files are asked with the lock released.
        self.alive().into_iter().find(same)
    }

    /// Offers a model to later sessions. Of two that were opened at the same time the first stays; it is
    /// returned, and whether it is the one that was offered.
    pub(super) fn offer(&self, opened: Opened) -> (Arc<Opened>, bool) {
        let opened = Arc::new(opened);
        let Some(identity) = &opened.identity else { return (opened, true) };
        let same = |other: &&Arc<Opened>| other.identity.as_ref() == Some(identity);
        let mut models = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now: Vec<Arc<Opened>> = models.iter().filter_map(Weak::upgrade).collect();
        let found = now.iter().find(same).cloned();
        if found.is_none() {
            models.retain(|model| model.strong_count() > 0);
            models.push(Arc::downgrade(&opened));
        }
        // A model whose last session goes now is not dropped under the lock.
        drop(models);
        drop(now);
        found.map_or((opened, true), |found| (found, false))
    }

    fn alive(&self) -> Vec<Arc<Opened>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect()
    }
}
