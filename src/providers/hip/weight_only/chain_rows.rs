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

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 2048;
    const MIDDLE: usize = 8192;

    /// A product of `k` elements with `n` results: its row, what is added to it, its result, the sum.
    struct Product {
        k: usize,
        n: usize,
        gated: bool,
        values: [Option<u32>; 4],
    }

    const fn product(k: usize, n: usize, gated: bool, values: [Option<u32>; 4]) -> Product {
        Product { k, n, gated, values }
    }

    fn rows(products: &[Product]) -> Option<Rows> {
        let parts: Vec<_> = products
            .iter()
            .map(|&Product { k, n, gated, values: [x, skip, out, sum] }| {
                let link = ChainLink {
                    skip: skip.map(|_| Operand::Input(SKIP)),
                    sum: sum.map(|_| Operand::Output(1)),
                    scale: None,
                    epsilon: 0.0,
                    n: if gated { 2 * n } else { n },
                    k,
                    gate: gated.then_some([0, n]),
                };
                let mut inputs = vec![None; SKIP + 1];
                (inputs[X], inputs[SKIP]) = (x, skip);
                (link, inputs, vec![out, sum])
            })
            .collect();
        let linked: Vec<_> =
            parts.iter().map(|(link, inputs, outputs)| Linked { link, inputs, outputs }).collect();
        Rows::of(&linked)
    }

    const PROJECTION: Product = product(WIDTH, WIDTH, false, [Some(0), None, Some(1), None]);
    const GATED: Product = product(WIDTH, MIDDLE, true, [Some(2), Some(1), Some(3), Some(4)]);
    const DOWN: Product = product(MIDDLE, WIDTH, false, [Some(3), None, Some(5), None]);
    const QUERIES: Product = product(WIDTH, 3072, false, [Some(4), Some(5), Some(6), Some(7)]);

    #[test]
    fn a_decoders_layer() {
        let [value, exchanged] = [|v| Place::Value(v), |at| Place::Exchanged(at as usize)];
        let row = |a, skip, sum, out| Row { a, skip, sum, out };
        let ends = [2 * WIDTH, 2 * (WIDTH + MIDDLE)].map(|end| end as u32);
        let each = vec![
            row(value(0), None, None, exchanged(0)),
            row(exchanged(0), Some(value(2)), Some(Place::Kept), exchanged(ends[0])),
            row(exchanged(ends[0]), None, None, exchanged(ends[1])),
            row(exchanged(ends[1]), Some(Place::Kept), Some(value(7)), value(6)),
        ];
        // The tiles of the product whose sum is kept.
        let least_tiles = 2 * MIDDLE / TILE;
        let expected = Rows { each, deepest: MIDDLE, kept: WIDTH, least_tiles };
        assert_eq!(rows(&[PROJECTION, GATED, DOWN, QUERIES]), Some(expected));
    }

    #[test]
    fn what_one_launch_cannot_do() {
        let sum = |values| product(WIDTH, WIDTH, false, values);
        for (what, products) in [
            ("does not follow", &[PROJECTION, DOWN][..]),
            (
                "a sum, where another one was made since",
                &[
                    sum([Some(0), Some(1), Some(2), Some(3)]),
                    sum([Some(2), Some(4), Some(5), Some(6)]),
                    sum([Some(5), Some(3), Some(7), None]),
                ],
            ),
            (
                "a result of a product that is not the one before",
                &[
                    sum([Some(0), None, Some(1), None]),
                    sum([Some(1), None, Some(2), None]),
                    sum([Some(2), Some(1), Some(3), None]),
                ],
            ),
            (
                "more results than are exchanged",
                &[
                    product(WIDTH, SET / 2 + TILE, false, [Some(0), None, Some(1), None]),
                    product(SET / 2 + TILE, WIDTH, false, [Some(1), None, Some(2), None]),
                ],
            ),
        ] {
            assert_eq!(rows(products), None, "{what}");
        }
    }
}
