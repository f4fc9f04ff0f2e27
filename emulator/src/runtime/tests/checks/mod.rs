//! Checks: for each mistake a kernel that makes it and one that does not.

mod alignment;
mod barriers;
mod races;
mod uninitialized;
mod waits;

use super::super::launch::*;
use super::super::modules::*;
use super::*;
use crate::code_object::tests::compile_source;
use crate::isa::Target;
use crate::machine::check::Checks;

const HEAD: &str = r#"
#define KERNEL extern "C" __attribute__((global)) void test
#define SHARED __attribute__((shared))
#define DEVICE static inline __attribute__((device, always_inline))
#define ITEM __builtin_amdgcn_workitem_id_x()
#define GROUP __builtin_amdgcn_workgroup_id_x()
DEVICE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
"#;

/// A kernel that is watched.
struct Case {
    name: &'static str,
    /// The body of `void test(int *data)`, or the whole kernel.
    source: &'static str,
    groups: u32,
    items: u32,
    /// What the error says; empty where there must be none.
    expected: &'static str,
}

/// Runs the cases on a target with a check.
fn run(target: &str, checks: &str, cases: &[Case]) {
    for case in cases {
        let Some(message) = message(target, checks, case) else { return };
        let name = case.name;
        if case.expected.is_empty() {
            assert_eq!(message, "", "{name} on {target}");
        } else {
            assert!(message.contains(case.expected), "{name} on {target}: {message:?}");
            for part in ["kernel test", "at byte 0x", "workgroup ["] {
                assert!(message.contains(part), "{name} on {target}: no {part:?} in {message:?}");
            }
        }
    }
}

/// What the runtime says when the kernel has run; `None` when it cannot be compiled here.
fn message(target: &str, checks: &str, case: &Case) -> Option<String> {
    let source = if case.source.contains("KERNEL") {
        format!("{HEAD}{}", case.source)
    } else {
        format!("{HEAD}KERNEL(int *data) {{ {} }}", case.source)
    };
    let bytes = compile_source(&source, &[target])?;
    let runtime = start(|options| {
        options.target = Target::find(target).expect("a target");
        options.set_checks(Checks::parse(checks).expect("checks"));
    });
    let module = get(|out| hipModuleLoadData(out, bytes.as_ptr() as Address)).expect("a module");
    // SAFETY: a C string.
    let function =
        get(|out| unsafe { hipModuleGetFunction(out, module, c"test".as_ptr()) }).expect("a kernel");
    let data = buffer(&[0; 4096]);
    let fresh = get(|out| super::super::memory::hipMalloc(out, 4096)).expect("memory");
    let arguments = [(&raw const data).cast::<c_void>(), (&raw const fresh).cast()];
    let (groups, items, null) = (case.groups, case.items, std::ptr::null());
    // SAFETY: these are the kernel's arguments.
    ok(unsafe { hipModuleLaunchKernel(function, groups, 1, 1, items, 1, 1, 0, 0, arguments.as_ptr(), null) });
    let _ = hipStreamSynchronize(0);
    Some(runtime.fault_message())
}
