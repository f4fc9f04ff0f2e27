//! Where the rows of a chain's products come from and where their results go: `kernels/include/rukh/weight_chain_row.h`.

use crate::ops::OpError;

use super::super::launch::{ChainLink, Operand};
use super::{SKIP, X};

/// Lines of a tile.
pub(super) const TILE: usize = 16;
/// Bytes of the rows of f16 that a launch can exchange.
pub(super) const SET: usize = 128 << 10;

/// A product of a chain, and the values that are its node's inputs and outputs.
#[derive(Clone, Copy)]
pub(crate) struct Linked<'a> {
    pub(crate) link: &'a ChainLink,
    pub(crate) inputs: &'a [Option<u32>],
    pub(crate) outputs: &'a [Option<u32>],
}

impl Linked<'_> {
    pub(super) fn value(&self, operand: Operand) -> Result<u32, OpError> {
        let value = match operand {
            Operand::Input(i) => self.inputs.get(i).copied().flatten(),
            Operand::Output(i) => self.outputs.get(i).copied().flatten(),
            _ => None,
        };
        value.ok_or_else(|| OpError::Data(format!("{operand:?} of a product is missing")))
    }
}

/// Where a row is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// In memory, as a value of the plan.
    Value(u32),
    /// At this offset of what workgroups exchange.
    Exchanged(usize),
    /// In the memory of each workgroup: the sum that was kept last.
    Kept,
}

/// The row of a product, what is added to it, where their sum goes, and where the results go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) a: Place,
    pub(super) skip: Option<Place>,
    pub(super) sum: Option<Place>,
    pub(super) out: Place,
}

/// The rows of a chain, the elements of the longest one, those of the longest sum, and how many workgroups may work: each
/// needs a tile of a product whose sum it has to keep.
#[derive(Debug, PartialEq)]
pub(super) struct Rows {
    pub(super) each: Vec<Row>,
    pub(super) deepest: usize,
    pub(super) kept: usize,
    pub(super) least_tiles: usize,
}

impl Rows {
    /// `None` where a product does not follow the one before, takes a sum that is not the one kept last, or results are too many.
    pub(super) fn of(products: &[Linked<'_>]) -> Option<Self> {
        let mut rows =
            Self { each: Vec::with_capacity(products.len()), deepest: 0, kept: 0, least_tiles: usize::MAX };
        // The result of the product before and its place; the sum that was made last, and which product made it.
        let (mut before, mut last_sum) = (None, None);
        let mut exchanged = 0;
        for (i, linked) in products.iter().enumerate() {
            let link = linked.link;
            let value = |at: usize| linked.inputs.get(at).copied().flatten();
            let [x, skip] = [value(X), link.skip.and(value(SKIP))];
            let (a, other) = match before {
                Some((result, place)) if x == Some(result) => (place, skip),
                Some((result, place)) if skip == Some(result) => (place, x),
                Some(_) => return None,
                None => (Place::Value(x?), skip),
            };
            let skip = match (other, last_sum) {
                (Some(other), Some((sum, maker))) if other == sum => {
                    let Linked { link, .. } = products.get::<usize>(maker)?;
                    rows.each.get_mut(maker)?.sum = Some(Place::Kept);
                    rows.least_tiles = rows.least_tiles.min(link.n / TILE);
                    Some(Place::Kept)
                }
                // Nobody stores other sums, nor results but the last.
                (Some(other), _) if made_before(&products[..i], other) => return None,
                (other, _) => other.map(Place::Value),
            };
            let is_last = i + 1 == products.len();
            let sum = link.sum.and(linked.outputs.get(1).copied().flatten());
            let result = linked.outputs.first().copied().flatten()?;
            let out = if is_last { Place::Value(result) } else { Place::Exchanged(exchanged) };
            if !is_last {
                exchanged += (if link.gate.is_some() { link.n / 2 } else { link.n }) * 2;
            }
            // A sum that only this launch needs is not stored.
            let stored = sum.filter(|_| is_last).map(Place::Value);
            rows.each.push(Row { a, skip, sum: stored, out });
            rows.deepest = rows.deepest.max(link.k);
            if sum.is_some() {
                rows.kept = rows.kept.max(link.k);
                last_sum = sum.map(|sum| (sum, i));
            }
            before = Some((result, out));
        }
        (exchanged <= SET).then_some(rows)
    }
}

fn made_before(products: &[Linked<'_>], value: u32) -> bool {
    products.iter().any(|linked| linked.outputs.contains(&Some(value)))
}
