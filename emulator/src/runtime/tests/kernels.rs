//! Kernels: launches, their errors, and graphs of them.

use std::ffi::CString;

use super::super::functions::*;
use super::super::graph::parameters::*;
use super::super::graph::{build::*, execute::*};
use super::super::launch::*;
use super::super::memory::*;
use super::super::modules::*;
use super::graphs::{begin, end, executable, launch};
use super::*;
use crate::code_object::tests::{compile, compile_source};
use crate::runtime::arguments::{Given, pack};

const SOURCE: &str = r#"
extern "C" {
__attribute__((device)) int offset = 3;
__attribute__((global)) void add(int *to, const int *from, int value, int count) {
  int at = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (at < count) to[at] = from[at] + value;
}
__attribute__((global, amdgpu_flat_work_group_size(1, 64))) void bounded(int *to) { *to = 1; }
__attribute__((shared)) int place[1024];
__attribute__((global)) void shared_memory(int *to) {
  place[__builtin_amdgcn_workitem_id_x()] = 1;
  __builtin_amdgcn_s_barrier();
  *to = place[0] + offset;
}
}
"#;

/// A module of the source above; `None` with a printed reason when there is no Clang.
fn module() -> Option<Handle> {
    let bytes = compile_source(SOURCE, &["gfx1100"])?;
    Some(get(|out| hipModuleLoadData(out, bytes.as_ptr() as Address)).expect("a module"))
}

fn function(module: Handle, name: &str) -> Handle {
    let name = CString::new(name).expect("a name");
    // SAFETY: a C string.
    get(|out| unsafe { hipModuleGetFunction(out, module, name.as_ptr()) }).expect("a kernel")
}

/// `add(to, from, value, count)` with pointers to the arguments.
fn add(function: Handle, to: Address, from: Address, value: i32, count: i32, stream: Handle) -> HipError {
    let arguments = [
        (&raw const to).cast::<c_void>(),
        (&raw const from).cast(),
        (&raw const value).cast(),
        (&raw const count).cast(),
    ];
    let groups = (count as u32).div_ceil(64);
    // SAFETY: these are the kernel's arguments.
    unsafe {
        hipModuleLaunchKernel(
            function,
            groups,
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
}

fn launch_shape(function: Handle, groups: [u32; 3], size: [u32; 3], lds: u32) -> HipError {
    let to = 0_u64;
    let arguments = [(&raw const to).cast::<c_void>()];
    let ([x, y, z], [width, height, depth]) = (groups, size);
    // SAFETY: a pointer is the kernel's only argument.
    unsafe {
        hipModuleLaunchKernel(
            function,
            x,
            y,
            z,
            width,
            height,
            depth,
            lds,
            0,
            arguments.as_ptr(),
            std::ptr::null(),
        )
    }
}

#[test]
fn arguments_in_memory() {
    let runtime = start(|_| ());
    let Some(bytes) = compile("gfx1100") else { return };
    let module = get(|out| hipModuleLoadData(out, bytes.as_ptr() as Address)).unwrap();
    let scale = function(module, "scale");
    let found = runtime.state().function(scale).unwrap();
    let shape = Shape { workgroups: [5, 6, 1], workgroup_size: [7, 1, 1], dynamic_lds: 9 };
    let (x, factor, count) = (0x1122_u64, 1.5_f32, 77_i32);
    let parameters = [(&raw const x).cast::<c_void>(), (&raw const factor).cast(), (&raw const count).cast()];
    let pointers = Given { parameters: parameters.as_ptr(), extra: std::ptr::null() };
    // SAFETY: these are the kernel's arguments.
    let packed = unsafe { pack(&found, &shape, pointers) }.unwrap();
    let mut buffer = x.to_le_bytes().to_vec();
    buffer.extend(factor.to_le_bytes());
    buffer.extend(count.to_le_bytes());
    assert_eq!(packed[..16], buffer);
    let field = |kind: &str| {
        let argument = found.kernel.arguments.iter().find(|it| it.kind == kind).expect(kind);
        let mut value = [0; 8];
        let size = argument.size as usize;
        value[..size].copy_from_slice(&packed[argument.offset as usize..][..size]);
        u64::from_le_bytes(value)
    };
    for (kind, value) in [
        ("hidden_block_count_x", 5),
        ("hidden_block_count_y", 6),
        ("hidden_group_size_x", 7),
        ("hidden_remainder_x", 0),
        ("hidden_grid_dims", 2),
    ] {
        assert_eq!(field(kind), value, "{kind}");
    }
    let mut size = buffer.len();
    let extra = |size: &mut usize| {
        let (start, size): (*const c_void, *const c_void) =
            (buffer.as_ptr().cast(), std::ptr::from_mut(size).cast());
        let name = std::ptr::without_provenance;
        [name(1), start, name(2), size, name(3)]
    };
    let list = extra(&mut size);
    let given = Given { parameters: std::ptr::null(), extra: list.as_ptr() };
    // SAFETY: these are the kernel's arguments.
    assert_eq!(unsafe { pack(&found, &shape, given) }.unwrap(), packed);
    size = 12;
    let list = extra(&mut size);
    let null = std::ptr::null();
    for (name, given) in [
        ("too few bytes", Given { parameters: null, extra: list.as_ptr() }),
        ("both", Given { parameters: parameters.as_ptr(), extra: list.as_ptr() }),
        ("no arguments", Given { parameters: null, extra: null }),
        ("a null pointer", Given { parameters: [std::ptr::null(); 3].as_ptr(), extra: null }),
        ("an unknown name", Given { parameters: null, extra: [std::ptr::without_provenance(9); 5].as_ptr() }),
    ] {
        // SAFETY: wrong, but as long as it must be.
        assert!(unsafe { pack(&found, &shape, given) }.is_err(), "{name}");
    }
}

#[test]
fn shapes_that_are_refused() {
    start(|_| ());
    let Some(module) = module() else { return };
    for (name, groups, size, lds, error) in [
        ("bounded", [0, 1, 1], [64, 1, 1], 0, 9),
        ("bounded", [1, 1, 1], [64, 0, 1], 0, 9),
        ("bounded", [1, 1, 1], [1025, 1, 1], 0, 9),
        ("bounded", [1, 1, 1], [64, 64, 1], 0, 9),
        ("bounded", [u32::MAX, 1, 1], [2, 1, 1], 0, 9),
        ("bounded", [1, 1, 1], [128, 1, 1], 0, 719),
        ("bounded", [1, 1, 1], [64, 1, 1], 65537, 1),
        ("shared_memory", [1, 1, 1], [64, 1, 1], 62 << 10, 1),
    ] {
        let function = function(module, name);
        assert_eq!(launch_shape(function, groups, size, lds).0, error, "{name} {groups:?} {size:?} {lds}");
    }
}

#[test]
fn modules_and_what_is_in_them() {
    let runtime = start(|_| ());
    let Some(module) = module() else { return };
    // SAFETY: C strings.
    let global =
        |name: &std::ffi::CStr| get(|out| unsafe { hipModuleGetGlobal(out, None, module, name.as_ptr()) });
    assert_eq!(read(global(c"offset").unwrap(), 1), [3]);
    assert_eq!(global(c"add"), Err(HipError::NOT_FOUND));
    // SAFETY: a C string.
    let unknown = get(|out| unsafe { hipModuleGetFunction(out, module, c"sub".as_ptr()) });
    assert_eq!(unknown, Err(HipError::NOT_FOUND));
    let (bounded, shared) = (function(module, "bounded"), function(module, "shared_memory"));
    assert_eq!(get(|out| hipFuncGetAttribute(out, 0, bounded)), Ok(64));
    assert_eq!(get(|out| hipFuncGetAttribute(out, 1, shared)), Ok(4096));
    assert_eq!(get(|out| hipFuncGetAttribute(out, 8, shared)), Ok(61440));
    assert!(get(|out| hipFuncGetAttributes(out, shared)).is_ok());
    let blocks = get(|out| hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(out, bounded, 64, 0)).unwrap();
    assert!(blocks > 0);
    let fewer =
        get(|out| hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(out, bounded, 64, 60 << 10)).unwrap();
    assert!((1..blocks).contains(&fewer));
    ok(hipModuleUnload(module));
    assert_eq!(launch_shape(bounded, [1; 3], [1; 3], 0), HipError::INVALID_DEVICE_FUNCTION);
    assert_eq!(hipModuleUnload(module), HipError::INVALID_HANDLE);
    assert_eq!(runtime.leaks(), Vec::<String>::new());
}

#[test]
fn code_for_another_device_is_refused() {
    start(|options| options.target = crate::isa::Target::find("gfx1201").unwrap());
    for targets in [&["gfx1100"][..], &["gfx1100", "gfx90a"]] {
        let Some(bytes) = compile_source(SOURCE_OF_NOTHING, targets) else { return };
        let loaded = get(|out| hipModuleLoadData(out, bytes.as_ptr() as Address));
        assert_eq!(loaded, Err(HipError::NO_BINARY_FOR_GPU), "{targets:?}");
    }
}

const SOURCE_OF_NOTHING: &str = r#"extern "C" __attribute__((global)) void nothing() {}"#;

#[test]
fn a_kernel_runs() {
    start(|_| ());
    let Some(module) = module() else { return };
    let (from, to) = (buffer(&[1; 100]), buffer(&[0; 100]));
    ok(add(function(module, "add"), to, from, 5, 100, 0));
    assert_eq!(read(to, 100), [6; 100]);
}

#[test]
fn a_kernel_that_fails_breaks_the_device() {
    let runtime = start(|_| ());
    let Some(module) = module() else { return };
    let kernel = function(module, "add");
    let from = buffer(&[1; 64]);
    ok(hipFree(from));
    ok(add(kernel, from, from, 5, 64, 0));
    assert_eq!(hipStreamSynchronize(0), HipError::ILLEGAL_ADDRESS);
    assert_eq!(add(kernel, from, from, 5, 64, 0), HipError::ILLEGAL_ADDRESS);
    assert!(runtime.fault_message().contains("add"), "{}", runtime.fault_message());
}

#[test]
fn kernels_in_graphs() {
    start(|_| ());
    let Some(module) = module() else { return };
    let (stream, kernel, a) = (stream(0), function(module, "add"), buffer(&[1; 64]));
    begin(stream);
    ok(add(kernel, a, a, 1, 64, stream));
    ok(add(kernel, a, a, 10, 64, stream));
    let made = executable(end(stream), 0);
    ok(hipGraphLaunch(made, stream));
    launch(made, stream);
    assert_eq!(read(a, 64), [23; 64]);
    let (value, count) = (100_i32, 64_i32);
    let arguments = [
        (&raw const a).cast::<c_void>(),
        (&raw const a).cast(),
        (&raw const value).cast(),
        (&raw const count).cast(),
    ];
    let one = Dim3 { x: 1, y: 1, z: 1 };
    let parameters = KernelParameters {
        block: Dim3 { x: 64, ..one },
        extra: std::ptr::null(),
        function: kernel,
        grid: one,
        parameters: arguments.as_ptr(),
        dynamic_lds: 0,
    };
    let graph = get(|out| hipGraphCreate(out, 0)).unwrap();
    // SAFETY: no list; these are the kernel's arguments.
    let node =
        get(|out| unsafe { hipGraphAddKernelNode(out, graph, std::ptr::null(), 0, Some(&parameters)) });
    assert!(node.is_ok());
    launch(executable(graph, 0), stream);
    assert_eq!(read(a, 64), [123; 64]);
}

#[test]
fn a_graph_whose_module_is_gone() {
    let runtime = start(|_| ());
    let Some(module) = module() else { return };
    let (stream, kernel, a) = (stream(0), function(module, "add"), buffer(&[1; 64]));
    begin(stream);
    ok(add(kernel, a, a, 1, 64, stream));
    let made = executable(end(stream), 0);
    ok(hipModuleUnload(module));
    ok(hipGraphLaunch(made, stream));
    assert_eq!(hipStreamSynchronize(stream), HipError::LAUNCH_FAILURE);
    assert!(runtime.fault_message().contains("unloaded"), "{}", runtime.fault_message());
}
