//! Artifacts of models that were opened before: option "model_cache_dir", or one file, option "compiled_model_path".

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::artifact::{Kind, Policy, REVISION, SourceFile, digest};
use crate::error::Result;
use crate::model::{self, FileIdentity, Source};
use crate::providers::cpu;
use crate::threads::Pool;

use super::Opened;
use super::artifact::{OpenedArtifact, build_opened, open_artifact};
use super::choose::Chosen;
use super::compile::{CompileOptions, compile_model};
use super::environment::Environment;
use super::given_source::given_source;
use super::log::{Category, Level, Log};
use super::options::{Load, SessionOptions};
use super::targets::Targets;

/// What artifacts are called that are made for a cache.
const ENDING: &str = "rukh";

/// The artifact of a model in a cache.
pub(super) struct Cached<'a> {
    environment: &'a Environment,
    pool: &'a Pool,
    options: &'a SessionOptions,
    model: Source<'a>,
    /// What the model is called in the log, and its artifact's name begins with.
    name: String,
    artifact: PathBuf,
    digest: [u8; 32],
    /// The initializers that come from memory.
    given: Option<SourceFile>,
    /// The model's file, unless it came from memory.
    identity: Option<FileIdentity>,
}

impl<'a> Cached<'a> {
    /// `None` where options ask for no cache, or the session has what an artifact has not.
    pub(super) fn of(
        environment: &'a Environment,
        pool: &'a Pool,
        source: Source<'a>,
        options: &'a SessionOptions,
        chosen: &Chosen,
    ) -> Result<Option<Self>> {
        let wanted = options.model_cache_dir.is_some() || options.compiled_model_path.is_some();
        let plain = options.given.files.is_empty()
            && options.optimized_model.is_none()
            && environment.operators(&options.operators).is_empty();
        if !wanted || !plain {
            return Ok(None);
        }
        let (name, digest, identity) = match source {
            Source::Path(path) => {
                let (bytes, identity, _) = model::open_file(path, options.load == Load::Map)?;
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                (name, digest(&bytes, pool), Some(identity))
            }
            Source::Bytes(bytes) => ("model".to_owned(), digest(bytes, pool), None),
            Source::Kept(bytes) => ("model".to_owned(), digest(bytes, pool), None),
        };
        let given = given_source(&options.given.tensors(), pool);
        let artifact = match (&options.compiled_model_path, &options.model_cache_dir) {
            (Some(file), _) => file.clone(),
            (None, Some(folder)) => {
                let given = given.as_ref().map_or(&[][..], |source| &source.digest);
                folder.join(file_name(&name, &key(&digest, given, options, pool, chosen)))
            }
            (None, None) => return Ok(None),
        };
        Ok(Some(Cached {
            environment,
            pool,
            options,
            model: source,
            name,
            artifact,
            digest,
            given,
            identity,
        }))
    }

    /// The model, from its artifact, which is made when it is not there. `None`, and a warning, where that fails: the model
    /// is then opened without.
    pub(super) fn open(&self, chosen: &Chosen) -> Option<(Opened, Vec<FileIdentity>)> {
        match self.try_open(chosen) {
            Ok(Some(opened)) => return Some(opened),
            Ok(None) => {}
            Err(error) => self.warn(&format!("{error}; it is made anew")),
        }
        let made = match self.make(chosen) {
            Ok(()) => self.try_open(chosen),
            // Another session may have been quicker, whose artifact some systems do not let be replaced while it is open.
            Err(error) => match self.try_open(chosen) {
                Ok(Some(opened)) => Ok(Some(opened)),
                _ => Err(error),
            },
        };
        match made {
            Ok(Some(opened)) => {
                self.make_room();
                Some(opened)
            }
            Ok(None) => None,
            Err(_) if self.pool.cancelled() => None,
            Err(error) => {
                self.warn(&format!("{error}; the model is opened without a cache"));
                None
            }
        }
    }

    /// `None` where there is no artifact, or one of another model.
    fn try_open(&self, chosen: &Chosen) -> Result<Option<(Opened, Vec<FileIdentity>)>> {
        if !self.artifact.is_file() {
            return Ok(None);
        }
        let source = Source::Path(&self.artifact);
        let opened = open_artifact(source, self.options.load, self.pool)?;
        let Some(outside) = self.outside(&opened) else { return Ok(None) };
        let (made, _) =
            build_opened(self.environment, self.pool, opened, source, self.options, chosen.clone())?;
        // Those that are used are not the first to go.
        if let Err(e) = model::touch(&self.artifact) {
            let message = format!("\"{}\": {e}", self.artifact.display());
            self.log().write(Level::Debug, Category::ModelCache, &message);
        }
        // The artifact stands for these files; its own times change when it is used.
        Ok(Some((made, self.identity.clone().into_iter().chain(outside).collect())))
    }

    /// The files of the model's external data; `None` where the artifact was made of other files than the model's, or of
    /// other initializers from memory.
    fn outside(&self, opened: &OpenedArtifact) -> Option<Vec<FileIdentity>> {
        let (own, others) = opened.artifact.manifest.sources.split_first()?;
        let (given, others) = match others.split_last() {
            Some((last, files)) if last.path.is_empty() => (Some(last), files),
            _ => (None, others),
        };
        if given.map(|source| &source.digest) != self.given.as_ref().map(|source| &source.digest) {
            return None;
        }
        let folder = self.artifact.parent().unwrap_or(Path::new("."));
        let same = |source: &SourceFile| {
            let (bytes, identity, _) = model::open_file(&folder.join(&source.path), true).ok()?;
            (bytes.len() as u64 == source.length && digest(&bytes, self.pool) == *source.digest)
                .then_some(identity)
        };
        let outside = others.iter().map(same).collect::<Option<Vec<FileIdentity>>>()?;
        (own.digest == self.digest).then_some(outside)
    }

    fn make(&self, chosen: &Chosen) -> Result<()> {
        let gpu = chosen.device.as_ref().map(|device| device.target().to_owned());
        let targets = Targets { cpu: gpu.is_none(), gpus: gpu.into_iter().collect() };
        let wanted = CompileOptions {
            targets,
            weights: Policy::Used,
            shapes: Vec::new(),
            overridable: false,
            tuning: Vec::new(),
        };
        if let Some(folder) = self.artifact.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|e| model::failed(folder, e))?;
        }
        let told = format!("model \"{}\" is compiled to \"{}\"", self.name, self.artifact.display());
        self.log().write(Level::Info, Category::ModelCache, &told);
        compile_model(self.environment, self.model, self.options, &wanted, &self.artifact, &mut |_, _, _| {
            !self.pool.cancelled()
        })
    }

    /// Lets the artifacts go that were not used for longest, until the cache has its limit.
    fn make_room(&self) {
        let Some(folder) =
            self.options.model_cache_dir.as_ref().filter(|_| self.options.model_cache_limit > 0)
        else {
            return;
        };
        let mut all: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, facts) = (entry.path(), entry.metadata());
            let Ok((used, size)) = facts.and_then(|facts| Ok((facts.modified()?, facts.len()))) else {
                continue;
            };
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let abandoned = used.elapsed().is_ok_and(|age| age > Duration::from_secs(3600));
            if name.ends_with(".unfinished") && name.contains(&format!(".{ENDING}.")) && abandoned {
                // A process that was killed while it wrote left it.
                let _ = std::fs::remove_file(&path);
            } else if path.extension().is_some_and(|ending| ending == ENDING) {
                all.push((used, size, path));
            }
        }
        all.sort();
        let mut total: u64 = all.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in all.into_iter().filter(|(.., path)| *path != self.artifact) {
            if total <= self.options.model_cache_limit {
                return;
            }
            // Another process may have been quicker. On some systems a file that is mapped stays, and another must go.
            if std::fs::remove_file(&path).is_ok() || !path.exists() {
                total -= size;
            }
        }
    }

    fn warn(&self, what: &str) {
        self.log().warn_user(Category::ModelCache, &format!("model cache: {what}"));
    }

    fn log(&self) -> Log {
        self.options.log(&self.environment.log)
    }
}

/// What an artifact of a cache depends on besides the model's external data, which it is compared with when it is opened.
fn key(digest: &[u8; 32], given: &[u8], options: &SessionOptions, pool: &Pool, chosen: &Chosen) -> String {
    let target = match &chosen.device {
        Some(device) => format!("{} {}", Kind::Gpu.name(), device.target()),
        None => format!("{} {} {}", Kind::Cpu.name(), cpu::instructions(), pool.threads()),
    };
    let what = format!(
        "{digest:02x?} {given:02x?} {REVISION} {} {target} {} {} {:?}",
        env!("CARGO_PKG_VERSION"),
        options.computed_precision_name(),
        options.optimization_name(),
        options.dimensions,
    );
    let hashed = crate::artifact::digest(what.as_bytes(), pool);
    hashed[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn file_name(model: &str, key: &str) -> String {
    format!("{}-{key}.{ENDING}", model.chars().take(64).collect::<String>())
}
