//! Compiling a model to an artifact.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::artifact::{
    self, Encoded, Kind, Manifest, Policy, ProgramEntry, REVISION, SourceFile, SourceFiles, Store,
    TuningEntry, Writer, digest, encode,
};
use crate::error::{Result, fail};
use crate::model::{self, FileIdentity, Model, Source};
use crate::plan::{ModelPacks, RecordedPacks};
use crate::providers::cpu;
use crate::providers::hip::{TargetResults, read_results};
use crate::threads::Pool;

use super::artifact::is_compiled;
use super::build::{Parts, Rewritable, compiled, rewrite};
use super::choose::own_pool;
use super::dimensions::fix_dimensions;
use super::environment::Environment;
use super::given_source::given_source;
use super::options::{Load, SessionOptions};
use super::targets::Targets;

/// What a model is compiled for.
pub(crate) struct CompileOptions {
    pub(crate) targets: Targets,
    pub(crate) weights: Policy,
    /// Symbolic dimensions of further programs, in which they are fixed.
    pub(crate) shapes: Vec<BTreeMap<String, usize>>,
    /// Whether initializers that runs may give other values are fixed; else such a model is refused.
    pub(crate) overridable: bool,
    /// Files with results of tuning.
    pub(crate) tuning: Vec<PathBuf>,
}

/// Is told what is done, which step of how many; compiling ends when it gives `false`.
pub(crate) type Progress<'p> = dyn FnMut(&str, u64, u64) -> bool + 'p;

/// Compiles a model to the artifact `out`, which is there when all of it is written.
pub(crate) fn compile_model(
    environment: &Environment,
    source: Source<'_>,
    options: &SessionOptions,
    wanted: &CompileOptions,
    out: &Path,
    progress: &mut Progress<'_>,
) -> Result<()> {
    if is_compiled(source) {
        let name = match source {
            Source::Path(path) => format!("\"{}\"", path.display()),
            Source::Bytes(_) | Source::Kept(_) => "the model in memory".to_owned(),
        };
        fail!(InvalidArgument, "{name} is an artifact already; compile the model that it was made of");
    }
    let pool = own_pool(options, environment)?.unwrap_or_else(|| environment.pool.clone());
    let tuning = tuning(wanted)?;
    let variants = variants(options, wanted);
    let mut steps =
        Steps { done: 0, total: 2 * (variants.len() * wanted.targets.kinds().len()) as u64 + 1, progress };
    let writer = Writer::new(out)?;
    let model = model::open(source, options.load == Load::Map, &options.given)?;
    if !model.graph.defaults.is_empty() && !wanted.overridable {
        fail!(
            Unsupported,
            "runs may give values for some of the model's initializers, which an artifact would fix"
        );
    }
    let mut sources = sources(&model.files, &model.contents, out, &pool)?;
    let mut contents = model.contents.clone();
    let memory = match source {
        Source::Path(_) => None,
        Source::Bytes(bytes) => Some(bytes),
        Source::Kept(bytes) => Some(&bytes[..]),
    };
    if let Some(bytes) = memory {
        sources.insert(0, in_memory(bytes, &pool));
        // No weights are read from it later.
        contents.insert(0, Bytes::new());
    }
    if let Some(given) = given_source(&options.given.tensors(), &pool) {
        sources.push(given);
        contents.push(Bytes::new());
    }

    let mut store = Store::new(writer, wanted.weights, SourceFiles(contents))?;
    let metadata = (&model.metadata).into();
    let compiler = Compiler { environment, pool: &pool, model, wanted };
    let mut manifest = Manifest {
        library: env!("CARGO_PKG_VERSION").to_owned(),
        revision: REVISION,
        sources,
        metadata: Some(metadata),
        weights: wanted.weights.name().to_owned(),
        programs: Vec::new(),
        tuning,
    };
    let mut graphs = Vec::new();
    for variant in &variants {
        for kind in wanted.targets.kinds() {
            let name = format!("program.{}", graphs.len());
            let (entry, graph) = compiler.program(kind, variant, &name, &mut store, &mut steps)?;
            manifest.programs.push(entry);
            graphs.push((name, graph));
        }
    }
    steps.next("writing the file")?;
    for (source, needed) in manifest.sources.iter_mut().zip(&store.needed) {
        source.needed = *needed;
    }
    let mut writer = store.into_writer();
    for (name, graph) in &graphs {
        writer.begin(name)?;
        writer.append(graph, 1)?;
    }
    artifact::finish(writer, &manifest)
}

/// The results of tuning that are compiled in. An error where they are for a GPU that the model is not compiled for.
fn tuning(wanted: &CompileOptions) -> Result<Vec<TuningEntry>> {
    let entry = |file: &PathBuf| {
        let TargetResults { target, text } = read_results(file)?;
        if !wanted.targets.gpus.contains(&target) {
            fail!(
                InvalidArgument,
                "tuning results \"{}\" are for {target}, and the model is compiled for {}; add {target} to the targets, or \
                 leave the file",
                file.display(),
                wanted.targets.list()
            );
        }
        Ok(TuningEntry { target, text })
    };
    wanted.tuning.iter().map(entry).collect()
}

/// The options of each program: as given, and with further dimensions fixed.
fn variants(options: &SessionOptions, wanted: &CompileOptions) -> Vec<SessionOptions> {
    let mut plain = options.clone();
    plain.optimized_model = None;
    let fixed = wanted.shapes.iter().map(|shape| {
        let mut options = plain.clone();
        options.dimensions.extend(shape.clone());
        options
    });
    std::iter::once(options.clone()).chain(fixed).collect()
}

/// Tells the caller how far it is.
struct Steps<'p, 'c> {
    done: u64,
    total: u64,
    progress: &'p mut Progress<'c>,
}

impl Steps<'_, '_> {
    fn next(&mut self, what: &str) -> Result<()> {
        if !(self.progress)(what, self.done, self.total) {
            fail!(Cancelled, "compiling was cancelled after {} of {} steps", self.done, self.total);
        }
        self.done += 1;
        Ok(())
    }
}

struct Compiler<'a> {
    environment: &'a Environment,
    pool: &'a Pool,
    model: Model,
    wanted: &'a CompileOptions,
}

impl Compiler<'_> {
    /// Makes a program and puts its weights into the store.
    fn program(
        &self,
        kind: Kind,
        options: &SessionOptions,
        name: &str,
        store: &mut Store,
        steps: &mut Steps<'_, '_>,
    ) -> Result<(ProgramEntry, Vec<u8>)> {
        let Compiler { environment, pool, ref model, wanted } = *self;
        let target = kind.name();
        steps.next(&format!("optimising the model for {target}"))?;
        let mut graph = model.graph.clone();
        fix_dimensions(&mut graph, options)?;
        let on_device = kind == Kind::Gpu;
        let targets = if on_device { &wanted.targets.gpus[..] } else { &[] };
        let parts = || Parts { environment, pool, on_device, device: None, targets, fallback_reason: "" };
        let rewritable = Rewritable { graph, functions: &model.functions, metadata: model.metadata.clone() };
        let rewritten = rewrite(&parts(), rewritable, options)?;
        steps.next(&format!("packing weights for {target}"))?;
        let packs = match kind {
            Kind::Cpu => {
                let mut packs = ModelPacks::Recorded(RecordedPacks::new(pool.threads()));
                // The program itself is not needed: packed weights outlive it.
                drop(compiled(parts(), rewritten.clone(), model.counters, options, &mut packs)?);
                Some(packs)
            }
            Kind::Gpu => None,
        };
        let packs = match &packs {
            Some(ModelPacks::Recorded(packs)) => Some(packs),
            _ => None,
        };
        let Encoded { graph, nodes } =
            encode(&rewritten.graph, &rewritten.metadata, &rewritten.declared, packs, store)?;
        let dimensions = options.dimensions.iter();
        let entry = ProgramEntry {
            kind: target.to_owned(),
            targets: targets.to_vec(),
            instructions: if on_device { String::new() } else { cpu::instructions() },
            threads: pool.threads() as u32,
            dimensions: dimensions
                .map(|(name, &size)| artifact::Number { name: name.clone(), value: size as i64 })
                .collect(),
            precision: options.computed_precision_name().to_owned(),
            optimization: options.optimization_name().to_owned(),
            graph: name.to_owned(),
            nodes,
        };
        Ok((entry, graph))
    }
}

/// A model that came from memory, which has no name.
fn in_memory(bytes: &[u8], pool: &Pool) -> SourceFile {
    let (length, digest) = (bytes.len() as u64, digest(bytes, pool).to_vec());
    SourceFile { path: String::new(), length, digest, needed: false }
}

/// The model's files, told from the artifact's folder where they lie there or deeper.
fn sources(files: &[FileIdentity], contents: &[Bytes], out: &Path, pool: &Pool) -> Result<Vec<SourceFile>> {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let file = |(identity, bytes): (&FileIdentity, &Bytes)| {
        let path = identity.path.canonicalize().unwrap_or_else(|_| identity.path.clone());
        let path = path.strip_prefix(&folder).map(Path::to_owned).unwrap_or(path);
        let Some(path) = path.to_str() else {
            fail!(Unsupported, "the name of \"{}\" is not UTF-8, and an artifact holds it", path.display());
        };
        // The artifact may be opened on another system.
        let path = if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() };
        Ok(SourceFile {
            path,
            length: bytes.len() as u64,
            digest: digest(bytes, pool).to_vec(),
            needed: false,
        })
    };
    files.iter().zip(contents).map(file).collect()
}
