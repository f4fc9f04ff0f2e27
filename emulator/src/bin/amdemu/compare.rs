//! `amdemu compare`: recorded times of instructions beside the model's.

use amdhip64::cost::{Issued, Step, replay};
use amdhip64::isa::text;

use super::Failure;
use super::code::Code;

/// Lanes of the waves; traces do not say.
const LANES: u32 = 32;

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let Some((object, traces)) = arguments.split_first().filter(|(_, traces)| !traces.is_empty()) else {
        return Err(Failure::Usage);
    };
    let code = Code::read(object).map_err(|error| Failure::Message(format!("{object}: {error}")))?;
    for trace in traces {
        let steps = wave(&code, trace).map_err(|error| Failure::Message(format!("{trace}: {error}")))?;
        for step in &steps {
            let mark = if step.outside { "outside" } else { "" };
            let instruction = text(&step.instruction, code.target);
            println!("{:6} {:6} {mark:7} {instruction}", step.recorded, step.model);
        }
        println!("{trace}: {}", summary(&steps));
    }
    Ok(())
}

/// A wave: lines of an address in the file and a time, both decimal or with 0x.
fn wave(code: &Code, path: &str) -> Result<Vec<Step>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut wave = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace().map(parse);
        let (Some(Some(address)), Some(Some(time))) = (words.next(), words.next()) else {
            return Err(format!("line {}: '{line}' is not an address and a time", number + 1));
        };
        let offset = address
            .checked_sub(code.address)
            .ok_or_else(|| format!("line {}: {address:#x} is in front of the code", number + 1))?;
        wave.push(Issued { offset, time });
    }
    replay(code.target, LANES, &code.bytes, &wave)
}

fn parse(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

fn summary(steps: &[Step]) -> String {
    let inside: Vec<&Step> = steps.iter().filter(|step| !step.outside).collect();
    let recorded: u64 = inside.iter().map(|step| step.recorded).sum();
    let model: u64 = inside.iter().map(|step| step.model).sum();
    let wrong: u64 = inside.iter().map(|step| step.recorded.abs_diff(step.model)).sum();
    let outside: u64 = steps.iter().filter(|step| step.outside).map(|step| step.recorded).sum();
    let part = |clocks: u64| 100.0 * clocks as f64 / recorded.max(1) as f64;
    format!(
        "{} instructions, {recorded} clocks recorded, {model} of the model ({:+.1}%), single differences {:.1}%; \
         {outside} clocks outside",
        inside.len(),
        part(model) - 100.0,
        part(wrong)
    )
}
