//! Each wrong input, and each input whose values are not allowed, gets an error that says so.

use super::*;
use crate::error::Status;
use crate::model::testing::{floats, int, raw};
use crate::tensor::ElementType::{F32, I32, I64, U8};

fn expect(name: &str, result: Result<Vec<Value>>, status: Status, parts: &[&str]) {
    match result {
        Ok(_) => panic!("{name}: it ran"),
        Err(e) => {
            assert_eq!(e.status, status, "{name}: {e}");
            for part in parts {
                assert!(e.message.contains(part), "{name}: \"{part}\" is not in: {e}");
            }
        }
    }
}

#[test]
fn inputs_that_do_not_fit() {
    let model = ModelBuilder::new()
        .input("x", F32, &["batch", "3"])
        .input("z", F32, &["batch", "3"])
        .node("Add", &["x", "z"], &["y"])
        .output("y");
    let session = open(&model).unwrap();
    let good = || t(&[2, 3], &[1.0f32; 6]);
    assert!(run(&session, &[good(), good()]).is_ok());
    let cases: &[(&str, Vec<Value>, &[&str])] = &[
        ("missing", vec![good()], &["\"z\" is missing"]),
        ("type", vec![t(&[2, 3], &[1i64; 6]), good()], &["\"x\"", "int64", "float"]),
        ("rank", vec![t(&[6], &[1.0f32; 6]), good()], &["\"x\"", "rank 1", "rank 2"]),
        ("dimension", vec![t(&[2, 4], &[1.0f32; 8]), good()], &["\"x\"", "dimension 1 is 4", "needs 3"]),
        ("one name, two sizes", vec![good(), t(&[5, 3], &[1.0f32; 15])], &["\"z\"", "batch", "5", "2"]),
        (
            "sequence",
            vec![Value::Sequence { element: good().ty(), items: vec![good()] }, good()],
            &["\"x\"", "seq"],
        ),
    ];
    for (name, inputs, parts) in cases {
        expect(name, run(&session, inputs), Status::InvalidInput, parts);
    }
    // The session still works.
    assert!(run(&session, &[good(), good()]).is_ok());
    let none = session.run(&RunOptions::default(), &[(7, good())], &[0]);
    expect("input index", none, Status::InvalidArgument, &["7", "2"]);
    let twice = session.run(&RunOptions::default(), &[(0, good()), (0, good())], &[0]);
    expect("given twice", twice, Status::InvalidArgument, &["\"x\"", "twice"]);
    let output = session.run(&RunOptions::default(), &[(0, good()), (1, good())], &[3]);
    expect("output index", output, Status::InvalidArgument, &["output 3"]);
}

#[test]
fn values_that_are_not_allowed() {
    let gather = ModelBuilder::new()
        .input("i", I64, &["n"])
        .initializer(floats("w", &[3], &[1.0, 2.0, 3.0]))
        .node("Gather", &["w", "i"], &["y"])
        .output("y");
    let divide = ModelBuilder::new()
        .input("a", I32, &["n"])
        .input("b", I32, &["n"])
        .node("Div", &["a", "b"], &["y"])
        .output("y");
    let modulo = ModelBuilder::new()
        .input("a", I64, &["n"])
        .input("b", I64, &["n"])
        .node("Mod", &["a", "b"], &["y"])
        .output("y");
    let reshape = ModelBuilder::new()
        .input("x", F32, &["n"])
        .input("s", I64, &["k"])
        .node("Reshape", &["x", "s"], &["y"])
        .output("y");
    let scale = ModelBuilder::new()
        .input("x", U8, &["n"])
        .input("s", F32, &[])
        .node("DequantizeLinear", &["x", "s"], &["y"])
        .output("y");
    let fill =
        ModelBuilder::new().input("s", I64, &["k"]).node("ConstantOfShape", &["s"], &["y"]).output("y");
    type Case<'a> = (&'a str, &'a ModelBuilder, Vec<Value>, Status, &'a [&'a str]);
    let cases: &[Case<'_>] = &[
        ("index", &gather, vec![t(&[2], &[0i64, 3])], Status::InvalidData, &["the_Gather", "3"]),
        ("negative index", &gather, vec![t(&[1], &[-4i64])], Status::InvalidData, &["the_Gather", "-4"]),
        (
            "division",
            &divide,
            vec![t(&[2], &[1, 2]), t(&[2], &[1, 0])],
            Status::InvalidData,
            &["the_Div", "zero"],
        ),
        (
            "modulo",
            &modulo,
            vec![t(&[1], &[1i64]), t(&[1], &[0i64])],
            Status::InvalidData,
            &["the_Mod", "zero"],
        ),
        (
            "reshape",
            &reshape,
            vec![t(&[6], &[0f32; 6]), t(&[1], &[4i64])],
            Status::InvalidInput,
            &["the_Reshape", "4"],
        ),
        (
            "reshape negative",
            &reshape,
            vec![t(&[6], &[0f32; 6]), t(&[2], &[-1i64, -1])],
            Status::InvalidInput,
            &["the_Reshape"],
        ),
        (
            "scale NaN",
            &scale,
            vec![t(&[1], &[1u8]), t(&[], &[f32::NAN])],
            Status::InvalidData,
            &["the_DequantizeLinear", "NaN"],
        ),
        (
            "scale infinite",
            &scale,
            vec![t(&[1], &[1u8]), t(&[], &[f32::NEG_INFINITY])],
            Status::InvalidData,
            &["the_DequantizeLinear", "-inf"],
        ),
        (
            "negative size",
            &fill,
            vec![t(&[1], &[-1i64])],
            Status::InvalidInput,
            &["the_ConstantOfShape", "-1"],
        ),
        (
            "exabytes",
            &fill,
            vec![t(&[2], &[1i64 << 31, 1 << 31])],
            Status::OutOfMemory,
            &["the_ConstantOfShape", "memory"],
        ),
        (
            "overflow",
            &fill,
            vec![t(&[2], &[i64::MAX, i64::MAX])],
            Status::OutOfMemory,
            &["the_ConstantOfShape"],
        ),
    ];
    for (name, model, inputs, status, parts) in cases {
        let session = open(model).unwrap_or_else(|e| panic!("{name}: {e}"));
        expect(name, run(&session, inputs), *status, parts);
    }
}

#[test]
fn a_constant_scale_is_checked_when_the_model_is_opened() {
    for bad in [f32::NAN, f32::INFINITY] {
        let model = ModelBuilder::new()
            .input("x", F32, &["2"])
            .initializer(floats("s", &[], &[bad]))
            .initializer(raw("z", U8, &[], &[0]))
            .node_with("QuantizeLinear", &[int("saturate", 1)], &["x", "s", "z"], &["y"])
            .output("y");
        let error = open(&model).err().unwrap_or_else(|| panic!("{bad}: it opened"));
        assert!(error.message.contains("the_QuantizeLinear") && error.message.contains("scale"), "{error}");
    }
}
