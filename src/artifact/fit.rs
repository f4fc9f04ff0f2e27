//! Which program of an artifact suits a device, and how well.

use std::collections::BTreeMap;

use super::REVISION;
use super::manifest::{Kind, Manifest, ProgramEntry};

/// What a session asks for.
pub(crate) struct Request<'a> {
    /// The machine code of the GPU; `None`: the CPU.
    pub(crate) gpu: Option<&'a str>,
    /// Of this processor: what layouts of packed weights depend on.
    pub(crate) instructions: &'a str,
    /// Threads that work in a session.
    pub(crate) threads: usize,
    /// Symbolic dimensions that are fixed.
    pub(crate) dimensions: &'a BTreeMap<String, usize>,
    /// What floats compute in, and how far the graph is rewritten, where an option asks for it.
    pub(crate) precision: Option<&'a str>,
    pub(crate) optimization: Option<&'a str>,
}

/// How well an artifact suits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    Optimal,
    /// It works, and compiling it again would make it better; why.
    Works(String),
    /// It cannot be used; why.
    Unfit(String),
}

/// A verdict, and the program it is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fit {
    pub(crate) verdict: Verdict,
    pub(crate) program: usize,
}

impl Manifest {
    /// The program that suits best.
    pub(crate) fn fit(&self, request: &Request<'_>) -> Fit {
        let kind = if request.gpu.is_some() { Kind::Gpu } else { Kind::Cpu };
        if self.revision != REVISION {
            let reason = format!(
                "it was made by version {} of the library (programs of revision {}); this one, version {}, reads revision {REVISION}; compile it again",
                self.library,
                self.revision,
                env!("CARGO_PKG_VERSION")
            );
            return Fit { verdict: Verdict::Unfit(reason), program: 0 };
        }
        let rank = |verdict: &Verdict| match verdict {
            Verdict::Optimal => 0,
            Verdict::Works(_) => 1,
            Verdict::Unfit(_) => 2,
        };
        let own = self.programs.iter().enumerate().filter(|(_, program)| program.kind() == Some(kind));
        let fits =
            own.map(|(number, program)| Fit { verdict: self.judge(program, request), program: number });
        fits.min_by_key(|fit| rank(&fit.verdict)).unwrap_or_else(|| {
            let wanted = request.gpu.unwrap_or("the CPU");
            let reason = format!(
                "it holds no program for {wanted}; it was compiled for {}",
                self.targets().join(", ")
            );
            Fit { verdict: Verdict::Unfit(reason), program: 0 }
        })
    }

    /// What it was compiled for: `cpu`, and the GPUs by machine code.
    pub(crate) fn targets(&self) -> Vec<String> {
        let mut targets: Vec<String> = Vec::new();
        for program in &self.programs {
            let own = match program.kind() {
                Some(Kind::Gpu) => program.targets.clone(),
                _ => vec![program.kind.clone()],
            };
            own.into_iter().for_each(|target| {
                if !targets.contains(&target) {
                    targets.push(target);
                }
            });
        }
        targets
    }

    fn judge(&self, program: &ProgramEntry, request: &Request<'_>) -> Verdict {
        let differs = |what: &str, own: &str, wanted: Option<&str>| {
            let wanted = wanted.filter(|wanted| *wanted != own)?;
            Some(Verdict::Unfit(format!(
                "it was compiled with {what} \"{own}\", and the options ask for \"{wanted}\"; compile it again, or leave the option"
            )))
        };
        let option = differs("precision", &program.precision, request.precision)
            .or_else(|| differs("optimization", &program.optimization, request.optimization));
        if let Some(unfit) = option {
            return unfit;
        }
        let fixed = program.dimensions.iter().map(|d| (d.name.as_str(), d.value));
        let asked = request.dimensions.iter().map(|(name, &size)| (name.as_str(), size as i64));
        let mut remarks = Vec::new();
        match (fixed.clone().eq(asked.clone()), program.dimensions.is_empty()) {
            (true, _) => {}
            (false, true) => remarks.push("it has no program for these dimensions alone".to_owned()),
            (false, false) => {
                let fixed: Vec<String> = fixed.map(|(name, size)| format!("{name}={size}")).collect();
                return Verdict::Unfit(format!(
                    "its program is for {} alone; set these dimensions, or compile it again",
                    fixed.join(", ")
                ));
            }
        }
        match request.gpu {
            Some(gpu) if !program.targets.iter().any(|target| target == gpu) => {
                remarks.push(format!(
                    "{gpu} is not among the GPUs that it was compiled for ({})",
                    program.targets.join(", ")
                ));
            }
            Some(_) => {}
            None if program.instructions != request.instructions => {
                let what = format!(
                    "its weights are packed for processors with {}, and this one has {}",
                    program.instructions, request.instructions
                );
                if self.weights == "used" {
                    return Verdict::Unfit(format!(
                        "{what}; compile it on such a machine, or with weights=\"all\""
                    ));
                }
                remarks.push(format!("{what}, so that they are packed anew"));
            }
            None if program.threads as usize != request.threads => {
                remarks.push(format!(
                    "its weights are packed for {} threads, and {} work here",
                    program.threads, request.threads
                ));
            }
            None => {}
        }
        if self.library != env!("CARGO_PKG_VERSION") {
            remarks.push(format!(
                "it was made by version {} of the library, and this is {}",
                self.library,
                env!("CARGO_PKG_VERSION")
            ));
        }
        if remarks.is_empty() { Verdict::Optimal } else { Verdict::Works(remarks.join("; ")) }
    }
}
