//! Text generation as exporters write it: a prompt, then token by token with caches of keys and values.

use super::graphs::{download, graphs, on_device, upload};
use super::on_hip::on_hip;
use super::{elements, environment, open, run, t};
use crate::model::testing::{ModelBuilder, floats, int, ints};
use crate::providers::hip::testing::no_device;
use crate::session::{Binding, RunOptions, Session, SessionOptions, Source, copy_tensor};
use crate::tensor::ElementType::{F32, I32, I64};
use crate::tensor::Value;

const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const SIZE: usize = 8;
const WIDTH: usize = 16;

fn fractions(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7 + i / 11) % 13) as f32 / 8.0 - 0.75).collect()
}

/// Queries, keys and values by one product, rotated attention with caches; the lengths come from a mask, or are given.
fn decoder(by_mask: bool) -> Vec<u8> {
    let columns = (HEADS + 2 * KV_HEADS) * SIZE;
    let of = |name: &str, dims: [usize; 2]| {
        floats(name, &dims.map(|n| n as i64), &fractions(dims.iter().product()))
    };
    let cache = ["b", "2", "past", "8"];
    let attributes =
        [int("num_heads", HEADS as i64), int("kv_num_heads", KV_HEADS as i64), int("do_rotary", 1)];
    let mut model = ModelBuilder::new().import("com.microsoft", 1).input("x", F32, &["b", "s", "16"]);
    model = match by_mask {
        true => model.input("mask", I64, &["b", "total"]),
        false => model.input("seqlens_k", I32, &["b"]).input("total_length", I32, &[]),
    };
    if by_mask {
        model = model
            .node_with("ReduceSum", &[int("keepdims", 0)], &["mask", "one"], &["counts"])
            .node("Sub", &["counts", "one"], &["last"])
            .node_with("Cast", &[int("to", 6)], &["last"], &["seqlens_k"])
            .node("Shape", &["mask"], &["shape"])
            .node_with("Gather", &[int("axis", 0)], &["shape", "axis"], &["all"])
            .node_with("Cast", &[int("to", 6)], &["all"], &["total_length"]);
    }
    model
        .input("past_k", F32, &cache)
        .input("past_v", F32, &cache)
        .initializer(of("w", [WIDTH, columns]))
        .initializer(of("cos", [160, SIZE / 2]))
        .initializer(of("sin", [160, SIZE / 2]))
        .initializer(ints("one", &[1], &[1]))
        .initializer(ints("axis", &[], &[1]))
        .node("MatMul", &["x", "w"], &["qkv"])
        .node_with(
            "com.microsoft.GroupQueryAttention",
            &attributes,
            &["qkv", "", "", "past_k", "past_v", "seqlens_k", "total_length", "cos", "sin"],
            &["y", "k", "v"],
        )
        .output("y")
        .output("k")
        .output("v")
        .bytes()
}

/// The same attention with lengths that the caller counts, between two products.
fn counted() -> ModelBuilder {
    between_products(Lengths::Given)
}

/// Where the lengths of such attention come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Lengths {
    Given,
    /// From a node before the product of queries, keys and values, or behind it, the last one with another shape.
    BeforeTheProduct,
    BehindTheProduct,
    Reshaped,
    /// Given, as the queries, keys and values are.
    FirstKernel,
}

pub(super) fn between_products(lengths: Lengths) -> ModelBuilder {
    let columns = (HEADS + 2 * KV_HEADS) * SIZE;
    let of = |name: &str, dims: [usize; 2]| {
        floats(name, &dims.map(|n| n as i64), &fractions(dims.iter().product()))
    };
    let cache = ["b", "2", "room", "8"];
    let attributes =
        [int("num_heads", HEADS as i64), int("kv_num_heads", KV_HEADS as i64), int("do_rotary", 1)];
    let (wide, narrow) = (["b", "s", "64"], ["b", "s", "16"]);
    let mut model = ModelBuilder::new()
        .import("com.microsoft", 1)
        .input("x", F32, if lengths == Lengths::FirstKernel { &wide } else { &narrow })
        .input("seqlens_k", I32, &["b"])
        .input("total_length", I32, &[])
        .input("past_k", F32, &cache)
        .input("past_v", F32, &cache)
        .initializer(of("w", [WIDTH, columns]))
        .initializer(of("o", [HEADS * SIZE, WIDTH]))
        .initializer(of("cos", [160, SIZE / 2]))
        .initializer(of("sin", [160, SIZE / 2]));
    let lengths_of = |model: ModelBuilder| model.node("Abs", &["seqlens_k"], &["abs"]);
    if lengths == Lengths::BeforeTheProduct {
        model = lengths_of(model);
    }
    if lengths != Lengths::FirstKernel {
        model = model.node("MatMul", &["x", "w"], &["qkv"]);
    }
    if [Lengths::BehindTheProduct, Lengths::Reshaped].contains(&lengths) {
        model = lengths_of(model);
    }
    if lengths == Lengths::Reshaped {
        model = model.initializer(ints("flat", &[1], &[-1])).node("Reshape", &["abs", "flat"], &["flat_abs"]);
    }
    let qkv = if lengths == Lengths::FirstKernel { "x" } else { "qkv" };
    let last = match lengths {
        Lengths::Given | Lengths::FirstKernel => "seqlens_k",
        Lengths::BeforeTheProduct | Lengths::BehindTheProduct => "abs",
        Lengths::Reshaped => "flat_abs",
    };
    model
        .node_with(
            "com.microsoft.GroupQueryAttention",
            &attributes,
            &[qkv, "", "", "past_k", "past_v", last, "total_length", "cos", "sin"],
            &["mixed", "k", "v"],
        )
        .node("MatMul", &["mixed", "o"], &["y"])
        .output("y")
        .output("k")
        .output("v")
}

/// A prompt and tokens with past and present in one buffer give what caches give that grow with each run; one plan
/// serves all lengths that the buffer has room for, and nothing beyond the rows of a run is written.
#[test]
fn a_buffer_for_past_and_present_has_one_plan() {
    const ROOM: usize = 12;
    let (session, grown) = (open(&counted()).unwrap(), open(&counted()).unwrap());
    let mut binding = Binding::new(&session);
    let full = [2, KV_HEADS, ROOM, SIZE];
    let caches = [0, 1].map(|_| t(&full, &vec![7.5f32; full.iter().product()]));
    for (i, cache) in caches.iter().enumerate() {
        binding.bind_input(3 + i, cache.clone());
        binding.bind_output(1 + i, cache.clone());
    }
    binding.bind_output_allocated(0);
    let mut others = [0, 1].map(|_| t::<f32>(&[2, KV_HEADS, 0, SIZE], &[]));
    let mut past = 0;
    for rows in [4, 1, 1, 1, 2] {
        let total = past + rows;
        let x = t(&[2, rows, WIDTH], &fractions(2 * rows * WIDTH));
        let (last, all) = (t(&[2], &[total as i32 - 1; 2]), t(&[], &[total as i32]));
        for (i, value) in [&x, &last, &all].into_iter().enumerate() {
            binding.bind_input(i, value.clone());
        }
        session.run_bound(&RunOptions::default(), &mut binding).unwrap();
        let [k, v] = others.clone();
        let want = run(&grown, &[x, last, all, k, v]).unwrap();
        let y = elements::<f32>(binding.output(0).unwrap());
        let close = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(close(&y, &elements::<f32>(&want[0])), "after {past} rows");
        for (cache, want) in caches.iter().zip(&want[1..]) {
            let (cache, want) = (elements::<f32>(cache), elements::<f32>(want));
            for (cache, want) in cache.chunks(ROOM * SIZE).zip(want.chunks(total * SIZE)) {
                assert!(close(&cache[..total * SIZE], want), "after {past} rows");
                assert!(cache[total * SIZE..].iter().all(|&x| x == 7.5), "after {past} rows");
            }
        }
        others = [want[1].clone(), want[2].clone()];
        past = total;
    }
    // One plan for each number of rows, whatever the length.
    assert_eq!(session.opened.program.plan_count(), 3);
    assert!(grown.opened.program.plan_count() > 3);
    binding.bind_input(2, t(&[], &[ROOM as i32 + 1]));
    assert!(session.run_bound(&RunOptions::default(), &mut binding).is_err());
}

#[test]
fn a_decoder_runs_on_a_gpu_alone() {
    if no_device() {
        return;
    }
    let model = decoder(true);
    let cpu = Session::open(environment(), Source::Bytes(&model), &SessionOptions::default()).unwrap();
    let mut options = SessionOptions::default();
    options.add_provider("ROCMExecutionProvider", Default::default()).unwrap();
    options.set("fallback", "error").unwrap();
    let gpu = Session::open(environment(), Source::Bytes(&model), &options).unwrap();
    let empty = || t::<f32>(&[2, KV_HEADS, 0, SIZE], &[]);
    let mut caches = [[empty(), empty()], [empty(), empty()]];
    let mut past = 0;
    for rows in [5, 1, 1, 3] {
        let total = past + rows;
        let x = t(&[2, rows, WIDTH], &fractions(2 * rows * WIDTH));
        let mask = t(&[2, total], &vec![1i64; 2 * total]);
        let mut results: Vec<Vec<Value>> = Vec::new();
        for (session, cache) in [&cpu, &gpu].into_iter().zip(&mut caches) {
            let [k, v] = cache.clone();
            let out = run(session, &[x.clone(), mask.clone(), k, v]).unwrap();
            *cache = [out[1].clone(), out[2].clone()];
            results.push(out);
        }
        for (i, (a, b)) in results[0].iter().zip(&results[1]).enumerate() {
            let (a, b) = (elements::<f32>(a), elements::<f32>(b));
            let close = a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-4 * a.abs().max(1.0));
            assert!(a.len() == b.len() && close, "output {i} after {past} rows: {a:?}, {b:?}");
        }
        past = total;
    }
    // A sample without any key after a past.
    for (session, [k, v]) in [&cpu, &gpu].into_iter().zip(caches) {
        let (x, mask) =
            (t(&[2, 1, WIDTH], &fractions(2 * WIDTH)), t(&[2, past + 1], &vec![0i64; 2 * (past + 1)]));
        assert!(run(session, &[x, mask, k, v]).is_err());
    }
}

/// Past and present of a cache are one buffer with room for all, and the run is told how many keys there are: every step
/// of one row is the same plan, recorded once.
#[test]
fn caches_that_stay_where_they_are() {
    const ROOM: usize = 150;
    let Some(options) = on_hip(&[]) else { return };
    let model = decoder(false);
    let open =
        |options: &SessionOptions| Session::open(environment(), Source::Bytes(&model), options).unwrap();
    let (cpu, gpu) = (open(&SessionOptions::default()), open(&options));
    let shape = [2, KV_HEADS, ROOM, SIZE];
    // What was never written must not count.
    let unwritten = t(&shape, &[f32::NAN; 2 * KV_HEADS * ROOM * SIZE]);
    let caches = [upload(&unwritten), upload(&unwritten)];
    let empty = || t::<f32>(&[2, KV_HEADS, 0, SIZE], &[]);
    let mut on_host = [empty(), empty()];
    let steps = [5, 1, 1, 1, 3, 1, 1, 90, 1, 1, 1];
    let mut inputs = steps.map(|rows| on_device(F32, &[2, rows, WIDTH]));
    let mut outputs = steps.map(|rows| on_device(F32, &[2, rows, HEADS * SIZE]));
    for at in 1..steps.len() {
        if let Some(same) = (0..at).find(|&other| steps[other] == steps[at]) {
            (inputs[at], outputs[at]) = (inputs[same].clone(), outputs[same].clone());
        }
    }
    let (mut past, last_of) = (0, upload(&t(&[2], &[0i32; 2])));
    for (at, rows) in steps.into_iter().enumerate() {
        let total = past + rows;
        let x = t(&[2, rows, WIDTH], &fractions(2 * rows * WIDTH + at)[at..]);
        let last = t(&[2], &[total as i32 - 1; 2]);
        let all = t(&[], &[total as i32]);
        let [k, v] = on_host.clone();
        let want = run(&cpu, &[x.clone(), last.clone(), all.clone(), k, v]).unwrap();
        on_host = [want[1].clone(), want[2].clone()];

        copy_tensor(x.as_tensor().unwrap(), &inputs[at]).unwrap();
        copy_tensor(last.as_tensor().unwrap(), &last_of).unwrap();
        let mut binding = Binding::new(&gpu);
        let given = [inputs[at].clone(), last_of.clone()].map(Value::Tensor);
        let given = given.into_iter().chain([all]).chain(caches.clone().map(Value::Tensor));
        given.enumerate().for_each(|(i, value)| binding.bind_input(i, value));
        let wanted = [outputs[at].clone(), caches[0].clone(), caches[1].clone()];
        wanted.into_iter().enumerate().for_each(|(i, tensor)| binding.bind_output(i, Value::Tensor(tensor)));
        gpu.run_bound(&RunOptions::default(), &mut binding).unwrap();
        let close = |got: &[f32], want: &[f32]| {
            got.len() == want.len()
                && got.iter().zip(want).all(|(g, w)| (g - w).abs() <= 1e-4 * w.abs().max(1.0))
        };
        let (got, want) = (download::<f32>(&outputs[at]), elements::<f32>(&want[0]));
        assert!(close(&got, &want), "step {at} of {rows} rows after {past}: {got:?}, {want:?}");
        for (cache, want) in caches.iter().zip(&on_host) {
            let (got, want) = (download::<f32>(cache), elements::<f32>(want));
            for head in 0..2 * KV_HEADS {
                let row = |all: &[f32], rows: usize| all[head * rows * SIZE..][..total * SIZE].to_vec();
                assert!(close(&row(&got, ROOM), &row(&want, total)), "cache of head {head} after step {at}");
            }
        }
        past = total;
    }
    // One of the plans came again: that of one row, for which nothing was recorded anew.
    assert_eq!(
        graphs(&gpu).iter().map(|(graphs, changes)| (*graphs, *changes)).collect::<Vec<_>>(),
        [(1, 0)]
    );
    // A length beyond the room is told.
    let last = t(&[2], &[ROOM as i32; 2]);
    copy_tensor(last.as_tensor().unwrap(), &last_of).unwrap();
    let mut binding = Binding::new(&gpu);
    let given = [inputs[1].clone(), last_of.clone()].map(Value::Tensor);
    let given = given.into_iter().chain([t(&[], &[0i32])]).chain(caches.clone().map(Value::Tensor));
    given.enumerate().for_each(|(i, value)| binding.bind_input(i, value));
    let wanted = [outputs[1].clone(), caches[0].clone(), caches[1].clone()];
    wanted.into_iter().enumerate().for_each(|(i, tensor)| binding.bind_output(i, Value::Tensor(tensor)));
    let error = gpu.run_bound(&RunOptions::default(), &mut binding).unwrap_err().to_string();
    assert!(error.contains("GroupQueryAttention"), "{error}");
}
