//! Convolution by the processor's dot products of four bytes or of two bfloat16 numbers.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
mod bf16;
mod block;
mod channel_blocked;
mod epilogue;
mod image;
mod interleave;
mod layout;
mod pack;
mod panels;
mod plan;

pub(crate) use bf16::Bf16Conv;
pub(crate) use channel_blocked::ChannelBlocked;
pub(crate) use epilogue::{DotStore, Place, Requantized, Summed, WholeSums};
pub(crate) use image::{Image, Pixels, dot_plan_needed};
pub(crate) use layout::{ImageLayout, Images};
pub(crate) use panels::DotPanels;
pub(crate) use plan::DotPlan;
