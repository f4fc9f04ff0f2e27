//! Heads within the columns of wider matrices, on a device against the CPU's.

use crate::graph::Attribute;
use crate::tensor::{Bool, ElementType, Value};

use super::super::super::testing::both_in;
use super::super::super::testing::data::{mixed, tensor, tolerance};

const TYPES: [ElementType; 4] = [ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::F64];

fn ints(list: &[usize]) -> Attribute {
    Attribute::Ints(list.iter().map(|&n| n as i64).collect())
}

/// One matrix for queries, keys and values.
struct Packed {
    heads: [usize; 2],
    sizes: [usize; 2],
    offsets: [usize; 3],
    strides: [usize; 3],
    /// Batch and rows.
    shape: [usize; 2],
    rows_first: bool,
    columns: usize,
    mask: Option<&'static [usize]>,
}

const CASES: [Packed; 5] = [
    // Queries, keys and values one after another; groups of heads; heads one after another; odd sizes; values that are
    // smaller.
    Packed {
        heads: [4, 4],
        sizes: [64, 64],
        offsets: [0, 256, 512],
        strides: [64; 3],
        shape: [2, 70],
        rows_first: false,
        columns: 768,
        mask: Some(&[2, 1, 1, 70]),
    },
    Packed {
        heads: [4, 2],
        sizes: [32, 32],
        offsets: [0, 128, 192],
        strides: [32; 3],
        shape: [3, 33],
        rows_first: true,
        columns: 256,
        mask: None,
    },
    Packed {
        heads: [2, 2],
        sizes: [16, 16],
        offsets: [0, 16, 32],
        strides: [48; 3],
        shape: [2, 40],
        rows_first: false,
        columns: 96,
        mask: Some(&[1, 2, 40, 1]),
    },
    Packed {
        heads: [3, 3],
        sizes: [7, 7],
        offsets: [1, 22, 43],
        strides: [7; 3],
        shape: [1, 19],
        rows_first: true,
        columns: 65,
        mask: Some(&[19, 19]),
    },
    Packed {
        heads: [2, 1],
        sizes: [8, 5],
        offsets: [5, 21, 0],
        strides: [8, 8, 5],
        shape: [2, 3],
        rows_first: false,
        columns: 29,
        mask: None,
    },
];

#[test]
fn one_matrix_for_all() {
    for ty in TYPES {
        for (i, case) in CASES.iter().enumerate() {
            let [batch, rows] = case.shape;
            let shape = if case.rows_first { [rows, batch] } else { [batch, rows] };
            let x = || mixed(ty, &[shape[0], shape[1], case.columns]);
            let bits = |shape: &[usize]| {
                tensor(shape, (0..shape.iter().product()).map(|i: usize| Bool::from(i % 5 != 3)))
            };
            for float_mask in [false, true] {
                let mask =
                    case.mask.and_then(|shape| if float_mask { mixed(ty, shape) } else { bits(shape) });
                let inputs: Vec<Option<Value>> = vec![x(), x(), x(), mask];
                let attributes = [
                    ("q_num_heads", Attribute::Int(case.heads[0] as i64)),
                    ("kv_num_heads", Attribute::Int(case.heads[1] as i64)),
                    ("head_sizes", ints(&case.sizes)),
                    ("offsets", ints(&case.offsets)),
                    ("head_strides", ints(&case.strides)),
                    ("rows_first", Attribute::Int(i64::from(case.rows_first))),
                ];
                let Some(out) = both_in("rukh", "Attention", 1, &attributes, &inputs, 1) else { return };
                out.assert_close(&format!("{ty} case {i}"), tolerance(ty));
            }
        }
    }
}

#[test]
fn rotations_within_matrices() {
    for ty in TYPES {
        for (heads, size, offset, columns, own) in
            [(12, 64, 0, 1024, false), (3, 10, 7, 40, true), (1, 2, 4, 6, false)]
        {
            let attributes = [
                ("num_heads", Attribute::Int(heads)),
                ("head_size", Attribute::Int(size)),
                ("offset", Attribute::Int(offset)),
            ];
            let cache = || mixed(ty, &[if own { 3 } else { 1 }, 1, 5, size as usize]);
            let inputs = [mixed(ty, &[3, 5, columns]), cache(), cache()];
            let Some(out) = both_in("rukh", "RotaryEmbedding", 1, &attributes, &inputs, 1) else { return };
            out.assert_close(&format!("{ty} {heads} heads of {size}"), tolerance(ty));
        }
    }
}
