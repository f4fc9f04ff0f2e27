//! Runs `rukh generate` and `rukh bench` of a language model's folder as a user would.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn rukh(arguments: &[&str], input: &str) -> Output {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rukh"));
    command.args(arguments).current_dir(root);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

const FOLDER: &str = "examples/generate/model";

#[test]
fn answers_and_texts() {
    for (arguments, input, expected) in [
        (&["--prompt", "What is 27 plus 58?"][..], "", "27 plus 58 is 85.\n"),
        (&[], "Draw three stars.", "★★★\n"),
        (&["--prompt", "Spell 342.", "--greedy", "--quiet"], "", "Three hundred forty-two.\n"),
        (&["--prompt", "<|user|>Sort 31, 4, 15.<|end|><|assistant|>", "--raw"], "", "4, 15, 31.\n"),
        (&["--prompt", "Count from 5 to 30.", "--max-tokens", "4", "--set", "chunk=2"], "", "5, 6\n"),
        (&["--prompt", "Is 7 even or odd?", "--temperature", "0.1", "--seed", "3"], "", "7 is odd.\n"),
    ] {
        let output = rukh(&[&["generate", FOLDER], arguments].concat(), input);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{arguments:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.contains("tokens/s"), !arguments.contains(&"--quiet"), "{said}");
    }
}

#[test]
fn a_full_cache_is_said() {
    let output = rukh(&["generate", FOLDER, "--prompt", "Count from 5 to 40.", "--max-length", "30"], "");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the cache is full: the sequence has 30 tokens"), "{said}");
}

#[test]
fn errors() {
    for (arguments, part) in [
        (&["/no/such/folder", "--prompt", "x"][..], "there is no folder /no/such/folder"),
        (&[FOLDER, "--prompt", "x", "--top-p", "2"], "allowed are numbers from 0 to 1"),
        (&[FOLDER, "--prompt", "x", "--provider", "cpu", "--provider", "hip"], "--provider: one is allowed"),
        (&[FOLDER, "--prompt", "x", "--max-length", "300"], "the model's context"),
        (&[FOLDER, "--file", "/no/such/file"], "/no/such/file"),
    ] {
        let output = rukh(&[&["generate"], arguments].concat(), "");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_folder_is_timed_by_length_and_batch() {
    let sizes = ["--lengths", "4,8", "--batches", "1,2", "--tokens", "3", "--seconds", "0"];
    let output = rukh(&[&["bench", "--generate", FOLDER, "--json"], &sizes[..]].concat(), "");
    assert!(output.status.success(), "{output:?}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = found["rows"].as_array().unwrap();
    let each: Vec<_> = rows
        .iter()
        .map(|row| (row["batch"].as_u64().unwrap(), row["prompt_tokens"].as_u64().unwrap()))
        .collect();
    assert_eq!(each, [(1, 4), (1, 8), (2, 4), (2, 8)]);
    for row in rows {
        assert!(row["tokens_per_second"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["prompt_tokens_per_second"].as_f64().unwrap() > 0.0, "{row}");
    }
    let output = rukh(&[&["bench", "--generate", FOLDER], &sizes[..]].concat(), "");
    assert!(String::from_utf8_lossy(&output.stdout).contains("then, tokens/s"), "{output:?}");
}
