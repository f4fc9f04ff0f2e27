//! Kernels on a device, loaded when a plan first needs them.
//!
//! On AMD a family is one code object. NVIDIA's driver translates PTX, which takes 0.2 to 0.8 s a kernel when it meets one
//! for the first time, one after the other; there each kernel is loaded by itself, without the others of its family.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::CStr;
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
    /// PTX of families of which a kernel was needed: to decode it again takes some ten milliseconds.
    texts: HashMap<&'static str, Vec<u8>>,
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
        let Loaded { modules, texts } = &mut *loaded;
        let apart = device.runtime.platform == Platform::Nvidia;
        let module = match modules.entry((family, if apart { name } else { c"" })) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let image = match texts.entry(family) {
                    _ if !apart => code::image(family, target)?,
                    Entry::Occupied(text) => alone(text.get(), name),
                    Entry::Vacant(text) => alone(text.insert(code::image(family, target)?), name),
                };
                entry.insert(Module::load(device, &image, dependent)?)
            }
        };
        Ok(module.function(name, lds)?)
    }
}

/// PTX without the kernels that have other names. What they call or share is small, and stays.
fn alone(ptx: &[u8], name: &CStr) -> Vec<u8> {
    const ENTRY: &[u8] = b".visible .entry ";
    let (mut text, mut rest) = (Vec::new(), ptx);
    while let Some(at) = rest.windows(ENTRY.len()).position(|part| part == ENTRY) {
        let (before, kernel) = rest.split_at(at);
        let (kernel, after) = kernel.split_at(end_of_body(kernel));
        text.extend_from_slice(before);
        if kernel[ENTRY.len()..].strip_prefix(name.to_bytes()).is_some_and(|rest| rest.starts_with(b"(")) {
            text.extend_from_slice(kernel);
        }
        rest = after;
    }
    text.extend_from_slice(rest);
    text
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
        assert_eq!(alone(ptx.as_bytes(), c"one_more"), wanted.as_bytes());
        assert!(find_entries(&alone(ptx.as_bytes(), c"one")) == ["one"]);
        assert!(find_entries(&alone(ptx.as_bytes(), c"on")).is_empty());
    }

    /// Every kernel that the build embedded for NVIDIA is found by its name, and alone.
    #[test]
    fn each_embedded_kernel_is_found_alone() {
        for target in code::kernel_targets().iter().filter(|target| target.starts_with("sm_")) {
            for family in code::families_of(target) {
                let image = code::image(family, target).unwrap();
                for name in find_entries(&image) {
                    let kernel = std::ffi::CString::new(name.as_str()).unwrap();
                    let text = alone(&image, &kernel);
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
