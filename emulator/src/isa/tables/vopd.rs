//! Halves of dual operations: VOPD. The first half has opcodes below 16.

use super::{__, Row, row};
use crate::isa::Generation::Gfx12;

#[rustfmt::skip]
pub(super) const VOPD: &[Row] = &[
    //   GFX9, GFX90A, GFX940, GFX10, GFX11, GFX12
    row("v_fmac_f32", [__, __, __, __, 0x00, 0x00], "b32 = f32 f32 d"),
    row("v_fmaak_f32", [__, __, __, __, 0x01, 0x01], "b32 = f32 f32 k32"),
    row("v_fmamk_f32", [__, __, __, __, 0x02, 0x02], "b32 = f32 k32 f32"),
    row("v_mul_f32", [__, __, __, __, 0x03, 0x03], "b32 = f32 f32"),
    row("v_add_f32", [__, __, __, __, 0x04, 0x04], "b32 = f32 f32"),
    row("v_sub_f32", [__, __, __, __, 0x05, 0x05], "b32 = f32 f32"),
    row("v_subrev_f32", [__, __, __, __, 0x06, 0x06], "b32 = f32 f32"),
    row("v_mul_dx9_zero_f32", [__, __, __, __, 0x07, 0x07], "b32 = f32 f32"),
    row("v_mov_b32", [__, __, __, __, 0x08, 0x08], "b32 = b32"),
    row("v_cndmask_b32", [__, __, __, __, 0x09, 0x09], "b32 = f32 f32 m"),
    row("v_max_f32", [__, __, __, __, 0x0a, 0x0a], "b32 = f32 f32").called("v_max_num_f32", Gfx12, Gfx12),
    row("v_min_f32", [__, __, __, __, 0x0b, 0x0b], "b32 = f32 f32").called("v_min_num_f32", Gfx12, Gfx12),
    row("v_dot2acc_f32_f16", [__, __, __, __, 0x0c, __], "b32 = v2f16 v2f16 d"),
    row("v_add_nc_u32", [__, __, __, __, 0x10, 0x10], "b32 = b32 b32"),
    row("v_lshlrev_b32", [__, __, __, __, 0x11, 0x11], "b32 = b32 b32"),
    row("v_and_b32", [__, __, __, __, 0x12, 0x12], "b32 = b32 b32"),
];
