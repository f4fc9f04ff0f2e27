//! Which kernels a session takes: what tuning measures, what is recorded, and what of a record is believed.
//!
//! A stand-in for the runtime says how long each kernel takes, and stand-ins for hipBLASLt and rocBLAS check
//! what they are told. A runtime is opened once in a process, so each case runs this program again as a child.

mod hip;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rukh_cli::api::{Environment, Options, Provider, Session};
use rukh_cli::data::{self, Scale, Tolerance};

/// Set in a child: the provider options, `key=value` a word.
const CHILD: &str = "RUKH_TUNING_CHILD";
/// Set in a child: the file whose text the session takes before it runs.
const ADD: &str = "RUKH_TUNING_ADD";

/// What a child did.
struct Outcome {
    /// What it printed and what was logged.
    text: String,
    /// The kernels that were asked for, in order.
    kernels: Vec<String>,
    /// How many of them were launched.
    launches: usize,
    /// A line a product of the libraries, then their balance.
    products: String,
}

struct Case<'c> {
    options: &'c str,
    environment: &'c [(&'c str, &'c str)],
    add: Option<&'c str>,
}

const PLAIN: Case<'_> = Case { options: "", environment: &[], add: None };
const ON: &str = "tunable_op_enable=1";
const TUNING: &str = "tunable_op_enable=1 tunable_op_tuning_enable=1";

/// The problem of the node "product", and of the other.
const PRODUCT: &str = "gemm float_nn_m8_n80_k512_a512x1_b80x1_o80x1_Identity";
const POSITIVE: &str = "gemm float_nn_m8_n80_k512_a512x1_b80x1_o80x1_bias0x1_Relu";

#[test]
fn the_fastest_is_taken() {
    if std::env::var_os(CHILD).is_some() {
        return child();
    }
    let plain = run(&PLAIN);
    if plain.text.contains("this build of rukh has no") {
        assert!(std::env::var_os("RUKH_REQUIRE_HIP").is_none(), "RUKH_REQUIRE_HIP: {}", plain.text);
        println!("skipped: {}", plain.text);
        return;
    }
    // Off, nothing is measured and no library is opened; what is there cannot be asked for.
    assert_eq!(plain.kernels, ["gemm_f32_small", "gemm_f32_small"]);
    assert!(plain.text.contains("results: the session does not choose among kernels"), "{}", plain.text);
    assert_eq!(plain.products, "");
    // On without tuning and without records: the same kernels.
    assert_eq!(run(&Case { options: ON, ..PLAIN }).kernels, plain.kernels);

    // The fastest that is measured is taken and recorded; a second session measures nothing.
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tuning_results.txt");
    let _ = std::fs::remove_file(&file);
    let with_file = |options: &str| format!("{options} tunable_op_file={}", file.display());
    let fast = [("STAND_IN_FAST", "gemm_f32_large")];
    let options = with_file(TUNING);
    let tuned = run(&Case { options: &options, environment: &fast, ..PLAIN });
    assert_eq!(tuned.kernels.last().unwrap(), "gemm_f32_large", "{:?}", tuned.kernels);
    for (problem, default) in [(PRODUCT, "gemm_f32_small/2"), (POSITIVE, "gemm_f32_small/2")] {
        let told = format!("tuning {problem}: gemm_f32_large of");
        assert!(tuned.text.contains(&told), "{}", tuned.text);
        assert!(tuned.text.contains(&format!("the default {default} ")), "{}", tuned.text);
        assert!(
            tuned.text.contains(&format!("results: result {problem} gemm_f32_large 1.000")),
            "{}",
            tuned.text
        );
    }
    let saved = std::fs::read_to_string(&file).unwrap();
    assert!(saved.starts_with("rukh tuning results 1\nvalidate rukh "), "{saved}");
    let again = run(&Case { options: &options, ..PLAIN });
    assert_eq!(again.kernels, ["gemm_f32_large", "gemm_f32_large"]);
    assert!(!again.text.contains(" takes "), "{}", again.text);

    // A text that is given to a session rules over what the session found, and the file is not touched.
    let other = saved.replace("gemm_f32_large", "gemm_f32_small");
    let given = run(&Case { options: &with_file(ON), add: Some(&other), ..PLAIN });
    assert!(given.text.contains("taken: 2"), "{}", given.text);
    assert_eq!(given.kernels, ["gemm_f32_small", "gemm_f32_small"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), saved);

    // What does not hold here is not used, and the log says why.
    let line = |from: &str, to: &str| saved.replace(from, to);
    for (text, taken, told) in [
        (line("gfx1100", "gfx942"), 0, "are not used: kernels is \"gfx942 "),
        (
            line("arch gfx1100", "arch gfx942"),
            0,
            "are not used: arch is \"gfx942\" in it, and \"gfx1100\" here",
        ),
        (line("runtime amd 6.2", "runtime amd 5.7"), 0, "runtime is \"amd 5.7\" in it"),
        (line("libraries none", "libraries rocblas-1"), 0, "libraries is \"rocblas-1\" in it"),
        ("{}".to_owned(), 0, "the first line is \"{}\""),
        (line(" 1.000", " fast"), 0, "is no result"),
        (line("gemm_f32_large", "gemm_f32_tiny"), 2, "has no candidate gemm_f32_tiny here"),
        (line("gemm_f32_large", "rocblas:11"), 2, "has no candidate rocblas:11 here"),
    ] {
        let outcome = run(&Case { options: ON, add: Some(&text), ..PLAIN });
        assert!(outcome.text.contains(&format!("taken: {taken}\n")), "{told}: {}", outcome.text);
        assert!(outcome.text.contains("warning: tuning results"), "{told}: {}", outcome.text);
        assert!(outcome.text.contains(told), "{told}: {}", outcome.text);
        assert_eq!(outcome.kernels, plain.kernels, "{told}");
    }

    // A file that cannot be read or written is told, and is no reason to fail.
    let folder = format!("{TUNING} tunable_op_file={}", env!("CARGO_TARGET_TMPDIR"));
    let unwritable = run(&Case { options: &folder, ..PLAIN });
    assert!(unwritable.text.contains("cannot be written"), "{}", unwritable.text);
    assert_eq!(unwritable.text.matches("ran").count(), 2, "{}", unwritable.text);

    // The environment counts where no option is set.
    let variables = [("ORT_ROCM_TUNABLE_OP_ENABLE", "1"), ("RUKH_TUNABLE_OP_FILE", file.to_str().unwrap())];
    assert_eq!(run(&Case { environment: &variables, ..PLAIN }).kernels, again.kernels);
    let refused = run(&Case { options: "tunable_op_enable=0", environment: &variables, ..PLAIN });
    assert_eq!(refused.kernels, plain.kernels);
    // A runtime that measures no time: nothing is chosen.
    let fails = run(&Case {
        options: TUNING,
        environment: &[("STAND_IN_FAIL", "hipEventElapsedTime:0:801")],
        ..PLAIN
    });
    assert!(fails.text.contains("failed to measure time") && fails.text.contains("the default is used"));
    assert_eq!(fails.text.matches("ran").count(), 2, "{}", fails.text);
}

#[test]
fn libraries_are_candidates() {
    let blas = hip::library("stand_in_blas.c", "blas", &[]);
    let blas = blas.to_str().unwrap();
    let (lt, roc) = (("RUKH_HIPBLASLT_LIBRARY", blas), ("RUKH_ROCBLAS_LIBRARY", blas));
    let plain = run(&Case { options: ON, environment: &[lt, roc], ..PLAIN });
    if plain.text.contains("this build of rukh has no") {
        println!("skipped: {}", plain.text);
        return;
    }
    assert!(plain.text.contains("libraries: hipblaslt-100100 rocblas-4.2.1.abcdef"), "{}", plain.text);
    assert_eq!(plain.products, "balance 0\n", "nothing is asked of them without a record");

    // A library that is fast is taken, with all that becomes of the sums: a bias and ReLU too.
    let tuned = run(&Case { options: TUNING, environment: &[lt, roc], ..PLAIN });
    let name = name_after(&tuned.text, PRODUCT);
    assert!(name.starts_with("hipblaslt:") && !name.ends_with("+finish"), "{name}");
    assert_eq!(name_after(&tuned.text, POSITIVE), name, "{}", tuned.text);
    assert!(tuned.products.contains("hipblasLtMatmul 111111 80x8x512 epilogue 6\n"), "{}", tuned.products);
    // The others were left out: too large, not fitting, failing.
    assert_eq!(name.matches("hipblaslt").count(), 1);
    assert!(tuned.text.contains("rocblas:12: the GPU runtime failed to multiply matrices"), "{}", tuned.text);
    assert!(tuned.products.ends_with("balance 0\n"), "{}", tuned.products);

    // What is recorded is computed, each in its own way, and right.
    for (environment, product, positive, calls) in [
        (&[lt, roc][..], name, name, ["111111 80x8x512 epilogue 1", "epilogue 6"]),
        (&[lt, roc], "rocblas:standard", "rocblas:11", ["solution 0", "solution 0"]),
        (&[lt, roc], "rocblas:11", name, ["solution 11", "epilogue 6"]),
    ] {
        let text = record(&tuned.text, &[(PRODUCT, product), (POSITIVE, positive)]);
        let mut environment = environment.to_vec();
        environment.push(("STAND_IN_BLAS", "compute"));
        let computed = run(&Case { options: ON, environment: &environment, add: Some(&text) });
        assert!(computed.products.contains(calls[0]), "{product}: {}", computed.products);
        if positive == name {
            assert!(computed.products.contains(calls[1]), "{positive}: {}", computed.products);
            assert!(computed.text.contains("agree: yes yes"), "{}", computed.text);
            assert_eq!(computed.launches, 0, "kernels stand by for operands that are aligned less");
        } else {
            // rocBLAS knows no bias for each column, so that candidate is not there.
            assert!(computed.text.contains("agree: yes "), "{}", computed.text);
            assert!(
                computed.text.contains(&format!("has no candidate {positive} here")),
                "{}",
                computed.text
            );
        }
        assert!(computed.products.ends_with("balance 0\n"), "{}", computed.products);
    }
    // Sums of a library, finished by a kernel.
    let text = record(&tuned.text, &[(PRODUCT, name), (POSITIVE, "rocblas:standard+finish")]);
    let finished =
        run(&Case { options: ON, environment: &[lt, roc, ("STAND_IN_BLAS", "compute")], add: Some(&text) });
    assert!(finished.kernels.contains(&"gemm_f32_parts".to_owned()), "{:?}", finished.kernels);
    assert!(
        finished.products.contains("rocblas_gemm_strided_batched_ex 111111 80x8x512"),
        "{}",
        finished.products
    );

    // A library that computes something else than the default is not believed, however fast.
    let wrong =
        run(&Case { options: TUNING, environment: &[lt, roc, ("STAND_IN_BLAS", "compute")], ..PLAIN });
    assert!(wrong.text.contains("wrong: it computes"), "{}", wrong.text);
    assert!(name_after(&wrong.text, PRODUCT).starts_with("gemm_f32_"), "{}", wrong.text);

    // One that is too old, or kept away.
    let old = run(&Case { options: ON, environment: &[lt, roc, ("STAND_IN_BLAS_VERSION", "500")], ..PLAIN });
    assert!(old.text.contains("its version 500 is too old"), "{}", old.text);
    assert!(old.text.contains("libraries: rocblas-"), "{}", old.text);
}

/// The candidate that a session's results have for a problem.
fn name_after<'t>(text: &'t str, problem: &str) -> &'t str {
    let start = format!("results: result {problem} ");
    let at = text.find(&start).unwrap_or_else(|| panic!("{problem} is recorded: {text}")) + start.len();
    text[at..].split(' ').next().unwrap()
}

/// A text like the one that a child printed, with other results.
fn record(printed: &str, results: &[(&str, &str)]) -> String {
    let lines = printed.lines().filter_map(|line| line.strip_prefix("results: "));
    let head = lines.filter(|line| !line.starts_with("result ")).map(|line| format!("{line}\n"));
    let lines = results.iter().map(|(problem, candidate)| format!("result {problem} {candidate} 1.0\n"));
    head.chain(lines).collect()
}

/// Opens the model on the stand-in and runs it twice; prints what happened.
fn child() {
    let options = std::env::var(CHILD).unwrap();
    let environment = Environment::new(1, true).unwrap();
    let pairs = options.split_whitespace().filter_map(|word| word.split_once('='));
    let hip = Provider {
        name: "hip".to_owned(),
        options: pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
    };
    let cpu = Provider { name: "cpu".to_owned(), options: Vec::new() };
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hip/products.onnx");
    let open = |provider, fallback: &str| {
        let settings = vec![("fallback".to_owned(), fallback.to_owned())];
        Session::open(
            &environment,
            &model,
            &Options { providers: vec![provider], settings, ..Options::default() },
        )
    };
    let session = match open(hip, "error") {
        Ok(session) => session,
        Err(error) => return println!("open: {error}"),
    };
    if let Some(file) = std::env::var_os(ADD) {
        println!("taken: {}", session.add_tuning_results(&std::fs::read_to_string(file).unwrap()).unwrap());
    }
    let sizes = BTreeMap::from([("m".to_owned(), 8)]);
    let given: Vec<_> = session
        .inputs()
        .iter()
        .zip(0..)
        .map(|(port, seed)| (port.name.clone(), data::generate(port, &sizes, seed).unwrap()))
        .collect();
    let bound = session.bind(&given).unwrap();
    session.run(&bound).unwrap();
    println!("ran");
    let results = session.run(&bound).unwrap();
    println!("ran");
    let reference = open(cpu, "cpu").unwrap();
    let expected = reference.run(&reference.bind(&given).unwrap()).unwrap();
    let agree = results.iter().zip(&expected).map(|((_, got), (_, want))| {
        let tolerance = Tolerance { relative: 1e-5, absolute: 0.0, scale: Scale::Tensor };
        if data::compare(got, want, tolerance).is_ok() { "yes" } else { "no" }
    });
    println!("agree: {}", agree.collect::<Vec<_>>().join(" "));
    match session.tuning_results() {
        Ok(text) => text.lines().for_each(|line| println!("results: {line}")),
        Err(error) => println!("results: {error}"),
    }
}

fn run(case: &Case<'_>) -> Outcome {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    static CASES: AtomicUsize = AtomicUsize::new(0);
    let library = LIBRARY.get_or_init(|| hip::library("stand_in.c", "tuning", &[]));
    let number = CASES.fetch_add(1, Ordering::Relaxed);
    let [log, products] = ["log", "products"].map(|name| library.with_extension(format!("{number}.{name}")));
    let _ = std::fs::remove_file(&products);
    let added: Option<PathBuf> = case.add.map(|text| {
        let file = library.with_extension(format!("{number}.txt"));
        std::fs::write(&file, text).unwrap();
        file
    });
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_fastest_is_taken", "--nocapture"])
        .env(CHILD, case.options)
        .env("RUKH_HIP_LIBRARY", library)
        .env("RUKH_HIPBLASLT_LIBRARY", "")
        .env("RUKH_ROCBLAS_LIBRARY", "")
        .env("STAND_IN_LOG", &log)
        .env("STAND_IN_BLAS_LOG", &products)
        .envs(added.map(|file| (ADD, file)))
        .envs(case.environment.iter().copied())
        .output()
        .unwrap();
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{}: {text}", case.options);
    let calls = std::fs::read_to_string(&log).unwrap_or_default();
    let kernels = calls.lines().filter_map(|line| line.strip_prefix("hipModuleGetFunction "));
    Outcome {
        kernels: kernels.map(str::to_owned).collect(),
        launches: calls.lines().filter(|line| line.starts_with("hipModuleLaunchKernel ")).count(),
        products: std::fs::read_to_string(&products).unwrap_or_default(),
        text,
    }
}
