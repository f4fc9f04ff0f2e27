//! How operators run on the CPU: one file a family, mirroring `ops`.
//!
//! A family's file has a table of [`Entry`]s: which operator, and a function that looks at the typed
//! operator and its inputs' types and makes a kernel, or says why it cannot.

mod accumulate;
mod along;
mod choose;
mod convert;
mod dropout;
mod dynamic_quantize;
mod evaluate;
mod fused;
mod gemm;
pub(crate) mod isa;
mod kernel;
mod lanes;
mod language;
mod layer_norm;
mod lookup;
mod loss;
mod map;
mod mersenne;
mod number;
mod parallel;
mod power;
mod scratch;
mod simd;
mod statistics;
mod variadic;
mod vector;
mod zip;

mod attention;
mod binary;
mod broadcast;
mod cast;
mod col2im;
mod concat;
mod conv;
mod crop;
mod detection;
mod einsum;
mod elementary;
mod fourier;
mod gather;
mod generate;
mod grid;
mod halves;
mod image_decoder;
mod image_scaler;
mod inverse;
mod item;
mod mapped;
mod matmul;
mod mixed_rms;
mod ml;
mod moe;
mod movement;
mod mover;
mod ngram;
mod norm;
mod norm_axes;
mod order;
mod pad;
mod pool;
mod qlinear;
mod quantised;
mod quantize;
mod random;
mod reduce;
mod reshape;
mod resize;
mod rnn;
mod sample;
mod scatter;
mod select;
mod sequence;
mod shape;
mod softmax;
mod strided;
mod text;
mod tokenizer;
mod topk;
mod training;
mod unary;
mod unique;
mod weight_only;
mod weights;
mod window;

#[cfg(test)]
mod testing;

pub(crate) use evaluate::{evaluate, fact_of, known_shape, run_kernel};
pub(crate) use kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared, ValueKernel};

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::{ints, resample};

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
    along::KERNELS,
    attention::KERNELS,
    binary::KERNELS,
    cast::KERNELS,
    col2im::KERNELS,
    conv::KERNELS,
    concat::KERNELS,
    crop::KERNELS,
    detection::KERNELS,
    fourier::KERNELS,
    einsum::KERNELS,
    gather::KERNELS,
    generate::KERNELS,
    inverse::KERNELS,
    language::KERNELS,
    layer_norm::KERNELS,
    grid::KERNELS,
    image_decoder::KERNELS,
    image_scaler::KERNELS,
    dropout::KERNELS,
    fused::KERNELS,
    lookup::KERNELS,
    loss::KERNELS,
    matmul::KERNELS,
    ml::FAMILIES[0],
    ml::FAMILIES[1],
    ml::FAMILIES[2],
    ml::FAMILIES[3],
    ml::FAMILIES[4],
    moe::KERNELS,
    movement::KERNELS,
    ngram::KERNELS,
    norm::KERNELS,
    pad::KERNELS,
    norm_axes::KERNELS,
    pool::KERNELS,
    qlinear::KERNELS,
    dynamic_quantize::KERNELS,
    quantize::KERNELS,
    random::KERNELS,
    reduce::KERNELS,
    resize::KERNELS,
    reshape::KERNELS,
    rnn::KERNELS,
    scatter::KERNELS,
    select::KERNELS,
    choose::KERNELS,
    sequence::KERNELS,
    shape::KERNELS,
    softmax::KERNELS,
    text::KERNELS,
    tokenizer::KERNELS,
    topk::KERNELS,
    training::KERNELS,
    unary::KERNELS,
    unique::KERNELS,
    variadic::KERNELS,
    weight_only::KERNELS,
    window::KERNELS,
];

/// Whether convolutions of this type take and give channel-blocked images, see `ops::channel_blocked`: where the processor has products of
/// dot groups.
pub(crate) fn blocks_channels(ty: ElementType) -> bool {
    match ty {
        ElementType::U8 | ElementType::I8 => <gemm::Int8x4 as gemm::DotGroup>::available(),
        ElementType::BF16 => <gemm::Bf16Pair as gemm::DotGroup>::available(),
        _ => false,
    }
}

/// Makes the kernel of a node. `OpError::Unsupported` says that the CPU provider lacks it.
pub(crate) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let entry =
        FAMILIES.iter().flat_map(|f| f.iter()).find(|e| e.name == node.name && e.domain == node.domain);
    match entry {
        Some(entry) => (entry.build)(node),
        None => Err(OpError::Unsupported(format!("the CPU provider has no kernel for {}", node.name))),
    }
}

/// Domain and name of each operator that has a kernel.
#[cfg(test)]
pub(super) fn operators() -> impl Iterator<Item = (&'static str, &'static str)> {
    FAMILIES.iter().flat_map(|family| family.iter()).map(|entry| (entry.domain, entry.name))
}
