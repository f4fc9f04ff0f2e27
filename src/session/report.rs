//! What a report about a defect tells of the library and of the GPU runtimes that it tried.

use std::fmt::Write;

use crate::artifact::REVISION;
use crate::hip::{Platform, Runtime, Tries};
use crate::providers::cpu::isa::{self, Level};
use crate::providers::{cpu, hip};

use super::profile::quote;

/// The facts as a JSON object; `rukh_report` lists the keys. `abi` is the version of the binary interface.
pub(crate) fn report(abi: u32) -> String {
    let levels: Vec<&str> =
        isa::LEVELS.iter().filter(|(_, level)| has(*level)).map(|(name, _)| *name).collect();
    let limit = isa::limit();
    let used = isa::LEVELS.iter().rfind(|(_, level)| has(*level) && *level <= limit);
    let runtimes: Vec<String> = Platform::ALL.iter().map(|&platform| runtime(platform)).collect();
    format!(
        "{{\"version\":{},\"abi_version\":\"{}.{}.{}\",\"kernel_targets\":{},\"vector_levels\":{},\
         \"vector_level\":{},\"instructions\":{},\"artifact_revision\":{},\"runtimes\":[{}]}}",
        quote(env!("CARGO_PKG_VERSION")),
        abi / 1_000_000,
        abi / 1000 % 1000,
        abi % 1000,
        list(hip::kernel_targets()),
        list(&levels),
        quote(used.map_or("portable", |(name, _)| name)),
        quote(&cpu::instructions()),
        REVISION,
        runtimes.join(","),
    )
}

/// Whether the processor has the instructions of a level.
#[cfg(target_arch = "x86_64")]
fn has(level: Level) -> bool {
    let avx2 = || {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
    };
    let avx512 = || {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
    };
    let beyond = || {
        is_x86_feature_detected!("avx512vnni")
            || is_x86_feature_detected!("avx512bf16")
            || is_x86_feature_detected!("avx512vbmi")
    };
    match level {
        Level::Portable => true,
        Level::Avx2 => avx2(),
        Level::Avx512 => avx2() && avx512(),
        Level::Avx512Dot => avx2() && avx512() && beyond(),
        Level::Native => avx2() && avx512() && beyond() && isa::has_amx(),
    }
}

/// Other architectures have one level, and what their processors have besides.
#[cfg(not(target_arch = "x86_64"))]
fn has(level: Level) -> bool {
    matches!(level, Level::Portable | Level::Native)
}

/// A platform's runtime: the file that was opened and its devices, or why there is none.
fn runtime(platform: Platform) -> String {
    let mut text = format!("{{\"platform\":{}", quote(platform.name()));
    // Writing to a string cannot fail.
    let _ = match Runtime::get(platform) {
        Err(reason) => {
            let tried = tries(&reason.tried);
            write!(text, ",\"tried\":{tried},\"reason\":{}}}", quote(&reason.to_string()))
        }
        Ok(runtime) => {
            let devices: Vec<String> = runtime
                .devices()
                .iter()
                .map(|device| {
                    let (key, value) = match hip::target_for(platform, device) {
                        Ok(target) => ("kernels", target.to_owned()),
                        Err(reason) => ("reason", reason),
                    };
                    let (name, arch) = (quote(&device.name), quote(&device.arch));
                    format!("{{\"name\":{name},\"arch\":{arch},\"{key}\":{}}}", quote(&value))
                })
                .collect();
            write!(
                text,
                ",\"file\":{},\"tried\":{},\"version\":{},\"devices\":[{}]}}",
                quote(&runtime.path.display().to_string()),
                tries(&runtime.tried),
                quote(&runtime.version()),
                devices.join(",")
            )
        }
    };
    text
}

/// Files that were not taken, with what the loader said of each.
fn tries(tried: &Tries) -> String {
    let each: Vec<String> = tried
        .0
        .iter()
        .map(|file| {
            let path = quote(&file.path.display().to_string());
            format!("{{\"path\":{path},\"reason\":{}}}", quote(&file.reason))
        })
        .collect();
    format!("[{}]", each.join(","))
}

fn list(texts: &[&str]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", quoted.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_in_order() {
        let have: Vec<bool> = isa::LEVELS.iter().map(|(_, level)| has(*level)).collect();
        assert!(have[0]);
        if cfg!(target_arch = "x86_64") {
            assert!(have.windows(2).all(|pair| pair[0] || !pair[1]), "{have:?}");
        }
    }

    #[test]
    fn every_platform_has_a_runtime_or_a_reason() {
        for platform in Platform::ALL {
            let text = runtime(platform);
            let found = Runtime::get(platform).is_ok();
            assert_eq!(text.contains("\"file\":"), found, "{text}");
            assert_eq!(text.contains("\"devices\":["), found, "{text}");
            assert!(text.contains("\"tried\":["), "{text}");
        }
        assert!(report(1002).contains("\"abi_version\":\"0.1.2\""));
    }
}
