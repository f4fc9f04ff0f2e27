//! Artifacts that sessions make for later ones.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::artifacts::{inputs, network, options};
use super::on_hip::on_hip;
use super::sharing::Folder;
use super::*;
use crate::model::testing::{external, floats};
use crate::tensor::ElementType::F32;

/// Sessions that do not share what they opened.
fn open(path: &std::path::Path, settings: &[(&str, &str)]) -> Session {
    Session::open(environment(), Source::Path(path), &options(settings)).unwrap()
}

fn packed(session: &Session) -> u64 {
    session.load_counters().packed_bytes
}

fn artifacts(folder: &std::path::Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "rukh")).collect();
    found.sort();
    found
}

#[test]
fn the_first_session_writes_what_later_ones_map() {
    let folder = Folder::new("cache");
    let path = folder.write("model.onnx", &network().bytes());
    let cache = folder.0.join("kept/here");
    let dir = ("model_cache_dir", cache.to_str().unwrap());
    let plain = open(&path, &[]);
    run(&plain, &inputs(2, true)).unwrap();
    assert!(packed(&plain) > 0);
    for (settings, count) in [
        (vec![dir], 1),
        (vec![dir], 1),
        (vec![dir, ("dim.batch", "2")], 2),
        (vec![dir, ("intra_op_threads", "3")], 3),
        (vec![dir, ("optimization", "basic")], 4),
        (vec![dir, ("load", "read")], 4),
    ] {
        let session = open(&path, &settings);
        assert_eq!((packed(&session), artifacts(&cache).len()), (0, count), "{settings:?}");
        // Without the artifact, with the same threads: what is added in which order may depend on them.
        let (_, alike) = settings.split_first().unwrap();
        let wanted = run(&open(&path, alike), &inputs(2, true)).unwrap();
        let found = run(&session, &inputs(2, true)).unwrap();
        assert_eq!(elements::<f32>(&found[0]), elements::<f32>(&wanted[0]), "{settings:?}");
    }
    // Sessions that share find the artifact's sessions by the model.
    let environment = environment();
    let shared = || {
        let mut options = SessionOptions::default();
        options.set(dir.0, dir.1).unwrap();
        Session::open(environment.clone(), Source::Path(&path), &options).unwrap()
    };
    assert!(Arc::ptr_eq(&shared().opened, &shared().opened));
}

#[test]
fn a_changed_model_or_damaged_artifact_is_made_anew() {
    let folder = Folder::new("cache-changed");
    let data = |scale: f32| -> Vec<u8> { (0..4096).flat_map(|i| (i as f32 * scale).to_le_bytes()).collect() };
    folder.write("w.bin", &data(1.0));
    let model = ModelBuilder::new()
        .input("x", F32, &["n", "64"])
        .initializer(external("w", &[64, 64], "w.bin"))
        .node("MatMul", &["x", "w"], &["y"])
        .output("y");
    let path = folder.write("model.onnx", &model.bytes());
    let first = |setting: (&str, &str)| {
        let session = open(&path, &[setting]);
        assert_eq!(packed(&session), 0, "{setting:?}");
        elements::<f32>(&run(&session, &[t(&[1, 64], &[1.0f32; 64])]).unwrap()[0])[1]
    };
    let (one, dir) = (folder.0.join("one.rukh"), folder.0.join("dir"));
    for setting in
        [("compiled_model_path", one.to_str().unwrap()), ("model_cache_dir", dir.to_str().unwrap())]
    {
        folder.write("w.bin", &data(1.0));
        let before = first(setting);
        folder.write("w.bin", &data(2.0));
        assert_eq!(first(setting), 2.0 * before, "external data that changed");
        let file = if setting.0 == "model_cache_dir" { artifacts(&dir).remove(0) } else { one.clone() };
        let mut bytes = std::fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        assert_eq!(first(setting), 2.0 * before, "a damaged artifact");
        assert_ne!(std::fs::read(&file).unwrap(), bytes);
    }
}

#[test]
fn where_there_can_be_no_cache_models_open_as_ever() {
    let folder = Folder::new("cache-none");
    let path = folder.write("model.onnx", &network().bytes());
    let file = folder.write("file", b"no folder");
    for dir in [file.join("below"), PathBuf::from("/proc/no/such/folder")] {
        let session = open(&path, &[("model_cache_dir", dir.to_str().unwrap())]);
        assert!(packed(&session) > 0 && run(&session, &inputs(1, false)).is_ok());
    }
    // Runs may give other values for initializers.
    let model = ModelBuilder::new()
        .input("x", F32, &["1", "4"])
        .input("w", F32, &["4", "4"])
        .initializer(floats("w", &[4, 4], &[1.0; 16]))
        .node("MatMul", &["x", "w"], &["y"])
        .output("y");
    let path = folder.write("overridable.onnx", &model.bytes());
    let session = open(&path, &[("model_cache_dir", folder.0.to_str().unwrap())]);
    assert_eq!((session.overridable().len(), artifacts(&folder.0).len()), (1, 0));
}

#[test]
fn the_oldest_go_when_there_are_too_many() {
    let folder = Folder::new("cache-limit");
    let path = folder.write("model.onnx", &network().bytes());
    let cache = folder.0.join("cache");
    let dir = ("model_cache_dir", cache.to_str().unwrap());
    open(&path, &[dir]);
    let size = std::fs::metadata(&artifacts(&cache)[0]).unwrap().len();
    let limit = (size * 5 / 2).to_string();
    let age = |path: &PathBuf, seconds: u64| {
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
    };
    let first = artifacts(&cache).remove(0);
    let abandoned = cache.join("model-0.rukh.17.0.unfinished");
    std::fs::write(&abandoned, b"half").unwrap();
    age(&abandoned, 7200);
    for batch in ["1", "2", "3"] {
        artifacts(&cache).iter().filter(|path| **path != first).for_each(|path| age(path, 60));
        // The first one is used again and again.
        open(&path, &[dir]);
        open(&path, &[dir, ("dim.batch", batch), ("model_cache_limit", &limit)]);
        assert!(first.exists() && artifacts(&cache).len() <= 2, "{batch}");
    }
    assert!(!abandoned.exists());
}

#[test]
fn many_sessions_may_make_one_at_once() {
    let folder = Folder::new("cache-threads");
    let path = folder.write("model.onnx", &network().bytes());
    let cache = folder.0.join("cache");
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let session = open(&path, &[("model_cache_dir", cache.to_str().unwrap())]);
                assert_eq!(packed(&session), 0);
                run(&session, &inputs(1, true)).unwrap();
            });
        }
    });
    assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 1);
}

#[test]
fn hip_has_an_artifact_of_its_own() {
    let folder = Folder::new("cache-gpu");
    let path = folder.write("model.onnx", &network().bytes());
    let dir = folder.0.to_str().unwrap();
    let Some(hip) = on_hip(&[("share_weights", "0"), ("model_cache_dir", dir)]) else { return };
    let opened = || Session::open(environment(), Source::Path(&path), &hip).unwrap();
    let (a, b) = (run(&opened(), &inputs(1, true)).unwrap(), run(&opened(), &inputs(1, true)).unwrap());
    assert_eq!(elements::<f32>(&a[0]), elements::<f32>(&b[0]));
    assert_eq!(artifacts(&folder.0).len(), 1);
    open(&path, &[("model_cache_dir", dir)]);
    assert_eq!(artifacts(&folder.0).len(), 2);
}
