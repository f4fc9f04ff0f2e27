//! The arguments of `rukh report`.

use std::path::PathBuf;

use clap::Args;

/// Tell what a report about a defect needs: versions, GPU runtimes, devices, environment variables.
///
/// With --full it also runs the ONNX standard's cases and whole models on the GPU, compares what they give with what is
/// expected and with the CPU, times the models, and writes everything into one file to send in. Exit codes: 0 when all
/// is as expected; 1 when something is not; 2 when something could not be read.
#[derive(Args)]
#[command(after_help = "\
Examples:
  rukh report
  rukh report --full --models models
  rukh report --full --provider hip:device_id=1 --cases onnx-data --models models --output mi210.json")]
pub struct ReportArguments {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Run cases and models, too
    #[arg(long, conflicts_with = "json")]
    pub full: bool,
    /// Folder with cases of the ONNX standard, as scripts/onnx_cases.py writes them. Without it build/onnx-data, where
    /// that is there
    #[arg(long, value_name = "FOLDER", requires = "full")]
    pub cases: Option<PathBuf>,
    /// Folder with models: files NAME.onnx, or folders NAME with model.onnx and samples, as `make models` writes them.
    /// Without it build/models, where that is there
    #[arg(long, value_name = "FOLDER", requires = "full")]
    pub models: Option<PathBuf>,
    /// Provider to run on, with its options; the GPU where there is one
    #[arg(long, value_name = "NAME[:KEY=VALUE,…]", value_parser = super::parse_provider, requires = "full")]
    pub provider: Option<crate::api::Provider>,
    /// Time each model for at least this long
    #[arg(long, value_name = "S", default_value_t = 2.0, requires = "full")]
    pub seconds: f64,
    /// File that is written
    #[arg(long, value_name = "FILE", default_value = "rukh-report.json", requires = "full")]
    pub output: PathBuf,
}
