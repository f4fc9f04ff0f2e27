//! The name of the provider, which follows from the name that the library is registered with.

/// The provider's name where the registration asks for no other.
const DEFAULT: &str = "AMDGPUExecutionProvider";

/// The name that asks for the CPU.
const CPU: &str = "RukhCPUExecutionProvider";

/// Names that stand for AMD's GPUs alone.
const AMD: &[&str] = &[DEFAULT, "ROCMExecutionProvider", "MIGraphXExecutionProvider"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) provider: String,
    /// Whether the registration asks for a virtual device.
    pub(crate) is_virtual: bool,
}

impl Name {
    /// A registration name that ends in `ExecutionProvider`, but for `.virtual` behind it, is the provider's name.
    pub(crate) fn of(registered: &str) -> Name {
        let (name, is_virtual) = match registered.strip_suffix(".virtual") {
            Some(name) => (name, true),
            None => (registered, false),
        };
        let provider = if name.ends_with("ExecutionProvider") { name } else { DEFAULT };
        Name { provider: provider.to_owned(), is_virtual }
    }

    pub(crate) fn is_cpu(&self) -> bool {
        self.provider == CPU
    }

    pub(crate) fn amd_only(&self) -> bool {
        AMD.contains(&self.provider.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_registration() {
        for (registered, provider, is_virtual) in [
            ("rukh", DEFAULT, false),
            ("AMDGPU", DEFAULT, false),
            ("anything.virtual", DEFAULT, true),
            ("ROCMExecutionProvider", "ROCMExecutionProvider", false),
            ("MIGraphXExecutionProvider.virtual", "MIGraphXExecutionProvider", true),
            ("RukhExecutionProvider", "RukhExecutionProvider", false),
            (CPU, CPU, false),
            ("", DEFAULT, false),
        ] {
            assert_eq!(
                Name::of(registered),
                Name { provider: provider.to_owned(), is_virtual },
                "{registered}"
            );
        }
        assert!(Name::of(CPU).is_cpu());
        assert!(Name::of("rukh").amd_only());
        assert!(!Name::of("RukhExecutionProvider").amd_only());
    }
}
