//! For which GPUs a code object is.

use crate::isa::Target;

use super::Error;

/// The processor of a code object: a GPU, or a family that shares its code (LLVM, "User Guide for AMDGPU Backend",
/// Generic Processor Code Object).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    pub name: &'static str,
    /// GPUs besides the one of that name.
    members: &'static [&'static str],
}

/// What is said about a feature: the code runs either way, or only with it, or only without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Features {
    pub xnack: Option<bool>,
    pub sramecc: Option<bool>,
}

/// EF_AMDGPU_MACH_* (LLVM, "User Guide for AMDGPU Backend", ELF Header).
const PROCESSORS: &[(u32, &str, &[&str])] = &[
    (0x02c, "gfx900", &[]),
    (0x02d, "gfx902", &[]),
    (0x02e, "gfx904", &[]),
    (0x02f, "gfx906", &[]),
    (0x030, "gfx908", &[]),
    (0x031, "gfx909", &[]),
    (0x032, "gfx90c", &[]),
    (0x033, "gfx1010", &[]),
    (0x034, "gfx1011", &[]),
    (0x035, "gfx1012", &[]),
    (0x036, "gfx1030", &[]),
    (0x037, "gfx1031", &[]),
    (0x038, "gfx1032", &[]),
    (0x039, "gfx1033", &[]),
    (0x03d, "gfx1035", &[]),
    (0x03e, "gfx1034", &[]),
    (0x03f, "gfx90a", &[]),
    (0x040, "gfx940", &[]),
    (0x041, "gfx1100", &[]),
    (0x043, "gfx1150", &[]),
    (0x044, "gfx1103", &[]),
    (0x045, "gfx1036", &[]),
    (0x046, "gfx1101", &[]),
    (0x047, "gfx1102", &[]),
    (0x048, "gfx1200", &[]),
    (0x04a, "gfx1151", &[]),
    (0x04b, "gfx941", &[]),
    (0x04c, "gfx942", &[]),
    (0x04e, "gfx1201", &[]),
    (0x04f, "gfx950", &[]),
    (0x051, "gfx9-generic", &["gfx900", "gfx906"]),
    (0x052, "gfx10-1-generic", &[]),
    (0x053, "gfx10-3-generic", &["gfx1030"]),
    (0x054, "gfx11-generic", &["gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151"]),
    (0x055, "gfx1152", &[]),
    (0x058, "gfx1153", &[]),
    (0x059, "gfx12-generic", &["gfx1200", "gfx1201"]),
    (0x05f, "gfx9-4-generic", &["gfx942", "gfx950"]),
];

/// Features that a device can have, and how they are set here.
const DEVICE_FEATURES: &[(&str, Features)] = &[
    ("gfx900", Features { xnack: Some(false), sramecc: None }),
    ("gfx906", Features { xnack: Some(false), sramecc: Some(true) }),
    ("gfx908", Features { xnack: Some(false), sramecc: Some(true) }),
    ("gfx90a", Features { xnack: Some(false), sramecc: Some(true) }),
    ("gfx942", Features { xnack: Some(false), sramecc: Some(true) }),
    ("gfx950", Features { xnack: Some(false), sramecc: Some(true) }),
];

/// The features of a device; `None` of those that it does not have.
pub fn device_features(target: Target) -> Features {
    DEVICE_FEATURES.iter().find(|(name, _)| *name == target.name).map_or(Features::default(), |row| row.1)
}

/// A device's name with its features, as HIP's `gcnArchName` has it.
pub fn device_name(target: Target) -> String {
    format!("{}{}", target.name, device_features(target).text())
}

impl Processor {
    /// By the field EF_AMDGPU_MACH.
    pub fn find(mach: u32) -> Result<Processor, Error> {
        match PROCESSORS.iter().find(|(number, ..)| *number == mach) {
            Some(&(_, name, members)) => Ok(Processor { name, members }),
            None => Err(Error::OtherTarget(format!(
                "a code object for an unknown processor, EF_AMDGPU_MACH {mach:#x}"
            ))),
        }
    }

    /// By a name such as that of an entry of an offload bundle.
    pub(super) fn named(name: &str) -> Option<Processor> {
        let &(_, name, members) = PROCESSORS.iter().find(|(_, known, _)| *known == name)?;
        Some(Processor { name, members })
    }

    pub fn is_exactly(self, target: Target) -> bool {
        self.name == target.name
    }

    pub fn includes(self, target: Target) -> bool {
        self.is_exactly(target) || self.members.contains(&target.name)
    }

    /// An error unless a device of this target runs the code.
    pub fn check(self, features: Features, target: Target) -> Result<(), Error> {
        let device = device_features(target);
        if self.includes(target) && features.fit(device) {
            return Ok(());
        }
        Err(Error::OtherTarget(format!(
            "the code object is for {}{}, the device is {}",
            self.name,
            features.text(),
            device_name(target)
        )))
    }
}

impl Features {
    /// EF_AMDGPU_FEATURE_*_V4: bits 8 and 9 are XNACK, 10 and 11 SRAMECC. Each is 0: there is none, 1: any, 2: off, 3: on.
    pub(super) fn from_flags(flags: u32) -> Features {
        let field = |shift: u32| match flags >> shift & 3 {
            2 => Some(false),
            3 => Some(true),
            _ => None,
        };
        Features { xnack: field(8), sramecc: field(10) }
    }

    /// From a target's name: `gfx90a:sramecc+:xnack-`.
    pub(super) fn from_name(name: &str) -> Features {
        let find = |feature: &str| {
            name.split(':').skip(1).find_map(|part| match part.strip_prefix(feature)? {
                "+" => Some(true),
                "-" => Some(false),
                _ => None,
            })
        };
        Features { xnack: find("xnack"), sramecc: find("sramecc") }
    }

    /// Whether code with these demands runs on a device that is set so.
    pub(super) fn fit(self, device: Features) -> bool {
        let fits =
            |wanted: Option<bool>, set: Option<bool>| wanted.is_none() || set.is_none() || wanted == set;
        fits(self.xnack, device.xnack) && fits(self.sramecc, device.sramecc)
    }

    fn text(self) -> String {
        let one = |name: &str, value: Option<bool>| {
            value.map_or(String::new(), |on| format!(":{name}{}", if on { '+' } else { '-' }))
        };
        format!("{}{}", one("sramecc", self.sramecc), one("xnack", self.xnack))
    }
}
