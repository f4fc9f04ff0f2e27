//! The weights of a pair, packed once where they are constant, or for each run.

use crate::kernel::NodeContext;
use crate::loops::packing::Packing;
use crate::ops::OpError;
use crate::tensor::TensorView;
use crate::threads::Pool;

/// The first weight, packed, and the second in floats, for sixteen channels at a time.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what uses it is of x86-64"))]
pub(super) struct PairWeights<P> {
    pub(super) panels: P,
    pub(super) nchw16c: Vec<f32>,
}

/// How the first weight is packed.
pub(super) trait Pack: Sized {
    fn pack(weights: [TensorView<'_>; 2], packing: Packing<'_>) -> PairWeights<Self>;
}

impl<P: Pack> PairWeights<P> {
    /// Those of a node that has both as constants.
    pub(super) fn of_constants(node: &NodeContext<'_>) -> Result<Option<Self>, OpError> {
        let (Some(w1), Some(w2)) = (node.constant(1), node.constant(3)) else { return Ok(None) };
        let (w1, w2) = (w1.aligned()?, w2.aligned()?);
        Ok(Some(P::pack([w1.view(), w2.view()], Packing::of(node))))
    }

    /// Those that were packed, where the first weight may be gone; or else packed now into `room`.
    pub(super) fn or_packed<'a>(
        packed: Option<&'a Self>,
        [w1, w2]: [Option<TensorView<'_>>; 2],
        pool: &Pool,
        room: &'a mut Option<Self>,
    ) -> Option<&'a Self> {
        if packed.is_some() {
            return packed;
        }
        Some(room.insert(P::pack([w1?, w2?], pool.into())))
    }
}

/// That images of such a shape are not convolved in pairs.
pub(super) fn not_in_pairs(image: &[usize]) -> OpError {
    OpError::Unsupported(format!("images of {image:?} are not convolved in pairs; use two Conv"))
}
