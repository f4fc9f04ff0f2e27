//! Which algorithm a convolution gets.
//!
//! What depends on shapes is decided by the algorithm itself for each signature of shapes (its `State`); where it has no
//! way for one, it computes as im2col does.

use crate::kernel::{CpuKernel, Kernel, NodeContext};
use crate::ops::OpError;
use crate::tensor::bf16;

use super::{depthwise, direct, dot, im2col, lanes, pair, winograd};

/// Makes the kernel of a node, if the algorithm is one for it.
type Build = fn(&NodeContext<'_>) -> Result<Option<Box<dyn Kernel>>, OpError>;

/// The algorithms of Conv: the first that makes a kernel has the node. All but the last ask for a constant weight over
/// one or two axes; `direct` takes three, too.
const ALGORITHMS: &[Build] = &[
    // f32, 3 × 3, stride 1, one group, from 32 to 32 channels on: 4/9 or 1/4 of the multiplications. With fewer channels
    // the transforms take longer than what they save; a weight of more than 2¹⁸ kernels takes longer to read. Images of few
    // tiles have channels in the lanes of vectors (few_tiles.rs): on 7 × 7 with 64 channels 4.5 times as fast. With AVX-512
    // small images of few channels are not transformed at all (conv3x3.rs).
    winograd::build,
    // The same with small dilations: up to 1.35 times as fast as direct; see there for the channels.
    winograd::dilated::build,
    // f32 or bfloat16, one input channel for each output channel: bound by memory, a product has nothing to share.
    depthwise::build::<f32>,
    depthwise::build::<bf16>,
    // f32, from 16 to 16 channels on, with strides or dilations: the image is read where it lies, without gaps and without
    // what of the kernel lies in the padding. 1.0 to 4 times as fast as direct, see there for others.
    lanes::build,
    // f32: the image is read where it lies or copied with its padding, which spares the copy of its patches. Faster than im2col
    // with a packed weight on all layers of the models that were measured (docs/dependencies.md).
    direct::build,
    // bfloat16, 3 × 3, stride 1, one group, computed in f32 where that is faster than dot products.
    #[cfg(target_arch = "x86_64")]
    winograd::bf16::build,
    // bfloat16, on a processor with dot products of pairs: twice the multiplications of an instruction on f32.
    dot::build,
    // Any type, weight and number of axes.
    im2col::build,
];

/// Conv, and FusedConv of com.microsoft.
pub(crate) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    first(ALGORITHMS, node)
}

/// FusedConv of rukh, whose images are channel-blocked: dot products take them, and Winograd's algorithm in bfloat16.
pub(crate) fn build_channel_blocked(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let algorithms: &[Build] = &[
        #[cfg(target_arch = "x86_64")]
        winograd::bf16::build,
        dot::build,
    ];
    first(algorithms, node)
}

/// ConvPair.
pub(crate) fn build_pair(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    first(&[pair::build_f32, pair::build_bf16], node)
}

fn first(algorithms: &[Build], node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    for build in algorithms {
        if let Some(kernel) = build(node)? {
            return Ok(CpuKernel::Tensor(kernel));
        }
    }
    Err(node.no_kernel())
}
