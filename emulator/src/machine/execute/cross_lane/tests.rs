use crate::isa::{Encoding, Instruction, Operand, sgpr};
use crate::machine::execute::testing::*;

fn vop(name: &'static str, to: Operand, sources: &[Operand]) -> Instruction {
    instruction(name, Encoding::Vop3, to, sources)
}

fn bench(target: &str, lanes: usize) -> Bench {
    let mut bench = Bench::new(target, lanes);
    bench.set_vector(1, |lane| 1000 + lane as u32);
    bench.set_vector(2, |_| 7);
    bench
}

#[test]
fn single_lanes_are_read_and_written() {
    let mut bench = bench("gfx90a", 64);
    bench.wave.set_exec(0xf0);
    bench.run(&vop("v_readfirstlane_b32", scalar(5, 1), &[vector(1, 1)])).unwrap();
    assert_eq!(bench.wave.scalar[5], 1004);
    bench.wave.set_exec(0);
    bench.run(&vop("v_readfirstlane_b32", scalar(5, 1), &[vector(1, 1)])).unwrap();
    assert_eq!(bench.wave.scalar[5], 1000);
    bench.wave.set_scalar(6, 64 + 3);
    bench.run(&vop("v_readlane_b32", scalar(5, 1), &[vector(1, 1), scalar(6, 1)])).unwrap();
    assert_eq!(bench.wave.scalar[5], 1003);
    bench.run(&vop("v_writelane_b32", vector(2, 1), &[integer(-1), integer(9)])).unwrap();
    assert_eq!((bench.row(2)[8], bench.row(2)[9]), (7, u32::MAX));
}

#[test]
fn rows_are_permuted() {
    // Lane n of a row reads lane 15 - n, of its row or of the other.
    for (name, by_vector, flip) in [
        ("v_permlane16_b32", false, 0),
        ("v_permlanex16_b32", false, 16),
        ("v_permlane16_var_b32", true, 0),
        ("v_permlanex16_var_b32", true, 16),
    ] {
        // FI and BOUND_CTRL, and what lane 0 reads of a lane that is not active.
        for (op_sel, inactive) in [(0, 7), (1, 1015 + flip), (2, 0)] {
            let mut bench = bench("gfx1201", 32);
            bench.wave.set_scalar64(4, 0x0123_4567_89ab_cdef);
            bench.set_vector(3, |lane| 15 - lane as u32 % 16);
            let by = if by_vector { [vector(3, 1), NONE] } else { [scalar(4, 1), scalar(5, 1)] };
            let mut permute = vop(name, vector(2, 1), &[vector(1, 1), by[0], by[1]]);
            permute.modifiers.op_sel = op_sel;
            bench.wave.set_exec(!(1 << (15 + flip)) & 0xffff_ffff);
            bench.run(&permute).unwrap();
            for lane in 0..32_u32 {
                let source = (lane & 16 | (15 - lane % 16)) ^ flip;
                let expected = match (lane, source) {
                    (lane, _) if lane == 15 + flip => 7,
                    (_, source) if source == 15 + flip => inactive,
                    _ => 1000 + source,
                };
                assert_eq!(bench.row(2)[lane as usize], expected, "{name} {op_sel} lane {lane}");
            }
        }
    }
}

#[test]
fn halves_and_groups_change_places() {
    let mut bench = bench("gfx1100", 64);
    bench.run(&vop("v_permlane64_b32", vector(2, 1), &[vector(1, 1)])).unwrap();
    assert!((0..64).all(|lane| bench.row(2)[lane] == 1000 + (lane as u32 ^ 32)));
    for (name, group) in [("v_permlane16_swap_b32", 16), ("v_permlane32_swap_b32", 32)] {
        let mut bench = Bench::new("gfx950", 64);
        bench.set_vector(1, |lane| 100 + lane as u32);
        bench.set_vector(2, |lane| 200 + lane as u32);
        bench.run(&vop(name, vector(2, 1), &[vector(1, 1)])).unwrap();
        for lane in 0..64 {
            let (one, two) = if lane & group == 0 {
                (200 + lane + group, 200 + lane)
            } else {
                (100 + lane, 100 + lane - group)
            };
            assert_eq!((bench.row(1)[lane], bench.row(2)[lane]), (one as u32, two as u32), "{name} {lane}");
        }
    }
}

#[test]
fn registers_change_places() {
    let mut bench = bench("gfx1100", 32);
    bench.wave.set_exec(2);
    bench.run(&vop("v_swap_b32", vector(1, 1), &[vector(2, 1)])).unwrap();
    assert_eq!(
        (bench.row(1)[..3].to_vec(), bench.row(2)[..3].to_vec()),
        (vec![1000, 7, 1002], vec![7, 1001, 7])
    );
    let mut halves = vop("v_swap_b16", vector(1, 1), &[vector(2, 1)]);
    halves.modifiers.op_sel = 8;
    bench.run(&halves).unwrap();
    assert_eq!((bench.row(1)[1], bench.row(2)[1]), (1001 << 16 | 7, 0));
    bench.set_vector(8, |_| 8);
    bench.set_vector(9, |_| 9);
    bench.wave.set_scalar(sgpr::M0, 6 << 16 | 8);
    bench.run(&vop("v_swaprel_b32", vector(2, 1), &[vector(1, 1)])).unwrap();
    assert_eq!((bench.row(8)[1], bench.row(9)[1]), (9, 8));
    bench.wave.set_scalar(sgpr::M0, 1023);
    let message = bench.run(&vop("v_swaprel_b32", vector(2, 1), &[vector(1, 1)])).unwrap_err();
    assert!(message.contains("register 1024"), "{message}");
}

#[test]
fn m0_adds_to_numbers_of_registers() {
    // Name, M0, the register that is read, the one that is written.
    for (name, m0, from, to) in [
        ("v_movrels_b32", 3, 13, 20),
        ("v_movreld_b32", 3, 10, 23),
        ("v_movrelsd_b32", 3, 13, 23),
        ("v_movrelsd_2_b32", 2 << 16 | 3, 13, 22),
    ] {
        let mut bench = Bench::new("gfx1100", 32);
        for register in 0..30 {
            bench.set_vector(register, |lane| (100 * register + lane) as u32);
        }
        bench.wave.set_scalar(sgpr::M0, m0);
        let made = vop(name, vector(20, 1), &[vector(10, 1)]);
        bench.run(&made).unwrap();
        assert!((0..32).all(|lane| bench.row(to)[lane] == (100 * from + lane) as u32), "{name}");
        bench.wave.set_scalar(sgpr::M0, 0x00ff_00ff);
        assert!(bench.run(&made).unwrap_err().contains("leads nowhere"), "{name}");
    }
}
