//! Environment variables that are no values of an option.

use crate::error::excerpt;

const FP16_VARIABLES: [&str; 2] = ["RUKH_FP16_ENABLE", "ORT_MIGRAPHX_FP16_ENABLE"];

/// Whether the environment asks for half precision where no option says what to do.
pub(crate) fn wants_fp16() -> bool {
    FP16_VARIABLES.iter().any(|name| std::env::var(name).as_deref() == Ok("1"))
}

/// Whether arenas keep memory. `RUKH_NO_MEMORY_CACHING=1` in the environment switches that off.
pub(super) fn caching() -> bool {
    std::env::var("RUKH_NO_MEMORY_CACHING").as_deref() != Ok("1")
}

/// Whether kernels are started while the one before them still runs, where the device can: those of every family, or of
/// none; `None`: of those that have something to do before they wait. `RUKH_DEPENDENT_LAUNCHES` in the environment is 1 or
/// 0, for measurements.
pub(super) fn dependent_launches() -> Option<bool> {
    match std::env::var("RUKH_DEPENDENT_LAUNCHES").as_deref() {
        Ok("1") => Some(true),
        Ok("0") => Some(false),
        _ => None,
    }
}

/// What is set and has no effect, for the log.
pub(super) fn remarks() -> Vec<String> {
    let mut remarks = Vec::new();
    for name in FP16_VARIABLES {
        if let Ok(value) = std::env::var(name)
            && !matches!(value.as_str(), "" | "0" | "1")
        {
            let value = excerpt(&value);
            remarks.push(format!(
                "environment variable {name} is \"{value}\" and has no effect; allowed are 0 and 1"
            ));
        }
    }
    remarks
}
