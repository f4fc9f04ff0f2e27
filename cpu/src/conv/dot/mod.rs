//! Convolution by the processor's dot products of four bytes or of two bfloat16 numbers.

mod bf16;
mod block;
#[cfg(target_arch = "x86_64")]
mod channel_blocked;
mod epilogue;
mod image;
mod interleave;
mod layout;
#[cfg(target_arch = "x86_64")]
mod nchw;
mod pack;
mod panels;
mod plan;
#[cfg(target_arch = "x86_64")]
mod requantize;
mod strip;
mod tiles;

#[cfg(target_arch = "x86_64")]
pub(crate) use bf16::Bf16Conv;
pub(crate) use bf16::build;
#[cfg(target_arch = "x86_64")]
pub(crate) use epilogue::{ALL, FIRST, Positions, RoundedToBf16, TileEpilogue};
pub(crate) use epilogue::{ChannelBlocked, Place, RawSums, Requantized, Residual};
pub(crate) use image::{Image, Pixels, channel_blocked, dot_plan_needed};
pub(crate) use layout::{ImageLayout, Images};
pub(crate) use panels::DotPanels;
pub(crate) use plan::DotPlan;
