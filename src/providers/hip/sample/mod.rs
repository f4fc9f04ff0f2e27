//! Weighted sums of neighbours: Resize, GridSample, AffineGrid, Col2Im; launches of `kernels/sample.hip`.

mod affine;
mod col2im;
mod grid;
mod resize;
#[cfg(test)]
mod tests;

use std::ffi::CStr;

use crate::tensor::ElementType;

use super::Entry;
use super::launch::KernelName;
use super::params::is_number;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("AffineGrid", affine::build),
    Entry::new("Col2Im", col2im::build),
    Entry::new("GridSample", grid::build),
    Entry::new("Resize", resize::build),
    Entry::new("Upsample", resize::build),
];

/// Whether weighted sums of a type are computed in f64; `None` for a type that has none.
fn is_wide(ty: ElementType) -> Option<bool> {
    use ElementType as E;
    let wide = matches!(ty, E::F64 | E::I32 | E::U32 | E::I64 | E::U64);
    (is_number(ty) && ty != E::Bool).then_some(wide)
}

fn name(wide: bool, f32_name: &'static CStr, f64_name: &'static CStr) -> KernelName {
    KernelName { family: "sample", name: if wide { f64_name } else { f32_name } }
}
