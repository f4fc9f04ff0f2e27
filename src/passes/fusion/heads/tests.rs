//! Attention's operands in the forms of exporters.

use super::super::super::testing::GraphBuilder;
use super::super::testing::{assert_fused, fused};
use crate::graph::Attribute;

fn perm(perm: &[i64]) -> [(&'static str, Attribute); 1] {
    [("perm", Attribute::Ints(perm.to_vec()))]
}

#[test]
fn heads_beside_each_other() {
    let builder = |join: &[i64]| {
        GraphBuilder::new()
            .input("q", &["2", "5", "8"])
            .input("k", &["2", "7", "8"])
            .ints("split", &[4], &[2, -1, 2, 4])
            .ints("join", &[join.len()], join)
            .node("Reshape", &["q", "split"], &["qs"])
            .node("Reshape", &["k", "split"], &["ks"])
            .node_with("Transpose", &perm(&[0, 2, 1, 3]), &["qs"], &["qh"])
            .node_with("Transpose", &perm(&[0, 2, 3, 1]), &["ks"], &["kt"])
            .node_with("Transpose", &perm(&[0, 2, 1, 3]), &["ks"], &["vh"])
            .node("MatMul", &["qh", "kt"], &["scores"])
            .node("Softmax", &["scores"], &["w"])
            .node("MatMul", &["w", "vh"], &["o"])
            .node_with("Transpose", &perm(&[0, 2, 1, 3]), &["o"], &["ot"])
            .node("Reshape", &["ot", "join"], &["y"])
            .output("y")
    };
    let attention = "float[2, 5, 8] = Attention<q_num_heads=2, kv_num_heads=2, scale=1.0>(q, k, k)";
    assert_fused(builder(&[2, 5, 8]), &[&format!("y: {attention}"), "return y"]);
    assert_fused(
        builder(&[-1, 8]),
        &[
            &format!("Reshape_node/Attention: {attention}"),
            "y: float[10, 8] = Reshape(Reshape_node/Attention, join)",
            "return y",
        ],
    );
}

fn some(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i * 37 % 64) as f32 / 64.0 - 0.5).collect()
}

/// Attention of `[batch, heads, rows, size]`, and its result as rows of all heads.
fn attend(builder: GraphBuilder, [q, k, v]: [&str; 3], join: &[i64]) -> GraphBuilder {
    builder
        .ints("join", &[join.len()], join)
        .node_with("Transpose", &perm(&[0, 1, 3, 2]), &[k], &["kt"])
        .node("MatMul", &[q, "kt"], &["scores"])
        .node("Softmax", &["scores"], &["w"])
        .node("MatMul", &["w", v], &["o"])
        .node_with("Transpose", &perm(&[0, 2, 1, 3]), &["o"], &["ot"])
        .node("Reshape", &["ot", "join"], &["y"])
        .output("y")
}

fn packed(scale: &str, offsets: &str, strides: &str, x: &str) -> String {
    format!(
        "y: float[2, 5, 8] = rukh.Attention<q_num_heads=2, kv_num_heads=2, scale={scale}, head_sizes=[4, 4], \
         offsets={offsets}, head_strides={strides}>({x}, {x}, {x})"
    )
}

/// One product for queries, keys and values, and each way of exporters to take it apart.
#[test]
fn parts_of_one_matrix() {
    let split = [("axis", Attribute::Int(2)), ("num_outputs", Attribute::Int(3))];
    let mut builder = GraphBuilder::new()
        .input("x", &["2", "5", "24"])
        .ints("heads", &[4], &[2, 5, 2, 4])
        .node_with("Split", &split, &["x"], &["a", "b", "c"]);
    for (part, heads) in [("a", "q"), ("b", "k"), ("c", "v")] {
        let shaped = format!("{part}s");
        builder = builder.node("Reshape", &[part, "heads"], &[&shaped]).node_with(
            "Transpose",
            &perm(&[0, 2, 1, 3]),
            &[&shaped],
            &[heads],
        );
    }
    let line = packed("1.0", "[0, 8, 16]", "[4, 4, 4]", "x");
    assert_fused(attend(builder, ["q", "k", "v"], &[2, 5, 8]), &[&line, "return y"]);

    // [batch, rows, 3, heads, size], as timm has it; and [batch, rows, heads, 3, size].
    for (shape, order, line) in [
        ([2, 5, 3, 2, 4], [2, 0, 3, 1, 4], packed("0.5", "[0, 8, 16]", "[4, 4, 4]", "x")),
        ([2, 5, 2, 3, 4], [3, 0, 2, 1, 4], packed("0.5", "[0, 4, 8]", "[12, 12, 12]", "x")),
    ] {
        let mut builder = GraphBuilder::new()
            .input("x", &["2", "5", "24"])
            .ints("shape", &[5], &shape)
            .floats("half", &[], &[0.5])
            .node("Reshape", &["x", "shape"], &["r"])
            .node_with("Transpose", &perm(&order), &["r"], &["t"]);
        for (i, heads) in ["p", "k", "v"].iter().enumerate() {
            builder = builder.ints(&format!("i{i}"), &[], &[i as i64]).node(
                "Gather",
                &["t", &format!("i{i}")],
                &[heads],
            );
        }
        let builder = builder.node("Mul", &["p", "half"], &["q"]);
        assert_fused(attend(builder, ["q", "k", "v"], &[2, 5, 8]), &[&line, "return y"]);
    }
}

/// Rows before the batch, as torch's MultiheadAttention has them.
#[test]
fn rows_before_the_batch() {
    let builder = |join: &[i64], back: &[i64]| {
        let mut builder = GraphBuilder::new()
            .input("x", &["5", "n", "24"])
            .ints("shape", &[4], &[5, -1, 3, 8])
            .ints("first", &[1], &[0])
            .ints("last", &[1], &[-2])
            .ints("all", &[3], &[5, -1, 4])
            .ints("heads", &[4], &[-1, 2, 5, 4])
            .ints("join", &[join.len()], join)
            .node("Reshape", &["x", "shape"], &["r"])
            .node("Unsqueeze", &["r", "first"], &["u"])
            .node_with("Transpose", &perm(&[3, 1, 2, 0, 4]), &["u"], &["t"])
            .node("Squeeze", &["t", "last"], &["s"]);
        for (i, name) in ["q", "k", "v"].iter().enumerate() {
            let [index, part, rows, transposed] = ["i", "p", "r", "t"].map(|x| format!("{x}{i}"));
            builder = builder
                .ints(&index, &[], &[i as i64])
                .node("Gather", &["s", &index], &[&part])
                .node("Reshape", &[&part, "all"], &[&rows])
                .node_with("Transpose", &perm(&[1, 0, 2]), &[&rows], &[&transposed])
                .node("Reshape", &[&transposed, "heads"], &[name]);
        }
        builder
            .node_with("Transpose", &perm(&[0, 1, 3, 2]), &["k"], &["kt"])
            .node("MatMul", &["q", "kt"], &["scores"])
            .node("Softmax", &["scores"], &["w"])
            .node("MatMul", &["w", "v"], &["o"])
            .node_with("Transpose", &perm(back), &["o"], &["ot"])
            .node("Reshape", &["ot", "join"], &["y"])
            .output("y")
    };
    let attention = "float[5, n, 8] = rukh.Attention<q_num_heads=2, kv_num_heads=2, scale=1.0, head_sizes=[4, 4], \
                     offsets=[0, 8, 16], head_strides=[4, 4, 4], rows_first=1>(x, x, x)";
    let name = "Reshape_node/Attention";
    assert_fused(
        builder(&[-1, 8], &[2, 0, 1, 3]),
        &[&format!("{name}: {attention}"), &format!("y: float[5*n, 8] = Reshape({name}, join)"), "return y"],
    );
    assert_fused(
        builder(&[-1, 5, 8], &[0, 2, 1, 3]),
        &[
            &format!("{name}: {attention}"),
            &format!("y: float[n, 5, 8] = Transpose<perm=[1, 0, 2]>({name})"),
            "return y",
        ],
    );
}

/// Three products of one matrix; keys and values of another one; a product that somebody else needs.
#[test]
fn products_of_one_matrix() {
    let builder = |k: &str, more: &str| {
        let mut builder = GraphBuilder::new()
            .input("x", &["2", "5", "6"])
            .input("z", &["2", "5", "6"])
            .ints("heads", &[4], &[2, 5, 2, 4])
            .floats("eighth", &[], &[0.125])
            .floats("wq/b", &[8], &some(8))
            .floats("wv/b", &[8], &some(8));
        for (i, (w, name)) in [("wq", "a"), ("wk", "b"), ("wv", "c")].into_iter().enumerate() {
            let x = if i == 0 { "x" } else { k };
            let [product, sum, rows, scaled] = ["p", "s", "r", "m"].map(|x| format!("{name}{x}"));
            builder = builder.floats(w, &[6, 8], &some(48 + i)[i..]).node("MatMul", &[x, w], &[&product]);
            let product = match i {
                1 => product,
                _ => {
                    builder = builder.node("Add", &[&product, &format!("{w}/b")], &[&sum]);
                    sum
                }
            };
            let product = match i {
                0 => {
                    builder = builder.node("Mul", &[&product, "eighth"], &[&scaled]);
                    scaled
                }
                _ => product,
            };
            builder = builder.node("Reshape", &[&product, "heads"], &[&rows]).node_with(
                "Transpose",
                &perm(&[0, 2, 1, 3]),
                &[&rows],
                &[["q", "k", "v"][i]],
            );
        }
        let builder = attend(builder, ["q", "k", "v"], &[2, 5, 8]);
        if more.is_empty() { builder } else { builder.output(more) }
    };
    let line = packed("0.125", "[0, 8, 16]", "[4, 4, 4]", "MatMul_node/MatMul");
    let product = "rukh.MatMul(x, Reshape_node/weight, Reshape_node/bias)";
    let joint = format!("MatMul_node/MatMul: float[2, 5, 24] = {product}");
    let joint = joint.replace("MatMul_node", "Add_node");
    let line = line.replace("MatMul_node", "Add_node");
    assert_fused(builder("x", ""), &[&joint, &line, "return y"]);
    let graph = fused(builder("z", "")).to_string();
    assert!(graph.contains("float[2, 5, 16] = rukh.MatMul(z, "), "{graph}");
    let graph = fused(builder("x", "bp")).to_string();
    assert!(!graph.contains("float[2, 5, 24]") && !graph.contains("float[2, 5, 16]"), "{graph}");
}

/// Around products and attention of the other order, two transposes are one too many each.
#[test]
fn transposes_around_attention() {
    let packed = |rows_first: i64| {
        let ints = |list: &[i64]| Attribute::Ints(list.to_vec());
        vec![
            ("q_num_heads", Attribute::Int(2)),
            ("kv_num_heads", Attribute::Int(2)),
            ("head_sizes", ints(&[4, 4])),
            ("offsets", ints(&[0, 8, 16])),
            ("head_strides", ints(&[4, 4, 4])),
            ("rows_first", Attribute::Int(rows_first)),
        ]
    };
    let builder = |rows_first: i64| {
        GraphBuilder::new()
            .input("x", &["n", "5", "8"])
            .floats("a", &[8, 24], &some(192))
            .floats("b", &[8, 6], &some(48))
            .floats("c", &[6], &some(6))
            .node_with("Transpose", &perm(&[1, 0, 2]), &["x"], &["t"])
            .node("MatMul", &["t", "a"], &["p"])
            .node_with("rukh.Attention", &packed(rows_first), &["p", "p", "p"], &["o"])
            .node("MatMul", &["o", "b"], &["q"])
            .node("Add", &["q", "c"], &["r"])
            .node_with("Transpose", &perm(&[1, 0, 2]), &["r"], &["y"])
            .output("y")
    };
    for (rows_first, now) in [(1, ""), (0, ", rows_first=1")] {
        let attention = format!(
            "rukh.Attention_node/Attention: float[n, 5, 8] = rukh.Attention<q_num_heads=2, kv_num_heads=2, head_sizes=[4, 4], \
             offsets=[0, 8, 16], head_strides=[4, 4, 4]{now}>(MatMul_node/MatMul, MatMul_node/MatMul, MatMul_node/MatMul)"
        );
        assert_fused(
            builder(rows_first),
            &[
                "MatMul_node/MatMul: float[n, 5, 24] = MatMul(x, a)",
                &attention.replace("rukh.Attention_node", "Attention_node"),
                "y: float[n, 5, 6] = rukh.MatMul(Attention_node/Attention, b, c)",
                "return y",
            ],
        );
    }
}
