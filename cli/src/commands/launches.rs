//! How many launches a run gives to a GPU, from the profile of one run.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::api::Options;
use crate::text;

/// Launches of a run by operator, the most first.
pub struct Launches(Vec<(String, usize)>);

/// Lets sessions record what counting needs, when nodes may run on a GPU; tells whether they may.
pub fn prepare(options: &mut Options) -> bool {
    let may = options.providers.iter().any(|provider| !is_cpu(&provider.name));
    if may {
        options.settings.push(("profiling".to_owned(), "1".to_owned()));
    }
    may
}

/// Whether a provider of this name is the CPU.
pub fn is_cpu(name: &str) -> bool {
    matches!(name, "cpu" | "CPUExecutionProvider")
}

/// Sums the launches of a trace.
pub fn count(profile: &str) -> Result<Launches, String> {
    let trace: Json = serde_json::from_str(profile).map_err(|e| format!("the profile is no JSON: {e}"))?;
    let mut sums: BTreeMap<&str, usize> = BTreeMap::new();
    for event in trace.as_array().into_iter().flatten().filter(|event| event["cat"] == "launch") {
        let launches = event["args"]["launches"].as_u64().unwrap_or(0);
        *sums.entry(event["args"]["op"].as_str().unwrap_or("?")).or_default() += launches as usize;
    }
    let mut sums: Vec<(String, usize)> =
        sums.into_iter().filter(|(_, n)| *n > 0).map(|(name, n)| (name.to_owned(), n)).collect();
    sums.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    Ok(Launches(sums))
}

impl Launches {
    fn total(&self) -> usize {
        self.0.iter().map(|(_, n)| n).sum()
    }
}

/// Prints them, or why they are not known.
pub fn print(launches: &Result<Launches, String>) {
    match launches {
        Ok(launches) => {
            println!("{} GPU launches in a run", launches.total());
            let rows: Vec<_> = launches.0.iter().map(|(name, n)| vec![n.to_string(), name.clone()]).collect();
            print!("{}", text::table(&rows, &[0]));
        }
        Err(reason) => println!("GPU launches in a run are not known: {reason}"),
    }
}

pub fn to_json(launches: &Result<Launches, String>) -> Json {
    match launches {
        Ok(launches) => {
            let by_operator: serde_json::Map<_, _> =
                launches.0.iter().map(|(name, n)| (name.clone(), json!(n))).collect();
            json!({"total": launches.total(), "by_operator": by_operator})
        }
        Err(reason) => json!({"reason": reason}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_are_summed_by_operator() {
        let event = |cat: &str, op: &str, launches: usize| json!({"cat": cat, "dur": 1, "args": {"op": op, "provider": "hip", "launches": launches}});
        let trace = json!([
            event("launch", "Relu", 1),
            event("launch", "MatMul", 2),
            event("launch", "MatMul", 3),
            event("launch", "Copy", 0),
            event("node", "Relu", 7),
        ]);
        let launches = count(&trace.to_string()).unwrap();
        assert_eq!(launches.0, [("MatMul".to_owned(), 5), ("Relu".to_owned(), 1)]);
        let known = json!({"total": 6, "by_operator": {"MatMul": 5, "Relu": 1}});
        assert_eq!(to_json(&Ok(launches)), known);
        assert!(count("nothing").is_err());
    }
}
