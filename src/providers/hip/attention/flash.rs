//! Attention in one launch on matrix cores, where the scores need not be kept.

use std::mem::offset_of;

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::launch::{KernelName, Operand};
use super::super::unit::Unit;
use super::four_waves::{FourWaves, four_waves};
use super::params::FlashParams;
use super::scores::Problem;

/// A kernel, and how it is launched.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlashKernel {
    kernel: KernelName,
    /// Work items of a workgroup, the rows that each takes, and bytes of dynamic workgroup memory.
    items: u32,
    rows: usize,
    lds: u32,
    /// What is faster for operands at multiples of 16 bytes.
    four_waves: Option<(KernelName, FourWaves)>,
}

/// Rows of a key head from which its workgroup is not mostly idle; fewer are products with few rows, which
/// split the keys among workgroups.
const ENOUGH: usize = 16;

impl Problem {
    /// Whether a key head has enough rows for one launch to pay.
    pub(super) fn has_enough_rows(&self) -> bool {
        self.q.heads / self.k.heads.max(1) * self.q.rows >= ENOUGH
    }

    /// The kernel for these heads, where there is one.
    pub(super) fn flash_kernel(&self, unit: Unit) -> Option<FlashKernel> {
        let mask = self
            .mask
            .is_none_or(|m| m.ty == ElementType::Bool || m.ty == ElementType::F32 || m.ty == self.ty);
        let size = self.q.size.max(self.v.size);
        if !unit.matrix || self.kept.is_some() || self.sink.is_some() || !mask || size > 128 {
            return None;
        }
        let name = match (self.ty, size <= 64) {
            (ElementType::F16, true) => c"flash_f16_64",
            (ElementType::F16, false) => c"flash_f16_128",
            (ElementType::BF16, true) => c"flash_bf16_64",
            (ElementType::BF16, false) => c"flash_bf16_128",
            _ => return None,
        };
        if !unit.wgmma {
            return Some(FlashKernel {
                kernel: KernelName { family: "flash", name },
                items: 128,
                rows: 64,
                lds: 0,
                four_waves: None,
            });
        }
        let general = self.mask.is_some() || self.softcap != 0.0 || self.scale <= 0.0;
        let [family, family_of_four] = match general {
            true => ["hopper_flash_masked", "hopper_flash_four_waves_masked"],
            false => ["hopper_flash", "hopper_flash_four_waves"],
        };
        let rows = self.q.heads / self.k.heads.max(1) * self.q.rows;
        let operands = [self.q, self.k, self.v, self.y];
        let four_waves = four_waves(unit, operands, [rows, self.k.heads, self.batch], general)
            .map(|launch| (KernelName { family: family_of_four, name }, launch));
        // Queries, two blocks of keys and of values, all of 128 rows; what aligns them; eight barriers.
        let lds = 5 * 128 * 2 * if size <= 64 { 64 } else { 128 } + 1024 + 64;
        Some(FlashKernel { kernel: KernelName { family, name }, items: 384, rows: 128, lds, four_waves })
    }

    pub(super) fn plan_flash(
        &self,
        plan: &mut PlanBuilder<'_>,
        kernel: FlashKernel,
        group: usize,
    ) -> Result<(), OpError> {
        let (params, addresses) = self.flash_params();
        let operands = [self.q, self.k, self.v, self.y];
        let tiles = (group * self.q.rows).div_ceil(kernel.rows);
        let groups = self.batch * self.k.heads * tiles;
        let any = |plan: &mut PlanBuilder<'_>| {
            plan.launch_with(kernel.kernel, [groups, 1, 1], kernel.items, kernel.lds, &params, &addresses)
        };
        let Some((name, launch)) = kernel.four_waves else { return any(plan) };
        let FlashParams { q, k, v, y, .. } = params;
        let aligned: Vec<_> = operands.iter().map(|x| x.at).zip([q, k, v, y]).collect();
        plan.by_alignment(
            16,
            &aligned,
            |plan| {
                let params = FlashParams { stages: launch.stages, ..params };
                plan.launch_with(name, launch.grid, launch.items, launch.lds, &params, &addresses)
            },
            any,
        )
    }

    /// The parameters of attention in one launch, and the addresses that they take.
    pub(super) fn flash_params(&self) -> (FlashParams, Vec<(usize, Operand)>) {
        // The mask's parameters come first, so that their addresses stay where they are.
        const { assert!(offset_of!(FlashParams, softmax) == 0) };
        let (softmax, mut addresses) = self.mask_params();
        let operands = [self.q, self.k, self.v, self.y];
        let [q, k, v, y] = operands.map(|x| (x.offset * self.ty.size()) as u64);
        let params = FlashParams {
            softmax,
            q,
            k,
            v,
            y,
            strides: operands.map(|x| x.strides.map(|s| s as i64)),
            group: (self.q.heads / self.k.heads.max(1)) as u32,
            kv_heads: self.k.heads as u32,
            size: self.q.size as u32,
            v_size: self.v.size as u32,
            stages: 0,
            unused: 0,
        };
        let fields = [
            offset_of!(FlashParams, q),
            offset_of!(FlashParams, k),
            offset_of!(FlashParams, v),
            offset_of!(FlashParams, y),
        ];
        addresses.extend(fields.into_iter().zip(operands.map(|x| x.at)));
        (params, addresses)
    }
}
