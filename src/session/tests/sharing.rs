//! Sessions on the same file share what they do not change.

use std::path::{Path, PathBuf};

use super::on_hip::{on_hip, on_hip_with};
use super::*;
use crate::model::testing::{external, floats};
use crate::session::LoadCounters;
use crate::tensor::ElementType::F32;

/// A folder of this test's own, which goes when the test ends.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("rukh-sharing-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn product(w: f32) -> Vec<u8> {
    ModelBuilder::new()
        .input("x", F32, &["n", "16"])
        .initializer(floats("w", &[16, 16], &[w; 256]))
        .node("MatMul", &["x", "w"], &["y"])
        .output("y")
        .bytes()
}

fn first(session: &Session) -> f32 {
    elements::<f32>(&run(session, &[t(&[1, 16], &[1.0f32; 16])]).unwrap()[0])[0]
}

fn are_shared(a: &Session, b: &Session) -> bool {
    Arc::ptr_eq(&a.opened, &b.opened)
}

#[test]
fn options_that_matter_keep_sessions_apart() {
    let folder = Folder::new("options");
    let path = folder.write("model.onnx", &product(0.5));
    let environment = environment();
    let open = |settings: &[(&str, &str)]| {
        let mut options = SessionOptions::default();
        settings.iter().for_each(|(key, value)| options.set(key, value).unwrap());
        Session::open(environment.clone(), Source::Path(&path), &options).unwrap()
    };
    let one = open(&[]);
    for (settings, shared) in [
        (&[][..], true),
        (&[("profiling", "1")], true),
        (&[("share_weights", "0")], false),
        (&[("load", "read")], false),
        (&[("optimization", "basic")], false),
        (&[("precision", "f16")], false),
        (&[("dim.n", "1")], false),
        (&[("intra_op_threads", "1")], false),
        (&[("plan_cache", "3")], false),
    ] {
        let other = open(settings);
        assert_eq!(are_shared(&one, &other), shared, "{settings:?}");
        assert_eq!(other.load_counters().shared_bytes > 0, shared, "{settings:?}");
        assert_eq!(other.profile().is_some(), settings.contains(&("profiling", "1")));
        assert_eq!(first(&other), 8.0, "{settings:?}");
        if !shared {
            assert!(
                settings.contains(&("share_weights", "0")) || are_shared(&other, &open(settings)),
                "{settings:?}"
            );
        }
    }
    let counters = one.load_counters();
    assert!(counters.mapped_bytes > 0 && counters.shared_bytes == 0, "{counters:?}");
    let elsewhere =
        Session::open(super::environment(), Source::Path(&path), &SessionOptions::default()).unwrap();
    assert!(!are_shared(&one, &elsewhere), "of another environment");
}

#[test]
fn shapes_that_change_are_planned_once_for_all() {
    let folder = Folder::new("shapes");
    let path = folder.write("model.onnx", &product(0.5));
    let environment = environment();
    let open = || Session::open(environment.clone(), Source::Path(&path), &Default::default()).unwrap();
    let sessions = [open(), open()];
    for rows in [1, 3, 2, 3, 1] {
        for session in &sessions {
            let inputs: Vec<f32> = (0..rows * 16).map(|i| (i / 16) as f32).collect();
            let outputs = run(session, &[t(&[rows, 16], &inputs)]).unwrap();
            let wanted: Vec<f32> = inputs.iter().map(|row| row * 8.0).collect();
            assert_eq!(elements::<f32>(&outputs[0]), wanted, "{rows} rows");
        }
    }
    let [one, other] = &sessions;
    assert!(are_shared(one, other));
    assert_eq!(other.opened.program.plan_count(), 3);
    // What is left works on when the session that opened the file is gone.
    let [one, other] = sessions;
    drop(one);
    assert_eq!(first(&other), 8.0);
}

/// Renames a file to a name that another one has. Windows keeps that one under its name while it is mapped, but lets it be
/// renamed.
fn give_name(new: &Path, name: &Path) {
    if cfg!(windows) {
        std::fs::rename(name, name.with_extension("old")).unwrap();
    }
    std::fs::rename(new, name).unwrap();
}

#[test]
fn a_file_that_changes_is_read_again() {
    let folder = Folder::new("changes");
    let environment = environment();
    let open = |path: &PathBuf| {
        Session::open(environment.clone(), Source::Path(path), &SessionOptions::default()).unwrap()
    };
    let path = folder.write("model.onnx", &product(0.5));
    let one = open(&path);
    // Another file takes the name; the first stays, as it is mapped.
    give_name(&folder.write("new.onnx", &product(0.25)), &path);
    let two = open(&path);
    assert!(!are_shared(&one, &two));
    assert_eq!((first(&one), first(&two)), (8.0, 4.0));
    // A link, another spelling.
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&path, folder.0.join("link.onnx")).unwrap();
        assert!(are_shared(&two, &open(&folder.0.join("link.onnx"))));
    }
    assert!(are_shared(&two, &open(&folder.0.join(".").join("model.onnx"))));
    // With the last session the model goes.
    drop((one, two));
    let counters = open(&path).load_counters();
    assert!(counters.mapped_bytes > 0 && counters.shared_bytes == 0, "{counters:?}");
}

#[test]
fn external_weights_belong_to_the_identity() {
    let folder = Folder::new("external");
    let environment = environment();
    let model = ModelBuilder::new()
        .input("x", F32, &["2", "3"])
        .initializer(external("w", &[2, 3], "weights.bin"))
        .node("Add", &["x", "w"], &["y"])
        .output("y")
        .bytes();
    let weights = |w: f32| [w; 6].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let path = folder.write("model.onnx", &model);
    folder.write("weights.bin", &weights(1.0));
    let open = |path: &PathBuf| {
        Session::open(environment.clone(), Source::Path(path), &SessionOptions::default()).unwrap()
    };
    let result =
        |session: &Session| elements::<f32>(&run(session, &[t(&[2, 3], &[0.0f32; 6])]).unwrap()[0])[0];
    let one = open(&path);
    assert!(are_shared(&one, &open(&path)));
    give_name(&folder.write("new.bin", &weights(2.0)), &folder.0.join("weights.bin"));
    let two = open(&path);
    assert!(!are_shared(&one, &two));
    assert_eq!((result(&one), result(&two)), (1.0, 2.0));
    // The same model in another folder has the weights that lie there.
    let other = Folder::new("external-other");
    other.write("weights.bin", &weights(3.0));
    std::fs::hard_link(&path, other.0.join("model.onnx")).unwrap();
    let three = open(&other.0.join("model.onnx"));
    assert!(!are_shared(&two, &three));
    assert_eq!(result(&three), 3.0);
}

#[test]
fn many_threads_open_and_run_one_model() {
    let folder = Folder::new("threads");
    let path = folder.write("model.onnx", &product(0.5));
    let environment = environment();
    let sessions: Vec<Session> = std::thread::scope(|scope| {
        let open = || {
            let session =
                Session::open(environment.clone(), Source::Path(&path), &SessionOptions::default()).unwrap();
            for _ in 0..20 {
                assert_eq!(first(&session), 8.0);
            }
            session
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(sessions.windows(2).all(|pair| are_shared(&pair[0], &pair[1])));
    let unshared = |counters: LoadCounters| counters.shared_bytes == 0;
    assert_eq!(sessions.iter().filter(|s| unshared(s.load_counters())).count(), 1);
}

#[test]
fn weights_on_a_gpu_are_there_once() {
    let Some(options) = on_hip(&[]) else { return };
    let folder = Folder::new("hip");
    let path = folder.write("model.onnx", &product(0.5));
    let environment = environment();
    let open =
        |options: &SessionOptions| Session::open(environment.clone(), Source::Path(&path), options).unwrap();
    let one = open(&options);
    assert_eq!(first(&one), 8.0);
    let others: Vec<Session> = (0..3).map(|_| open(&options)).collect();
    for session in &others {
        assert!(are_shared(&one, session));
        assert_eq!(first(session), 8.0);
    }
    assert_eq!(environment.device_memory(0).len(), 1, "one arena");
    // A limit of memory is for one session.
    let limited = on_hip_with(&[("gpu_mem_limit", "100000000")], &[]).unwrap();
    let (a, b) = (open(&limited), open(&limited));
    assert!(!are_shared(&a, &b) && first(&a) == 8.0 && first(&b) == 8.0);
}

#[test]
fn the_same_memory_is_shared_and_other_memory_is_not() {
    let bytes = bytes::Bytes::from(product(0.5));
    let copy = bytes::Bytes::copy_from_slice(&bytes);
    let environment = environment();
    let tensor = |value: f32| {
        let Value::Tensor(tensor) = t(&[16, 16], &[value; 256]) else { unreachable!() };
        tensor
    };
    let open = |bytes: &bytes::Bytes, given: Option<&Tensor>| {
        let mut options = SessionOptions::default();
        options.given.initializers.extend(given.map(|tensor| ("w".to_owned(), tensor.clone())));
        Session::open(environment.clone(), Source::Kept(bytes), &options).unwrap()
    };
    let (a, b) = (tensor(2.0), tensor(2.0));
    let one = open(&bytes, None);
    for (bytes, given, shared, first_element) in [
        (&bytes, None, true, 8.0),
        (&bytes.slice(..), None, true, 8.0),
        (&copy, None, false, 8.0),
        (&bytes, Some(&a), false, 32.0),
    ] {
        let other = open(bytes, given);
        assert_eq!(are_shared(&one, &other), shared, "{given:?}");
        assert_eq!(first(&other), first_element);
    }
    let replaced = open(&bytes, Some(&a));
    assert!(are_shared(&replaced, &open(&bytes, Some(&a))));
    assert!(!are_shared(&replaced, &open(&bytes, Some(&b))), "equal content elsewhere");
    assert_eq!(first(&one), 8.0);
    let copied = |bytes: &[u8]| {
        Session::open(environment.clone(), Source::Bytes(bytes), &SessionOptions::default()).unwrap()
    };
    assert!(!are_shared(&copied(&bytes), &copied(&bytes)));
}
