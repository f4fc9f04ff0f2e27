//! Text generation as exporters write it: a prompt, then token by token with caches of keys and values.

use super::{elements, environment, run, t};
use crate::model::testing::{ModelBuilder, floats, int, ints};
use crate::session::{Session, SessionOptions, Source};
use crate::tensor::ElementType::{F32, I64};
use crate::tensor::Value;

const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const SIZE: usize = 8;
const WIDTH: usize = 16;

fn fractions(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7 + i / 11) % 13) as f32 / 8.0 - 0.75).collect()
}

/// Queries, keys and values by one product, rotated attention with caches; the lengths come from a mask.
fn decoder() -> Vec<u8> {
    let columns = (HEADS + 2 * KV_HEADS) * SIZE;
    let of = |name: &str, dims: [usize; 2]| {
        floats(name, &dims.map(|n| n as i64), &fractions(dims.iter().product()))
    };
    let cache = ["b", "2", "past", "8"];
    let attributes =
        [int("num_heads", HEADS as i64), int("kv_num_heads", KV_HEADS as i64), int("do_rotary", 1)];
    ModelBuilder::new()
        .import("com.microsoft", 1)
        .input("x", F32, &["b", "s", "16"])
        .input("mask", I64, &["b", "total"])
        .input("past_k", F32, &cache)
        .input("past_v", F32, &cache)
        .initializer(of("w", [WIDTH, columns]))
        .initializer(of("cos", [32, SIZE / 2]))
        .initializer(of("sin", [32, SIZE / 2]))
        .initializer(ints("one", &[1], &[1]))
        .initializer(ints("axis", &[], &[1]))
        .node("MatMul", &["x", "w"], &["qkv"])
        .node_with("ReduceSum", &[int("keepdims", 0)], &["mask", "one"], &["counts"])
        .node("Sub", &["counts", "one"], &["last"])
        .node_with("Cast", &[int("to", 6)], &["last"], &["seqlens_k"])
        .node("Shape", &["mask"], &["shape"])
        .node_with("Gather", &[int("axis", 0)], &["shape", "axis"], &["all"])
        .node_with("Cast", &[int("to", 6)], &["all"], &["total_length"])
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

#[test]
fn a_decoder_runs_on_a_gpu_alone() {
    if let Some(reason) = crate::providers::hip::missing() {
        println!("skipped: no HIP device: {reason}");
        return;
    }
    let model = decoder();
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
