mod atomic;

use crate::isa::{Encoding, Instruction};
use crate::machine::execute::testing::*;
use crate::machine::group::{AccessKind, Space};
use crate::machine::wave::{PRIVATE_APERTURE, SHARED_APERTURE};

/// A kind of element: behind `load_`, bytes, and what it makes of an old register.
struct Element {
    name: &'static str,
    bytes: usize,
    value: fn(&[u8], u32) -> Vec<u32>,
}

fn words(bytes: &[u8], _: u32) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

fn half(bytes: &[u8]) -> u16 {
    u16::from_le_bytes([bytes[0], bytes[1]])
}

fn element(name: &'static str, bytes: usize, value: fn(&[u8], u32) -> Vec<u32>) -> Element {
    Element { name, bytes, value }
}

fn loads() -> Vec<Element> {
    vec![
        element("u8", 1, |bytes, _| vec![bytes[0].into()]),
        element("i8", 1, |bytes, _| vec![bytes[0] as i8 as i32 as u32]),
        element("u16", 2, |bytes, _| vec![half(bytes).into()]),
        element("i16", 2, |bytes, _| vec![half(bytes) as i16 as i32 as u32]),
        element("b32", 4, words),
        element("b64", 8, words),
        element("b96", 12, words),
        element("b128", 16, words),
        element("d16_u8", 1, |bytes, old| vec![old & 0xffff_0000 | u32::from(bytes[0])]),
        element("d16_i8", 1, |bytes, old| vec![old & 0xffff_0000 | u32::from(bytes[0] as i8 as u16)]),
        element("d16_b16", 2, |bytes, old| vec![old & 0xffff_0000 | u32::from(half(bytes))]),
        element("d16_hi_u8", 1, |bytes, old| vec![old & 0xffff | u32::from(bytes[0]) << 16]),
        element("d16_hi_i8", 1, |bytes, old| vec![old & 0xffff | u32::from(bytes[0] as i8 as u16) << 16]),
        element("d16_hi_b16", 2, |bytes, old| vec![old & 0xffff | u32::from(half(bytes)) << 16]),
    ]
}

/// Kinds of elements that are stored, with the bytes of the registers they are.
const STORES: &[(&str, std::ops::Range<usize>)] = &[
    ("b8", 0..1),
    ("b16", 0..2),
    ("b32", 0..4),
    ("b64", 0..8),
    ("b96", 0..12),
    ("b128", 0..16),
    ("d16_hi_b8", 2..3),
    ("d16_hi_b16", 2..4),
];

/// How instructions reach memory: each in its own way to the same bytes.
const WAYS: &[(&str, Encoding)] = &[
    ("flat", Encoding::Flat),
    ("global", Encoding::Global),
    ("global_saddr", Encoding::Global),
    ("buffer_offen", Encoding::Buffer),
    ("buffer_idxen", Encoding::Buffer),
];

/// Where lanes' elements lie, in bytes, and who takes part.
type Pattern = (&'static str, fn(usize, usize) -> usize, u64);
const PATTERNS: &[Pattern] = &[
    ("consecutive", |lane, bytes| lane * bytes, u64::MAX),
    ("reversed", |lane, bytes| (63 - lane) * bytes, u64::MAX),
    ("unaligned", |lane, _| 3 + lane * 17, u64::MAX),
    ("the same", |_, _| 20, u64::MAX),
    ("some lanes", |lane, bytes| lane * bytes, 0x8000_0013_0f0f_1235),
    ("one lane", |lane, bytes| lane * bytes, 0x20),
    ("none", |lane, bytes| lane * bytes, 0),
];

/// Where the data begin in their allocation, so that offsets of both signs stay within.
const MIDDLE: u64 = 64;
const OFFSET: i32 = -12;

/// An access by a way: address registers are v[2:3], scalars s[4:7].
fn prepare(
    bench: &mut Bench,
    (way, encoding): (&str, Encoding),
    kind: &str,
    memory: u64,
    place: impl Fn(usize) -> usize,
) -> (Instruction, usize) {
    let prefix = way.split('_').next().unwrap();
    let name: &'static str = String::leak(format!("{prefix}_{kind}"));
    let mut made = instruction(name, encoding, NONE, &[]);
    let start = memory + MIDDLE;
    let offset = OFFSET as u64;
    made.modifiers.memory.offset = OFFSET;
    match way {
        "global_saddr" => {
            bench.wave.set_scalar64(4, start.wrapping_sub(offset));
            bench.set_vector(2, |lane| place(lane) as u32);
            (made.sources[0], made.sources[2]) = (vector(2, 1), scalar(4, 2));
        }
        "buffer_offen" | "buffer_idxen" => {
            let indexed = way == "buffer_idxen";
            bench.wave.set_scalar64(4, (start - 40) | u64::from(indexed) << 48);
            bench.wave.set_scalar64(6, 1 << 20 | 3 << 60);
            bench.set_vector(2, |lane| place(lane) as u32);
            made.modifiers.memory.offset = 28;
            made.modifiers.memory.offen = !indexed;
            made.modifiers.memory.idxen = indexed;
            (made.sources[0], made.sources[1], made.sources[2]) = (vector(2, 1), scalar(4, 4), integer(12));
        }
        _ => {
            bench.set_addresses(2, |lane| start.wrapping_sub(offset) + place(lane) as u64);
            made.sources[0] = vector(2, 2);
        }
    }
    (made, if encoding == Encoding::Buffer { 3 } else { 1 })
}

#[test]
fn loads_bring_their_elements() {
    for lanes in [32, 64] {
        for (element, &way) in loads().iter().flat_map(|element| WAYS.iter().map(move |way| (element, way))) {
            for &(pattern, place, exec) in PATTERNS {
                let mut bench = Bench::new("gfx1100", lanes);
                let data = noise(2048, 1);
                let memory = bench.allocate(&data);
                let place = |lane: usize| place(lane, element.bytes);
                let kind = format!("load_{}", element.name);
                let (mut made, _) = prepare(&mut bench, way, &kind, memory, place);
                // The address is overwritten.
                made.destinations[0] = vector(2, 4);
                let count = element.bytes.div_ceil(4);
                bench.wave.set_exec(exec & bench.wave.all_lanes());
                let old: Vec<Vec<u32>> =
                    (2..2 + count).map(|register| bench.row(register).to_vec()).collect();
                bench.run(&made).unwrap();
                for lane in 0..lanes {
                    let at = MIDDLE as usize + place(lane);
                    let loaded = (element.value)(&data[at..at + element.bytes], old[0][lane]);
                    for (register, (old, loaded)) in old.iter().zip(loaded).enumerate() {
                        let is_active = exec >> lane & 1 != 0;
                        let expected = if is_active { loaded } else { old[lane] };
                        let got = bench.row(2 + register)[lane];
                        assert_eq!(got, expected, "{} {way:?} {pattern} lane {lane}", element.name);
                    }
                }
            }
        }
    }
}

#[test]
fn stores_leave_their_elements() {
    for lanes in [32, 64] {
        for ((kind, part), &way) in STORES.iter().flat_map(|store| WAYS.iter().map(move |way| (store, way))) {
            for &(pattern, place, exec) in PATTERNS {
                let mut bench = Bench::new("gfx1100", lanes);
                let mut expected = noise(2048, 2);
                let memory = bench.allocate(&expected);
                let place = |lane: usize| place(lane, part.len());
                let (mut made, data) = prepare(&mut bench, way, &format!("store_{kind}"), memory, place);
                made.sources[data] = vector(10, 4);
                bench.wave.set_exec(exec & bench.wave.all_lanes());
                let values = noise(64 * 16, 3);
                let word =
                    |lane: usize, register: usize| words(&values[lane * 16 + 4 * register..][..4], 0)[0];
                for register in 0..4 {
                    bench.set_vector(10 + register, |lane| word(lane, register));
                }
                bench.run(&made).unwrap();
                for lane in (0..lanes).filter(|lane| exec >> lane & 1 != 0) {
                    let at = MIDDLE as usize + place(lane);
                    let stored = &values[lane * 16..][part.clone()];
                    expected[at..at + part.len()].copy_from_slice(stored);
                }
                assert!(bench.bytes(memory)[..2048] == expected, "{kind} {way:?} {pattern}");
            }
        }
    }
}

#[test]
fn lanes_may_use_several_allocations() {
    let mut bench = Bench::new("gfx90a", 64);
    let memories = [bench.allocate(&noise(256, 4)), bench.allocate(&noise(256, 5))];
    bench.set_addresses(2, |lane| memories[lane % 2] + 4 * lane as u64);
    let load = instruction("global_load_b32", Encoding::Global, vector(8, 1), &[vector(2, 2)]);
    bench.run(&load).unwrap();
    for lane in 0..64 {
        assert_eq!(bench.row(8)[lane], words(&bench.bytes(memories[lane % 2])[4 * lane..][..4], 0)[0]);
    }
}

#[test]
fn scratch_is_private_to_lanes() {
    let mut bench = Bench::new("gfx1100", 32);
    (bench.wave.scratch, bench.wave.scratch_size) = (vec![0; 64 * 32], 64);
    bench.wave.set_scalar(4, 8);
    bench.set_vector(2, |lane| lane as u32 % 4);
    bench.set_vector(3, |lane| 1000 + lane as u32);
    let sources = [vector(2, 1), vector(3, 1), scalar(4, 1)];
    let mut store = instruction("scratch_store_b32", Encoding::Scratch, NONE, &sources);
    store.modifiers.memory.offset = 4;
    bench.run_observed(&store).unwrap();
    assert_eq!(bench.seen, [(Space::Scratch, AccessKind::Store, 4, 0xffff_ffff, 12)]);
    for lane in 0..32 {
        assert_eq!(words(&bench.wave.scratch[lane * 64 + 12 + lane % 4..][..4], 0), [1000 + lane as u32]);
    }
    // The same by way of a buffer's resource: its scalar offset counts bytes of all lanes.
    bench.wave.scalar[4..8].copy_from_slice(&[0, PRIVATE_APERTURE, u32::MAX, 0]);
    bench.wave.set_scalar(8, 8 * 32);
    let sources = [vector(2, 1), scalar(4, 4), scalar(8, 1)];
    let mut load = instruction("buffer_load_b32", Encoding::Buffer, vector(5, 1), &sources);
    (load.modifiers.memory.offset, load.modifiers.memory.offen) = (4, true);
    bench.run(&load).unwrap();
    assert_eq!(bench.row(5), bench.row(3));
    // And by flat addresses.
    bench.set_vector(2, |lane| 12 + lane as u32 % 4);
    bench.set_vector(3, |_| PRIVATE_APERTURE);
    let load = instruction("flat_load_b32", Encoding::Flat, vector(6, 1), &[vector(2, 2)]);
    bench.run(&load).unwrap();
    assert_eq!(bench.row(6), bench.row(5));
}

#[test]
fn flat_addresses_reach_all_memory_at_once() {
    let mut bench = Bench::new("gfx90a", 64);
    let memory = bench.allocate(&noise(256, 6));
    bench.lds = noise(256, 7);
    (bench.wave.scratch, bench.wave.scratch_size) = (noise(64 * 16, 8), 16);
    let (lds, private) = (u64::from(SHARED_APERTURE) << 32, u64::from(PRIVATE_APERTURE) << 32);
    let address = |lane: usize| match lane % 3 {
        0 => memory + 4 * lane as u64,
        1 => lds + 4 * lane as u64,
        _ => private + 12,
    };
    bench.set_addresses(2, address);
    let load = instruction("flat_load_b32", Encoding::Flat, vector(8, 1), &[vector(2, 2)]);
    bench.run_observed(&load).unwrap();
    for lane in 0..64 {
        let bytes = match lane % 3 {
            0 => &bench.bytes(memory)[4 * lane..],
            1 => &bench.lds[4 * lane..],
            _ => &bench.wave.scratch[16 * lane + 12..],
        };
        assert_eq!(bench.row(8)[lane], words(&bytes[..4], 0)[0], "lane {lane}");
    }
    let thirds = (0..64).step_by(3).fold(0u64, |mask, lane| mask | 1 << lane);
    let expected = [
        (Space::Global, AccessKind::Load, 4, thirds, memory),
        (Space::Lds, AccessKind::Load, 4, thirds << 1, 4),
        (Space::Scratch, AccessKind::Load, 4, thirds << 2, 12),
    ];
    assert_eq!(bench.seen, expected);
}

#[test]
fn what_is_outside_is_an_error() {
    let mut bench = Bench::new("gfx1100", 32);
    let memory = bench.allocate(&[0; 128]);
    (bench.wave.scratch, bench.wave.scratch_size) = (vec![0; 16 * 32], 16);
    let load = |name, encoding| instruction(name, encoding, vector(8, 1), &[vector(2, 2)]);
    let global = load("global_load_b32", Encoding::Global);
    let flat = load("flat_load_b32", Encoding::Flat);
    let scratch = instruction("scratch_load_b32", Encoding::Scratch, vector(8, 1), &[vector(2, 1)]);
    let sources = [vector(2, 2), vector(9, 1)];
    let atomic = instruction("global_atomic_add_u32", Encoding::Global, NONE, &sources);
    let rows: [(&Instruction, u64, &str); 8] = [
        (&global, 0, "null"),
        (&global, memory + 126, "cross"),
        (&global, memory + 126, "lane 7"),
        (&global, 1 << 63, "lane 7"),
        (&global, u64::MAX, "lane 7"),
        (
            &flat,
            u64::from(SHARED_APERTURE) << 32 | 4094,
            "4 bytes at byte 4094 of an LDS of 4096 bytes, lane 7",
        ),
        (&scratch, 13, "4 bytes at byte 13 of a scratch of 16 bytes, lane 7"),
        (&atomic, memory + 2, "which is not a multiple of 4, by lane 7"),
    ];
    for (instruction, address, expected) in rows {
        let others = if instruction.encoding == Encoding::Scratch { 0 } else { memory };
        bench.set_addresses(2, |lane| if lane == 7 { address } else { others });
        for exec in [u64::from(u32::MAX), 0xff] {
            bench.wave.set_exec(exec);
            let message = bench.run(instruction).unwrap_err();
            assert!(message.contains(expected), "{}: {message}", instruction.name);
        }
        // A lane that takes no part is not looked at.
        bench.wave.set_exec(0xff7f);
        bench.run(instruction).unwrap();
    }
}

#[test]
fn outside_of_a_buffer_loads_are_0_and_stores_nothing() {
    // Generation, stride, whether there is an index, the check (OOB_SELECT), and which of 32 lanes are inside: lane n
    // has index or offset 4 n of 64 bytes or, with a stride, of 16 records.
    let rows: [(&str, u64, bool, u64, u32); 6] = [
        ("gfx90a", 0, false, 0, 0xffff),
        ("gfx1100", 0, false, 3, 0xffff),
        ("gfx1100", 0, false, 2, u32::MAX),
        ("gfx90a", 4, true, 0, 0xffff),
        ("gfx1100", 4, true, 0, 0xffff),
        ("gfx1201", 4, true, 1, 0xffff),
    ];
    for (target, stride, indexed, check, inside) in rows {
        let mut bench = Bench::new(target, if target == "gfx90a" { 64 } else { 32 });
        let memory = bench.allocate(&[1; 512]);
        let records = if indexed { 16 } else { 64 };
        bench.wave.set_scalar64(4, memory | stride << 48);
        bench.wave.set_scalar64(6, records | check << 60);
        bench.set_vector(2, |lane| (lane * if indexed { 1 } else { 4 }) as u32);
        bench.set_vector(8, |_| 9);
        bench.wave.set_exec(u64::from(u32::MAX));
        let sources = [vector(2, 1), scalar(4, 4), integer(0), vector(8, 1)];
        let mut load = instruction("buffer_load_b32", Encoding::Buffer, vector(8, 1), &sources[..3]);
        (load.modifiers.memory.offen, load.modifiers.memory.idxen) = (!indexed, indexed);
        bench.run(&load).unwrap();
        for lane in 0..32 {
            let expected = if inside >> lane & 1 != 0 { 0x0101_0101 } else { 0 };
            assert_eq!(bench.row(8)[lane], expected, "{target} {stride} {check} lane {lane}");
        }
        let mut store = instruction("buffer_store_b32", Encoding::Buffer, NONE, &sources);
        store.modifiers.memory = load.modifiers.memory;
        bench.set_vector(8, |_| 0x0202_0202);
        bench.run(&store).unwrap();
        for lane in 0..32 {
            let expected = if inside >> lane & 1 != 0 { 2 } else { 1 };
            assert_eq!(bench.bytes(memory)[4 * lane], expected, "{target} {stride} {check} lane {lane}");
        }
    }
}

#[test]
fn loads_go_to_lds() {
    let mut bench = Bench::new("gfx90a", 64);
    let data = noise(256, 9);
    let memory = bench.allocate(&data);
    bench.wave.set_scalar(crate::isa::sgpr::M0, 32);
    bench.set_addresses(2, |lane| memory + 63 - lane as u64);
    let load = instruction("global_load_lds_u8", Encoding::Global, NONE, &[vector(2, 2)]);
    bench.run(&load).unwrap();
    for lane in 0..64 {
        assert_eq!(words(&bench.lds[32 + 4 * lane..][..4], 0), [u32::from(data[63 - lane])]);
    }
}

#[test]
fn caches_are_not_there() {
    let mut bench = Bench::new("gfx1201", 32);
    for (name, encoding) in [
        ("buffer_gl0_inv", Encoding::Buffer),
        ("buffer_wbl2", Encoding::Buffer),
        ("buffer_inv", Encoding::Buffer),
        ("global_inv", Encoding::Global),
        ("global_wbinv", Encoding::Global),
    ] {
        bench.run(&instruction(name, encoding, NONE, &[])).unwrap();
    }
    let unknown =
        instruction("buffer_load_format_x", Encoding::Buffer, vector(0, 1), &[NONE, scalar(4, 4), NULL]);
    assert!(bench.run(&unknown).unwrap_err().contains("buffer_load_format_x"));
}
