use crate::isa::{Encoding, Operand};
use crate::machine::execute::testing::*;

use super::{MIDDLE, WAYS, prepare, words};

/// Name, memory before, data (the second operand behind it), memory after; 32 bits.
const ATOMICS_32: &[(&str, u32, [u32; 2], u32)] = &[
    ("swap_b32", 5, [7, 0], 7),
    ("cmpswap_b32", 5, [7, 5], 7),
    ("cmpswap_b32", 5, [7, 6], 5),
    ("add_u32", u32::MAX, [2, 0], 1),
    ("sub_u32", 1, [2, 0], u32::MAX),
    ("csub_u32", 1, [2, 0], 0),
    ("sub_clamp_u32", 5, [2, 0], 3),
    ("cond_sub_u32", 1, [2, 0], 1),
    ("cond_sub_u32", 2, [2, 0], 0),
    ("min_i32", u32::MAX, [2, 0], u32::MAX),
    ("min_u32", u32::MAX, [2, 0], 2),
    ("max_i32", u32::MAX, [2, 0], 2),
    ("max_u32", u32::MAX, [2, 0], u32::MAX),
    ("and_b32", 6, [3, 0], 2),
    ("or_b32", 6, [3, 0], 7),
    ("xor_b32", 6, [3, 0], 5),
    ("inc_u32", 3, [3, 0], 0),
    ("inc_u32", 2, [3, 0], 3),
    ("dec_u32", 0, [3, 0], 3),
    ("dec_u32", 4, [3, 0], 3),
    ("dec_u32", 2, [3, 0], 1),
    ("add_f32", 0x3f80_0000, [0x4000_0000, 0], 0x4040_0000),
    ("min_f32", 0x8000_0000, [0, 0], 0x8000_0000),
    ("min_f32", 0x7fc0_0000, [0x4000_0000, 0], 0x4000_0000),
    ("max_f32", 0x3f80_0000, [0x7fc0_0000, 0], 0x3f80_0000),
    ("max_num_f32", 0x8000_0000, [0, 0], 0),
    ("pk_add_f16", 0x3c00_4000, [0x3c00_3c00, 0], 0x4000_4200),
    ("pk_add_bf16", 0x3f80_4000, [0x3f80_3f80, 0], 0x4000_4040),
];

const ATOMICS_64: &[(&str, u64, [u64; 2], u64)] = &[
    ("swap_b64", 5, [7, 0], 7),
    ("cmpswap_b64", 5 << 32, [7, 5 << 32], 7),
    ("cmpswap_b64", 5 << 32, [7, 5], 5 << 32),
    ("add_u64", u64::MAX, [2, 0], 1),
    ("sub_u64", 1, [2, 0], u64::MAX),
    ("min_i64", u64::MAX, [2, 0], u64::MAX),
    ("min_u64", u64::MAX, [2, 0], 2),
    ("max_i64", u64::MAX, [2, 0], 2),
    ("max_u64", u64::MAX, [2, 0], u64::MAX),
    ("and_b64", 6 << 40, [3 << 40, 0], 2 << 40),
    ("or_b64", 6 << 40, [3 << 40, 0], 7 << 40),
    ("xor_b64", 6 << 40, [3 << 40, 0], 5 << 40),
    ("inc_u64", u64::MAX, [3, 0], 0),
    ("dec_u64", 1 << 40, [1 << 41, 0], (1 << 40) - 1),
    ("add_f64", 0x3ff0_0000_0000_0000, [0x4000_0000_0000_0000, 0], 0x4008_0000_0000_0000),
    ("min_f64", 0x3ff0_0000_0000_0000, [0x4000_0000_0000_0000, 0], 0x3ff0_0000_0000_0000),
    ("max_f64", 0x3ff0_0000_0000_0000, [0x4000_0000_0000_0000, 0], 0x4000_0000_0000_0000),
];

/// Runs an atomic operation of lane 1 by a way, and checks memory and what came back.
fn check_atomic(way: (&str, Encoding), name: &str, before: &[u8], data: &[u32], after: &[u8]) {
    for returns in [false, true] {
        let mut bench = Bench::new("gfx90a", 64);
        let mut expected = vec![0; 256];
        expected[MIDDLE as usize + 16..][..before.len()].copy_from_slice(before);
        let memory = bench.allocate(&expected);
        let (mut made, at) = prepare(&mut bench, way, &format!("atomic_{name}"), memory, |lane| 16 * lane);
        made.sources[at] = vector(10, data.len() as u8);
        made.destinations[0] = if returns { vector(20, 2) } else { Operand::default() };
        made.modifiers.memory.returns = returns;
        bench.wave.set_exec(2);
        for (register, &word) in data.iter().enumerate() {
            bench.set_vector(10 + register, |_| word);
        }
        bench.run(&made).unwrap();
        expected[MIDDLE as usize + 16..][..after.len()].copy_from_slice(after);
        assert!(bench.bytes(memory)[..256] == expected, "{name} {way:?}");
        for (register, &old) in words(before, 0).iter().enumerate() {
            assert_eq!(bench.row(20 + register)[1], if returns { old } else { 0 }, "{name} {way:?}");
        }
    }
}

#[test]
fn atomics_change_memory() {
    for &way in WAYS {
        for &(name, before, [data, second], after) in ATOMICS_32 {
            check_atomic(way, name, &before.to_le_bytes(), &[data, second], &after.to_le_bytes());
        }
        for &(name, before, data, after) in ATOMICS_64 {
            let data = data.map(|word| [word as u32, (word >> 32) as u32]).concat();
            check_atomic(way, name, &before.to_le_bytes(), &data, &after.to_le_bytes());
        }
    }
}
