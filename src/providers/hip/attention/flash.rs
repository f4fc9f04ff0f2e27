//! Attention in one launch on matrix cores, where the scores need not be kept.

use std::ffi::CStr;
use std::mem::offset_of;

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::launch::{KernelName, Operand};
use super::super::unit::Unit;
use super::four_waves::{FourWaves, four_waves};
use super::hopper::{Pipeline, pipeline};
use super::params::FlashParams;
use super::scores::Problem;

/// A kernel for any operands, and a faster one for those at multiples of 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlashKernel {
    name: &'static CStr,
    aligned: Option<(KernelName, Aligned)>,
}

/// How a kernel of Hopper is launched.
#[derive(Clone, Copy, Debug)]
enum Aligned {
    FourWaves(FourWaves),
    Pipeline(Pipeline),
}

/// Rows that a workgroup of the kernel for any operands takes, and its work items.
const ROWS: usize = 64;
const ITEMS: u32 = 128;

/// Keys up to which workgroups of four waves are faster than the pipeline: of heads of up to 64 numbers and of larger ones;
/// of the latter with more keys too where the pipeline has too few tiles. Of masks up to 256 keys were measured.
const MOST_KEYS: [usize; 2] = [768, 128];
const MOST_KEYS_MASKED: usize = 512;
const MOST_KEYS_OF_FEW_TILES: usize = 256;

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
        Some(FlashKernel { name, aligned: self.aligned(unit, name, size > 64) })
    }

    /// Hopper's kernel for these heads. `wide`: of more than 64 numbers.
    fn aligned(&self, unit: Unit, name: &'static CStr, wide: bool) -> Option<(KernelName, Aligned)> {
        let masked = self.mask.is_some() || self.softcap != 0.0 || self.scale <= 0.0;
        let [pipeline_family, family] = match masked {
            true => ["hopper_flash_masked", "hopper_flash_four_waves_masked"],
            false => ["hopper_flash", "hopper_flash_four_waves"],
        };
        let pipeline = pipeline(unit, self, masked);
        let short = match pipeline {
            None => true,
            Some(_) if masked => self.k.rows <= MOST_KEYS_MASKED,
            Some(launch) if wide && !launch.fills(unit) => self.k.rows <= MOST_KEYS_OF_FEW_TILES,
            Some(_) => self.k.rows <= MOST_KEYS[usize::from(wide)],
        };
        let rows = self.q.heads / self.k.heads.max(1) * self.q.rows;
        let operands = [self.q, self.k, self.v, self.y];
        match pipeline {
            Some(launch) if !short => {
                Some((KernelName { family: pipeline_family, name }, Aligned::Pipeline(launch)))
            }
            _ => four_waves(unit, operands, [rows, self.k.heads, self.batch])
                .map(|launch| (KernelName { family, name }, Aligned::FourWaves(launch))),
        }
    }

    pub(super) fn plan_flash(
        &self,
        plan: &mut PlanBuilder<'_>,
        kernel: FlashKernel,
        group: usize,
    ) -> Result<(), OpError> {
        let (params, addresses) = self.flash_params();
        let operands = [self.q, self.k, self.v, self.y];
        let any = |plan: &mut PlanBuilder<'_>| {
            let groups = self.batch * self.k.heads * (group * self.q.rows).div_ceil(ROWS);
            let kernel = KernelName { family: "flash", name: kernel.name };
            plan.launch_with(kernel, [groups, 1, 1], ITEMS, 0, &params, &addresses)
        };
        let Some((name, launch)) = kernel.aligned else { return any(plan) };
        let FlashParams { q, k, v, y, .. } = params;
        let addressed: Vec<_> = operands.iter().map(|x| x.at).zip([q, k, v, y]).collect();
        plan.by_alignment(
            16,
            &addressed,
            |plan| match launch {
                Aligned::Pipeline(launch) => self.plan_pipeline(plan, name, launch),
                Aligned::FourWaves(launch) => {
                    let params = FlashParams { stages: launch.stages, ..params };
                    plan.launch_with(name, launch.grid, launch.items, launch.lds, &params, &addresses)
                }
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
