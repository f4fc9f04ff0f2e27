//! What `rukh compile` takes.

use std::path::PathBuf;

use clap::Args;

use super::ModelArguments;

/// Compile a model to an artifact: a file that opens without optimising the model and without packing its weights.
///
/// An artifact is for the targets that it was compiled for, which need not be in this machine. Every command takes one in
/// the model's place.
#[derive(Args)]
#[command(after_help = "\
Examples:
  rukh compile model.onnx
  rukh compile model.onnx -o model.rukh --target mi300x,gfx1100,rdna4,h200,cpu
  rukh compile model.onnx --target all --weights external
  rukh compile model.onnx --target gfx1100 --tuning results.txt
  rukh compile model.onnx --target cpu --shape batch=1,sequence=128 --shape batch=8,sequence=128")]
pub struct CompileArguments {
    #[command(flatten)]
    pub model: ModelArguments,
    /// The file to make [default: the model's name, ending in .rukh]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What for: cpu, native (this machine's CPU and GPUs), all, or GPUs by machine code, family, chip or product, with
    /// commas between; `rukh targets` lists them
    #[arg(long = "target", value_name = "NAMES", default_value = "native")]
    pub targets: Vec<String>,
    /// Which weights to keep: used (what the programs read), all (so that any processor can pack them) or external (what
    /// the model's files have as well is read from there)
    #[arg(long, value_name = "WHICH", default_value = "used")]
    pub weights: String,
    /// Make a further program with these dimensions fixed
    #[arg(long = "shape", value_name = "NAME=SIZE,…")]
    pub shapes: Vec<String>,
    /// Keep these results of tuning in it, for a GPU among the targets: what rukh tune or the option tunable_op_file of a
    /// session wrote. Sessions on that GPU use them
    #[arg(long = "tuning", value_name = "FILE")]
    pub tuning: Vec<PathBuf>,
}
