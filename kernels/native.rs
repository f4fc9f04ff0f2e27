//! Which targets the GPUs of this machine need: `RUKH_GPU_TARGETS=native`.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Those of `known` that the GPUs here run; none where there is no GPU.
pub(super) fn targets(known: &[&str]) -> Vec<String> {
    let mut found: Vec<String> = amd().into_iter().filter(|name| known.contains(&name.as_str())).collect();
    found.extend(nvidia().into_iter().filter_map(|capability| newest_below(capability, known)));
    found.sort();
    found.dedup();
    found
}

/// AMD's driver tells each GPU's architecture as a number: 90402 is gfx942, 90010 is gfx90a.
fn amd() -> Vec<String> {
    let nodes = fs::read_dir("/sys/class/kfd/kfd/topology/nodes").into_iter().flatten().flatten();
    nodes.filter_map(|node| gfx_name(&fs::read_to_string(node.path().join("properties")).ok()?)).collect()
}

/// The name in a node's properties; a node that is a CPU has version 0.
fn gfx_name(properties: &str) -> Option<String> {
    let line = properties.lines().find_map(|line| line.strip_prefix("gfx_target_version "))?;
    let version: u32 = line.trim().parse().ok().filter(|&version| version > 0)?;
    Some(format!("gfx{}{:x}{:x}", version / 10000, version / 100 % 100, version % 100))
}

/// Compute capabilities of NVIDIA's GPUs, 90 for 9.0.
fn nvidia() -> Vec<u32> {
    if !Path::new("/proc/driver/nvidia/version").exists() {
        return Vec::new();
    }
    let asked =
        Command::new("nvidia-smi").args(["--query-gpu=compute_cap", "--format=csv,noheader"]).output();
    let text = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().replace('.', "").parse().ok()).collect()
}

/// The newest of NVIDIA's targets that a GPU runs: its driver translates what was made for older ones.
fn newest_below(capability: u32, known: &[&str]) -> Option<String> {
    let number = |target: &str| target.strip_prefix("sm_")?.parse::<u32>().ok();
    let fitting = known.iter().filter_map(|target| number(target)).filter(|&n| n <= capability);
    fitting.max().map(|n| format!("sm_{n}"))
}
