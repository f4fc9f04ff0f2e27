//! Weights in the layouts that kernels read: what each node packed, written down, or taken from where it was kept.
//!
//! A kernel packs constant weights when it is made, always in the same order. Each piece of memory that it fills has a
//! number, so that a model which is opened from an artifact finds the pieces again that were packed when the artifact was
//! made.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::tensor::Buffer;

/// A piece of packed weights.
#[derive(Clone, Debug)]
pub struct Pack {
    pub buffer: Arc<Buffer>,
    /// The first byte, and the number of bytes.
    pub start: usize,
    pub len: usize,
    /// Bytes of an element.
    pub width: usize,
}

impl Pack {
    pub fn bytes(&self) -> &[u8] {
        &self.buffer.bytes()[self.start..self.start + self.len]
    }
}

/// The packed weights of one node while its kernel is made.
#[derive(Debug)]
pub struct NodePacks {
    /// The number of threads that layouts are made for.
    pub threads: usize,
    from: From,
    next: AtomicUsize,
    /// Whether some piece is not as it should be: it cannot be kept, or it was not found.
    incomplete: AtomicBool,
}

#[derive(Debug)]
enum From {
    /// What is packed is written down, by number.
    Recorded(Mutex<Vec<Option<Pack>>>),
    /// Pieces that were packed before. `sources`: whether the weights are there as well.
    Kept { packs: Vec<Pack>, sources: bool },
}

/// What a kernel gets for a piece that it asks for.
pub enum Found {
    Kept(Pack),
    /// It is to be packed.
    Nothing,
    /// It cannot be packed, as the weights are not there; the kernel will not be used.
    NoSource,
}

impl NodePacks {
    pub fn recorded(threads: usize) -> Self {
        Self::new(threads, From::Recorded(Mutex::default()))
    }

    pub fn kept(threads: usize, packs: Vec<Pack>, sources: bool) -> Self {
        Self::new(threads, From::Kept { packs, sources })
    }

    fn new(threads: usize, from: From) -> Self {
        NodePacks { threads, from, next: AtomicUsize::new(0), incomplete: AtomicBool::new(false) }
    }

    /// The first of `count` numbers that nobody had before.
    pub fn reserve(&self, count: usize) -> usize {
        self.next.fetch_add(count, Ordering::Relaxed)
    }

    /// The piece of this number, where it was kept, with so many bytes in elements of this width.
    pub fn find(&self, number: usize, len: usize, width: usize) -> Found {
        let From::Kept { packs, sources } = &self.from else { return Found::Nothing };
        match packs.get(number).filter(|pack| (pack.len, pack.width) == (len, width)) {
            Some(pack) => Found::Kept(pack.clone()),
            None => {
                self.cannot_keep();
                if *sources { Found::Nothing } else { Found::NoSource }
            }
        }
    }

    /// Writes a piece down.
    pub fn record(&self, number: usize, pack: Pack) {
        let From::Recorded(packs) = &self.from else { return };
        let mut packs = packs.lock().unwrap_or_else(PoisonError::into_inner);
        if packs.len() <= number {
            packs.resize(number + 1, None);
        }
        packs[number] = Some(pack);
    }

    /// To be called for a layout that only its maker knows.
    pub fn cannot_keep(&self) {
        self.incomplete.store(true, Ordering::Relaxed);
    }

    /// Whether the kernel asked for pieces, and each was written down or found.
    pub fn is_complete(&self) -> bool {
        self.next.load(Ordering::Relaxed) > 0 && !self.incomplete.load(Ordering::Relaxed)
    }

    /// The pieces that were written down; none when one of them could not be.
    pub fn into_recorded(self) -> Vec<Pack> {
        let complete = self.is_complete();
        match self.from {
            From::Recorded(packs) if complete => {
                let packs = packs.into_inner().unwrap_or_else(PoisonError::into_inner);
                packs.into_iter().collect::<Option<Vec<Pack>>>().unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }
}
