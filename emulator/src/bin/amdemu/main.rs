//! Looks into code objects, and predicts times from counters. See `USAGE`.

mod code;
mod compare;
mod predict;

use std::process::ExitCode;

use code::{Code, disassemble, unknown};

const USAGE: &str = "\
usage: amdemu disassemble FILE...
           prints the instructions of code objects
       amdemu unknown FILE...
           lists the words that the emulator cannot decode
       amdemu predict --card CARD [--json] [--warm] [--launch MICROSECONDS] COUNTS
           predicts times from a file that AMDEMU_COUNT wrote; --card list prints the cards
       amdemu compare CODEOBJECT TRACE...
           compares recorded times of a wave's instructions (lines of an offset and a time) with the model";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((name, files)) if name == "disassemble" && !files.is_empty() => each(files, disassemble),
        Some((name, files)) if name == "unknown" && !files.is_empty() => each(files, unknown),
        Some((name, rest)) if name == "predict" => predict::run(rest),
        Some((name, rest)) if name == "compare" => compare::run(rest),
        _ => Err(Failure::Usage),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage) => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
        Err(Failure::Message(message)) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Why the command ends.
pub enum Failure {
    Usage,
    Message(String),
}

fn each(files: &[String], action: fn(&Code)) -> Result<(), Failure> {
    for file in files {
        let code = Code::read(file).map_err(|message| Failure::Message(format!("{file}: {message}")))?;
        action(&code);
    }
    Ok(())
}
