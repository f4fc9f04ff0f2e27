//! Sessions of one environment that open the same files with the same options share all that does not change: mapped,
//! packed and device-resident weights, kernels, plans, and the memory that runs have given back.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::model::{FileIdentity, Source};
use crate::ops::custom::Definition;

use super::Opened;
use super::options::SessionOptions;

/// What a model was made of: two models of one identity compute the same in the same way.
pub(super) struct Identity {
    /// The model's file first, then those of its weights.
    files: Vec<FileIdentity>,
    options: Vec<(String, String)>,
}

impl Identity {
    /// What of the options is part of it. `None` when a session must not share: the options forbid it, hold what is
    /// the caller's own (operators with state, memory, streams), or a limit of memory that is meant for one session.
    /// `operators`: those that the caller defined.
    pub(super) fn options(
        options: &SessionOptions,
        operators: &[Arc<Definition>],
    ) -> Option<Vec<(String, String)>> {
        let alone = !options.share_weights
            || options.external_allocator.is_some()
            || options.hip().is_some_and(|hip| hip.is_for_one_session(options.use_env_allocators))
            || !operators.is_empty();
        (!alone).then(|| options.identity())
    }

    /// What a model of these options was made of; a model from memory is the caller's, and may change.
    pub(super) fn new(options: Option<Vec<(String, String)>>, files: Vec<FileIdentity>) -> Option<Self> {
        options.filter(|_| !files.is_empty()).map(|options| Identity { files, options })
    }

    /// Whether opening the file at `path` would read the same.
    fn is_at(&self, path: &Path) -> bool {
        let Some((model, weights)) = self.files.split_first() else { return false };
        // Weights are looked up beside the path that is given.
        let folder = weights.is_empty() || model.path.parent() == path.parent();
        folder && model.is_at(path) && weights.iter().all(|file| file.is_at(&file.path))
    }
}

/// The models that the sessions of an environment have open.
#[derive(Default)]
pub(super) struct Shared(Mutex<Vec<Weak<Opened>>>);

impl Shared {
    /// A model that a living session opened from the same files with the same options.
    pub(super) fn find(&self, source: Source<'_>, options: &[(String, String)]) -> Option<Arc<Opened>> {
        let Source::Path(path) = source else { return None };
        let same = |opened: &Arc<Opened>| {
            opened.identity.as_ref().is_some_and(|i| i.options == options && i.is_at(path))
        };
        // Files are asked with the lock released.
        self.alive().into_iter().find(same)
    }

    /// Offers a model to later sessions. Of two that were opened at the same time the first stays; it is
    /// returned, and whether it is the one that was offered.
    pub(super) fn offer(&self, opened: Opened) -> (Arc<Opened>, bool) {
        let opened = Arc::new(opened);
        let Some(identity) = &opened.identity else { return (opened, true) };
        let same = |other: &&Arc<Opened>| {
            other
                .identity
                .as_ref()
                .is_some_and(|i| i.options == identity.options && i.files == identity.files)
        };
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
