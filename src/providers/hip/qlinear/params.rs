//! Parameters of the kernels for 8-bit numbers that follow those of a product, as
//! `kernels/include/rukh/bytes.h` declares them.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable, bytes_of};

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::gemm::{Axis, GemmParams, MAX_AXES, row_major};
use super::super::launch::Operand;

/// The element that parameters of a product are written for.
pub(super) const ELEMENT: ElementType = ElementType::U8;

/// Bytes of the parameters of an image, which lie between.
pub(super) const IMAGE_BYTES: usize = 56;

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct SideParams {
    zeros: u64,
    scales: u64,
    zero_stride: u32,
    scale_stride: u32,
    is_signed: u32,
    unused: u32,
    batch: [i64; MAX_AXES],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct TailParams {
    sides: [SideParams; 2],
    y_scale: u64,
    y_zero: u64,
    row_bias: u64,
    column_bias: u64,
    scale_type: u32,
    out_type: u32,
}

const _: () = assert!(size_of::<GemmParams>() + IMAGE_BYTES + size_of::<TailParams>() == 744);

/// Scale and zero point of one operand: the inputs, whether they go by line, and how far each axis of the
/// batch moves them.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    pub(super) scale: Option<(usize, bool)>,
    pub(super) zero: Option<(usize, bool)>,
    pub(super) is_signed: bool,
    /// Whether its numbers are signed and their zero points known to be 0.
    pub(super) is_centered: bool,
    pub(super) batch: Vec<i64>,
}

impl Side {
    /// Whether one number serves everything.
    pub(super) fn is_uniform(&self) -> bool {
        ![self.scale, self.zero].iter().flatten().any(|(_, by_line)| *by_line)
    }

    /// A parameter of an operand with `lines` rows or columns: one element, one a line, or such vectors for
    /// each matrix, shaped like the operand.
    pub(super) fn read(
        &mut self,
        shape: &[usize],
        lines: usize,
        row: bool,
        batch: &[Axis],
    ) -> Result<bool, OpError> {
        let wanted = if row { [lines, 1] } else { [1, lines] };
        match *shape {
            _ if shape.iter().all(|&d| d == 1) => Ok(false),
            [n] if n == lines => Ok(true),
            [ref sizes @ .., r, c] if [r, c] == wanted && sizes.len() <= batch.len() => {
                let skip = batch.len() - sizes.len();
                let mut steps = vec![0; batch.len()];
                for (i, (&size, stride)) in sizes.iter().zip(row_major(shape)).enumerate() {
                    if size != 1 {
                        steps[skip + i] = stride as i64;
                    }
                }
                if self.batch.iter().any(|&s| s != 0) && self.batch != steps {
                    return Err(OpError::Unsupported(
                        "the GPU takes scales and zero points of stacks only in one shape".to_owned(),
                    ));
                }
                self.batch = steps;
                Ok(true)
            }
            _ => Err(OpError::Data(format!(
                "a scale or zero point has shape {shape:?}; allowed are one element, {lines} elements, or such \
                 vectors for each matrix"
            ))),
        }
    }
}

/// What the kernels take beyond the product and the image.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    pub(super) sides: [Side; 2],
    pub(super) y_scale: Option<usize>,
    pub(super) y_zero: Option<usize>,
    pub(super) row_bias: Option<usize>,
    pub(super) column_bias: Option<usize>,
    pub(super) scale_type: ElementType,
    pub(super) out_type: ElementType,
}

impl Tail {
    /// The bytes, and the addresses within.
    pub(super) fn params(&self) -> (Vec<u8>, Vec<(usize, Operand)>) {
        let mut p = TailParams::zeroed();
        (p.scale_type, p.out_type) = (self.scale_type as u32, self.out_type as u32);
        let mut addresses = Vec::new();
        let mut address = |at: usize, input: Option<usize>| {
            addresses.extend(input.map(|i| (at, Operand::Input(i))));
        };
        for (i, (to, side)) in p.sides.iter_mut().zip(&self.sides).enumerate() {
            let at = offset_of!(TailParams, sides) + i * size_of::<SideParams>();
            address(at + offset_of!(SideParams, scales), side.scale.map(|s| s.0));
            address(at + offset_of!(SideParams, zeros), side.zero.map(|z| z.0));
            to.scale_stride = u32::from(side.scale.is_some_and(|s| s.1));
            to.zero_stride = u32::from(side.zero.is_some_and(|z| z.1));
            to.is_signed = u32::from(side.is_signed);
            to.batch.iter_mut().zip(&side.batch).for_each(|(to, &step)| *to = step);
        }
        address(offset_of!(TailParams, y_scale), self.y_scale);
        address(offset_of!(TailParams, y_zero), self.y_zero);
        address(offset_of!(TailParams, row_bias), self.row_bias);
        address(offset_of!(TailParams, column_bias), self.column_bias);
        (bytes_of(&p).to_vec(), addresses)
    }
}
