use super::super::flash;
use super::super::heads::{Heads, head_strides};
use super::super::mask::{Lengths, Mask};
use super::super::problem::Sink;
use super::*;
use crate::tensor::{bf16, f16};

struct Sizes {
    heads: usize,
    kv_heads: usize,
    queries: usize,
    keys: usize,
    capacity: usize,
    size: usize,
}

pub(in super::super) fn numbers<T: Store<Compute = f32>>(count: usize, seed: usize) -> Vec<T> {
    (0..count).map(|i| T::store(((i * (7 + 2 * seed) + i / 13 + seed) % 23) as f32 / 8.0 - 1.4)).collect()
}

/// The softmax of scores that the mask leaves, by its definition, in `f64`.
pub(in super::super) fn by_definition<T: Store<Compute = f32>>(p: &Problem<'_, T>, y: &mut [f64]) {
    for row in 0..p.batch * p.heads * p.queries {
        let (batch, head, query) = (row / p.queries / p.heads, row / p.queries % p.heads, row % p.queries);
        let kv_head = head / (p.heads / p.kv_heads);
        let number = |x: &T| f64::from(x.load());
        let (Some(keys), Some(values)) = (p.k.numbers(), p.v.numbers()) else { panic!("numbers") };
        let q = &p.q.from(batch, head, query)[..p.size];
        let mut hidden = vec![0.0f32; p.keys];
        p.mask.add(batch, head, query, 0, &mut hidden);
        let scores: Vec<f64> = (0..p.keys)
            .map(|key| {
                let k = &keys.from(batch, kv_head, key)[..p.size];
                let dot: f64 = q.iter().zip(k).map(|(q, k)| number(q) * number(k)).sum();
                let score = dot * f64::from(p.scale);
                let cap = f64::from(p.softcap);
                (if cap == 0.0 { score } else { (score / cap).tanh() * cap }) + f64::from(hidden[key])
            })
            .collect();
        let sink = p.sink.map(|sink| f64::from(sink.score(head)));
        let most = scores.iter().copied().chain(sink).fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = scores.iter().copied().chain(sink).map(|score| (score - most).exp()).sum();
        let [b, h, r] = p.y_strides;
        for i in 0..p.v_size {
            let value = |key: usize| number(&values.from(batch, kv_head, key)[i]);
            let sum: f64 = (0..p.keys).map(|key| (scores[key] - most).exp() * value(key)).sum();
            y[batch * b + head * h + query * r + i] = sum / total;
        }
    }
}

fn check<T: Store<Compute = f32>>(s: &Sizes, threads: usize, tolerance: f64) {
    let &Sizes { heads, kv_heads, queries, keys, capacity, size } = s;
    let batch = 2;
    let count = |heads: usize, rows: usize| batch * heads * rows * size;
    let (q, k, v) = (
        numbers::<T>(count(heads, queries), 1),
        numbers::<T>(count(kv_heads, capacity), 2),
        numbers::<T>(count(kv_heads, capacity), 3),
    );
    let cache = head_strides(4, kv_heads, capacity, size);
    let sinks = numbers::<T>(heads, 4);
    let last = [keys as i32 - 1, (keys / 2).max(queries) as i32 - 1];
    for (softcap, window, sink) in [
        (0.0, None, None),
        (5.0, Some(40), None),
        (0.0, None, Some(Sink::Heads(&sinks[..]))),
        (0.0, Some(3), Some(Sink::Zero)),
    ] {
        let problem = Problem {
            batch,
            heads,
            kv_heads,
            queries,
            keys,
            size,
            v_size: size,
            q: Heads { data: &q[..], strides: head_strides(3, heads, queries, size) },
            k: Heads { data: &k[..], strides: cache }.into(),
            v: Heads { data: &v[..], strides: cache }.into(),
            scale: 0.3,
            softcap,
            mask: Mask {
                tensor: None,
                padding: None,
                blocks: None,
                causal: true,
                window: [window, None],
                offset: 0,
                lengths: Some(Lengths::Last(&last)),
                aligned_to_length: Some(queries),
            },
            sink,
            y_strides: head_strides(3, heads, queries, size),
        };
        let pool = Pool::new(threads);
        let (mut y, mut want) = (vec![T::store(9.0); q.len()], vec![0.0; q.len()]);
        by_definition(&problem, &mut want);
        assert!(attention(&pool, &problem, &Parts::new(&mut y)), "few queries");
        let told =
            format!("{heads} and {kv_heads} heads of {size}, {queries} × {keys}, {softcap}, {window:?}");
        let far = y.iter().zip(&want).find(|(y, want)| (f64::from(y.load()) - **want).abs() > tolerance);
        assert!(far.is_none(), "{told}: {far:?}");
        // Tiles of queries give the same.
        let mut y = vec![T::store(9.0); q.len()];
        flash::tiles(&pool, &problem, &Parts::new(&mut y), None);
        let far = y.iter().zip(&want).find(|(y, want)| (f64::from(y.load()) - **want).abs() > tolerance);
        assert!(far.is_none(), "tiles, {told}: {far:?}");
    }
}

#[test]
fn heads_that_share_keys_and_keys_in_parts() {
    let sizes = [
        Sizes { heads: 8, kv_heads: 2, queries: 1, keys: 700, capacity: 1000, size: 64 },
        Sizes { heads: 3, kv_heads: 3, queries: 1, keys: 1, capacity: 5, size: 16 },
        Sizes { heads: 6, kv_heads: 1, queries: 2, keys: 300, capacity: 300, size: 40 },
        Sizes { heads: 10, kv_heads: 2, queries: 3, keys: 33, capacity: 64, size: 7 },
    ];
    for s in &sizes {
        for threads in [1, 2, 7] {
            check::<f32>(s, threads, 2e-5);
            check::<f16>(s, threads, 2e-3);
            check::<bf16>(s, threads, 2e-2);
        }
    }
}
