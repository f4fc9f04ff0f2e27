//! Products of packed bytes on sm_90 (`kernels/hopper_bytes.hip`).

use std::ffi::CStr;

use bytemuck::bytes_of;

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::gemm::hopper::{Copies, HopperParams, STEP, plain_copies};
use super::super::gemm::{GemmParams, Product};
use super::super::launch::{AddressedParams, KernelName};
use super::super::unit::Unit;
use super::params::Tail;

/// Columns of a tile.
const COLUMNS: usize = 128;

/// Bytes of the parameters, whose size is a multiple of their alignment.
const PARAMS_BYTES: usize = 1920;

/// What the copies take two bytes for.
const PAIR: ElementType = ElementType::F16;

/// A kernel with the rows of its tiles.
struct Form {
    name: &'static CStr,
    rows: usize,
    stages: usize,
    /// Workgroups that a processor has room for.
    resident: usize,
    items: u32,
}

const FORMS: [Form; 2] = [
    Form { name: c"bytes_hopper_128", rows: 128, stages: 6, resident: 1, items: 384 },
    Form { name: c"bytes_hopper_64", rows: 64, stages: 4, resident: 2, items: 256 },
];

/// A choice of the kernel, with how the operands are copied.
pub(super) struct Tile {
    form: &'static Form,
    copies: Copies,
}

/// The kernel for a product of packed operands, counted in pairs of bytes; `None` where another is faster, or needed.
pub(super) fn choose(packed: &Product, tail: &Tail, unit: Unit) -> Option<Tile> {
    let by_line = |i: usize| tail.sides[i].scale.is_some_and(|(_, by_line)| by_line);
    if !(unit.wgmma && unit.tensor_maps) || packed.out.strides[1] != 1 || by_line(0) && by_line(1) {
        return None;
    }
    let groups = |form: &&Form| packed.tiles(form.rows, COLUMNS);
    let form = FORMS.iter().find(|form| form.resident == 2 || groups(form) >= unit.compute_units)?;
    // Where a quarter of the processors had no tile, smaller ones are faster.
    let is_small = packed.m < form.rows || packed.n < COLUMNS || groups(&form) * 4 < unit.compute_units * 3;
    let copies = plain_copies(packed, PAIR, [form.rows, COLUMNS]).filter(|_| !is_small)?;
    Some(Tile { form, copies })
}

impl Tile {
    /// Appends the launch. `params`: of the product; `rest`: with what else products of packed operands have.
    pub(super) fn plan(
        self,
        plan: &mut PlanBuilder<'_>,
        packed: &Product,
        params: GemmParams,
        (rest, addresses): AddressedParams,
    ) -> Result<(), OpError> {
        let Tile { form, copies } = self;
        let own = HopperParams::of_sums(params, &copies, form.stages);
        let begin = size_of::<HopperParams>();
        let mut all = bytes_of(&own).to_vec();
        all.extend_from_slice(&rest);
        all.resize(PARAMS_BYTES, 0);
        let addresses: Vec<_> = addresses.into_iter().map(|(at, operand)| (begin + at, operand)).collect();
        let workgroups =
            packed.tiles(form.rows, COLUMNS).min(plan.provider.unit().compute_units * form.resident);
        let kernel = KernelName { family: "hopper_bytes", name: form.name };
        plan.launch_bytes(kernel, [workgroups, 1, 1], form.items, form.lds(), &all, &addresses)?;
        let maps = copies.maps.into_iter().zip([packed.a, packed.b]).enumerate();
        plan.maps(maps.map(|(i, (map, matrix))| (HopperParams::map_at(i), matrix.at, 0, map)));
        Ok(())
    }
}

impl Form {
    /// The stages with two barriers for each, what aligns them, a barrier for each wave that multiplies, a word, and what the
    /// lines of two tiles add to results.
    fn lds(&self) -> u32 {
        let lines = self.rows + COLUMNS;
        (self.stages * (lines * STEP * 2 + 16) + 1024 + 8 * 8 + 16 + 2 * lines * 16) as u32
    }
}
