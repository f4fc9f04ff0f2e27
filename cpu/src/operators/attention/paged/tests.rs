//! PagedAttention against its definition, element by element.

mod refused;

use crate::graph::Attribute;
use crate::ops::OpError;
use crate::tensor::{Value, bf16, f16};
use crate::testing::{elements, noise, run_in, t};

#[derive(Clone, Copy)]
struct Case {
    heads: [usize; 2],
    size: usize,
    /// Keys of a block.
    rows: usize,
    /// Keys of the past, and new tokens, of each sequence.
    sequences: &'static [(usize, usize)],
    packed: bool,
    /// Whether the blocks of a sequence follow one another.
    in_order: bool,
    rotary: Option<bool>,
    window: i64,
    softcap: f32,
    causal: bool,
    norm: bool,
    sinks: bool,
    slots: bool,
    /// Size of values within keys, and the first element of a head that is rotated.
    latent: Option<[usize; 2]>,
}

const PLAIN: Case = Case {
    heads: [4, 2],
    size: 16,
    rows: 16,
    sequences: &[(0, 5), (20, 1), (3, 40)],
    packed: false,
    in_order: false,
    rotary: None,
    window: -1,
    softcap: 0.0,
    causal: true,
    norm: false,
    sinks: false,
    slots: false,
    latent: None,
};

impl Case {
    fn tokens(&self) -> usize {
        self.sequences.iter().map(|s| s.1).sum()
    }

    fn pages(&self) -> usize {
        self.sequences.iter().map(|(past, new)| (past + new).div_ceil(self.rows)).max().unwrap_or(0) + 1
    }

    fn blocks(&self) -> usize {
        self.sequences.len() * self.pages() + 3
    }

    /// The blocks of each sequence: in order, or spread over the cache. The last one is not used.
    fn table(&self) -> Vec<i32> {
        let count = self.sequences.len() * self.pages();
        let spread = |i: usize| (i * 7 + 2) % (count * 7 + 1) % count;
        let mut order: Vec<usize> = (0..count).collect();
        if !self.in_order {
            order.sort_by_key(|&i| (spread(i), i));
            order.reverse();
        }
        let mut table: Vec<i32> = order.iter().map(|&block| block as i32 + 2).collect();
        table.iter_mut().skip(self.pages() - 1).step_by(self.pages()).for_each(|block| *block = -7);
        table
    }

    fn starts(&self) -> Vec<i32> {
        let mut start = 0;
        let ends = self.sequences.iter().map(|s| {
            start += s.1 as i32;
            start
        });
        std::iter::once(0).chain(ends.collect::<Vec<_>>()).collect()
    }

    /// Sequence and position of each token.
    fn places(&self) -> Vec<(usize, usize)> {
        let each = self.sequences.iter().enumerate();
        each.flat_map(|(s, &(past, new))| (past..past + new).map(move |position| (s, position))).collect()
    }

    /// The row of the cache of a position, with a table.
    fn slot(&self, table: &[i32], sequence: usize, position: usize) -> usize {
        table[sequence * self.pages() + position / self.rows] as usize * self.rows + position % self.rows
    }

    /// Every seventh token is not written: it is in the cache already.
    fn slots(&self) -> Vec<i32> {
        let table = self.table();
        let place = |s, p| self.slot(&table, s, p) as i32;
        let slot = |(i, &(s, p)): (usize, &(usize, usize))| if i % 7 == 3 { -1 } else { place(s, p) };
        self.places().iter().enumerate().map(slot).collect()
    }

    fn positions(&self) -> usize {
        self.sequences.iter().map(|(past, new)| past + new).max().unwrap_or(0)
    }

    fn half(&self) -> usize {
        match self.latent {
            Some([_, start]) => (self.size - start) / 2,
            None => self.size / 2 - usize::from(self.size > 16),
        }
    }

    fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        let mut given = vec![
            ("num_heads", Attribute::Int(self.heads[0] as i64)),
            ("kv_num_heads", Attribute::Int(self.heads[1] as i64)),
            ("local_window_size", Attribute::Int(self.window)),
            ("softcap", Attribute::Float(self.softcap)),
            ("is_causal", Attribute::Int(self.causal.into())),
            ("scale", Attribute::Float(0.7)),
        ];
        if let Some(interleaved) = self.rotary {
            given.push(("do_rotary", Attribute::Int(1)));
            given.push(("rotary_interleaved", Attribute::Int(interleaved.into())));
        }
        if let Some([value, start]) = self.latent {
            given.push(("kv_cache_layout", Attribute::String(b"LATENT".to_vec())));
            given.push(("v_head_size", Attribute::Int(value as i64)));
            given.push(("rotary_offset", Attribute::Int(start as i64)));
        }
        given
    }

    /// Rows of queries, keys and values of all tokens, one beside the other.
    fn projected(&self) -> Vec<f32> {
        noise(1, self.tokens() * (self.heads[0] + 2 * self.heads[1]) * self.size)
    }

    fn inputs<T: crate::tensor::Element>(&self, of: &dyn Fn(f32) -> T) -> Vec<Option<Value>> {
        let &Case { heads: [heads, kv_heads], size, .. } = self;
        let (tokens, parts) = (self.tokens(), heads + 2 * kv_heads);
        let x = |shape: &[usize], x: &[f32]| t(shape, &x.iter().map(|&x| of(x)).collect::<Vec<T>>());
        let all = self.projected();
        let part = |first: usize, count: usize| {
            let rows = all.chunks_exact(parts * size);
            let rows: Vec<f32> = rows.flat_map(|row| row[first * size..][..count * size].to_vec()).collect();
            x(&[tokens, count * size], &rows)
        };
        let [q, k, v] = match self.packed {
            true => [x(&[tokens, parts * size], &all), None, None],
            false => [part(0, heads), part(heads, kv_heads), part(heads + kv_heads, kv_heads)],
        };
        let cache = |seed| {
            let shape = [self.blocks(), self.rows, kv_heads, size];
            x(&shape, &noise(seed, shape.iter().product()))
        };
        let ints = |shape: &[usize], x: &[i32]| t(shape, x);
        let count = self.sequences.len();
        let pasts: Vec<i32> = self.sequences.iter().map(|s| s.0 as i32).collect();
        let angles = |seed| {
            let shape = [self.positions(), self.half()];
            self.rotary.and_then(|_| x(&shape, &noise(seed, shape.iter().product())))
        };
        let weight = |seed| if self.norm { x(&[size], &noise(seed, size)) } else { None };
        let joint = self.latent.is_some();
        vec![
            q,
            k,
            v.filter(|_| !joint),
            cache(2),
            cache(3).filter(|_| !joint),
            ints(&[count + 1], &self.starts()),
            ints(&[count], &pasts),
            ints(&[count, self.pages()], &self.table()),
            angles(4),
            angles(5),
            if self.slots { ints(&[tokens], &self.slots()) } else { None },
            if self.sinks { x(&[heads], &noise(6, heads)) } else { None },
            weight(7),
            weight(8),
            None,
            None,
            ints(&[2], &[0, 0]),
        ]
    }

    /// A row of a head, normalised and rotated.
    fn changed(&self, row: &[f32], seed: usize, position: usize) -> Vec<f64> {
        let mut y: Vec<f64> = row.iter().map(|&x| x.into()).collect();
        if self.norm {
            let mean = y.iter().map(|x| x * x).sum::<f64>() / y.len() as f64;
            let weight = noise(seed, self.size);
            y.iter_mut().zip(weight).for_each(|(y, w)| *y *= f64::from(w) / (mean + 1e-6).sqrt());
        }
        if let Some(interleaved) = self.rotary {
            let (half, start) = (self.half(), self.latent.map_or(0, |latent| latent[1]));
            let [cosines, sines] = [4, 5].map(|seed| noise(seed, self.positions() * half));
            for i in 0..half {
                let (a, b) = if interleaved { (2 * i, 2 * i + 1) } else { (i, half + i) };
                let (c, s) = (f64::from(cosines[position * half + i]), f64::from(sines[position * half + i]));
                let (x, z) = (y[start + a], y[start + b]);
                (y[start + a], y[start + b]) = (c * x - s * z, s * x + c * z);
            }
        }
        y
    }

    /// The result and both caches, as the operator is defined.
    fn defined(&self) -> [Vec<f64>; 3] {
        let &Case { heads: [heads, kv_heads], size, .. } = self;
        let parts = heads + 2 * kv_heads;
        let all = self.projected();
        let head = |token: usize, head: usize| &all[(token * parts + head) * size..][..size];
        let (table, slots) = (self.table(), self.slots());
        let space = self.blocks() * self.rows * kv_heads * size;
        let mut caches = [2, 3].map(|seed| noise(seed, space).into_iter().map(f64::from).collect::<Vec<_>>());
        for (token, (sequence, position)) in self.places().into_iter().enumerate() {
            if self.slots && slots[token] < 0 {
                continue;
            }
            for h in 0..kv_heads {
                let at = (self.slot(&table, sequence, position) * kv_heads + h) * size;
                let key = self.changed(head(token, heads + h), 8, position);
                caches[0][at..at + size].copy_from_slice(&key);
                let value = head(token, heads + kv_heads + h);
                caches[1][at..at + size].iter_mut().zip(value).for_each(|(y, &x)| *y = x.into());
            }
        }
        let width = self.latent.map_or(size, |latent| latent[0]);
        let values = if self.latent.is_some() { &caches[0] } else { &caches[1] };
        let mut y = Vec::new();
        let sinks = noise(6, heads);
        for (token, (sequence, position)) in self.places().into_iter().enumerate() {
            let total = self.sequences[sequence].0 + self.sequences[sequence].1;
            for (h, &sink) in sinks.iter().enumerate() {
                let query = self.changed(head(token, h), 7, position);
                let at = |key: usize| {
                    (self.slot(&table, sequence, key) * kv_heads + h / (heads / kv_heads)) * size
                };
                let sees = |key: usize| {
                    (!self.causal || key <= position)
                        && (self.window < 0 || key + self.window as usize >= position)
                };
                let mut sum = if self.sinks { f64::from(sink).exp() } else { 0.0 };
                let mut out = vec![0.0; width];
                for key in (0..total).filter(|&key| sees(key)) {
                    let k = &caches[0][at(key)..][..size];
                    let mut score = query.iter().zip(k).map(|(a, b)| a * b).sum::<f64>() * 0.7;
                    if self.softcap > 0.0 {
                        score = f64::from(self.softcap) * (score / f64::from(self.softcap)).tanh();
                    }
                    sum += score.exp();
                    out.iter_mut().zip(&values[at(key)..]).for_each(|(y, v)| *y += score.exp() * v);
                }
                y.extend(out.iter().map(|x| x / sum));
            }
        }
        let [keys, values] = caches;
        [y, keys, values]
    }

    fn run<T: crate::tensor::Element>(
        &self,
        of: &dyn Fn(f32) -> T,
        outputs: usize,
    ) -> Result<Vec<Value>, OpError> {
        run_in("com.microsoft", "PagedAttention", 1, &self.attributes(), &self.inputs(of), outputs)
    }
}

fn cases() -> Vec<(&'static str, Case)> {
    let step = Case { sequences: &[(70, 1), (0, 1), (33, 1), (15, 1)], ..PLAIN };
    let everything =
        Case { rotary: Some(false), norm: true, sinks: true, softcap: 2.0, packed: true, ..PLAIN };
    let latent = Case { heads: [4, 1], size: 24, latent: Some([16, 16]), rotary: Some(false), ..PLAIN };
    vec![
        ("plain", PLAIN),
        ("in order", Case { in_order: true, ..PLAIN }),
        ("packed", Case { packed: true, ..PLAIN }),
        ("rotated", Case { rotary: Some(false), ..PLAIN }),
        ("rotated, part of a head, pairs", Case { rotary: Some(true), size: 24, ..PLAIN }),
        ("window of 0", Case { window: 0, ..PLAIN }),
        ("window", Case { window: 9, sequences: &[(60, 3), (0, 20)], ..PLAIN }),
        ("both ways", Case { causal: false, ..PLAIN }),
        ("both ways, window", Case { causal: false, window: 4, ..PLAIN }),
        ("softcap", Case { softcap: 1.5, ..PLAIN }),
        ("sinks", Case { sinks: true, ..PLAIN }),
        ("normalised", Case { norm: true, ..PLAIN }),
        ("everything", everything),
        ("slots", Case { slots: true, ..PLAIN }),
        ("slots, everything", Case { slots: true, in_order: true, ..everything }),
        ("step", step),
        ("step, everything", Case { sequences: step.sequences, ..everything }),
        ("group of 8", Case { heads: [8, 1], ..step }),
        ("no new tokens", Case { sequences: &[(5, 0), (20, 2), (7, 0), (0, 0)], ..PLAIN }),
        ("no token at all", Case { sequences: &[(5, 0), (0, 0)], ..PLAIN }),
        ("no sequence", Case { sequences: &[], ..PLAIN }),
        ("long", Case { sequences: &[(300, 130), (0, 9)], rows: 32, rotary: Some(false), ..PLAIN }),
        ("far", Case { sequences: &[(1500, 1)], heads: [2, 1], ..PLAIN }),
        ("blocks of one key", Case { rows: 1, sequences: &[(3, 2), (0, 4)], ..PLAIN }),
        ("latent", latent),
        ("latent step", Case { sequences: step.sequences, in_order: true, ..latent }),
    ]
}

#[test]
fn as_defined() {
    for (what, case) in cases() {
        let want = case.defined();
        let outputs = if case.latent.is_some() { 2 } else { 3 };
        for wanted in [outputs, 1] {
            let got = case.run(&|x| x, wanted).unwrap();
            for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                let got = elements::<f32>(got).1;
                assert_eq!(got.len(), want.len(), "{what} output {i}");
                for (at, (&got, want)) in got.iter().zip(want).enumerate() {
                    assert!((f64::from(got) - want).abs() < 3e-5, "{what} output {i} at {at}: {got}, {want}");
                }
            }
        }
    }
}

#[test]
fn half_types() {
    for (what, case) in cases() {
        let want = &case.defined()[0];
        let half = case.run(&f16::from_f32, 1).unwrap();
        let short = case.run(&bf16::from_f32, 1).unwrap();
        for ((f16, bf16), want) in
            elements::<f16>(&half[0]).1.iter().zip(elements::<bf16>(&short[0]).1).zip(want)
        {
            assert!((f16.to_f64() - want).abs() < 1e-2, "{what}: {f16}, {want}");
            assert!((bf16.to_f64() - want).abs() < 8e-2, "{what}: {bf16}, {want}");
        }
    }
}
