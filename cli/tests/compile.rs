//! `rukh compile`, and artifacts in the model's place.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn rukh(arguments: &[&str]) -> Output {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/digits");
    Command::new(env!("CARGO_BIN_EXE_rukh")).args(arguments).current_dir(example).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder of the test's own, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("rukh-compile-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_name_of_a_target_is_understood_and_the_artifact_runs() {
    let folder = Folder::new("targets");
    let out = folder.path("digits.rukh");
    let targets = "cpu,mi300x,Radeon RX 7900 XTX,rdna4,aldebaran,h200,gfx1100";
    let output = rukh(&["compile", "digits.onnx", "-o", &out, "--target", targets]);
    assert!(output.status.success(), "{output:?}");
    assert!(
        text(&output.stdout).ends_with(" for cpu, gfx942, gfx1100, gfx1200, gfx1201, gfx90a, sm_90\n"),
        "{output:?}"
    );
    assert!(
        text(&output.stderr)
            .starts_with("[1/5] optimising the model for cpu\n[2/5] packing weights for cpu\n")
    );
    let run = rukh(&["run", &out, "--input", "sample.npz", "--expect", "sample.npz"]);
    assert!(run.status.success(), "{run:?}");
    let bench = rukh(&["bench", &out, "--runs", "3", "--json"]);
    assert!(bench.status.success(), "{bench:?}");
}

#[test]
fn info_tells_the_verdict() {
    let folder = Folder::new("info");
    let out = folder.path("digits.rukh");
    assert!(
        rukh(&["compile", "digits.onnx", "-o", &out, "--target", "cpu", "--shape", "batch=8"])
            .status
            .success()
    );
    let info = rukh(&["info", &out]);
    assert!(info.status.success() && text(&info.stdout).contains("verdict optimal"), "{info:?}");
    let other = rukh(&["info", &out, "--threads", "7"]);
    assert!(text(&other.stdout).contains("works: its weights are packed for"), "{other:?}");
    assert!(rukh(&["compile", "digits.onnx", "-o", &out, "--target", "gfx1100"]).status.success());
    let unfit = rukh(&["info", &out, "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&unfit.stdout).unwrap();
    assert_eq!(unfit.status.code(), Some(1));
    assert_eq!(told["artifact"]["verdict"], "not for this device");
    assert_eq!(told["artifact"]["holds"]["programs"][0]["targets"][0], "gfx1100");
}

#[test]
fn errors_say_what_is_allowed_and_nothing_is_left() {
    let folder = Folder::new("errors");
    let out = folder.path("digits.rukh");
    for (arguments, part) in [
        (&["--target", "mi3000x"][..], "no target is called \"mi3000x\"; the nearest names are mi300x"),
        (&["--weights", "some"], "allowed are used, all and external"),
        (&["--shape", "batch"], "allowed are NAME=SIZE"),
        (&["--shape", "bach=3"], "the model's inputs have no dimension of this name; they have batch"),
    ] {
        let output = rukh(&[&["compile", "digits.onnx", "-o", &out][..], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains(part), "{output:?}");
    }
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0);
}

/// A process that is killed while it writes leaves nothing by that name, or the whole file that was there before.
#[cfg(unix)]
#[test]
fn a_killed_process_leaves_no_half_of_a_file() {
    const KILLS: u32 = 100;
    let folder = Folder::new("killed");
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/generate/model/model.onnx");
    let out = folder.path("model.rukh");
    let mut compile = Command::new(env!("CARGO_BIN_EXE_rukh"));
    compile.args(["compile", model, "-o", &out, "--target", "cpu,gfx1100"]);
    compile.stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    assert!(compile.status().unwrap().success());
    let whole_time = start.elapsed();
    let whole = std::fs::read(&out).unwrap();
    let (mut killed, mut unfinished) = (0, 0);
    for i in 0..KILLS {
        // Half of them find an older file in the place.
        if i % 2 == 0 {
            std::fs::remove_file(&out).unwrap();
        }
        let mut child = compile.spawn().unwrap();
        std::thread::sleep(whole_time.mul_f64(f64::from(i) / f64::from(KILLS)) + Duration::from_micros(1));
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        match std::fs::read(&out) {
            Ok(bytes) => assert!(bytes == whole, "a file of {} bytes after kill {i}", bytes.len()),
            Err(error) => {
                assert!(error.kind() == std::io::ErrorKind::NotFound && i % 2 == 0, "kill {i}: {error}");
                std::fs::write(&out, &whole).unwrap();
            }
        }
        for left in std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().path()) {
            if left != Path::new(&out) {
                unfinished += 1;
                std::fs::remove_file(left).unwrap();
            }
        }
    }
    // Some of them were killed while they wrote.
    assert!(killed > KILLS / 2 && unfinished > 0, "{killed} were killed, {unfinished} of them while writing");
}
