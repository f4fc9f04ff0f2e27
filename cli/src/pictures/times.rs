//! How long each node took, from a profile.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value as Json;

/// Microseconds of one run of each node, by its name.
#[derive(Debug, Default)]
pub struct Times(HashMap<String, f64>);

impl Times {
    /// From a Chrome trace, as `rukh bench --trace` and `rukh_session_profile` give it.
    pub fn read(path: &Path) -> Result<Times, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Times::parse(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    fn parse(text: &str) -> Result<Times, String> {
        let trace: Json = serde_json::from_str(text).map_err(|e| format!("the profile is no JSON: {e}"))?;
        let mut sums: HashMap<String, (f64, u32)> = HashMap::new();
        for event in trace.as_array().into_iter().flatten().filter(|event| event["cat"] == "node") {
            if let (Some(name), Some(duration)) = (event["name"].as_str(), event["dur"].as_f64()) {
                let sum = sums.entry(name.to_owned()).or_default();
                *sum = (sum.0 + duration, sum.1 + 1);
            }
        }
        if sums.is_empty() {
            return Err(
                "the profile has no times of nodes; record one with rukh bench MODEL --trace FILE".to_owned()
            );
        }
        Ok(Times(sums.into_iter().map(|(name, (sum, count))| (name, sum / f64::from(count))).collect()))
    }

    /// Microseconds of a node.
    pub fn of(&self, node: &str) -> Option<f64> {
        self.0.get(node).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_means_of_runs() {
        let times = Times::parse(
            r#"[{"cat":"node","name":"a","dur":2.0},{"cat":"node","name":"a","dur":4.0},{"cat":"launch","name":"b","dur":1}]"#,
        )
        .unwrap();
        assert_eq!((times.of("a"), times.of("b")), (Some(3.0), None));
        assert!(Times::parse("[]").unwrap_err().contains("--trace"));
        assert!(Times::parse("x").is_err());
    }
}
