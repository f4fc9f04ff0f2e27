//! Puts the code of alike families for alike targets into one pack. The code of the targets of a generation differs
//! little, as that of a kernel for several element types: compressed together they take a fraction of the room.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use lzma_rust2::{LzmaOptions, LzmaWriter};

use super::{Image, parallel};

/// Alike families for the targets of a generation.
pub(super) struct Pack {
    /// Family, target, size and digest of each image, in the order in which they were put together.
    images: Vec<(String, String, usize, u64)>,
    /// The images, compressed together.
    file: PathBuf,
}

impl Pack {
    /// Its line in the table that the library includes, where families and targets are told by their places in lists.
    pub(super) fn entry(&self, families: &[String], targets: &[&str]) -> String {
        let Pack { images, file } = self;
        let images: String = images
            .iter()
            .map(|(family, target, bytes, digest)| {
                let family = families.iter().position(|f| f == family).expect("all families are listed");
                let target = targets.iter().position(|t| t == target).expect("all targets are listed");
                format!(
                    "Image {{ family: {family}, target: {target}, bytes: {bytes}, digest: {digest:#x} }}, "
                )
            })
            .collect();
        format!("    Pack {{ images: &[{images}], packed: include_bytes!({file:?}) }},\n")
    }
}

/// Which targets' code is alike: AMD's of one major version, and all PTX.
fn generation(target: &str) -> &str {
    match target.strip_prefix("gfx") {
        // The last two digits are minor version and stepping.
        Some(number) => &number[..number.len().saturating_sub(2)],
        None => PTX,
    }
}

/// The generation of NVIDIA's targets.
const PTX: &str = "ptx";

/// Small families that few models use. A pack of their own each would take a fifth more.
const RARE: [&str; 6] = ["loss", "order", "roi", "scan", "scatter", "space_to_depth"];

/// Which families' code is alike: the same kernels for other element types have names with another last word; and all products
/// of few rows are of one source, as all convolutions are.
fn stem(family: &str) -> &str {
    if RARE.contains(&family) {
        return "rare";
    }
    let word = |word: &str| family.split('_').any(|own| own == word);
    match ["gemv", "conv"].into_iter().find(|alike| word(alike)) {
        Some(alike) => alike,
        None => family.rsplit_once('_').map_or(family, |(stem, _)| stem),
    }
}

/// Puts the images together. The newest target comes first, and of it what more models use: who reads a pack decodes all that
/// comes before.
pub(super) fn pack_all(images: &[Image], targets: &[&str], cache: &Path) -> Vec<Pack> {
    let place = |target: &str| targets.iter().position(|known| *known == target);
    let mut groups: BTreeMap<(&str, &str), Vec<&Image>> = BTreeMap::new();
    for image in images.iter().rev() {
        groups.entry((stem(&image.family), generation(&image.target))).or_default().push(image);
    }
    for group in groups.values_mut() {
        group.sort_by_key(|image| (Reverse(place(&image.target)), image.family.split('_').count()));
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
    packs.sort_by(|a, b| a.images.cmp(&b.images));
    packs
}

fn pack(group: &[&Image], cache: &Path) -> Pack {
    /// The highest; it costs time when kernels are built, not when they are read.
    const LEVEL: u32 = 9;
    let images: Vec<Vec<u8>> =
        group.iter().map(|image| fs::read(&image.file).expect("the cache can be read")).collect();
    let digests: Vec<u64> = images.iter().map(|image| fnv1a(image)).collect();
    let (stem, generation) = (stem(&group[0].family), generation(&group[0].target));
    // Bits of the byte before, of the place and of the place of a match that LZMA's statistics tell apart. Instructions of
    // AMD's GPUs are words of four bytes; PTX is text, which is aligned to nothing.
    let alignment = if generation == PTX { (3, 0, 0) } else { (0, 2, 2) };
    let mut key = DefaultHasher::new();
    ("LZMA", LEVEL, alignment, &digests).hash(&mut key);
    let file = cache.join(format!("{stem}-{generation}-{:016x}.pack", key.finish()));
    if !file.exists() {
        let whole = images.concat();
        let mut options = LzmaOptions::with_preset(LEVEL);
        // Reaches over all images, and takes no more memory to decode than they have.
        options.dict_size = whole.len().next_power_of_two().clamp(1 << 12, 1 << 26) as u32;
        options.nice_len = LzmaOptions::NICE_LEN_MAX;
        (options.lc, options.lp, options.pb) = alignment;
        let mut encoder = LzmaWriter::new_use_header(Vec::new(), &options, Some(whole.len() as u64))
            .expect("valid options");
        encoder.write_all(&whole).expect("memory takes it");
        write_whole(&file, &encoder.finish().expect("memory takes it"));
    }
    let described = group.iter().zip(&images).zip(&digests);
    Pack {
        images: described
            .map(|((i, bytes), &digest)| (i.family.clone(), i.target.clone(), bytes.len(), digest))
            .collect(),
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
