//! Values that are worth trying.

use crate::machine::execute::testing::random::Random;

use super::reference::Kind;

const SINGLES: &[f32] = &[
    0.0,
    1.0,
    0.5,
    2.0,
    1.5,
    2.5,
    65504.0,
    65520.0,
    2_147_483_648.0,
    4_294_967_296.0,
    f32::MAX,
    f32::MIN_POSITIVE,
    f32::from_bits(1),
    f32::from_bits(0x007f_ffff),
    f32::EPSILON,
    16_777_216.0,
    f32::INFINITY,
    f32::NAN,
];
const DOUBLES: &[f64] = &[
    0.0,
    1.0,
    0.5,
    2.5,
    2_147_483_647.5,
    4_294_967_295.5,
    f64::MAX,
    f64::MIN_POSITIVE,
    f64::from_bits(1),
    f64::EPSILON,
    4_503_599_627_370_497.0,
    f64::INFINITY,
    f64::NAN,
];
const HALVES: &[u16] =
    &[0, 1, 0x3ff, 0x400, 0x1000, 0x3800, 0x3c00, 0x3e00, 0x4000, 0x6400, 0x7bff, 0x7c00, 0x7e00];
const INTEGERS: &[u64] = &[
    0,
    1,
    2,
    15,
    16,
    31,
    32,
    33,
    63,
    64,
    127,
    128,
    255,
    0x7fff,
    0x8000,
    0xffff,
    0x7f_ffff,
    0x80_0000,
    0xff_ffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// The bits of a register, or of two, that hold an operand. There are no signalling NaNs.
pub fn value(random: &mut Random, kind: Kind) -> u64 {
    let sign = random.next() & 1;
    let special = random.once_in(3);
    match kind {
        Kind::B32 | Kind::B64 => {
            let bits = random.next();
            if special { random.pick(INTEGERS) } else { bits >> (random.below(4) * 8) }
        }
        Kind::F32 => {
            let near = (random.below(4096) as f32 - 2048.0) / 8.0;
            let any = quiet(random.next() as u32, 0x7f80_0000);
            let number = if special { random.pick(SINGLES).to_bits() } else { any };
            u64::from(if random.once_in(3) { near.to_bits() } else { number ^ (sign as u32) << 31 })
        }
        Kind::F64 => {
            let near = (random.below(1 << 20) as f64 - 524_288.0) / 8.0;
            let bits = random.next();
            let any = if f64::from_bits(bits).is_nan() { bits | 1 << 51 } else { bits };
            let number = if special { random.pick(DOUBLES).to_bits() } else { any };
            if random.once_in(3) { near.to_bits() } else { number ^ sign << 63 }
        }
        Kind::B16 | Kind::PackedB16 => {
            let half =
                |random: &mut Random| if special { random.pick(INTEGERS) } else { random.next() } & 0xffff;
            half(random) | half(random) << 16
        }
        Kind::F16 | Kind::PackedF16 => {
            let half = |random: &mut Random| {
                let sign = (random.next() as u16) << 15;
                let bits = if special { random.pick(HALVES) } else { random.next() as u16 } ^ sign;
                u64::from(if bits & 0x7fff > 0x7c00 { bits | 0x200 } else { bits })
            };
            half(random) | half(random) << 16
        }
    }
}

fn quiet(bits: u32, infinity: u32) -> u32 {
    if bits & 0x7fff_ffff > infinity { bits | 0x40_0000 } else { bits }
}
