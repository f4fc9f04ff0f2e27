//! Which family runs an operator.

use crate::ops::OpError;
use crate::ops::custom::Custom;
use crate::tensor::ElementType;

use super::kernel::{CpuKernel, Entry, NodeContext};
use super::{conv, gemm, operators, qlinear};

/// Makes the kernel of a node. `OpError::Unsupported` says that the CPU provider lacks it.
pub fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    if let Some(op) = node.op.downcast::<Custom>() {
        return operators::custom::build(node, op);
    }
    match entries().find(|e| e.name == node.name && e.domain == node.domain) {
        Some(entry) => (entry.build)(node),
        None => Err(OpError::Unsupported(format!("the CPU provider has no kernel for {}", node.name))),
    }
}

/// Whether convolutions of this type take and give channel-blocked images, see `ops::channel_blocked`: where the
/// processor has dot products of groups of elements.
pub fn blocks_channels(ty: ElementType) -> bool {
    match ty {
        ElementType::U8 | ElementType::I8 => <gemm::Int8x4 as gemm::DotGroup>::available(),
        ElementType::BF16 => <gemm::Bf16Pair as gemm::DotGroup>::available(),
        _ => false,
    }
}

/// Whether a pointwise and a depthwise convolution of this type are faster as one.
pub fn pairs_convolutions(ty: ElementType) -> bool {
    match ty {
        ElementType::F32 => true,
        ElementType::BF16 => conv::pairs_bf16(),
        _ => false,
    }
}

/// Domain and name of each operator that has a kernel.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    entries().map(|entry| (entry.domain, entry.name))
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    let rooms = [conv::KERNELS, qlinear::KERNELS];
    operators::FAMILIES.iter().copied().chain(rooms).flatten()
}
