//! The launches of a product: of the kernel that rules choose, or of any other.

use std::mem::{offset_of, size_of};

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::launch::{COUNTERS, GROUP, KernelName, Operand};
use super::super::unit::Unit;
use super::hopper;
use super::params::GemmParams;
use super::product::{Extra, Product};
use super::tiles::{self, FEW, TileKernel};

impl Product {
    /// The kernel that rules choose, and how many parts of K are wanted.
    pub(super) fn default_way(&self, ty: ElementType, unit: Unit) -> Result<(TileKernel, usize), OpError> {
        match hopper::tiles(self, ty, unit).first() {
            Some(way) if self.m > FEW => Ok(*way),
            _ => {
                let tile = self.tile(ty, unit)?;
                Ok((tile, self.wanted_parts(tile, unit, &Extra::default())))
            }
        }
    }

    /// Launches a kernel, in parts of K where the result alone gives too few workgroups.
    pub(in super::super) fn launch(
        &self,
        plan: &mut PlanBuilder<'_>,
        ty: ElementType,
        tile: TileKernel,
        unit: Unit,
        extra: &Extra,
    ) -> Result<(), OpError> {
        self.launch_in_parts(plan, ty, tile, self.wanted_parts(tile, unit, extra), extra)
    }

    /// Launches a kernel in about so many parts of K.
    pub(in super::super) fn launch_in_parts(
        &self,
        plan: &mut PlanBuilder<'_>,
        ty: ElementType,
        tile: TileKernel,
        wanted: usize,
        extra: &Extra,
    ) -> Result<(), OpError> {
        if tile.resident > 0 {
            let unit = plan.provider.unit();
            return hopper::plan(self, plan, ty, (tile, wanted), |plan| {
                self.launch(plan, ty, self.tile(ty, unit)?, unit, extra)
            });
        }
        let groups = extra.groups.unwrap_or_else(|| self.groups(tile));
        let (k_part, parts) = self.parts(ty, wanted, extra);
        let mut params = self.params(ty)?;
        (params.k_part, params.parts) = (k_part as u32, parts as u32);
        let mut addresses = self.addresses();
        let second = self.epilogue.needs_second_launch(ty);
        if parts > 1 && !second && tile.adds_up && groups <= COUNTERS {
            let width = if ty == ElementType::F64 { 8 } else { 4 };
            let partial = plan.scratch(parts * groups * tile.rows * tile.columns * width);
            addresses.push((offset_of!(GemmParams, partial), partial));
            addresses.push((offset_of!(GemmParams, arrived), Operand::Counters));
            return self.launch_tiles(plan, tile, groups * parts, &params, &addresses, extra);
        }
        match tiles::parts_kernel(ty) {
            Some(finish) if parts > 1 || second => {
                let partial = self.sums(plan, ty, parts);
                addresses.push((offset_of!(GemmParams, partial), partial));
                self.launch_tiles(plan, tile, groups * parts, &params, &addresses, extra)?;
                self.finish(plan, finish, &params, &addresses)
            }
            _ => self.launch_tiles(plan, tile, groups, &params, &addresses, extra),
        }
    }

    /// Temporary memory for the sums of so many parts, as they are computed.
    pub(super) fn sums(&self, plan: &mut PlanBuilder<'_>, ty: ElementType, parts: usize) -> Operand {
        let width = if ty == ElementType::F64 { 8 } else { 4 };
        plan.scratch(parts * self.batch_count() * self.m * self.n * width)
    }

    /// Launches what makes results of sums that something else left at `sums`, in one part.
    pub(super) fn finish_sums(
        &self,
        plan: &mut PlanBuilder<'_>,
        ty: ElementType,
        sums: Operand,
    ) -> Result<(), OpError> {
        let Some(finish) = tiles::parts_kernel(ty) else { return Ok(()) };
        let mut params = self.params(ty)?;
        (params.k_part, params.parts) = (params.k.max(1), 1);
        let mut addresses = self.addresses();
        addresses.push((offset_of!(GemmParams, partial), sums));
        self.finish(plan, finish, &params, &addresses)
    }

    fn finish(
        &self,
        plan: &mut PlanBuilder<'_>,
        kernel: KernelName,
        params: &GemmParams,
        addresses: &[(usize, Operand)],
    ) -> Result<(), OpError> {
        let count = self.batch_count() * self.m * self.n;
        plan.launch(kernel, [count.div_ceil(GROUP as usize), 1, 1], params, addresses)
    }

    fn launch_tiles(
        &self,
        plan: &mut PlanBuilder<'_>,
        tile: TileKernel,
        groups: usize,
        params: &GemmParams,
        addresses: &[(usize, Operand)],
        extra: &Extra,
    ) -> Result<(), OpError> {
        match &extra.params {
            None => plan.launch_with(tile.kernel, [groups, 1, 1], tile.items, tile.lds, params, addresses),
            Some((more, at)) => {
                let mut all = bytemuck::bytes_of(params).to_vec();
                all.extend_from_slice(more);
                let shifted = at.iter().map(|&(offset, o)| (size_of::<GemmParams>() + offset, o));
                let addresses: Vec<_> = addresses.iter().copied().chain(shifted).collect();
                plan.launch_bytes(tile.kernel, [groups, 1, 1], tile.items, tile.lds, &all, &addresses)
            }
        }
    }

    /// Appends the launch that leaves the sums as they are computed, in `f32` (`f64` for that type), as
    /// `[batch][m][n]` at `sums`.
    pub(in super::super) fn plan_sums(
        mut self,
        plan: &mut PlanBuilder<'_>,
        ty: ElementType,
        sums: Operand,
    ) -> Result<(), OpError> {
        if self.m == 0 || self.n == 0 || self.batch_count() == 0 {
            return Ok(());
        }
        self.simplify();
        let tile = self.tile(ty, plan.provider.unit())?;
        let mut params = self.params(ty)?;
        (params.k_part, params.parts) = (params.k.max(1), 1);
        let mut addresses = self.addresses();
        addresses.push((offset_of!(GemmParams, partial), sums));
        self.launch_tiles(plan, tile, self.groups(tile), &params, &addresses, &Extra::default())
    }
}
