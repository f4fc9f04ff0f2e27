//! Products of few rows with a matrix whose columns are contiguous: launches of `kernels/gemv_*.hip` and, for 3 to 16 rows on
//! NVIDIA, of `kernels/mma_gemv_*.hip`.

use std::ffi::CStr;
use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable, bytes_of};

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::launch::{AddressedParams, KernelName};
use super::super::norm::Rms;
use super::super::unit::Unit;
use super::hopper;
use super::product::Product;
use super::spread::{Lines, Split, WAVES, split};

/// What a launch does besides the product.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Fused {
    /// RMS normalisation of the rows of A.
    pub(in super::super) norm: Option<Rms>,
    /// The first columns of the gate and of what it is multiplied with: a result is the product's function of the one
    /// times the other, and the product has twice as many columns as there are results.
    pub(in super::super) gate: Option<[usize; 2]>,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct GemvParams {
    skip: u64,
    scale: u64,
    sum: u64,
    skip_row: i64,
    sum_row: i64,
    bundles: u32,
    step: u32,
    first: u32,
    distance: u32,
    parts: u32,
    row_blocks: u32,
    row_length: u32,
    norm: u32,
    gated: u32,
    epsilon: f32,
    groups: u32,
    early: u32,
    rows: u32,
    keeps_scale: u32,
}

const _: () = assert!(size_of::<GemvParams>() == 96);

/// Packs of 16 bytes that a lane loads of a line at once.
const AHEAD: usize = 4;
/// Workgroups that a processor has room for.
const RESIDENT: usize = 4;
/// Rows beyond which tiles multiply faster.
const MOST_ROWS: usize = 8;
/// The same of the kernels by `mma.sync`, of which a step costs the same for up to 8 rows, and rows from which on they are
/// faster than the others. Measured on an H200, see docs/contributing/performance-notes.md.
const MOST_MMA_ROWS: usize = 16;
const LEAST_MMA_ROWS: usize = 3;
/// Rows of half types beyond which the tiles of sm_90 are faster than those kernels, with a normalisation and a gated unit in
/// launches of their own: a step of Llama 1B of 5 rows takes 1.105 ms so, and 1.240 by those kernels (H200).
const MOST_HALF_ROWS_BESIDE_WGMMA: usize = 4;

/// Kernels that have the structure of `gemv.h`, and how they read lines.
#[derive(Clone, Debug)]
pub(in super::super) struct Form {
    pub(in super::super) family: &'static str,
    /// For 1, 2, 4… rows.
    pub(in super::super) names: Vec<&'static CStr>,
    /// Lines that a wave takes at a time.
    pub(in super::super) columns: usize,
    /// Bytes of a line, and of it what a wave loads at once, which are so many elements of K.
    pub(in super::super) line_bytes: usize,
    pub(in super::super) step_bytes: usize,
    pub(in super::super) step: usize,
    /// Bytes that would come to a processor while a workgroup stores a round's results, where a wave has no time to spare.
    pub(in super::super) round_bytes: usize,
    /// Whether waves take whole lines where all of them are on their way at once.
    pub(in super::super) whole_lines: bool,
    /// Whether the scale of a normalisation takes a row of workgroup memory.
    pub(in super::super) keeps_scale: bool,
    /// Rows of workgroup memory that one row alone takes: two where it lies there as floats, though its elements are halves.
    pub(in super::super) planes_of_one: usize,
    /// Parameters behind those of every form, with the addresses in them.
    pub(in super::super) more: AddressedParams,
}

impl Form {
    /// `None` for other types and for more rows.
    fn of_elements(product: &Product, norm: bool, ty: ElementType, unit: Unit) -> Option<Self> {
        let form = |mma: bool| {
            let step_bytes = if mma { MMA_LANES } else { unit.wave } * 16 * AHEAD;
            Some(Form {
                family: family(ty, mma)?,
                names: if mma { MMA_KERNELS.to_vec() } else { KERNELS.to_vec() },
                columns: if mma { MMA_LINES } else { 2 },
                line_bytes: product.k * ty.size(),
                step_bytes,
                step: step_bytes / ty.size(),
                round_bytes: 0,
                whole_lines: false,
                keeps_scale: mma || unit.wide_rows,
                planes_of_one: if !mma && unit.wide_rows && ty == ElementType::F16 { 2 } else { 1 },
                more: Default::default(),
            })
        };
        let packs = ty.size() == 2 && product.n.is_multiple_of(8);
        let tiles = || packs && !hopper::tiles(product, ty, unit).is_empty();
        let is_more = |most| unit.wgmma && unit.tensor_maps && product.m > most;
        if is_more(MOST_ROWS) || is_more(MOST_HALF_ROWS_BESIDE_WGMMA) && tiles() {
            return None;
        }
        let gains = |form: &Form| form.gains_by_mma([product.m, product.k], norm, MOST_ROWS, ty, unit);
        let by_mma = || form(true).filter(gains);
        by_mma().or_else(|| form(false).filter(|_| product.m <= MOST_ROWS))
    }

    /// Whether the product goes by `mma.sync`: there are such kernels for the type, and a workgroup has room for so many
    /// rows that lines are not read more often than by the other ones, which take so many rows at most.
    pub(in super::super) fn gains_by_mma(
        &self,
        [m, k]: [usize; 2],
        norm: bool,
        others: usize,
        ty: ElementType,
        unit: Unit,
    ) -> bool {
        unit.mma_sync
            && ty.size() == 2
            && (LEAST_MMA_ROWS..=MOST_MMA_ROWS).contains(&m)
            && self.rows([m, k], norm, ty, unit).is_some_and(|rows| rows >= m.min(others))
    }

    fn lines(&self) -> Lines {
        let &Form { columns, line_bytes, step_bytes, round_bytes, whole_lines, .. } = self;
        Lines { columns, line_bytes, step_bytes, round_bytes, whole_lines }
    }

    /// Elements of a row of A in workgroup memory: whole steps.
    fn row_length(&self, k: usize) -> usize {
        k.next_multiple_of(self.step)
    }

    /// Bytes of such a row, with the packs between and behind it that are left out.
    fn row_bytes(&self, k: usize, ty: ElementType) -> usize {
        self.row_length(k) * ty.size() / 8 * 9 + 4 * 16
    }

    /// Bytes of workgroup memory for rows, with a normalisation or without.
    fn memory(&self, rows: usize, k: usize, norm: bool, ty: ElementType) -> usize {
        let rows_of_elements = if rows == 1 { self.planes_of_one } else { rows };
        (rows_of_elements + usize::from(norm && self.keeps_scale)) * self.row_bytes(k, ty)
    }

    /// Rows of a workgroup: as many as its memory holds, with the scale of a normalisation. `None` where it holds none.
    pub(in super::super) fn rows(
        &self,
        [m, k]: [usize; 2],
        norm: bool,
        ty: ElementType,
        unit: Unit,
    ) -> Option<usize> {
        let memory = workgroup_memory(unit);
        let fits = |rows: &usize| self.memory(*rows, k, norm, ty) <= memory;
        let most = m.next_power_of_two().min(1 << (self.names.len() - 1));
        std::iter::successors(Some(most), |rows| (*rows > 1).then_some(rows / 2)).find(fits)
    }
}

impl Product {
    /// Whether a launch of its own kernel computes this product, whose operands must be at multiples of 16 bytes.
    pub(in super::super) fn is_gemv(&self, norm: bool, ty: ElementType, unit: Unit) -> bool {
        let pack = 16 / ty.size().max(1);
        let [row, column] = self.b.strides;
        let Some(form) = Form::of_elements(self, norm, ty, unit) else { return false };
        self.batch.is_empty()
            && row == 1
            && usize::try_from(column).is_ok_and(|c| c.is_multiple_of(pack))
            && self.k > 0
            && self.k.is_multiple_of(pack)
            && (self.b.offset * ty.size()).is_multiple_of(16)
            && !self.epilogue.needs_second_launch(ty)
            && form.rows([self.m, self.k], norm, ty, unit).is_some()
    }

    /// Appends that launch.
    pub(in super::super) fn launch_gemv(
        &self,
        plan: &mut PlanBuilder<'_>,
        ty: ElementType,
        fused: &Fused,
    ) -> Result<(), OpError> {
        match Form::of_elements(self, fused.norm.is_some(), ty, plan.provider.unit()) {
            Some(form) => self.launch_form(plan, ty, fused, &form),
            None => Ok(()),
        }
    }

    /// Appends a launch of such a kernel.
    pub(in super::super) fn launch_form(
        &self,
        plan: &mut PlanBuilder<'_>,
        ty: ElementType,
        fused: &Fused,
        form: &Form,
    ) -> Result<(), OpError> {
        let unit = plan.provider.unit();
        let rows = form.rows([self.m, self.k], fused.norm.is_some(), ty, unit).unwrap_or(1);
        let row_blocks = self.m.div_ceil(rows);
        let half = form.columns / 2;
        // What a gate multiplies lies in the other half of a bundle.
        let [first, second] = fused.gate.unwrap_or([0, half]).map(|column| column as u32);
        let step = if fused.gate.is_some() { half } else { form.columns };
        let bundles = if fused.gate.is_some() { self.n / 2 } else { self.n }.div_ceil(step);
        let lds = form.memory(rows, self.k, fused.norm.is_some(), ty);
        let resident = (workgroup_memory(unit) / lds.max(1)).clamp(1, RESIDENT);
        let spread @ Split { parts, groups } = split(bundles, form.lines(), [row_blocks, resident], unit);
        let mut params = self.params(ty)?;
        (params.k_part, params.parts) = (params.k, 1);
        let of_lines = form.more.1.iter().map(|&(_, operand)| operand).chain([self.b.at]);
        let mut constants = of_lines.chain(fused.norm.as_ref().map(|norm| norm.scale));
        let early = constants.all(|operand| plan.is_constant(operand));
        // Behind a normalisation comes attention, which gains more by what it may read early itself. Several rows were slower.
        let is_one = self.m == 1 && fused.norm.is_none() && unit.wgmma;
        let opens = early && is_one && spread.loads_all_at_once(bundles, self.k, form.step);
        let own = GemvParams {
            skip_row: self.k as i64,
            sum_row: self.k as i64,
            bundles: bundles as u32,
            step: step as u32,
            first,
            distance: second.wrapping_sub(first),
            parts: parts as u32,
            row_blocks: row_blocks as u32,
            row_length: form.row_length(self.k) as u32,
            norm: fused.norm.is_some().into(),
            gated: fused.gate.is_some().into(),
            epsilon: fused.norm.as_ref().map_or(0.0, |norm| norm.epsilon),
            groups: groups as u32,
            early: u32::from(early) + u32::from(opens),
            rows: rows as u32,
            keeps_scale: form.keeps_scale.into(),
            ..GemvParams::zeroed()
        };
        let mut addresses = self.addresses();
        let mut all = bytes_of(&params).to_vec();
        if let Some(norm) = &fused.norm {
            let operands = [
                (Some(norm.scale), offset_of!(GemvParams, scale)),
                (norm.skip, offset_of!(GemvParams, skip)),
                (norm.sum, offset_of!(GemvParams, sum)),
            ];
            addresses.extend(operands.into_iter().filter_map(|(o, at)| Some((all.len() + at, o?))));
        }
        all.extend_from_slice(bytes_of(&own));
        addresses.extend(form.more.1.iter().map(|&(at, operand)| (all.len() + at, operand)));
        all.extend_from_slice(&form.more.0);
        let kernel = KernelName { family: form.family, name: form.names[rows.ilog2() as usize] };
        let items = (WAVES * unit.wave) as u32;
        if opens {
            plan.lets_next_start();
        }
        plan.launch_bytes(kernel, [groups * row_blocks, 1, 1], items, lds as u32, &all, &addresses)
    }
}

/// The kernels for 1, 2, 4 and 8 rows.
const KERNELS: [&CStr; 4] = [c"gemv_1", c"gemv_2", c"gemv_4", c"gemv_8"];
/// Those by `mma.sync` for 1, 2, 4, 8 and 16 rows, the lines that a wave takes, and the lanes that share one.
const MMA_KERNELS: [&CStr; 5] = [c"mma_gemv_1", c"mma_gemv_1", c"mma_gemv_1", c"mma_gemv_1", c"mma_gemv_2"];
pub(in super::super) const MMA_LINES: usize = 16;
pub(in super::super) const MMA_LANES: usize = 4;

/// Where they are for a type.
fn family(ty: ElementType, mma: bool) -> Option<&'static str> {
    Some(match (ty, mma) {
        (ElementType::F32, _) => "gemv_f32",
        (ElementType::F16, false) => "gemv_f16",
        (ElementType::BF16, false) => "gemv_bf16",
        (ElementType::F16, true) => "mma_gemv_f16",
        (ElementType::BF16, true) => "mma_gemv_bf16",
        _ => return None,
    })
}

/// Bytes of workgroup memory that every device of its kind has, less what the kernels have besides rows of A.
fn workgroup_memory(unit: Unit) -> usize {
    match (unit.wgmma, unit.mma_sync) {
        (true, _) => 216 << 10,
        (false, true) => 87 << 10,
        (false, false) => 62 << 10,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::launch::Operand;
    use super::super::Epilogue;
    use super::super::product::Matrix;
    use super::super::spread::rounds;
    use super::*;

    fn product(m: usize, n: usize, k: usize) -> Product {
        Product {
            m,
            n,
            k,
            a: Matrix::new(Operand::Input(0), k, 1),
            b: Matrix::new(Operand::Input(1), 1, k),
            out: Matrix::new(Operand::Output(0), n, 1),
            bias: None,
            residual: None,
            batch: Vec::new(),
            epilogue: Epilogue::default(),
        }
    }

    #[test]
    fn processors_have_much_the_same_to_do() {
        for (n, k) in [
            (256, 2048),
            (512, 2048),
            (2048, 2048),
            (3072, 2048),
            (16384, 2048),
            (2048, 8192),
            (128256, 2048),
        ] {
            let form = Form::of_elements(&product(1, n, k), false, ElementType::F16, Unit::HOPPER).unwrap();
            let pairs = n / 2;
            let Split { parts, groups } = split(pairs, form.lines(), [1, RESIDENT], Unit::HOPPER);
            assert!(k * 2 >= form.step_bytes * parts || parts == 1);
            let (_, rounds) = rounds(pairs, parts, RESIDENT * 132);
            let most = groups.div_ceil(132) * rounds * (WAVES / parts);
            let mean = pairs as f64 / 132.0;
            assert!(most as f64 <= (1.05 * mean).max(2.0), "{n} columns of {k}: {most} and {mean}");
        }
    }

    #[test]
    fn several_rows_of_half_precision_go_by_mma() {
        let (ampere, without_maps) = (Unit::AMPERE, Unit { tensor_maps: false, ..Unit::HOPPER });
        for (m, k, ty, unit, expected) in [
            (2, 2048, ElementType::F16, Unit::HOPPER, Some(("gemv_f16", 2))),
            (3, 2048, ElementType::F16, Unit::HOPPER, Some(("mma_gemv_f16", 4))),
            (4, 8192, ElementType::BF16, Unit::HOPPER, Some(("mma_gemv_bf16", 4))),
            (5, 2048, ElementType::F16, Unit::HOPPER, None),
            (16, 2048, ElementType::BF16, without_maps, Some(("mma_gemv_bf16", 16))),
            (16, 2048, ElementType::F16, ampere, Some(("mma_gemv_f16", 16))),
            (16, 8192, ElementType::F16, ampere, None),
            (8, 8192, ElementType::F16, ampere, Some(("gemv_f16", 4))),
            (8, 2048, ElementType::F16, ampere, Some(("mma_gemv_f16", 8))),
            (17, 2048, ElementType::F16, Unit::HOPPER, None),
            (8, 2048, ElementType::F32, Unit::HOPPER, Some(("gemv_f32", 8))),
            (9, 2048, ElementType::F32, Unit::HOPPER, None),
        ] {
            let form = Form::of_elements(&product(m, 8, k), true, ty, unit);
            let chosen = form.map(|form| (form.family, form.rows([m, k], true, ty, unit).unwrap()));
            assert_eq!(chosen, expected, "{m} rows of {k}");
        }
        let odd = Form::of_elements(&product(8, 12, 2048), true, ElementType::F16, Unit::HOPPER);
        assert_eq!(odd.map(|form| form.family), Some("mma_gemv_f16"), "columns that are no whole packs");
    }

    #[test]
    fn rows_fit_into_workgroup_memory() {
        let amd = Unit {
            wave: 64,
            mma_sync: false,
            wgmma: false,
            wide_rows: false,
            tensor_maps: false,
            ..Unit::HOPPER
        };
        for (m, k, expected) in
            [(1, 2048, Some(1)), (3, 2048, Some(4)), (4, 8192, Some(2)), (8, 2048, Some(8)), (1, 40000, None)]
        {
            let form = Form::of_elements(&product(m, 8, k), false, ElementType::F16, amd).unwrap();
            assert_eq!(form.rows([m, k], false, ElementType::F16, amd), expected, "{m} rows of {k}");
        }
    }
}
