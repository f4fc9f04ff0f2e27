//! Names for the host's instructions and predicates that many rows use: words of 32 bits in all lanes.

use iced_x86::Code;

pub const MOVE: Code = Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512;
pub const MOVE_UNALIGNED: Code = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
/// The first source where the mask is 0, else the second.
pub const BLEND: Code = Code::EVEX_Vpblendmd_zmm_k1z_zmm_zmmm512b32;

pub const AND: Code = Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32;
/// The first source is inverted.
pub const AND_NOT: Code = Code::EVEX_Vpandnd_zmm_k1z_zmm_zmmm512b32;
pub const OR: Code = Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32;
pub const XOR: Code = Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32;

pub const ADD: Code = Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32;
pub const SUB: Code = Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32;

/// A shift by a number for each lane, and by one that is known. By 32 bits or more gives 0, or the sign.
#[derive(Clone, Copy)]
pub struct Shift {
    pub by_lane: Code,
    pub by_constant: Code,
}

pub const LEFT: Shift = Shift {
    by_lane: Code::EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32,
    by_constant: Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8,
};
pub const RIGHT: Shift = Shift {
    by_lane: Code::EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32,
    by_constant: Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8,
};
pub const SIGNED_RIGHT: Shift = Shift {
    by_lane: Code::EVEX_Vpsravd_zmm_k1z_zmm_zmmm512b32,
    by_constant: Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8,
};

pub const COMPARE_SIGNED: Code = Code::EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8;
pub const COMPARE_UNSIGNED: Code = Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8;
pub const COMPARE_FLOATS: Code = Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae;

/// Predicates of comparisons of integers.
pub mod integer {
    pub const EQUAL: u32 = 0;
    pub const LESS: u32 = 1;
    pub const NOT_EQUAL: u32 = 4;
    pub const GREATER: u32 = 6;
}

/// Predicates of comparisons of floats; what is no number only fulfils those that say so.
pub mod float {
    pub const EQUAL: u32 = 0x00;
    pub const UNORDERED: u32 = 0x03;
    pub const ORDERED: u32 = 0x07;
    pub const LESS: u32 = 0x11;
    pub const GREATER_OR_EQUAL: u32 = 0x1d;
    pub const GREATER: u32 = 0x1e;
}
