//! A run with everything bound allocates nothing once it has run before.
//!
//! The test's own allocator counts, on every thread. It runs alone in its process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use rukh::capi::*;

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is handed to the system's allocator; the count is all that is added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The checked-in models, one of which has many outputs, and every exported model below the folder that RUKH_MODELS names.
fn models() -> Vec<std::path::PathBuf> {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/");
    let mut models: Vec<std::path::PathBuf> = ["digits/digits.onnx", "generate/model/model.onnx"]
        .map(|name| [examples, name].concat().into())
        .into();
    if let Ok(folder) = std::env::var("RUKH_MODELS") {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{folder}: {e}"));
        models.extend(entries.flatten().map(|e| e.path().join("model.onnx")).filter(|p| p.is_file()));
    }
    models
}

#[test]
fn bound_runs_allocate_nothing() {
    for model in models() {
        let made = count(&model);
        println!("{}: {made} allocations in 100 runs", model.display());
        assert_eq!(made, 0, "{}", model.display());
    }
}

/// Allocations of 100 runs, after 20 to warm up.
fn count(model: &std::path::Path) -> usize {
    let path = std::ffi::CString::new(model.to_str().expect("a path in UTF-8")).expect("no NUL in a path");
    // SAFETY: every handle comes from the call before and is destroyed once; pointers are to locals.
    unsafe {
        let mut environment = ptr::null_mut();
        let mut options = ptr::null_mut();
        ok(rukh_environment_options_create(&mut options, ptr::null_mut()));
        ok(rukh_environment_options_set(options, c"threads".as_ptr(), c"2".as_ptr(), ptr::null_mut()));
        ok(rukh_environment_create(options, &mut environment, ptr::null_mut()));
        let mut session = ptr::null_mut();
        ok(rukh_session_create(environment, path.as_ptr(), ptr::null(), &mut session, ptr::null_mut()));
        let mut binding = ptr::null_mut();
        ok(rukh_io_binding_create(session, &mut binding, ptr::null_mut()));
        let mut values = Vec::new();
        let mut inputs = 0;
        ok(rukh_session_input_count(session, &mut inputs, ptr::null_mut()));
        for i in 0..inputs {
            let value = zeros(session, i);
            let mut name = ptr::null();
            ok(rukh_session_input_name(session, i, &mut name, ptr::null_mut()));
            ok(rukh_io_binding_bind_input(binding, name, value, ptr::null_mut()));
            values.push(value);
        }
        // The first run tells the shapes of the outputs; then their memory is bound.
        let mut outputs = 0;
        ok(rukh_session_output_count(session, &mut outputs, ptr::null_mut()));
        let names: Vec<_> = (0..outputs)
            .map(|i| {
                let mut name = ptr::null();
                ok(rukh_session_output_name(session, i, &mut name, ptr::null_mut()));
                ok(rukh_io_binding_bind_output_allocated(binding, name, ptr::null_mut()));
                name
            })
            .collect();
        ok(rukh_io_binding_run(binding, ptr::null(), ptr::null_mut()));
        for name in names {
            let mut value = ptr::null_mut();
            ok(rukh_io_binding_output(binding, name, &mut value, ptr::null_mut()));
            ok(rukh_io_binding_bind_output(binding, name, value, ptr::null_mut()));
            values.push(value);
        }
        // Each thread's packing buffers grow to the largest block that it meets.
        for _ in 0..20 {
            ok(rukh_io_binding_run(binding, ptr::null(), ptr::null_mut()));
        }
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for _ in 0..100 {
            ok(rukh_io_binding_run(binding, ptr::null(), ptr::null_mut()));
        }
        let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
        values.into_iter().for_each(|value| rukh_value_destroy(value));
        rukh_io_binding_destroy(binding);
        rukh_session_destroy(session);
        rukh_environment_destroy(environment);
        rukh_environment_options_destroy(options);
        made
    }
}

/// Zeros for an input; a symbolic dimension is 1.
///
/// # Safety
/// `session` must be a session.
unsafe fn zeros(session: *const rukh_session, input: usize) -> *mut rukh_value {
    let (mut kind, mut element) = (0, 0);
    let mut shape = [0i64; 16];
    let mut rank = 0;
    let mut value = ptr::null_mut();
    // SAFETY: the buffers are locals of the sizes given.
    unsafe {
        ok(rukh_session_input_type(session, input, &mut kind, &mut element, ptr::null_mut()));
        ok(rukh_session_input_shape(
            session,
            input,
            shape.as_mut_ptr(),
            shape.len(),
            &mut rank,
            ptr::null_mut(),
        ));
        let rank = usize::try_from(rank).expect("a known rank");
        let dims: Vec<i64> = shape[..rank].iter().map(|&d| if d < 0 { 1 } else { d }).collect();
        ok(rukh_value_create_tensor(element, dims.as_ptr(), rank, &mut value, ptr::null_mut()));
        let (mut data, mut bytes): (*mut c_void, usize) = (ptr::null_mut(), 0);
        ok(rukh_value_data_mut(value, &mut data, &mut bytes, ptr::null_mut()));
        ptr::write_bytes(data.cast::<u8>(), 0, bytes);
    }
    value
}

fn ok(status: rukh_status) {
    assert_eq!(status, 0, "a call failed");
}
