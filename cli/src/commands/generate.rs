//! `rukh generate`.

use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;
use std::time::Instant;

use serde_json::json;

use crate::api::{Environment, Generator};
use crate::arguments::{GenerateArguments, generator_settings};
use crate::text;

pub fn generate(arguments: &GenerateArguments) -> Result<ExitCode, String> {
    let prompt = prompt(arguments)?;
    let environment = Environment::new(arguments.threads, arguments.verbose)?;
    let start = Instant::now();
    let mut generator = Generator::open(&environment, &arguments.folder, &settings(arguments)?)?;
    let opened = start.elapsed().as_secs_f64();
    begin(&mut generator, arguments, &prompt)?;
    let length = generator.length()?;

    let start = Instant::now();
    let mut first = None;
    let mut tokens = 0;
    let mut out = std::io::stdout().lock();
    let mut written = |text: &str| out.write_all(text.as_bytes()).and_then(|()| out.flush());
    while arguments.max_tokens.is_none_or(|most| tokens < most) {
        let done = generator.advance()?;
        first.get_or_insert_with(|| start.elapsed().as_secs_f64());
        tokens += 1;
        // A reader that has read enough (head) ends the generation.
        if written(&generator.text()?).is_err() {
            return Ok(ExitCode::SUCCESS);
        }
        if done {
            break;
        }
    }
    let total = start.elapsed().as_secs_f64();
    let _ = written("\n");
    if generator.is_full()? {
        eprintln!("the cache is full: the sequence has {} tokens", generator.length()?);
    }
    if let Some(first) = first.filter(|_| !arguments.quiet) {
        eprintln!(
            "opened in {}; prompt: {length} tokens in {}, {:.1} tokens/s",
            text::seconds(opened),
            text::seconds(first),
            length as f64 / first
        );
        let rest = tokens - 1;
        if rest > 0 {
            eprintln!(
                "then {rest} tokens, {} each, {:.1} tokens/s",
                text::seconds((total - first) / rest as f64),
                rest as f64 / (total - first)
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The prompt, from the command line, a file or standard input.
fn prompt(arguments: &GenerateArguments) -> Result<String, String> {
    if let Some(prompt) = &arguments.prompt {
        return Ok(prompt.clone());
    }
    if let Some(path) = &arguments.file {
        return std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()));
    }
    if std::io::stdin().is_terminal() {
        return Err("there is no prompt; give --prompt TEXT, --file FILE, or a text by standard input".into());
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|e| format!("standard input: {e}"))?;
    Ok(text)
}

/// Gives the prompt as a question where the model has a chat template, unless a plain text is wanted.
fn begin(generator: &mut Generator, arguments: &GenerateArguments, prompt: &str) -> Result<(), String> {
    if arguments.raw {
        return Ok(generator.append_text(prompt)?);
    }
    let system = arguments.system.iter().map(|text| json!({ "role": "system", "content": text }));
    let messages: Vec<_> = system.chain([json!({ "role": "user", "content": prompt })]).collect();
    match generator.chat(&json!(messages).to_string()) {
        // A model without a template takes texts.
        Err(e) if arguments.system.is_none() && e.name() == "RUKH_ERROR_UNSUPPORTED" => {
            Ok(generator.append_text(prompt)?)
        }
        result => Ok(result?),
    }
}

fn settings(arguments: &GenerateArguments) -> Result<Vec<(String, String)>, String> {
    let mut settings = generator_settings(&arguments.providers, &arguments.options)?;
    let mut put = |key: &str, value: Option<String>| {
        settings.extend(value.map(|value| (key.to_owned(), value)));
    };
    let chosen = [arguments.temperature, arguments.top_p, arguments.min_p];
    let samples = chosen.iter().any(Option::is_some) || arguments.top_k.is_some() || arguments.seed.is_some();
    put("sample", arguments.greedy.then(|| "0".into()).or(samples.then(|| "1".into())));
    put("temperature", arguments.temperature.map(|x| x.to_string()));
    put("top_k", arguments.top_k.map(|x| x.to_string()));
    put("top_p", arguments.top_p.map(|x| x.to_string()));
    put("min_p", arguments.min_p.map(|x| x.to_string()));
    put("repetition_penalty", arguments.repetition_penalty.map(|x| x.to_string()));
    put("seed", arguments.seed.map(|x| x.to_string()));
    put("max_length", arguments.max_length.map(|x| x.to_string()));
    settings.extend(arguments.sets.iter().cloned());
    Ok(settings)
}
