//! `rukh bench`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value as Json, json};

use super::bench_generate::bench_generate;
use super::inputs::gather;
use crate::api::{Adapter, Environment, Options, Session};
use crate::arguments::BenchArguments;
use crate::data::Value;
use crate::text;

/// Runs that are recorded for the table of operators.
const RECORDED_RUNS: usize = 5;

/// All times in seconds.
struct Timing {
    open: f64,
    first: f64,
    /// In the order of the runs; empty with `--first`.
    runs: Vec<f64>,
}

/// How much of the recorded time an operator took.
struct OperatorTime {
    name: String,
    /// Calls in one run.
    calls: f64,
    /// In one run.
    seconds: f64,
    share: f64,
}

pub fn bench(arguments: &BenchArguments) -> Result<ExitCode, String> {
    let model = &arguments.model;
    if model.path.is_dir() {
        if !arguments.adapters.is_empty() {
            return Err(format!("{}: generating takes no adapters", model.path.display()));
        }
        return bench_generate(arguments);
    }
    let environment = Environment::new(model.threads, model.verbose)?;
    let adapters = arguments.adapters.open()?;
    let options = arguments.adapters.add_to(model.session_options());
    let start = Instant::now();
    let session = Session::open(&environment, &model.path, &options)?;
    let open = start.elapsed().as_secs_f64();
    let inputs = gather(&arguments.inputs, session.inputs(), &model.dims(), true, &adapters.names)?;
    let bound = session.bind(&inputs)?.with_adapters(&adapters.opened)?;
    let mut timing = Timing { open, first: timed(|| session.execute(&bound))?, runs: Vec::new() };
    if !arguments.first {
        for _ in 0..arguments.warmup {
            session.execute(&bound)?;
        }
        timing.runs = time_runs(arguments, || session.execute(&bound))?;
    }
    drop((bound, session));

    let mut operators = Vec::new();
    if !arguments.first && !arguments.no_operators {
        let profile = record(&arguments.model.path, options, &environment, &inputs, &adapters.opened)?;
        operators = by_operator(&profile)?;
        if let Some(path) = &arguments.trace {
            std::fs::write(path, profile).map_err(|e| format!("{}: {e}", path.display()))?;
        }
    }
    if arguments.json {
        println!("{:#}", to_json(arguments, &inputs, &timing, &operators));
    } else {
        print(arguments, &inputs, &timing, &operators);
    }
    Ok(ExitCode::SUCCESS)
}

fn timed<T>(run: impl FnOnce() -> crate::api::Result<T>) -> Result<f64, String> {
    let start = Instant::now();
    let outputs = run()?;
    let seconds = start.elapsed().as_secs_f64();
    // Releasing the outputs is no part of the run.
    drop(outputs);
    Ok(seconds)
}

/// Times as many runs as the arguments ask for, with a progress bar where someone looks at it.
fn time_runs<T>(
    arguments: &BenchArguments,
    run: impl Fn() -> crate::api::Result<T>,
) -> Result<Vec<f64>, String> {
    let limit = Duration::try_from_secs_f64(arguments.seconds)
        .map_err(|_| format!("--seconds {}: it should be a number from 0", arguments.seconds))?;
    let total = arguments.runs.map_or(limit.as_millis() as u64, |runs| runs as u64);
    let bar = ProgressBar::new(total);
    if let Ok(style) = ProgressStyle::with_template("timing {wide_bar} {msg}") {
        bar.set_style(style);
    }
    let start = Instant::now();
    let mut runs = Vec::new();
    while match arguments.runs {
        Some(wanted) => runs.len() < wanted,
        None => runs.is_empty() || start.elapsed() < limit,
    } {
        runs.push(timed(&run)?);
        let done = arguments.runs.map_or(start.elapsed().as_millis() as u64, |_| runs.len() as u64);
        bar.set_position(done.min(total));
        if runs.len() == 1 || runs.len().is_multiple_of(16) {
            bar.set_message(format!("{} runs, {}", runs.len(), text::seconds(runs[runs.len() - 1])));
        }
    }
    bar.finish_and_clear();
    Ok(runs)
}

/// The Chrome trace of a few runs of a session that records them.
fn record(
    model: &Path,
    mut options: Options,
    environment: &Environment,
    inputs: &[(String, Value)],
    adapters: &[Adapter],
) -> Result<String, String> {
    options.settings.push(("profiling".to_owned(), "1".to_owned()));
    let session = Session::open(environment, model, &options)?;
    let bound = session.bind(inputs)?.with_adapters(adapters)?;
    for _ in 0..RECORDED_RUNS {
        session.execute(&bound)?;
    }
    Ok(session.profile()?)
}

/// Sums the trace's nodes by operator, the longest first.
fn by_operator(profile: &str) -> Result<Vec<OperatorTime>, String> {
    let trace: Json = serde_json::from_str(profile).map_err(|e| format!("the profile is no JSON: {e}"))?;
    let events = trace.as_array().or_else(|| trace["traceEvents"].as_array());
    let mut sums: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    for event in events.into_iter().flatten().filter(|event| event["cat"] == "node") {
        let entry = sums.entry(event["args"]["op"].as_str().unwrap_or("?")).or_default();
        entry.0 += 1;
        entry.1 += event["dur"].as_f64().unwrap_or(0.0) / 1e6;
    }
    let total: f64 = sums.values().map(|(_, seconds)| seconds).sum();
    let mut times: Vec<OperatorTime> = sums
        .into_iter()
        .map(|(name, (calls, seconds))| OperatorTime {
            name: name.to_owned(),
            calls: calls as f64 / RECORDED_RUNS as f64,
            seconds: seconds / RECORDED_RUNS as f64,
            share: if total > 0.0 { seconds / total } else { 0.0 },
        })
        .collect();
    times.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    Ok(times)
}

/// The value below which `part` of the sorted times lie (nearest rank).
pub(super) fn percentile(sorted: &[f64], part: f64) -> f64 {
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// Name and value of each statistic of the runs.
fn statistics(runs: &[f64]) -> Vec<(&'static str, f64)> {
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    vec![
        ("min", percentile(&sorted, 0.0)),
        ("median", percentile(&sorted, 0.5)),
        ("mean", runs.iter().sum::<f64>() / runs.len() as f64),
        ("p90", percentile(&sorted, 0.9)),
        ("p99", percentile(&sorted, 0.99)),
        ("max", percentile(&sorted, 1.0)),
    ]
}

fn print(
    arguments: &BenchArguments,
    inputs: &[(String, Value)],
    timing: &Timing,
    operators: &[OperatorTime],
) {
    println!("{}", arguments.model.path.display());
    let rows: Vec<_> = inputs.iter().map(|(name, value)| vec![name.clone(), value.describe()]).collect();
    print!("{}", text::table(&rows, &[]));
    println!("open {}, first run {}", text::seconds(timing.open), text::seconds(timing.first));
    if timing.runs.is_empty() {
        return;
    }
    let total: f64 = timing.runs.iter().sum();
    println!("{} runs, {:.1} a second; latency", timing.runs.len(), timing.runs.len() as f64 / total);
    let rows: Vec<_> = statistics(&timing.runs)
        .into_iter()
        .map(|(name, value)| vec![name.to_owned(), text::seconds(value)])
        .collect();
    print!("{}", text::table(&rows, &[1]));
    if !operators.is_empty() {
        println!("operators, by time in one of {RECORDED_RUNS} recorded runs");
        let head = ["operator", "calls", "time", "share"].map(str::to_owned).to_vec();
        let rows: Vec<_> = std::iter::once(head)
            .chain(operators.iter().map(|o| {
                let share = format!("{:.1} %", o.share * 100.0);
                vec![o.name.clone(), format!("{}", o.calls), text::seconds(o.seconds), share]
            }))
            .collect();
        print!("{}", text::table(&rows, &[1, 2, 3]));
    }
}

fn to_json(
    arguments: &BenchArguments,
    inputs: &[(String, Value)],
    timing: &Timing,
    operators: &[OperatorTime],
) -> Json {
    let latency: serde_json::Map<_, _> =
        statistics(&timing.runs).into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
    let total: f64 = timing.runs.iter().sum();
    let ran = !timing.runs.is_empty();
    json!({
        "model": arguments.model.path.display().to_string(),
        "inputs": inputs.iter().map(|(name, value)| json!({"name": name, "type": value.describe()})).collect::<Json>(),
        "threads": arguments.model.threads,
        "open_s": timing.open,
        "first_run_s": timing.first,
        "runs": timing.runs.len(),
        "runs_per_s": ran.then(|| timing.runs.len() as f64 / total),
        "latency_s": ran.then_some(latency),
        "operators": operators
            .iter()
            .map(|o| json!({"operator": o.name, "calls": o.calls, "s": o.seconds, "share": o.share}))
            .collect::<Json>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let sorted: Vec<f64> = (1..=10).map(f64::from).collect();
        for (part, value) in [(0.0, 1.0), (0.5, 5.0), (0.9, 9.0), (0.99, 10.0), (1.0, 10.0)] {
            assert_eq!(percentile(&sorted, part), value, "{part}");
        }
    }

    #[test]
    fn operators_add_up() {
        let node = |op: &str, microseconds: u32| json!({"cat": "node", "ph": "X", "dur": microseconds, "args": {"op": op}});
        let run = json!({"cat": "session", "ph": "X", "dur": 99, "args": {"op": ""}});
        let profile = json!([node("Conv", 10), node("Relu", 2), node("Conv", 20), run]).to_string();
        let times = by_operator(&profile).unwrap();
        assert_eq!(times.len(), 2);
        assert_eq!((times[0].name.as_str(), times[0].calls), ("Conv", 2.0 / RECORDED_RUNS as f64));
        assert!((times[0].share - 30.0 / 32.0).abs() < 1e-12);
    }
}
