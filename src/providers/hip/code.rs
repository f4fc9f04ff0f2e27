//! The machine code that the build embedded, by family and target.

use miniz_oxide::inflate::decompress_to_vec_with_limit;

use crate::error::{Result, fail};
use crate::hip::{DeviceInfo, Platform};

/// A family's kernels for one target, compressed.
pub(super) struct Image {
    family: &'static str,
    target: &'static str,
    /// Size before compression.
    bytes: usize,
    packed: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// The embedded target whose code runs on a device: its own on AMD; on NVIDIA the newest PTX that is
/// not newer than the device. `Err` says what is missing.
pub(super) fn target_for(
    platform: Platform,
    device: &DeviceInfo,
) -> std::result::Result<&'static str, String> {
    if TARGETS.is_empty() {
        return Err("this build of rukh has no GPU kernels: no clang was there when it was built".to_owned());
    }
    let found = match platform {
        Platform::Amd => TARGETS.iter().find(|t| **t == device.arch),
        Platform::Nvidia => {
            let number = |t: &str| t.strip_prefix("sm_").and_then(|n| n.parse::<u32>().ok());
            let limit = number(&device.arch).unwrap_or(0);
            TARGETS.iter().filter(|t| number(t).is_some_and(|n| n <= limit)).max_by_key(|t| number(t))
        }
    };
    found.copied().ok_or_else(|| {
        format!(
            "this build of rukh has no kernels for {} ({}); it has them for {}",
            device.arch,
            device.name,
            TARGETS.join(", ")
        )
    })
}

/// A family's code object (or PTX) for a target.
pub(super) fn image(family: &str, target: &str) -> Result<Vec<u8>> {
    let Some(image) = IMAGES.iter().find(|i| i.family == family && i.target == target) else {
        fail!(Internal, "the kernels \"{family}\" are not embedded for {target}");
    };
    match decompress_to_vec_with_limit(image.packed, image.bytes) {
        Ok(bytes) if bytes.len() == image.bytes => Ok(bytes),
        _ => fail!(Internal, "the embedded kernels \"{family}\" for {target} are damaged"),
    }
}

/// FNV-1a of 64 bits over a target's kernels: another number for other kernels.
pub(super) fn digest(target: &str) -> u64 {
    let images = IMAGES.iter().filter(|i| i.target == target);
    images.flat_map(|i| i.packed).fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}
