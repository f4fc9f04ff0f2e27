//! MatMulNBits of few rows by the kernels that read packed weights 16 bytes at a time, `kernels/weight_gemv_*.hip`
//! and `kernels/mma_weight_gemv_*.hip`.

use std::ffi::CStr;
use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable, bytes_of};

use crate::ops::weight_only::MatMulNBits;
use crate::tensor::ElementType;

use super::super::gemm::{Form, MMA_LANES, MMA_LINES};
use super::super::launch::Operand;
use super::super::unit::Unit;
use super::NORM_SCALE;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct WeightLines {
    scales: u64,
    zeros: u64,
    block: u32,
    blocks: u32,
    zero_bytes: u32,
    line_bytes: u32,
}

const _: () = assert!(size_of::<WeightLines>() == 32);

/// Rows beyond which the weight is unpacked to memory once.
const MOST_ROWS: usize = 16;
/// Lines that a wave takes at a time.
const COLUMNS: usize = 4;
/// Unpacking keeps a processor as busy as its memory does. A workgroup's waves store a round's results, and begin the next
/// one, in some 700 instructions, of which a processor starts four a cycle; 18 bytes come to it in one (H200).
const ROUND_BYTES: usize = 3 << 10;

/// How those kernels read this weight. `None` for what they do not take: more rows, blocks of fewer numbers than 16 bytes
/// hold, an order of columns.
pub(super) fn form(
    op: &MatMulNBits,
    ty: ElementType,
    m: usize,
    given: impl Fn(usize) -> bool,
    unit: Unit,
) -> Option<Form> {
    let numbers = 128 / op.bits.max(1);
    if m == 0 || m > MOST_ROWS || op.n == 0 || op.k == 0 || op.block < numbers || given(4) {
        return None;
    }
    let line_bytes = op.blocks() * op.block * op.bits / 8;
    let params = WeightLines {
        block: op.block.trailing_zeros(),
        blocks: u32::try_from(op.blocks()).ok()?,
        zero_bytes: u32::try_from(op.zero_bytes()).ok()?,
        line_bytes: u32::try_from(line_bytes).ok()?,
        ..WeightLines::zeroed()
    };
    let mut addresses = vec![(offset_of!(WeightLines, scales), Operand::Input(2))];
    addresses.extend(given(3).then_some((offset_of!(WeightLines, zeros), Operand::Input(3))));
    let form = |mma: bool| {
        let step_bytes = if mma { MMA_LANES * MMA_AHEAD } else { unit.wave } * 16;
        Some(Form {
            family: family(ty, op.bits, mma)?,
            names: if mma { MMA_KERNELS.to_vec() } else { KERNELS.to_vec() },
            columns: if mma { MMA_LINES } else { COLUMNS },
            line_bytes,
            step_bytes,
            step: step_bytes / 16 * numbers,
            round_bytes: if mma { 0 } else { ROUND_BYTES },
            whole_lines: m == 1 && unit.wide_rows,
            keeps_scale: mma || unit.wide_rows,
            planes_of_one: 1,
            more: (bytes_of(&params).to_vec(), addresses.clone()),
        })
    };
    let norm = given(NORM_SCALE);
    let gains = |form: &Form| form.gains_by_mma([m, op.k], norm, MOST_ROWS_OF_OTHERS, ty, unit);
    let by_mma = || form(true).filter(gains);
    let form = by_mma().or_else(|| form(false))?;
    form.rows([m, op.k], norm, ty, unit).is_some().then_some(form)
}

/// The kernels for 1, 2 and 4 rows, and the most of them.
const MOST_ROWS_OF_OTHERS: usize = 4;
const KERNELS: [&CStr; 3] = [c"weight_gemv_1", c"weight_gemv_2", c"weight_gemv_4"];
/// Those by `mma.sync` for 1, 2, 4, 8 and 16 rows, and the chunks of a line that a lane loads at once.
const MMA_KERNELS: [&CStr; 5] = [
    c"mma_weight_gemv_1",
    c"mma_weight_gemv_1",
    c"mma_weight_gemv_1",
    c"mma_weight_gemv_1",
    c"mma_weight_gemv_2",
];
const MMA_AHEAD: usize = 2;

/// Where they are for a type and a number of bits. Each has a family of its own, so that a model need not wait for the
/// driver to compile what it has no weights for. With 2 bits mma.sync gains nothing: unpacking is all that takes time.
fn family(ty: ElementType, bits: usize, mma: bool) -> Option<&'static str> {
    Some(match (ty, bits) {
        (ElementType::F16, 4) if mma => "mma_weight_gemv_f16_4",
        (ElementType::F16, 8) if mma => "mma_weight_gemv_f16_8",
        _ if mma => return None,
        (ElementType::F32, 2) => "weight_gemv_f32_2",
        (ElementType::F32, 4) => "weight_gemv_f32_4",
        (ElementType::F32, 8) => "weight_gemv_f32_8",
        (ElementType::F16, 2) => "weight_gemv_f16_2",
        (ElementType::F16, 4) => "weight_gemv_f16_4",
        (ElementType::F16, 8) => "weight_gemv_f16_8",
        (ElementType::BF16, 2) => "weight_gemv_bf16_2",
        (ElementType::BF16, 4) => "weight_gemv_bf16_4",
        (ElementType::BF16, 8) => "weight_gemv_bf16_8",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_rows_go_by_mma_where_lines_are_not_read_more_often() {
        let other = Unit { mma_sync: false, wgmma: false, ..Unit::HOPPER };
        for (m, k, bits, unit, expected) in [
            (1, 4096, 4, Unit::HOPPER, Some(("weight_gemv_f16_4", 1))),
            (2, 4096, 4, Unit::HOPPER, Some(("weight_gemv_f16_4", 2))),
            (3, 4096, 4, Unit::HOPPER, Some(("mma_weight_gemv_f16_4", 4))),
            (16, 4096, 4, Unit::HOPPER, Some(("mma_weight_gemv_f16_4", 16))),
            // A workgroup has room for four of these rows, and the other kernels take no more.
            (5, 14336, 4, Unit::HOPPER, Some(("mma_weight_gemv_f16_4", 4))),
            (16, 14336, 8, Unit::HOPPER, Some(("mma_weight_gemv_f16_8", 4))),
            // Room for two.
            (16, 28672, 4, Unit::HOPPER, Some(("weight_gemv_f16_4", 2))),
            (16, 4096, 2, Unit::HOPPER, Some(("weight_gemv_f16_2", 4))),
            (8, 8192, 4, Unit::AMPERE, Some(("mma_weight_gemv_f16_4", 4))),
            (8, 2048, 4, other, Some(("weight_gemv_f16_4", 4))),
            (17, 4096, 4, Unit::HOPPER, None),
        ] {
            let op = MatMulNBits { n: 4096, k, block: 32.max(128 / bits), bits, left_bits: 16 };
            let form = form(&op, ElementType::F16, m, |_| false, unit);
            let chosen =
                form.map(|form| (form.family, form.rows([m, k], false, ElementType::F16, unit).unwrap()));
            assert_eq!(chosen, expected, "{m} rows of {k}, {bits} bits");
        }
    }
}
