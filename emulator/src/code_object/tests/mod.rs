//! Code objects that Clang makes for the tests, and damaged ones.

mod damaged;
mod loading;

use std::process::Command;
use std::sync::OnceLock;

/// A kernel with explicit and hidden arguments, dynamic and static LDS, a variable, and a pointer to it.
const SOURCE: &str = r#"
#define GLOBAL __attribute__((address_space(1)))
extern "C" {
__attribute__((device)) int counter = 7;
__attribute__((device)) int *pointer = &counter;
__attribute__((global, amdgpu_flat_work_group_size(1, 256)))
void scale(float *x, float factor, int count) {
  int at = __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
  if (at < count) x[at] *= factor;
  if (at == 0) ++*pointer;
}
}
"#;

/// The code object for a target, or `None` with a printed reason when there is no Clang.
pub(crate) fn compile(target: &str) -> Option<Vec<u8>> {
    compile_source(SOURCE, &[target])
}

/// One file: a code object, or a bundle of several.
pub(crate) fn compile_source(source: &str, targets: &[&str]) -> Option<Vec<u8>> {
    static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    static FOUND: OnceLock<bool> = OnceLock::new();
    let found = *FOUND.get_or_init(|| Command::new("clang-19").arg("--version").output().is_ok());
    if !found {
        eprintln!("skipped: clang-19 is not installed");
        return None;
    }
    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("amdemu-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let (input, output) = (folder.join("kernel.hip"), folder.join("kernel.co"));
    std::fs::write(&input, source).expect("a temporary file");
    let mut command = Command::new("clang-19");
    command.args(["-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-O2"]);
    command.arg(if targets.len() > 1 { "--gpu-bundle-output" } else { "--no-gpu-bundle-output" });
    if targets.iter().any(|it| it.ends_with("generic")) {
        command.arg("-mcode-object-version=6");
    }
    command.args(targets.iter().map(|it| format!("--offload-arch={it}")));
    let run = command.arg(&input).arg("-o").arg(&output).output().expect("clang-19 runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let bytes = std::fs::read(&output).expect("what clang-19 wrote");
    std::fs::remove_dir_all(&folder).expect("the temporary folder");
    Some(bytes)
}
