//! Counters of kernels whose numbers are known.

use std::ffi::CString;

use super::super::launch::*;
use super::super::modules::*;
use super::*;
use crate::code_object::tests::compile_source;
use crate::isa::Target;
use crate::machine::count::{Class, LaunchCounts};

const SOURCE: &str = r#"
#define KERNEL __attribute__((global, amdgpu_flat_work_group_size(64, 64))) void
#define ITEM __builtin_amdgcn_workitem_id_x()
#define AT (__builtin_amdgcn_workgroup_id_x() * 64 + ITEM)
typedef float f4 __attribute__((ext_vector_type(4)));
typedef float f16v __attribute__((ext_vector_type(16)));
extern "C" {
KERNEL coalesced(float *to, const float *from) { to[AT] = from[AT]; }
KERNEL strided(float *to, const float *from) { to[AT] = from[ITEM * 32]; }
KERNEL broadcast(float *to, const float *from) {
  int zero = 0;
  asm volatile("v_mov_b32 %0, 0" : "=v"(zero));
  to[AT] = from[zero];
}
__attribute__((shared)) float place[64 * 33];
#define LDS(NAME, STRIDE) KERNEL NAME(float *to) { \
  place[ITEM * STRIDE] = 1; __builtin_amdgcn_s_barrier(); to[AT] = place[ITEM * STRIDE]; }
LDS(lds_1, 1)
LDS(lds_2, 2)
LDS(lds_32, 32)
LDS(lds_33, 33)
KERNEL wide(f4 *to, const f4 *from) { to[AT] = from[AT]; }
KERNEL squares(float *to) {
  float x = ITEM;
#pragma unroll
  for (int i = 0; i < 10; ++i) asm volatile("v_mul_f32 %0, %0, %0\n v_exp_f32 %0, %0" : "+v"(x));
  to[AT] = x;
}
#if __gfx942__ || __gfx90a__
KERNEL matrix(float *to) {
  f4 sum = {};
  for (int i = 0; i < 10; ++i) sum = __builtin_amdgcn_mfma_f32_16x16x4f32(1.0f, 2.0f, sum, 0, 0, 0);
  to[AT] = sum[0];
}
#endif
}
"#;

/// Runs a kernel of the source above with buffers of 1 MiB, and gives its counters.
fn counts(target: &str, kernel: &str, workgroups: u32, every: u64) -> Option<LaunchCounts> {
    // Tests run at the same time, in threads of one process, and some count the same kernel.
    let (process, thread) = (std::process::id(), std::thread::current().id());
    let name = format!("amdemu-counts-{process}-{thread:?}");
    let file = std::env::temp_dir().join(name);
    let path = file.to_string_lossy().into_owned();
    start(|options| {
        options.target = Target::find(target).expect("a target");
        options.count = path;
        options.count_every = every;
    });
    let bytes = compile_source(SOURCE, &[target])?;
    let module = get(|out| hipModuleLoadData(out, bytes.as_ptr() as Address)).expect("a module");
    let kernel = CString::new(kernel).expect("a name");
    // SAFETY: a C string.
    let function =
        get(|out| unsafe { hipModuleGetFunction(out, module, kernel.as_ptr()) }).expect("a kernel");
    let (to, from) = (buffer(&vec![0; 1 << 18]), buffer(&vec![0; 1 << 18]));
    let arguments = [(&raw const to).cast::<c_void>(), (&raw const from).cast()];
    let launch = |stream: Handle| {
        // SAFETY: two pointers are more than any of the kernels takes.
        unsafe {
            hipModuleLaunchKernel(
                function,
                workgroups,
                1,
                1,
                64,
                1,
                1,
                0,
                stream,
                arguments.as_ptr(),
                std::ptr::null(),
            )
        }
    };
    ok(launch(0));
    synchronize(0);
    let text = std::fs::read_to_string(&file).expect("the file of counters");
    std::fs::remove_file(&file).expect("the file can be removed");
    Some(serde_json::from_str(&text).expect("one line of JSON"))
}

#[test]
fn loads_are_counted_in_segments() {
    // Loads and stores of 64 lanes: pieces of 64 bytes, and bytes asked for.
    let rows = [
        ("coalesced", 4 + 4, 2 * 256),
        ("strided", 64 + 4, 2 * 256),
        ("broadcast", 1 + 4, 2 * 256),
        ("wide", 16 + 16, 2 * 1024),
    ];
    for (kernel, segments, asked) in rows {
        for target in ["gfx90a", "gfx1100"] {
            let Some(counts) = counts(target, kernel, 1, 1) else { return };
            let lanes = if target == "gfx90a" { 64 } else { 32 };
            // The broadcast is done once for each wave.
            let more = if kernel == "broadcast" { 64 / lanes - 1 } else { 0 };
            assert_eq!(counts.memory.segments_64, segments + more, "{target} {kernel}");
            assert_eq!(counts.memory.asked_bytes, asked, "{target} {kernel}");
            assert_eq!(counts.memory.moved_bytes, 64 * (segments + more), "{target} {kernel}");
            assert_eq!(counts.memory.requests, 2 * 64 / lanes, "{target} {kernel}");
            assert_eq!(counts.instructions_of(Class::VectorLoad), 64 / lanes, "{target} {kernel}");
            assert_eq!(counts.lanes, lanes as u32);
        }
    }
}

#[test]
fn bank_conflicts_are_counted() {
    // A store and a load of 64 lanes, 32 at a time: cycles of each half.
    for (kernel, cycles) in [("lds_1", 1), ("lds_2", 2), ("lds_32", 32), ("lds_33", 1)] {
        let Some(counts) = counts("gfx1100", kernel, 1, 1) else { return };
        assert_eq!(
            (counts.lds.cycles, counts.lds.conflict_cycles),
            (4 * cycles, 4 * (cycles - 1)),
            "{kernel}"
        );
        assert_eq!(counts.lds.bytes, 2 * 256);
        assert_eq!(counts.lds_bytes, 64 * 33 * 4);
    }
}

#[test]
fn instructions_are_counted_by_class() {
    let Some(counts) = counts("gfx1030", "squares", 5, 1) else { return };
    assert_eq!(counts.instructions_of(Class::Transcendental), 5 * 2 * 10);
    assert!(counts.instructions_of(Class::Vector32) >= 5 * 2 * 10);
    assert_eq!((counts.workgroups, counts.workgroup_waves, counts.counted_workgroups), (5, 2, 5));
    // Each pair waits for the one before: at least the latencies of both.
    assert!(counts.alone.cycles > 10.0 * (5.0 + 10.0), "{:?}", counts.alone);
}

#[test]
fn matrix_cycles() {
    for target in ["gfx90a", "gfx942"] {
        let Some(counts) = counts(target, "matrix", 3, 1) else { return };
        assert_eq!(counts.instructions_of(Class::Matrix), 3 * 10);
        assert_eq!(counts.matrix_cycles, 3 * 10 * 32, "{target}");
    }
}

#[test]
fn caches_read_each_line_once() {
    let Some(counts) = counts("gfx1100", "coalesced", 64, 1) else { return };
    // What 64 workgroups of 256 bytes read and write, and the line of the arguments.
    assert_eq!(counts.memory.memory_written_bytes, 64 * 256);
    let read = counts.memory.memory_read_bytes;
    assert!((64 * 256..=64 * 256 + 256).contains(&read), "{read}");
}

#[test]
fn samples_stand_for_all_workgroups() {
    let (Some(all), Some(some)) =
        (counts("gfx1100", "coalesced", 512, 1), counts("gfx1100", "coalesced", 512, 8))
    else {
        return;
    };
    assert_eq!((all.counted_workgroups, some.counted_workgroups), (512, 64));
    assert_eq!(all.instructions, some.instructions);
    assert_eq!(all.memory.moved_bytes, some.memory.moved_bytes);
    assert_eq!(all.memory.memory_written_bytes, some.memory.memory_written_bytes);
    let Some(shared) = counts("gfx1100", "strided", 512, 8) else { return };
    // All workgroups read the same 64 lines.
    let read = shared.memory.memory_read_bytes;
    assert!(read < 3 * 64 * 128, "{read}");
}
