//! What `rukh tune` takes.

use std::path::PathBuf;

use clap::Args;

use super::parse_provider;
use crate::api::Provider;

/// Measure which kernels are fastest for problems that another machine recorded.
///
/// Sessions record problems that have no result with the hip provider's options tunable_op_enable=1 and
/// tunable_op_record_file=FILE. The models are not needed to tune them.
#[derive(Args)]
#[command(after_help = "\
Examples:
  rukh bench model.onnx --provider hip:tunable_op_enable=1,tunable_op_record_file=shapes.txt
  rukh tune shapes.txt --output results.txt
  rukh bench model.onnx --provider hip:tunable_op_enable=1,tunable_op_file=results.txt")]
pub struct TuneArguments {
    /// The recorded problems
    #[arg(value_name = "SHAPES")]
    pub shapes: PathBuf,
    /// The file of results: those in it are kept and not measured again
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
    /// Provider with its options, such as hip:device_id=1
    #[arg(long, value_name = "NAME[:KEY=VALUE,…]", value_parser = parse_provider)]
    pub provider: Option<Provider>,
    /// Measure each candidate for so long; without it a few runs
    #[arg(long, value_name = "N")]
    pub milliseconds: Option<u32>,
    /// Show what was measured
    #[arg(long, short)]
    pub verbose: bool,
}
