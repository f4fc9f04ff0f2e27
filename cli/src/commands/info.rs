//! `rukh info`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde_json::{Value as Json, json};

use super::artifact_facts::ArtifactFacts;
use super::inputs::gather;
use super::launches::{self, Launches};
use super::pictures;
use crate::api::{Environment, LoadCounters, Metadata, Options, Placement, Session, Verdict, is_artifact};
use crate::arguments::{InfoArguments, InputArguments};
use crate::data::Port;
use crate::text;

/// Everything that is shown.
struct Facts<'a> {
    path: String,
    session: &'a Session,
    artifact: Option<ArtifactFacts>,
    metadata: Metadata,
    placement: Vec<Placement>,
    counters: LoadCounters,
    /// Anonymous memory, and the peak of all that was resident, after opening and after a run.
    opened: Option<(u64, u64)>,
    ran: Option<(u64, u64)>,
    /// What a run gives to a GPU, when the session has one.
    launches: Option<Result<Launches, String>>,
    /// What the session does with a GPU's memory after a run, as a table.
    gpu_memory: Option<String>,
}

pub fn info(arguments: &InfoArguments) -> Result<ExitCode, String> {
    let model = &arguments.model;
    let environment = Environment::new(model.threads, model.verbose)?;
    let mut options = model.session_options();
    let on_gpu = launches::prepare(&mut options);
    let artifact = match is_artifact(&model.path) {
        true => Some(ArtifactFacts::new(&environment, &model.path, &options)?),
        false => None,
    };
    if let Some(artifact) = artifact.as_ref().filter(|artifact| artifact.verdict == Verdict::Unfit) {
        artifact.print_alone(arguments.json);
        return Ok(ExitCode::from(1));
    }
    let session = Session::open(&environment, &model.path, &options)?;
    let opened = text::memory();
    let (mut ran, mut launches) = (None, None);
    let must_run = arguments.run || pictures::are_wanted(arguments);
    if must_run || on_gpu {
        let done = run_once(&session, arguments);
        match &done {
            Err(reason) if must_run => return Err(reason.clone()),
            _ => ran = arguments.run.then(text::memory).flatten(),
        }
        launches = on_gpu.then(|| done.and_then(|()| launches::count(&session.profile()?)));
    }
    let placement = session.placement()?;
    let gpu = if placement.iter().any(|node| node.provider == "hip") { gpu_number(&options) } else { None };
    pictures::write(&environment, &session, arguments, gpu)?;
    let gpu_memory =
        gpu.filter(|_| arguments.run).map(|device| environment.memory_summary(device)).transpose()?;
    let facts = Facts {
        path: model.path.display().to_string(),
        metadata: session.metadata()?,
        placement,
        counters: session.load_counters()?,
        session: &session,
        artifact,
        opened,
        ran,
        launches,
        gpu_memory,
    };
    if arguments.json {
        println!("{:#}", to_json(&facts))
    } else {
        print(&facts, arguments.nodes)
    }
    Ok(ExitCode::SUCCESS)
}

/// The number of the GPU that nodes run on; `None` when there is none.
fn gpu_number(options: &Options) -> Option<usize> {
    let provider = options.providers.iter().find(|provider| !launches::is_cpu(&provider.name))?;
    let option = provider.options.iter().find(|(key, _)| key == "device_id");
    option.map_or(Some(0), |(_, number)| number.parse().ok())
}

/// Runs on made-up inputs.
fn run_once(session: &Session, arguments: &InfoArguments) -> Result<(), String> {
    let made_up = InputArguments { files: Vec::new(), generate: true, seed: 0 };
    let inputs = gather(&made_up, session.inputs(), &arguments.model.dims(), true, &[])?;
    Ok(session.execute(&session.bind(&inputs)?).map(|_| ())?)
}

fn print(facts: &Facts, nodes: bool) {
    let metadata = &facts.metadata;
    println!("{}", facts.path);
    let opsets: Vec<String> = metadata
        .opsets
        .iter()
        .map(|(domain, version)| format!("{} {version}", domain_name(domain)))
        .collect();
    let maker = format!("{} {}", metadata.producer, metadata.producer_version);
    let version = (metadata.model_version != 0).then(|| metadata.model_version.to_string());
    let mut rows = vec![
        row(&["made by", maker.trim()]),
        row(&["graph", &metadata.graph]),
        row(&["version", &version.unwrap_or_default()]),
        row(&["about", &metadata.description]),
        row(&["IR version", &metadata.ir_version.to_string()]),
        row(&["operator sets", &opsets.join(", ")]),
    ];
    rows.extend(metadata.properties.iter().map(|(key, value)| row(&[key, value])));
    rows.retain(|row| !row[1].is_empty());
    print!("{}", text::table(&rows, &[]));

    if let Some(artifact) = &facts.artifact {
        artifact.print();
    }
    for (title, ports) in [("inputs", facts.session.inputs()), ("outputs", facts.session.outputs())] {
        println!("{title}");
        let rows: Vec<_> = ports.iter().map(|port| row(&[&port.name, &port.describe()])).collect();
        print!("{}", text::table(&rows, &[]));
    }

    println!("{} nodes after optimisation", facts.placement.len());
    let rows: Vec<_> =
        operators(&facts.placement).iter().map(|(name, count)| row(&[&count.to_string(), name])).collect();
    print!("{}", text::table(&rows, &[0]));

    println!("where they run");
    if nodes {
        let rows: Vec<_> =
            facts.placement.iter().map(|p| row(&[&p.node, &p.operator, &p.provider, &p.reason])).collect();
        print!("{}", text::table(&rows, &[]));
    } else {
        let rows: Vec<_> = places(&facts.placement)
            .iter()
            .map(|((provider, reason), count)| row(&[&count.to_string(), provider, reason]))
            .collect();
        print!("{}", text::table(&rows, &[0]));
    }

    if let Some(launches) = &facts.launches {
        launches::print(launches);
    }

    println!("weights and memory");
    let counters = &facts.counters;
    let copied = format!("{} in {} weights", text::bytes(counters.copied), counters.copied_weights);
    let mut rows = vec![
        row(&["mapped from files", &text::bytes(counters.mapped)]),
        row(&["read from files", &text::bytes(counters.read)]),
        row(&["copied to align or unpack", &copied]),
        row(&["packed for kernels", &text::bytes(counters.packed)]),
    ];
    for (when, memory) in [("after opening", facts.opened), ("after a run", facts.ran)] {
        if let Some((anonymous, peak)) = memory {
            rows.push(row(&[&format!("memory {when}"), &text::bytes(anonymous)]));
            rows.push(row(&[&format!("peak {when}, with mapped files"), &text::bytes(peak)]));
        }
    }
    print!("{}", text::table(&rows, &[]));
    if let Some(summary) = &facts.gpu_memory {
        print!("{summary}");
    }
}

fn to_json(facts: &Facts) -> Json {
    let metadata = &facts.metadata;
    let ports = |ports: &[Port]| -> Json {
        ports.iter().map(|port| json!({"name": port.name, "type": port.describe()})).collect()
    };
    let memory = |memory: Option<(u64, u64)>| {
        memory.map(|(anonymous, peak)| json!({"anonymous_bytes": anonymous, "peak_resident_bytes": peak}))
    };
    let operators: serde_json::Map<_, _> =
        operators(&facts.placement).into_iter().map(|(name, count)| (name, json!(count))).collect();
    let opsets: serde_json::Map<_, _> = metadata
        .opsets
        .iter()
        .map(|(domain, version)| (domain_name(domain).to_owned(), json!(version)))
        .collect();
    let properties: serde_json::Map<_, _> =
        metadata.properties.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    let nodes: Json = facts
        .placement
        .iter()
        .map(|p| json!({"node": p.node, "operator": p.operator, "provider": p.provider, "reason": p.reason}))
        .collect();
    json!({
        "artifact": facts.artifact.as_ref().map(ArtifactFacts::to_json),
        "model": facts.path,
        "producer": metadata.producer,
        "producer_version": metadata.producer_version,
        "graph": metadata.graph,
        "description": metadata.description,
        "ir_version": metadata.ir_version,
        "model_version": metadata.model_version,
        "operator_sets": opsets,
        "properties": properties,
        "inputs": ports(facts.session.inputs()),
        "outputs": ports(facts.session.outputs()),
        "operators": operators,
        "nodes": nodes,
        "gpu_launches": facts.launches.as_ref().map(launches::to_json),
        "weights": {
            "mapped_bytes": facts.counters.mapped,
            "read_bytes": facts.counters.read,
            "copied_bytes": facts.counters.copied,
            "copied_weights": facts.counters.copied_weights,
            "packed_bytes": facts.counters.packed,
        },
        "memory_after_opening": memory(facts.opened),
        "memory_after_run": memory(facts.ran),
    })
}

/// How often each operator occurs, the most frequent first.
fn operators(placement: &[Placement]) -> Vec<(String, usize)> {
    let mut counts = BTreeMap::new();
    for node in placement {
        *counts.entry(node.operator.clone()).or_insert(0) += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

/// How many nodes each provider runs, by the reason for it.
fn places(placement: &[Placement]) -> BTreeMap<(&str, &str), usize> {
    let mut counts = BTreeMap::new();
    for node in placement {
        *counts.entry((node.provider.as_str(), node.reason.as_str())).or_insert(0) += 1;
    }
    counts
}

fn domain_name(domain: &str) -> &str {
    if domain.is_empty() { "ai.onnx" } else { domain }
}

fn row(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}
