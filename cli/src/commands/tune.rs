//! `rukh tune`: measures problems that were recorded elsewhere.

use std::process::ExitCode;

use crate::api::{Environment, Options, Provider};
use crate::arguments::TuneArguments;

pub fn tune(arguments: &TuneArguments) -> Result<ExitCode, String> {
    let path = arguments.shapes.display();
    let shapes = std::fs::read_to_string(&arguments.shapes).map_err(|e| format!("{path}: {e}"))?;
    let output = arguments.output.to_str().ok_or_else(|| {
        format!("--output {}: the name must be UTF-8, as names in options are", arguments.output.display())
    })?;
    let environment = Environment::new(1, arguments.verbose)?;
    let found = environment.tune(&options(arguments, output), &shapes).map_err(|e| format!("{path}: {e}"))?;
    println!("{} results in {output}", found.results);
    if found.without > 0 {
        println!("{} lines without a result; the warnings tell why", found.without);
    }
    Ok(ExitCode::SUCCESS)
}

fn options(arguments: &TuneArguments, output: &str) -> Options {
    let hip = Provider { name: "hip".to_owned(), options: Vec::new() };
    let mut provider = arguments.provider.clone().unwrap_or(hip);
    let own = [
        ("tunable_op_enable", "1"),
        ("tunable_op_tuning_enable", "1"),
        ("tunable_op_file", output),
        // What is tuned is not to be recorded again, whatever the environment says.
        ("tunable_op_record_file", ""),
    ];
    for (key, value) in own {
        provider.options.retain(|(known, _)| known != key);
        provider.options.push((key.to_owned(), value.to_owned()));
    }
    if let Some(limit) = arguments.milliseconds {
        provider.options.push(("tunable_op_max_tuning_duration_ms".to_owned(), limit.to_string()));
    }
    Options { providers: vec![provider], ..Options::default() }
}
