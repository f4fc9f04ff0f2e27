//! What an artifact holds, as text for programs.

use crate::artifact::{Artifact, ProgramEntry, TuningEntry};
use crate::providers::hip::count_results;

use super::profile::quote;

/// The facts as a JSON object; `rukh_artifact_info` lists the keys.
pub(crate) fn artifact_info(artifact: &Artifact) -> String {
    let manifest = &artifact.manifest;
    let sources = manifest.sources.iter().map(|source| {
        format!(
            "{{\"file\":{},\"bytes\":{},\"digest\":{},\"needed\":{}}}",
            quote(&source.path),
            source.length,
            quote(&hex(&source.digest)),
            source.needed
        )
    });
    let parts = artifact.parts().map(|(name, bytes, checksum)| {
        format!("{{\"name\":{},\"bytes\":{bytes},\"checksum\":{}}}", quote(name), quote(&hex(checksum)))
    });
    format!(
        "{{\"library\":{},\"revision\":{},\"weights\":{},\"targets\":{},\"sources\":{},\"programs\":{},\"tuning\":{},\"parts\":{}}}",
        quote(&manifest.library),
        manifest.revision,
        quote(&manifest.weights),
        list(manifest.targets().iter().map(|target| quote(target))),
        list(sources),
        list(manifest.programs.iter().map(program)),
        list(manifest.tuning.iter().map(tuning)),
        list(parts),
    )
}

fn program(program: &ProgramEntry) -> String {
    let packed: u64 = program.nodes.iter().flat_map(|node| &node.packs).map(|pack| pack.length).sum();
    let dimensions: Vec<String> =
        program.dimensions.iter().map(|d| format!("{}:{}", quote(&d.name), d.value)).collect();
    format!(
        "{{\"kind\":{},\"targets\":{},\"instructions\":{},\"threads\":{},\"dimensions\":{{{}}},\"precision\":{},\"optimization\":{},\"packed_bytes\":{packed}}}",
        quote(&program.kind),
        list(program.targets.iter().map(|target| quote(target))),
        quote(&program.instructions),
        program.threads,
        dimensions.join(","),
        quote(&program.precision),
        quote(&program.optimization),
    )
}

fn tuning(entry: &TuningEntry) -> String {
    let device = entry.text.lines().find_map(|line| line.trim().strip_prefix("validate device "));
    format!(
        "{{\"target\":{},\"device\":{},\"results\":{}}}",
        quote(&entry.target),
        quote(device.unwrap_or_default()),
        count_results(&entry.text)
    )
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
