//! The table of the session's options: their keys, with what each may be.

use super::log::Threshold;

/// The keys, with what each may be.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("compiled_model_path", "the name of a file, or nothing for none"),
    ("external_data_folder", "the name of a folder, or nothing for the model's"),
    ("fallback", "cpu or error"),
    ("intra_op_threads", "0 (the environment's threads) or a number up to 1024"),
    ("load", "map or read"),
    ("log_id", "any text"),
    ("log_level", Threshold::ALLOWED),
    ("model_cache_dir", "the name of a folder, or nothing for none"),
    ("model_cache_limit", "a number of bytes, 0 for no limit"),
    ("optimization", "none, basic or all"),
    ("optimized_model_external_data", "0 or 1"),
    (
        "optimized_model_external_data_file",
        "the name of a file without a folder, or nothing for the model's and .data",
    ),
    ("optimized_model_external_data_min_bytes", "a number of bytes"),
    ("optimized_model_path", "the name of a file, or nothing for none"),
    ("plan_cache", "a number from 1 to 65536"),
    ("precision", "f32, f16, bf16 or auto"),
    ("profiling", "0 or 1"),
    ("share_weights", "0 or 1"),
    ("spinning", "0 or 1"),
    (
        "thread_affinities",
        "for each thread but the caller's the processors that it may use, as 1,2;3-5, numbered from 1",
    ),
    ("use_env_allocators", "0 or 1"),
];

/// Prefix of the keys that fix a symbolic dimension: `dim.batch` = 4.
pub(super) const DIMENSION_PREFIX: &str = "dim.";
