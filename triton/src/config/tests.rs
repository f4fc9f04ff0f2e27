//! Configurations beside models of all kinds.

use rukh_client::{Element, Kind, Port};
use serde_json::{Value as Json, json};

use super::{Config, check, complete};

fn port(name: &str, shape: &[i64], first: &str) -> Port {
    let mut names = vec![String::new(); shape.len()];
    if let Some(place) = names.first_mut() {
        *place = first.into();
    }
    let (kind, element) = (Kind::Tensor, Some(Element::F32));
    Port { name: name.into(), kind, element, shape: Some(shape.to_vec()), names }
}

fn completed(mut config: Json, inputs: &[Port], outputs: &[Port]) -> Json {
    complete(&mut config, inputs, outputs, 4).unwrap();
    check(&Config::read(&config).unwrap(), inputs, outputs).unwrap();
    config
}

fn refusal(config: Json, inputs: &[Port], outputs: &[Port]) -> String {
    let checked = Config::read(&config).and_then(|config| check(&config, inputs, outputs));
    checked.unwrap_err().message
}

#[test]
fn a_model_with_an_open_first_dimension_gets_batches() {
    let (x, y) = (port("x", &[-1, 3, 8], "n"), port("y", &[-1, 10], "n"));
    let config = completed(json!({ "name": "m", "max_batch_size": 0 }), &[x], &[y]);
    assert_eq!(config["max_batch_size"], 4);
    assert_eq!(config["dynamic_batching"], json!({}));
    assert_eq!(config["input"], json!([{ "name": "x", "data_type": "TYPE_FP32", "dims": [3, 8] }]));
    assert_eq!(config["output"], json!([{ "name": "y", "data_type": "TYPE_FP32", "dims": [10] }]));
}

#[test]
fn a_model_whose_first_dimensions_differ_gets_none() {
    for (x, y) in [
        (port("x", &[-1, 3], "n"), port("y", &[-1, 3], "2*n")),
        (port("x", &[-1, 3], "n"), port("y", &[1, 3], "")),
        (port("x", &[-1, 3], "n"), port("y", &[], "")),
    ] {
        let config = completed(json!({}), &[x], std::slice::from_ref(&y));
        assert_eq!(config["max_batch_size"], Json::Null);
        assert_eq!(config["dynamic_batching"], Json::Null);
        assert_eq!(config["input"][0]["dims"], json!([-1, 3]));
        if y.dims().is_empty() {
            assert_eq!(config["output"][0]["dims"], json!([1]));
            assert_eq!(config["output"][0]["reshape"], Json::Null);
        }
    }
}

#[test]
fn one_number_a_row_is_a_dimension_that_triton_takes_away() {
    let (x, y) = (port("x", &[-1], "n"), port("y", &[-1, 3], "n"));
    let config = completed(json!({}), &[x], &[y]);
    let one = json!([{ "name": "x", "data_type": "TYPE_FP32", "dims": [1], "reshape": { "shape": [] } }]);
    assert_eq!((&config["input"], &config["max_batch_size"]), (&one, &json!(4)));
}

#[test]
fn dimensions_that_are_given_say_whether_there_are_batches() {
    let (x, y) = ([port("x", &[-1, 3], "n")], [port("y", &[-1, 3], "n")]);
    let given = |dims: Json| json!({ "input": [{ "name": "x", "data_type": "TYPE_FP32", "dims": dims }] });
    assert_eq!(completed(given(json!(["3"])), &x, &y)["max_batch_size"], 4);
    assert_eq!(completed(given(json!([-1, 3])), &x, &y)["max_batch_size"], Json::Null);
}

#[test]
fn what_does_not_fit_is_named() {
    let (x, y) = ([port("x", &[-1, 3], "n")], [port("y", &[-1, 3], "n")]);
    let config = |input: Json, batch: i64| {
        let output = json!([{ "name": "y", "data_type": "TYPE_FP32", "dims": [3] }]);
        json!({ "max_batch_size": batch, "input": [input], "output": output })
    };
    let cases = [
        (json!({ "name": "z", "data_type": "TYPE_FP32", "dims": [3] }), "it has x"),
        (
            json!({ "name": "x", "data_type": "TYPE_INT8", "dims": [3] }),
            "says TYPE_INT8, and the model has TYPE_FP32",
        ),
        (json!({ "name": "x", "data_type": "TYPE_FP32", "dims": [4] }), "dims [4], and the model [3]"),
        (json!({ "name": "x", "data_type": "TYPE_FP32", "dims": [-1] }), "dims [-1], and the model [3]"),
        (json!({ "name": "x", "data_type": "TYPE_FP32", "dims": [3], "optional": true }), "optional"),
        (
            json!({ "name": "x", "data_type": "TYPE_FP32", "dims": [3], "is_shape_tensor": true }),
            "is_shape_tensor",
        ),
        (json!({ "name": "x", "data_type": "TYPE_FP32", "dims": [3], "allow_ragged_batch": true }), "ragged"),
    ];
    for (input, expected) in cases {
        let message = refusal(config(input, 2), &x, &y);
        assert!(message.contains(expected), "{message}");
    }
    let fixed = [port("x", &[2, 3], "")];
    let input = json!({ "name": "x", "data_type": "TYPE_FP32", "dims": [3] });
    let message = refusal(config(input, 2), &fixed, &y);
    assert!(message.contains("always 2"), "{message}");
    let message =
        refusal(json!({ "output": [{ "name": "y", "data_type": "TYPE_FP32", "dims": [-1, 3] }] }), &x, &y);
    assert!(message.contains("needs the input \"x\""), "{message}");
}

#[test]
fn what_triton_cannot_exchange_is_refused() {
    let mut x = port("x", &[-1, 3], "n");
    x.element = Some(Element::Complex64);
    let message = complete(&mut json!({}), &[x.clone()], &[], 4).unwrap_err().message;
    assert!(message.contains("complex64"), "{message}");
    x.kind = Kind::Sequence;
    let message = complete(&mut json!({}), &[x.clone()], &[], 4).unwrap_err().message;
    assert!(message.contains("a sequence"), "{message}");
    let outputs = [port("y", &[-1, 3], "n"), x];
    let config = completed(json!({}), &[port("a", &[-1, 3], "n")], &outputs);
    assert_eq!(config["output"].as_array().unwrap().len(), 1);
}
