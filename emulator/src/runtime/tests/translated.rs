//! Whole kernels, interpreted and as machine code of the host.

use std::ffi::CString;

use super::super::launch::*;
use super::super::modules::*;
use super::super::streams::api::hipStreamSynchronize;
use super::*;
use crate::code_object::tests::compile_source;
use crate::machine;

const SOURCE: &str = r#"
extern "C" {
__attribute__((shared)) volatile float tile[64];
__attribute__((global, amdgpu_flat_work_group_size(64, 64))) void mix(float *to, const float *from, int count) {
  int lane = __builtin_amdgcn_workitem_id_x(), at = __builtin_amdgcn_workgroup_id_x() * 64 + lane;
  float sum = 0;
  for (int i = 0; i < 40; i++) {
    tile[lane] = from[(unsigned)(at + 3 * i) % count] * (i + 1);
    __builtin_amdgcn_s_barrier();
    float other = tile[(lane * 7 + i) % 64];
    if (lane % 3 == i % 3) sum += __builtin_sqrtf(other); else sum = sum * 0.5f - other / (lane + 1);
    if (sum > 1000) sum -= (int)sum;
    __builtin_amdgcn_s_barrier();
  }
  if (at < count) to[at] = sum;
}
__attribute__((global, amdgpu_flat_work_group_size(64, 64))) void outside(float *to, const float *from, int count) {
  int at = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (at < count) to[at == 100 ? at + 2 * count : at] = from[at];
}
__attribute__((global, amdgpu_flat_work_group_size(64, 64))) void endless(float *to, const float *from, int count) {
  for (volatile int i = 0; count; i++) ;
}
}
"#;

const COUNT: usize = 1000;

/// What a launch left.
struct Outcome {
    written: Vec<u32>,
    error: HipError,
    message: String,
}

/// Launches a kernel with so few elements that nothing is wrong, then with all; `None` with a printed reason when there is
/// no Clang.
fn outcome(target: &str, kernel: &str, translate: u32) -> Option<Outcome> {
    let runtime = start(|options| {
        options.target = crate::isa::Target::find(target).expect("a target");
        options.machine.translate = translate;
        options.machine.most_instructions = 100_000;
    });
    let bytes = compile_source(SOURCE, &[target])?;
    let module = get(|out| hipModuleLoadData(out, bytes.as_ptr() as Address)).expect("a module");
    let name = CString::new(kernel).expect("a name");
    // SAFETY: a C string.
    let function = get(|out| unsafe { hipModuleGetFunction(out, module, name.as_ptr()) }).expect("a kernel");
    let values: Vec<u32> = (0..COUNT).map(|i| (i as f32 * 0.37).to_bits()).collect();
    let (to, from) = (buffer(&vec![0; COUNT]), buffer(&values));
    // One wave, where it is told which did not end.
    let (groups, few) = if kernel == "endless" { (1, 0) } else { (COUNT.div_ceil(64) as u32, 64) };
    let launch = |count: i32| {
        let arguments =
            [(&raw const to).cast::<c_void>(), (&raw const from).cast(), (&raw const count).cast()];
        let (list, none) = (arguments.as_ptr(), std::ptr::null());
        // SAFETY: these are the kernel's arguments.
        ok(unsafe { hipModuleLaunchKernel(function, groups, 1, 1, 64, 1, 1, 0, 0, list, none) });
        hipStreamSynchronize(0)
    };
    ok(launch(few));
    let error = launch(COUNT as i32);
    let translated = machine::translated_blocks(&runtime.state().functions[&function].loaded.program);
    let expected = translate != 0 && machine::translates();
    assert_eq!(
        translated > 0,
        expected,
        "{translated} blocks were translated, with AMDEMU_TRANSLATE={translate}"
    );
    let written = if error == HipError::SUCCESS { read(to, COUNT) } else { Vec::new() };
    Some(Outcome { written, error, message: runtime.fault_message() })
}

/// What translated code leaves, which is what the interpreter leaves.
fn compare(kernel: &str) -> Vec<Outcome> {
    if !machine::translates() {
        println!("no machine code is made here (it needs AVX-512): both ways are interpreted");
    }
    let mut outcomes = Vec::new();
    for target in ["gfx1100", "gfx90a", "gfx1201"] {
        let Some(interpreted) = outcome(target, kernel, 0) else { return outcomes };
        let translated = outcome(target, kernel, 1).expect("Clang, as before");
        assert_eq!(translated.written, interpreted.written, "{kernel} on {target}");
        assert_eq!(translated.error, interpreted.error, "{kernel} on {target}");
        assert_eq!(without_addresses(&translated.message), without_addresses(&interpreted.message));
        outcomes.push(translated);
    }
    outcomes
}

/// A message whose hexadecimal numbers of many digits are gone: each runtime has memory elsewhere.
fn without_addresses(message: &str) -> String {
    let word = |word: &str| match word.trim_start_matches('(').strip_prefix("0x") {
        Some(digits) if digits.len() > 8 => "ADDRESS".to_owned(),
        _ => word.to_owned(),
    };
    message.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn kernels_give_the_same_bits() {
    for Outcome { error, message, .. } in compare("mix") {
        assert_eq!(error, HipError::SUCCESS, "{message}");
    }
}

#[test]
fn errors_say_the_same() {
    for Outcome { error, message, .. } in compare("outside") {
        assert_ne!(error, HipError::SUCCESS);
        for part in ["global_store", "lane", "kernel outside", "workgroup [1, 0, 0]"] {
            assert!(message.contains(part), "{message} has no '{part}'");
        }
    }
}

#[test]
fn kernels_without_end_are_stopped() {
    for Outcome { error, message, .. } in compare("endless") {
        assert_ne!(error, HipError::SUCCESS);
        assert!(message.contains("executed more than 100000 instructions"), "{message}");
    }
}
