use crate::isa::{Dpp, Generation};

use super::*;

fn plan(dpp: Dpp, lanes: usize, exec: u64, generation: Generation) -> DppPlan {
    DppPattern::new(dpp, lanes, generation).plan(exec)
}

fn dpp16(control: u16) -> Dpp {
    Dpp::Dpp16 { control, row_mask: 15, bank_mask: 15, bound_control: false, fetch_inactive: false }
}

#[test]
fn controls_name_their_lanes() {
    // Control, generation, and for lanes 0, 1, 15, 16, 40, 63 of 64 the lane that they read.
    type Row = (u16, Generation, [Option<usize>; 6]);
    let some = |lanes: [usize; 6]| lanes.map(Some);
    let rows: [Row; 17] = [
        (0b00_01_10_11, Generation::Gfx9, some([3, 2, 12, 19, 43, 60])),
        (0x101, Generation::Gfx9, [Some(1), Some(2), None, Some(17), Some(41), None]),
        (0x10f, Generation::Gfx11, [Some(15), None, None, Some(31), None, None]),
        (0x111, Generation::Gfx9, [None, Some(0), Some(14), None, Some(39), Some(62)]),
        (0x121, Generation::Gfx9, some([15, 0, 14, 31, 39, 62])),
        (0x130, Generation::Gfx9, [Some(1), Some(2), Some(16), Some(17), Some(41), None]),
        (0x134, Generation::Gfx9, some([1, 2, 16, 17, 41, 0])),
        (0x138, Generation::Gfx9, [None, Some(0), Some(14), Some(15), Some(39), Some(62)]),
        (0x13c, Generation::Gfx940, some([63, 0, 14, 15, 39, 62])),
        (0x138, Generation::Gfx11, [None; 6]),
        (0x140, Generation::Gfx9, some([15, 14, 0, 31, 39, 48])),
        (0x141, Generation::Gfx9, some([7, 6, 8, 23, 47, 56])),
        (0x142, Generation::Gfx9, [None, None, None, Some(15), Some(31), Some(47)]),
        (0x143, Generation::Gfx9, [None, None, None, None, Some(31), Some(31)]),
        (0x153, Generation::Gfx90a, some([3, 3, 3, 19, 35, 51])),
        (0x153, Generation::Gfx9, [None; 6]),
        (0x161, Generation::Gfx10, some([1, 0, 14, 17, 41, 62])),
    ];
    for (control, generation, expected) in rows {
        let plan = plan(dpp16(control), 64, u64::MAX, generation);
        for (lane, expected) in [0, 1, 15, 16, 40, 63].into_iter().zip(expected) {
            let written = plan.write >> lane & 1 != 0;
            let got = written.then_some(usize::from(plan.sources[lane]));
            assert_eq!(got, expected, "{control:#x} {generation:?} lane {lane}");
            assert_eq!(plan.zero >> lane & 1 == 0, written);
        }
    }
}

#[test]
fn lanes_that_are_not_active_are_not_read() {
    // Lanes 0 to 3 read their neighbour above; lane 2 is not active.
    let with = |bound_control, fetch_inactive| {
        let control = 0b11_11_10_01;
        let dpp = Dpp::Dpp16 { control, row_mask: 15, bank_mask: 15, bound_control, fetch_inactive };
        let plan = plan(dpp, 32, 0b1011, Generation::Gfx11);
        (plan.write, plan.zero & 15)
    };
    assert_eq!(with(false, false), (0b1001, 0b0010));
    assert_eq!(with(true, false), (0b1011, 0b0010));
    assert_eq!(with(false, true), (0b1011, 0));
}

#[test]
fn masks_leave_rows_and_banks_out() {
    let dpp = Dpp::Dpp16 {
        control: 0,
        row_mask: 0b0101,
        bank_mask: 0b0010,
        bound_control: true,
        fetch_inactive: false,
    };
    assert_eq!(plan(dpp, 64, u64::MAX, Generation::Gfx9).write, 0x0000_00f0_0000_00f0);
    assert_eq!(plan(dpp, 32, u64::from(u32::MAX), Generation::Gfx11).write, 0x0000_00f0);
}

#[test]
fn eight_lanes_are_free() {
    let with = |fetch_inactive| Dpp::Dpp8 { lanes: [7, 6, 5, 4, 3, 2, 1, 0], fetch_inactive };
    let active = plan(with(false), 32, 0xffff_ff7f, Generation::Gfx11);
    assert_eq!((active.sources[0], active.sources[9], active.sources[31]), (7, 14, 24));
    assert_eq!((active.zero, active.write), (1, 0xffff_ff7f));
    assert_eq!(plan(with(true), 32, 0xffff_ff7f, Generation::Gfx11).zero, 0);
}
