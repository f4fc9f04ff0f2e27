//! `rukh bench` of a language model's folder: the prompt and the tokens after it apart, by length and batch.

use std::process::ExitCode;
use std::time::Instant;

use serde_json::{Value as Json, json};

use crate::api::{Environment, Generator, Result};
use crate::arguments::{BenchArguments, generator_settings};
use crate::text;

/// Times of one length and batch, in seconds.
struct Row {
    batch: usize,
    length: usize,
    /// Of the prompt with the first token.
    prompt: f64,
    /// Of each token after it.
    token: f64,
}

pub fn bench_generate(arguments: &BenchArguments) -> std::result::Result<ExitCode, String> {
    let model = &arguments.model;
    let settings = generator_settings(&model.providers, &model.options)?;
    let environment = Environment::new(model.threads, model.verbose)?;
    let start = Instant::now();
    let small = [("max_length", 8)].map(|(key, value)| (key.to_owned(), value.to_string()));
    let mut opened = Generator::open(&environment, &model.path, &[&settings[..], &small].concat())?;
    let open = start.elapsed().as_secs_f64();
    opened.append_tokens(&[0])?;
    let vocabulary = opened.vocabulary()?;
    let mut rows = Vec::new();
    if !arguments.json {
        println!("{}: opened in {}", model.path.display(), text::seconds(open));
        println!("{:>6} {:>7}  {:>26}  {:>26}", "batch", "prompt", "prompt, tokens/s", "then, tokens/s");
    }
    for &batch in &arguments.batches {
        for &length in &arguments.lengths {
            let row = time(arguments, &opened, vocabulary, batch, length)?;
            if !arguments.json {
                let (prompt, then) = (row.prompt_rate(), row.token_rate());
                let times = (text::seconds(row.prompt), text::seconds(row.token));
                println!(
                    "{batch:>6} {length:>7}  {:>10} {prompt:>15.1}  {:>10} {then:>15.1}",
                    times.0, times.1
                );
            }
            rows.push(row);
        }
    }
    if arguments.json {
        let rows: Vec<Json> = rows.iter().map(Row::to_json).collect();
        println!("{:#}", json!({ "folder": model.path, "open_seconds": open, "rows": rows }));
    }
    Ok(ExitCode::SUCCESS)
}

/// The shortest of some rounds. In each the prompt is given anew to a rewound generator.
fn time(
    arguments: &BenchArguments,
    opened: &Generator,
    vocabulary: usize,
    batch: usize,
    length: usize,
) -> Result<Row> {
    let max_length = length + arguments.tokens.get() + 1;
    let settings = [
        ("sequences", batch.to_string()),
        ("max_length", max_length.to_string()),
        ("ignore_stop", "1".into()),
    ];
    let mut generator = opened.beside(&settings.map(|(key, value)| (key.to_owned(), value)))?;
    // Any tokens do; these are spread over the vocabulary.
    let prompt: Vec<i32> = (0..length).map(|i| (i * 7919 % vocabulary) as i32).collect();
    let mut row = Row { batch, length, prompt: f64::INFINITY, token: f64::INFINITY };
    let (begin, mut rounds) = (Instant::now(), 0);
    // The first round is not counted: it sees the shapes for the first time.
    while rounds < 2 || begin.elapsed().as_secs_f64() < arguments.seconds {
        generator.rewind(0)?;
        generator.append_tokens(&prompt)?;
        let start = Instant::now();
        generator.advance()?;
        let first = start.elapsed().as_secs_f64();
        let start = Instant::now();
        for _ in 0..arguments.tokens.get() {
            generator.advance()?;
        }
        if rounds > 0 {
            row.prompt = row.prompt.min(first);
            row.token = row.token.min(start.elapsed().as_secs_f64() / arguments.tokens.get() as f64);
        }
        rounds += 1;
    }
    Ok(row)
}

impl Row {
    fn prompt_rate(&self) -> f64 {
        (self.batch * self.length) as f64 / self.prompt
    }

    fn token_rate(&self) -> f64 {
        self.batch as f64 / self.token
    }

    fn to_json(&self) -> Json {
        json!({
            "batch": self.batch,
            "prompt_tokens": self.length,
            "prompt_seconds": self.prompt,
            "prompt_tokens_per_second": self.prompt_rate(),
            "token_seconds": self.token,
            "tokens_per_second": self.token_rate(),
        })
    }
}
