//! Attention in tiles: a block of queries meets the keys block by block, with a running maximum and
//! sum of each row's softmax, so that the scores are never whole in memory.
//!
//! Source of the algorithm: Dao et al., "FlashAttention" (2022), with the running softmax of Milakov
//! and Gimelshein (2018).

use num_traits::{AsPrimitive, Float, Zero};

use crate::ops::attention::Scores;
use crate::threads::Pool;

use super::problem::{Cached, Problem, ScoreOutput, Sink};
use super::softmax_step::{Times, softmax_step};
use super::{few_queries, halves};
use crate::gemm::{Activate, Compute, Matrix, Shared, Store, multiply_block};
use crate::loops::parallel::Parts;
use crate::loops::scratch::with_scratch;
use crate::loops::simd::widest;

/// Queries of a tile.
const QUERIES: usize = 64;
/// Tiles of one head that a thread computes together, block of keys by block of keys: they share what is packed.
const TILES: usize = 8;
/// Queries from which on it pays off to pack keys and values.
const PACKED: usize = 8;
/// Keys of a tile.
const KEYS: usize = 256;

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
    let together = (p.batch * p.heads * tiles / (pool.threads() * 4)).clamp(1, TILES.min(tiles.max(1)));
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
    rows: std::ops::Range<usize>,
    y: &Parts<'_, T>,
    scores: Option<&ScoreOutput<'_, T>>,
) {
    let kv_head = head / (p.heads / p.kv_heads);
    // Scores to be written are kept whole.
    let step = if scores.is_some() { p.keys } else { KEYS.min(p.keys) }.max(1);
    let (m, visible) = match scores {
        Some(_) => (rows.len(), 0..p.keys),
        None => (rows.len(), p.mask.visible(batch, rows.clone(), p.keys)),
    };
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
        load_queries(p, batch, head, rows.start, q);
        o.fill(T::Compute::default());
        max.fill(T::Compute::neg_infinity());
        sum.fill(T::Compute::default());
        if let Some(sink) = p.sink {
            max.fill(sink.score(head));
            sum.fill(T::Compute::of(1.0));
        }
        for start in visible.clone().step_by(step) {
            let n = step.min(visible.end - start);
            let k = keys_of(p, batch, kv_head, start..start + n, k_copy);
            let v = values_of(p, batch, kv_head, start..start + n, v_copy);
            let shared_k = packed.then(|| Shared::new(k, p.size, n, k_room));
            let shared_v = packed.then(|| Shared::new(v, n, p.v_size, v_room));
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
                    weigh(p, [batch, head, first + i, start], row, (&mut max[i], &mut sum[i], o), scores);
                }
                match &shared_v {
                    Some(v) => v.multiply(o, m, Matrix::new(s, n), true),
                    None => multiply_block(o, (m, p.v_size, n), Matrix::new(s, n), v, true),
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
    rows: std::ops::Range<usize>,
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
    rows: std::ops::Range<usize>,
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
    softmax_step(max, sum, o, row, T::Compute::of(1.0), T::Compute::exponentials);
    if scores.is_some_and(|out| out.stage == Scores::Probabilities) {
        let total = *sum;
        let factor = if total > T::Compute::zero() { total.recip() } else { T::Compute::zero() };
        row.iter_mut().for_each(|x| *x = *x * factor);
        keep(Scores::Probabilities, row);
        row.iter_mut().for_each(|x| *x = *x * total);
    }
}

/// The tile's queries, scaled.
fn load_queries<T: Store<Compute: Activate>>(
    p: &Problem<'_, T>,
    batch: usize,
    head: usize,
    first: usize,
    q: &mut [T::Compute],
) {
    let scale = T::Compute::of(p.scale);
    for (i, out) in q.chunks_exact_mut(p.size.max(1)).enumerate() {
        let row = &p.q.from(batch, head, first + i)[..p.size];
        out.iter_mut().zip(row).for_each(|(y, x)| *y = x.load() * scale);
    }
}
