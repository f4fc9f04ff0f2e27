//! Parts of kernel parameters that several families share; `kernels/include/rukh` has their mirrors.

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::launch::GROUP;

/// `Divider` of `device.h`: a prepared division by a number from 1 to 2³¹.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub(super) struct Divider {
    pub(super) divisor: u32,
    multiplier: u32,
    shift: u32,
}

impl Divider {
    /// Granlund and Montgomery, "Division by Invariant Integers using Multiplication" (1994), for
    /// dividends below 2³¹.
    pub(super) fn new(divisor: usize) -> Self {
        let divisor = u32::try_from(divisor.max(1)).unwrap_or(u32::MAX);
        let shift = 32 - (divisor - 1).leading_zeros();
        let multiplier = (1u64 << 32) * ((1u64 << shift) - divisor as u64) / divisor as u64 + 1;
        Divider { divisor, multiplier: multiplier as u32, shift }
    }
}

/// The division by a number that may be too large for one.
pub(super) fn divider(divisor: usize) -> Result<Divider, OpError> {
    /// What a `Divider` takes.
    const LARGEST: usize = 1 << 31;
    if divisor <= LARGEST {
        return Ok(Divider::new(divisor));
    }
    Err(OpError::Unsupported(format!("a dimension of {divisor} elements; the GPU kernel takes {LARGEST}")))
}

/// Whether kernels read elements of this type as numbers (`Type` in `element.h`).
pub(super) fn is_number(ty: ElementType) -> bool {
    use ElementType as E;
    let plain = ty.is_integer() && !matches!(ty, E::U4 | E::I4 | E::U2 | E::I2);
    plain || ty.is_float() || ty == E::Bool
}

const AXES_RANK: usize = 8;

/// `Axes` of `layout.h`: a dense index space over a tensor of any strides.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub(super) struct Axes {
    dims: [Divider; AXES_RANK],
    rank: u32,
    unused: u32,
    strides: [i64; AXES_RANK],
}

const _: () = assert!(size_of::<Axes>() == 168);

impl Axes {
    /// From (size, stride in elements) of each dimension, outermost first.
    pub(super) fn new(loops: &[(usize, usize)]) -> Result<Self, OpError> {
        // The outermost dimension needs no division.
        if loops.len() > AXES_RANK || loops.iter().skip(1).any(|l| l.0 > 1 << 31) {
            return Err(OpError::Unsupported(format!(
                "a GPU kernel takes {AXES_RANK} dimensions of up to 2^31 elements; here are {loops:?}"
            )));
        }
        let mut axes = Axes { rank: loops.len() as u32, ..Axes::default() };
        for (i, &(size, stride)) in loops.iter().enumerate() {
            axes.dims[i] = Divider::new(size);
            axes.strides[i] = stride as i64;
        }
        Ok(axes)
    }
}

/// The power of two that is not below `n`, between 1 and `most` (itself a power of two).
pub(super) fn power_of_two(n: usize, most: usize) -> usize {
    if n >= most { most } else { n.next_power_of_two() }
}

/// Workgroups that keep a large device busy; work is cut finer while there are fewer.
pub(super) const MANY_GROUPS: usize = 1024;

/// Work items that share a row of `along` elements, `pack` of them in a load: so few that each takes four packs, but
/// more, up to `widest`, while `rows` leave a large device idle.
pub(super) fn row_team(rows: usize, along: usize, pack: usize, widest: usize) -> usize {
    let most = GROUP as usize;
    let mut team = power_of_two(along.div_ceil(4 * pack), most);
    while rows * team < MANY_GROUPS * most / 2 && team < power_of_two(along.div_ceil(pack), widest) {
        team *= 2;
    }
    team
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the device computes.
    fn divide(n: u32, d: Divider) -> u32 {
        (((n as u64 * d.multiplier as u64) >> 32) as u32).wrapping_add(n) >> d.shift
    }

    #[test]
    fn divisions_are_exact() {
        let interesting = [1u32, 2, 3, 5, 6, 7, 9, 10, 63, 64, 65, 1000, 4096, 65537, 1 << 30, (1 << 31) - 1];
        for divisor in interesting {
            let prepared = Divider::new(divisor as usize);
            for base in interesting {
                for n in [base - 1, base, base + 1, base.saturating_mul(7)].map(|n| n & 0x7fff_ffff) {
                    assert_eq!(divide(n, prepared), n / divisor, "{n} / {divisor}");
                }
            }
        }
    }
}
