//! Instructions with random fields, against llvm-mc.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use super::encode::{Form, Maker};
use super::random::Random;
use crate::isa::tables::{ENCODINGS, promoted, rows};
use crate::isa::{Encoding, Generation, Target, decode, text};

const LLVM_MC: &str = "llvm-mc-19";
const TARGETS: [&str; 6] = ["gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1150", "gfx1201"];
/// Instructions for each row, target and form.
const ROUNDS: usize = 6;

struct Case {
    encoding: Encoding,
    name: &'static str,
    words: Vec<u32>,
}

#[test]
fn random_fields_have_the_text_of_llvm() {
    if Command::new(LLVM_MC).arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("skipped: {LLVM_MC} is not there");
        return;
    }
    let seed = Random::seed();
    println!("AMDEMU_TEST_SEED={seed}");
    let mut random = Random::new(seed);
    let mut differences = 0;
    for name in TARGETS {
        let target = Target::find(name).expect("a known target");
        let cases = cases(&mut random, target.generation);
        let expected = disassemble(target, &cases);
        differences += compare(target, &cases, &expected);
    }
    assert_eq!(differences, 0, "AMDEMU_TEST_SEED={seed}");
}

fn cases(random: &mut Random, generation: Generation) -> Vec<Case> {
    let mut cases = Vec::new();
    for encoding in ENCODINGS {
        for row in rows(encoding).iter().copied().flatten() {
            let Some(opcode) = row.opcode(generation) else { continue };
            let mut add = |encoding, opcode, form| {
                for _ in 0..ROUNDS {
                    let words = Maker::new(random, generation).make(encoding, row, opcode, form);
                    cases.push(Case { encoding, name: row.name, words });
                }
            };
            for form in forms(encoding, generation) {
                add(encoding, opcode, *form);
            }
            if let Some(first) = promoted(encoding, generation) {
                add(Encoding::Vop3, first + opcode, Form::Plain);
            }
        }
    }
    cases
}

fn forms(encoding: Encoding, generation: Generation) -> &'static [Form] {
    match (encoding, generation) {
        (Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc, Generation::Gfx10) => {
            &[Form::Plain, Form::Dpp16, Form::Dpp8, Form::Sdwa]
        }
        (Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc, Generation::Gfx11 | Generation::Gfx12) => {
            &[Form::Plain, Form::Dpp16, Form::Dpp8]
        }
        (Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc, _) => &[Form::Plain, Form::Dpp16, Form::Sdwa],
        _ => &[Form::Plain],
    }
}

/// LLVM's text of each case; none where it rejects the words or remarks that they are no instruction. Some words end
/// llvm-mc: the cases are halved until the one that does is alone.
fn disassemble(target: Target, cases: &[Case]) -> Vec<Option<String>> {
    let output = run(target, cases);
    let texts = collect(&output);
    if texts.len() == cases.len() {
        return texts;
    }
    if cases.len() == 1 {
        println!("{}: {} ends {LLVM_MC}: {:08x?}", target.name, cases[0].name, cases[0].words);
        return vec![None];
    }
    let (first, second) = cases.split_at(cases.len() / 2);
    [disassemble(target, first), disassemble(target, second)].concat()
}

fn run(target: Target, cases: &[Case]) -> String {
    let mut input = String::new();
    for (index, case) in cases.iter().enumerate() {
        input += &block(&case.words);
        input += &block(&[marker(index)]);
    }
    let cpu = format!("-mcpu={}", target.name);
    let arguments = ["--disassemble", "-triple=amdgcn-amd-amdhsa", "--show-encoding", &cpu];
    let mut command = Command::new(LLVM_MC);
    let command = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("llvm-mc starts");
    let mut stdin = child.stdin.take().expect("its input is a pipe");
    // Where llvm-mc ends early, its input is not read to the end.
    let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().expect("llvm-mc ends");
    writer.join().expect("the thread ends");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// S_NOP between the cases keeps output and cases together.
fn marker(index: usize) -> u32 {
    0xbf80_0000 | (index as u32 & 0xffff)
}

fn block(words: &[u32]) -> String {
    let bytes: Vec<_> =
        words.iter().flat_map(|word| word.to_le_bytes()).map(|byte| format!("{byte:#04x}")).collect();
    format!("[{}]\n", bytes.join(","))
}

fn collect(output: &str) -> Vec<Option<String>> {
    let mut texts = Vec::new();
    let mut current: Vec<String> = Vec::new();
    for line in output.lines() {
        let Some((before, encoding)) = line.split_once(" encoding: [") else { continue };
        let text = before.trim().trim_end_matches(';').trim_end_matches("//").trim();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.starts_with("s_nop") && block(&[marker(texts.len())]).trim() == format!("[{encoding}") {
            let joined = current.join("; then ");
            texts.push((!joined.is_empty() && !joined.contains("/*")).then_some(joined));
            current.clear();
        } else {
            current.push(text);
        }
    }
    texts
}

fn compare(target: Target, cases: &[Case], expected: &[Option<String>]) -> usize {
    let mut compared = 0;
    let mut rejected: BTreeMap<(String, &str), bool> = BTreeMap::new();
    let mut differences: BTreeMap<&str, (usize, String)> = BTreeMap::new();
    for (case, expected) in cases.iter().zip(expected) {
        let all_rejected = rejected.entry((format!("{:?}", case.encoding), case.name)).or_insert(true);
        let Some(expected) = expected else { continue };
        *all_rejected = false;
        compared += 1;
        let code: Vec<u8> = case.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let wave32 = target.generation >= Generation::Gfx10;
        let (actual, length) = match decode(target, wave32, &code, 0) {
            Ok(instruction) => (text(&instruction, target), usize::from(instruction.size)),
            Err(error) => (error.to_string(), 0),
        };
        if actual != *expected || length != code.len() {
            let words: Vec<_> = case.words.iter().map(|word| format!("{word:08x}")).collect();
            let line = format!(
                "{} {:?}\n  llvm {expected}\n  here {actual} ({length} bytes)",
                words.join(" "),
                case.encoding
            );
            let entry = differences.entry(case.name).or_insert((0, line));
            entry.0 += 1;
        }
    }
    let never: Vec<_> = rejected
        .into_iter()
        .filter(|(_, all)| *all)
        .map(|((encoding, name), _)| encoding + " " + name)
        .collect();
    let count = differences.values().map(|(count, _)| count).sum();
    println!("{}: {compared} of {} compared, {count} differences", target.name, cases.len());
    println!("{}: never accepted by LLVM: {}", target.name, never.join(", "));
    for (name, (count, line)) in &differences {
        println!("{} {name}, {count} times: {line}", target.name);
    }
    count
}
