use super::kind::Kind;
use super::product::{Way, by_way, floats_memory, way};
use super::*;
use crate::kernel::KernelContext;
use crate::loops::simd::vector_len;
use crate::tensor::Buffer;
use crate::threads::Pool;

/// Numbers of a linear congruential generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    fn float(&mut self) -> f32 {
        self.next() as f32 / (1u64 << 30) as f32 - 1.0
    }
}

struct Case {
    op: MatMulNBits,
    m: usize,
    a: Vec<f32>,
    data: Vec<u8>,
    scales: Vec<f32>,
    zeros: Vec<u8>,
    typed: Vec<f32>,
    bias: Vec<f32>,
}

impl Case {
    fn new((bits, block): (usize, usize), (m, n, k): (usize, usize, usize), seed: u64) -> Self {
        let op = MatMulNBits { n, k, block, bits, left_bits: 8 };
        let (blocks, mut random) = (n * op.blocks(), Random(seed));
        Case {
            op,
            m,
            a: (0..m * k).map(|i| random.float() * if i % k / block % 2 == 0 { 1.0 } else { 40.0 }).collect(),
            data: (0..blocks * block * bits / 8).map(|_| random.next() as u8).collect(),
            // All of them float16 in every other case.
            scales: (0..blocks)
                .map(|_| random.float() + 1.5)
                .map(|x| if seed.is_multiple_of(2) { f16::from_f32(x).to_f32() } else { x })
                .collect(),
            zeros: (0..n * op.zero_bytes()).map(|_| random.next() as u8).collect(),
            typed: (0..blocks).map(|_| random.float() * 9.0).collect(),
            bias: (0..n).map(|_| random.float()).collect(),
        }
    }

    fn weights(&self, zeros: usize) -> NBits<'_, f32> {
        let zeros = match zeros {
            0 => Zeros::Middle((1 << (self.op.bits - 1)) as f32),
            1 => Zeros::Packed(&self.zeros),
            _ => Zeros::F32(&self.typed),
        };
        NBits { op: self.op, data: &self.data, scales: &self.scales, zeros, groups: None }
    }

    fn packed(&self, way: Way, packed: &Packed<f32>, pool: &Pool) -> Vec<f32> {
        let mut y = vec![f32::NAN; self.m * self.op.n];
        let scratch = Buffer::zeroed(scratch(&self.op, self.m).max(floats_memory(&self.op, self.m))).unwrap();
        let cx = KernelContext::new(pool, None);
        // SAFETY: the buffer is this call's own, aligned and of this length.
        let cx = unsafe { cx.prepared(None, scratch.as_ptr(), scratch.len()) };
        by_way(&cx, way, self.m, &self.a, packed, Some(&self.bias), &mut y);
        y
    }

    /// By the operator's definition, in `f64`, with each block of A rounded to integers up to `most`, if any.
    fn by_definition(&self, weights: &NBits<'_, f32>, most: Option<f32>) -> Vec<f64> {
        let &Case { op, m, .. } = self;
        let bytes = op.blocks() * op.block * op.bits / 8;
        let mut y = vec![0.0; m * op.n];
        for (row, a) in self.a.chunks_exact(op.k).enumerate() {
            let largest = |block: &[f32]| block.iter().fold(0.0f32, |most, x| most.max(x.abs()));
            let a: Vec<f64> = a
                .chunks(op.block)
                .flat_map(|block| {
                    let step = most.map(|most| f64::from(largest(block) / most));
                    block.iter().map(move |&x| match step {
                        Some(step) => (f64::from(x) / step).round() * step,
                        None => f64::from(x),
                    })
                })
                .collect();
            for column in 0..op.n {
                let terms = a.iter().enumerate().map(|(depth, a)| {
                    let bit = depth * op.bits;
                    let byte = u32::from(self.data[column * bytes + bit / 8]);
                    let number = byte >> (bit % 8) & ((1 << op.bits) - 1);
                    let (scale, zero) = weights.scale_and_zero(column, depth / op.block);
                    a * (f64::from(number) - f64::from(zero)) * f64::from(scale)
                });
                y[row * op.n + column] = terms.sum::<f64>() + f64::from(self.bias[column]);
            }
        }
        y
    }
}

/// The root of the mean square of the differences, over that of the wanted numbers.
fn error(y: &[f32], want: &[f64]) -> f64 {
    let squares = |of: &dyn Fn(usize) -> f64| (0..want.len()).map(|i| of(i) * of(i)).sum::<f64>();
    (squares(&|i| f64::from(y[i]) - want[i]) / squares(&|i| want[i])).sqrt()
}

/// All that this machine has.
fn ways() -> Vec<Way> {
    let kinds = Kind::all().into_iter().filter(|kind| *kind != Kind::Missing);
    let integers = kinds.flat_map(|kind| [Way::Bytes(kind), Way::Pairs(kind)]);
    std::iter::once(Way::Floats).chain(integers).collect()
}

/// Which way the processor takes follows from what A may be rounded to, and from the rows where vectors are short.
#[test]
fn ways_by_bits_of_a() {
    let kind = Kind::of_machine();
    if kind == Kind::Missing {
        return;
    }
    let op = Case::new((4, 32), (1, 16, 64), 1).op;
    let of = |left_bits: usize, m: usize| way(&MatMulNBits { left_bits, ..op }, m);
    let pairs = if kind.lanes() == vector_len() { Way::Pairs(kind) } else { Way::Floats };
    assert_eq!([of(8, 1), of(16, 1), of(32, 1)], [Way::Bytes(kind), pairs, Way::Floats]);
    let many = if kind.lanes() == 16 { pairs } else { Way::Floats };
    assert_eq!([of(8, 999), of(16, 999), of(32, 999)], [Way::Bytes(kind), many, Way::Floats]);
}

const SIZES: [(usize, usize, usize); 5] =
    [(1, 1, 16), (1, 33, 100), (2, 16, 256), (7, 40, 300), (16, 17, 31)];

#[test]
fn every_form_with_every_instruction_set() {
    let pool = Pool::new(3);
    for bits in [2, 4, 8] {
        for block in [16, 32, 64, 128, 256] {
            for (i, size) in SIZES.into_iter().enumerate() {
                let case = Case::new((bits, block), size, (bits * block + i) as u64);
                for zeros in 0..3 {
                    let weights = case.weights(zeros);
                    let packed = Packed::new(&weights, (&pool).into());
                    assert_eq!(matches!(packed.scales, Scales::Halves(_)), i % 2 == 0);
                    let told = format!("{bits} bits, blocks of {block}, {size:?}, zero points {zeros}");
                    let exact = case.by_definition(&weights, None);
                    let rounded = [127.0, 32767.0].map(|most| case.by_definition(&weights, Some(most)));
                    for way in ways() {
                        // A number half way between two integers may be rounded to either.
                        let (want, most) = match way {
                            Way::Floats => (&exact, 2e-5),
                            Way::Bytes(_) => (&rounded[0], 2e-3),
                            Way::Pairs(_) => (&rounded[1], 2e-5),
                        };
                        let distance = error(&case.packed(way, &packed, &pool), want);
                        assert!(distance < most, "{told}, {way:?}: {distance}");
                        // Integers of 16 bits are near what was not rounded, also where terms cancel each other.
                        if matches!(way, Way::Pairs(_)) {
                            let distance = error(&case.packed(way, &packed, &pool), &exact);
                            assert!(distance < 1e-3, "{told}, {way:?}: {distance}");
                        }
                    }
                }
            }
        }
    }
}

/// In blocks of rows, with rests.
#[test]
fn many_rows() {
    let pool = Pool::new(3);
    for (i, m) in [17, 255, 259, 514].into_iter().enumerate() {
        for bits in [2, 4, 8] {
            let case = Case::new((bits, 32), (m, 35, 100), (10 * bits + i) as u64);
            let weights = case.weights(1);
            let packed = Packed::new(&weights, (&pool).into());
            let [bytes, pairs] = [127.0, 32767.0].map(|most| case.by_definition(&weights, Some(most)));
            for way in ways() {
                let (want, most) = match way {
                    Way::Bytes(_) => (&bytes, 2e-3),
                    _ => (&pairs, 2e-5),
                };
                let distance = error(&case.packed(way, &packed, &pool), want);
                assert!(distance < most, "{m} rows, {bits} bits, {way:?}: {distance}");
            }
        }
    }
}

/// Where sums of products of bytes would not fit 16 bits, and sums of a block, in the largest that is taken, hardly fit 32.
#[test]
fn the_largest_integers_do_not_saturate() {
    let pool = Pool::new(1);
    for (bits, block) in [(2, 16384), (4, 4096), (8, 256)] {
        let mut case = Case::new((bits, block), (9, 3, 2 * block), 1);
        assert!(pairs::fit(&case.op));
        assert!(!pairs::fit(&MatMulNBits { block: 2 * block, ..case.op }));
        case.data.fill(0xff);
        for sign in [1.0, -1.0] {
            case.a.fill(sign);
            let weights = case.weights(1);
            let packed = Packed::new(&weights, (&pool).into());
            let want = case.by_definition(&weights, None);
            for way in ways() {
                let distance = error(&case.packed(way, &packed, &pool), &want);
                assert!(distance < 1e-6, "{bits} bits, {way:?}: {distance}");
            }
        }
    }
}

#[test]
fn rows_of_zeros_and_of_no_numbers() {
    let pool = Pool::new(1);
    let mut case = Case::new((4, 32), (4, 20, 64), 5);
    case.a[..64].fill(0.0);
    case.a[64..128].fill(1e-42);
    case.a[130] = f32::NAN;
    case.a[200] = f32::INFINITY;
    let packed = Packed::new(&case.weights(0), (&pool).into());
    for way in ways() {
        let y = case.packed(way, &packed, &pool);
        let bias = &case.bias[..];
        assert_eq!(&y[..20], bias, "{way:?}");
        assert!(y[20..40].iter().zip(bias).all(|(y, x)| (y - x).abs() < 1e-30), "{way:?}");
        assert!(y[40..].iter().all(|y| !y.is_finite()), "{way:?}: {:?}", &y[40..]);
    }
}

#[test]
fn columns_are_those_of_the_weight() {
    let pool = Pool::new(2);
    for bits in [2, 4, 8] {
        let case = Case::new((bits, 32), (1, 50, 700), bits as u64);
        let weights = case.weights(1);
        let packed = Packed::new(&weights, (&pool).into());
        for (rows, width) in [(0..16, 16), (5..21, 20), (30..50, 48), (49..50, 8)] {
            for depths in [0..700, 512..700, 64..65] {
                let mut out = vec![0.0; depths.len() * width];
                Weights::panel(&packed, rows.clone(), depths.clone(), width, &mut out);
                let own: Vec<f32> =
                    out.chunks(width).flat_map(|line| line[..rows.len()].iter().copied()).collect();
                let (row, mut want) = (rows.clone(), vec![0.0; own.len()]);
                let mut line = vec![0.0; depths.len()];
                for (at, row) in row.enumerate() {
                    Weights::unpack(&weights, row, depths.clone(), &mut line);
                    line.iter().enumerate().for_each(|(depth, x)| want[depth * rows.len() + at] = *x);
                }
                assert_eq!(own, want, "{bits} bits, rows {rows:?}, depths {depths:?}");
            }
        }
    }
}
