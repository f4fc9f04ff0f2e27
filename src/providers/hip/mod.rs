//! How operators run on a GPU: picks kernels, computes launches.
//!
//! A family's file has a table of [`Entry`]s, as in the CPU provider. A kernel here is a planner: for given
//! shapes it appends launches of machine code, with parameters complete but for addresses, which each
//! run fills in. Nothing is decided while a model runs.
//!
//! The parameters of each kernel are a structure of their own, laid out as the one of its source in `kernels/`: lists of
//! numbers look alike there and mean different things, so that they are not shared.

mod attention;
mod buffer;
mod code;
mod context;
mod conv;
mod copy;
mod custom;
mod dropout;
mod elements;
mod fill;
mod fourier;
mod gather;
mod gemm;
mod graphs;
mod kernel;
mod launch;
mod loss;
mod map;
mod modules;
mod norm;
mod options;
mod order;
mod params;
mod pool;
mod provider;
mod qlinear;
mod quantize;
mod reduce;
mod rnn;
mod roi;
mod sample;
mod scan;
mod scatter;
mod softmax;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod transfer;
mod tuning;
mod unit;
mod unpool;
mod variables;
mod weight_only;

pub(crate) use buffer::DeviceBuffer;
pub(crate) use code::{kernel_targets, target_for};
pub(crate) use context::DeviceContext;
pub(crate) use copy::upload_transposed;
pub(crate) use fourier::plans::FourierPlans;
pub(crate) use graphs::{MovingStep, Recorded, RecordedRun};
pub(crate) use kernel::HipKernel;
pub(crate) use launch::{Addresses, ChainLink, Given, LaunchPlan, PlanBuilder};
pub(crate) use options::HipOptions;
pub(crate) use provider::{
    MemorySource, Provider, check_device, memory_info, missing, platform_of, shared_arena,
};
pub(crate) use transfer::{allocate_on, allocate_pinned_on, copy_bytes, import_on, queue_copy, stream_on};
pub(crate) use tuning::{TargetResults, Tuned, Tuner, count as count_results, read_results};
pub(crate) use unit::has_matrix_cores;
pub(crate) use variables::wants_fp16;
#[cfg(test)]
pub(crate) use weight_only::PATIENCE_OF_TESTS;
pub(crate) use weight_only::{Linked, MOST_LINKS, ROWS_ADDED, plan_chain};

use crate::ops::OpError;
use crate::ops::custom::Custom;

use super::NodeContext;

/// One operator that the HIP provider runs.
pub(crate) struct Entry {
    domain: &'static str,
    name: &'static str,
    build: fn(&NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError>,
}

impl Entry {
    const fn new(
        name: &'static str,
        build: fn(&NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError>,
    ) -> Self {
        Entry { domain: "", name, build }
    }

    const fn domain(mut self, domain: &'static str) -> Self {
        self.domain = domain;
        self
    }
}

const FAMILIES: &[&[Entry]] = &[
    attention::KERNELS,
    conv::KERNELS,
    copy::KERNELS,
    dropout::KERNELS,
    fill::KERNELS,
    fourier::KERNELS,
    gather::KERNELS,
    gemm::KERNELS,
    loss::KERNELS,
    map::GATED_KERNELS,
    map::KERNELS,
    norm::BATCH_KERNELS,
    norm::KERNELS,
    order::KERNELS,
    pool::KERNELS,
    qlinear::KERNELS,
    quantize::CAST_KERNELS,
    quantize::KERNELS,
    reduce::KERNELS,
    rnn::KERNELS,
    roi::KERNELS,
    sample::KERNELS,
    scan::KERNELS,
    scatter::KERNELS,
    softmax::KERNELS,
    unpool::KERNELS,
    weight_only::KERNELS,
];

/// Makes the kernel of a node. `OpError::Unsupported` says that the HIP provider lacks it.
pub(crate) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    if let Some(op) = node.op.downcast::<Custom>() {
        return custom::build(node, op);
    }
    let entry =
        FAMILIES.iter().flat_map(|f| f.iter()).find(|e| e.name == node.name && e.domain == node.domain);
    match entry {
        Some(entry) => (entry.build)(node),
        None => Err(OpError::Unsupported(format!("the HIP provider has no kernel for {}", node.name))),
    }
}

/// Domain and name of each operator that has a kernel.
#[cfg(test)]
pub(super) fn operators() -> impl Iterator<Item = (&'static str, &'static str)> {
    FAMILIES.iter().flat_map(|family| family.iter()).map(|entry| (entry.domain, entry.name))
}
