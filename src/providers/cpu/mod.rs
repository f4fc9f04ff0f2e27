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
mod concat;
mod conv;
mod einsum;
mod gather;
mod generate;
mod ints;
mod item;
mod mapped;
mod matmul;
mod movement;
mod mover;
mod norm;
mod order;
mod pad;
mod pool;
mod qlinear;
mod quantize;
mod reduce;
mod reshape;
mod resize;
mod rnn;
mod scatter;
mod select;
mod sequence;
mod shape;
mod softmax;
mod strided;
mod topk;
mod unary;
mod unique;

#[cfg(test)]
mod testing;

pub(crate) use evaluate::{evaluate, fact_of, known_shape, run_kernel};
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
    concat::KERNELS,
    einsum::KERNELS,
    gather::KERNELS,
    generate::KERNELS,
    matmul::KERNELS,
    movement::KERNELS,
    norm::KERNELS,
    pad::KERNELS,
    pool::KERNELS,
    qlinear::KERNELS,
    quantize::KERNELS,
    reduce::KERNELS,
    resize::KERNELS,
    reshape::KERNELS,
    rnn::KERNELS,
    scatter::KERNELS,
    select::KERNELS,
    sequence::KERNELS,
    shape::KERNELS,
    softmax::KERNELS,
    topk::KERNELS,
    unary::KERNELS,
    unique::KERNELS,
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
