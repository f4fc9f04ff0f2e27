//! Tables of what is known of the parts.

use super::banks;
use super::cache::{Cache, Outcome, Shape};
use super::matrix;
use super::occupancy::{Limit, Need, occupancy};
use super::segments::{doubled, touched};
use super::waits::{Queue, wait};
use crate::isa::{Encoding, Generation, Instruction, Modifiers, Target};
use crate::machine::group::{Access, AccessKind, Space};

fn access(addresses: &[u64; 64], bytes: u32, mask: u64, kind: AccessKind) -> Access<'_> {
    Access { space: Space::Lds, kind, bytes, mask, addresses }
}

#[test]
fn conflicts_of_banks() {
    use AccessKind::{Atomic, Load, Store};
    use Generation::{Gfx11, Gfx940};
    // Distance between lanes, bytes of each, lanes, kind; cycles, and those due to conflicts.
    let rows = [
        (4, 4, 64, Load, Gfx940, 2, 0),
        (4, 4, 32, Load, Gfx11, 1, 0),
        (8, 4, 32, Load, Gfx11, 2, 1),
        (128, 4, 32, Load, Gfx11, 32, 31),
        (132, 4, 32, Load, Gfx11, 1, 0),
        (0, 4, 32, Load, Gfx11, 1, 0),
        (0, 4, 32, Atomic, Gfx11, 32, 31),
        (2, 2, 64, Store, Gfx940, 2, 0),
        (8, 8, 64, Load, Gfx940, 4, 0),
        (16, 8, 64, Load, Gfx940, 8, 4),
        (16, 16, 64, Store, Gfx940, 8, 0),
        (16, 16, 64, Load, Gfx940, 8, 0),
        (16, 16, 32, Load, Gfx11, 4, 0),
        (128, 16, 32, Load, Gfx11, 32, 28),
    ];
    for (distance, bytes, lanes, kind, generation, all, conflicts) in rows {
        let addresses = std::array::from_fn(|lane| lane as u64 * distance);
        let mask = u64::MAX >> (64 - lanes);
        let cycles = banks::cycles(&access(&addresses, bytes, mask, kind), lanes, generation);
        assert_eq!((cycles.all, cycles.conflicts), (all, conflicts), "{distance} {bytes} {lanes} {kind:?}");
    }
}

/// Rows of 64 bytes, as tiles of halves have them: the lanes that CDNA loads together are others than its stores have.
#[test]
fn loads_of_sixteen_bytes_have_groups_of_their_own() {
    let addresses: [u64; 64] = std::array::from_fn(|lane| [0, 64][lane % 8 / 4] + 16 * (lane % 4) as u64);
    let cycles = |kind, generation| banks::cycles(&access(&addresses, 16, 0xff, kind), 64, generation).all;
    assert_eq!(cycles(AccessKind::Store, Generation::Gfx940), 1);
    // Lanes 0 to 3 and lanes 4 to 7 are in different groups.
    assert_eq!(cycles(AccessKind::Load, Generation::Gfx940), 2);
    assert_eq!(cycles(AccessKind::Load, Generation::Gfx11), 1);
}

#[test]
fn segments_of_an_access() {
    let mut lines = Vec::new();
    let mut addresses = std::array::from_fn(|lane| 4 * lane as u64);
    touched(&access(&addresses, 4, u64::MAX, AccessKind::Load), 32, &mut lines);
    assert_eq!((lines.len(), doubled(&lines)), (8, 4));
    addresses[0] = 30;
    touched(&access(&addresses, 4, 1, AccessKind::Load), 32, &mut lines);
    assert_eq!(lines, [0, 1]);
    addresses[0] = u64::MAX;
    touched(&access(&addresses, 4, 1, AccessKind::Load), 32, &mut lines);
    assert_eq!(lines, [u64::MAX / 32]);
}

#[test]
fn a_cache_forgets_what_was_used_longest_ago() {
    let mut cache = Cache::new(Shape { bytes: 256, line: 64, ways: 2 }, 1);
    let hit = |hit| Outcome { hit, written_back: None };
    assert_eq!(cache.access(0, true), hit(false));
    assert_eq!(cache.access(2, false), hit(false));
    assert_eq!(cache.access(2, false), hit(true));
    assert_eq!(cache.access(1, false), hit(false));
    assert_eq!(cache.access(4, false), Outcome { hit: false, written_back: Some(0) });
    assert_eq!(cache.access(2, true), hit(true));
    assert_eq!(cache.written(), 1);
}

#[test]
fn cycles_of_matrix_instructions() {
    use Generation::{Gfx9, Gfx11, Gfx12, Gfx90a, Gfx940};
    // Matrix Instruction Calculator, "Execution cycles".
    let rows = [
        ("v_mfma_f32_32x32x1_2b_f32", Gfx9, 64),
        ("v_mfma_f32_16x16x16_f16", Gfx9, 32),
        ("v_mfma_f32_4x4x4_16b_f16", Gfx9, 8),
        ("v_mfma_f32_32x32x4bf16", Gfx9, 64),
        ("v_mfma_i32_16x16x16i8", Gfx90a, 32),
        ("v_mfma_f64_16x16x4_f64", Gfx90a, 32),
        ("v_mfma_f64_4x4x4_4b_f64", Gfx90a, 16),
        ("v_mfma_f32_32x32x8_f16", Gfx940, 32),
        ("v_mfma_f32_16x16x16_f16", Gfx940, 16),
        ("v_mfma_f32_16x16x4_4b_f16", Gfx940, 32),
        ("v_mfma_f32_16x16x4_f32", Gfx940, 32),
        ("v_mfma_f32_32x32x2_f32", Gfx940, 64),
        ("v_mfma_f32_16x16x8_xf32", Gfx940, 16),
        ("v_mfma_f32_32x32x16_fp8_bf8", Gfx940, 32),
        ("v_mfma_i32_16x16x32_i8", Gfx940, 16),
        ("v_smfmac_f32_32x32x16_bf16", Gfx940, 32),
        ("v_mfma_f64_16x16x4_f64", Gfx940, 32),
        ("v_wmma_f32_16x16x16_f16", Gfx11, 32),
        ("v_wmma_i32_16x16x16_iu4", Gfx11, 16),
        ("v_wmma_f32_16x16x16_bf16", Gfx12, 16),
        ("v_wmma_i32_16x16x32_iu4", Gfx12, 8),
        ("v_swmmac_f32_16x16x32_fp8_fp8", Gfx12, 8),
        ("v_add_f32", Gfx12, 0),
    ];
    for (name, generation, cycles) in rows {
        assert_eq!(matrix::cycles(name, generation), cycles, "{name} {generation:?}");
    }
}

#[test]
fn occupancies() {
    // Target, registers, lanes, waves of a workgroup, LDS; waves of a SIMD, what limits them.
    let rows = [
        ("gfx908", 24, 64, 1, 0, 10, Limit::Waves),
        ("gfx908", 25, 64, 1, 0, 9, Limit::Registers),
        ("gfx908", 84, 64, 4, 0, 3, Limit::Registers),
        ("gfx908", 128, 64, 4, 0, 2, Limit::Registers),
        ("gfx90a", 64, 64, 4, 0, 8, Limit::Waves),
        ("gfx90a", 72, 64, 4, 0, 7, Limit::Registers),
        ("gfx90a", 128, 64, 4, 0, 4, Limit::Registers),
        ("gfx90a", 512, 64, 4, 0, 1, Limit::Registers),
        ("gfx942", 64, 64, 4, 32 << 10, 2, Limit::Lds),
        ("gfx1030", 64, 32, 8, 0, 16, Limit::Waves),
        ("gfx1030", 65, 32, 8, 0, 12, Limit::Registers),
        ("gfx1030", 64, 64, 4, 0, 8, Limit::Registers),
        ("gfx1100", 96, 32, 4, 0, 16, Limit::Waves),
        ("gfx1100", 97, 32, 4, 0, 12, Limit::Registers),
        ("gfx1100", 256, 32, 4, 0, 5, Limit::Registers),
        ("gfx1102", 128, 32, 4, 0, 8, Limit::Registers),
        ("gfx1201", 192, 32, 8, 64 << 10, 4, Limit::Lds),
    ];
    for (target, vector_registers, lanes, waves_of_workgroup, lds, waves, limit) in rows {
        let need = Need { vector_registers, lanes, waves_of_workgroup, lds };
        let found = occupancy(&need, Target::find(target).expect("a target"));
        assert_eq!((found.waves_per_simd, found.limit), (waves, limit), "{target} {need:?}");
    }
}

#[test]
fn counts_of_waits() {
    use Generation::{Gfx10, Gfx11, Gfx12, Gfx90a};
    let rows = [
        ("s_waitcnt", Gfx90a, 0x0f70, [Some(0), None, Some(15), None]),
        ("s_waitcnt", Gfx90a, 0xc07f, [Some(63), None, Some(0), None]),
        ("s_waitcnt", Gfx10, 0x3f70, [Some(0), None, Some(63), None]),
        ("s_waitcnt", Gfx11, 0x03f7, [Some(0), None, Some(63), None]),
        ("s_waitcnt", Gfx11, 0xfc07, [Some(63), None, Some(0), None]),
        ("s_waitcnt_vscnt", Gfx11, 2, [None, Some(2), None, None]),
        ("s_wait_loadcnt_dscnt", Gfx12, 0x102, [Some(1), None, Some(2), None]),
        ("s_wait_kmcnt", Gfx12, 0, [None, None, None, Some(0)]),
    ];
    for (name, generation, immediate, expected) in rows {
        let modifiers = Modifiers { immediate, ..Modifiers::default() };
        let instruction =
            Instruction { name, encoding: Encoding::Sopp, modifiers, ..Instruction::unknown(0) };
        assert_eq!(wait(&instruction, generation), Some(expected), "{name} {generation:?}");
    }
    assert_eq!(wait(&Instruction::unknown(0), Gfx11), None);
    assert_eq!(Queue::Scalar as usize, 3);
}
