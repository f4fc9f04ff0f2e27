//! Each wrong model gets an error that names what is wrong, and nothing else happens.

use super::*;
use crate::error::Status;
use crate::model::testing::{body, floats, graph_attribute, int, ints, node, raw};
use crate::tensor::ElementType::{Bool, F32, I64};

/// What opening these bytes says.
fn refuse(name: &str, bytes: &[u8], status: Status, parts: &[&str]) {
    match Session::open(environment(), Source::Bytes(bytes), &SessionOptions::default()) {
        Ok(_) => panic!("{name}: it opened"),
        Err(e) => {
            assert_eq!(e.status, status, "{name}: {e}");
            for part in parts {
                assert!(e.message.contains(part), "{name}: \"{part}\" is not in: {e}");
            }
        }
    }
}

/// A model whose one node is like this, over input x (float[2, 3]) and initializers.
fn one(op: &str, inputs: &[&str]) -> ModelBuilder {
    ModelBuilder::new().input("x", F32, &["2", "3"]).node(op, inputs, &["y"]).output("y")
}

#[test]
fn bytes_that_are_no_model() {
    let good = one("Relu", &["x"]).bytes();
    let noise: Vec<u8> = (0..4096u32).map(|i| (i.wrapping_mul(2654435761) >> 13) as u8).collect();
    let cases: &[(&str, &[u8], &str)] = &[
        ("empty", b"", "is empty"),
        ("text", b"Hello, this is a text file.\nNo model here.\n", "text file"),
        ("cut short", &good[..good.len() - 7], "cut short"),
        ("noise", &noise, "no ONNX model"),
        ("zeros", &[0; 64], "no ONNX model"),
        ("no graph", &ModelBuilder(Default::default()).bytes(), "is empty"),
    ];
    for (name, bytes, part) in cases {
        refuse(name, bytes, Status::InvalidModel, &[part]);
    }
}

#[test]
fn wrong_graphs() {
    let claims = raw("w", F32, &[1 << 40], &[0; 16]);
    let overflow = raw("w", F32, &[1 << 40, 1 << 40], &[0; 16]);
    let cases: &[(&str, ModelBuilder, Status, &[&str])] = &[
        (
            "unknown operator",
            one("Frobnicate", &["x"]),
            Status::InvalidModel,
            &["the_Frobnicate", "not known", "ai.onnx"],
        ),
        ("domain not imported", one("no.such.Op", &["x"]), Status::InvalidModel, &["the_Op", "no.such"]),
        (
            "opset from the future",
            ModelBuilder::with_opset(29).input("x", F32, &["1"]).output("x"),
            Status::InvalidModel,
            &["opset 29", "1 to 28"],
        ),
        (
            "opset zero",
            ModelBuilder::with_opset(0).input("x", F32, &["1"]).output("x"),
            Status::InvalidModel,
            &["opset 0"],
        ),
        (
            "operator newer than the opset",
            {
                let mut m = one("Gelu", &["x"]);
                m.0.opset_import[0].version = 13;
                m
            },
            Status::InvalidModel,
            &["the_Gelu", "since opset 20"],
        ),
        ("input from nowhere", one("Relu", &["nothing"]), Status::InvalidModel, &["the_Relu", "\"nothing\""]),
        ("output from nowhere", one("Relu", &["x"]).output("z"), Status::InvalidModel, &["\"z\""]),
        (
            "name made twice",
            one("Relu", &["x"]).node("Neg", &["x"], &["y"]),
            Status::InvalidModel,
            &["\"y\"", "twice"],
        ),
        (
            "cycle",
            ModelBuilder::new()
                .input("x", F32, &["2"])
                .node("Add", &["x", "b"], &["a"])
                .node("Relu", &["a"], &["b"])
                .output("b"),
            Status::InvalidModel,
            &["cycle", "the_Add"],
        ),
        ("missing required input", one("Relu", &[]), Status::InvalidModel, &["the_Relu", "required"]),
        ("too many inputs", one("Relu", &["x", "x"]), Status::InvalidModel, &["the_Relu", "at most 1"]),
        (
            "two types",
            one("Add", &["x", "n"]).initializer(ints("n", &[1], &[1])),
            Status::InvalidModel,
            &["the_Add", "int64", "float"],
        ),
        (
            "shapes that do not broadcast",
            one("Add", &["x", "w"]).initializer(floats("w", &[4], &[0.0; 4])),
            Status::InvalidModel,
            &["the_Add", "broadcast"],
        ),
        (
            "matrices that do not fit",
            one("MatMul", &["x", "w"]).initializer(floats("w", &[4, 2], &[0.0; 8])),
            Status::InvalidModel,
            &["the_MatMul"],
        ),
        (
            "attribute unknown",
            ModelBuilder::new()
                .input("x", F32, &["2"])
                .node_with("Relu", &[int("alpha", 1)], &["x"], &["y"])
                .output("y"),
            Status::InvalidModel,
            &["the_Relu", "\"alpha\"", "no such attribute"],
        ),
        (
            "axis out of range",
            ModelBuilder::new()
                .input("x", F32, &["2", "3"])
                .node_with("Softmax", &[int("axis", 5)], &["x"], &["y"])
                .output("y"),
            Status::InvalidModel,
            &["the_Softmax", "5", "-2 to 1"],
        ),
        (
            "data shorter than the shape",
            one("Add", &["x", "w"]).initializer(raw("w", F32, &[2, 3], &[0; 20])),
            Status::InvalidModel,
            &["\"w\"", "20 bytes", "24"],
        ),
        (
            "data longer than the shape",
            one("Add", &["x", "w"]).initializer(raw("w", F32, &[2, 3], &[0; 28])),
            Status::InvalidModel,
            &["\"w\"", "28 bytes"],
        ),
        (
            "negative dimension",
            one("Add", &["x", "w"]).initializer(raw("w", F32, &[-2, -3], &[0; 24])),
            Status::InvalidModel,
            &["\"w\"", "negative"],
        ),
        (
            "a terabyte that is not there",
            one("Add", &["x", "w"]).initializer(claims),
            Status::InvalidModel,
            &["\"w\"", "16 bytes"],
        ),
        (
            "dimensions that overflow",
            one("Add", &["x", "w"]).initializer(overflow),
            Status::InvalidModel,
            &["\"w\"", "more elements"],
        ),
        (
            "element type unknown",
            one("Add", &["x", "w"]).initializer({
                let mut t = floats("w", &[1], &[1.0]);
                t.data_type = 99;
                t
            }),
            Status::InvalidModel,
            &["\"w\"", "99"],
        ),
        (
            "external data from memory",
            one("Add", &["x", "w"]).initializer(external("w", "weights.bin")),
            Status::Unsupported,
            &["\"w\"", "from memory"],
        ),
        (
            "function that calls itself",
            ModelBuilder::new()
                .input("x", F32, &["2"])
                .node("my.F", &["x"], &["y"])
                .output("y")
                .function("F", vec![node("my.F", &[], &["v"], &["w"])]),
            Status::InvalidModel,
            &["\"F\"", "calls itself"],
        ),
        (
            "loop body with too few inputs",
            ModelBuilder::new()
                .input("x", F32, &["2"])
                .input("c", Bool, &[])
                .node_with(
                    "Loop",
                    &[graph_attribute("body", body(ModelBuilder::new().input("i", I64, &[]).output("i")))],
                    &["", "c", "x"],
                    &["y"],
                )
                .output("y"),
            Status::InvalidModel,
            &["the_Loop", "body"],
        ),
    ];
    for (name, model, status, parts) in cases {
        refuse(name, &model.bytes(), *status, parts);
    }
}

fn external(name: &str, location: &str) -> crate::model::testing::Tensor {
    crate::model::testing::external(name, &[2, 3], location)
}

#[test]
fn wrong_files() {
    let folder = std::env::temp_dir().join(format!("rukh-wrong-files-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("sub")).unwrap();
    std::fs::write(folder.join("outside.bin"), [0u8; 24]).unwrap();
    std::fs::write(folder.join("sub/short.bin"), [0u8; 10]).unwrap();
    std::fs::write(folder.join("sub/right.bin"), [0u8; 24]).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.join("outside.bin"), folder.join("sub/link.bin")).unwrap_or_default();
    let path = folder.join("sub/model.onnx");
    for (location, expected) in [
        ("right.bin", None),
        ("short.bin", Some((Status::InvalidModel, "which has 10"))),
        ("missing.bin", Some((Status::NotFound, "missing.bin"))),
        ("../outside.bin", Some((Status::InvalidModel, "outside the model's folder"))),
        ("/etc/passwd", Some((Status::InvalidModel, "outside the model's folder"))),
        #[cfg(unix)]
        ("link.bin", Some((Status::InvalidModel, "outside the model's folder"))),
        #[cfg(windows)]
        ("..\\outside.bin", Some((Status::InvalidModel, "outside the model's folder"))),
        #[cfg(windows)]
        ("right.bin:hidden", Some((Status::InvalidModel, "outside the model's folder"))),
        #[cfg(windows)]
        ("C:right.bin", Some((Status::InvalidModel, "outside the model's folder"))),
    ] {
        std::fs::write(&path, one("Add", &["x", "w"]).initializer(external("w", location)).bytes()).unwrap();
        for load in ["map", "read"] {
            let mut options = SessionOptions::default();
            options.set("load", load).unwrap();
            let result = Session::open(environment(), Source::Path(&path), &options);
            match (result, expected) {
                (Ok(_), None) => {}
                (Err(e), Some((status, part))) => {
                    assert_eq!(e.status, status, "{location}: {e}");
                    assert!(e.message.contains(part) && e.message.contains("\"w\""), "{location}: {e}");
                }
                (Ok(_), Some(_)) => panic!("{location}: it opened"),
                (Err(e), None) => panic!("{location}: {e}"),
            }
        }
    }
    let missing =
        Session::open(environment(), Source::Path(&folder.join("none.onnx")), &SessionOptions::default());
    assert_eq!(missing.err().map(|e| e.status), Some(Status::NotFound));
    let directory = Session::open(environment(), Source::Path(&folder), &SessionOptions::default());
    assert_eq!(directory.err().map(|e| e.status), Some(Status::Io));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Functions that expand into more nodes than memory holds, and subgraphs beyond what a decoder takes.
#[test]
fn models_that_grow() {
    let mut model = ModelBuilder::new().input("x", F32, &["2"]).node("my.F0", &["x"], &["y"]).output("y");
    for i in 0..64 {
        let next = format!("my.F{}", i + 1);
        let call = |from: &str, to: &str| node(&next, &[], &[from], &[to]);
        let nodes = match i {
            63 => vec![node("Relu", &[], &["v"], &["w"])],
            _ => vec![call("v", "u"), call("u", "w")],
        };
        model = model.function(&format!("F{i}"), nodes);
    }
    let parts = ["expand into", "at most 1048576 are allowed"];
    refuse("doubling functions", &model.bytes(), Status::InvalidModel, &parts);

    let mut inner = ModelBuilder::new().node("Relu", &["x"], &["z"]).output("z");
    for _ in 0..60 {
        let branch = [graph_attribute("then_branch", body(inner))];
        inner = ModelBuilder::new().node_with("If", &branch, &["c"], &["z"]).output("z");
    }
    let deep = ModelBuilder::new()
        .input("x", F32, &["2"])
        .input("c", Bool, &[])
        .node_with("If", &[graph_attribute("then_branch", body(inner))], &["c"], &["y"])
        .output("y");
    refuse(
        "nested subgraphs",
        &deep.bytes(),
        Status::InvalidModel,
        &["subgraphs inside subgraphs", "about 30"],
    );
}

/// A model and its weights in a content-addressed cache: both paths are links into another folder. On Windows links are
/// for administrators.
#[cfg(unix)]
#[test]
fn a_cache_of_links() {
    let folder = std::env::temp_dir().join(format!("rukh-cache-{}", std::process::id()));
    let (blobs, snapshot) = (folder.join("blobs"), folder.join("snapshots/1/onnx"));
    std::fs::create_dir_all(&blobs).unwrap();
    std::fs::create_dir_all(&snapshot).unwrap();
    std::fs::write(blobs.join("b2"), [0u8; 24]).unwrap();
    std::fs::write(folder.join("outside.bin"), [0u8; 24]).unwrap();
    let link = |from: &str, to: &str| std::os::unix::fs::symlink(from, snapshot.join(to)).unwrap();
    link("../../../blobs/b1", "model.onnx");
    link("../../../blobs/b2", "model.onnx_data");
    link("../../../outside.bin", "escape");
    for (location, opens) in [("model.onnx_data", true), ("b2", true), ("escape", false)] {
        let model = one("Add", &["x", "w"]).initializer(external("w", location));
        std::fs::write(blobs.join("b1"), model.bytes()).unwrap();
        let path = snapshot.join("model.onnx");
        let result = Session::open(environment(), Source::Path(&path), &SessionOptions::default());
        let error = result.err().map(|e| e.message).unwrap_or_default();
        assert_eq!(error.is_empty(), opens, "{location}: {error}");
        assert!(opens || error.contains("outside the model's folder"), "{error}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
