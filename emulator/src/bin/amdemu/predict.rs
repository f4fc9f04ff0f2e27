//! `amdemu predict`: times of kernels on a named card, from counters. They are predictions, not measurements.

use amdhip64::cost::{CARDS, Card, Report, Settings};

use super::Failure;

struct Arguments {
    card: &'static Card,
    json: bool,
    settings: Settings,
    file: String,
}

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    if arguments == ["--card", "list"] {
        print!("{}", cards());
        return Ok(());
    }
    let Arguments { card, json, settings, file } = parse(arguments)?;
    let lines = std::fs::read_to_string(&file).map_err(|error| message(format!("{file}: {error}")))?;
    let report = Report::new(&lines, card, &settings).map_err(|error| message(format!("{file}: {error}")))?;
    if json {
        let text = serde_json::to_string_pretty(&report).map_err(|error| message(error.to_string()))?;
        println!("{text}");
    } else {
        print!("{}", report.text());
    }
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Arguments, Failure> {
    let (mut card, mut file) = (None, None);
    let (mut json, mut settings) = (false, Settings::default());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--json" => json = true,
            "--warm" => settings.warm = true,
            "--card" => {
                let key = rest.next().ok_or(Failure::Usage)?;
                let found = Card::find(key);
                card = Some(found.ok_or_else(|| message(format!("no card {key}; there are:\n{}", cards())))?);
            }
            "--launch" => {
                let text = rest.next().ok_or(Failure::Usage)?;
                let number = text.parse().ok().filter(|number: &f64| (0.0..1e6).contains(number));
                settings.launch = number.ok_or_else(|| {
                    message(format!("--launch {text}: a number of microseconds from 0 to 1000000"))
                })?;
            }
            _ if file.is_none() && !argument.starts_with("--") => file = Some(argument.clone()),
            _ => return Err(Failure::Usage),
        }
    }
    match (card, file) {
        (Some(card), Some(file)) => Ok(Arguments { card, json, settings, file }),
        _ => Err(Failure::Usage),
    }
}

/// A line for each card.
fn cards() -> String {
    CARDS.iter().map(|card| format!("  {:<8} {} ({})\n", card.key, card.title, card.target)).collect()
}

fn message(text: String) -> Failure {
    Failure::Message(text)
}
