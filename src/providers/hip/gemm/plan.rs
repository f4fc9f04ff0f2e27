//! Plans a product of matrices: with the kernel for few rows, the default kernel, or in the way that tuning chooses.

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::gemv::Fused;
use super::product::{Extra, Product};
use super::tiles::FEW;
use super::ways;

impl Product {
    /// Appends the launches for elements of this type.
    pub(in super::super) fn plan(
        mut self,
        plan: &mut PlanBuilder<'_>,
        ty: ElementType,
    ) -> Result<(), OpError> {
        if self.m == 0 || self.n == 0 || self.batch_count() == 0 {
            return Ok(());
        }
        self.simplify();
        if self.n <= FEW && self.m > self.n {
            self.transpose();
        }
        let unit = plan.provider.unit();
        if !self.is_gemv(false, ty, unit) || plan.provider.tuner().is_enabled() && self.m > FEW {
            return self.plan_tiles(plan, ty);
        }
        let matrix = [(self.b.at, (self.b.offset * ty.size()) as u64)];
        plan.by_alignment(
            16,
            &matrix,
            |plan| self.launch_gemv(plan, ty, &Fused::default()),
            |plan| self.plan_tiles(plan, ty),
        )
    }

    fn plan_tiles(&self, plan: &mut PlanBuilder<'_>, ty: ElementType) -> Result<(), OpError> {
        match plan.provider.tuner().is_enabled() {
            true => ways::plan_tuned(self, plan, ty),
            false => {
                let (tile, wanted) = self.default_way(ty, plan.provider.unit())?;
                self.launch_in_parts(plan, ty, tile, wanted, &Extra::default())
            }
        }
    }
}
