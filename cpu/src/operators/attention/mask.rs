//! Which keys a query sees, and what is added to its scores.

use std::ops::Range;

use num_traits::Float;

use crate::tensor::{Bool, ElementType, TensorView, bf16, f16};

use super::blocks::BlockMask;
use super::padding::Padding;
use crate::gemm::Activate;

/// A mask tensor with a causal limit, a window and valid lengths.
pub(super) struct Mask<'a> {
    pub(super) tensor: Option<MaskTensor<'a>>,
    pub(super) padding: Option<Padding<'a>>,
    pub(super) blocks: Option<BlockMask<'a>>,
    pub(super) causal: bool,
    /// Keys to the left and right of a query's position.
    pub(super) window: [Option<usize>; 2],
    /// The position of query 0 among the keys; may be negative.
    pub(super) offset: isize,
    /// Valid keys of each sample; then the offset follows from them unless there is a past.
    pub(super) lengths: Option<Lengths<'a>>,
    /// Whether positions are counted back from each sample's length, for this many queries.
    pub(super) aligned_to_length: Option<usize>,
}

/// Valid keys of each sample, checked to be between 0 and their number.
#[derive(Clone, Copy)]
pub(super) enum Lengths<'a> {
    Counts(&'a [i64]),
    /// Indices of the last valid key.
    Last(&'a [i32]),
    /// Numbers of valid keys.
    Keys(&'a [i32]),
}

impl Lengths<'_> {
    pub(super) fn get(self, batch: usize) -> usize {
        match self {
            Lengths::Counts(counts) => counts[batch].max(0) as usize,
            Lengths::Last(last) => (last[batch] as i64 + 1).max(0) as usize,
            Lengths::Keys(counts) => counts[batch].max(0) as usize,
        }
    }
}

/// A mask that broadcasts to `[batch, heads, queries, keys]`.
pub(super) struct MaskTensor<'a> {
    view: TensorView<'a>,
    /// Elements between batches, heads, queries; 0 where it broadcasts.
    strides: [usize; 3],
    /// Keys it has; others are not seen.
    keys: usize,
    /// Whether its one column stands for every key.
    repeats: bool,
}

impl<'a> MaskTensor<'a> {
    pub(super) fn new(view: TensorView<'a>) -> Self {
        let shape = view.shape();
        let keys = shape.last().copied().unwrap_or(1);
        let mut strides = [0; 3];
        let mut stride = keys;
        for (at, &extent) in (0..3).rev().zip(shape.iter().rev().skip(1)) {
            strides[at] = if extent == 1 { 0 } else { stride };
            stride *= extent;
        }
        MaskTensor { view, strides, keys, repeats: false }
    }

    /// The mask where a single column stands for every key.
    pub(super) fn repeating(self) -> Self {
        MaskTensor { repeats: self.keys == 1, ..self }
    }

    /// Adds the mask to the scores of a query from key `start`.
    fn add<C: Activate>(&self, at: [usize; 3], start: usize, row: &mut [C]) {
        let base: usize = at.iter().zip(self.strides).map(|(i, s)| i * s).sum();
        if self.repeats {
            let mut one = [C::zero()];
            self.add_columns(base, 0, &mut one);
            row.iter_mut().for_each(|y| *y = *y + one[0]);
        } else {
            self.add_columns(base, start, row);
        }
    }

    /// Adds the columns from `start` of the row at `base`; keys beyond them are hidden.
    fn add_columns<C: Activate>(&self, base: usize, start: usize, row: &mut [C]) {
        let present = self.keys.saturating_sub(start).min(row.len());
        let (row, beyond) = row.split_at_mut(present);
        beyond.fill(C::neg_infinity());
        let range = base + start..base + start + present;
        macro_rules! add {
            ($ty:ty, $value:expr) => {
                row.iter_mut().zip(&self.view.slice::<$ty>()[range]).for_each(|(y, &x)| *y = *y + ($value)(x))
            };
        }
        if present == 0 {
            return;
        }
        match self.view.ty() {
            ElementType::Bool => row.iter_mut().zip(&self.view.slice::<Bool>()[range]).for_each(|(y, x)| {
                if !x.get() {
                    *y = C::neg_infinity();
                }
            }),
            ElementType::F32 => add!(f32, C::of),
            ElementType::F16 => add!(f16, |x: f16| C::of(x.to_f32())),
            ElementType::BF16 => add!(bf16, |x: bf16| C::of(x.to_f32())),
            ElementType::F64 => add!(f64, C::of_f64),
            ElementType::I8 => add!(i8, |x| C::of(x as f32)),
            ElementType::U8 => add!(u8, |x| C::of(x as f32)),
            ElementType::I16 => add!(i16, |x| C::of(x as f32)),
            ElementType::U16 => add!(u16, |x| C::of(x as f32)),
            ElementType::I32 => add!(i32, |x| C::of_f64(x as f64)),
            ElementType::U32 => add!(u32, |x| C::of_f64(x as f64)),
            ElementType::U64 => add!(u64, |x| C::of_f64(x as f64)),
            _ => add!(i64, |x| C::of_f64(x as f64)),
        }
    }
}

impl Mask<'_> {
    /// Whether `add` only hides keys.
    pub(super) fn hides_only(&self) -> bool {
        self.tensor.is_none() && self.padding.is_none()
    }

    /// The valid keys of a sample, of all; `keys` may be the first of them only.
    fn length(&self, batch: usize, keys: usize) -> usize {
        self.lengths.map_or(keys, |lengths| lengths.get(batch))
    }

    /// The position of a query among the keys.
    fn position(&self, batch: usize, query: usize, keys: usize) -> isize {
        let offset = match self.aligned_to_length {
            Some(queries) => self.length(batch, keys) as isize - queries as isize,
            None => self.offset,
        };
        query as isize + offset
    }

    /// Whether blocks are hidden so that no query of a head sees one of these keys.
    pub(super) fn skips(
        &self,
        [batch, head]: [usize; 2],
        queries: Range<usize>,
        keys: Range<usize>,
        all: usize,
    ) -> bool {
        let Some(blocks) = &self.blocks else { return false };
        let position = |query: usize| self.position(batch, query, all).max(0) as usize;
        blocks.hides_all(head, position(queries.start)..position(queries.end), keys)
    }

    /// The keys that one query may see by position.
    fn range(&self, batch: usize, query: usize, keys: usize) -> Range<usize> {
        let length = self.length(batch, keys);
        let position = self.position(batch, query, keys);
        let end = |limit: isize| limit.clamp(0, keys as isize) as usize;
        let mut range = 0..length.min(keys);
        if self.causal {
            range.end = range.end.min(end(position + 1));
        }
        if let Some(right) = self.window[1] {
            range.end = range.end.min(end(position.saturating_add_unsigned(right).saturating_add(1)));
        }
        if let Some(left) = self.window[0] {
            range.start = end(position.saturating_sub_unsigned(left));
        }
        range.start..range.end.max(range.start)
    }

    /// A range of keys that holds all that these queries see.
    pub(super) fn visible(&self, batch: usize, queries: Range<usize>, keys: usize) -> Range<usize> {
        let (first, last) = (queries.start, queries.end.max(1) - 1);
        let range = self.range(batch, first, keys).start..self.range(batch, last, keys).end;
        range.start..range.end.max(range.start)
    }

    /// Whether each of these queries sees the same keys, as far as positions and blocks tell.
    pub(super) fn is_of_all(&self, batch: usize, queries: Range<usize>, keys: usize) -> bool {
        let of = |query| self.range(batch, query, keys);
        self.blocks.is_none() && of(queries.start) == of(queries.end.max(1) - 1)
    }

    /// Adds the mask to the scores of a query from key `start`.
    pub(super) fn add<C: Activate>(
        &self,
        batch: usize,
        head: usize,
        query: usize,
        start: usize,
        row: &mut [C],
    ) {
        if let Some(tensor) = &self.tensor {
            tensor.add([batch, head, query], start, row);
        }
        if let Some(padding) = &self.padding {
            padding.add(batch, query, start, row);
        }
        let range = self.range(batch, query, start + row.len());
        let first = range.start.saturating_sub(start).min(row.len());
        let last = range.end.saturating_sub(start).clamp(first, row.len());
        row[..first].fill(<C as Float>::neg_infinity());
        row[last..].fill(<C as Float>::neg_infinity());
        if let Some(blocks) = &self.blocks {
            let position = self.position(batch, query, start + row.len()).max(0) as usize;
            blocks.add(head, position, start, row);
        }
    }
}
