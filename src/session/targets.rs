//! What a model can be compiled for, by name.

use crate::artifact::Kind;
use crate::error::{Result, excerpt, fail};
use crate::hip::targets;

use super::devices::devices;
use super::provider_options::ProviderKind;

/// The CPU, or GPUs, or both.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Targets {
    pub(crate) cpu: bool,
    /// By machine code.
    pub(crate) gpus: Vec<String>,
}

impl Targets {
    /// Reads a list with commas: `cpu`, machine codes, `native` (what this machine has) and `all`.
    pub(crate) fn parse(list: &str) -> Result<Self> {
        let mut found = Targets::default();
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            found.add(name)?;
        }
        if !found.cpu && found.gpus.is_empty() {
            fail!(
                InvalidArgument,
                "no target was given; allowed are cpu, native, all, and machine codes as gfx1100 or sm_90"
            );
        }
        Ok(found)
    }

    /// The programs that these need: one serves all GPUs.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let kinds = [(self.cpu, Kind::Cpu), (!self.gpus.is_empty(), Kind::Gpu)];
        kinds.into_iter().filter(|(wanted, _)| *wanted).map(|(_, kind)| kind).collect()
    }

    /// As `parse` takes them.
    pub(crate) fn list(&self) -> String {
        let cpu = self.cpu.then_some("cpu");
        cpu.into_iter().chain(self.gpus.iter().map(String::as_str)).collect::<Vec<_>>().join(", ")
    }

    fn add(&mut self, name: &str) -> Result<()> {
        match name {
            "cpu" => self.cpu = true,
            "all" => {
                self.cpu = true;
                targets::names().for_each(|name| self.add_gpu(name));
            }
            "native" => {
                self.cpu = true;
                let gpus = devices().into_iter().filter(|device| device.provider == ProviderKind::Hip);
                gpus.for_each(|device| self.add_gpu(plain(&device.arch)));
            }
            name if targets::find(plain(name)).is_some() => self.add_gpu(plain(name)),
            name => fail!(
                InvalidArgument,
                "target \"{}\" is not known; known are cpu, native, all, {}",
                excerpt(name),
                targets::names().collect::<Vec<_>>().join(", ")
            ),
        }
        Ok(())
    }

    fn add_gpu(&mut self, name: &str) {
        if !self.gpus.iter().any(|known| known == name) {
            self.gpus.push(name.to_owned());
        }
    }
}

/// A machine code without its features, as `gfx90a` of `gfx90a:sramecc+:xnack-`.
fn plain(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_once_and_wrong_ones_told() {
        let targets = Targets::parse("gfx1100, cpu,gfx90a:xnack-,gfx1100").unwrap();
        assert_eq!(targets, Targets { cpu: true, gpus: vec!["gfx1100".to_owned(), "gfx90a".to_owned()] });
        assert_eq!(targets.kinds(), [Kind::Cpu, Kind::Gpu]);
        assert_eq!(targets.list(), "cpu, gfx1100, gfx90a");
        assert_eq!(Targets::parse("all").unwrap().gpus.len(), targets::names().count());
        for (list, part) in
            [("", "no target was given"), ("gfx1", "\"gfx1\" is not known; known are cpu, native")]
        {
            assert!(Targets::parse(list).unwrap_err().message.contains(part));
        }
    }
}
