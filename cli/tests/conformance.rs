//! Runs the ONNX standard's own test cases through the C API.
//!
//! Environment:
//! * `RUKH_ONNX_DATA`: a folder that holds case folders at any depth, each a `model.onnx` with
//!   `test_data_set_N/{input,output}_I.pb`; scripts/onnx_cases.py writes them. Without it the test is
//!   skipped.
//! * `RUKH_PROVIDER`: the provider to test, default `cpu`. A case that another one has to help with runs
//!   with that help, and is counted.
//! * `RUKH_CASES`: only the cases whose name contains one of these comma-separated parts.
//! * `RUKH_SAMPLE`: only about so many cases, drawn anew each time; `RUKH_SEED` repeats a draw.
//!
//! A file `conformance-PROVIDER.txt` beside this one names the cases that are known to fail, a name
//! and a reason a line. The test fails when another case fails, and when one of these passes.
//! `RUKH_UPDATE=1` writes that file anew instead.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rukh_cli::api::{Environment, Provider, alone_or_helped};
use rukh_cli::cases::{case_folders, run_case};

#[test]
fn onnx_cases() {
    let Some(root) = std::env::var_os("RUKH_ONNX_DATA") else {
        println!("skipped: RUKH_ONNX_DATA is not set");
        return;
    };
    let provider = std::env::var("RUKH_PROVIDER").unwrap_or_else(|_| "cpu".to_owned());
    let filter = std::env::var("RUKH_CASES").unwrap_or_default();
    let environment = Environment::new(1, false).unwrap();
    let reasons: BTreeMap<String, String> = environment.providers().unwrap().into_iter().collect();
    if let Some(reason) = reasons.get(&provider).filter(|reason| !reason.is_empty()) {
        assert!(std::env::var_os("RUKH_REQUIRE_HIP").is_none(), "RUKH_REQUIRE_HIP is set, and: {reason}");
        println!("skipped: {reason}");
        return;
    }

    let mut cases = case_folders(Path::new(&root));
    assert!(!cases.is_empty(), "RUKH_ONNX_DATA={}: there are no cases", root.display());
    cases.retain(|name, _| filter.split(',').any(|part| name.contains(part)));
    let sampled = sample(&mut cases);
    let (mut passed, mut failed) = (BTreeSet::new(), BTreeMap::new());
    let (mut node_cases, mut helped) = (0, BTreeSet::new());
    for (name, folder) in &cases {
        let is_node = folder.parent().is_some_and(|parent| parent.ends_with("node"));
        node_cases += is_node as usize;
        let (result, help) = alone_or_helped(&Provider::from(&*provider), |options| {
            run_case(&environment, options, name, folder)
        });
        if let Some(reason) = help {
            println!("HELPED {name}: {reason}");
            helped.extend(is_node.then_some(name));
        }
        match result {
            Ok(()) => {
                passed.insert(name.clone());
            }
            Err(reason) => {
                println!("FAILED {name}: {reason}");
                failed.insert(name.clone(), reason);
            }
        }
    }
    println!(
        "{provider}: {} passed, {} failed; of {node_cases} node cases {} without help of another provider",
        passed.len(),
        failed.len(),
        node_cases - helped.len()
    );

    if std::env::var_os("RUKH_UPDATE").is_some() && filter.is_empty() && !sampled {
        write_known_failures(&provider, &failed);
        return;
    }
    if provider == "hip" && filter.is_empty() && !sampled {
        let alone = node_cases - helped.len();
        assert!(
            alone * 100 >= node_cases * 85,
            "{alone} of {node_cases} node cases ran without help: below 85%"
        );
    }
    let known = known_failures(&provider);
    let new: Vec<&String> = failed.keys().filter(|name| !known.contains(*name)).collect();
    let mended: Vec<&String> = passed.iter().filter(|name| known.contains(*name)).collect();
    assert!(new.is_empty(), "{} cases fail that are not known to: {new:?}", new.len());
    assert!(mended.is_empty(), "these pass now; take them from conformance-{provider}.txt: {mended:?}");
}

/// Keeps a part of the cases when `RUKH_SAMPLE` asks for it; tells whether it did.
fn sample(cases: &mut BTreeMap<String, PathBuf>) -> bool {
    let Some(wanted) = std::env::var("RUKH_SAMPLE").ok().and_then(|n| n.parse::<u64>().ok()) else {
        return false;
    };
    let now =
        || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |t| t.as_secs());
    let seed = std::env::var("RUKH_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or_else(now);
    println!("a sample of about {wanted} cases, RUKH_SEED={seed}");
    let all = cases.len().max(1) as u64;
    cases.retain(|name, _| {
        // FNV-1a over the seed and the name.
        let bytes = seed.to_le_bytes().into_iter().chain(name.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ b as u64).wrapping_mul(0x100_0000_01b3));
        (hash >> 16) % all < wanted
    });
    true
}

fn known_file(provider: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/conformance-{provider}.txt"))
}

fn write_known_failures(provider: &str, failed: &BTreeMap<String, String>) {
    let mut text = format!(
        "# The {} of the ONNX standard's test cases that provider {provider} is known to fail, and why.\n",
        failed.len()
    );
    for (name, reason) in failed {
        text.push_str(&format!("{name} {}\n", reason.replace('\n', " ")));
    }
    std::fs::write(known_file(provider), text).unwrap();
}

fn known_failures(provider: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(known_file(provider)).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}
