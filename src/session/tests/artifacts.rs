//! Compiled models: they compute what the model computes, hold what they need, and notice damage.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::on_hip::{on_hip, open_with};
use super::sharing::Folder;
use super::*;
use crate::artifact::{Policy, Verdict};
use crate::error::Status;
use crate::model::testing::{body, external, floats, graph_attribute, int_list, ints};
use crate::session::{CompileOptions, Load, Targets, check_artifact, compile_model, open_artifact};
use crate::tensor::ElementType::{Bool, F32};

/// Numbers that look random and are not.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.0 - 1.0).collect()
}

/// A convolution, pooling, a product, and a branch with a weight of its own.
pub(super) fn network() -> ModelBuilder {
    let branch = |name: &str, seed: usize| {
        let inside = ModelBuilder::new()
            .initializer(floats(name, &[32, 8], &numbers(256, seed)))
            .node("MatMul", &["flat", name], &["b"])
            .output("b");
        body(inside)
    };
    ModelBuilder::new()
        .input("x", F32, &["batch", "16", "12", "12"])
        .input("which", Bool, &[])
        .initializer(floats("k", &[32, 16, 3, 3], &numbers(32 * 16 * 9, 1)))
        .initializer(floats("bias", &[32], &numbers(32, 2)))
        .initializer(ints("shape", &[2], &[-1, 32]))
        .node_with("Conv", &[int_list("pads", &[1, 1, 1, 1])], &["x", "k", "bias"], &["c"])
        .node("Relu", &["c"], &["r"])
        .node("GlobalAveragePool", &["r"], &["p"])
        .node("Reshape", &["p", "shape"], &["flat"])
        .node_with(
            "If",
            &[
                graph_attribute("then_branch", branch("w1", 3)),
                graph_attribute("else_branch", branch("w2", 4)),
            ],
            &["which"],
            &["y"],
        )
        .output("y")
}

pub(super) fn inputs(batch: usize, which: bool) -> Vec<Value> {
    let image = numbers(batch * 16 * 12 * 12, 9);
    let which = Tensor::from_slice(&[], &[crate::tensor::Bool::from(which)]).unwrap();
    vec![t(&[batch, 16, 12, 12], &image), Value::Tensor(which)]
}

pub(super) struct Compiled {
    pub(super) folder: Folder,
    pub(super) model: PathBuf,
    pub(super) artifact: PathBuf,
    pub(super) environment: Arc<Environment>,
}

impl Compiled {
    pub(super) fn new(
        name: &str,
        model: &ModelBuilder,
        targets: &str,
        weights: Policy,
        options: &SessionOptions,
    ) -> Self {
        let folder = Folder::new(&format!("artifact-{name}"));
        let path = folder.write("model.onnx", &model.bytes());
        let artifact = folder.0.join("model.rukh");
        let compiled = Compiled { folder, model: path, artifact, environment: environment() };
        compiled.compile(targets, weights, options, Vec::new()).unwrap();
        compiled
    }

    fn compile(
        &self,
        targets: &str,
        weights: Policy,
        options: &SessionOptions,
        shapes: Vec<BTreeMap<String, usize>>,
    ) -> Result<()> {
        let wanted = CompileOptions {
            targets: Targets::parse(targets)?,
            weights,
            shapes,
            overridable: true,
            tuning: Vec::new(),
        };
        compile_model(
            &self.environment,
            Source::Path(&self.model),
            options,
            &wanted,
            &self.artifact,
            &mut |_, _, _| true,
        )
    }

    pub(super) fn open(&self, path: &Path, options: &SessionOptions) -> Result<Session> {
        Session::open(self.environment.clone(), Source::Path(path), options)
    }

    fn verdict(&self, options: &SessionOptions) -> Verdict {
        let opened = open_artifact(Source::Path(&self.artifact), Load::Map, &self.environment.pool).unwrap();
        check_artifact(&opened, &self.environment, options).unwrap()
    }
}

pub(super) fn options(settings: &[(&str, &str)]) -> SessionOptions {
    let mut options = SessionOptions { share_weights: false, ..SessionOptions::default() };
    settings.iter().for_each(|(key, value)| options.set(key, value).unwrap());
    options
}

#[test]
fn answers_are_those_of_the_model_and_nothing_is_packed() {
    for (name, settings) in [
        ("plain", &[][..]),
        ("read", &[("load", "read")]),
        ("half", &[("precision", "bf16")]),
        ("basic", &[("optimization", "basic")]),
        ("none", &[("optimization", "none")]),
        ("fixed", &[("dim.batch", "2")]),
    ] {
        for weights in [Policy::Used, Policy::All, Policy::External] {
            let options = options(settings);
            let compiled =
                Compiled::new(&format!("{name}-{}", weights.name()), &network(), "cpu", weights, &options);
            assert_eq!(compiled.verdict(&options), Verdict::Optimal, "{name}");
            let model = compiled.open(&compiled.model, &options).unwrap();
            let artifact = compiled.open(&compiled.artifact, &options).unwrap();
            let (counted, before) = (artifact.load_counters(), model.load_counters());
            // Some processors pack half floats in a layout that cannot be kept.
            let most = if name == "half" { before.packed_bytes } else { 0 };
            assert!(
                before.packed_bytes > 0 && counted.packed_bytes <= most,
                "{name} {weights:?} {counted:?}"
            );
            // Small constants lie in the graph's own message.
            assert!(counted.copied_bytes < 1024, "{name} {weights:?} {counted:?}");
            for which in [true, false] {
                let given = inputs(2, which);
                let (a, b) = (run(&model, &given).unwrap(), run(&artifact, &given).unwrap());
                assert_eq!(elements::<f32>(&a[0]), elements::<f32>(&b[0]), "{name} {weights:?}");
            }
            let told = |session: &Session| {
                let port =
                    |port: &crate::session::Port| format!("{} {:?} {:?}", port.name, port.ty, port.shape);
                session.inputs().iter().chain(session.outputs()).map(port).collect::<Vec<_>>()
            };
            assert_eq!(told(&model), told(&artifact), "{name}");
            assert_eq!(model.metadata(), artifact.metadata(), "{name}");
        }
    }
}

#[test]
fn the_same_model_gives_the_same_bytes_and_memory_will_do() {
    let compiled = Compiled::new("bytes", &network(), "cpu,gfx1100", Policy::Used, &options(&[]));
    let first = std::fs::read(&compiled.artifact).unwrap();
    compiled.compile("cpu,gfx1100", Policy::Used, &options(&[]), Vec::new()).unwrap();
    assert!(first == std::fs::read(&compiled.artifact).unwrap());
    let kept = bytes::Bytes::from(first.clone());
    for source in [Source::Bytes(&first), Source::Kept(&kept), Source::Kept(&kept.slice(0..))] {
        let session = Session::open(environment(), source, &options(&[])).unwrap();
        assert_eq!(run(&session, &inputs(1, true)).unwrap().len(), 1);
    }
    // Nothing else was left in the folder.
    assert_eq!(std::fs::read_dir(&compiled.folder.0).unwrap().count(), 2);
}

#[test]
fn a_model_from_memory_is_compiled_as_well() {
    let compiled = Compiled::new("memory", &network(), "cpu", Policy::Used, &options(&[]));
    let bytes = network().bytes();
    for weights in [Policy::Used, Policy::External] {
        let targets = Targets::parse("cpu,gfx1100").unwrap();
        let wanted =
            CompileOptions { targets, weights, shapes: Vec::new(), overridable: true, tuning: Vec::new() };
        let out = compiled.folder.0.join("memory.rukh");
        let (source, told) = (Source::Bytes(&bytes), &mut |_: &str, _, _| true);
        compile_model(&compiled.environment, source, &options(&[]), &wanted, &out, told).unwrap();
        let session = compiled.open(&out, &options(&[])).unwrap();
        assert_eq!(session.load_counters().packed_bytes, 0);
        assert!(run(&session, &inputs(1, true)).is_ok());
    }
    // And kept in a cache.
    let folder = compiled.folder.0.join("cache");
    let cached = options(&[("model_cache_dir", folder.to_str().unwrap())]);
    for _ in 0..2 {
        let session = Session::open(environment(), Source::Bytes(&bytes), &cached).unwrap();
        assert_eq!(session.load_counters().packed_bytes, 0);
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn what_does_not_suit_says_why() {
    let compiled = Compiled::new("fit", &network(), "gfx1100,gfx90a", Policy::Used, &options(&[]));
    let refused = |settings: &[(&str, &str)]| {
        let error =
            compiled.open(&compiled.artifact, &options(settings)).err().map(|e| (e.status, e.message));
        let (status, message) = error.unwrap_or((Status::Internal, "it was opened".to_owned()));
        assert_eq!(status, Status::Unsupported, "{message}");
        message
    };
    assert!(refused(&[]).contains("no program for the CPU; it was compiled for gfx1100, gfx90a"));
    compiled
        .compile("cpu", Policy::Used, &options(&[("precision", "bf16"), ("dim.batch", "3")]), Vec::new())
        .unwrap();
    assert!(refused(&[("precision", "f32")]).contains("precision \"bf16\", and the options ask for \"f32\""));
    assert!(refused(&[("optimization", "basic")]).contains("optimization \"all\""));
    assert!(refused(&[]).contains("for batch=3 alone"));
    assert!(refused(&[("dim.batch", "2")]).contains("for batch=3 alone"));
    assert_eq!(compiled.verdict(&options(&[("dim.batch", "3")])), Verdict::Optimal);
    assert!(matches!(
        compiled.verdict(&options(&[("dim.batch", "3"), ("intra_op_threads", "5")])),
        Verdict::Works(reason) if reason.contains("packed for 2 threads, and 5 work here")
    ));
    compiled.compile("cpu", Policy::Used, &options(&[]), Vec::new()).unwrap();
    let session = compiled.open(&compiled.artifact, &options(&[("intra_op_threads", "5")]));
    assert_eq!(session.unwrap().load_counters().packed_bytes, 0);
}

#[test]
fn further_programs_are_for_fixed_dimensions() {
    let compiled = Compiled::new("shapes", &network(), "cpu", Policy::Used, &options(&[]));
    let shapes = [1, 4].map(|batch| BTreeMap::from([("batch".to_owned(), batch)])).to_vec();
    compiled.compile("cpu", Policy::Used, &options(&[]), shapes).unwrap();
    let error = compiled.open(&compiled.artifact, &options(&[("dim.bach", "1")])).err().unwrap();
    assert!(error.message.contains("\"dim.bach\": the model's inputs have no dimension"), "{error}");
    for (batch, verdict) in [("1", true), ("4", true), ("2", false)] {
        let options = options(&[("dim.batch", batch)]);
        assert_eq!(compiled.verdict(&options) == Verdict::Optimal, verdict, "{batch}");
        let session = compiled.open(&compiled.artifact, &options).unwrap();
        assert_eq!(session.inputs()[0].shape.as_ref().unwrap()[0].to_string(), batch);
        let (number, given) = (batch.parse().unwrap(), |n| inputs(n, true));
        assert!(run(&session, &given(number)).is_ok() && run(&session, &given(3)).is_err());
    }
}

#[test]
fn outside_weights_must_be_those_it_was_compiled_from() {
    let folder = Folder::new("artifact-outside");
    let data: Vec<u8> = numbers(64 * 64, 5).iter().flat_map(|x| x.to_le_bytes()).collect();
    folder.write("w.bin", &data);
    let model = ModelBuilder::new()
        .input("x", F32, &["n", "64"])
        .initializer(external("w", &[64, 64], "w.bin"))
        .node("MatMul", &["x", "w"], &["y"])
        .output("y");
    let path = folder.write("model.onnx", &model.bytes());
    let compiled =
        Compiled { model: path, artifact: folder.0.join("m.rukh"), environment: environment(), folder };
    compiled.compile("cpu,gfx90a", Policy::External, &options(&[]), Vec::new()).unwrap();
    let size = std::fs::metadata(&compiled.artifact).unwrap().len();
    assert!(size < 2 * data.len() as u64 + 20_000, "{size}");
    let open = || compiled.open(&compiled.artifact, &options(&[]));
    assert_eq!(run(&open().unwrap(), &[t(&[1, 64], &numbers(64, 6))]).unwrap().len(), 1);
    let mut other = data.clone();
    other[777] ^= 1;
    compiled.folder.write("w.bin", &other);
    assert!(open().err().unwrap().message.contains("is not the file that it was compiled from"));
    std::fs::remove_file(compiled.folder.0.join("w.bin")).unwrap();
    assert_eq!(open().err().unwrap().status, Status::NotFound);
}

#[test]
fn sessions_share_an_artifact_and_the_system_its_pages() {
    let compiled = Compiled::new("shared", &network(), "cpu", Policy::Used, &options(&[]));
    let shared = SessionOptions::default();
    let one = compiled.open(&compiled.artifact, &shared).unwrap();
    let two = compiled.open(&compiled.artifact, &shared).unwrap();
    assert!(Arc::ptr_eq(&one.opened, &two.opened));
}

#[test]
fn hip_runs_the_program_that_is_for_it() {
    let Some(hip) = on_hip(&[("share_weights", "0")]) else { return };
    // Of the device at hand, and others to choose among.
    let opened = open_with(environment(), &network(), &hip);
    let own = opened.opened.program.device.as_ref().unwrap().provider.target();
    let others = ["gfx1100", "gfx90a", "sm_90"].into_iter().filter(|&other| other != own);
    let targets: Vec<&str> = others.chain(["cpu", own]).collect();
    let compiled = Compiled::new("gpu", &network(), &targets.join(","), Policy::Used, &options(&[]));
    let model = compiled.open(&compiled.model, &hip).unwrap();
    let artifact = compiled.open(&compiled.artifact, &hip).unwrap();
    assert_eq!(artifact.load_counters().packed_bytes, 0);
    assert_eq!(model.placement(), artifact.placement());
    for which in [true, false] {
        let (a, b) = (run(&model, &inputs(2, which)).unwrap(), run(&artifact, &inputs(2, which)).unwrap());
        assert_eq!(elements::<f32>(&a[0]), elements::<f32>(&b[0]));
    }
    assert_eq!(compiled.verdict(&hip), Verdict::Optimal);
    compiled.compile("sm_70", Policy::Used, &options(&[]), Vec::new()).unwrap();
    assert!(
        matches!(compiled.verdict(&hip), Verdict::Works(reason) if reason.contains("is not among the GPUs"))
    );
}
