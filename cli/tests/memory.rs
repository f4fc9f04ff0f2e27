//! Anonymous memory of a session: no more than the weights that were packed or copied, and 60 MB for
//! activations and everything else. Pages of the mapped file do not count.
//!
//! `RUKH_MODELS` names the folder of exported models; without it only the example's model is measured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rukh_cli::api::{Environment, Options, Session};
use rukh_cli::data::read_input;

const ALLOWANCE: u64 = 60 << 20;

#[test]
fn anonymous_memory_is_packed_weights_and_little_else() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/digits");
    let mut models = vec![(example.join("digits.onnx"), example.join("sample.npz"))];
    if let Some(root) = std::env::var_os("RUKH_MODELS").map(PathBuf::from) {
        for name in ["resnet50", "bert_base"] {
            models.push((root.join(name).join("model.onnx"), root.join(name).join("sample.npz")));
        }
    }
    let environment = Environment::new(2, false).unwrap();
    for (model, sample) in models {
        let before = anonymous_bytes();
        let (peak, packed) = watch(|| {
            let session = Session::open(&environment, &model, &Options::only("cpu")).unwrap();
            let inputs =
                read_input(&sample.display().to_string(), session.inputs(), &BTreeMap::new(), &mut 0)
                    .unwrap();
            let bound = session.bind(&inputs).unwrap();
            for _ in 0..2 {
                session.execute(&bound).unwrap();
            }
            let counters = session.load_counters().unwrap();
            counters.packed + counters.copied
        });
        let used = peak.saturating_sub(before);
        println!(
            "{}: {} MB anonymous at the peak, {} MB of packed and copied weights",
            model.display(),
            used >> 20,
            packed >> 20
        );
        assert!(used <= packed + ALLOWANCE, "{}: {used} bytes, {packed} of them weights", model.display());
    }
}

/// The most anonymous memory while `work` runs, looked at every millisecond, and what it returns.
fn watch<R>(work: impl FnOnce() -> R) -> (u64, R) {
    let (done, peak) = (AtomicBool::new(false), AtomicU64::new(anonymous_bytes()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                peak.fetch_max(anonymous_bytes(), Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let result = work();
        peak.fetch_max(anonymous_bytes(), Ordering::Relaxed);
        done.store(true, Ordering::Relaxed);
        (peak.load(Ordering::Relaxed), result)
    })
}

/// `RssAnon` of this process.
fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the process's status");
    let line = status.lines().find(|l| l.starts_with("RssAnon:")).expect("RssAnon in the status");
    let kilobytes: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number of kB");
    kilobytes * 1024
}
