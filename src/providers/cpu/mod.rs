//! How operators run on the CPU: one file a family, mirroring `ops`.
//!
//! A family's file has a table of [`Entry`]s: which operator, and a function that looks at the typed
//! operator and its inputs' types and makes a kernel, or says why it cannot.

mod evaluate;
mod gemm;
mod kernel;
mod number;
mod parallel;
mod scratch;

mod attention;
mod binary;
mod cast;
mod conv;
mod gather;
mod generate;
mod matmul;
mod movement;
mod norm;
mod pool;
mod quantize;
mod reduce;
mod resize;
mod rnn;
mod sequence;
mod shape;
mod softmax;
mod unary;

#[cfg(test)]
mod testing;

pub(crate) use evaluate::{evaluate, fact_of, known_shape};
pub(crate) use kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared, ValueKernel};

use crate::ops::OpError;

/// One operator that the CPU provider runs.
pub(crate) struct Entry {
    domain: &'static str,
    name: &'static str,
    build: fn(&NodeContext<'_>) -> Result<CpuKernel, OpError>,
}

impl Entry {
    const fn new(name: &'static str, build: fn(&NodeContext<'_>) -> Result<CpuKernel, OpError>) -> Self {
        Entry { domain: "", name, build }
    }

    const fn domain(mut self, domain: &'static str) -> Self {
        self.domain = domain;
        self
    }
}

const FAMILIES: &[&[Entry]] = &[
    attention::KERNELS,
    binary::KERNELS,
    cast::KERNELS,
    conv::KERNELS,
    gather::KERNELS,
    generate::KERNELS,
    matmul::KERNELS,
    movement::KERNELS,
    norm::KERNELS,
    pool::KERNELS,
    quantize::KERNELS,
    reduce::KERNELS,
    resize::KERNELS,
    rnn::KERNELS,
    sequence::KERNELS,
    shape::KERNELS,
    softmax::KERNELS,
    unary::KERNELS,
];

/// Makes the kernel of a node. `OpError::Unsupported` says that the CPU provider lacks it.
pub(crate) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let entry =
        FAMILIES.iter().flat_map(|f| f.iter()).find(|e| e.name == node.name && e.domain == node.domain);
    match entry {
        Some(entry) => (entry.build)(node),
        None => Err(OpError::Unsupported(format!("the CPU provider has no kernel for {}", node.name))),
    }
}
