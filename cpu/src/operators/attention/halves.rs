//! Attention of bfloat16 numbers with the processor's products of pairs (see `gemm`): as in `flash`, with keys and
//! values packed for all queries of a task, and probabilities rounded to bfloat16. Maxima and sums stay in `f32`.

use std::ops::Range;

use crate::tensor::bf16;
use crate::threads::Pool;

use super::exponentials::{largest, rounded_exponentials, rounded_times};
use super::heads::Heads;
use super::problem::{Problem, Sink};
use super::softmax_step::{Base, Times, step_to};
use crate::gemm::{Activate, Bf16Pair, COLUMNS, DotGroup, Store, Tiles, panel_product};
use crate::loops::parallel::Parts;
use crate::loops::scratch::with_scratch;
use crate::loops::simd::{Loop, widest};

/// Queries of a strip at most, and of a task.
const ROWS: usize = 16;
const QUERIES: usize = 768;
/// Keys that a strip meets at a time where some queries see fewer.
const KEYS: usize = 256;
/// The same where all queries see the same keys: each block of keys costs a maximum and a sum.
const MORE_KEYS: usize = 768;
/// How much further apart than a block's keys the rows of scores are: with a power of two all would be in the same lines of the
/// first cache.
const APART: usize = 16;
/// Queries from which on packing keys and values pays off.
const FEWEST: usize = 4;

/// Computes the attention into `y`; tells whether it did, which asks for bfloat16 numbers, a processor with products
/// of them, and some queries.
pub(super) fn attention<T: Store<Compute: Activate>>(
    pool: &Pool,
    p: &Problem<'_, T>,
    y: &Parts<'_, T>,
) -> bool {
    let empty = [p.batch, p.heads, p.size, p.v_size].contains(&0);
    let (Some(k), Some(v)) = (p.k.numbers(), p.v.numbers()) else { return false };
    if !serves::<T>() || p.queries < FEWEST || empty {
        return false;
    }
    let strip = strip_rows();
    let strips = p.queries.div_ceil(strip);
    // Enough tasks for all threads.
    let tasks = (pool.threads() * 4).div_ceil(p.batch * p.heads).clamp(1, strips);
    let queries = (strips.div_ceil(tasks) * strip).min(QUERIES);
    let blocks = p.queries.div_ceil(queries);
    pool.for_each(p.batch * p.heads * blocks, &|task| {
        let (block, rest) = (task % blocks, task / blocks);
        let rows = block * queries..((block + 1) * queries).min(p.queries);
        Task { p, k, v, batch: rest / p.heads, head: rest % p.heads }.run(rows, y);
    });
    true
}

/// Queries of a strip: as many as the rows of a tile, or of the sums that registers hold.
fn strip_rows() -> usize {
    if Tiles::available() { ROWS } else { 12 }
}

/// Whether elements are of the type and the processor has the dot products.
pub(super) fn serves<T: Store>() -> bool {
    T::BFLOAT16 && Bf16Pair::available()
}

/// Some queries of one head.
struct Task<'a, T> {
    p: &'a Problem<'a, T>,
    k: &'a Heads<'a, T>,
    v: &'a Heads<'a, T>,
    batch: usize,
    head: usize,
}

impl<T: Store> Task<'_, T> {
    fn run(&self, rows: Range<usize>, y: &Parts<'_, T>) {
        let p = self.p;
        let visible = p.mask.visible(self.batch, rows.clone(), p.keys);
        // Panels begin at even keys.
        let first = visible.start / COLUMNS * COLUMNS;
        let keys = visible.end.saturating_sub(first);
        let (depth, panels) = (p.size.div_ceil(2), keys.div_ceil(COLUMNS));
        let (step, stride) = match keys > KEYS && p.mask.is_of_all(self.batch, rows.clone(), p.keys) {
            true => (MORE_KEYS, MORE_KEYS + APART),
            false => (KEYS, KEYS),
        };
        let (pairs, width) = (panels * COLUMNS / 2, p.v_size.next_multiple_of(COLUMNS));
        let lengths = [
            ROWS * depth,
            panels * COLUMNS * depth,
            width * pairs,
            ROWS * stride,
            ROWS * stride / 2,
            ROWS * width,
        ];
        with_scratch(lengths, |[q, k, v, scores, weights, o]: [&mut [u32]; 6]| {
            let kv_head = self.head / (p.heads / p.kv_heads);
            pack_keys(self.lines(self.k, kv_head, first..first + keys, p.size), depth, k);
            pack_values(self.lines(self.v, kv_head, first..first + keys, p.v_size), p.v_size, pairs, v);
            let (scores, o) = (bytemuck::cast_slice_mut(scores), bytemuck::cast_slice_mut(o));
            let (strip, mut tiles) = (strip_rows(), Tiles::new());
            for row in rows.clone().step_by(strip) {
                let count = strip.min(rows.end - row);
                let queries = self.lines(&p.q, self.head, row..row + count, p.size);
                load_queries(queries, depth, q);
                let mut running = self.begin();
                o.fill(0.0);
                for block in (0..keys).step_by(step) {
                    let n = step.min(keys - block);
                    let range = first + block..first + block + n;
                    if p.mask.skips([self.batch, self.head], row..row + count, range, p.keys) {
                        continue;
                    }
                    let pairs_here = match tiles.serve(count) {
                        // Whole tiles: values that are missing are 0, and so are their weights then.
                        true => n.div_ceil(COLUMNS) * COLUMNS / 2,
                        false => n.div_ceil(2),
                    };
                    let panels = k[block * depth..].chunks_exact(COLUMNS * depth);
                    for (i, panel) in panels.enumerate().take(n.div_ceil(COLUMNS)) {
                        let out = &mut scores[..count * stride];
                        let place = (count, stride, i * COLUMNS);
                        panel_product(&mut tiles, out, place, (q, depth), panel, &[], false);
                    }
                    for (r, (max, sum)) in running.iter_mut().enumerate().take(count) {
                        tiles.keep_awake();
                        let scores = &mut scores[r * stride..][..n];
                        // Hiding may come before scaling by a positive number, what is added may not.
                        let last = p.softcap == 0.0 && p.scale > 0.0 && p.mask.hides_only();
                        let scale = if last { p.scale } else { 1.0 };
                        if scale != p.scale {
                            widest(Times(&mut *scores, p.scale));
                        }
                        if p.softcap != 0.0 {
                            scores.iter_mut().for_each(|x| *x /= p.softcap);
                            f32::tanh_all(scores);
                            scores.iter_mut().for_each(|x| *x *= p.softcap);
                        }
                        p.mask.add(self.batch, self.head, row + r, first + block, scores);
                        let weights = &mut weights[r * stride / 2..][..stride / 2];
                        weights[n.div_ceil(2)..pairs_here].fill(0);
                        // SAFETY: `attention` asked the processor.
                        let new = unsafe { largest(scores, scale, *max) };
                        let o = &mut o[r * width..][..width];
                        step_to(new, (max, sum, o), scores, Base::E, |scores, largest| {
                            // SAFETY: as above.
                            unsafe { rounded_exponentials(scores, scale, largest, weights) }
                        });
                    }
                    let values = v.chunks_exact(pairs * COLUMNS);
                    for (i, panel) in values.enumerate() {
                        let panel = &panel[block / 2 * COLUMNS..][..pairs_here * COLUMNS];
                        let out = &mut o[..count * width];
                        panel_product(
                            &mut tiles,
                            out,
                            (count, width, i * COLUMNS),
                            (weights, stride / 2),
                            panel,
                            &[],
                            true,
                        );
                    }
                }
                for (r, (_, total)) in running.iter().enumerate().take(count) {
                    tiles.keep_awake();
                    let [b, h, at] = p.y_strides;
                    let at = self.batch * b + self.head * h + (row + r) * at;
                    let o = &mut o[r * width..][..p.v_size];
                    let factor = if *total > 0.0 { total.recip() } else { 0.0 };
                    // SAFETY: each row of the output belongs to one task.
                    if let Some(y) = T::halves_mut(unsafe { y.get(at..at + p.v_size) }) {
                        // SAFETY: `attention` asked the processor.
                        unsafe { rounded_times(o, factor, y) };
                    }
                }
            }
        });
    }

    /// Rows of a head.
    fn lines<'a>(
        &self,
        of: &Heads<'a, T>,
        head: usize,
        rows: Range<usize>,
        size: usize,
    ) -> impl Iterator<Item = &'a [bf16]> {
        let (batch, of) = (self.batch, *of);
        rows.filter_map(move |row| T::halves(&of.from(batch, head, row)[..size]))
    }

    /// The maximum and the sum that rows begin with.
    fn begin(&self) -> [(f32, f32); ROWS] {
        let sink = match self.p.sink {
            None => return [(f32::NEG_INFINITY, 0.0); ROWS],
            Some(Sink::Zero) => 0.0,
            Some(Sink::Heads(scores)) => T::halves(scores).map_or(0.0, |scores| scores[self.head].to_f32()),
        };
        [(sink, 1.0); ROWS]
    }
}

/// Panels of keys: for each pair of a key's numbers those of all keys, the last panel filled up with zeros.
fn pack_keys<'a>(mut keys: impl Iterator<Item = &'a [bf16]>, depth: usize, out: &mut [u32]) {
    for panel in out.chunks_exact_mut(COLUMNS * depth) {
        let lines: [&[bf16]; COLUMNS] = std::array::from_fn(|_| keys.next().unwrap_or_default());
        widest(Turn { lines, panel });
    }
}

/// Makes a panel of lines of equal length or none, a column of each: in squares of 8 × 8, which compile to shuffles.
struct Turn<'a> {
    lines: [&'a [bf16]; COLUMNS],
    panel: &'a mut [u32],
}

impl Loop for Turn<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        const SIDE: usize = 8;
        let (lines, _) = self.lines.as_chunks::<SIDE>();
        for (first, lines) in lines.iter().enumerate().map(|(i, lines)| (i * SIDE, lines)) {
            for (block, to) in self.panel.chunks_mut(SIDE * COLUMNS).enumerate() {
                let mut square = [[0u32; SIDE]; SIDE];
                for (j, line) in lines.iter().enumerate() {
                    let from = line.get(block * 2 * SIDE..).unwrap_or_default();
                    let mut words = [0u32; SIDE];
                    if let Some(whole) = from.first_chunk::<{ 2 * SIDE }>() {
                        words = bytemuck::cast(whole.map(bf16::to_bits));
                    } else {
                        for (word, pair) in words.iter_mut().zip(from.chunks(2)) {
                            *word = pair_of(pair[0], pair.get(1).copied().unwrap_or(bf16::ZERO));
                        }
                    }
                    for i in 0..SIDE {
                        square[i][j] = words[i];
                    }
                }
                for (row, to) in square.iter().zip(to.chunks_exact_mut(COLUMNS)) {
                    to[first..][..SIDE].copy_from_slice(row);
                }
            }
        }
    }
}

/// Panels of columns: for each pair of values those of all columns; what is missing is zero.
fn pack_values<'a>(mut values: impl Iterator<Item = &'a [bf16]>, size: usize, pairs: usize, out: &mut [u32]) {
    for pair in 0..pairs {
        let [even, odd] = [(); 2].map(|()| values.next().unwrap_or_default());
        for first in (0..size).step_by(COLUMNS) {
            let line = &mut out[(first / COLUMNS * pairs + pair) * COLUMNS..][..COLUMNS];
            let of = |row: &'a [bf16]| &row[first.min(row.len())..(first + COLUMNS).min(row.len())];
            widest(Pairs { even: of(even), odd: of(odd), out: line });
        }
    }
}

/// Pairs of the numbers of two lines; what they lack is zero.
struct Pairs<'a> {
    even: &'a [bf16],
    odd: &'a [bf16],
    out: &'a mut [u32],
}

impl Loop for Pairs<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Pairs { even, odd, out } = self;
        if even.len() == out.len() && odd.len() == out.len() {
            return out.iter_mut().zip(even).zip(odd).for_each(|((word, &x), &y)| *word = pair_of(x, y));
        }
        let number = |line: &[bf16], i: usize| line.get(i).copied().unwrap_or(bf16::ZERO);
        out.iter_mut().enumerate().for_each(|(i, word)| *word = pair_of(number(even, i), number(odd, i)));
    }
}

/// Queries as they are: they are scaled with their scores, which takes no rounding.
fn load_queries<'a>(queries: impl Iterator<Item = &'a [bf16]>, depth: usize, out: &mut [u32]) {
    for (query, out) in queries.zip(out.chunks_exact_mut(depth)) {
        out[depth - 1] = 0;
        halves_of(out)[..query.len()].copy_from_slice(query);
    }
}

#[inline(always)]
fn pair_of(even: bf16, odd: bf16) -> u32 {
    u32::from(even.to_bits()) | u32::from(odd.to_bits()) << 16
}

/// Words as pairs of numbers.
fn halves_of(words: &mut [u32]) -> &mut [bf16] {
    half::slice::HalfBitsSliceExt::reinterpret_cast_mut(bytemuck::cast_slice_mut::<u32, u16>(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Attribute;
    use crate::testing::{elements, run, t};

    /// Against the same in `f32`: more than a task, a strip, a block of keys and a panel of columns, odd sizes, a
    /// causal limit, a mask, softcap, and groups of heads. (`f32` is compared with the standard's own numbers.)
    #[test]
    fn as_in_floats() {
        // Heads, heads of keys, queries, keys, size of queries and of values, attributes.
        type Case<'a> = ([usize; 6], &'a [(&'a str, f32)]);
        let cases: &[Case<'_>] = &[
            ([2, 2, 5, 7, 8, 8], &[]),
            ([4, 2, 13, 300, 64, 64], &[]),
            ([1, 1, 30, 30, 33, 35], &[("is_causal", 1.0)]),
            ([2, 1, 500, 500, 6, 40], &[("is_causal", 1.0)]),
            ([2, 2, 17, 600, 16, 70], &[("softcap", 3.0)]),
            ([1, 1, 13, 1601, 8, 40], &[]),
            ([1, 1, 900, 900, 8, 8], &[("is_causal", 1.0)]),
            ([1, 1, 4, 1, 1, 1], &[]),
        ];
        for &([heads, kv_heads, queries, keys, size, v_size], attributes) in cases {
            let number = |i: usize, seed: usize| {
                bf16::from_f32(((i * 7919 + seed * 104_729) % 2003) as f32 / 400.0 - 2.5)
            };
            let tensor = |shape: [usize; 4], seed: usize| -> ([usize; 4], Vec<bf16>) {
                (shape, (0..shape.iter().product()).map(|i| number(i, seed)).collect())
            };
            let inputs = [
                tensor([2, heads, queries, size], 1),
                tensor([2, kv_heads, keys, size], 2),
                tensor([2, kv_heads, keys, v_size], 3),
                tensor([1, 1, queries, keys], 4),
            ];
            let attributes: Vec<_> = attributes
                .iter()
                .map(|&(name, x)| match name {
                    "softcap" => (name, Attribute::Float(x)),
                    _ => (name, Attribute::Int(x as i64)),
                })
                .collect();
            let halves = inputs.each_ref().map(|(shape, x)| t(shape, x));
            let floats = inputs
                .each_ref()
                .map(|(shape, x)| t(shape, &x.iter().map(|x| x.to_f32()).collect::<Vec<_>>()));
            let got = elements::<bf16>(&run("Attention", 23, &attributes, &halves, 1).unwrap()[0]);
            let want = elements::<f32>(&run("Attention", 23, &attributes, &floats, 1).unwrap()[0]);
            assert_eq!(got.0, want.0);
            for (i, (got, want)) in got.1.iter().zip(&want.1).enumerate() {
                let got = got.to_f32();
                assert!((got - want).abs() < 0.02, "{heads} {queries} {keys} at {i}: {got} {want}");
            }
        }
    }
}
