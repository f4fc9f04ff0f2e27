//! What `rukh info` tells of a compiled model.

use std::path::Path;

use serde_json::{Value as Json, json};

use crate::api::{Artifact, Environment, Options, Verdict};
use crate::text;

pub(super) struct ArtifactFacts {
    pub(super) verdict: Verdict,
    reason: String,
    info: Json,
}

impl ArtifactFacts {
    pub(super) fn new(environment: &Environment, path: &Path, options: &Options) -> Result<Self, String> {
        let artifact = Artifact::open(environment, path)?;
        let (verdict, reason) = artifact.check(options)?;
        let info =
            serde_json::from_str(&artifact.info()?).map_err(|e| format!("the library's answer: {e}"))?;
        Ok(ArtifactFacts { verdict, reason, info })
    }

    pub(super) fn to_json(&self) -> Json {
        json!({ "verdict": self.word(), "reason": self.reason, "holds": self.info })
    }

    /// For one that cannot be opened here.
    pub(super) fn print_alone(&self, as_json: bool) {
        if as_json {
            println!("{:#}", json!({ "artifact": self.to_json() }));
        } else {
            self.print();
        }
    }

    pub(super) fn print(&self) {
        println!("compiled");
        let separator = if self.reason.is_empty() { "" } else { ": " };
        let mut rows = vec![
            vec!["verdict".to_owned(), format!("{}{separator}{}", self.word(), self.reason)],
            vec!["made by".to_owned(), format!("rukh {}", text_of(&self.info["library"]))],
            vec!["weights".to_owned(), text_of(&self.info["weights"])],
        ];
        for program in list(&self.info["programs"]) {
            rows.push(vec!["program".to_owned(), describe(program)]);
        }
        for tuning in list(&self.info["tuning"]) {
            let (target, device) = (text_of(&tuning["target"]), text_of(&tuning["device"]));
            let results = tuning["results"].as_u64().unwrap_or(0);
            rows.push(vec!["tuning".to_owned(), format!("{results} results for {target}, {device}")]);
        }
        for part in list(&self.info["parts"]) {
            let size = text::bytes(part["bytes"].as_u64().unwrap_or(0));
            rows.push(vec!["part".to_owned(), format!("{}, {size}", text_of(&part["name"]))]);
        }
        print!("{}", text::table(&rows, &[]));
    }

    fn word(&self) -> &'static str {
        match self.verdict {
            Verdict::Optimal => "optimal",
            Verdict::Works => "works",
            Verdict::Unfit => "not for this device",
        }
    }
}

fn describe(program: &Json) -> String {
    let mut words = match program["kind"].as_str() {
        Some("gpu") => list(&program["targets"]).map(text_of).collect(),
        _ => vec![text_of(&program["instructions"]), format!("{} threads", program["threads"])],
    };
    words.extend([
        text_of(&program["precision"]),
        format!("optimization {}", text_of(&program["optimization"])),
    ]);
    let dimensions = program["dimensions"].as_object().into_iter().flatten();
    words.extend(dimensions.map(|(name, size)| format!("{name}={size}")));
    if let Some(packed @ 1..) = program["packed_bytes"].as_u64() {
        words.push(format!("{} packed", text::bytes(packed)));
    }
    words.join(", ")
}

fn list(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().into_iter().flatten()
}

fn text_of(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
