//! `rukh report --full`: cases and models on a device, in one file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use serde_json::{Map, Value as Json, json};

use super::bench::percentile;
use crate::api::{Environment, Options, Provider, Session, alone_or_helped};
use crate::arguments::ReportArguments;
use crate::cases::{case_folders, run_case};
use crate::data::{Value, generate, read_expected, read_input};
use crate::models::{compare_all, found};
use crate::text;

/// Where `make` puts them.
const CASES: &str = "build/onnx-data";
const MODELS: &str = "build/models";

/// After so many cases the file is written anew.
const CASES_AT_ONCE: usize = 50;

/// A GPU's second run is recorded, and the third one replayed; so many are compared.
const COMPARED_RUNS: usize = 3;

pub(super) fn report_full(arguments: &ReportArguments, facts: Json) -> Result<ExitCode, String> {
    let given = |folder: &Option<PathBuf>, usual: &str| {
        folder.clone().or_else(|| Some(PathBuf::from(usual)).filter(|usual| usual.is_dir()))
    };
    let (cases, models) = (given(&arguments.cases, CASES), given(&arguments.models, MODELS));
    if cases.is_none() && models.is_none() {
        return Err(format!(
            "there is nothing to run: neither {CASES} nor {MODELS} is there; name folders with --cases and --models"
        ));
    }
    let environment = Environment::new(0, false)?;
    let provider = match &arguments.provider {
        Some(provider) => provider.clone(),
        None => usual_provider(&environment)?,
    };
    let mut file = File { path: arguments.output.clone(), whole: facts };
    file.whole["full"] = json!({ "provider": provider.name, "provider_options": provider.options.iter().cloned().collect::<BTreeMap<_, _>>() });
    let device = Device { environment, provider, seconds: arguments.seconds };
    println!("\nfull report on provider {}", device.provider.name);
    let mut fine = true;
    if let Some(folder) = &cases {
        fine &= all_cases(&device, folder, &mut file)?;
    }
    if let Some(folder) = &models {
        fine &= all_models(&device, folder, &mut file)?;
    }
    file.save(None)?;
    println!("wrote {}; it has what is printed above, and more", file.path.display());
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The GPUs' where there is one.
fn usual_provider(environment: &Environment) -> Result<Provider, String> {
    let providers = environment.providers()?;
    let gpu = providers.iter().find(|(name, _)| name == "hip");
    match gpu {
        Some((name, reason)) if reason.is_empty() => Ok(Provider::from(&**name)),
        _ => {
            let reason = gpu.map_or("this build has no provider for GPUs", |(_, reason)| reason);
            eprintln!("no GPU is used: {reason}");
            Ok(Provider::from("cpu"))
        }
    }
}

/// What runs, and where.
struct Device {
    environment: Environment,
    provider: Provider,
    /// How long a model is timed.
    seconds: f64,
}

/// The report's file. It is written as the work goes on: a fault of a driver may end the process.
struct File {
    path: PathBuf,
    whole: Json,
}

impl File {
    /// Writes all there is, with the name of what runs next.
    fn save(&mut self, next: Option<&str>) -> Result<(), String> {
        self.whole["full"]["unfinished"] = json!(next);
        std::fs::write(&self.path, format!("{:#}\n", self.whole))
            .map_err(|error| format!("{}: {error}", self.path.display()))
    }
}

/// What came of the cases so far.
#[derive(Default)]
struct Cases {
    passed: usize,
    /// With the reason for which the CPU had to help.
    helped: Map<String, Json>,
    failed: Map<String, Json>,
    /// Those that the CPU fails as well, which say nothing of the device.
    failed_on_cpu_too: Map<String, Json>,
}

impl Cases {
    fn to_json(&self) -> Json {
        let Cases { passed, helped, failed, failed_on_cpu_too } = self;
        json!({ "passed": passed, "helped": helped, "failed": failed, "failed_on_cpu_too": failed_on_cpu_too })
    }
}

/// Runs all cases below a folder; tells whether none failed.
fn all_cases(device: &Device, folder: &Path, file: &mut File) -> Result<bool, String> {
    let cases = case_folders(folder);
    if cases.is_empty() {
        return Err(format!("{}: there are no cases of the ONNX standard in it", folder.display()));
    }
    let mut found = Cases::default();
    let start = Instant::now();
    for (i, (name, folder)) in cases.iter().enumerate() {
        if i % CASES_AT_ONCE == 0 {
            file.whole["full"]["cases"] = found.to_json();
            file.save(Some(&format!("case {name} or one of the {CASES_AT_ONCE} from there on")))?;
        }
        let on = |options: &Options| run_case(&device.environment, options, name, folder);
        let (result, help) = alone_or_helped(&device.provider, on);
        if let Some(reason) = help {
            found.helped.insert(name.clone(), reason.into());
        }
        match result {
            Ok(()) => found.passed += 1,
            Err(reason) if device.provider.name != "cpu" && on(&Options::preferred("cpu")).is_err() => {
                found.failed_on_cpu_too.insert(name.clone(), reason.into());
            }
            Err(reason) => {
                println!("  FAILED {name}: {reason}");
                found.failed.insert(name.clone(), reason.into());
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "cases of the ONNX standard: {} passed, {} failed, {} more that the CPU fails as well, in {}; {} with the help of the CPU",
        found.passed,
        found.failed.len(),
        found.failed_on_cpu_too.len(),
        text::seconds(seconds),
        found.helped.len()
    );
    file.whole["full"]["cases"] = found.to_json();
    file.whole["full"]["cases"]["seconds"] = seconds.into();
    Ok(found.failed.is_empty())
}

/// Runs all models of a folder; tells whether none failed.
fn all_models(device: &Device, folder: &Path, file: &mut File) -> Result<bool, String> {
    let models = found(folder)?;
    if models.is_empty() {
        return Err(format!("{}: there are no models in it", folder.display()));
    }
    let mut results = Vec::new();
    let mut fine = true;
    for (path, samples) in &models {
        let name = path.strip_prefix(folder).unwrap_or(path).display().to_string();
        file.whole["full"]["models"] = results.clone().into();
        file.save(Some(&format!("model {name}")))?;
        let inputs: Vec<Option<&Path>> =
            if samples.is_empty() { vec![None] } else { samples.iter().map(|s| Some(&**s)).collect() };
        for sample in inputs {
            let of = sample.and_then(Path::file_stem).unwrap_or_default().to_string_lossy();
            let (result, help) =
                alone_or_helped(&device.provider, |options| one_model(device, options, path, sample));
            let mut entry = json!({ "model": name, "sample": of, "helped": help });
            match result {
                Ok(facts) => {
                    println!("  {name} {of}: {}", facts.describe());
                    facts.add_to(&mut entry);
                }
                Err(reason) => {
                    println!("  FAILED {name} {of}: {reason}");
                    entry["failed"] = reason.into();
                    fine = false;
                }
            }
            results.push(entry);
        }
    }
    file.whole["full"]["models"] = results.into();
    Ok(fine)
}

/// What a model did. Times in seconds, differences over the largest magnitude of an output.
struct Facts {
    open: f64,
    first: f64,
    run: f64,
    cpu_run: f64,
    from_cpu: f64,
    from_expected: Option<f64>,
}

impl Facts {
    fn describe(&self) -> String {
        let expected = self.from_expected.map(|d| format!(", from what is expected by {d:.1e}"));
        format!(
            "{} a run, {} on the CPU; differs from the CPU by {:.1e}{}; opened in {}",
            text::seconds(self.run),
            text::seconds(self.cpu_run),
            self.from_cpu,
            expected.unwrap_or_default(),
            text::seconds(self.open)
        )
    }

    fn add_to(&self, entry: &mut Json) {
        entry["open_s"] = self.open.into();
        entry["first_run_s"] = self.first.into();
        entry["run_s"] = self.run.into();
        entry["cpu_run_s"] = self.cpu_run.into();
        entry["difference_from_cpu"] = self.from_cpu.into();
        entry["difference_from_expected"] = self.from_expected.into();
    }
}

fn one_model(
    device: &Device,
    options: &Options,
    path: &Path,
    sample: Option<&Path>,
) -> Result<Facts, String> {
    let start = Instant::now();
    let session = Session::open(&device.environment, path, options)?;
    let open = start.elapsed().as_secs_f64();
    let dims = BTreeMap::new();
    let inputs = match sample {
        Some(sample) => read_input(&sample.display().to_string(), session.inputs(), &dims, &mut 0)?,
        None => session
            .inputs()
            .iter()
            .enumerate()
            .map(|(i, port)| Ok((port.name.clone(), generate(port, &dims, (i as u64) << 32)?)))
            .collect::<Result<_, String>>()?,
    };
    let cpu = Session::open(&device.environment, path, &Options::preferred("cpu"))?;
    let on_cpu = cpu.run(&cpu.bind(&inputs)?)?;
    let expected = sample.map(|sample| read_expected(sample, session.outputs())).transpose()?;
    let (mut from_cpu, mut from_expected, mut first) = (0f64, None, 0.0);
    for run in 1..=COMPARED_RUNS {
        let start = Instant::now();
        let got = session.run(&session.bind(&inputs)?)?;
        if run == 1 {
            first = start.elapsed().as_secs_f64();
        }
        let wrong = |with: &str, reason: String| format!("run {run}, compared with {with}: {reason}");
        from_cpu = from_cpu.max(compare_all(&got, &on_cpu).map_err(|e| wrong("the CPU", e))?);
        if let Some(expected) = &expected {
            let found = compare_all(&got, expected).map_err(|e| wrong("what is expected", e))?;
            from_expected = Some(from_expected.unwrap_or(0f64).max(found));
        }
    }
    let run = median(&session, &inputs, device.seconds)?;
    let cpu_run = median(&cpu, &inputs, device.seconds)?;
    Ok(Facts { open, first, run, cpu_run, from_cpu, from_expected })
}

/// The median time of runs over so many seconds, of one at least.
fn median(session: &Session, inputs: &[(String, Value)], seconds: f64) -> Result<f64, String> {
    let bound = session.bind(inputs)?;
    let (start, mut runs) = (Instant::now(), Vec::new());
    while runs.is_empty() || start.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        session.execute(&bound)?;
        runs.push(start.elapsed().as_secs_f64());
    }
    runs.sort_by(f64::total_cmp);
    Ok(percentile(&runs, 0.5))
}
