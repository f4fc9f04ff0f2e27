//! Opens artifacts whose parts were changed and whose checksums were made anew: what the library reads of a file that
//! means harm must end with a session or an error.
//!
//! The input is a list of changes to an artifact of a small model, six bytes each: which part, where, and what is done there.
#![no_main]

mod container;

use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use rukh::capi::*;

use container::Container;

fuzz_target!(|data: &[u8]| {
    static ARTIFACTS: OnceLock<Vec<Container>> = OnceLock::new();
    let artifacts = ARTIFACTS.get_or_init(|| MODELS.iter().map(|model| compiled(Path::new(model))).collect());
    let Some((&first, changes)) = data.split_first() else { return };
    let mut artifact = artifacts[usize::from(first) % artifacts.len()].clone();
    changes.chunks_exact(6).for_each(|change| artifact.change(change));
    open(&artifact.bytes());
});

/// From the folder of this package: a classifier of images, and branches with weights of their own.
const MODELS: [&str; 2] = ["../examples/digits/digits.onnx", "../capi-tests/models/branches.onnx"];

/// An artifact of a model, for the CPU and a GPU.
fn compiled(model: &Path) -> Container {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join(model);
    let out: PathBuf = std::env::temp_dir().join(format!("rukh-fuzz-{}.rukh", std::process::id()));
    let text = |path: &Path| std::ffi::CString::new(path.to_str().expect("a name in UTF-8")).expect("no NUL");
    let (path, to) = (text(&model), text(&out));
    let (mut environment, mut options) = (null_mut(), null_mut());
    // SAFETY: the arguments are as the header wants them: live handles, locals and texts that end in NUL.
    unsafe {
        assert_eq!(rukh_environment_create(null(), &mut environment, null_mut()), RUKH_OK);
        assert_eq!(rukh_compile_options_create(&mut options, null_mut()), RUKH_OK);
        let (key, value) = (c"targets".as_ptr(), c"cpu,gfx1100".as_ptr());
        assert_eq!(rukh_compile_options_set(options, key, value, null_mut()), RUKH_OK);
        let made = rukh_compile_model(environment, path.as_ptr(), null(), options, to.as_ptr(), null_mut());
        assert_eq!(made, RUKH_OK);
        rukh_compile_options_destroy(options);
        rukh_environment_destroy(environment);
    }
    let bytes = std::fs::read(&out).expect("the artifact");
    std::fs::remove_file(&out).expect("the artifact is ours");
    let container = Container::parse(&bytes).expect("the library's own layout");
    assert!(container.bytes() == bytes, "this file writes what the library writes");
    container
}

fn open(bytes: &[u8]) {
    let (mut environment, mut session, mut error) = (null_mut(), null_mut(), null_mut());
    // SAFETY: as above; a pointer with its length.
    unsafe {
        assert_eq!(rukh_environment_create(null(), &mut environment, null_mut()), RUKH_OK);
        let data = bytes.as_ptr().cast();
        let status = rukh_session_create_from_memory(
            environment,
            data,
            bytes.len(),
            null(),
            &mut session,
            &mut error,
        );
        // A defect of the library is what is looked for.
        assert_ne!(status, RUKH_ERROR_INTERNAL);
        rukh_error_destroy(error);
        rukh_session_destroy(session);
        rukh_environment_destroy(environment);
    }
}
