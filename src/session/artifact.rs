//! Opening a compiled model.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::artifact::{Artifact, Fit, Manifest, Request, Verdict, is_artifact};
use crate::error::{Result, fail};
use crate::model::{self, FileIdentity, LoadCounters, Source, start_of_file};
use crate::passes;
use crate::plan::ModelPacks;
use crate::providers::cpu;
use crate::providers::hip::Provider;
use crate::tensor::Buffer;
use crate::threads::Pool;

use super::Opened;
use super::build::{Parts, Rewritten, compiled, declared};
use super::choose::{Chosen, own_pool};
use super::dimensions::fix_dimensions;
use super::environment::Environment;
use super::log::{Category, Level};
use super::options::{Load, Optimization, SessionOptions};

/// Whether the model is a compiled one.
pub(super) fn is_compiled(source: Source<'_>) -> bool {
    match source {
        Source::Path(path) => is_artifact(&start_of_file(path)),
        Source::Bytes(bytes) => is_artifact(bytes),
        Source::Kept(bytes) => is_artifact(bytes),
    }
}

/// A compiled model with what is known of where it came from.
pub(crate) struct OpenedArtifact {
    pub(crate) artifact: Artifact,
    files: Vec<FileIdentity>,
    counters: LoadCounters,
    origin: String,
}

/// Reads an artifact and checks every byte of it.
pub(crate) fn open_artifact(source: Source<'_>, load: Load, pool: &Pool) -> Result<OpenedArtifact> {
    let mut files = Vec::new();
    let (bytes, origin, counters) = match source {
        Source::Path(path) => {
            let (bytes, identity, counters) = model::open_file(path, load == Load::Map)?;
            files.push(identity);
            (bytes, format!("artifact \"{}\"", path.display()), counters)
        }
        Source::Kept(bytes) if bytes.as_ptr().addr().is_multiple_of(crate::tensor::ALIGNMENT) => {
            (bytes.clone(), "the artifact in memory".to_owned(), LoadCounters::default())
        }
        Source::Kept(bytes) => copied(bytes)?,
        Source::Bytes(bytes) => copied(bytes)?,
    };
    Ok(OpenedArtifact { artifact: Artifact::open(bytes, &origin, pool)?, files, counters, origin })
}

/// A copy that is aligned as weights must be.
fn copied(bytes: &[u8]) -> Result<(Bytes, String, LoadCounters)> {
    struct Owner(Buffer);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            self.0.bytes()
        }
    }
    let counters = LoadCounters { read_bytes: bytes.len() as u64, ..LoadCounters::default() };
    let bytes = Bytes::from_owner(Owner(Buffer::copy_of(bytes)?));
    Ok((bytes, "the artifact in memory".to_owned(), counters))
}

/// How well an artifact suits a device of this machine and the options.
fn fit(manifest: &Manifest, device: Option<&Arc<Provider>>, options: &SessionOptions, pool: &Pool) -> Fit {
    let instructions = cpu::instructions();
    let optimization =
        Some(options.optimization_name()).filter(|_| options.optimization != Optimization::All);
    manifest.fit(&Request {
        gpu: device.map(|provider| provider.target()),
        instructions: &instructions,
        threads: pool.threads(),
        dimensions: &options.dimensions,
        precision: options.wanted_precision(),
        optimization,
    })
}

/// The verdict about an artifact, for a session with these options.
pub(crate) fn check_artifact(
    opened: &OpenedArtifact,
    environment: &Environment,
    options: &SessionOptions,
) -> Result<Verdict> {
    let pool = own_pool(options, environment)?.unwrap_or_else(|| environment.pool.clone());
    let Chosen { device, .. } = Chosen::of(environment, options)?;
    Ok(fit(&opened.artifact.manifest, device.as_ref(), options, &pool).verdict)
}

/// Opens an artifact and makes the program that suits ready to run.
pub(super) fn build_artifact(
    environment: &Environment,
    pool: &Pool,
    source: Source<'_>,
    options: &SessionOptions,
    chosen: Chosen,
) -> Result<(Opened, Vec<FileIdentity>)> {
    if !options.given.tensors().is_empty() || !options.given.files.is_empty() {
        fail!(
            Unsupported,
            "initializers, adapters and external files cannot be given for an artifact, whose weights are in it; compile the model with them"
        );
    }
    if options.optimized_model.is_some() {
        fail!(
            Unsupported,
            "option \"optimized_model_path\" is for models, and an artifact was given; save the optimised model when it is compiled"
        );
    }
    let opened = open_artifact(source, options.load, pool)?;
    build_opened(environment, pool, opened, source, options, chosen)
}

/// Makes the program that suits ready to run.
pub(super) fn build_opened(
    environment: &Environment,
    pool: &Pool,
    opened: OpenedArtifact,
    source: Source<'_>,
    options: &SessionOptions,
    chosen: Chosen,
) -> Result<(Opened, Vec<FileIdentity>)> {
    let fallback = chosen.fell_back(options);
    let Chosen { device, fallback_reason } = chosen;
    let Fit { verdict, program } = fit(&opened.artifact.manifest, device.as_ref(), options, pool);
    match verdict {
        Verdict::Optimal => {}
        Verdict::Works(remark) => {
            let text = format!("{}: {remark}; compiling it again would make it faster", opened.origin);
            options.log(&environment.log).write(Level::Warning, Category::Session, &text);
        }
        Verdict::Unfit(reason) => fail!(Unsupported, "{}: {reason}", opened.origin),
    }
    if let Some(provider) = &device {
        let tuning = opened.artifact.manifest.tuning.iter();
        provider.use_compiled_results(tuning.map(|entry| (&entry.target[..], &entry.text[..])));
    }
    let folder = match source {
        Source::Path(path) => {
            path.parent().map(|f| if f.as_os_str().is_empty() { Path::new(".") } else { f })
        }
        Source::Bytes(_) | Source::Kept(_) => None,
    };
    let fixed = opened.artifact.manifest.programs.get(program).map_or(&[][..], |p| &p.dimensions);
    let mut program = opened.artifact.program(program, folder, options.load == Load::Map, pool)?;
    let declared = declared(&program.graph);
    // Dimensions that the program has fixed have no name any more.
    let mut open_dimensions = options.clone();
    open_dimensions.dimensions.retain(|name, _| !fixed.iter().any(|dimension| dimension.name == *name));
    fix_dimensions(&mut program.graph, &open_dimensions)?;
    passes::infer(&mut program.graph)?;
    let counters = LoadCounters {
        mapped_bytes: program.counters.mapped_bytes + opened.counters.mapped_bytes,
        read_bytes: program.counters.read_bytes + opened.counters.read_bytes,
        ..program.counters
    };
    let parts = Parts {
        environment,
        pool,
        on_device: device.is_some(),
        device,
        targets: &[],
        fallback_reason: &fallback_reason,
    };
    let rewritten = Rewritten { graph: program.graph, metadata: program.metadata, declared };
    let mut packs = ModelPacks::Kept(program.packs);
    let mut made = compiled(parts, rewritten, counters, options, &mut packs)?;
    made.fallback = fallback;
    let files = opened.files.into_iter().chain(program.files).collect();
    Ok((made, files))
}
