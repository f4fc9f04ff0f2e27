//! Who packs weights, and where what is packed lies: see `providers::packs`.

use super::packed_weights::Weights;
use crate::provider::NodeContext;
use crate::provider::packs::{Found, NodePacks};
use crate::tensor::Element;
use crate::threads::Pool;

/// The threads that pack, and the packed weights of the node, where they are kept.
#[derive(Clone, Copy)]
pub(crate) struct Packing<'a> {
    pub(crate) pool: &'a Pool,
    node: Option<&'a NodePacks>,
}

impl<'a> From<&'a Pool> for Packing<'a> {
    /// For weights that nobody keeps.
    fn from(pool: &'a Pool) -> Self {
        Packing { pool, node: None }
    }
}

impl<'a> Packing<'a> {
    /// Who packs the node's weights.
    pub(crate) fn of(node: &NodeContext<'a>) -> Self {
        Packing { pool: node.pool, node: node.packs }
    }

    /// The number of threads that a layout is made for.
    pub(crate) fn threads(&self) -> usize {
        self.node.map_or(self.pool.threads(), |node| node.threads)
    }

    /// As `Weights::filled`.
    pub(crate) fn filled<T: Element>(&self, len: usize, fill: impl FnOnce(&mut [T])) -> Weights<T> {
        self.pieces(1).at(0).filled(len, fill)
    }

    /// `count` pieces, which threads may fill in any order.
    pub(crate) fn pieces(&self, count: usize) -> Pieces<'a> {
        Pieces { node: self.node, first: self.node.map_or(0, |node| node.reserve(count)) }
    }
}

/// Pieces of a node's packed weights.
#[derive(Clone, Copy)]
pub(crate) struct Pieces<'a> {
    node: Option<&'a NodePacks>,
    first: usize,
}

impl<'a> Pieces<'a> {
    pub(crate) fn at(&self, i: usize) -> Piece<'a> {
        Piece { node: self.node, number: self.first + i }
    }
}

/// A piece of a node's packed weights.
#[derive(Clone, Copy)]
pub(crate) struct Piece<'a> {
    node: Option<&'a NodePacks>,
    number: usize,
}

impl Piece<'_> {
    /// As `Weights::filled`, unless the piece is there already. Nothing where it is not and cannot be made; the node's
    /// packs tell that, and its kernel must not run.
    pub(crate) fn filled<T: Element>(self, len: usize, fill: impl FnOnce(&mut [T])) -> Weights<T> {
        let Some(node) = self.node else { return Weights::filled(len, fill) };
        match node.find(self.number, len * size_of::<T>(), size_of::<T>()) {
            Found::Kept(pack) => Weights::kept(&pack).unwrap_or_else(|| {
                node.cannot_keep();
                Weights::filled(0, |_| {})
            }),
            Found::NoSource => Weights::filled(0, |_| {}),
            Found::Nothing => {
                let weights = Weights::filled(len, fill);
                node.record(self.number, weights.pack());
                weights
            }
        }
    }

    /// For a layout that cannot be kept.
    pub(crate) fn cannot_be_kept(self) {
        self.node.inspect(|node| node.cannot_keep());
    }
}
