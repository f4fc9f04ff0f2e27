//! Convolution, with bias, residual and activation fused. `choose` tells who takes which; `common` is what they share.

mod choose;
mod common;
mod deform;
mod depthwise;
mod direct;
mod dot;
mod im2col;
mod lanes;
mod pair;
mod transpose;
mod winograd;

use super::kernel::Entry;

pub(crate) use depthwise::{Channels, DepthwisePlane};
pub(crate) use dot::{
    ChannelBlocked, DotPanels, DotPlan, Image, ImageLayout, Images, Pixels, Place, RawSums, Requantized,
    Residual, dot_plan_needed,
};
pub(crate) use im2col::{PatchTable, Patches};
pub(crate) use pair::pairs_bf16;

pub(crate) const KERNELS: &[Entry] = &[
    Entry::new("Conv", choose::build),
    Entry::new("FusedConv", choose::build).domain("com.microsoft"),
    Entry::new("FusedConv", choose::build_channel_blocked).domain("rukh"),
    Entry::new("ConvPair", choose::build_pair).domain("rukh"),
    Entry::new("ConvTranspose", transpose::build),
    Entry::new("DeformConv", deform::build),
];

#[cfg(test)]
mod tests;
