//! Which images go by Winograd's algorithm, and that all outputs are those of convolutions in `f32`.

use super::*;
use crate::graph::{Attribute, Attributes, Node, OpName};
use crate::kernel::CpuKernel;
use crate::ops;
use crate::tensor::{Tensor, Value, ValueType};
use crate::testing::{block_channels, elements, noise, run_on, t};
use crate::threads::Pool;

struct Case {
    x: [usize; 4],
    pads: [i64; 4],
    y: [usize; 4],
    transformed: bool,
}

const CHANNELS: usize = 96;

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { x: [1, 96, 35, 37], pads: [0, 1, 2, 1], y: [1, 96, 35, 37], transformed: true },
    // Whole vectors of outputs.
    Case { x: [1, 96, 32, 32], pads: [1; 4], y: [1, 96, 32, 32], transformed: true },
    Case { x: [2, 96, 35, 37], pads: [0, 1, 2, 1], y: [2, 96, 35, 37], transformed: false },
    Case { x: [1, 96, 8, 8], pads: [1; 4], y: [1, 96, 8, 8], transformed: false },
    Case { x: [0, 96, 35, 37], pads: [0, 1, 2, 1], y: [0, 96, 35, 37], transformed: false },
];

const KERNEL: [usize; 4] = [CHANNELS, CHANNELS, 3, 3];

fn some(seed: usize, shape: &[usize]) -> (Vec<usize>, Vec<bf16>) {
    let numbers = noise(seed, shape.iter().product());
    (shape.to_vec(), numbers.into_iter().map(bf16::from_f32).collect())
}

fn wide(numbers: &[bf16]) -> Vec<f32> {
    numbers.iter().map(|x| x.to_f32()).collect()
}

fn attributes(case: &Case) -> Vec<(&'static str, Attribute)> {
    let activation = Attribute::String(b"Relu".to_vec());
    vec![("pads", Attribute::Ints(case.pads.to_vec())), ("activation", activation)]
}

#[test]
fn sums_are_those_of_floats() {
    for case in CASES {
        let operands = [some(1, &case.x), some(2, &KERNEL), some(3, &[CHANNELS]), some(4, &case.y)];
        let floats = operands.each_ref().map(|(shape, x)| t(shape, &wide(x)));
        let run = |threads: usize, domain: &str, attributes: &[_], inputs: &[Option<Value>]| {
            let pool = Pool::new(threads);
            run_on(&pool, domain, "FusedConv", 1, attributes, inputs, &[1], 1).unwrap().remove(0)
        };
        let (_, want) = elements::<f32>(&run(2, "com.microsoft", &attributes(case), &floats));
        let largest = want.iter().fold(0.0f32, |a, b| a.max(b.abs()));
        for (threads, blocked) in [(1, false), (2, false), (1, true), (2, true)] {
            if blocked && !crate::blocks_channels(ElementType::BF16) {
                continue;
            }
            let block = |x: (Vec<usize>, Vec<bf16>)| if blocked { block_channels(x, 2) } else { x };
            let [x, w, bias, residual] = operands.clone();
            let inputs = [block(x), w, bias, block(residual)].map(|(shape, x)| t(&shape, &x));
            let mut attributes = attributes(case);
            let mut domain = "com.microsoft";
            if blocked {
                domain = "rukh";
                attributes.push(("channel_blocked_input", Attribute::Int(1)));
                attributes.push(("channel_blocked_output", Attribute::Int(1)));
            }
            let (shape, got) = elements::<bf16>(&run(threads, domain, &attributes, &inputs));
            let want = (case.y.to_vec(), want.clone());
            let (of_want, want) = if blocked { block_channels(want, 2) } else { want };
            assert_eq!(shape, of_want);
            for (got, want) in got.iter().zip(&want) {
                let off = (got.to_f32() - want).abs();
                let near = off <= want.abs() / 128.0 + largest * 1e-4;
                assert!(near, "{:?}, {threads} threads: {got} {want}", case.x);
            }
        }
    }
}

#[test]
fn one_large_image_is_transformed() {
    if !Bf16Pair::available() || has_tiles() {
        return;
    }
    let weight = Tensor::from_slice(&KERNEL, &some(2, &KERNEL).1).unwrap();
    for case in CASES {
        let ids = [0, 1].map(|i| Some(crate::graph::ValueId(i)));
        let list = attributes(case).into_iter().map(|(name, value)| (name.to_owned(), value));
        let node = Node {
            name: "test".into(),
            op: OpName { domain: "com.microsoft".into(), name: "FusedConv".into(), opset: 1 },
            attributes: Attributes(list.collect()),
            inputs: ids.to_vec(),
            outputs: vec![Some(crate::graph::ValueId(2))],
        };
        let (_, op) = ops::resolve(&node).unwrap();
        let ty = Some(ValueType::Tensor(ElementType::BF16));
        let context = NodeContext {
            provider: "CPU",
            domain: &node.op.domain,
            name: &node.op.name,
            op: &*op,
            input_types: &[ty.clone(), ty.clone()],
            output_types: &[ty],
            constants: &[None, Some(&weight)],
            pool: &Pool::new(1),
            packs: None,
        };
        let Ok(CpuKernel::Tensor(kernel)) = crate::build(&context) else { panic!("no kernel") };
        assert_eq!(kernel.algorithm(), "Winograd 3×3 of bfloat16 in f32");
        let inputs = [&case.x, &KERNEL].map(|shape| Some(Argument { shape, value: None }));
        let prepared = kernel.prepare(&inputs, &[Some(&case.y)]).unwrap();
        let state = prepared.state.as_ref().and_then(|state| state.downcast_ref::<State>());
        assert_eq!(matches!(state, Some(State::Rows(_))), case.transformed, "{:?}", case.x);
    }
}
