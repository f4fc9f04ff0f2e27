//! No bytes make the decoder panic.

use super::random::Random;
use crate::isa::{Target, decode, text};

#[test]
fn random_bytes_decode_or_give_an_error() {
    let seed = Random::seed();
    println!("AMDEMU_TEST_SEED={seed}");
    let mut random = Random::new(seed);
    for target in Target::all() {
        for round in 0..20_000 {
            let length = 1 + random.below(20) as usize;
            let code: Vec<u8> = (0..length).map(|_| random.bits(8) as u8).collect();
            match decode(target, round % 2 == 0, &code, 0) {
                Ok(instruction) => {
                    assert!(usize::from(instruction.size) <= length);
                    assert!(!text(&instruction, target).is_empty());
                }
                Err(error) => assert!(error.to_string().contains(target.name)),
            }
        }
    }
}

#[test]
fn errors_name_what_is_wrong() {
    let target = Target::find("gfx1100").expect("a known target");
    let table: &[(&[u8], u64, &str)] = &[
        (&[0; 8], 16, "no instruction of gfx1100 at offset 0x10: the code ends"),
        (
            &[0, 0, 0, 0xf0],
            0,
            "no instruction of gfx1100 at offset 0x0, word 0xf0000000: MIMG is not known here",
        ),
        (&[0, 0xff, 0xff, 0xbe], 0, "SOP1 has no opcode 0xff there"),
        (&[0xff, 0, 0x80, 0x81], 0, "the code ends 4 bytes behind that offset"),
    ];
    for (code, offset, expected) in table {
        let error = decode(target, true, code, *offset).expect_err("these are no instructions").to_string();
        assert!(error.contains(expected), "{error}");
    }
}
