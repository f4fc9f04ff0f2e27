//! What vector instructions compute in a lane: a row for each.

mod bits;
mod carries;
mod comparisons;
mod conversions;
mod divisions;
mod doubles;
mod floats;
mod halves;
mod integers;
mod packed;
mod powers;
pub mod rounding;
mod shorts;
mod transcendental;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::isa::Instruction;
use crate::machine::step::Setting;

use super::kernel::Kernel;

/// An instruction's name and what it computes.
pub type Row = (&'static str, Kernel);

static KERNELS: LazyLock<HashMap<&'static str, Kernel>> = LazyLock::new(|| {
    [
        bits::rows(),
        carries::rows(),
        conversions::rows(),
        divisions::rows(),
        doubles::rows(),
        floats::rows(),
        halves::rows(),
        integers::rows(),
        packed::rows(),
        shorts::rows(),
        transcendental::rows(),
    ]
    .into_iter()
    .flatten()
    .collect()
});

/// The names of all rows but comparisons, for tests.
#[cfg(test)]
pub fn names() -> impl Iterator<Item = &'static str> {
    KERNELS.keys().copied()
}

/// The kernel of an instruction, by its name.
pub fn find(instruction: &Instruction, setting: Setting) -> Option<Kernel> {
    let name = instruction.name;
    if let Some(comparison) = name.strip_prefix("v_cmpx_").or_else(|| name.strip_prefix("v_cmp_")) {
        return comparisons::find(comparison);
    }
    // gfx942 has other floats of 8 bits than those that came after it.
    if setting.target.name == "gfx942"
        && let Some(kernel) = KERNELS.get(&*format!("{name} fnuz"))
    {
        return Some(*kernel);
    }
    let single = name.strip_prefix("v_dual_").map(|rest| format!("v_{rest}"));
    KERNELS.get(single.as_deref().unwrap_or(name)).copied()
}
