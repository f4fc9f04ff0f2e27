use crate::isa::{Encoding, Instruction, Operand, sgpr};
use crate::machine::execute::testing::*;
use crate::machine::group::{AccessKind, Space};

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn ds(name: &'static str, destination: Operand, sources: &[Operand]) -> Instruction {
    instruction(name, Encoding::Ds, destination, sources)
}

/// Name, bytes of the element, registers as a function of its first four bytes and the old value.
type LoadRow = (&'static str, usize, fn(u32, u32) -> u32);
const LOADS: &[LoadRow] = &[
    ("ds_load_u8", 1, |word, _| word & 0xff),
    ("ds_load_i8", 1, |word, _| word as i8 as i32 as u32),
    ("ds_load_u16", 2, |word, _| word & 0xffff),
    ("ds_load_i16", 2, |word, _| word as i16 as i32 as u32),
    ("ds_load_b32", 4, |word, _| word),
    ("ds_load_b64", 8, |word, _| word),
    ("ds_load_b96", 12, |word, _| word),
    ("ds_load_b128", 16, |word, _| word),
    ("ds_load_u8_d16", 1, |word, old| old & 0xffff_0000 | word & 0xff),
    ("ds_load_u8_d16_hi", 1, |word, old| old & 0xffff | (word & 0xff) << 16),
    ("ds_load_i8_d16", 1, |word, old| old & 0xffff_0000 | u32::from(word as i8 as u16)),
    ("ds_load_i8_d16_hi", 1, |word, old| old & 0xffff | u32::from(word as i8 as u16) << 16),
    ("ds_load_u16_d16", 2, |word, old| old & 0xffff_0000 | word & 0xffff),
    ("ds_load_u16_d16_hi", 2, |word, old| old & 0xffff | word << 16),
];

#[test]
fn loads_bring_their_elements() {
    for lanes in [32, 64] {
        for &(name, bytes, value) in LOADS {
            for exec in [u64::MAX, 0x1234_5678_0000_ffff, 0] {
                for step in [bytes, 20] {
                    let mut bench = Bench::new("gfx1100", lanes);
                    bench.lds = noise(4096, 1);
                    bench.wave.set_exec(exec & bench.wave.all_lanes());
                    bench.set_vector(2, |lane| (lane * step) as u32);
                    bench.set_vector(3, |lane| lane as u32 * 77_777);
                    let mut load = ds(name, vector(2, 4), &[vector(2, 1)]);
                    load.modifiers.memory.offset = 100;
                    let old: Vec<Vec<u32>> = (2..6).map(|register| bench.row(register).to_vec()).collect();
                    bench.run(&load).unwrap();
                    for lane in 0..lanes {
                        for (register, old) in old.iter().take(bytes.div_ceil(4)).enumerate() {
                            let loaded = word(&bench.lds, 100 + lane * step + 4 * register);
                            let before = old[lane];
                            let active = exec >> lane & 1 != 0;
                            let expected = if active { value(loaded, before) } else { before };
                            assert_eq!(bench.row(2 + register)[lane], expected, "{name} lane {lane}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn stores_leave_their_elements() {
    let rows = [
        ("ds_store_b8", 0..1),
        ("ds_store_b16", 0..2),
        ("ds_store_b32", 0..4),
        ("ds_store_b64", 0..8),
        ("ds_store_b96", 0..12),
        ("ds_store_b128", 0..16),
        ("ds_store_b8_d16_hi", 2..3),
        ("ds_store_b16_d16_hi", 2..4),
    ];
    for (name, part) in rows {
        for exec in [u64::MAX, 0x9234_5678_0000_ffff] {
            let mut bench = Bench::new("gfx942", 64);
            let values = noise(1024, 2);
            bench.wave.set_exec(exec);
            bench.set_vector(2, |lane| (lane * part.len()) as u32);
            for register in 0..4 {
                bench.set_vector(4 + register, |lane| word(&values, 16 * lane + 4 * register));
            }
            let mut expected = bench.lds.clone();
            for lane in (0..64).filter(|lane| exec >> lane & 1 != 0) {
                expected[8 + lane * part.len()..][..part.len()]
                    .copy_from_slice(&values[16 * lane..][part.clone()]);
            }
            let mut store = ds(name, NONE, &[vector(2, 1), vector(4, 4)]);
            store.modifiers.memory.offset = 8;
            bench.run(&store).unwrap();
            assert!(bench.lds == expected, "{name}");
        }
    }
}

#[test]
fn two_addresses_count_elements() {
    for (suffix, words, unit) in
        [("b32", 1, 4), ("b64", 2, 8), ("stride64_b32", 1, 256), ("stride64_b64", 2, 512)]
    {
        for exec in [u64::from(u32::MAX), 0x8001_00f0] {
            let mut bench = Bench::new("gfx1100", 32);
            bench.wave.set_exec(exec);
            bench.set_vector(2, |lane| (lane * 8) as u32);
            for register in 4..8 {
                bench.set_vector(register, |lane| (register * 100 + lane) as u32);
            }
            let active = |lane: &usize| exec >> lane & 1 != 0;
            let store: &'static str = String::leak(format!("ds_store_2addr_{suffix}"));
            let load: &'static str = String::leak(format!("ds_load_2addr_{suffix}"));
            let mut store = ds(store, NONE, &[vector(2, 1), vector(4, words), vector(6, words)]);
            // Two lanes apart, so that the two elements of lanes are in different places.
            (store.modifiers.memory.offset, store.modifiers.memory.offset1) = (1, 6);
            bench.lds = vec![0; 8192];
            let step = if unit > 8 { 8 } else { 64 };
            bench.set_vector(2, |lane| (lane * step) as u32);
            bench.run_observed(&store).unwrap();
            let bytes = 4 * u32::from(words);
            let first = exec.trailing_zeros() as u64 * step as u64;
            let seen = |offset| (Space::Lds, AccessKind::Store, bytes, exec, first + offset * unit as u64);
            assert_eq!(bench.seen, [seen(1), seen(6)]);
            for lane in (0..32).filter(active) {
                assert_eq!(word(&bench.lds, lane * step + unit), (400 + lane) as u32);
                assert_eq!(word(&bench.lds, lane * step + 6 * unit), (600 + lane) as u32);
            }
            let mut load = ds(load, vector(2, 2 * words), &[vector(2, 1)]);
            load.modifiers.memory = store.modifiers.memory;
            bench.run(&load).unwrap();
            for lane in (0..32).filter(active) {
                let expected: &[usize] = if words == 1 { &[400, 600] } else { &[400, 500, 600, 700] };
                for (register, value) in expected.iter().enumerate() {
                    assert_eq!(bench.row(2 + register)[lane], (value + lane) as u32, "{suffix} lane {lane}");
                }
            }
        }
    }
}

#[test]
fn atomics_change_lds() {
    // Target, name, before, the two data, after.
    let rows = [
        ("gfx1100", "ds_add_u32", 5, [7, 0], 12),
        ("gfx1100", "ds_add_rtn_u32", 5, [7, 0], 12),
        ("gfx1100", "ds_storexchg_rtn_b32", 5, [7, 0], 7),
        ("gfx1100", "ds_cmpstore_rtn_b32", 5, [7, 5], 7),
        ("gfx90a", "ds_cmpst_rtn_b32", 5, [5, 7], 7),
        ("gfx90a", "ds_cmpst_b32", 5, [6, 7], 5),
        ("gfx90a", "ds_mskor_b32", 0xff, [0x0f, 0x03], 0xf3),
        ("gfx1100", "ds_wrap_rtn_b32", 5, [7, 20], 25),
        ("gfx1100", "ds_wrap_rtn_b32", 9, [7, 20], 2),
        ("gfx1100", "ds_rsub_u32", 5, [7, 0], 2),
        ("gfx1100", "ds_max_rtn_f32", 0x3f80_0000, [0x4000_0000, 0], 0x4000_0000),
        ("gfx942", "ds_pk_add_rtn_f16", 0x3c00_3c00, [0x3c00_4000, 0], 0x4000_4200),
        ("gfx1201", "ds_sub_clamp_rtn_u32", 5, [7, 0], 0),
    ];
    for (target, name, before, [first, second], after) in rows {
        let returns = name.contains("_rtn");
        let mut bench = Bench::new(target, if target < "gfx9" { 32 } else { 64 });
        bench.lds[8..12].copy_from_slice(&u32::to_le_bytes(before));
        bench.wave.set_exec(4);
        bench.set_vector(2, |lane| 2 * lane as u32);
        bench.set_vector(3, |_| first);
        bench.set_vector(4, |_| second);
        let to = if returns { vector(5, 1) } else { NONE };
        let mut atomic = ds(name, to, &[vector(2, 1), vector(3, 1), vector(4, 1)]);
        atomic.modifiers.memory.offset = 4;
        bench.run(&atomic).unwrap();
        assert_eq!(word(&bench.lds, 8), after, "{name}");
        assert_eq!(bench.row(5)[2], if returns { before } else { 0 }, "{name}");
    }
}

#[test]
fn lanes_add_one_after_the_other() {
    let mut bench = Bench::new("gfx1100", 32);
    bench.set_vector(2, |_| 16);
    bench.set_vector(3, |_| 2);
    bench.run(&ds("ds_add_rtn_u32", vector(4, 1), &[vector(2, 1), vector(3, 1)])).unwrap();
    assert_eq!(word(&bench.lds, 16), 64);
    assert!((0..32).all(|lane| bench.row(4)[lane] == 2 * lane as u32));
    bench.wave.set_exec(0xf0);
    bench.wave.set_scalar(sgpr::M0, 12);
    let mut append = ds("ds_append", vector(5, 1), &[]);
    append.modifiers.memory.offset = 4;
    bench.run(&append).unwrap();
    assert_eq!((word(&bench.lds, 16), bench.row(5)[3], bench.row(5)[4]), (68, 0, 64));
    append.name = "ds_consume";
    bench.run(&append).unwrap();
    assert_eq!((word(&bench.lds, 16), bench.row(5)[7]), (64, 68));
}

#[test]
fn exchanges_of_two_elements_bring_both_back() {
    // Bytes between lanes, and elements between a lane's two.
    for (step, apart) in [(16, 2), (4, 32)] {
        let mut bench = Bench::new("gfx1100", 32);
        bench.lds = noise(4096, 3);
        let old = bench.lds.clone();
        bench.set_vector(2, |lane| (step * lane) as u32);
        bench.set_vector(3, |lane| lane as u32);
        bench.set_vector(4, |lane| 100 + lane as u32);
        let sources = [vector(2, 1), vector(3, 1), vector(4, 1)];
        let mut exchange = ds("ds_storexchg_2addr_rtn_b32", vector(2, 2), &sources);
        (exchange.modifiers.memory.offset, exchange.modifiers.memory.offset1) = (0, apart);
        bench.run(&exchange).unwrap();
        for lane in 0..32 {
            let places = [step * lane, step * lane + 4 * usize::from(apart)];
            assert_eq!(places.map(|at| word(&bench.lds, at)), [lane as u32, 100 + lane as u32]);
            assert_eq!([bench.row(2)[lane], bench.row(3)[lane]], places.map(|at| word(&old, at)));
        }
    }
}

#[test]
fn lanes_exchange_values() {
    let value = |lane: usize| 1000 + lane as u32;
    let mut bench = Bench::new("gfx90a", 64);
    bench.set_vector(3, value);
    bench.set_vector(2, |lane| 4 * (lane as u32 * 7 + 3));
    bench.run(&ds("ds_bpermute_b32", vector(4, 1), &[vector(2, 1), vector(3, 1)])).unwrap();
    bench.run(&ds("ds_permute_b32", vector(5, 1), &[vector(2, 1), vector(3, 1)])).unwrap();
    for lane in 0..64 {
        let other = (lane * 7 + 3) % 64;
        assert_eq!(bench.row(4)[lane], value(other));
        assert_eq!(bench.row(5)[other], value(lane));
    }
    // Lanes that are not active give nothing.
    bench.wave.set_exec(!1);
    bench.set_vector(2, |_| 0);
    bench.run(&ds("ds_bpermute_b32", vector(4, 1), &[vector(2, 1), vector(3, 1)])).unwrap();
    assert_eq!((bench.row(4)[0], bench.row(4)[1]), (value(3), 0));
}

#[test]
fn swizzles_follow_their_pattern() {
    // The pattern, and lanes with the lane they read.
    let rows: [(i32, [(usize, usize); 3]); 5] = [
        (0x8000 | 0b00_01_10_11, [(0, 3), (5, 6), (31, 28)]),
        (0x041f, [(0, 1), (7, 6), (31, 30)]),
        (0x401f, [(0, 16), (5, 21), (20, 4)]),
        (0x0200 | 0x10, [(0, 16), (7, 16), (31, 16)]),
        (0xc000 | 1 << 5, [(0, 1), (5, 6), (31, 0)]),
    ];
    for (pattern, pairs) in rows {
        let mut bench = Bench::new("gfx90a", 64);
        bench.set_vector(3, |lane| lane as u32);
        let mut swizzle = ds("ds_swizzle_b32", vector(4, 1), &[vector(3, 1)]);
        swizzle.modifiers.memory.offset = pattern;
        bench.run(&swizzle).unwrap();
        for (lane, from) in pairs {
            assert_eq!(bench.row(4)[lane], from as u32, "{pattern:#x} lane {lane}");
            assert_eq!(bench.row(4)[32 + lane], 32 + from as u32, "{pattern:#x} lane {lane}");
        }
    }
}

#[test]
fn what_is_outside_is_an_error() {
    let load = ds("ds_load_b128", vector(8, 4), &[vector(2, 1)]);
    let atomic = ds("ds_add_u32", NONE, &[vector(2, 1), vector(3, 1)]);
    let mut gds = ds("ds_add_u32", NONE, &[vector(2, 1), vector(3, 1)]);
    gds.modifiers.memory.gds = true;
    let rows = [
        (&load, 4081, "16 bytes at byte 4081 of an LDS of 4096 bytes, lane 7"),
        (&load, u32::MAX, "lane 7"),
        (&atomic, 6, "which is not a multiple of 4, by lane 7"),
        (&gds, 0, "GDS"),
    ];
    for (instruction, at, expected) in rows {
        for exec in [u64::from(u32::MAX), 0xff] {
            let mut bench = Bench::new("gfx1100", 32);
            bench.wave.set_exec(exec);
            bench.set_vector(2, |lane| if lane == 7 { at } else { 0 });
            let message = bench.run(instruction).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }
}
