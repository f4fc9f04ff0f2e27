//! Compiles `kernels/*.hip` for every GPU target when a clang is there, and writes what the library
//! embeds: `kernels.rs`, a table of packs (`pack.rs`).
//!
//! `RUKH_CLANG` names the compiler, `RUKH_GPU_TARGETS` the targets (comma-separated; `all`, the default:
//! every one that the clang knows; `native`: those of the GPUs that are in this machine; `none`). Compiled kernels are cached by content, so that a build
//! compiles only what changed. Nothing of ROCm or CUDA is needed.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::{env, fs, thread};

mod cluster;
mod comments;
mod dependent;
mod native;
mod pack;

/// The targets that are built by default. NVIDIA's are PTX, which the driver translates for later ones.
const TARGETS: [&str; 16] = [
    "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1150",
    "gfx1151", "gfx1200", "gfx1201", "sm_70", "sm_80", "sm_90",
];

/// Families with this prefix use what sm_90 alone has, and are built for nothing else.
const HOPPER: &str = "hopper_";

/// These have clusters of workgroups, too.
const CLUSTERED: &str = "mma_flash_";

/// Families whose names begin so are built for these targets alone: others have other kernels for the same.
/// The first that fits counts.
const ONLY_FOR: [(&str, &[&str]); 3] =
    [(HOPPER, &["sm_90"]), (CLUSTERED, &["sm_90"]), ("mma_", &["sm_80", "sm_90"])];

/// Kernels for this target may be started while those before them still run.
const DEPENDENT: &str = "sm_90";

/// Targets that only a newer clang knows; the others must compile.
const MAY_BE_UNKNOWN: [&str; 1] = ["gfx950"];

/// Compilers by preference; the first that runs is taken.
const CLANGS: [&str; 5] = ["clang-20", "clang-19", "/opt/rocm/llvm/bin/clang", "clang", "clang-21"];

/// Compiles everything and writes `OUT_DIR/kernels.rs`.
pub fn build() {
    println!("cargo::rerun-if-changed=kernels");
    println!("cargo::rerun-if-env-changed=RUKH_CLANG");
    println!("cargo::rerun-if-env-changed=RUKH_GPU_TARGETS");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let targets = wanted_targets();
    let clang = if targets.is_empty() { None } else { find_clang() };
    let images = match &clang {
        Some(clang) => compile_all(clang, &targets, &out),
        None => {
            if !targets.is_empty() {
                println!(
                    "cargo::warning=no clang of version 19 or later was found (RUKH_CLANG, {}): \
                     rukh is built without GPU kernels and runs on the CPU only",
                    CLANGS.join(", ")
                );
            }
            Vec::new()
        }
    };
    let built: Vec<&str> =
        targets.iter().map(String::as_str).filter(|t| images.iter().any(|i| i.target == *t)).collect();
    let families: BTreeSet<String> = images.iter().map(|image| image.family.clone()).collect();
    let families = Vec::from_iter(families);
    let packs = pack::pack_all(&images, &TARGETS, &cache_folder(&out));
    let table: String = packs.iter().map(|pack| pack.entry(&families, &built)).collect();
    let text = format!(
        "const PACKS: &[Pack] = &[\n{table}];\nconst FAMILIES: &[&str] = &{families:?};\n\
         const TARGETS: &[&str] = &{built:?};\n"
    );
    fs::write(out.join("kernels.rs"), text).expect("OUT_DIR can be written");
}

/// One compiled family for one target.
struct Image {
    family: String,
    target: String,
    /// Code object or PTX.
    file: PathBuf,
}

/// Calls `job` on as many threads as cargo allows until it says that nothing is left.
fn parallel(job: impl Fn() -> bool + Sync) {
    let workers = env::var("NUM_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| while job() {});
        }
    });
}

fn wanted_targets() -> Vec<String> {
    let wanted = env::var("RUKH_GPU_TARGETS").unwrap_or_default();
    match wanted.trim() {
        "" | "all" => TARGETS.map(str::to_owned).to_vec(),
        "native" => native::targets(&TARGETS),
        "none" => Vec::new(),
        list => list.split(',').map(|t| t.trim().to_owned()).filter(|t| !t.is_empty()).collect(),
    }
}

/// The compiler, when it is new enough for the kernels.
fn find_clang() -> Option<String> {
    let named = env::var("RUKH_CLANG").ok().filter(|s| !s.is_empty());
    let candidates: Vec<String> = match named {
        Some(named) => vec![named],
        None => CLANGS.map(str::to_owned).to_vec(),
    };
    candidates.into_iter().find(|clang| version(clang).is_some_and(|v| v >= 19))
}

/// The major version that the compiler tells of itself.
fn version(clang: &str) -> Option<u32> {
    let output = Command::new(clang).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let after = text.split("clang version ").nth(1)?;
    after.split('.').next()?.trim().parse().ok()
}

fn compile_all(clang: &str, targets: &[String], out: &Path) -> Vec<Image> {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("kernels");
    let families = files(&folder, "hip");
    let mut seed = DefaultHasher::new();
    Command::new(clang).arg("--version").output().ok().map(|o| o.stdout).hash(&mut seed);
    let cache = cache_folder(out);
    fs::create_dir_all(&cache).expect("the kernel cache can be made");
    let mut jobs: Vec<(PathBuf, String)> = Vec::new();
    for family in &families {
        let name = family.file_name().unwrap_or_default().to_string_lossy();
        let only = ONLY_FOR.iter().find(|(prefix, _)| name.starts_with(prefix));
        for target in targets.iter().filter(|t| only.is_none_or(|(_, targets)| targets.contains(&t.as_str())))
        {
            jobs.push((family.clone(), target.clone()));
        }
    }
    let (jobs, done) = (Mutex::new(jobs), Mutex::new(Vec::new()));
    parallel(|| {
        let Some((source, target)) = jobs.lock().expect("no job panics").pop() else { return false };
        if let Some(image) = compile(clang, &folder, &source, &target, &cache, seed.clone()) {
            done.lock().expect("no job panics").push(image);
        }
        true
    });
    let mut images = done.into_inner().expect("no job panics");
    images.sort_by(|a, b| (&a.family, &a.target).cmp(&(&b.family, &b.target)));
    images
}

/// Beside the build profiles, so that debug and release builds share what they compiled.
fn cache_folder(out: &Path) -> PathBuf {
    // OUT_DIR is TARGET/PROFILE/build/rukh-HASH/out.
    out.ancestors().nth(4).unwrap_or(out).join("rukh-kernels")
}

fn compile(
    clang: &str,
    folder: &Path,
    source: &Path,
    target: &str,
    cache: &Path,
    mut key: DefaultHasher,
) -> Option<Image> {
    let family = source.file_stem().expect("a file").to_string_lossy().into_owned();
    let mut sources = BTreeMap::new();
    read_with_headers(source, &folder.join("include"), &mut sources);
    sources.values().for_each(|text| text.hash(&mut key));
    let mut command = Command::new(clang);
    // Relative paths, so that what was compiled in one checkout serves another.
    command.current_dir(folder).args(["-O3", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-Iinclude"]);
    if target.starts_with("gfx") {
        command.args(["-x", "hip", &format!("--offload-arch={target}"), "--no-gpu-bundle-output"]);
        // Code objects of version 4 load on every runtime since ROCm 4.
        command.args(["-nogpuinc", "-nogpulib", "-mcode-object-version=4"]);
        if target.starts_with("gfx12") {
            // Reciprocals and the like of one value for a whole wave, on a unit of their own: they gain nothing
            // here, and the emulated GPU of the tests does not have them.
            command.args(["-Xclang", "-target-feature", "-Xclang", "-pseudo-scalar-trans"]);
        }
    } else {
        // `a`: instructions that later architectures lack.
        let arch = if family.starts_with(HOPPER) { format!("{target}a") } else { target.to_owned() };
        command.args(["-x", "cuda", &format!("--cuda-gpu-arch={arch}"), "-nocudainc", "-nocudalib", "-S"]);
        // The oldest PTX that has each architecture's instructions.
        let ptx = match arch.as_str() {
            "sm_70" => "60",
            "sm_80" => "70",
            "sm_90" if !family.starts_with(CLUSTERED) => "78",
            "sm_90" | "sm_90a" => "81",
            _ => "80",
        };
        command.arg(format!("--cuda-feature=+ptx{ptx}"));
    }
    command.arg("--cuda-device-only").args(source.file_name());
    command.get_args().for_each(|argument| argument.hash(&mut key));
    if !target.starts_with("gfx") {
        "has no comments".hash(&mut key);
    }
    if target == DEPENDENT {
        "waits at its head, has its cluster".hash(&mut key);
    }
    let file = cache.join(format!("{family}-{target}-{:016x}.image", key.finish()));
    if file.exists() {
        return Some(Image { family, target: target.to_owned(), file });
    }
    let made = file.with_extension(format!("{}.tmp", std::process::id()));
    let output = command.arg("-o").arg(&made).output().expect("the compiler runs");
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        if MAY_BE_UNKNOWN.contains(&target) && version(clang).is_some_and(|v| v < 20) {
            return None;
        }
        panic!("{clang} failed on {} for {target}:\n{text}", source.display());
    }
    if !target.starts_with("gfx") {
        let mut text = fs::read_to_string(&made).expect("the compiler's output can be read");
        if target == DEPENDENT {
            let waiting = dependent::wait_at_heads(&text);
            text = waiting.unwrap_or_else(|kernel| panic!("{clang}: no first instruction in {kernel}"));
            let clusters = cluster::with_clusters(&text);
            text = clusters.unwrap_or_else(|kernel| panic!("{clang}: no body of {kernel}"));
        }
        text = comments::without_comments(&text);
        // The driver takes PTX as a C string.
        text.push('\0');
        fs::write(&made, text).expect("the compiler's output can be written");
    }
    fs::rename(&made, &file).expect("the cache can be written");
    Some(Image { family, target: target.to_owned(), file })
}

/// A source and the headers that it includes, and those that they include, by path.
fn read_with_headers(file: &Path, include: &Path, found: &mut BTreeMap<PathBuf, String>) {
    if found.contains_key(file) {
        return;
    }
    let text = fs::read_to_string(file).expect("a kernel's source can be read");
    let included: Vec<PathBuf> = text
        .lines()
        .filter_map(|line| line.strip_prefix("#include \"")?.split('"').next())
        .filter_map(|name| [file.with_file_name(name), include.join(name)].into_iter().find(|f| f.exists()))
        .collect();
    found.insert(file.to_owned(), text);
    for header in included {
        read_with_headers(&header, include, found);
    }
}

/// The files of a folder with this extension, in order.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the kernels folder can be read")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    found.sort();
    found
}
