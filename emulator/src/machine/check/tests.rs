//! Names of checks, and the counters of waits.

use super::counters::{Allowed, allowed};
use super::{Checks, NAMES};
use crate::isa::{Encoding, Generation, Instruction};

#[test]
fn names() {
    assert_eq!(Checks::parse(""), Some(Checks(0)));
    assert_eq!(Checks::parse("races"), Some(Checks(1)));
    assert_eq!(Checks::parse("waits, barriers"), Some(Checks(6)));
    assert_eq!(Checks::parse("all"), Some(Checks((1 << NAMES.len()) - 1)));
    for wrong in ["race", "races;waits", "ALL", "races,none"] {
        assert_eq!(Checks::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn what_instructions_wait_for() {
    use Generation::{Gfx9, Gfx10, Gfx11, Gfx12, Gfx90a};
    let rows: &[(&'static str, Encoding, Generation, i32, Allowed)] = &[
        ("s_waitcnt", Encoding::Sopp, Gfx9, 0x0f70, [Some(0), None, None, None]),
        ("s_waitcnt", Encoding::Sopp, Gfx90a, 0xc07fu16 as i16 as i32, [None, None, Some(0), None]),
        ("s_waitcnt", Encoding::Sopp, Gfx90a, 0x4f71, [Some(17), None, None, None]),
        ("s_waitcnt", Encoding::Sopp, Gfx10, 0xc17fu16 as i16 as i32, [None, None, Some(1), None]),
        ("s_waitcnt", Encoding::Sopp, Gfx11, 0x03f7, [Some(0), None, None, None]),
        ("s_waitcnt", Encoding::Sopp, Gfx11, 0xfc27u16 as i16 as i32, [None, None, Some(2), None]),
        ("s_waitcnt_vscnt", Encoding::Sopk, Gfx11, 0, [None, Some(0), None, None]),
        ("s_wait_loadcnt", Encoding::Sopp, Gfx12, 3, [Some(3), None, None, None]),
        ("s_wait_kmcnt", Encoding::Sopp, Gfx12, 0, [None, None, None, Some(0)]),
        ("s_wait_loadcnt_dscnt", Encoding::Sopp, Gfx12, 0x0201, [Some(2), None, Some(1), None]),
        ("s_wait_storecnt_dscnt", Encoding::Sopp, Gfx12, 0x0102, [None, Some(1), Some(2), None]),
    ];
    for &(name, encoding, generation, immediate, expected) in rows {
        let mut instruction = Instruction::unknown(0);
        (instruction.name, instruction.encoding) = (name, encoding);
        instruction.modifiers.immediate = immediate;
        assert_eq!(allowed(&instruction, generation), Some(expected), "{name} {immediate:#x} {generation:?}");
    }
    assert_eq!(allowed(&Instruction::unknown(0), Gfx9), None);
}
