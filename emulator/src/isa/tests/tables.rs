//! The tables hold together.

use std::collections::HashMap;

use crate::isa::tables::{ENCODINGS, GENERATIONS, Kind, rows};

#[test]
fn operands_are_known_words() {
    for row in ENCODINGS.iter().flat_map(|encoding| rows(*encoding)).copied().flatten() {
        let (destinations, sources) = row.operand_text().split_once('=').expect("a row's operands have `=`");
        assert!(destinations.split_whitespace().count() <= 2, "{row:?}");
        assert!(sources.split_whitespace().count() <= 4, "{row:?}");
        for word in row.operand_text().split_whitespace().filter(|word| *word != "=") {
            assert!(Kind::parse(word).is_some(), "{word} of {row:?}");
        }
    }
}

#[test]
fn an_opcode_means_one_instruction() {
    for encoding in ENCODINGS {
        for generation in GENERATIONS {
            let mut seen = HashMap::new();
            for row in rows(encoding).iter().copied().flatten() {
                let Some(opcode) = row.opcode(generation) else { continue };
                let other = seen.insert(opcode, row.name);
                assert_eq!(other, None, "{encoding:?} {opcode:#x} of {generation:?} is also {}", row.name);
            }
        }
    }
}
