//! Attention of a few queries with many keys, as text is generated token by token. Bound by reading keys and values.
//!
//! A task takes all queries of one head of keys, and so of all heads of queries that share it: each key and value is read
//! once, and converted once where it is of a half type. Where there are fewer heads than threads have use for, the keys
//! are cut into parts, whose softmaxes are brought to one maximum in the end.
//!
//! Source of the cut: Dao et al., "Flash-Decoding for long-context inference" (2023).

#[cfg(test)]
pub(super) mod tests;

use num_traits::{Float, Zero};

use crate::threads::Pool;

use super::problem::Problem;
use super::softmax_step::{Base, Times, softmax_step};
use crate::gemm::{Activate, Store};
use crate::loops::parallel::Parts;
use crate::loops::scratch::with_scratch;
use crate::loops::simd::widest;

/// Queries up to which it is faster than tiles of queries.
const QUERIES: usize = 3;
/// Keys that are converted, and multiplied with all queries, at a time.
const KEYS: usize = 128;
/// Keys from which a part of them is worth a task.
const PART: usize = 256;

/// Computes the attention into `y`; tells whether it did, which asks for few queries.
pub(super) fn attention<T: Store<Compute: Activate>>(
    pool: &Pool,
    p: &Problem<'_, T>,
    y: &Parts<'_, T>,
) -> bool {
    if p.queries > QUERIES || [p.batch, p.heads, p.queries, p.size, p.v_size].contains(&0) {
        return false;
    }
    let heads = p.batch * p.kv_heads;
    let parts = (pool.threads() * 4).div_ceil(heads).min(p.keys.div_ceil(PART)).max(1);
    let memory = Memory::new(p);
    with_scratch([heads * parts * memory.size()], |[all]: [&mut [T::Compute]; 1]| {
        let room = Parts::new(all);
        pool.for_each(heads * parts, &|at| {
            // SAFETY: each task has memory of its own.
            let own = unsafe { room.get(at * memory.size()..(at + 1) * memory.size()) };
            let task = Task { p, batch: at / parts / p.kv_heads, kv_head: at / parts % p.kv_heads };
            task.run(at % parts, parts, memory.split(own));
            if parts == 1 {
                task.finish(memory.results(own), y);
            }
        });
        if parts == 1 {
            return;
        }
        pool.for_each(heads, &|head| {
            // SAFETY: the tasks are done; each head has the memory of its own parts.
            let own = unsafe { room.get(head * parts * memory.size()..(head + 1) * parts * memory.size()) };
            let (first, others) = own.split_at_mut(memory.size());
            for other in others.chunks_exact_mut(memory.size()) {
                merge(p.v_size, memory.results(first), memory.results(other));
            }
            let task = Task { p, batch: head / p.kv_heads, kv_head: head % p.kv_heads };
            task.finish(memory.results(first), y);
        });
    });
    true
}

/// What a task's memory holds, in numbers: results, then queries, scores, and keys or values that are converted.
#[derive(Clone, Copy)]
struct Memory {
    rows: usize,
    v_size: usize,
    lengths: [usize; 6],
}

impl Memory {
    fn new<T: Store<Compute: Activate>>(p: &Problem<'_, T>) -> Self {
        let rows = p.heads / p.kv_heads * p.queries;
        let converts = p.k.converts() || p.v.converts();
        let copy = if converts { KEYS * p.size.max(p.v_size) } else { 0 };
        let lengths = [rows * p.v_size, rows, rows, rows * p.size, rows * KEYS, copy];
        Memory { rows, v_size: p.v_size, lengths }
    }

    /// Of whole cache lines.
    fn size(&self) -> usize {
        self.lengths.iter().sum::<usize>().next_multiple_of(16)
    }

    /// Sums of values, maxima and sums of the softmax; queries, scores, a copy.
    fn split<'a, C>(&self, mut memory: &'a mut [C]) -> [&'a mut [C]; 6] {
        self.lengths.map(|len| {
            let (part, rest) = std::mem::take(&mut memory).split_at_mut(len);
            memory = rest;
            part
        })
    }

    /// The first three.
    fn results<'a, C>(&self, memory: &'a mut [C]) -> [&'a mut [C]; 3] {
        let (o, rest) = memory.split_at_mut(self.rows * self.v_size);
        let (max, rest) = rest.split_at_mut(self.rows);
        [o, max, &mut rest[..self.rows]]
    }
}

/// One head of keys and values of a sample.
struct Task<'a, T> {
    p: &'a Problem<'a, T>,
    batch: usize,
    kv_head: usize,
}

impl<T: Store<Compute: Activate>> Task<'_, T> {
    /// The head of queries and the query that a row is.
    fn row(&self, row: usize) -> (usize, usize) {
        let group = self.p.heads / self.p.kv_heads;
        (self.kv_head * group + row / self.p.queries, row % self.p.queries)
    }

    /// Computes part `part` of `parts`.
    fn run(&self, part: usize, parts: usize, memory: [&mut [T::Compute]; 6]) {
        let p = self.p;
        let [o, max, sum, q, s, copy] = memory;
        let scale = T::Compute::of(p.scale);
        for (row, out) in q.chunks_exact_mut(p.size).enumerate() {
            let (head, query) = self.row(row);
            T::load_all(&p.q.from(self.batch, head, query)[..p.size], out);
            widest(Times(out, scale));
        }
        o.fill(T::Compute::zero());
        max.fill(T::Compute::neg_infinity());
        sum.fill(T::Compute::zero());
        if let Some(sink) = p.sink.filter(|_| part == 0) {
            (0..max.len()).for_each(|row| max[row] = sink.score(self.row(row).0));
            sum.fill(T::Compute::of(1.0));
        }
        let visible = p.mask.visible(self.batch, 0..p.queries, p.keys);
        let at = |part: usize| visible.start + visible.len() * part / parts;
        let keys = at(part)..at(part + 1);
        for start in keys.clone().step_by(KEYS) {
            let n = KEYS.min(keys.end - start);
            let skips = |row: usize| {
                let (head, query) = self.row(row);
                p.mask.skips([self.batch, head], query..query + 1, start..start + n, p.keys)
            };
            if (0..max.len()).all(skips) {
                continue;
            }
            let s = &mut s[..max.len() * n];
            let k = p.k.rows([self.batch, self.kv_head, start], (n, p.size), copy);
            T::Compute::dots(q, k, s);
            for (row, s) in s.chunks_exact_mut(n).enumerate() {
                let (head, query) = self.row(row);
                if p.softcap != 0.0 {
                    let cap = T::Compute::of(p.softcap);
                    s.iter_mut().for_each(|x| *x = *x / cap);
                    T::Compute::tanh_all(s);
                    s.iter_mut().for_each(|x| *x = *x * cap);
                }
                p.mask.add(self.batch, head, query, start, s);
                let o = &mut o[row * p.v_size..][..p.v_size];
                softmax_step(&mut max[row], &mut sum[row], o, s, Base::E);
            }
            let v = p.v.rows([self.batch, self.kv_head, start], (n, p.v_size), copy);
            T::Compute::sums(s, v, o);
        }
    }

    /// Writes what was summed over its sum of the softmax.
    fn finish(&self, [o, _, sum]: [&mut [T::Compute]; 3], y: &Parts<'_, T>) {
        let p = self.p;
        for (row, (o, &total)) in o.chunks_exact_mut(p.v_size).zip(&*sum).enumerate() {
            let (head, query) = self.row(row);
            let [b, h, r] = p.y_strides;
            let at = self.batch * b + head * h + query * r;
            let factor = if total > T::Compute::zero() { total.recip() } else { T::Compute::zero() };
            widest(Times(&mut *o, factor));
            // SAFETY: each row of the output belongs to one head, which one task finishes.
            T::store_all(o, unsafe { y.get(at..at + p.v_size) });
        }
    }
}

/// Adds the results of another part of the keys.
fn merge<C: Activate>(v_size: usize, [o, max, sum]: [&mut [C]; 3], [o2, max2, sum2]: [&mut [C]; 3]) {
    for row in 0..max.len() {
        let most = max[row].max(max2[row]);
        if most == C::neg_infinity() {
            continue;
        }
        let range = row * v_size..(row + 1) * v_size;
        let factors = [(max[row] - most).exp(), (max2[row] - most).exp()];
        for (a, b) in o[range.clone()].iter_mut().zip(&o2[range]) {
            *a = *a * factors[0] + *b * factors[1];
        }
        sum[row] = sum[row] * factors[0] + sum2[row] * factors[1];
        max[row] = most;
    }
}
