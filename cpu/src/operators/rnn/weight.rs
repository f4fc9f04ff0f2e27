//! The weights of a layer, and their products.

use std::ops::Range;

use super::ahead::Ahead;
use crate::gemm::{
    Compute, FusedEpilogue, InMemory, Left, Matrix, Offsets, PackedB, Product, Right, Shared, Store, multiply,
};
use crate::kernel::KernelContext;
use crate::loops::packed_weights::Weights;
use crate::loops::packing::Packing;
use crate::loops::parallel::split_mut;
use crate::loops::scratch::with_scratch;
use crate::ops::OpError;
use crate::tensor::Tensor;

/// Rows of a batch that a thread multiplies such a weight with.
const ROWS: usize = 16;

/// Constant recurrence weights of some gates, of each direction: at most one of the two.
pub(super) struct Recurrence<C: Compute> {
    pub(super) small: Option<Vec<Weights<C>>>,
    pub(super) packed: Option<Vec<PackedB<C>>>,
}

impl<C: Compute> Recurrence<C> {
    pub(super) fn weight<'a, T: Store<Compute = C>>(
        &'a self,
        d: usize,
        plain: Option<&'a [T]>,
    ) -> Weight<'a, T> {
        let small = self.small.as_ref().map(|small| &*small[d]);
        Weight { small, packed: self.packed.as_ref().map(|packed| &packed[d]), plain }
    }

    pub(super) fn is_constant(&self) -> bool {
        self.small.is_some() || self.packed.is_some()
    }
}

/// Some gates' recurrence weights of each direction as operands of `Shared`, for types that products are computed in.
pub(super) fn small_weights<T: Store>(
    r: &Tensor,
    gates: usize,
    of: Range<usize>,
    packing: Packing<'_>,
) -> Result<Option<Vec<Weights<T::Compute>>>, OpError> {
    let (directions, all, k) = (r.shape()[0], r.shape()[1], r.shape()[2]);
    let (first, columns) = (of.start * all / gates, of.len() * all / gates);
    let r = r.aligned()?;
    let Some(r) = T::same(r.view().slice::<T>()) else { return Ok(None) };
    let pack = |direction: usize| {
        let direction = &r[(direction * all + first) * k..][..columns * k];
        packing.filled(Shared::<T::Compute>::scratch_len(k, columns), |room| {
            Shared::new(Matrix::transposed(direction, k), k, columns, room);
        })
    };
    Ok(Some((0..directions).map(pack).collect()))
}

/// A weight whose rows are the product's columns.
pub(super) struct Weight<'a, T: Store> {
    pub(super) small: Option<&'a [T::Compute]>,
    pub(super) packed: Option<&'a PackedB<T::Compute>>,
    pub(super) plain: Option<&'a [T]>,
}

impl<T: Store> Weight<'_, T> {
    /// `out = a · weightᵀ`
    pub(super) fn multiply(
        &self,
        cx: &KernelContext<'_>,
        a: Left<'_, T::Compute>,
        out: &mut [T::Compute],
        m: usize,
        n: usize,
        k: usize,
    ) {
        let matrix = Matrix::transposed(self.plain.unwrap_or(&[]), k);
        let plain = InMemory { matrix, offsets: Offsets::Stride(0) };
        let b = match self.packed {
            Some(packed) => Right::Packed(packed, Offsets::Stride(0)),
            None => plain.right(),
        };
        let epilogue = FusedEpilogue::<T::Compute>::new(&mut out[..m * n], m, n);
        multiply(cx.pool, &Product { batch: 1, m, n, k, a, b }, &epilogue);
    }

    /// `out = state · weightᵀ`. `backwards`: a small weight may be read from its end to its begin. `ahead`: what may be
    /// computed meanwhile, and where.
    pub(super) fn multiply_state(
        &self,
        cx: &KernelContext<'_>,
        state: &[T::Compute],
        out: &mut [T::Compute],
        (m, n, k): (usize, usize, usize),
        backwards: bool,
        ahead: Option<(&mut Ahead<'_>, &mut [T::Compute])>,
    ) {
        if let Some(small) = self.small {
            if let Some((ahead, xw)) = ahead
                && ahead.multiply(&mut out[..n], &state[..k], small, backwards, xw)
            {
                return;
            }
            let weight = Shared::written(small, k, n);
            return split_mut(cx.pool, &mut out[..m * n], n, ROWS, |rows, out| {
                let states = Matrix::new(&state[rows.start * k..], k);
                weight.multiply_again(out, rows.len(), states, backwards);
            });
        }
        if T::BFLOAT16 {
            return with_scratch([m * k], |[rounded]: [&mut [T]; 1]| {
                T::store_all(&state[..m * k], rounded);
                let state = InMemory { matrix: Matrix::new(rounded, k), offsets: Offsets::Stride(0) };
                self.multiply(cx, state.left(), out, m, n, k);
            });
        }
        self.multiply(cx, Left::Plain(Matrix::new(state, k), Offsets::Stride(0)), out, m, n, k);
    }
}
