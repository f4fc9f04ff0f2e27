//! Random loads and stores, by the interpreter and as translated code: addresses that lie as they usually do, others, and
//! some that lie outside.

use crate::isa::{Encoding, Instruction, sgpr};
use crate::machine::execute::testing::random::Random;
use crate::machine::execute::testing::*;

const BLOCKS: usize = 3000;
/// Registers of offsets into LDS, of offsets from a scalar register, and the first of two that are an address.
const LDS: u16 = 0;
const OFFSETS: u16 = 2;
const ADDRESSES: u16 = 4;
/// The first registers of data, and how many there are. Some loads overwrite registers of addresses.
const DATA: u16 = 8;
const DATA_REGISTERS: usize = 20;
/// Scalar registers with the address of the memory.
const BASE: u8 = 8;

const ELEMENTS: [(&str, u16); 4] = [("b32", 1), ("b64", 2), ("b96", 3), ("b128", 4)];

#[test]
fn translated_accesses_do_the_same() {
    if !crate::machine::translates() {
        println!("no machine code is made here (it needs AVX-512): loads and stores are interpreted alone");
    }
    let mut random = Random::new();
    let failed = (0..BLOCKS).filter(|_| !block(&mut random)).count();
    // Blocks that stop show errors; there must be others.
    assert!(failed > BLOCKS / 50 && failed < BLOCKS * 3 / 4, "{failed} of {BLOCKS} blocks failed");
}

/// Runs a block both ways; whether it ran to its end.
fn block(random: &mut Random) -> bool {
    let (target, lanes) = random.pick(&[("gfx1100", 32), ("gfx1100", 64), ("gfx90a", 64), ("gfx1201", 32)]);
    let mut bench = Bench::new(target, lanes);
    bench.lds = noise(random.pick(&[256, 1024, 4096]), random.next());
    // Between others, which are not to be touched.
    let sizes = [4096, random.pick(&[512, 1024, 8192]), 4096];
    let memory = sizes.map(|size| bench.allocate(&noise(size, random.next())));
    bench.compared = memory.to_vec();
    for register in 0..64 {
        let value = random.next() as u32;
        bench.set_vector(register, |lane| value.wrapping_mul(2 * lane as u32 + 1));
    }
    let (lds, size) = (bench.lds.len(), sizes[1]);
    for register in [LDS, LDS + 1] {
        let offsets = offsets(random, lds, lanes);
        bench.set_vector(usize::from(register), |lane| offsets[lane]);
    }
    let chosen = offsets(random, size, lanes);
    bench.set_vector(usize::from(OFFSETS), |lane| chosen[lane]);
    let chosen = offsets(random, size, lanes);
    bench.set_addresses(usize::from(ADDRESSES), |lane| memory[1] + u64::from(chosen[lane]));
    bench.wave.set_scalar64(BASE, memory[1]);
    if random.once_in(4) {
        let exec = random.next() & bench.wave.all_lanes();
        bench.wave.set_exec(exec);
    }
    let instructions: Vec<_> = (0..1 + random.below(12)).map(|_| any(random, lds, lanes)).collect();
    bench.run_all(&instructions).is_ok()
}

/// An offset for each lane.
fn offsets(random: &mut Random, size: usize, lanes: usize) -> Vec<u32> {
    let unit = random.pick(&[4, 8, 16]);
    let anywhere = unit * random.below(size / unit / 4);
    let first = random.pick(&[0, anywhere, size - unit * lanes.min(size / unit)]);
    let kind = random.below(10);
    let scattered: Vec<usize> = (0..lanes).map(|_| 4 * random.below(size / 4 - 4)).collect();
    let near: Vec<usize> = (0..lanes).map(|_| random.below(16)).collect();
    let offset = |lane: usize| match kind {
        0 => first,
        1..=3 => first + unit * lane,
        4 => first + unit * (lane % 16),
        5 => first + unit * (lane / 16),
        6 => first + 4 * near[lane],
        7 => first + 36 * (lane % 8),
        8 => scattered[lane],
        // Before the first lane's.
        _ => first + unit * (lanes - 1 - lane),
    };
    let shift = if random.once_in(20) { random.below(4) } else { 0 };
    let last = if random.once_in(20) { size + 4 * random.below(10) } else { offset(lanes - 1) };
    (0..lanes)
        .map(|lane| if lane == lanes - 1 { last } else { offset(lane) })
        .map(|it| (it + shift) as u32)
        .collect()
}

fn any(random: &mut Random, lds: usize, lanes: usize) -> Instruction {
    let data = DATA + random.below(DATA_REGISTERS) as u16;
    // Now and then the addresses themselves.
    let to = if random.once_in(10) { random.pick(&[LDS, OFFSETS, ADDRESSES]) } else { data };
    match random.below(12) {
        0..=2 => of_lds(random, "ds_load_", to, data, lds),
        3 => of_lds(random, "ds_store_", to, data, lds),
        4 | 5 => two_of_lds(random, to, data),
        6 | 7 => global(random, "global_load_", to, data),
        8 => global(random, "global_store_", to, data),
        9 => scalar_load(random),
        10 => {
            let sources = [vector(to, 1), integer(random.pick(&[0, 4, 16]))];
            instruction("v_add_nc_u32", Encoding::Vop2, vector(to, 1), &sources)
        }
        _ => {
            let value = random.pick(&[-1, -1, 0x00ff_0ff1, 0x7fff_ffff, 0xffff]);
            let (name, registers) = if lanes == 64 { ("s_mov_b64", 2) } else { ("s_mov_b32", 1) };
            instruction(name, Encoding::Sop1, scalar(sgpr::EXEC, registers), &[integer(value)])
        }
    }
}

fn named(begin: &str, end: &str) -> &'static str {
    String::leak(format!("{begin}{end}"))
}

fn of_lds(random: &mut Random, kind: &str, to: u16, data: u16, lds: usize) -> Instruction {
    let (element, words) = random.pick(&ELEMENTS);
    let address = vector(random.pick(&[LDS, LDS + 1]), 1);
    let value = vector(data, words as u8);
    let mut it = match kind {
        "ds_load_" => instruction(named(kind, element), Encoding::Ds, vector(to, words as u8), &[address]),
        _ => instruction(named(kind, element), Encoding::Ds, NONE, &[address, value]),
    };
    it.modifiers.memory.offset = random.pick(&[0, 4, 16, 64, lds as i32 / 4, lds as i32 / 2]);
    it
}

fn two_of_lds(random: &mut Random, to: u16, data: u16) -> Instruction {
    let (element, words) = random.pick(&[("b32", 1), ("b64", 2), ("stride64_b32", 1), ("stride64_b64", 2)]);
    let address = vector(random.pick(&[LDS, LDS + 1]), 1);
    let values = [address, vector(data, words), vector(data + 7, words)];
    let mut it = match random.once_in(3) {
        true => instruction(named("ds_store_2addr_", element), Encoding::Ds, NONE, &values),
        false => {
            instruction(named("ds_load_2addr_", element), Encoding::Ds, vector(to, 2 * words), &[address])
        }
    };
    let far = if element.contains("stride") { 3 } else { 20 };
    (it.modifiers.memory.offset, it.modifiers.memory.offset1) =
        (random.below(far) as i32, random.below(far) as _);
    it
}

fn global(random: &mut Random, kind: &str, to: u16, data: u16) -> Instruction {
    let (element, words) = random.pick(&ELEMENTS);
    let (address, base) = match random.once_in(2) {
        true => (vector(ADDRESSES, 2), NONE),
        false => (vector(OFFSETS, 1), scalar(BASE, 2)),
    };
    let value = vector(data, words as u8);
    let mut it = match kind {
        "global_load_" => {
            let sources = [address, NONE, base];
            instruction(named(kind, element), Encoding::Global, vector(to, words as u8), &sources)
        }
        _ => instruction(named(kind, element), Encoding::Global, NONE, &[address, value, base]),
    };
    it.modifiers.memory.offset = random.pick(&[0, 0, 4, 16, 64, 256, -4]);
    it
}

fn scalar_load(random: &mut Random) -> Instruction {
    let (element, words) = random.pick(&[("b32", 1), ("b64", 2), ("b128", 4), ("b256", 8), ("b512", 16)]);
    let to = scalar(random.pick(&[16, 32]), words);
    let mut it = instruction(named("s_load_", element), Encoding::Smem, to, &[scalar(BASE, 2), NONE]);
    it.modifiers.memory.offset = random.pick(&[0, 4, 64, 450, 510, 1023]);
    it
}
