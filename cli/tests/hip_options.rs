//! Options of the GPU provider, on the emulated GPU: its number, launches that are waited for, what is told of memory.

mod emulated;

use std::path::Path;

use emulated::{library, printed, rukh};

#[test]
fn a_launch_that_is_waited_for_names_kernel_and_node() {
    if library().is_none() {
        return;
    }
    let run = |provider: &str, variables: &[(&str, &str)]| {
        let output = rukh(&["run", "digits.onnx", "--generate", "--provider", provider], variables);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let all = String::from_utf8_lossy(&output.stderr).into_owned();
        all.lines().find(|line| line.starts_with("error: ")).map_or(all.clone(), str::to_owned)
    };
    // Each kernel faults when it runs, and streams run when somebody waits.
    let fault = [("AMDEMU_MAX_INSTS", "1"), ("AMDEMU_DEFER", "1")];
    let blocking = [fault[0], fault[1], ("RUKH_HIP_LAUNCH_BLOCKING", "1")];
    for error in [run("hip", &blocking), run("hip:launch_blocking=1", &fault)] {
        assert!(error.contains("error: node \"") && error.contains(", in kernel "), "{error}");
        assert!(error.contains(" workgroups"), "{error}");
    }
    // Else the fault is met when the run ends, and nobody knows whose it is. The option rules over the variable.
    for error in [run("hip", &fault), run("hip:launch_blocking=0", &blocking)] {
        assert!(!error.contains("in kernel") && !error.contains("node \""), "{error}");
    }
    // A launch that the runtime refuses.
    let refused = run("hip:launch_blocking=1", &[("AMDEMU_FAIL", "launch:2")]);
    assert!(refused.contains("error: node \"") && refused.contains("in kernel "), "{refused}");
}

#[test]
fn runs_with_launches_that_are_waited_for_compute_the_same() {
    if library().is_none() {
        return;
    }
    for check in ["0", "1"] {
        let sample = ["run", "digits.onnx", "--input", "sample.npz", "--expect", "sample.npz"];
        let provider = ["--provider", "hip:launch_blocking=1", "--option", "fallback=error"];
        let text = printed(&[&sample[..], &provider].concat(), &[("AMDEMU_DEFER", check)]);
        assert!(text.contains("as expected"), "{text}");
    }
}

#[test]
fn info_shows_the_memory_of_the_gpu() {
    if library().is_none() {
        return;
    }
    let text = printed(&["info", "digits.onnx", "--run", "--provider", "hip"], &[]);
    for part in
        ["rukh memory summary, device 0", "| Allocated memory ", "from small pool", "| GPU reserved memory "]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let reserved = text.lines().find(|line| line.starts_with("| GPU reserved memory")).unwrap();
    let current = reserved.split('|').nth(2).unwrap().trim();
    assert!(!current.starts_with("0 "), "{reserved}");
    assert!(!printed(&["info", "digits.onnx", "--provider", "hip"], &[]).contains("memory summary"));
}

#[test]
fn a_device_is_chosen_by_its_number() {
    if library().is_none() {
        return;
    }
    let sample = ["run", "digits.onnx", "--input", "sample.npz", "--expect", "sample.npz"];
    let on_the_first = ["--provider", "hip:device_id=0", "--option", "fallback=error"];
    assert!(printed(&[&sample[..], &on_the_first].concat(), &[]).contains("as expected"));
    let output = rukh(&["run", "digits.onnx", "--generate", "--provider", "hip:device_id=7"], &[]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("device_id 7 is not there: this machine has "), "{error}");
}

#[test]
fn without_caching_no_more_is_reserved_than_allocated() {
    if library().is_none() {
        return;
    }
    let of = |caching: &str| {
        let variables = [("RUKH_NO_MEMORY_CACHING", caching)];
        let text = printed(&["info", "digits.onnx", "--run", "--provider", "hip"], &variables);
        ["| Allocated memory ", "| GPU reserved memory "].map(|name| {
            let row = text.lines().find(|line| line.starts_with(name)).unwrap();
            row.split('|').nth(2).unwrap().trim().to_owned()
        })
    };
    let [allocated, reserved] = of("0");
    assert_ne!(allocated, reserved, "an arena holds more than is used");
    let [allocated, reserved] = of("1");
    assert_eq!(allocated, reserved);
}

#[test]
fn half_precision_is_asked_for_by_option_or_variable() {
    if library().is_none() {
        return;
    }
    let (floats, halves) = (emulated::file("floats.npz"), emulated::file("halves.npz"));
    let sample = ["run", "digits.onnx", "--input", "sample.npz", "--provider"];
    let save = |provider: &str, file: &Path| {
        printed(&[&sample[..], &[provider, "--output", file.to_str().unwrap()]].concat(), &[]);
    };
    let differs = |provider: &str, expected: &Path, variables: &[(&str, &str)]| {
        let arguments = [&sample[..], &[provider, "--expect", expected.to_str().unwrap()]].concat();
        let text = printed(&arguments, variables);
        assert!(text.contains("scores: as expected") && text.contains("largest difference "), "{text}");
        !text.contains("largest difference 0.0e0 ")
    };
    save("hip", &floats);
    save("hip:fp16_enable=1", &halves);
    assert!(differs("hip:fp16_enable=1", &floats, &[]), "f16 rounds");
    for name in ["RUKH_FP16_ENABLE", "ORT_MIGRAPHX_FP16_ENABLE"] {
        let variable = [(name, "1")];
        assert!(!differs("hip", &halves, &variable), "{name} is the option");
        assert!(!differs("hip:fp16_enable=0", &floats, &variable), "the option rules over {name}");
    }
}
