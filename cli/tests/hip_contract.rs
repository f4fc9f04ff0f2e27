//! Holds the HIP layer to its contract with `libamdhip64`, against a stand-in that records each call and
//! fails where it is told to: which functions are called, on which stream, with which sizes; that a failure
//! becomes a clear error; that everything is given back; and what a session can do afterwards.
//!
//! A runtime is opened once in a process, so each case runs this program again as a child.

mod hip;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use rukh_cli::api::{Environment, Error, Options, Provider, Session};
use rukh_cli::data;

/// Set in a child: the provider options, `key=value` a word.
const CHILD: &str = "RUKH_CONTRACT_CHILD";

/// What a child did.
struct Outcome {
    /// A line an action: `open: ok`, `run: …`.
    actions: String,
    /// A line a call of the stand-in.
    calls: String,
    /// The shared libraries in the process at its end, a path a line.
    libraries: String,
    /// What went to stderr, the log's warnings among it.
    log: String,
}

impl Outcome {
    fn count(&self, function: &str) -> usize {
        self.calls.lines().filter(|line| line.split(' ').next() == Some(function)).count()
    }

    fn balance(&self) -> &str {
        self.calls.lines().find(|line| line.starts_with("balance")).unwrap_or("no balance")
    }
}

const BALANCED: &str = "balance allocations=0 streams=0 events=0 modules=0 device=0";

#[test]
fn calls_and_failures() {
    if let Ok(options) = std::env::var(CHILD) {
        return child(&options);
    }
    let library = stand_in("plain", &[]);
    let run = |environment: &[(&str, &str)], options: &str| outcome(&library, environment, options);

    let plain = run(&[], "");
    if plain.actions.contains("this build of rukh has no") {
        assert!(std::env::var_os("RUKH_REQUIRE_HIP").is_none(), "RUKH_REQUIRE_HIP: {}", plain.actions);
        println!("skipped: {}", plain.actions);
        return;
    }
    assert_eq!(plain.actions, "open: ok\nrun: ok\nrun: ok\n");
    assert_eq!(plain.balance(), BALANCED, "{}", plain.calls);
    let first: Vec<&str> = plain.calls.lines().take(3).collect();
    assert_eq!(first, ["hipInit 0", "hipRuntimeGetVersion", "hipGetDeviceCount"]);
    // Two runs of one launch: all on one stream, and each waited for once.
    let on_stream = |function: &str| -> Vec<String> {
        let lines = plain.calls.lines().filter(|line| line.starts_with(function));
        lines.filter_map(|line| line.split(' ').next_back()).map(str::to_owned).collect()
    };
    let launches = on_stream("hipModuleLaunchKernel");
    assert_eq!(launches.len(), 2);
    assert_eq!(launches[0], launches[1]);
    assert!(on_stream("hipMemcpyDtoHAsync").iter().all(|stream| *stream == launches[0]));
    assert!(plain.calls.contains("hipMemcpyHtoDAsync 48 "), "the input has 12 floats:\n{}", plain.calls);
    let waits = plain.calls.lines().filter(|line| *line == format!("hipStreamSynchronize {}", launches[0]));
    assert!(waits.count() <= 4, "{}", plain.calls);

    // What opening and two runs give: "ok", or the status (9 out of memory, 11 device, 12 poisoned).
    for (fail, wanted) in [
        // One refusal is met by giving back what is cached and trying again.
        ("hipMalloc:1:2", "ok ok ok"),
        ("hipMalloc:0:2", "ok 9 9"),
        ("hipStreamCreateWithFlags:1:999", "11"),
        ("hipStreamCreateWithFlags:2:999", "ok 11 ok"),
        ("hipModuleLoadData:1:209", "ok 11 ok"),
        ("hipModuleGetFunction:1:500", "ok 11 ok"),
        ("hipEventCreateWithFlags:1:999", "ok 11 ok"),
        // Without pinned memory copies go through the host's own.
        ("hipHostMalloc:0:2", "ok ok ok"),
        ("hipMemcpyHtoDAsync:1:1", "ok 11 ok"),
        ("hipMemcpyDtoHAsync:1:1", "ok 11 ok"),
        ("hipModuleLaunchKernel:1:1", "ok 11 ok"),
        // A fault stays: the device is not used again, so nothing can be given back to it.
        ("hipModuleLaunchKernel:1:700", "ok 12 12"),
        ("hipStreamSynchronize:1:700", "ok 12 12"),
    ] {
        let outcome = run(&[("STAND_IN_FAIL", fail)], "");
        let statuses = outcome.actions.lines().filter_map(|line| line.split(' ').nth(1));
        assert_eq!(statuses.collect::<Vec<_>>().join(" "), wanted, "{fail}: {}", outcome.actions);
        let code = fail.rsplit(':').next().unwrap();
        let told =
            wanted.starts_with("ok ok") || code == "2" || outcome.actions.contains(&format!("({code})"));
        assert!(told, "{fail}: the error has the runtime's: {}", outcome.actions);
        if !wanted.contains("12") {
            assert_eq!(outcome.balance(), BALANCED, "{fail}:\n{}", outcome.calls);
        }
    }

    for (environment, options, actions) in [
        (("STAND_IN_DEVICES", "0"), "", "runtime 6.2 found"),
        (("STAND_IN_DEVICES", "0"), "", "no AMD GPU"),
        (("STAND_IN_VERSION", "40300000"), "", "too old; the oldest that works is 5.0"),
        (("STAND_IN_DEVICES", "2"), "device_id=3", "device_id 3 is not there: this machine has 2 (0 to 1)"),
        (
            ("STAND_IN_DEVICES", "2"),
            "user_compute_stream=0xdead00",
            "is a stream of device 1; device_id is 0",
        ),
    ] {
        let outcome = run(&[environment], options);
        assert!(outcome.actions.starts_with("open: "), "{}", outcome.actions);
        assert!(outcome.actions.contains(actions), "{environment:?} {options}: {}", outcome.actions);
    }

    // The caller's device stays current although the session uses another one.
    let second = run(&[("STAND_IN_DEVICES", "2")], "device_id=1");
    assert_eq!((second.actions.as_str(), second.balance()), ("open: ok\nrun: ok\nrun: ok\n", BALANCED));

    // Work goes to the user's stream, and no stream is made for runs.
    let users = run(&[], "user_compute_stream=4096");
    assert_eq!(users.actions, "open: ok\nrun: ok\nrun: ok\n");
    assert_eq!(users.count("hipStreamCreateWithFlags"), 1, "for uploads:\n{}", users.calls);
    assert!(users.calls.contains("x 64 1 1 0x1000"), "{}", users.calls);

    // Copies apart: three streams, each ordered after the one that it needs.
    let apart = run(&[], "do_copy_in_default_stream=0");
    assert_eq!((apart.actions.as_str(), apart.balance()), ("open: ok\nrun: ok\nrun: ok\n", BALANCED));
    let stream_of = |function: &str| {
        let line = apart.calls.lines().find(|line| line.starts_with(function)).unwrap_or_default();
        line.split(' ').next_back().unwrap_or_default().to_owned()
    };
    let streams = ["hipMemcpyHtoDAsync 48", "hipModuleLaunchKernel", "hipMemcpyDtoHAsync"].map(stream_of);
    assert!(
        streams[0] != streams[1] && streams[1] != streams[2] && streams[0] != streams[2],
        "{}",
        apart.calls
    );
    for stream in &streams {
        assert!(apart.calls.contains(&format!("hipStreamWaitEvent {stream}")), "{stream}:\n{}", apart.calls);
    }
    for fail in ["hipStreamWaitEvent:1:1", "hipEventRecord:1:1"] {
        let outcome = run(&[("STAND_IN_FAIL", fail)], "do_copy_in_default_stream=0");
        assert!(outcome.actions.starts_with("open: ok\nrun: 11 "), "{fail}: {}", outcome.actions);
        assert!(outcome.actions.ends_with("run: ok\n"), "{fail}: {}", outcome.actions);
        assert_eq!(outcome.balance(), BALANCED, "{fail}:\n{}", outcome.calls);
    }
    recorded_runs(&library);

    // No compiler is opened, neither by rukh nor for it.
    let opened: Vec<&str> = plain.libraries.lines().collect();
    assert!(opened.iter().any(|name| name.contains("stand_in_plain")), "{opened:?}");
    let compilers = ["rtc", "comgr", "LLVM", "clang", "lld", "nvvm"];
    assert!(!opened.iter().any(|name| compilers.iter().any(|part| name.contains(part))), "{opened:?}");

    let without = stand_in("without_launch", &["-DWITHOUT_LAUNCH"]);
    let old = outcome(&without, &[], "");
    assert!(old.actions.contains("too old: it has no hipModuleLaunchKernel"), "{}", old.actions);
    let without = stand_in("without_stream_device", &["-DWITHOUT_STREAM_DEVICE"]);
    assert_eq!(outcome(&without, &[], "user_compute_stream=4096").actions, "open: ok\nrun: ok\nrun: ok\n");
}

/// Runs with and without graphs. A runtime that cannot record runs without them, and says so to who asked.
fn recorded_runs(plain: &Path) {
    let with_graphs = stand_in("graphs", &["-DWITH_GRAPHS"]);
    let (silent, told) = (false, true);
    // The actions are opening and two runs. How often a graph was made and launched, and what the log tells.
    for (library, options, fail, wanted, made, launched, warned) in [
        (plain, "", "", "ok ok ok", 0, 0, silent),
        (plain, "enable_hip_graph=1", "", "ok ok ok", 0, 0, told),
        (&with_graphs, "", "", "ok ok ok", 1, 1, silent),
        (&with_graphs, "enable_hip_graph=1", "", "ok ok ok", 1, 1, silent),
        (&with_graphs, "enable_hip_graph=0", "", "ok ok ok", 0, 0, silent),
        (&with_graphs, "user_compute_stream=4096", "", "ok ok ok", 1, 1, silent),
        (&with_graphs, "do_copy_in_default_stream=0", "", "ok ok ok", 1, 1, silent),
        // What cannot be recorded runs as it is.
        (&with_graphs, "", "hipStreamBeginCapture:1:801", "ok ok ok", 0, 0, silent),
        (&with_graphs, "enable_hip_graph=1", "hipStreamBeginCapture:1:801", "ok ok ok", 0, 0, told),
        (&with_graphs, "", "hipStreamEndCapture:1:901", "ok ok ok", 0, 0, silent),
        (&with_graphs, "enable_hip_graph=1", "hipGraphInstantiateWithFlags:1:801", "ok ok ok", 1, 0, told),
        (&with_graphs, "", "hipModuleLaunchKernel:2:1", "ok ok ok", 0, 0, silent),
        // A failure of the device's is one.
        (&with_graphs, "", "hipGraphLaunch:1:1", "ok ok 11", 1, 1, silent),
        (&with_graphs, "", "hipGraphLaunch:1:700", "ok ok 12", 1, 1, silent),
        (&with_graphs, "", "hipStreamEndCapture:1:700", "ok ok 12", 0, 0, silent),
    ] {
        let outcome = outcome(library, &[("STAND_IN_FAIL", fail)], options);
        let context = format!("{options} {fail}: {}\n{}", outcome.actions, outcome.calls);
        let statuses = outcome.actions.lines().filter_map(|line| line.split(' ').nth(1));
        assert_eq!(statuses.collect::<Vec<_>>().join(" "), wanted, "{context}");
        let counts = ["hipGraphInstantiateWithFlags", "hipGraphLaunch"].map(|name| outcome.count(name));
        assert_eq!(counts, [made, launched], "{context}");
        assert_eq!(
            outcome.log.contains("enable_hip_graph has no effect"),
            warned,
            "{context}\n{}",
            outcome.log
        );
        if !wanted.contains("12") {
            assert_eq!(outcome.balance(), BALANCED, "{context}");
            assert!(
                !outcome.calls.contains("\ngraphs ") || outcome.calls.contains("\ngraphs 0"),
                "{context}"
            );
        }
    }
}

/// AMD's own runtime, as Debian packages it, where there is no GPU.
#[test]
fn the_real_runtime_finds_no_gpu() {
    let library = Path::new("/usr/lib/x86_64-linux-gnu/libamdhip64.so.5");
    if !library.exists() || Path::new("/dev/kfd").exists() {
        let needed = std::env::var_os("RUKH_REQUIRE_HIP").is_some() && !Path::new("/dev/kfd").exists();
        assert!(!needed, "RUKH_REQUIRE_HIP is set, and {} is not there", library.display());
        println!("skipped: {} is not there, or this machine has a GPU", library.display());
        return;
    }
    let outcome = outcome(library, &[], "");
    let wanted = ["open: 11 ", "runtime 5.2 found", "no AMD GPU", "option \"fallback\" is \"error\""];
    assert!(wanted.iter().all(|part| outcome.actions.contains(part)), "{}", outcome.actions);
}

/// Opens the model on the stand-in and runs it twice; prints what happened.
fn child(options: &str) {
    let environment = Environment::new(1, false).unwrap();
    let pairs = options.split_whitespace().filter_map(|word| word.split_once('='));
    let provider = Provider {
        name: "hip".to_owned(),
        options: pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
    };
    let options = Options {
        providers: vec![provider],
        settings: vec![("fallback".to_owned(), "error".to_owned())],
        ..Options::default()
    };
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hip/relu.onnx");
    let report = |action: &str, result: Result<(), Error>| match result {
        Ok(()) => println!("{action}: ok"),
        Err(error) => println!("{action}: {} {error}", error.status),
    };
    match Session::open(&environment, &model, &options) {
        Ok(session) => {
            report("open", Ok(()));
            for seed in 0..2 {
                let input = data::generate(&session.inputs()[0], &Default::default(), seed).unwrap();
                let bound = session.bind(&[("x".to_owned(), input)]);
                report("run", bound.and_then(|bound| session.run(&bound)).map(|_| ()));
            }
        }
        Err(error) => report("open", Err(error)),
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let files = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let libraries: BTreeSet<&str> = files.filter(|file| file.contains(".so")).collect();
    libraries.iter().for_each(|file| println!("library: {file}"));
}

fn outcome(library: &Path, environment: &[(&str, &str)], options: &str) -> Outcome {
    let log = library.with_extension("log");
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "calls_and_failures", "--nocapture"])
        .env(CHILD, options)
        .env("RUKH_HIP_LIBRARY", library)
        .env("STAND_IN_LOG", &log)
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{environment:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let actions = text.lines().filter(|line| line.starts_with("open: ") || line.starts_with("run: "));
    Outcome {
        actions: actions.map(|line| format!("{line}\n")).collect(),
        calls: std::fs::read_to_string(&log).unwrap_or_default(),
        log: String::from_utf8_lossy(&output.stderr).into_owned(),
        libraries: text
            .lines()
            .filter_map(|line| line.strip_prefix("library: "))
            .map(|l| format!("{l}\n"))
            .collect(),
    }
}

/// Compiles the stand-in.
fn stand_in(name: &str, flags: &[&str]) -> PathBuf {
    hip::library("stand_in.c", name, flags)
}
