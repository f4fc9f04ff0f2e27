//! The machine code that the build embedded, by family and target.

use std::io::{self, Read};

use lzma_rust2::LzmaReader;

use crate::error::{Result, fail};
use crate::hip::{DeviceInfo, Platform};

/// The kernels of alike families for the targets of one generation, compressed together by LZMA (kernels/pack.rs).
struct Pack {
    images: &'static [Image],
    packed: &'static [u8],
}

/// A code object (or PTX) in a pack. A thousand of them with names instead of places in lists would take a hundred
/// kilobytes more, most of them relocations.
struct Image {
    /// Among `FAMILIES` and `TARGETS`.
    family: u16,
    target: u8,
    bytes: u32,
    /// FNV-1a of 64 bits over the image.
    digest: u64,
}

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// The targets that the build embedded code for.
pub(crate) fn kernel_targets() -> &'static [&'static str] {
    TARGETS
}

/// The embedded target whose code runs on a device: its own on AMD; on NVIDIA the newest PTX that is
/// not newer than the device. `Err` says what is missing.
pub(crate) fn target_for(
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

/// Whether each kernel for this target waits by itself for the kernels before it (kernels/dependent.rs).
pub(super) fn waits(target: &str) -> bool {
    target == "sm_90"
}

/// Whether a family's kernels gain by being started early: products of few rows, rows of embeddings and normalisations, which
/// load constants before they wait, and attention between them. Other kernels of these families only wait.
pub(super) fn gains_by_early_start(family: &str) -> bool {
    [
        "gemv_",
        "weight_gemv_",
        "mma_gemv_",
        "mma_weight_gemv_",
        "flash_decode_",
        "mma_flash_decode_",
        "hopper_few_",
        "hopper_flash_decode_",
        "hopper_weight_chain",
        "hopper_weight_rows",
        "index",
        "norm_f32",
    ]
    .iter()
    .any(|start| family.starts_with(start))
}

/// The families that the build embedded for a target.
#[cfg(test)]
pub(super) fn families_of(target: &str) -> Vec<&'static str> {
    let place = TARGETS.iter().position(|known| *known == target);
    let images = PACKS.iter().flat_map(|pack| pack.images).filter(|image| Some(image.place().1) == place);
    images.map(|image| FAMILIES[image.place().0]).collect()
}

/// A family's code object (or PTX) for a target.
pub(super) fn image(family: &str, target: &str) -> Result<Vec<u8>> {
    let place = |names: &[&str], name: &str| names.iter().position(|known| *known == name);
    let found = place(FAMILIES, family).zip(place(TARGETS, target)).and_then(|wanted| {
        PACKS.iter().find_map(|pack| {
            let at = pack.images.iter().position(|image| image.place() == wanted)?;
            Some((pack, at))
        })
    });
    let Some((pack, at)) = found else {
        fail!(Internal, "the kernels \"{family}\" are not embedded for {target}");
    };
    match pack.image(at) {
        Ok(bytes) => Ok(bytes),
        Err(error) => fail!(Internal, "the embedded kernels \"{family}\" for {target} are damaged: {error}"),
    }
}

impl Image {
    fn place(&self) -> (usize, usize) {
        (usize::from(self.family), usize::from(self.target))
    }
}

impl Pack {
    /// Decodes up to the image, and the image.
    fn image(&self, at: usize) -> io::Result<Vec<u8>> {
        let mut decoder = LzmaReader::new_mem_limit(self.packed, u32::MAX, None)?;
        let before: u64 = self.images[..at].iter().map(|image| u64::from(image.bytes)).sum();
        io::copy(&mut decoder.by_ref().take(before), &mut io::sink())?;
        let mut bytes = vec![0; self.images[at].bytes as usize];
        decoder.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// A number for a target's kernels: another one for other kernels.
pub(super) fn digest(target: &str) -> u64 {
    let target = TARGETS.iter().position(|known| *known == target);
    let images = PACKS.iter().flat_map(|pack| pack.images).filter(|image| Some(image.place().1) == target);
    images.fold(0, |all: u64, image| all.rotate_left(5) ^ image.digest)
}
