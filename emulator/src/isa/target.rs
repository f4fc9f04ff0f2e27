//! The GPUs whose code objects can run.

/// How instructions are encoded, and what they do where that changed. In order of time within GFX9 and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// gfx900 to gfx908: Vega, CDNA 1.
    Gfx9,
    /// gfx90a: CDNA 2.
    Gfx90a,
    /// gfx942, gfx950: CDNA 3 and 4.
    Gfx940,
    /// gfx1030: RDNA 2.
    Gfx10,
    /// gfx11: RDNA 3 and 3.5.
    Gfx11,
    /// gfx12: RDNA 4.
    Gfx12,
}

/// A GPU by the name of its machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// LLVM's name.
    pub name: &'static str,
    pub generation: Generation,
    /// Lanes of a wave when the kernel does not say.
    pub wave: u32,
}

const TARGETS: &[(&str, Generation, u32)] = &[
    ("gfx900", Generation::Gfx9, 64),
    ("gfx906", Generation::Gfx9, 64),
    ("gfx908", Generation::Gfx9, 64),
    ("gfx90a", Generation::Gfx90a, 64),
    ("gfx942", Generation::Gfx940, 64),
    ("gfx950", Generation::Gfx940, 64),
    ("gfx1030", Generation::Gfx10, 32),
    ("gfx1100", Generation::Gfx11, 32),
    ("gfx1101", Generation::Gfx11, 32),
    ("gfx1102", Generation::Gfx11, 32),
    ("gfx1103", Generation::Gfx11, 32),
    ("gfx1150", Generation::Gfx11, 32),
    ("gfx1151", Generation::Gfx11, 32),
    ("gfx1200", Generation::Gfx12, 32),
    ("gfx1201", Generation::Gfx12, 32),
];

impl Target {
    /// `None` for a name that is not known.
    pub fn find(name: &str) -> Option<Target> {
        let &(name, generation, wave) = TARGETS.iter().find(|(known, ..)| *known == name)?;
        Some(Target { name, generation, wave })
    }

    /// All of them, oldest first.
    pub fn all() -> impl Iterator<Item = Target> {
        TARGETS.iter().map(|&(name, generation, wave)| Target { name, generation, wave })
    }

    /// Whether the first work item's three coordinates come packed in one register.
    pub fn packs_work_item_ids(self) -> bool {
        !matches!(self.generation, Generation::Gfx9 | Generation::Gfx10)
    }
}
