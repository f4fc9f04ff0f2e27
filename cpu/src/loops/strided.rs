//! Copies with strides: the one loop behind Transpose, Expand, Slice, Split, Tile and their kin.
//!
//! The output is written in its order; each of its dimensions walks the input with a stride of its
//! own (0 repeats, a negative one reverses). Dimensions are merged where both sides are contiguous.
//! The innermost loop is a memory copy, a fill, a blocked transposition, or a plain strided loop.

use smallvec::SmallVec;

use crate::threads::Pool;

use super::item::Item;
use super::parallel::{GRAIN, Parts, split_mut};
use super::transpose::{Block, FEW, edge};

type Dims<T> = SmallVec<[T; 8]>;

/// `output[i…] = input[offset + Σ i·stride]`, output row-major.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Strided {
    dims: Dims<usize>,
    strides: Dims<isize>,
    offset: usize,
}

/// Elements of a block of few rows or columns.
const THIN: usize = 4096;

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
                    2 => every_second(&input[start..], row),
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
        // The few columns or rows of a thin block are contiguous in the whole.
        let block = if inner <= FEW { THIN / inner } else { edge::<T>() };
        let piece = if rows <= FEW { THIN / rows } else { inner };
        let (blocks, pieces) = (rows.div_ceil(block), inner.div_ceil(piece));
        let dims = |own: &[usize]| [&self.dims[..t], &[own[0]], &self.dims[t + 1..last], &[own[1]]].concat();
        let dims = dims(&[blocks, pieces]);
        let (before, after) = (&self.strides[..t], &self.strides[t + 1..last]);
        let strides = [before, &[block as isize], after, &[(piece * stride) as isize]].concat();
        let parts = Parts::new(output);
        let grain = (GRAIN / (block.min(rows) * piece.min(inner))).max(1);
        pool.split(outer * blocks * middle * pieces, grain, |units| {
            let mut walk = Walk::new(&dims, &strides, self.offset, units.start);
            for unit in units {
                let (rest, p) = (unit / pieces, unit % pieces);
                let (rest, m) = (rest / middle, rest % middle);
                let (o, b) = (rest / blocks, rest % blocks);
                let block = Block {
                    input: &input[walk.position..],
                    stride,
                    output: &parts,
                    at: ((o * rows + b * block) * middle + m) * inner + p * piece,
                    row_size: middle * inner,
                    rows: block.min(rows - b * block),
                    columns: piece.min(inner - p * piece),
                };
                // SAFETY: each unit writes elements of its own.
                unsafe { block.transpose() };
                walk.next();
            }
        });
    }
}

/// Pairs are loaded as vectors, single elements at a stride are not.
fn every_second<T: Item>(input: &[T], row: &mut [T]) {
    let (pairs, rest) = input.as_chunks::<2>();
    let (whole, end) = row.split_at_mut(pairs.len().min(row.len()));
    for (y, pair) in whole.iter_mut().zip(pairs) {
        y.clone_from(&pair[0]);
    }
    end.iter_mut().zip(rest).for_each(|(y, x)| y.clone_from(x));
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
    fn every_second_element() {
        let pool = Pool::new(1);
        for (dims, strides, offset) in [([5, 7], [14, 2], 0), ([5, 7], [14, 2], 1), ([3, 4], [-20, 2], 50)] {
            let input: Vec<[u8; 4]> = (0..70u32).map(u32::to_ne_bytes).collect();
            let mut output = vec![[0; 4]; dims[0] * dims[1]];
            Strided::new(&dims, &strides, offset).run(&pool, &input, &mut output);
            let at = |i: usize| {
                offset as isize + (i / dims[1]) as isize * strides[0] + (i % dims[1]) as isize * strides[1]
            };
            assert_eq!(output, (0..output.len()).map(|i| input[at(i) as usize]).collect::<Vec<_>>());
        }
    }

    #[test]
    fn every_path_agrees_with_plain_indexing() {
        let pool = Pool::new(2);
        let cases: [(&[usize], &[usize]); 19] = [
            (&[37, 53], &[1, 0]),
            (&[2, 3, 40, 20], &[0, 3, 1, 2]),
            (&[2, 40, 20, 3], &[3, 0, 2, 1]),
            (&[4, 5, 6], &[2, 1, 0]),
            (&[300, 300], &[1, 0]),
            (&[3, 1, 2], &[1, 2, 0]),
            (&[0, 3], &[1, 0]),
            // Squares of eight and of four, whole and with a rest, and what is smaller than one.
            (&[16, 8], &[1, 0]),
            (&[9, 15], &[1, 0]),
            (&[7, 5], &[1, 0]),
            (&[3, 5], &[1, 0]),
            (&[2, 7, 5, 11], &[0, 2, 3, 1]),
            // Few columns: from planes to pixels, and depth to space.
            (&[3, 5000], &[1, 0]),
            (&[2, 2, 2, 3, 5, 7], &[0, 3, 4, 1, 5, 2]),
            (&[4, 3, 70], &[1, 2, 0]),
            // Few rows: from pixels to planes, and space to depth.
            (&[5000, 3], &[1, 0]),
            (&[2, 3, 4, 2, 6, 2], &[0, 3, 5, 1, 2, 4]),
            (&[1, 3, 2, 4, 3, 4], &[0, 1, 3, 5, 2, 4]),
            (&[2, 2100, 2], &[0, 2, 1]),
        ];
        for (shape, perm) in cases {
            let count = shape.iter().product::<usize>();
            let words: Vec<[u8; 4]> = (0..count as u32).map(u32::to_ne_bytes).collect();
            every_element(&pool, shape, perm, &words);
            let halves: Vec<[u8; 2]> = (0..count).map(|i| (i as u16).to_ne_bytes()).collect();
            every_element(&pool, shape, perm, &halves);
            every_element(&pool, shape, perm, &(0..count).map(|i| [i as u8]).collect::<Vec<_>>());
            every_element(&pool, shape, perm, &(0..count as u64).map(u64::to_ne_bytes).collect::<Vec<_>>());
            every_element(&pool, shape, perm, &(0..count).map(|i| i.to_string()).collect::<Vec<_>>());
        }

        fn every_element<T: Item + PartialEq + std::fmt::Debug>(
            pool: &Pool,
            shape: &[usize],
            perm: &[usize],
            input: &[T],
        ) {
            let mut output = vec![T::default(); input.len()];
            Strided::permuted(shape, perm).run(pool, input, &mut output);
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
