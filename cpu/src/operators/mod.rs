//! The families of operators that the CPU runs: one file each, with the name that the family has in `ops`.
//!
//! A family's file has a table of [`Entry`]s: which operator, and a function that looks at the typed
//! operator and its inputs' types and makes a kernel, or says why it cannot.

pub(super) mod along;
mod arg_extreme;
pub(super) mod attention;
pub(super) mod binary;
pub(super) mod cast;
pub(super) mod choose;
pub(super) mod col2im;
pub(super) mod concat;
pub(super) mod crop;
pub(super) mod custom;
pub(super) mod detection;
pub(super) mod dropout;
pub(super) mod einsum;
pub(super) mod fourier;
pub(super) mod fused;
mod gated;
pub(super) mod gather;
pub(super) mod generate;
pub(super) mod grid;
pub(super) mod image_decoder;
pub(super) mod image_scaler;
pub(super) mod inverse;
pub(super) mod language;
pub(super) mod layer_norm;
pub(super) mod lookup;
pub(super) mod loss;
pub(super) mod matmul;
pub(super) mod ml;
pub(super) mod moe;
pub(super) mod movement;
pub(super) mod ngram;
pub(super) mod norm;
pub(super) mod norm_axes;
pub(super) mod optional;
pub(super) mod pad;
pub(super) mod pool;
pub(super) mod quantize;
pub(super) mod random;
pub(super) mod reduce;
pub(super) mod reshape;
pub(super) mod resize;
pub(super) mod rnn;
pub(super) mod roi;
pub(super) mod scatter;
pub(super) mod select;
pub(super) mod sequence;
pub(super) mod shape;
pub(super) mod signal;
pub(super) mod slice;
pub(super) mod softmax;
pub(super) mod text;
pub(super) mod tokenizer;
pub(super) mod topk;
pub(super) mod training;
pub(super) mod unary;
pub(super) mod unique;
pub(super) mod unpool;
pub(super) mod variadic;
pub(super) mod weight_only;

use super::kernel::Entry;

/// The tables of all families but convolutions and quantized products, which are rooms of their own.
pub(super) const FAMILIES: &[&[Entry]] = &[
    along::KERNELS,
    arg_extreme::KERNELS,
    attention::KERNELS,
    binary::KERNELS,
    cast::KERNELS,
    choose::KERNELS,
    col2im::KERNELS,
    concat::KERNELS,
    crop::KERNELS,
    detection::KERNELS,
    dropout::KERNELS,
    einsum::KERNELS,
    fourier::KERNELS,
    fused::KERNELS,
    gated::KERNELS,
    gather::KERNELS,
    generate::KERNELS,
    grid::KERNELS,
    image_decoder::KERNELS,
    image_scaler::KERNELS,
    inverse::KERNELS,
    language::KERNELS,
    layer_norm::KERNELS,
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
    norm_axes::KERNELS,
    optional::KERNELS,
    pad::KERNELS,
    pool::KERNELS,
    quantize::KERNELS,
    random::KERNELS,
    reduce::KERNELS,
    reshape::KERNELS,
    resize::KERNELS,
    rnn::KERNELS,
    roi::KERNELS,
    scatter::KERNELS,
    select::KERNELS,
    sequence::KERNELS,
    shape::KERNELS,
    signal::KERNELS,
    slice::KERNELS,
    softmax::KERNELS,
    text::KERNELS,
    tokenizer::KERNELS,
    topk::KERNELS,
    training::KERNELS,
    unary::KERNELS,
    unique::KERNELS,
    unpool::KERNELS,
    variadic::KERNELS,
    weight_only::KERNELS,
];
