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
    /// Output channels.
    outputs: usize,
    pads: [i64; 4],
    /// Along each axis.
    area: [usize; 2],
    /// With one and with two threads.
    transformed: [bool; 2],
}

impl Case {
    fn y(&self) -> [usize; 4] {
        [self.x[0], self.outputs, self.area[0], self.area[1]]
    }

    fn kernel(&self) -> [usize; 4] {
        [self.outputs, self.x[1], 3, 3]
    }
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Vectors of channels that are not full, and an odd number of them.
    Case { x: [1, 36, 35, 37], outputs: 42, pads: [0, 1, 2, 1], area: [35, 37], transformed: [true, true] },
    // Whole vectors of outputs.
    Case { x: [1, 64, 32, 32], outputs: 64, pads: [1; 4], area: [32, 32], transformed: [true, true] },
    // Parts with tiles of several images.
    Case { x: [5, 48, 9, 14], outputs: 32, pads: [1; 4], area: [9, 14], transformed: [true, true] },
    Case { x: [2, 32, 35, 37], outputs: 96, pads: [0, 3, 0, 0], area: [33, 38], transformed: [true, true] },
    // A weight that is transformed by the first run.
    Case { x: [3, 192, 8, 8], outputs: 192, pads: [1; 4], area: [8, 8], transformed: [true, false] },
    // Outputs that read nothing but padding.
    Case { x: [1, 32, 3, 5], outputs: 32, pads: [9, 7, 6, 5], area: [16, 15], transformed: [true, false] },
    Case { x: [1, 32, 12, 12], outputs: 32, pads: [1; 4], area: [12, 12], transformed: [false, false] },
    Case { x: [0, 32, 35, 37], outputs: 32, pads: [0, 1, 2, 1], area: [35, 37], transformed: [false, false] },
];

fn some(seed: usize, shape: &[usize]) -> (Vec<usize>, Vec<bf16>) {
    let numbers = noise(seed, shape.iter().product());
    (shape.to_vec(), numbers.into_iter().map(bf16::from_f32).collect())
}

fn wide(numbers: &[bf16]) -> Vec<f32> {
    numbers.iter().map(|x| x.to_f32()).collect()
}

fn attributes(case: &Case, activation: &str) -> Vec<(&'static str, Attribute)> {
    let activation = Attribute::String(activation.into());
    vec![("pads", Attribute::Ints(case.pads.to_vec())), ("activation", activation)]
}

#[test]
fn sums_are_those_of_floats() {
    // All operands, and neither bias nor residual.
    let ways = [("Relu", 4), ("HardSwish", 2)];
    for (case, (activation, count)) in CASES.iter().flat_map(|case| ways.map(|way| (case, way))) {
        let operands =
            [some(1, &case.x), some(2, &case.kernel()), some(3, &[case.outputs]), some(4, &case.y())];
        let floats = operands.each_ref().map(|(shape, x)| t(shape, &wide(x)));
        let run =
            |threads: usize, domain: &str, attributes: &[_], inputs: &[Option<Value>], constants: &[_]| {
                let (pool, inputs) = (Pool::new(threads), &inputs[..count]);
                run_on(&pool, domain, "FusedConv", 1, attributes, inputs, constants, 1).unwrap().remove(0)
            };
        // Without a constant weight these are products of patches.
        let (_, want) =
            elements::<f32>(&run(2, "com.microsoft", &attributes(case, activation), &floats, &[]));
        let largest = want.iter().fold(0.0f32, |a, b| a.max(b.abs()));
        for (threads, blocked) in [(1, false), (2, false), (5, false), (1, true), (2, true), (5, true)] {
            if blocked && !crate::blocks_channels(ElementType::BF16) {
                continue;
            }
            let block = |x: (Vec<usize>, Vec<bf16>)| if blocked { block_channels(x, 2) } else { x };
            let [x, w, bias, residual] = operands.clone();
            let inputs = [block(x), w, bias, block(residual)].map(|(shape, x)| t(&shape, &x));
            let mut attributes = attributes(case, activation);
            let mut domain = "com.microsoft";
            if blocked {
                domain = "rukh";
                attributes.push(("channel_blocked_input", Attribute::Int(1)));
                attributes.push(("channel_blocked_output", Attribute::Int(1)));
            }
            let (shape, got) = elements::<bf16>(&run(threads, domain, &attributes, &inputs, &[1]));
            let want = (case.y().to_vec(), want.clone());
            let (of_want, want) = if blocked { block_channels(want, 2) } else { want };
            assert_eq!(shape, of_want);
            for (got, want) in got.iter().zip(&want) {
                let off = (got.to_f32() - want).abs();
                let near = off <= want.abs() / 128.0 + largest * 1e-4;
                assert!(near, "{:?} {activation}, {threads} threads: {got} {want}", case.x);
            }
        }
    }
}

/// Calls a function with what a kernel for a case is made from.
fn with_context<R>(case: &Case, pool: &Pool, function: impl FnOnce(&NodeContext<'_>) -> R) -> R {
    let weight = Tensor::from_slice(&case.kernel(), &some(2, &case.kernel()).1).unwrap();
    let ids = [0, 1].map(|i| Some(crate::graph::ValueId(i)));
    let list = attributes(case, "Relu").into_iter().map(|(name, value)| (name.to_owned(), value));
    let node = Node {
        name: "test".into(),
        op: OpName { domain: "com.microsoft".into(), name: "FusedConv".into(), opset: 1 },
        attributes: Attributes(list.collect()),
        inputs: ids.to_vec(),
        outputs: vec![Some(crate::graph::ValueId(2))],
    };
    let (_, op) = ops::resolve(&node).unwrap();
    let ty = Some(ValueType::Tensor(ElementType::BF16));
    function(&NodeContext {
        provider: "CPU",
        domain: &node.op.domain,
        name: &node.op.name,
        op: &*op,
        input_types: &[ty.clone(), ty.clone()],
        output_types: &[ty],
        constants: &[None, Some(&weight)],
        pool,
        packs: None,
    })
}

#[test]
fn enough_tiles_are_transformed() {
    if !available() {
        return;
    }
    for (case, threads) in CASES.iter().flat_map(|case| [(case, 1), (case, 2)]) {
        let kernel = with_context(case, &Pool::new(threads), crate::build);
        let Ok(CpuKernel::Tensor(kernel)) = kernel else { panic!("no kernel") };
        assert_eq!(kernel.algorithm(), "Winograd 3×3 of bfloat16 in f32");
        let kernel_shape = case.kernel();
        let inputs = [&case.x, &kernel_shape].map(|shape| Some(Argument { shape, value: None }));
        let prepared = kernel.prepare(&inputs, &[Some(&case.y())]).unwrap();
        let state = prepared.state.as_ref().and_then(|state| state.downcast_ref::<State>());
        let transformed = matches!(state, Some(State::Tiles(_)));
        assert_eq!(transformed, case.transformed[threads - 1], "{:?}, {threads} threads", case.x);
    }
}

#[test]
fn more_tiles_than_can_be_counted_are_not_transformed() {
    if !available() {
        return;
    }
    let kernel = with_context(&CASES[1], &Pool::new(1), Bf16Winograd::new).unwrap().unwrap();
    for images in [usize::MAX, usize::MAX >> 8] {
        assert!(kernel.plan(&[images, 64, 32, 32], &CASES[1].kernel()).unwrap().is_none());
    }
}

/// Two first runs at the same time use one transformed weight.
#[test]
fn large_weights_are_kept_once() {
    if !available() {
        return;
    }
    let case = CASES.iter().find(|case| case.outputs * case.x[1] > SMALL_WEIGHT).unwrap();
    let kernel = with_context(case, &Pool::new(2), Bf16Winograd::new).unwrap().unwrap();
    assert!(kernel.kernels.get().is_none());
    let start = std::sync::Barrier::new(2);
    let first = || {
        start.wait();
        std::ptr::from_ref(kernel.kernels(&Pool::new(2))).addr()
    };
    let [one, other] = std::thread::scope(|scope| {
        [scope.spawn(first), scope.spawn(first)].map(|thread| thread.join().unwrap())
    });
    assert_eq!(one, other);
}
