//! A convolution as a product one of whose operands is read from the image.

use std::ffi::CStr;

use crate::ops::OpError;
use crate::ops::window::Geometry;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::gemm::{Extra, Product, TileKernel, hopper, pick};
use super::super::launch::{GROUP, KernelName};
use super::super::unit::Unit;
use super::params::{image_params, nhwc_params};
use super::windows::{self, Patches};

/// The kernels of a type.
#[derive(Clone, Copy)]
pub(super) struct Names {
    pub(super) family: &'static str,
    pub(super) large: Option<&'static CStr>,
    pub(super) small: &'static CStr,
    pub(super) direct: &'static CStr,
}

/// How images lie in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Layout {
    Nchw,
    /// Elements between pixels.
    Nhwc {
        pixel: usize,
    },
}

pub(super) struct Implicit {
    pub(super) names: Names,
    pub(super) ty: ElementType,
    pub(super) group: usize,
    pub(super) product: Product,
    pub(super) g: Geometry,
    /// Of a group's input and output.
    pub(super) channels: usize,
    pub(super) outputs: usize,
    pub(super) layout: Layout,
    /// Whether each result is computed by itself unless something else is found faster.
    pub(super) direct: bool,
}

impl Implicit {
    pub(super) fn kernel(&self, name: &'static CStr) -> KernelName {
        KernelName { family: self.names.family, name }
    }

    pub(super) fn results(&self) -> usize {
        self.product.batch_count() * self.product.m * self.product.n
    }

    /// The kernel that computes each result by itself.
    pub(super) fn direct_kernel(&self) -> TileKernel {
        TileKernel { adds_up: false, ..TileKernel::new(self.kernel(self.names.direct), [1, 1]) }
    }

    /// The kernel, and how many parts of K are wanted.
    pub(super) fn default_way(&self, unit: Unit) -> (TileKernel, usize) {
        if self.direct {
            return (self.direct_kernel(), 1);
        }
        match self.staying_ways(unit).first() {
            Some(way) => *way,
            None => self.patches_way(unit),
        }
    }

    /// Kernels that have the patches copied, with the parts of K that are best for each, the fastest first.
    pub(super) fn staying_ways(&self, unit: Unit) -> Vec<(TileKernel, usize)> {
        self.copied_patches().map_or_else(Vec::new, |patches| windows::tiles(patches, unit))
    }

    fn copied_patches(&self) -> Option<Patches<'_>> {
        let Layout::Nhwc { pixel } = self.layout else { return None };
        let Implicit { ty, ref product, ref g, group, channels, .. } = *self;
        Some(Patches { ty, product, g, group, channels, pixel })
    }

    /// The same for the kernels that find the patches themselves.
    fn patches_way(&self, unit: Unit) -> (TileKernel, usize) {
        let Product { m, n, .. } = self.product;
        let half = self.ty.size() == 2;
        let have = [false, self.names.large.is_some()];
        let (rows, columns, lds) = pick(unit, half, m, n, self.product.batch_count(), have);
        let name = if rows == 128 { self.names.large } else { None };
        let kernel = self.kernel(name.unwrap_or(self.names.small));
        let tile = TileKernel { lds, ..TileKernel::new(kernel, [rows, columns]) };
        (tile, self.product.wanted_parts(tile, unit, &Extra::default()))
    }

    pub(super) fn launch(
        &self,
        plan: &mut PlanBuilder<'_>,
        tile: TileKernel,
        wanted: usize,
    ) -> Result<(), OpError> {
        let copied = self.copied_patches().filter(|_| tile.resident > 0);
        if let Some(copies) = copied.and_then(|p| windows::copies(p, tile.rows, tile.columns)) {
            let (other, parts) = self.patches_way(plan.provider.unit());
            let (product, ty) = (&self.product, self.ty);
            return hopper::plan_copies(product, plan, ty, (tile, wanted), copies, |plan| {
                self.launch(plan, other, parts)
            });
        }
        let params = Some(match self.layout {
            Layout::Nchw => image_params(plan, &self.g, self.channels)?,
            Layout::Nhwc { pixel } => nhwc_params(&self.g, self.channels, pixel)?,
        });
        let direct = tile.kernel.name == self.names.direct;
        let groups = direct.then(|| self.results().div_ceil(GROUP as usize));
        self.product.launch_in_parts(plan, self.ty, tile, wanted, &Extra { params, groups })
    }
}
