//! Options of a session and of a run, each also a key and a value of text.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Result, excerpt, fail};
use crate::memory::device::external::ExternalFunctions;
use crate::model::{Apart, Given};
use crate::ops::custom::Definition;
use crate::providers::hip::{self, HipOptions};
use crate::tensor::ElementType;
use crate::threads::Affinities;

use super::log::{Log, Threshold};
use super::option_keys::{DIMENSION_PREFIX, KEYS};
use super::provider_options::{ProviderKind, ProviderOptions};
use super::{compiled_names, operators, ort_keys};

/// How a model file comes into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// Mapped: pages are read when needed and shared between processes. The file must not shrink
    /// while the session lives.
    Map,
    /// Read in whole.
    Read,
}

/// How far the graph is rewritten before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Optimization {
    /// Only what running needs: functions are inlined.
    None,
    /// Constant and shape folding, removal of identities and dead code.
    Basic,
    /// Fusions as well.
    All,
}

/// What to do with a node that the wanted providers cannot take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fallback {
    Cpu,
    Error,
}

/// How a session is made.
#[derive(Clone, Debug)]
pub(crate) struct SessionOptions {
    /// In order of preference; empty means the CPU. The CPU always comes last when `fallback` allows.
    pub(crate) providers: Vec<ProviderOptions>,
    pub(crate) load: Load,
    pub(crate) optimization: Optimization,
    pub(crate) fallback: Fallback,
    /// Threads of the session's own pool; `None`: the environment's pool.
    pub(crate) threads: Option<usize>,
    /// Whether threads that have nothing to do look for work for a while before they sleep.
    pub(crate) spinning: bool,
    /// Which processors the threads of the session's own pool may use.
    pub(crate) affinities: Affinities,
    /// Record every run for `profile`.
    pub(crate) profiling: bool,
    /// Who the session is in the log, and from which level on it is heard there.
    pub(crate) log_id: String,
    pub(crate) log_level: Option<Threshold>,
    /// Fixed values for symbolic dimensions, by name.
    pub(crate) dimensions: BTreeMap<String, usize>,
    /// How many plans for different input shapes are kept.
    pub(crate) plan_cache: usize,
    /// The user's functions for device memory, instead of addresses among the hip provider's options.
    pub(crate) external_allocator: Option<ExternalFunctions>,
    /// Take device memory from the environment's arena instead of one of the session's own.
    pub(crate) use_env_allocators: bool,
    /// Share what does not change with sessions of the same environment on the same files.
    pub(crate) share_weights: bool,
    /// What floats compute in; `None`: as the provider's options and the environment say.
    pub(crate) precision: Option<ElementType>,
    /// Operators that the caller defined.
    pub(crate) operators: Vec<Arc<Definition>>,
    /// Where the optimised model is saved.
    pub(crate) optimized_model: Option<PathBuf>,
    /// Which of its weights go into a file of their own.
    pub(crate) weights_apart: Apart,
    /// Where artifacts of opened models are kept, how many bytes of them (0: any number), or the one of this model.
    pub(crate) model_cache_dir: Option<PathBuf>,
    pub(crate) model_cache_limit: u64,
    pub(crate) compiled_model_path: Option<PathBuf>,
    /// Weights from memory, and where others are.
    pub(crate) given: Given,
}

impl Default for SessionOptions {
    fn default() -> Self {
        SessionOptions {
            providers: Vec::new(),
            load: Load::Map,
            optimization: Optimization::All,
            fallback: Fallback::Cpu,
            threads: None,
            spinning: true,
            affinities: Affinities::default(),
            profiling: false,
            log_id: String::new(),
            log_level: None,
            dimensions: BTreeMap::new(),
            plan_cache: 64,
            external_allocator: None,
            use_env_allocators: false,
            share_weights: true,
            precision: None,
            operators: Vec::new(),
            optimized_model: None,
            weights_apart: Apart::default(),
            model_cache_dir: None,
            model_cache_limit: MODEL_CACHE,
            compiled_model_path: None,
            given: Given::default(),
        }
    }
}

const PRECISIONS: &[(&str, Option<ElementType>)] = &[
    ("auto", None),
    ("f32", Some(ElementType::F32)),
    ("f16", Some(ElementType::F16)),
    ("bf16", Some(ElementType::BF16)),
];

/// Bytes that a cache of compiled models has at most, unless an option says otherwise.
const MODEL_CACHE: u64 = 16 << 30;

impl SessionOptions {
    /// The options of the hip provider, when it was added.
    pub(crate) fn hip(&self) -> Option<&HipOptions> {
        self.providers.iter().find_map(|provider| match provider {
            ProviderOptions::Hip(options) => Some(options),
            ProviderOptions::Cpu => None,
        })
    }

    /// The log of a session that is made with these options.
    pub(super) fn log(&self, environment: &Log) -> Log {
        environment.of_session(&self.log_id, self.log_level)
    }

    /// Sets an option by name.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let (given_key, given) = (excerpt(key), excerpt(value));
        if let Some((own, value)) = ort_keys::own(key, value)? {
            return self.set(own, value);
        }
        if let Some(name) = key.strip_prefix(DIMENSION_PREFIX) {
            let Ok(size) = value.parse() else {
                fail!(
                    InvalidArgument,
                    "option \"{given_key}\": \"{given}\" is not allowed; allowed is a number from 0"
                )
            };
            return self.set_dimension(name, size);
        }
        let Some((_, allowed)) = KEYS.iter().find(|(k, _)| *k == key) else {
            let known: Vec<&str> = KEYS.iter().map(|(k, _)| *k).collect();
            fail!(
                InvalidArgument,
                "session option \"{given_key}\" is not known; known are {}, and {DIMENSION_PREFIX}NAME for a symbolic dimension",
                known.join(", ")
            );
        };
        if self.set_known(key, value).is_none() {
            fail!(
                InvalidArgument,
                "session option \"{given_key}\": \"{given}\" is not allowed; allowed is {allowed}"
            );
        }
        Ok(())
    }

    /// `None` when the value is not allowed.
    fn set_known(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "fallback" => {
                self.fallback = choose(value, &[("cpu", Fallback::Cpu), ("error", Fallback::Error)])?
            }
            "compiled_model_path" => self.compiled_model_path = (!value.is_empty()).then(|| value.into()),
            "model_cache_dir" => self.model_cache_dir = (!value.is_empty()).then(|| value.into()),
            "model_cache_limit" => self.model_cache_limit = value.parse().ok()?,
            "external_data_folder" => self.given.folder = (!value.is_empty()).then(|| value.into()),
            "load" => self.load = choose(value, &[("map", Load::Map), ("read", Load::Read)])?,
            "log_id" => self.log_id = value.to_owned(),
            "log_level" => self.log_level = Threshold::parse(value)?,
            "optimization" => self.optimization = choose(value, OPTIMIZATIONS)?,
            "profiling" => self.profiling = choose(value, &[("0", false), ("1", true)])?,
            "precision" => self.precision = choose(value, PRECISIONS)?,
            "spinning" => self.spinning = choose(value, &[("0", false), ("1", true)])?,
            "thread_affinities" => self.affinities = Affinities::parse(value)?,
            "share_weights" => self.share_weights = choose(value, &[("0", false), ("1", true)])?,
            "use_env_allocators" => self.use_env_allocators = choose(value, &[("0", false), ("1", true)])?,
            "optimized_model_external_data" => {
                self.weights_apart.always = choose(value, &[("0", false), ("1", true)])?
            }
            "optimized_model_external_data_file" => self.weights_apart.set_file(value).then_some(())?,
            "optimized_model_external_data_min_bytes" => self.weights_apart.smallest = value.parse().ok()?,
            "optimized_model_path" => self.optimized_model = (!value.is_empty()).then(|| value.into()),
            "plan_cache" => self.plan_cache = value.parse().ok().filter(|n| (1..=65536).contains(n))?,
            "intra_op_threads" => {
                let n: usize = value.parse().ok().filter(|n| *n <= 1024)?;
                self.threads = (n > 0).then_some(n);
            }
            _ => return None,
        }
        Some(())
    }

    /// Every option with its value, in a form that `set` takes.
    pub(crate) fn entries(&self) -> Vec<(String, String)> {
        let name = |o: Optimization| OPTIMIZATIONS.iter().find(|(_, v)| *v == o).map_or("all", |(n, _)| n);
        let precision = PRECISIONS.iter().find(|(_, v)| *v == self.precision).map_or("auto", |(n, _)| n);
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let (saved, apart) = (self.optimized_model.as_ref().map(text), &self.weights_apart);
        let compiled = self.compiled_model_path.as_ref().map(text);
        let cache = self.model_cache_dir.as_ref().map(text);
        let folder = self.given.folder.as_ref().map(text);
        let mut entries = vec![
            ("compiled_model_path".to_owned(), compiled.unwrap_or_default()),
            ("external_data_folder".to_owned(), folder.unwrap_or_default()),
            ("fallback".to_owned(), if self.fallback == Fallback::Cpu { "cpu" } else { "error" }.to_owned()),
            ("intra_op_threads".to_owned(), self.threads.unwrap_or(0).to_string()),
            ("load".to_owned(), if self.load == Load::Map { "map" } else { "read" }.to_owned()),
            ("log_id".to_owned(), self.log_id.clone()),
            ("log_level".to_owned(), Threshold::text(self.log_level).to_owned()),
            ("model_cache_dir".to_owned(), cache.unwrap_or_default()),
            ("model_cache_limit".to_owned(), self.model_cache_limit.to_string()),
            ("optimization".to_owned(), name(self.optimization).to_owned()),
            ("optimized_model_external_data".to_owned(), (apart.always as u8).to_string()),
            ("optimized_model_external_data_file".to_owned(), apart.file.clone().unwrap_or_default()),
            ("optimized_model_external_data_min_bytes".to_owned(), apart.smallest.to_string()),
            ("optimized_model_path".to_owned(), saved.unwrap_or_default()),
            ("plan_cache".to_owned(), self.plan_cache.to_string()),
            ("precision".to_owned(), precision.to_owned()),
            ("profiling".to_owned(), (self.profiling as u8).to_string()),
            ("share_weights".to_owned(), (self.share_weights as u8).to_string()),
            ("spinning".to_owned(), (self.spinning as u8).to_string()),
            ("thread_affinities".to_owned(), self.affinities.to_string()),
            ("use_env_allocators".to_owned(), (self.use_env_allocators as u8).to_string()),
        ];
        entries
            .extend(self.dimensions.iter().map(|(n, v)| (format!("{DIMENSION_PREFIX}{n}"), v.to_string())));
        entries
    }

    /// What floats compute in: as this option says, else the provider's, else the environment.
    pub(super) fn computed_precision(&self) -> ElementType {
        let (fp16, bf16) = match self.hip() {
            Some(hip) => (hip.fp16_enable, hip.bf16_enable),
            None => (hip::wants_fp16(), false),
        };
        match (self.precision, fp16, bf16) {
            (Some(precision), ..) => precision,
            (None, true, _) => ElementType::F16,
            (None, _, true) => ElementType::BF16,
            _ => ElementType::F32,
        }
    }

    /// The name of what floats compute in.
    pub(super) fn computed_precision_name(&self) -> &'static str {
        let computed = Some(self.computed_precision());
        PRECISIONS.iter().find(|(_, precision)| *precision == computed).map_or("f32", |(name, _)| name)
    }

    /// The name of what floats must compute in, where an option or the environment says so.
    pub(super) fn wanted_precision(&self) -> Option<&'static str> {
        let wanted = self.precision.is_some() || self.computed_precision() != ElementType::F32;
        wanted.then(|| self.computed_precision_name())
    }

    pub(super) fn optimization_name(&self) -> &'static str {
        OPTIMIZATIONS.iter().find(|(_, v)| *v == self.optimization).map_or("all", |(name, _)| name)
    }

    /// All that a model's program depends on: sessions whose options agree in it can share one.
    pub(super) fn identity(&self) -> Vec<(String, String)> {
        let mut identity = self.entries();
        identity.retain(|(key, _)| !["profiling", "log_id", "log_level"].contains(&key.as_str()));
        identity.push(("precision".to_owned(), format!("{:?}", self.computed_precision())));
        for provider in &self.providers {
            identity.push(("provider".to_owned(), provider.kind().name().to_owned()));
            identity.extend(provider.entries());
        }
        // An option that is 0 and one that was not given print alike.
        let compiled = self.hip().map(HipOptions::takes_compiled_results);
        identity.push(("compiled tuning".to_owned(), format!("{compiled:?}")));
        identity
    }

    /// Fixes a symbolic dimension of the model.
    pub(crate) fn set_dimension(&mut self, name: &str, size: usize) -> Result<()> {
        if name.is_empty() {
            fail!(InvalidArgument, "a symbolic dimension needs a name; none was given");
        }
        self.dimensions.insert(name.to_owned(), size);
        Ok(())
    }

    /// Adds operators that the caller defined.
    pub(crate) fn add_operators(&mut self, definitions: Vec<Arc<Definition>>) -> Result<()> {
        operators::add(&mut self.operators, definitions, "the options have")
    }

    /// Adds a provider by any of its names, less preferred than those before it. Options of the CPU
    /// provider: none.
    pub(crate) fn add_provider(&mut self, name: &str, mut options: BTreeMap<String, String>) -> Result<()> {
        let kind = ProviderKind::parse(name)?;
        if kind == ProviderKind::Cpu
            && let Some(key) = options.keys().next()
        {
            fail!(
                InvalidArgument,
                "provider \"{name}\": option \"{key}\" is not known; the CPU provider has no options"
            );
        }
        if self.providers.iter().any(|provider| provider.kind() == kind) {
            fail!(InvalidArgument, "provider \"{}\" was added before; each may be added once", kind.name());
        }
        if kind == ProviderKind::Hip {
            let compiled = compiled_names::take(&mut options)?;
            self.model_cache_dir = compiled.cache.or(self.model_cache_dir.take());
            self.model_cache_limit = compiled.limit.unwrap_or(self.model_cache_limit);
            self.compiled_model_path = compiled.file.or(self.compiled_model_path.take());
        }
        self.providers.push(match kind {
            ProviderKind::Cpu => ProviderOptions::Cpu,
            ProviderKind::Hip => ProviderOptions::Hip(HipOptions::parse(&options)?),
        });
        Ok(())
    }
}

const OPTIMIZATIONS: &[(&str, Optimization)] =
    &[("none", Optimization::None), ("basic", Optimization::Basic), ("all", Optimization::All)];

pub(super) fn choose<T: Copy>(value: &str, choices: &[(&str, T)]) -> Option<T> {
    choices.iter().find(|(name, _)| *name == value).map(|(_, v)| *v)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_entries_tell_can_be_set_again() {
        let mut options = SessionOptions::default();
        for (key, value) in
            [("load", "read"), ("dim.batch", "4"), ("intra_op_threads", "3"), ("optimization", "basic")]
        {
            options.set(key, value).unwrap();
        }
        let mut copy = SessionOptions::default();
        for (key, value) in options.entries() {
            copy.set(&key, &value).unwrap();
        }
        assert_eq!(copy.entries(), options.entries());
        assert_eq!(copy.entries().len(), KEYS.len() + 1);
    }

    #[test]
    fn wrong_options_say_what_is_allowed() {
        for (key, value, part) in [
            ("load", "mmap", "\"mmap\" is not allowed; allowed is map or read"),
            ("lod", "map", "\"lod\" is not known; known are compiled_model_path, external_data_folder"),
            ("dim.", "3", "needs a name"),
            ("dim.x", "-3", "allowed is a number from 0"),
            ("intra_op_threads", "5000", "up to 1024"),
            ("optimized_model_external_data_file", "a/b", "a file without a folder"),
            ("optimized_model_external_data_file", "..", "a file without a folder"),
        ] {
            let error = SessionOptions::default().set(key, value).unwrap_err();
            assert!(error.message.contains(part), "{error}");
        }
        assert!(ProviderKind::parse("CUDA").unwrap_err().message.contains("ROCMExecutionProvider"));
    }
}
