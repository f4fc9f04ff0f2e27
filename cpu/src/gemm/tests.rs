//! Products of every kind of operand against the definition, summed in f64.

use super::*;
use crate::ops::activation::Activation;
use crate::tensor::{bf16, f16};
use crate::testing::{elements, run_constant, t};
use crate::threads::Pool;

/// Small integers, so that every type computes exactly.
fn numbers(count: usize, seed: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 7 + seed * 13 + i / 11) % 9) as f64 - 4.0).collect()
}

fn reference(batch: usize, m: usize, n: usize, k: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; batch * m * n];
    for t in 0..batch {
        for i in 0..m {
            for j in 0..n {
                out[(t * m + i) * n + j] =
                    (0..k).map(|p| a[(t * m + i) * k + p] * b[(t * k + p) * n + j]).sum();
            }
        }
    }
    out
}

fn transpose(x: &[f64], batch: usize, rows: usize, columns: usize) -> Vec<f64> {
    let mut out = vec![0.0; x.len()];
    for t in 0..batch {
        for i in 0..rows {
            for j in 0..columns {
                out[(t * columns + j) * rows + i] = x[(t * rows + i) * columns + j];
            }
        }
    }
    out
}

const SIZES: [(usize, usize, usize, usize); 18] = [
    (1, 1, 1, 1),
    (2, 3, 5, 7),
    (1, 1, 700, 300),
    (1, 300, 1, 520),
    (1, 130, 1100, 257),
    (3, 20, 70, 40),
    (1, 5, 6, 0),
    (1, 0, 6, 3),
    (1, 1000, 33, 64),
    // Few rows, whose products with contiguous columns are dot products.
    (3, 1, 9, 64),
    (2, 4, 37, 150),
    (1, 2, 130, 300),
    // Depths of several parts.
    (1, 1, 9, 5000),
    (1, 3, 9, 2100),
    // A single row of several tiles.
    (1, 1, 4300, 20),
    // The last columns as dot products.
    (2, 49, 49, 32),
    (1, 20, 37, 43),
    (1, 9, 49, 300),
];

fn check<C: Compute + Store<Compute = C> + num_traits::AsPrimitive<f64>>(from: impl Fn(f64) -> C + Copy) {
    let pool = Pool::new(2);
    for (batch, m, n, k) in SIZES {
        let (a, b) = (numbers(batch * m * k, 1), numbers(batch * k * n, 2));
        let want = reference(batch, m, n, k, &a, &b);
        let cast = |v: &[f64]| v.iter().map(|&x| from(x)).collect::<Vec<C>>();
        let (a_rows, b_rows) = (cast(&a), cast(&b));
        let (a_cols, b_cols) = (cast(&transpose(&a, batch, m, k)), cast(&transpose(&b, batch, k, n)));
        let (sa, sb) = (Offsets::Stride(m * k), Offsets::Stride(k * n));
        let matrices_a: Vec<_> = (0..batch).map(|t| Matrix::new(&a_rows[t * m * k..], k)).collect();
        let matrices_b: Vec<_> = (0..batch).map(|t| Matrix::transposed(&b_cols[t * k * n..], k)).collect();
        let packed_a = PackedA::new(&matrices_a, m, k, (&pool).into(), false);
        let packed_b = PackedB::new(&matrices_b, k, n, (&pool).into(), false);
        let lefts = [
            Left::Plain(Matrix::new(&a_rows, k), sa),
            Left::Plain(Matrix::transposed(&a_cols, m), sa),
            Left::Packed(&packed_a, Offsets::Stride(1)),
        ];
        let rights = [
            Right::Plain(Matrix::new(&b_rows, n), sb),
            Right::Plain(Matrix::transposed(&b_cols, k), sb),
            Right::Packed(&packed_b, Offsets::Stride(1)),
        ];
        for (x, a) in lefts.into_iter().enumerate() {
            for (y, b) in rights.into_iter().enumerate() {
                let mut out = vec![from(99.0); batch * m * n];
                let epilogue = FusedEpilogue::new(&mut out, m, n);
                multiply(&pool, &Product { batch, m, n, k, a, b }, &epilogue);
                let out: Vec<f64> = out.iter().map(|x| x.as_()).collect();
                assert_eq!(out, want, "{batch} × {m} × {n} × {k}, operands {x} and {y}");
            }
        }
    }
}

/// Blocks whose columns are an odd number of units, on several threads.
#[test]
fn packed_blocks_are_cut_evenly() {
    let number = |i: usize, seed: usize| bf16::from_f32(((i * 31 + seed) % 7) as f32 - 3.0);
    for (m, k, n) in [(64, 40, 896), (33, 300, 640), (197, 24, 1408)] {
        let a: Vec<bf16> = (0..m * k).map(|i| number(i, 1)).collect();
        let b: Vec<bf16> = (0..k * n).map(|i| number(i, 2)).collect();
        let inputs = [t(&[m, k], &a), t(&[k, n], &b)];
        let out = run_constant("", "MatMul", 13, &[], &inputs, &[1], 1).unwrap();
        for (i, got) in elements::<bf16>(&out[0]).1.iter().enumerate() {
            let (i, j) = (i / n, i % n);
            let want: f32 = (0..k).map(|p| a[i * k + p].to_f32() * b[p * n + j].to_f32()).sum();
            assert_eq!(*got, bf16::from_f32(want), "{m} {k} {n}: {i} {j}");
        }
    }
}

#[test]
fn every_pair_of_operands() {
    check::<f32>(|x| x as f32);
    check::<f64>(|x| x);
    check::<i32>(|x| x as i32);
    check::<i64>(|x| x as i64);
}

#[test]
fn half_types_convert_on_the_way() {
    let pool = Pool::new(2);
    let (m, n, k) = (30, 600, 300);
    let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
    let want = reference(1, m, n, k, &a, &b);
    let a: Vec<f16> = a.iter().map(|&x| f16::from_f64(x)).collect();
    let b: Vec<f16> = transpose(&b, 1, k, n).iter().map(|&x| f16::from_f64(x)).collect();
    let a = InMemory { matrix: Matrix::new(&a, k), offsets: Offsets::Stride(0) };
    let b = InMemory { matrix: Matrix::transposed(&b, k), offsets: Offsets::Stride(0) };
    let mut out = vec![bf16::ZERO; m * n];
    let epilogue = FusedEpilogue::new(&mut out, m, n);
    multiply(&pool, &Product { batch: 1, m, n, k, a: a.left(), b: b.right() }, &epilogue);
    let want: Vec<bf16> = want.iter().map(|&x| bf16::from_f64(x)).collect();
    assert_eq!(out, want);
}

#[test]
fn epilogue_scales_adds_and_activates() {
    let pool = Pool::new(2);
    let (a, b) = ([1.0f32, -2.0, 3.0, 4.0], [1.0f32, 0.0, 2.0, -1.0]);
    // The product is [[-3, 2], [11, -4]].
    let (bias, residual) = ([10.0f32, 20.0], [1.0f32, 2.0, 3.0, 4.0]);
    let mut out = [0.0f32; 4];
    let mut epilogue = FusedEpilogue::new(&mut out, 2, 2);
    epilogue.alpha = 2.0;
    let whole = Offsets::Stride(0);
    epilogue.addends = [
        Some(Addend { data: &bias, offsets: whole, row_stride: 1, column_stride: 0, scale: 1.0 }),
        Some(Addend { data: &residual, offsets: whole, row_stride: 2, column_stride: 1, scale: -1.0 }),
    ];
    epilogue.activation = Activation::Clip { min: 4.0, max: 30.0 };
    let product = Product {
        batch: 1,
        m: 2,
        n: 2,
        k: 2,
        a: Left::Plain(Matrix::new(&a, 2), whole),
        b: Right::Plain(Matrix::new(&b, 2), whole),
    };
    multiply(&pool, &product, &epilogue);
    assert_eq!(out, [4.0, 12.0, 30.0, 8.0]);
}

/// Constants of half types that are kept as they are.
#[test]
fn weights_of_half_types() {
    use super::halves::HalfWeight;
    let pool = Pool::new(3);
    let number = |i: usize, seed: usize| ((i * 7 + seed * 13 + i / 11) % 9) as f32 - 4.0;
    for (batch, m, n, k) in [
        (1, 1, 1, 1),
        (1, 1, 70, 33),
        (1, 3, 32, 64),
        (2, 4, 100, 7),
        (1, 40, 50, 700),
        (3, 111, 97, 20),
        (1, 5, 9, 0),
    ] {
        let a: Vec<f32> = (0..batch * m * k).map(|i| number(i, 1)).collect();
        let b: Vec<f32> = (0..k * n).map(|i| number(i, 2)).collect();
        let want: Vec<f32> = (0..batch * m * n)
            .map(|i| (0..k).map(|p| a[i / n * k + p] * b[p * n + i % n]).sum::<f32>() + 1.0)
            .collect();
        for (bfloat16, transposed) in [(false, false), (false, true), (true, false), (true, true)] {
            let bits: Vec<u16> = (0..k * n)
                .map(|i| if transposed { b[i % k * n + i / k] } else { b[i] })
                .map(|x| if bfloat16 { bf16::from_f32(x).to_bits() } else { f16::from_f32(x).to_bits() })
                .collect();
            let weight = HalfWeight::new(&bits, bfloat16, transposed, (k, n), (&pool).into());
            let left = Left::Plain(Matrix::new(&a, k), Offsets::Stride(m * k));
            // The right operand is not looked at.
            let b = Right::Plain(Matrix::new(&b, n), Offsets::Stride(0));
            let mut y = vec![0.0; batch * m * n];
            let one = [1.0];
            let mut epilogue = FusedEpilogue::new(&mut y, m, n);
            epilogue.addends[0] = Some(Addend {
                data: &one[..],
                offsets: Offsets::Stride(0),
                row_stride: 0,
                column_stride: 0,
                scale: 1.0,
            });
            weight.multiply(&pool, &Product { batch, m, n, k, a: left, b }, &epilogue);
            assert_eq!(y, want, "{batch} × {m} × {n} × {k}, bfloat16 {bfloat16}, transposed {transposed}");
        }
    }
}

/// Writes rows of a tile at once and one by one, with these addends.
fn check_rows<O: Store<Compute = C>, C: Compute + num_traits::AsPrimitive<f64>>(
    from: impl Fn(f64) -> C + Copy,
    strides: [Option<(usize, usize, f32)>; 2],
    (alpha, activation): (f32, Activation),
) {
    let (batch, m, n) = (2, 23, 70);
    let terms: Vec<O> = numbers(batch * m * n, 3).iter().map(|&x| O::store(from(x))).collect();
    let addends = strides.map(|strides| {
        let (row_stride, column_stride, scale) = strides?;
        Some(Addend { data: &terms, offsets: Offsets::Stride(5), row_stride, column_stride, scale })
    });
    for (rows, columns) in [(0..m, 0..n), (3..20, 16..65), (22..23, 69..70), (4..12, 0..33)] {
        let sums: Vec<C> = numbers(rows.len() * columns.len(), 4).into_iter().map(from).collect();
        let written = |at_once: bool| {
            let mut out = vec![O::store(from(7.0)); batch * m * n];
            let mut epilogue = FusedEpilogue::new(&mut out, m, n);
            (epilogue.alpha, epilogue.addends, epilogue.activation) = (alpha, addends, activation);
            let mut sums = sums.clone();
            if at_once {
                epilogue.write_rows(1, rows.start, (columns.start, columns.len()), &mut sums);
            } else {
                for (row, sums) in rows.clone().zip(sums.chunks_exact_mut(columns.len())) {
                    epilogue.write(1, row, columns.start, sums);
                }
            }
            out.iter().map(|x| num_traits::AsPrimitive::<f64>::as_(x.load())).collect::<Vec<f64>>()
        };
        assert_eq!(
            written(true),
            written(false),
            "{strides:?}, {alpha}, {activation:?}, {rows:?} × {columns:?}"
        );
    }
}

#[test]
fn rows_at_once_are_those_one_by_one() {
    let bias = Some((0, 1, 1.0));
    for activation in [Activation::Identity, Activation::Relu, Activation::Gelu { tanh: false }] {
        for strides in [
            [None, None],
            [bias, None],
            [None, bias],
            [bias, Some((70, 1, 1.0))],
            [Some((0, 1, 0.5)), None],
            [Some((1, 0, 1.0)), None],
            [Some((70, 1, 1.0)), None],
        ] {
            for alpha in [1.0, 2.0] {
                check_rows::<f32, _>(|x| x as f32, strides, (alpha, activation));
                check_rows::<f64, _>(|x| x, strides, (alpha, activation));
                check_rows::<bf16, _>(|x| x as f32, strides, (alpha, activation));
            }
        }
    }
}
