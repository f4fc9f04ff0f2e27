//! The `rukh` command.

use std::process::ExitCode;

use clap::Parser;
use rukh_cli::arguments::{Arguments, Command};
use rukh_cli::commands;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.command {
        Command::Run(arguments) => commands::run(arguments),
        Command::Info(arguments) => commands::info(arguments),
        Command::Compile(arguments) => commands::compile(arguments),
        Command::Devices(arguments) => commands::devices(arguments),
        Command::Targets(arguments) => commands::targets(arguments),
        Command::Report(arguments) => commands::report(arguments),
        Command::Bench(arguments) => commands::bench(arguments),
        Command::Generate(arguments) => commands::generate(arguments),
        Command::Tune(arguments) => commands::tune(arguments),
    };
    match result {
        Ok(code) => code,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}
