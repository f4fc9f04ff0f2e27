use crate::isa::{Encoding, Instruction};
use crate::machine::execute::testing::*;

fn smem(name: &'static str, base: u8, words: u8) -> Instruction {
    instruction(name, Encoding::Smem, scalar(20, words), &[scalar(base, 2), NONE])
}

#[test]
fn loads_bring_their_words() {
    let rows = [
        ("s_load_b32", 1),
        ("s_load_b64", 2),
        ("s_load_b96", 3),
        ("s_load_b128", 4),
        ("s_load_b256", 8),
        ("s_load_b512", 16),
    ];
    for (name, words) in rows {
        let mut bench = Bench::new("gfx1201", 32);
        let data = noise(256, 1);
        let memory = bench.allocate(&data);
        bench.wave.set_scalar64(4, memory);
        bench.wave.set_scalar(6, 8);
        let mut load = smem(name, 4, words);
        // The two lowest bits of the sum do not count.
        (load.sources[1], load.modifiers.memory.offset) = (scalar(6, 1), 14);
        bench.run(&load).unwrap();
        for word in 0..usize::from(words) {
            let expected = u32::from_le_bytes(data[20 + 4 * word..][..4].try_into().unwrap());
            assert_eq!(bench.wave.scalar[20 + word], expected, "{name} word {word}");
        }
    }
}

#[test]
fn short_loads_are_extended() {
    let rows: [(&str, i32, u32); 4] = [
        ("s_load_u8", 1, 0x82),
        ("s_load_i8", 1, 0xffff_ff82),
        ("s_load_u16", 2, 0x8483),
        ("s_load_i16", 2, 0xffff_8483),
    ];
    for (name, offset, expected) in rows {
        let mut bench = Bench::new("gfx1201", 32);
        let memory = bench.allocate(&[0x81, 0x82, 0x83, 0x84]);
        bench.wave.set_scalar64(4, memory);
        let mut load = smem(name, 4, 1);
        load.modifiers.memory.offset = offset;
        bench.run(&load).unwrap();
        assert_eq!(bench.wave.scalar[20], expected, "{name}");
    }
}

#[test]
fn behind_a_buffer_there_are_zeros() {
    let mut bench = Bench::new("gfx1100", 32);
    let memory = bench.allocate(&[1; 64]);
    bench.wave.set_scalar64(4, memory);
    bench.wave.set_scalar64(6, 24);
    let mut load = smem("s_buffer_load_b128", 4, 4);
    load.modifiers.memory.offset = 16;
    bench.run(&load).unwrap();
    assert_eq!(bench.wave.scalar[20..24], [0x0101_0101, 0x0101_0101, 0, 0]);
}

#[test]
fn errors_name_the_address() {
    let mut bench = Bench::new("gfx1100", 32);
    bench.wave.set_scalar64(4, 0x40);
    let message = bench.run(&smem("s_load_b64", 4, 2)).unwrap_err();
    assert!(message.contains("8 bytes at 0x40"), "{message}");
    let message = bench.run(&smem("s_store_dword", 4, 1)).unwrap_err();
    assert!(message.contains("s_store_dword"), "{message}");
}

#[test]
fn clocks_do_not_run_backwards() {
    let mut bench = Bench::new("gfx1100", 32);
    for name in ["s_memtime", "s_memrealtime"] {
        let mut last = 0;
        for _ in 0..3 {
            bench.run(&smem(name, 4, 2)).unwrap();
            let now = bench.wave.scalar64(20);
            assert!(now >= last);
            last = now;
        }
    }
    bench.run(&smem("s_dcache_inv", 4, 2)).unwrap();
}
