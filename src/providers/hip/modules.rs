//! Kernels on a device, loaded when a plan first needs them.
//!
//! On AMD a family is one code object. NVIDIA's driver translates PTX when it meets it for the first time, which takes some tenths
//! of a second a kernel, one after the other; there each kernel is loaded by itself, without the others of its family.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::CStr;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;
use crate::hip::{Device, Function, Module, Platform};

use super::code;

/// What is loaded on a device.
#[derive(Default)]
pub(crate) struct Modules(Mutex<Loaded>);

#[derive(Default)]
struct Loaded {
    /// By family, and where kernels are apart by kernel.
    modules: HashMap<(&'static str, &'static CStr), Module>,
    /// Families of which a kernel was needed: to decode one again takes some ten milliseconds.
    families: HashMap<&'static str, Family>,
}

impl Modules {
    /// A kernel, by family and name, of the code for `target`. `lds`: the dynamic workgroup memory in bytes that launches
    /// will ask for; `dependent`: as for `Module::load`.
    pub(super) fn function(
        &self,
        device: &Arc<Device>,
        target: &'static str,
        (family, name): (&'static str, &'static CStr),
        lds: u32,
        dependent: bool,
    ) -> Result<Function> {
        let mut loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Loaded { modules, families } = &mut *loaded;
        let apart = device.runtime.platform == Platform::Nvidia;
        let module = match modules.entry((family, if apart { name } else { c"" })) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let image = match families.entry(family) {
                    _ if !apart => code::image(family, target)?,
                    Entry::Occupied(family) => family.get().alone(name),
                    Entry::Vacant(known) => {
                        known.insert(Family::new(code::image(family, target)?)).alone(name)
                    }
                };
                entry.insert(Module::load(device, &image, dependent)?)
            }
        };
        Ok(module.function(name, lds)?)
    }
}

/// PTX of several kernels.
struct Family {
    text: Vec<u8>,
    /// Where each kernel stands.
    kernels: Vec<Range<usize>>,
}

impl Family {
    const ENTRY: &[u8] = b".visible .entry ";

    fn new(text: Vec<u8>) -> Family {
        let mut kernels: Vec<Range<usize>> = Vec::new();
        let mut from = 0;
        while let Some(at) = text[from..].windows(Self::ENTRY.len()).position(|part| part == Self::ENTRY) {
            let start = from + at;
            from = start + end_of_body(&text[start..]);
            kernels.push(start..from);
        }
        Family { text, kernels }
    }

    /// Without the kernels that have other names. What they call or share is small, and stays.
    fn alone(&self, name: &CStr) -> Vec<u8> {
        let (mut alone, mut from) = (Vec::new(), 0);
        for kernel in &self.kernels {
            alone.extend_from_slice(&self.text[from..kernel.start]);
            let text = &self.text[kernel.clone()];
            let rest = text[Self::ENTRY.len()..].strip_prefix(name.to_bytes());
            if rest.is_some_and(|rest| rest.starts_with(b"(")) {
                alone.extend_from_slice(text);
            }
            from = kernel.end;
        }
        alone.extend_from_slice(&self.text[from..]);
        alone
    }
}

/// Where the first block in braces ends.
fn end_of_body(kernel: &[u8]) -> usize {
    let mut depth = 0;
    let closes = |byte: &u8| {
        depth += i32::from(*byte == b'{') - i32::from(*byte == b'}');
        *byte == b'}' && depth == 0
    };
    kernel.iter().position(closes).map_or(kernel.len(), |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_alone_keeps_what_it_calls() {
        let ptx = ".version 7.8\n.func f(\n)\n;\n.shared .u32 s;\n.visible .entry one(\n.param .b64 p\n)\n{\nret;\n}\n\
                   .visible .entry one_more(\n)\n{\n{\nret;\n}\n}\n.func f(\n)\n{\nret;\n}\n\0";
        let wanted = ".version 7.8\n.func f(\n)\n;\n.shared .u32 s;\n\n.visible .entry one_more(\n)\n{\n{\nret;\n}\n}\n\
                      .func f(\n)\n{\nret;\n}\n\0";
        let family = Family::new(ptx.into());
        assert_eq!(family.alone(c"one_more"), wanted.as_bytes());
        assert!(find_entries(&family.alone(c"one")) == ["one"]);
        assert!(find_entries(&family.alone(c"on")).is_empty());
    }

    /// Every kernel that the build embedded for NVIDIA is found by its name, and alone.
    #[test]
    fn each_embedded_kernel_is_found_alone() {
        for target in code::kernel_targets().iter().filter(|target| target.starts_with("sm_")) {
            for family in code::families_of(target) {
                let image = code::image(family, target).unwrap();
                let names = find_entries(&image);
                let all = Family::new(image);
                for name in names {
                    let kernel = std::ffi::CString::new(name.as_str()).unwrap();
                    let text = all.alone(&kernel);
                    assert_eq!(find_entries(&text), [name.as_str()], "{family} for {target}");
                    assert_eq!(text.last(), Some(&0));
                    // Nothing of other bodies is left.
                    let least = text.iter().scan(0, |depth, byte| {
                        *depth += i32::from(*byte == b'{') - i32::from(*byte == b'}');
                        Some(*depth)
                    });
                    assert_eq!(least.min(), Some(0), "{name} of {family} for {target}");
                }
            }
        }
    }

    fn find_entries(ptx: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(ptx).into_owned();
        text.split(".entry ")
            .skip(1)
            .filter_map(|kernel| Some(kernel.split_once('(')?.0.to_owned()))
            .collect()
    }
}
