//! Puts a family's code for alike targets into one pack. The code of the targets of a generation differs little,
//! and compressed together that of five takes hardly more than one's.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::{Image, parallel};

/// One family for the targets of a generation.
pub(super) struct Pack {
    family: String,
    /// Name, size and digest of each image, in the order in which they were put together.
    images: Vec<(String, usize, u64)>,
    /// The images, compressed together.
    file: PathBuf,
}

impl Pack {
    /// Its line in the table that the library includes.
    pub(super) fn entry(&self) -> String {
        let Pack { family, images, file } = self;
        let images: String = images
            .iter()
            .map(|(target, bytes, digest)| {
                format!("Image {{ target: {target:?}, bytes: {bytes}, digest: {digest:#x} }}, ")
            })
            .collect();
        format!("    Pack {{ family: {family:?}, images: &[{images}], packed: include_bytes!({file:?}) }},\n")
    }
}

/// Which targets' code is alike: AMD's of one major version, and all PTX.
fn generation(target: &str) -> &str {
    match target.strip_prefix("gfx") {
        // The last two digits are minor version and stepping.
        Some(number) => &number[..number.len().saturating_sub(2)],
        None => "ptx",
    }
}

/// Puts the images together. The newest target comes first: who reads a pack decodes all that comes before.
pub(super) fn pack_all(images: &[Image], cache: &Path) -> Vec<Pack> {
    let mut groups: BTreeMap<(&str, &str), Vec<&Image>> = BTreeMap::new();
    for image in images.iter().rev() {
        groups.entry((&image.family, generation(&image.target))).or_default().push(image);
    }
    let groups = Mutex::new(groups.into_values().collect::<Vec<_>>());
    let packs = Mutex::new(Vec::new());
    parallel(|| {
        let Some(group) = groups.lock().expect("no job panics").pop() else { return false };
        let pack = pack(&group, cache);
        packs.lock().expect("no job panics").push(pack);
        true
    });
    let mut packs = packs.into_inner().expect("no job panics");
    packs.sort_by(|a, b| (&a.family, &a.images).cmp(&(&b.family, &b.images)));
    packs
}

fn pack(group: &[&Image], cache: &Path) -> Pack {
    /// The highest that needs no unusual memory to decode.
    const LEVEL: i32 = 19;
    let images: Vec<Vec<u8>> =
        group.iter().map(|image| fs::read(&image.file).expect("the cache can be read")).collect();
    let digests: Vec<u64> = images.iter().map(|image| fnv1a(image)).collect();
    let mut key = DefaultHasher::new();
    (LEVEL, &digests).hash(&mut key);
    let family = &group[0].family;
    let file = cache.join(format!("{family}-{}-{:016x}.pack", generation(&group[0].target), key.finish()));
    if !file.exists() {
        let whole = images.concat();
        let mut encoder = zstd::bulk::Compressor::new(LEVEL).expect("the level exists");
        // Reaches from one image to the next.
        encoder.long_distance_matching(true).expect("a known parameter");
        encoder.window_log(whole.len().next_power_of_two().ilog2().clamp(10, 27)).expect("in range");
        write_whole(&file, &encoder.compress(&whole).expect("memory compresses"));
    }
    let described = group.iter().zip(&images).zip(&digests);
    Pack {
        family: family.clone(),
        images: described.map(|((i, bytes), &digest)| (i.target.clone(), bytes.len(), digest)).collect(),
        file,
    }
}

/// FNV-1a of 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Writes a file so that nobody sees it half.
fn write_whole(file: &Path, bytes: &[u8]) {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    fs::write(&name, bytes).expect("the cache can be written");
    fs::rename(&name, file).expect("the cache can be written");
}
