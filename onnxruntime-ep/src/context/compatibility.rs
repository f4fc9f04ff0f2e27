//! Whether a model with compiled parts suits a device: what ONNX Runtime keeps of it in the model, and asks about.

use serde_json::{Value, json};

use crate::error::{Code, Error, Result};
use crate::library::report;

/// The key of the object that the text is.
const MARK: &str = "rukh";

/// What parts were compiled for, and by which library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    library: String,
    revision: u64,
    /// `cpu`, and GPUs by machine code.
    targets: Vec<String>,
    /// What weights for the CPU are packed for; "" where there is no program for it.
    instructions: String,
    weights: String,
}

/// What a part would run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Here {
    Cpu,
    /// A GPU, by its machine code.
    Gpu(String),
}

/// ONNX Runtime's verdicts (`OrtCompiledModelCompatibility`), from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub(crate) enum Verdict {
    NotApplicable = 0,
    Optimal = 1,
    PreferRecompilation = 2,
    Unsupported = 3,
}

/// The text that ONNX Runtime keeps in a model.
pub(crate) fn summary(facts: &Facts) -> String {
    json!({ MARK: {
        "library": facts.library,
        "revision": facts.revision,
        "targets": facts.targets,
        "instructions": facts.instructions,
        "weights": facts.weights,
    }})
    .to_string()
}

/// What the text says about a device of this machine.
pub(crate) fn judge(text: &str, here: &Here) -> Result<Verdict> {
    let Some(facts) = Facts::of_summary(text) else { return Ok(Verdict::NotApplicable) };
    Ok(facts.judge(here, &Library::own()?))
}

/// What this library reads and packs.
struct Library {
    version: String,
    revision: u64,
    instructions: String,
}

impl Library {
    fn own() -> Result<Library> {
        let report = object(&report()?)?;
        Ok(Library {
            version: string(&report["version"]),
            revision: report["artifact_revision"].as_u64().unwrap_or(0),
            instructions: string(&report["instructions"]),
        })
    }
}

impl Facts {
    /// From what librukh tells of an artifact.
    pub(crate) fn of_artifact(info: &str) -> Result<Facts> {
        let info = object(info)?;
        let programs = info["programs"].as_array().map(Vec::as_slice).unwrap_or_default();
        let cpu = programs.iter().find(|program| program["kind"] == "cpu");
        Ok(Facts {
            library: string(&info["library"]),
            revision: info["revision"].as_u64().unwrap_or(0),
            targets: strings(&info["targets"]),
            instructions: cpu.map_or(String::new(), |program| string(&program["instructions"])),
            weights: string(&info["weights"]),
        })
    }

    fn of_summary(text: &str) -> Option<Facts> {
        let value: Value = serde_json::from_str(text).ok()?;
        let facts = value.get(MARK)?;
        Some(Facts {
            library: string(&facts["library"]),
            revision: facts["revision"].as_u64()?,
            targets: strings(&facts["targets"]),
            instructions: string(&facts["instructions"]),
            weights: string(&facts["weights"]),
        })
    }

    /// The targets for people, and for the node's attribute.
    pub(crate) fn architecture(&self) -> String {
        self.targets.join(",")
    }

    /// As librukh judges an artifact. What options of a session may be against is not known here, nor its threads.
    fn judge(&self, here: &Here, library: &Library) -> Verdict {
        if self.revision != library.revision {
            return Verdict::Unsupported;
        }
        let has = |target: &str| self.targets.iter().any(|it| it == target);
        let device = match here {
            Here::Cpu if !has("cpu") => Verdict::Unsupported,
            Here::Cpu if self.instructions == library.instructions => Verdict::Optimal,
            Here::Cpu if self.weights == "used" => Verdict::Unsupported,
            Here::Cpu => Verdict::PreferRecompilation,
            // A machine code may have features behind it, as gfx90a:xnack-.
            Here::Gpu(code) if has(code.split(':').next().unwrap_or(code)) => Verdict::Optimal,
            Here::Gpu(_) if self.targets.iter().any(|it| it != "cpu") => Verdict::PreferRecompilation,
            Here::Gpu(_) => Verdict::Unsupported,
        };
        let version =
            if self.library == library.version { Verdict::Optimal } else { Verdict::PreferRecompilation };
        device.max(version)
    }
}

fn object(text: &str) -> Result<Value> {
    serde_json::from_str(text)
        .map_err(|e| Error::new(Code::Fail, format!("librukh gave a text that is no JSON ({e}): {text}")))
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().map(Vec::as_slice).unwrap_or_default().iter().map(string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(targets: &[&str], weights: &str) -> Facts {
        Facts {
            library: "1.0.0".to_owned(),
            revision: 7,
            targets: targets.iter().map(|target| (*target).to_owned()).collect(),
            instructions: "avx512".to_owned(),
            weights: weights.to_owned(),
        }
    }

    #[test]
    fn verdicts_are_those_of_librukh() {
        use Verdict::*;
        let gpu = |code: &str| Here::Gpu(code.to_owned());
        let library = |version: &str, revision, instructions: &str| Library {
            version: version.to_owned(),
            revision,
            instructions: instructions.to_owned(),
        };
        let same = || library("1.0.0", 7, "avx512");
        for (targets, weights, here, library, expected) in [
            (&["cpu"][..], "used", Here::Cpu, same(), Optimal),
            (&["cpu"], "used", Here::Cpu, library("1.0.0", 7, "avx2"), Unsupported),
            (&["cpu"], "all", Here::Cpu, library("1.0.0", 7, "avx2"), PreferRecompilation),
            (&["cpu"], "used", Here::Cpu, library("1.0.1", 7, "avx512"), PreferRecompilation),
            (&["cpu"], "all", Here::Cpu, library("1.0.0", 8, "avx512"), Unsupported),
            (&["gfx1100"], "used", Here::Cpu, same(), Unsupported),
            (&["cpu", "gfx1100"], "used", gpu("gfx1100"), same(), Optimal),
            (&["gfx90a"], "used", gpu("gfx90a:xnack-"), same(), Optimal),
            (&["gfx1100"], "used", gpu("gfx90a"), same(), PreferRecompilation),
            (&["cpu"], "used", gpu("gfx90a"), same(), Unsupported),
        ] {
            let facts = facts(targets, weights);
            assert_eq!(facts.judge(&here, &library), expected, "{facts:?} on {here:?}");
        }
    }

    #[test]
    fn what_is_kept_in_a_model_is_read_again() {
        let facts = facts(&["cpu", "gfx1100"], "used");
        assert_eq!(Facts::of_summary(&summary(&facts)), Some(facts));
        for foreign in ["", "another;version=1", "{}", "{\"rukh\":1}", "[1]"] {
            assert_eq!(judge(foreign, &Here::Cpu).unwrap(), Verdict::NotApplicable, "{foreign}");
        }
    }

    #[test]
    fn facts_of_an_artifact_are_found() {
        let info = r#"{"library":"1.0.0","revision":7,"weights":"used","targets":["gfx1100","cpu"],"programs":[
            {"kind":"gpu","instructions":""},{"kind":"cpu","instructions":"avx512"}]}"#;
        let found = Facts::of_artifact(info).unwrap();
        assert_eq!(found, facts(&["gfx1100", "cpu"], "used"));
        assert!(Facts::of_artifact("no").is_err());
        // librukh says of itself what is compared.
        let own = Library::own().unwrap();
        assert!(!own.version.is_empty() && own.revision > 0 && !own.instructions.is_empty());
    }
}
