//! The part of a GPU's memory that a process may hold, on the emulated GPU. One test: what it counts is all that this
//! process holds.

mod emulated;

use std::collections::BTreeMap;
use std::path::Path;

use rukh_cli::api::{Environment, Options, Provider, Session};
use rukh_cli::data;

#[test]
fn sessions_of_a_process_share_its_part_of_the_memory() {
    if emulated::library().is_none() {
        return;
    }
    let environment = Environment::new(1, false).unwrap();
    let total = environment.devices().unwrap()[0].memory as f64;
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/digits/digits.onnx");
    let open = |bytes: Option<f64>| {
        let mut options = vec![("arena_extend_strategy".to_owned(), "kSameAsRequested".to_owned())];
        options.extend(bytes.map(|bytes| ("gpu_mem_fraction".to_owned(), format!("{}", bytes / total))));
        let hip = Provider { name: "hip".to_owned(), options };
        let settings = vec![("fallback".to_owned(), "error".to_owned())];
        Session::open(&environment, &model, &Options { providers: vec![hip], settings, ..Options::default() })
    };
    let run = |session: &Session| {
        let sizes = BTreeMap::from([("batch".to_owned(), 256)]);
        let port = &session.inputs()[0];
        let input = [(port.name.clone(), data::generate(port, &sizes, 1).unwrap())];
        session.run(&session.bind(&input).unwrap()).map(|_| ())
    };
    let first = open(None).unwrap();
    run(&first).unwrap();
    let held = environment.memory_statistic(0, "reserved_bytes.all.current").unwrap() as f64;
    assert!(held > 0.0);

    // One session fits into half as much again; a second one does not while the first is there.
    let share = (held * 1.5).ceil();
    let refused = open(Some(share)).and_then(|second| run(&second)).unwrap_err();
    assert_eq!(refused.name(), "RUKH_ERROR_OUT_OF_MEMORY", "{refused}");
    let allowed = "gpu_mem_fraction allows this process ";
    for part in [
        allowed,
        "of the device's memory; it holds ",
        " more it would be over that",
        "Raise gpu_mem_fraction",
    ] {
        assert!(refused.message.contains(part), "{part}: {refused}");
    }
    let numbers = |text: &str| -> Vec<f64> {
        let all = text.split(['(', ')']).filter_map(|part| part.strip_suffix(" bytes"));
        all.filter_map(|number| number.parse().ok()).collect()
    };
    let told = numbers(refused.message.split("allows this process").nth(1).unwrap());
    assert!((told[0] - share).abs() <= 1.0, "the share of {share} is told: {refused}");
    assert!(told[1] >= held && told[1] + told[2] > told[0], "{refused}");

    // Nothing is left behind, and the same session fits when the first is gone.
    drop(first);
    let second = open(Some(share)).unwrap();
    run(&second).unwrap();
    drop(second);
    let tiny = open(Some(2000.0)).and_then(|session| run(&session)).unwrap_err();
    assert!(tiny.message.contains(allowed), "{tiny}");

    let wrong = |fraction: &str| {
        let options = vec![("gpu_mem_fraction".to_owned(), fraction.to_owned())];
        let hip = Provider { name: "hip".to_owned(), options };
        let options = Options { providers: vec![hip], ..Options::default() };
        Session::open(&environment, &model, &options).err().map(|error| error.message).unwrap_or_default()
    };
    for fraction in ["0", "1.01", "-0.5", "half"] {
        let message = wrong(fraction);
        assert!(message.contains("a number above 0 and at most 1"), "{fraction}: {message}");
    }
}
