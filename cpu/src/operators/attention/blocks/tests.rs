//! SparseAttention against GroupQueryAttention with the same blocks hidden by a bias.

use crate::graph::Attribute;
use crate::tensor::{Value, bf16, f16};
use crate::testing::{elements, noise, run_in, t};

#[derive(Clone, Copy)]
struct Case {
    heads: [usize; 2],
    size: usize,
    rows: usize,
    room: usize,
    /// Keys of each of two samples.
    lengths: [i32; 2],
    total: i32,
    packed: bool,
    rotary: Option<bool>,
    layouts: usize,
    block: usize,
}

fn random(seed: usize, shape: &[usize]) -> Option<Value> {
    t(shape, &noise(seed, shape.iter().product()))
}

fn i32s(shape: &[usize], elements: &[i32]) -> Option<Value> {
    t(shape, elements)
}

/// The blocks that rows of a layout see: their own, the first, and every third.
fn seen(layout: usize, row: usize) -> impl Iterator<Item = usize> {
    (0..=row).filter(move |&column| column == row || column == 0 || (row + column + layout).is_multiple_of(3))
}

impl Case {
    fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        let mut given = vec![
            ("num_heads", Attribute::Int(self.heads[0] as i64)),
            ("kv_num_heads", Attribute::Int(self.heads[1] as i64)),
        ];
        if let Some(interleaved) = self.rotary {
            given.push(("do_rotary", Attribute::Int(1)));
            given.push(("rotary_interleaved", Attribute::Int(interleaved.into())));
        }
        given
    }

    fn layout(&self) -> [Option<Value>; 2] {
        let blocks = self.room.div_ceil(self.block);
        let (mut begins, mut columns) = (Vec::new(), Vec::new());
        let most =
            (0..self.layouts).map(|l| (0..blocks).map(|row| seen(l, row).count()).sum::<usize>()).max();
        let most = most.unwrap_or(0);
        for layout in 0..self.layouts {
            let first = columns.len();
            for row in 0..blocks {
                begins.push((columns.len() - first) as i32);
                columns.extend(seen(layout, row).map(|column| column as i32));
            }
            begins.push((columns.len() - first) as i32);
            columns.resize(first + most, -1);
        }
        [i32s(&[self.layouts, blocks + 1], &begins), i32s(&[self.layouts, most], &columns)]
    }

    /// Minus infinity where a block is hidden.
    fn bias(&self) -> Option<Value> {
        let (heads, rows, total) = (self.heads[0], self.rows, self.total as usize);
        let mut bias = vec![f32::NEG_INFINITY; 2 * heads * rows * total];
        for (i, bias) in bias.chunks_exact_mut(total).enumerate() {
            let (sample, head, row) = (i / rows / heads, i / rows % heads, i % rows);
            let past = if total == rows { 0 } else { self.lengths[sample] as usize - rows };
            for column in seen(head % self.layouts, (past + row) / self.block) {
                let range = column * self.block..((column + 1) * self.block).min(total);
                bias[range.start.min(total)..range.end].fill(0.0);
            }
        }
        t(&[2, heads, rows, total], &bias)
    }

    fn check(&self, what: &str) {
        let &Case { heads: [heads, kv_heads], size, rows, room, .. } = self;
        let columns = if self.packed { heads + 2 * kv_heads } else { heads } * size;
        let kv = |seed| if self.packed { None } else { random(seed, &[2, rows, kv_heads * size]) };
        let past = |seed| random(seed, &[2, kv_heads, room, size]);
        let cache = |seed| self.rotary.and_then(|_| random(seed, &[room, size / 2]));
        let first = || vec![random(1, &[2, rows, columns]), kv(2), kv(3), past(4), past(5)];
        let [begins, seen] = self.layout();
        let mut sparse = first();
        sparse.extend([
            begins,
            seen,
            i32s(&[1], &[self.total]),
            i32s(&[2], &self.lengths),
            cache(6),
            cache(7),
        ]);
        let mut grouped = first();
        let last = self.lengths.map(|n| n - 1);
        grouped.extend([i32s(&[2], &last), i32s(&[1], &[self.total]), cache(6), cache(7), None, self.bias()]);
        let mut attributes = self.attributes();
        let want = run_in("com.microsoft", "GroupQueryAttention", 1, &attributes, &grouped, 3).unwrap();
        attributes.push(("sparse_block_size", Attribute::Int(self.block as i64)));
        let got = run_in("com.microsoft", "SparseAttention", 1, &attributes, &sparse, 3).unwrap();
        let (shape, want_y) = elements::<f32>(&want[0]);
        let (got_shape, got_y) = elements::<f32>(&got[0]);
        assert_eq!(shape, got_shape, "{what}");
        for (i, (got, want)) in got_y.iter().zip(&want_y).enumerate() {
            assert!((got - want).abs() < 1e-5, "{what} element {i}: {got}, {want}");
        }
        // What is behind the keys stays as it was in the past.
        for i in [1, 2] {
            let (given, want, got) = (
                elements::<f32>(&past(3 + i).unwrap()).1,
                elements::<f32>(&want[i]).1,
                elements::<f32>(&got[i]).1,
            );
            for (row, got) in got.chunks_exact(size).enumerate() {
                let sample = row / room / kv_heads;
                let known = row % room
                    < if self.total as usize == rows { rows } else { self.lengths[sample] as usize };
                let from = if known { &want } else { &given };
                assert_eq!(got, &from[row * size..][..size], "{what} output {i} row {row}");
            }
        }
    }
}

const PROMPT: Case = Case {
    heads: [4, 2],
    size: 16,
    rows: 70,
    room: 96,
    lengths: [70, 51],
    total: 70,
    packed: false,
    rotary: None,
    layouts: 2,
    block: 16,
};

#[test]
fn hidden_blocks() {
    let step = Case { rows: 1, room: 700, lengths: [600, 333], total: 600, ..PROMPT };
    let cases = [
        ("prompt", PROMPT),
        ("one layout", Case { layouts: 1, ..PROMPT }),
        ("packed, rotated", Case { packed: true, rotary: Some(false), ..PROMPT }),
        ("pairs", Case { rotary: Some(true), layouts: 4, ..PROMPT }),
        ("step", step),
        ("step of a group", Case { heads: [6, 1], layouts: 3, rotary: Some(false), ..step }),
        ("three rows", Case { rows: 3, packed: true, ..step }),
        ("rows", Case { rows: 40, rotary: Some(false), ..step }),
        ("blocks of 128", Case { block: 128, rows: 9, ..step }),
        ("long prompt", Case { rows: 700, room: 704, lengths: [700, 640], total: 700, block: 64, ..PROMPT }),
    ];
    for (what, case) in cases {
        case.check(what);
    }
}

#[test]
fn half_types() {
    let case = PROMPT;
    let [begins, seen] = case.layout();
    let half = |value: Option<Value>| {
        let (shape, x) = elements::<f32>(&value.unwrap());
        t(&shape, &x.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>())
    };
    let short = |value: Option<Value>| {
        let (shape, x) = elements::<f32>(&value.unwrap());
        t(&shape, &x.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>())
    };
    let mut attributes = case.attributes();
    attributes.push(("sparse_block_size", Attribute::Int(16)));
    let shapes: [&[usize]; 5] = [&[2, 70, 64], &[2, 70, 32], &[2, 70, 32], &[2, 2, 96, 16], &[2, 2, 96, 16]];
    let rest = [begins, seen, i32s(&[1], &[70]), i32s(&[2], &[70, 51])];
    let run = |first: Vec<Option<Value>>| {
        let inputs = [first, rest.to_vec()].concat();
        run_in("com.microsoft", "SparseAttention", 1, &attributes, &inputs, 3).unwrap().remove(0)
    };
    let wide = run(shapes.iter().enumerate().map(|(i, shape)| random(i, shape)).collect());
    let narrow = run(shapes.iter().enumerate().map(|(i, shape)| half(random(i, shape))).collect());
    let rounded = run(shapes.iter().enumerate().map(|(i, shape)| short(random(i, shape))).collect());
    let wide = elements::<f32>(&wide).1;
    let both = elements::<f16>(&narrow).1.into_iter().zip(elements::<bf16>(&rounded).1);
    for (i, ((half, short), want)) in both.zip(wide).enumerate() {
        assert!((half.to_f32() - want).abs() < 4e-3, "element {i}: {half}, {want}");
        assert!((short.to_f32() - want).abs() < 4e-2, "element {i}: {short}, {want}");
    }
}

#[test]
fn wrong_values_are_refused() {
    let q = || random(1, &[1, 1, 32]);
    let kv = || random(2, &[1, 1, 16]);
    let past = || random(3, &[1, 1, 40, 16]);
    let run = |begins: Option<Value>, columns: Option<Value>, total: i32, length: i32, block: i64| {
        let attributes = [
            ("num_heads", Attribute::Int(2)),
            ("kv_num_heads", Attribute::Int(1)),
            ("sparse_block_size", Attribute::Int(block)),
        ];
        let (total, length) = (i32s(&[1], &[total]), i32s(&[1], &[length]));
        let inputs = [q(), kv(), kv(), past(), past(), begins, columns, total, length];
        run_in("com.microsoft", "SparseAttention", 1, &attributes, &inputs, 3).unwrap_err().to_string()
    };
    let good = || i32s(&[1, 3], &[0, 1, 2]);
    let columns = || i32s(&[1, 2], &[0, 1]);
    let cases = [
        (run(good(), columns(), 5, 5, 24), "sparse_block_size", "24", "16, 32, 64 and 128"),
        (run(i32s(&[1, 3], &[0, 2, 1]), columns(), 5, 5, 16), "block_row_indices has 1", "2 to 2", ""),
        (run(i32s(&[1, 3], &[0, 1, 3]), columns(), 5, 5, 16), "block_row_indices has 3", "1 to 2", ""),
        (run(i32s(&[1, 3], &[-1, 1, 2]), columns(), 5, 5, 16), "block_row_indices has -1", "0 to 2", ""),
        (run(good(), i32s(&[1, 2], &[0, 2]), 5, 5, 16), "block_col_indices has 2", "0 to 1", ""),
        (run(good(), i32s(&[1, 2], &[-1, 1]), 5, 5, 16), "block_col_indices has -1", "0 to 1", ""),
        (run(good(), columns(), 33, 33, 16), "total_sequence_length is 33", "0 to 32", "block_row_indices"),
        (run(good(), columns(), 41, 41, 16), "total_sequence_length is 41", "to 40", ""),
        (run(good(), columns(), 5, 6, 16), "key_total_sequence_lengths has 6", "1 to 5", ""),
        (run(good(), columns(), 5, -3, 16), "key_total_sequence_lengths has -3", "from 0", ""),
        (
            run(i32s(&[3, 2], &[0; 6]), columns(), 5, 5, 16),
            "block_row_indices",
            "3",
            "divisors of num_heads, 2",
        ),
        (run(i32s(&[1, 1], &[0]), columns(), 5, 5, 16), "block_row_indices", "1", "numbers from 2"),
        (run(i32s(&[2, 2], &[0; 4]), columns(), 5, 5, 16), "block_col_indices", "1", "allowed is 2"),
    ];
    for (error, name, given, allowed) in cases {
        for part in [name, given, allowed] {
            assert!(error.contains(part), "{error}: without {part}");
        }
    }
}
