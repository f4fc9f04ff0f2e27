//! What the command line may say.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::api::{Options, Provider};

mod adapters;
mod compile;
mod report;
mod tune;

pub use adapters::AdapterArguments;
pub use compile::CompileArguments;
pub use report::ReportArguments;
pub use tune::TuneArguments;

/// Run, inspect and time ONNX models.
///
/// Start with `rukh info MODEL` to see what a model takes and gives, and `rukh run MODEL --generate`
/// to see it run on made-up inputs.
#[derive(Parser)]
#[command(name = "rukh", version)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    Run(RunArguments),
    Info(InfoArguments),
    Compile(CompileArguments),
    Devices(DevicesArguments),
    Targets(TargetsArguments),
    Bench(BenchArguments),
    Generate(GenerateArguments),
    Report(ReportArguments),
    Tune(TuneArguments),
}

/// Run a model once: show its outputs, save them, or compare them with expected ones.
///
/// Exit codes: 0 when the model ran and its outputs are as expected; 1 when they differ from
/// --expect; 2 when something could not be read or run.
#[derive(Args)]
#[command(after_help = "\
Examples:
  rukh run model.onnx --generate
  rukh run model.onnx --input image=photo.npy --output results
  rukh run model.onnx --input 1x3x224x224xf32=0
  rukh run model.onnx --input @ids.npy --input \"mask=1x4xi64=1 1 1 0\"
  rukh run model.onnx --input sample.npz --expect sample.npz
  rukh run model.onnx --input test_data_set_0 --expect test_data_set_0
  rukh run model.onnx --generate --dim batch=8 --provider cpu --threads 4
  rukh run model.onnx --generate --adapter style.onnx_adapter --adapter topic.onnx_adapter")]
pub struct RunArguments {
    #[command(flatten)]
    pub model: ModelArguments,
    #[command(flatten)]
    pub inputs: InputArguments,
    #[command(flatten)]
    pub adapters: AdapterArguments,
    /// Save the outputs: into one NumPy archive when PATH ends in .npz, else each as a .npy file into
    /// the folder PATH
    #[arg(long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Compare the outputs with those in PATH: an .npz (arrays NAME or out:NAME), a folder with
    /// output_0.pb, output_1.pb, …, or one .npy or .pb for a model with one output
    #[arg(long, value_name = "PATH")]
    pub expect: Option<PathBuf>,
    /// Allowed difference relative to the largest magnitude in the expected output
    #[arg(long, value_name = "X", default_value_t = 1e-3)]
    pub rtol: f64,
    /// Allowed difference on top of that
    #[arg(long, value_name = "X", default_value_t = 1e-7)]
    pub atol: f64,
}

/// Show what a model takes, gives and consists of, and where each node would run.
#[derive(Args)]
pub struct InfoArguments {
    #[command(flatten)]
    pub model: ModelArguments,
    /// List every node with the provider that runs it and why
    #[arg(long)]
    pub nodes: bool,
    /// Run the model once on made-up inputs, to show how much memory that takes. With a GPU it is run in any
    /// case, to count the launches
    #[arg(long)]
    pub run: bool,
    /// Draw the graph after optimisation as an SVG picture: operators, shapes, providers, and fused nodes. Shapes are
    /// those of a run on made-up inputs
    #[arg(long = "graph", value_name = "FILE.svg")]
    pub graph_picture: Option<PathBuf>,
    /// Show in that picture how long each node takes, as a profile tells that rukh bench --trace FILE made
    #[arg(long, value_name = "FILE", requires = "graph_picture")]
    pub profile: Option<PathBuf>,
    /// Draw the memory that values of such a run share as an SVG picture: blocks over steps, with the peak
    #[arg(long = "memory", value_name = "FILE.svg")]
    pub memory_picture: Option<PathBuf>,
    /// Print everything as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// List the devices that can run models, and why other providers have none.
#[derive(Args)]
pub struct DevicesArguments {
    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
}

/// List the GPUs that rukh knows by name: machine codes, families, code names and products, and which kernels this build
/// has for them.
#[derive(Args)]
#[command(after_help = "\
Examples:
  rukh targets
  rukh targets mi300x rdna4")]
pub struct TargetsArguments {
    /// Only those that these names stand for: a machine code, a family, a code name or a product
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
}

/// Time a model: latency, throughput, and which operators take the time.
///
/// Inputs are made up unless --input gives them. Times are of the whole call, from inputs in host
/// memory to outputs in host memory.
///
/// Where MODEL is a language model's folder (see `rukh generate`), what is timed is generating: prompts of several
/// lengths, and the tokens after them. Then the options about inputs, runs and operators do not count.
#[derive(Args)]
#[command(after_help = "\
Examples:
  rukh bench model.onnx
  rukh bench model.onnx --dim batch=8 --threads 2 --seconds 10
  rukh bench model.onnx --first
  rukh bench model.onnx --adapter style.onnx_adapter
  rukh bench model.onnx --json > result.json
  rukh bench --generate FOLDER --lengths 128,2048 --batches 1,8")]
pub struct BenchArguments {
    #[command(flatten)]
    pub model: ModelArguments,
    #[command(flatten)]
    pub inputs: InputArguments,
    #[command(flatten)]
    pub adapters: AdapterArguments,
    /// Time for at least this long
    #[arg(long, value_name = "S", default_value_t = 5.0)]
    pub seconds: f64,
    /// Time this many runs, however long they take
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    pub runs: Option<usize>,
    /// Runs before the timing begins
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub warmup: usize,
    /// Only time opening the model and its first run
    #[arg(long)]
    pub first: bool,
    /// Leave out the table of operators, which takes a second, recorded session
    #[arg(long)]
    pub no_operators: bool,
    /// Save the recorded runs as a Chrome trace (for ui.perfetto.dev or chrome://tracing)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["no_operators", "first"])]
    pub trace: Option<PathBuf>,
    /// Of a language model: lengths of prompts, in tokens
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "128,512")]
    pub lengths: Vec<usize>,
    /// Of a language model: sequences at once
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1")]
    pub batches: Vec<usize>,
    /// Of a language model: tokens to generate after each prompt
    #[arg(long, value_name = "N", default_value = "32")]
    pub tokens: std::num::NonZeroUsize,
    /// Print everything as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Generate text with a language model.
///
/// FOLDER is as onnxruntime-genai's model builder writes it: genai_config.json, the model, tokenizer.json and a chat
/// template. The text comes on standard output as it is made, and how fast it came on standard error.
#[derive(Args)]
#[command(after_help = "\
Examples:
  rukh generate FOLDER --prompt \"What is 27 plus 58?\"
  rukh generate FOLDER --prompt \"Once upon a time\" --raw --max-tokens 100
  rukh generate FOLDER --temperature 0.8 --top-p 0.95 --seed 7 < question.txt
  rukh generate FOLDER --provider hip --prompt Hello")]
pub struct GenerateArguments {
    /// The model's folder
    pub folder: PathBuf,
    /// The question, or the text to continue; without it and --file, standard input is read
    #[arg(long, short, value_name = "TEXT", conflicts_with = "file")]
    pub prompt: Option<String>,
    /// Read the prompt from a file
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// What the model is told before the question, where its chat template knows of that
    #[arg(long, value_name = "TEXT", conflicts_with = "raw")]
    pub system: Option<String>,
    /// Continue the prompt as a text, without the chat template
    #[arg(long)]
    pub raw: bool,
    /// Generate at most so many tokens
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<usize>,
    /// Room for so many tokens, those of the prompt included; by default as genai_config.json says
    #[arg(long, value_name = "N")]
    pub max_length: Option<usize>,
    /// Always take the most probable token
    #[arg(long, conflicts_with_all = ["temperature", "top_k", "top_p", "min_p", "seed"])]
    pub greedy: bool,
    /// Divide scores by X before tokens are drawn: below 1 the probable ones come more often
    #[arg(long, value_name = "X")]
    pub temperature: Option<f64>,
    /// Draw among the N most probable tokens, 0 for all
    #[arg(long, value_name = "N")]
    pub top_k: Option<usize>,
    /// Draw among the most probable tokens that together have probability X
    #[arg(long, value_name = "X")]
    pub top_p: Option<f64>,
    /// Draw among tokens that are at least X times as probable as the most probable one
    #[arg(long, value_name = "X")]
    pub min_p: Option<f64>,
    /// Make tokens that are there already less probable, above 1
    #[arg(long, value_name = "X")]
    pub repetition_penalty: Option<f64>,
    /// Another seed draws other tokens
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Provider to run on, with its options
    #[arg(long = "provider", value_name = "NAME[:KEY=VALUE,…]", value_parser = parse_provider)]
    pub providers: Vec<Provider>,
    /// Option of the session, such as load=read
    #[arg(long = "option", value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub options: Vec<(String, String)>,
    /// Option of the generator, such as chunk=256
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub sets: Vec<(String, String)>,
    /// Threads that compute, 0 for all
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
    /// Say nothing of how fast it was
    #[arg(long, short)]
    pub quiet: bool,
    /// Show what the library logs
    #[arg(long, short)]
    pub verbose: bool,
}

/// How a generator opens its session.
pub fn generator_settings(
    providers: &[Provider],
    options: &[(String, String)],
) -> Result<Vec<(String, String)>, String> {
    let mut settings = Vec::new();
    match providers {
        [] => {}
        [provider] => {
            settings.push(("provider".to_owned(), provider.name.clone()));
            let each = provider.options.iter();
            settings.extend(each.map(|(key, value)| (format!("provider.{key}"), value.clone())));
        }
        _ => return Err("--provider: one is allowed when text is generated".to_owned()),
    }
    settings.extend(options.iter().map(|(key, value)| (format!("session.{key}"), value.clone())));
    Ok(settings)
}

/// The model and how it is opened.
#[derive(Args)]
pub struct ModelArguments {
    /// The model, an .onnx file
    #[arg(value_name = "MODEL")]
    pub path: PathBuf,
    /// Provider to run on, with its options; given more than once, in order of preference
    #[arg(long = "provider", value_name = "NAME[:KEY=VALUE,…]", value_parser = parse_provider)]
    pub providers: Vec<Provider>,
    /// Option of the session, such as load=read, optimization=none or fallback=error
    #[arg(long = "option", value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub options: Vec<(String, String)>,
    /// Choose the size of an open dimension; others become 1 in made-up inputs
    #[arg(long = "dim", value_name = "NAME=N", value_parser = parse_dim)]
    pub dims: Vec<(String, usize)>,
    /// Threads that compute, 0 for all
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
    /// Show what the library logs
    #[arg(long, short)]
    pub verbose: bool,
}

/// Where inputs come from.
#[derive(Args)]
pub struct InputArguments {
    /// Input from a file or a value. From a file: NAME=FILE, or FILE alone for an .npz (arrays NAME or in:NAME), a folder with
    /// input_0.pb, input_1.pb, …, or the only input. FILE is .npy, .pb, or raw little-endian elements. A value is
    /// a shape, a type, and one number for all elements, a list, or "range": 1x3x224x224xf32=0, 4xf32=1 2 3 4,
    /// 8xi64=range, f32=3. Values and @FILE may go without NAME=, then in the order of the model's inputs
    #[arg(long = "input", value_name = "[NAME=]FILE|VALUE")]
    pub files: Vec<String>,
    /// Make up the inputs that no --input gives: normally distributed numbers; integers and booleans
    /// are 0 or 1
    #[arg(long)]
    pub generate: bool,
    /// Another seed makes up other inputs
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

impl ModelArguments {
    /// How to open the session.
    pub fn session_options(&self) -> Options {
        let dims = self.dims.iter().map(|(name, size)| (format!("dim.{name}"), size.to_string()));
        Options {
            providers: self.providers.clone(),
            settings: self.options.iter().cloned().chain(dims).collect(),
            adapters: Vec::new(),
        }
    }

    pub fn dims(&self) -> BTreeMap<String, usize> {
        self.dims.iter().cloned().collect()
    }
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("it should be KEY=VALUE".to_owned()),
    }
}

fn parse_dim(text: &str) -> Result<(String, usize), String> {
    let (name, size) = text.rsplit_once('=').ok_or("it should be NAME=N")?;
    let size = size.parse().map_err(|_| format!("\"{size}\" is not a number from 0"))?;
    Ok((name.to_owned(), size))
}

fn parse_provider(text: &str) -> Result<Provider, String> {
    let (name, options) = text.split_once(':').unwrap_or((text, ""));
    let options = options.split(',').filter(|option| !option.is_empty()).map(parse_pair);
    Ok(Provider { name: name.to_owned(), options: options.collect::<Result<_, _>>()? })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_holds() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn providers_and_dims_parse() {
        let provider = parse_provider("hip:device_id=1,gpu_mem_limit=5").unwrap();
        assert_eq!(provider.name, "hip");
        assert_eq!(
            provider.options,
            [("device_id".into(), "1".into()), ("gpu_mem_limit".into(), "5".into())]
        );
        assert!(parse_provider("hip:device_id").is_err());
        assert_eq!(parse_dim("a=b=3"), Ok(("a=b".to_owned(), 3)));
        assert!(parse_dim("batch=-1").unwrap_err().contains("\"-1\""));
    }
}
