//! Options by the names that ONNX Runtime has for them.

use crate::error::{Result, excerpt, fail};

/// ONNX Runtime's values, each with the one here.
type Values = Option<&'static [(&'static str, &'static str)]>;

/// Keys of ONNX Runtime's session entries that say what an option here says, with values that do; `None`: any value.
const KEYS: &[(&str, &str, Values)] = &[
    ("session.disable_cpu_ep_fallback", "fallback", Some(&[("0", "cpu"), ("1", "error")])),
    ("session.use_env_allocators", "use_env_allocators", Some(&[("0", "0"), ("1", "1")])),
    ("session.model_external_initializers_file_folder_path", "external_data_folder", None),
    ("session.optimized_model_external_initializers_file_name", "optimized_model_external_data_file", None),
    (
        "session.optimized_model_external_initializers_min_size_in_bytes",
        "optimized_model_external_data_min_bytes",
        None,
    ),
    ("session.intra_op.allow_spinning", "spinning", Some(&[("0", "0"), ("1", "1")])),
    ("session.intra_op_thread_affinities", "thread_affinities", None),
];

/// The option and the value here for an entry of ONNX Runtime's; `None` for other keys.
pub(super) fn own<'v>(key: &str, value: &'v str) -> Result<Option<(&'static str, &'v str)>> {
    let Some((_, own, values)) = KEYS.iter().find(|(known, ..)| *known == key) else { return Ok(None) };
    let Some(values) = values else { return Ok(Some((own, value))) };
    match values.iter().find(|(theirs, _)| *theirs == value) {
        Some((_, ours)) => Ok(Some((own, ours))),
        None => fail!(
            InvalidArgument,
            "option \"{key}\": \"{}\" is not allowed; allowed is 0 or 1",
            excerpt(value)
        ),
    }
}
