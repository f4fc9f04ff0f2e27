//! Attention in tiles: a block of queries meets the keys block by block, with a running maximum and
//! sum of each row's softmax, so that the scores are never whole in memory.
//!
//! Source of the algorithm: Dao et al., "FlashAttention" (2022), with the running softmax of Milakov
//! and Gimelshein (2018).

use std::f64::consts::LOG2_E;
use std::ops::Range;

use num_traits::{AsPrimitive, Float, Zero};

use crate::ops::attention::Scores;
use crate::threads::Pool;

use super::problem::{Cached, Problem, ScoreOutput, Sink};
use super::softmax_step::{Base, Times, softmax_step};
use super::{few_queries, halves};
use crate::gemm::{Activate, Compute, Matrix, Shared, Store, multiply_block};
use crate::loops::parallel::Parts;
use crate::loops::scratch::with_scratch;
use crate::loops::simd::widest;

/// Queries of a tile: so few that their scores of a long block of keys stay in the L2 cache.
const QUERIES: usize = 32;
/// Tiles that share what is packed, at least: to pack for one alone would take as long as to multiply its queries.
const LEAST_TILES: usize = 2;
/// Tiles of one head that a thread computes together, block of keys by block of keys: they share what is packed.
const TILES: usize = 32;
/// Queries from which on it pays off to pack keys and values.
const PACKED: usize = 8;
/// Keys of a tile where all queries see the same ones as far as positions tell: each block of keys costs a maximum, a sum and a
/// product more. And bytes of their packed keys, which each tile reads.
const KEYS: usize = 1536;
const KEY_BYTES: usize = KEYS * 64 * size_of::<f32>();
/// Of these so many are summed in one go: longer sums have larger errors.
const SUMMED: usize = 256;
/// Keys of a tile where some see fewer: blocks that a tile's queries do not see are left out.
const FEWER_KEYS: usize = 256;

impl<T: Store<Compute: Activate>> Sink<'_, T> {
    pub(super) fn score(self, head: usize) -> T::Compute {
        match self {
            Sink::Zero => T::Compute::zero(),
            Sink::Heads(scores) => scores[head].load(),
        }
    }
}

/// What computes an attention of such elements, see the table of the module above.
pub(super) fn algorithm<T: Store>() -> &'static str {
    match halves::serves::<T>() {
        true => "flash, from 4 queries on by dot products of bfloat16 pairs",
        false => "flash",
    }
}

/// Computes the attention into `y`, which has `y_strides`.
pub(super) fn attention<T: Store<Compute: Activate + AsPrimitive<f64>>>(
    pool: &Pool,
    p: &Problem<'_, T>,
    y: &mut [T],
    scores: Option<ScoreOutput<'_, T>>,
) {
    let y = Parts::new(y);
    if scores.is_none() && (few_queries::attention(pool, p, &y) || halves::attention(pool, p, &y)) {
        return;
    }
    tiles(pool, p, &y, scores.as_ref());
}

/// Computes the attention by tiles of queries.
pub(super) fn tiles<T: Store<Compute: Activate + AsPrimitive<f64>>>(
    pool: &Pool,
    p: &Problem<'_, T>,
    y: &Parts<'_, T>,
    scores: Option<&ScoreOutput<'_, T>>,
) {
    let tiles = p.queries.div_ceil(QUERIES);
    // Enough tasks for all threads.
    let [least, most] = [LEAST_TILES, TILES].map(|count| count.min(tiles.max(1)));
    let together = (p.batch * p.heads * tiles / (pool.threads() * 4)).clamp(least, most);
    let queries = QUERIES * tiles.div_ceil(tiles.div_ceil(together).max(1));
    let blocks = p.queries.div_ceil(queries.max(1));
    pool.for_each(p.batch * p.heads * blocks, &|task| {
        let (block, rest) = (task % blocks, task / blocks);
        let rows = block * queries..((block + 1) * queries).min(p.queries);
        tiles_of(p, rest / p.heads, rest % p.heads, rows, y, scores);
    });
}

/// Computes the tiles of some queries.
fn tiles_of<T: Store<Compute: Activate + AsPrimitive<f64>>>(
    p: &Problem<'_, T>,
    batch: usize,
    head: usize,
    rows: Range<usize>,
    y: &Parts<'_, T>,
    scores: Option<&ScoreOutput<'_, T>>,
) {
    let kv_head = head / (p.heads / p.kv_heads);
    // Products of f64 are not made in tiles, and read all keys for each query.
    let is_single = size_of::<T::Compute>() == size_of::<f32>();
    // Scores to be written are kept whole.
    let (m, visible) = match scores {
        Some(_) => (rows.len(), 0..p.keys),
        None => (rows.len(), p.mask.visible(batch, rows.clone(), p.keys)),
    };
    let step = match scores {
        Some(_) => p.keys,
        None if is_single && p.mask.is_of_all(batch, rows.clone(), p.keys) => {
            let bytes = p.size.max(p.v_size).max(1) * size_of::<T::Compute>();
            (KEY_BYTES / bytes / SUMMED * SUMMED).clamp(FEWER_KEYS, KEYS).min(p.keys)
        }
        None => FEWER_KEYS.min(p.keys),
    };
    let step = step.max(1);
    let copied = |of: &Cached<'_, T>, size: usize| {
        if of.converts() || !T::Compute::ANY_STRIDES { step * size } else { 0 }
    };
    let copies = [copied(&p.k, p.size), copied(&p.v, p.v_size)];
    let packed = m > PACKED;
    let room = |depth, columns| if packed { Shared::<T::Compute>::scratch_len(depth, columns) } else { 0 };
    let shared = [room(p.size, step), room(step, p.v_size)];
    let lengths =
        [m * p.size, QUERIES.min(m) * step, m * p.v_size, copies[0], copies[1], shared[0], shared[1], m, m];
    with_scratch(lengths, |[q, s, o, k_copy, v_copy, k_room, v_room, max, sum]: [&mut [T::Compute]; 9]| {
        // Masks that are added, a softcap, and scores that are an output are in units of the base e. Others are in units of the
        // base 2, where a score of 2.4e38 and more becomes infinite, which as a number of f32 it nearly is.
        let plain = is_single && scores.is_none() && p.softcap == 0.0 && p.mask.hides_only();
        let (base, unit) = if plain { (Base::Two, LOG2_E) } else { (Base::E, 1.0) };
        let unit = T::Compute::of_f64(unit);
        load_queries(p, batch, head, rows.start, unit, q);
        o.fill(T::Compute::default());
        max.fill(T::Compute::neg_infinity());
        sum.fill(T::Compute::default());
        if let Some(sink) = p.sink {
            max.fill(sink.score(head) * unit);
            sum.fill(T::Compute::of(1.0));
        }
        for start in visible.clone().step_by(step) {
            let n = step.min(visible.end - start);
            let k = keys_of(p, batch, kv_head, start..start + n, k_copy);
            let v = values_of(p, batch, kv_head, start..start + n, v_copy);
            let shared_k = packed.then(|| Shared::new(k, p.size, n, k_room));
            let parts = || (0..n).step_by(SUMMED).map(|first| first..(first + SUMMED).min(n));
            let part_of = |part: &Range<usize>| room(part.start, p.v_size)..room(part.end, p.v_size);
            for part in parts().filter(|_| packed) {
                Shared::new(v.at(part.start, 0), part.len(), p.v_size, &mut v_room[part_of(&part)]);
            }
            for tile in (0..m).step_by(QUERIES) {
                let (first, m) = (rows.start + tile, QUERIES.min(m - tile));
                let seen = p.mask.visible(batch, first..first + m, p.keys);
                let hidden = seen.end <= start || start + n <= seen.start;
                let skips = || p.mask.skips([batch, head], first..first + m, start..start + n, p.keys);
                if scores.is_none() && (hidden || skips()) {
                    continue;
                }
                let s = &mut s[..m * n];
                let queries = Matrix::new(&q[tile * p.size..], p.size);
                match &shared_k {
                    Some(k) => k.multiply(s, m, queries, false),
                    None => multiply_block(s, (m, n, p.size), queries, k, false),
                }
                let o = &mut o[tile * p.v_size..][..m * p.v_size];
                let (max, sum) = (&mut max[tile..][..m], &mut sum[tile..][..m]);
                for (i, row) in s.chunks_exact_mut(n).enumerate() {
                    let o = &mut o[i * p.v_size..][..p.v_size];
                    let state = (&mut max[i], &mut sum[i], o);
                    weigh(p, [batch, head, first + i, start], row, base, state, scores);
                }
                for part in parts() {
                    let weights = Matrix::new(&*s, n).at(0, part.start);
                    if packed {
                        let v = Shared::written(&v_room[part_of(&part)], part.len(), p.v_size);
                        v.multiply(o, m, weights, true);
                    } else {
                        multiply_block(o, (m, p.v_size, part.len()), weights, v.at(part.start, 0), true);
                    }
                }
            }
        }
        for (i, (o, &total)) in o.chunks_exact_mut(p.v_size.max(1)).zip(&*sum).enumerate() {
            let [b, h, r] = p.y_strides;
            let at = batch * b + head * h + (rows.start + i) * r;
            let factor = if total > T::Compute::zero() { total.recip() } else { T::Compute::zero() };
            // SAFETY: each row of the output belongs to one tile.
            let y = unsafe { y.get(at..at + p.v_size) };
            widest(Times(&mut *o, factor));
            T::store_all(o, y);
        }
    });
}

/// Keys as columns: where they lie, or from a copy.
fn keys_of<'a, T: Store<Compute: Activate + AsPrimitive<f64>>>(
    p: &Problem<'a, T>,
    batch: usize,
    kv_head: usize,
    rows: Range<usize>,
    copy: &'a mut [T::Compute],
) -> Matrix<'a, T::Compute> {
    let n = rows.len();
    let rows_of = match &p.k {
        Cached::Numbers(keys) if !T::SAME || !T::Compute::ANY_STRIDES => {
            let data = keys.from(batch, kv_head, rows.start);
            for (j, row) in (0..n).map(|j| (j, &data[j * keys.strides[2]..][..p.size])) {
                row.iter().enumerate().for_each(|(i, x)| copy[i * n + j] = x.load());
            }
            return Matrix::new(copy, n);
        }
        keys => keys.rows([batch, kv_head, rows.start], (n, p.size), copy),
    };
    Matrix { data: rows_of.data, row_stride: 1, column_stride: rows_of.stride }
}

/// Values: where they lie, or from a copy.
fn values_of<'a, T: Store<Compute: Activate + AsPrimitive<f64>>>(
    p: &Problem<'a, T>,
    batch: usize,
    kv_head: usize,
    rows: Range<usize>,
    copy: &'a mut [T::Compute],
) -> Matrix<'a, T::Compute> {
    let values = p.v.rows([batch, kv_head, rows.start], (rows.len(), p.v_size), copy);
    Matrix { data: values.data, row_stride: values.stride, column_stride: 1 }
}

/// Makes the weights of some keys of a row's scores, and brings its maximum, sum and output to the new maximum. Stages of
/// scores are kept where they are an output.
fn weigh<T: Store<Compute: Activate + AsPrimitive<f64>>>(
    p: &Problem<'_, T>,
    [batch, head, query, start]: [usize; 4],
    row: &mut [T::Compute],
    base: Base,
    (max, sum, o): (&mut T::Compute, &mut T::Compute, &mut [T::Compute]),
    scores: Option<&ScoreOutput<'_, T>>,
) {
    let keep = |stage: Scores, row: &[T::Compute]| {
        if let Some(out) = scores.filter(|out| out.stage == stage) {
            let at = ((batch * p.heads + head) * p.queries + query) * p.keys + start;
            // SAFETY: each row of the scores belongs to one tile.
            let out = unsafe { out.data.get(at..at + row.len()) };
            out.iter_mut().zip(row).for_each(|(y, &x)| *y = T::store(x));
        }
    };
    keep(Scores::Raw, row);
    if p.softcap != 0.0 {
        let cap = T::Compute::of(p.softcap);
        row.iter_mut().for_each(|x| *x = *x / cap);
        T::Compute::tanh_all(row);
        row.iter_mut().for_each(|x| *x = *x * cap);
    }
    keep(Scores::SoftCapped, row);
    p.mask.add(batch, head, query, start, row);
    keep(Scores::Biased, row);
    softmax_step(max, sum, o, row, base);
    if scores.is_some_and(|out| out.stage == Scores::Probabilities) {
        let total = *sum;
        let factor = if total > T::Compute::zero() { total.recip() } else { T::Compute::zero() };
        row.iter_mut().for_each(|x| *x = *x * factor);
        keep(Scores::Probabilities, row);
        row.iter_mut().for_each(|x| *x = *x * total);
    }
}

/// The tile's queries, scaled, with scores in such units.
fn load_queries<T: Store<Compute: Activate>>(
    p: &Problem<'_, T>,
    batch: usize,
    head: usize,
    first: usize,
    unit: T::Compute,
    q: &mut [T::Compute],
) {
    let scale = T::Compute::of(p.scale) * unit;
    for (i, out) in q.chunks_exact_mut(p.size.max(1)).enumerate() {
        let row = &p.q.from(batch, head, first + i)[..p.size];
        out.iter_mut().zip(row).for_each(|(y, x)| *y = x.load() * scale);
    }
}

#[cfg(test)]
mod tests {
    use super::super::few_queries::tests::{by_definition, numbers};
    use super::super::heads::{Heads, head_strides};
    use super::super::mask::{Lengths, Mask};
    use super::*;
    use crate::tensor::f16;

    /// Keys around the end of a long block, and several of them, also of larger heads.
    #[test]
    fn long_blocks_of_keys() {
        let sizes = [
            (30, 1535, 4),
            (33, 1536, 4),
            (70, 1537, 3),
            (9, 3000, 8),
            (9, 600, 200),
            (9, 1100, 96),
            (600, 600, 2),
        ];
        for (queries, keys, size) in sizes {
            check::<f32>([queries, keys, size], 2e-5);
            check::<f16>([queries, keys, size], 4e-3);
        }
    }

    fn check<T: Store<Compute = f32>>([queries, keys, size]: [usize; 3], tolerance: f64) {
        let (batch, heads) = (1, 2);
        let count = |rows: usize| batch * heads * rows * size;
        let (q, k, v) =
            (numbers::<T>(count(queries), 1), numbers::<T>(count(keys), 2), numbers::<T>(count(keys), 3));
        let sinks = numbers::<T>(heads, 4);
        let strides = head_strides(4, heads, keys, size);
        let last = [keys as i32 / 2];
        for (softcap, sink, causal, lengths) in [
            (0.0, None, false, None),
            (0.0, Some(Sink::Heads(&sinks[..])), false, None),
            (5.0, None, false, None),
            (0.0, None, false, Some(Lengths::Last(&last))),
            (0.0, None, queries == keys, None),
        ] {
            let problem = Problem {
                batch,
                heads,
                kv_heads: heads,
                queries,
                keys,
                size,
                v_size: size,
                q: Heads { data: &q[..], strides: head_strides(3, heads, queries, size) },
                k: Heads { data: &k[..], strides }.into(),
                v: Heads { data: &v[..], strides }.into(),
                scale: 0.3,
                softcap,
                mask: Mask {
                    tensor: None,
                    padding: None,
                    blocks: None,
                    causal,
                    window: [None, None],
                    offset: 0,
                    lengths,
                    aligned_to_length: None,
                },
                sink,
                y_strides: head_strides(3, heads, queries, size),
            };
            let (mut y, mut want) = (vec![T::store(9.0); q.len()], vec![0.0; q.len()]);
            by_definition(&problem, &mut want);
            tiles(&Pool::new(2), &problem, &Parts::new(&mut y), None);
            let far = y.iter().zip(&want).find(|(y, want)| (f64::from(y.load()) - **want).abs() > tolerance);
            assert!(far.is_none(), "{queries} × {keys} of {size}, {softcap}, {causal}: {far:?}");
        }
    }
}
