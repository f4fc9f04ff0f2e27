//! Which adapters a model runs with.

use std::path::PathBuf;

use clap::Args;

use crate::api::{Adapter, Options};

/// Adapters, such as LoRA's, in files that ONNX Runtime and Olive write (.onnx_adapter).
#[derive(Args)]
pub struct AdapterArguments {
    /// Runs take what they are not given from this adapter: inputs, and initializers that are inputs as well; given more than
    /// once, the last one counts where two have one tensor
    #[arg(long = "adapter", value_name = "FILE")]
    pub adapters: Vec<PathBuf>,
    /// The model is opened with this adapter's tensors in place of its initializers, for good: runs then cost what they cost
    /// without; may be given more than once
    #[arg(long = "fixed-adapter", value_name = "FILE")]
    pub fixed_adapters: Vec<PathBuf>,
}

/// The adapters of runs, and what is in them.
pub struct Adapters {
    pub opened: Vec<Adapter>,
    pub names: Vec<String>,
}

impl AdapterArguments {
    pub fn is_empty(&self) -> bool {
        self.adapters.is_empty() && self.fixed_adapters.is_empty()
    }

    /// Opens those of runs.
    pub fn open(&self) -> Result<Adapters, String> {
        let (mut opened, mut names) = (Vec::new(), Vec::new());
        for path in &self.adapters {
            let adapter = Adapter::open(path)?;
            names.extend(adapter.names()?);
            opened.push(adapter);
        }
        Ok(Adapters { opened, names })
    }

    /// Adds those that are fixed.
    pub fn add_to(&self, options: Options) -> Options {
        Options { adapters: self.fixed_adapters.clone(), ..options }
    }
}
