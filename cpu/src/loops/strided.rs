//! Copies with strides: the one loop behind Transpose, Expand, Slice, Split, Tile and their kin.
//!
//! The output is written in its order; each of its dimensions walks the input with a stride of its
//! own (0 repeats, a negative one reverses). Dimensions are merged where both sides are contiguous.
//! The innermost loop is a memory copy, a fill, a blocked transposition, or a plain strided loop.

use smallvec::SmallVec;

use crate::threads::Pool;

use super::item::Item;
use super::parallel::{GRAIN, Parts, split_mut};

type Dims<T> = SmallVec<[T; 8]>;

/// `output[i…] = input[offset + Σ i·stride]`, output row-major.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Strided {
    dims: Dims<usize>,
    strides: Dims<isize>,
    offset: usize,
}

/// The edge of a block that is transposed at once: 64 bytes of 4-byte elements on either side.
const BLOCK: usize = 16;

impl Strided {
    /// Every position must lie inside the input.
    pub(crate) fn new(dims: &[usize], strides: &[isize], offset: usize) -> Self {
        let mut merged = Strided { dims: Dims::new(), strides: Dims::new(), offset };
        for (&d, &s) in dims.iter().zip(strides).filter(|(d, _)| **d != 1) {
            match (merged.dims.last_mut(), merged.strides.last_mut()) {
                (Some(dim), Some(stride)) if *stride == s * d as isize => {
                    *dim *= d;
                    *stride = s;
                }
                _ => {
                    merged.dims.push(d);
                    merged.strides.push(s);
                }
            }
        }
        merged
    }

    /// The axes of a row-major input in another order.
    pub(crate) fn permuted(shape: &[usize], perm: &[usize]) -> Self {
        let strides = strides_of(shape);
        let dims: Dims<usize> = perm.iter().map(|&p| shape[p]).collect();
        let strides: Dims<isize> = perm.iter().map(|&p| strides[p]).collect();
        Strided::new(&dims, &strides, 0)
    }

    pub(crate) fn run<T: Item>(&self, pool: &Pool, input: &[T], output: &mut [T]) {
        if self.dims.contains(&0) {
            return;
        }
        let Some((&inner, outer_dims)) = self.dims.split_last() else {
            output[0] = input[self.offset].clone();
            return;
        };
        let last = self.dims.len() - 1;
        let stride = self.strides[last];
        if let Some(t) = self.strides.iter().position(|&s| s == 1).filter(|&t| t != last && stride > 1) {
            return self.transpose(t, pool, input, output);
        }
        let grain = (GRAIN / inner).max(1);
        split_mut(pool, output, inner, grain, |rows, output| {
            let mut walk = Walk::new(outer_dims, &self.strides[..last], self.offset, rows.start);
            for row in output.chunks_exact_mut(inner) {
                let start = walk.position;
                match stride {
                    1 => row.clone_from_slice(&input[start..start + inner]),
                    0 => row.fill(input[start].clone()),
                    _ => {
                        let mut at = start as isize;
                        for y in row {
                            *y = input[at as usize].clone();
                            at += stride;
                        }
                    }
                }
                walk.next();
            }
        });
    }

    /// Dimension `t` is contiguous in the input, the last one in the output: both are cut into blocks
    /// so that a block's rows stay in the first cache on both sides.
    fn transpose<T: Item>(&self, t: usize, pool: &Pool, input: &[T], output: &mut [T]) {
        let last = self.dims.len() - 1;
        let (rows, inner) = (self.dims[t], self.dims[last]);
        let stride = self.strides[last] as usize;
        let middle: usize = self.dims[t + 1..last].iter().product();
        let outer: usize = self.dims[..t].iter().product();
        let row_size = middle * inner;
        let blocks = rows.div_ceil(BLOCK);
        let parts = Parts::new(output);
        let grain = (GRAIN / (BLOCK * row_size).max(1)).max(1);
        pool.split(outer * blocks, grain, |units| {
            for unit in units {
                let (o, b) = (unit / blocks, unit % blocks);
                let first = b * BLOCK;
                let count = BLOCK.min(rows - first);
                let begin = (o * rows + first) * row_size;
                // SAFETY: each unit writes rows of its own.
                let part = unsafe { parts.get(begin..begin + count * row_size) };
                let base = Walk::new(&self.dims[..t], &self.strides[..t], self.offset, o).position + first;
                let mut walk = Walk::new(&self.dims[t + 1..last], &self.strides[t + 1..last], base, 0);
                for m in 0..middle {
                    transpose_block(
                        &input[walk.position..],
                        stride,
                        &mut part[m * inner..],
                        row_size,
                        count,
                        inner,
                    );
                    walk.next();
                }
            }
        });
    }
}

/// `output[r·row_size + i] = input[i·stride + r]` for `r < rows`, `i < inner`.
fn transpose_block<T: Item>(
    input: &[T],
    stride: usize,
    output: &mut [T],
    row_size: usize,
    rows: usize,
    inner: usize,
) {
    let mut from = 0;
    while from < inner {
        let count = BLOCK.min(inner - from);
        if rows == BLOCK && count == BLOCK {
            // The full block reads whole cache lines through arrays, without checks inside.
            let mut lines: [&[T]; BLOCK] = [&[]; BLOCK];
            for (i, line) in lines.iter_mut().enumerate() {
                *line = &input[(from + i) * stride..][..BLOCK];
            }
            for r in 0..BLOCK {
                let row = &mut output[r * row_size + from..][..BLOCK];
                for (y, line) in row.iter_mut().zip(&lines) {
                    *y = line[r].clone();
                }
            }
        } else {
            for r in 0..rows {
                let row = &mut output[r * row_size + from..][..count];
                for (i, y) in row.iter_mut().enumerate() {
                    *y = input[(from + i) * stride + r].clone();
                }
            }
        }
        from += count;
    }
}

/// Walks positions in row-major order of `dims` without dividing at every step.
pub(crate) struct Walk<'a> {
    dims: &'a [usize],
    strides: &'a [isize],
    index: Dims<usize>,
    /// Where the current index lies.
    pub(crate) position: usize,
}

impl<'a> Walk<'a> {
    /// Starts at the `start`-th index.
    pub(crate) fn new(dims: &'a [usize], strides: &'a [isize], offset: usize, start: usize) -> Self {
        let mut index: Dims<usize> = SmallVec::from_elem(0, dims.len());
        let mut rest = start;
        let mut position = offset as isize;
        for k in (0..dims.len()).rev() {
            let d = dims[k].max(1);
            index[k] = rest % d;
            rest /= d;
            position += index[k] as isize * strides[k];
        }
        Walk { dims, strides, index, position: position as usize }
    }

    /// Steps to the next index; after the last one comes the first.
    pub(crate) fn next(&mut self) {
        for k in (0..self.dims.len()).rev() {
            self.index[k] += 1;
            self.position = self.position.wrapping_add_signed(self.strides[k]);
            if self.index[k] < self.dims[k] {
                return;
            }
            self.index[k] = 0;
            self.position = self.position.wrapping_add_signed(-(self.strides[k] * self.dims[k] as isize));
        }
    }
}

/// The strides of a row-major tensor, in elements.
pub(crate) fn strides_of(shape: &[usize]) -> SmallVec<[isize; 8]> {
    let mut strides: Dims<isize> = SmallVec::from_elem(1, shape.len());
    for k in (1..shape.len()).rev() {
        strides[k - 1] = strides[k] * shape[k] as isize;
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_what_is_contiguous() {
        let whole = Strided::permuted(&[2, 3, 4], &[0, 1, 2]);
        assert_eq!((&whole.dims[..], &whole.strides[..]), (&[24][..], &[1][..]));
        let heads = Strided::permuted(&[2, 5, 3, 4], &[0, 2, 1, 3]);
        assert_eq!((&heads.dims[..], &heads.strides[..]), (&[2, 3, 5, 4][..], &[60, 4, 12, 1][..]));
        let image = Strided::permuted(&[2, 8, 8, 3], &[0, 3, 1, 2]);
        assert_eq!((&image.dims[..], &image.strides[..]), (&[2, 3, 64][..], &[192, 1, 3][..]));
    }

    #[test]
    fn every_path_agrees_with_plain_indexing() {
        let pool = Pool::new(2);
        let cases: [(&[usize], &[usize]); 7] = [
            (&[37, 53], &[1, 0]),
            (&[2, 3, 40, 20], &[0, 3, 1, 2]),
            (&[2, 40, 20, 3], &[3, 0, 2, 1]),
            (&[4, 5, 6], &[2, 1, 0]),
            (&[300, 300], &[1, 0]),
            (&[3, 1, 2], &[1, 2, 0]),
            (&[0, 3], &[1, 0]),
        ];
        for (shape, perm) in cases {
            let count = shape.iter().product::<usize>();
            let input: Vec<[u8; 4]> = (0..count as u32).map(u32::to_ne_bytes).collect();
            let mut output = vec![[0; 4]; count];
            Strided::permuted(shape, perm).run(&pool, &input, &mut output);
            let strides = strides_of(shape);
            let dims: Vec<usize> = perm.iter().map(|&p| shape[p]).collect();
            for (i, y) in output.iter().enumerate() {
                let mut rest = i;
                let mut position = 0;
                for k in (0..dims.len()).rev() {
                    position += rest % dims[k] * strides[perm[k]] as usize;
                    rest /= dims[k];
                }
                assert_eq!(*y, input[position], "{shape:?} {perm:?} at {i}");
            }
        }
    }
}
