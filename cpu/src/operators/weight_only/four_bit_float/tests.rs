//! MatMulBlockQuantizedFp4Weight against its definition.

use crate::graph::Attribute;
use crate::tensor::{F8E4M3FN, Value, bf16, f16};
use crate::testing::{elements, run_in, t};

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i * 37 % 251) as u8).collect()
}

/// Bytes of scales from 1/8 to 15 or so, some of them negative.
fn scales(count: usize) -> Vec<u8> {
    (0..count).map(|i| 0x20 + (i * 11 % 57) as u8 + if i % 5 == 4 { 0x80 } else { 0 }).collect()
}

fn left(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 5 % 13) as f32 - 6.0) / 4.0).collect()
}

fn bias(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i as f32 - 2.0) / 2.0).collect()
}

const GLOBAL: f32 = 0.0625;

fn weight(code: u8) -> f64 {
    const MAGNITUDES: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    MAGNITUDES[usize::from(code & 7)] * if code & 8 == 0 { 1.0 } else { -1.0 }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    lead: &'static [usize],
    n: usize,
    k: usize,
    block: usize,
    bias: bool,
}

impl Case {
    fn inputs<T: crate::tensor::Element>(&self, of: &dyn Fn(f32) -> T) -> Vec<Option<Value>> {
        let &Case { lead, n, k, block, .. } = self;
        let x = |shape: &[usize], x: &[f32]| t(shape, &x.iter().map(|&x| of(x)).collect::<Vec<T>>());
        let (rows, blocks) = (lead.iter().product::<usize>(), k.div_ceil(block));
        vec![
            x(&[lead, &[k]].concat(), &left(rows * k)),
            t(&[n, k / 2], &bytes(n * k / 2)),
            t(&[n, blocks], &scales(n * blocks)),
            t(&[], &[GLOBAL]),
            t(&[1], &[3.0f32]),
            if self.bias { x(&[n], &bias(n)) } else { None },
        ]
    }

    fn run<T: crate::tensor::Element>(&self, of: &dyn Fn(f32) -> T) -> Value {
        let attributes = [("block_size", Attribute::Int(self.block as i64))];
        let name = "MatMulBlockQuantizedFp4Weight";
        run_in("com.microsoft", name, 1, &attributes, &self.inputs(of), 1).unwrap().remove(0)
    }

    fn defined(&self) -> Vec<f64> {
        let &Case { lead, n, k, block, .. } = self;
        let (rows, blocks) = (lead.iter().product::<usize>(), k.div_ceil(block));
        let (a, b, s) = (left(rows * k), bytes(n * k / 2), scales(n * blocks));
        let mut y = Vec::new();
        for (row, column) in (0..rows).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let mut sum = if self.bias { f64::from(bias(n)[column]) } else { 0.0 };
            for i in 0..k {
                let code = b[column * k / 2 + i / 2] >> (4 * (i % 2)) & 15;
                let scale = f64::from(F8E4M3FN(s[column * blocks + i / block]).to_f32() * GLOBAL);
                sum += f64::from(a[row * k + i]) * weight(code) * scale;
            }
            y.push(sum);
        }
        y
    }
}

#[test]
fn as_defined() {
    let plain = Case { lead: &[3], n: 5, k: 32, block: 16, bias: false };
    let cases = [
        plain,
        Case { bias: true, ..plain },
        Case { lead: &[2, 4], ..plain },
        Case { lead: &[], ..plain },
        Case { lead: &[0], ..plain },
        Case { n: 0, ..plain },
        Case { k: 0, bias: true, ..plain },
        Case { k: 70, ..plain },
        Case { k: 34, block: 7, bias: true, ..plain },
        Case { k: 64, block: 1000, ..plain },
        Case { lead: &[1], n: 67, k: 514, ..plain },
        Case { lead: &[33], n: 40, k: 288, bias: true, ..plain },
    ];
    for case in cases {
        let want = case.defined();
        let most = want.iter().fold(1.0f64, |most, x| most.max(x.abs()));
        let (shape, wide) = elements::<f32>(&case.run(&|x| x));
        assert_eq!(shape, [case.lead, &[case.n]].concat());
        let (half, short) = (case.run(&f16::from_f32), case.run(&bf16::from_f32));
        let rest = elements::<f16>(&half).1.into_iter().zip(elements::<bf16>(&short).1);
        for (i, ((wide, (half, short)), want)) in wide.iter().zip(rest).zip(&want).enumerate() {
            assert!((f64::from(*wide) - want).abs() < 1e-5 * most, "{case:?} at {i}: {wide}, {want}");
            assert!((half.to_f64() - want).abs() < 1e-3 * most, "{case:?} at {i}: {half}, {want}");
            assert!((short.to_f64() - want).abs() < 8e-3 * most, "{case:?} at {i}: {short}, {want}");
        }
    }
}

#[test]
fn wrong_inputs_are_refused() {
    let case = Case { lead: &[3], n: 5, k: 32, block: 16, bias: true };
    let with = |i: usize, value: Option<Value>, block: i64| {
        let mut inputs = case.inputs(&|x| x);
        inputs[i] = value;
        let attributes = [("block_size", Attribute::Int(block))];
        let name = "MatMulBlockQuantizedFp4Weight";
        run_in("com.microsoft", name, 1, &attributes, &inputs, 1).unwrap_err().to_string()
    };
    let b = || t(&[5, 16], &bytes(80));
    let cases = [
        (with(1, b(), 0), ["block_size", "0 is not allowed"]),
        (with(1, b(), -16), ["block_size", "-16"]),
        (with(1, b(), 8), ["weight_scale", "allowed is 4"]),
        (with(0, t(&[3, 31], &left(93)), 16), ["(A)", "31"]),
        (with(0, t(&[], &left(1)), 16), ["(A)", "rank is 0"]),
        (with(1, t(&[80], &bytes(80)), 16), ["(B)", "allowed is 2"]),
        (with(2, t(&[4, 2], &bytes(8)), 16), ["weight_scale", "allowed is 5"]),
        (with(3, t(&[2], &left(2)), 16), ["weight_scale_2", "2 elements; allowed are 1"]),
        (with(4, t(&[2], &left(2)), 16), ["input_scale", "2 elements"]),
        (with(5, t(&[4], &left(4)), 16), ["bias", "allowed is 5"]),
    ];
    for (error, parts) in &cases {
        for part in parts {
            assert!(error.contains(part), "{error}: without {part}");
        }
    }
}
