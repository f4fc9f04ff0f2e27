//! What the planner must know of a product that one launch can do together with others.

use super::Operand;

/// A product of one row with packed weights of 4 bits, with its operands in terms of its node. The row is input 0, with what is added
/// to it and normalised before; the weight and its scales are inputs 1 and 2, the result output 0.
#[derive(Clone, Debug)]
pub(crate) struct ChainLink {
    pub(in super::super) skip: Option<Operand>,
    pub(in super::super) sum: Option<Operand>,
    pub(in super::super) scale: Option<Operand>,
    pub(in super::super) epsilon: f32,
    pub(in super::super) n: usize,
    pub(in super::super) k: usize,
    /// The first columns of the gate and of what it is multiplied with.
    pub(in super::super) gate: Option<[usize; 2]>,
}

impl ChainLink {
    /// Bytes of the weight and of its scales, two for each block of 32 numbers.
    pub(crate) fn bytes(&self) -> usize {
        self.n * self.k / 2 + self.n * self.k / 16
    }
}
