//! Brings operands of bytes into lines along K, as signed bytes, with the sum of each line (`bytes_pack` of
//! `kernels/qlinear_mma.hip`).

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable, bytes_of};

use crate::ops::OpError;

use super::super::PlanBuilder;
use super::super::gemm::{Axis, Epilogue, GemmParams, Matrix, Product};
use super::super::launch::{AddressedParams, GROUP, KernelName, Operand};
use super::params::{ELEMENT, IMAGE_BYTES, Side};

/// Lines that a workgroup packs, as in the kernel.
const LINES: usize = 64;

/// Bytes of a line that a workgroup packs: with a sum of them, as each result's workgroup adds those up, and without.
const PART: usize = 256;
const PART_WITHOUT_SUM: usize = 64;

/// What `PackParams` of the kernel has behind the product and the image.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct PackTail {
    to: u64,
    sums: u64,
    zero: u64,
    k_padded: u32,
    part: u32,
    is_signed: u32,
    is_image: u32,
    taps: u32,
    channels: u32,
    pixel: u32,
    unused: u32,
}

const _: () = assert!(size_of::<GemmParams>() + IMAGE_BYTES + size_of::<PackTail>() == 600);

/// An operand, and how it is packed.
pub(super) struct Unpacked<'a> {
    /// Lines of a matrix, and the numbers of each.
    pub(super) lines: usize,
    pub(super) k: usize,
    /// A column is a line; or the image, and how its windows are found.
    pub(super) matrix: Matrix,
    pub(super) image: Option<&'a AddressedParams>,
    /// How far each axis of the batch moves it.
    pub(super) axes: Vec<Axis>,
    /// Of a weight `[line][channel][tap]` whose lines become `[tap][channel]`: taps, channels, and what channels are filled
    /// up to.
    pub(super) weight: Option<[usize; 3]>,
    /// Bytes of a packed line.
    pub(super) line: usize,
    pub(super) with_sums: bool,
}

/// An operand once it is packed: its lines, their sums in so many parts, and bytes between matrices along each axis of the
/// batch.
pub(super) struct Packed {
    pub(super) lines: Operand,
    pub(super) sums: Option<Operand>,
    pub(super) parts: usize,
    /// Empty where one matrix serves all.
    pub(super) steps: Vec<usize>,
}

impl Unpacked<'_> {
    /// Different matrices.
    fn matrices(&self) -> usize {
        self.axes.iter().filter(|axis| axis.strides[1] != 0).map(|axis| axis.size).product()
    }

    /// As it is, where its lines are signed bytes without gaps already and nobody needs their sums.
    pub(super) fn as_it_is(&self, side: &Side) -> Option<Packed> {
        let Unpacked { lines, k, matrix, line, with_sums, .. } = *self;
        let steps: Vec<usize> = self.axes.iter().map(|axis| axis.strides[1] as usize).collect();
        let fits = side.is_signed
            && !with_sums
            && self.image.is_none()
            && self.weight.is_none()
            && k == line
            && matrix.offset == 0
            && matrix.strides == [1, line as i64]
            && steps.iter().all(|step| step.is_multiple_of(lines * line));
        fits.then_some(Packed { lines: matrix.at, sums: None, parts: 0, steps })
    }

    /// Appends the launch: each matrix once.
    pub(super) fn pack(&self, plan: &mut PlanBuilder<'_>, side: &Side) -> Result<Packed, OpError> {
        let Unpacked { lines, matrix, line, with_sums, .. } = *self;
        let count = self.matrices();
        let part = if with_sums { PART } else { PART_WITHOUT_SUM };
        let parts = line.div_ceil(part);
        let to = plan.scratch(count * lines * line);
        let sums = with_sums.then(|| plan.scratch(count * parts * lines * size_of::<i32>()));
        let [taps, channels, pixel] = self.weight.unwrap_or([1, 0, 0]).map(|n| n as u32);
        let source = Product {
            m: 1,
            n: lines,
            k: self.k,
            a: matrix,
            b: matrix,
            out: matrix,
            bias: None,
            residual: None,
            batch: self.axes.iter().filter(|axis| axis.strides[1] != 0).copied().collect(),
            epilogue: Epilogue::default(),
        };
        let own = PackTail {
            k_padded: line as u32,
            part: part as u32,
            is_signed: side.is_signed.into(),
            is_image: self.image.is_some().into(),
            taps,
            channels,
            pixel,
            ..PackTail::zeroed()
        };
        let image = self.image.cloned().unwrap_or_else(|| (vec![0; IMAGE_BYTES], Vec::new()));
        let zero = self.image.and(side.zero).map(|(input, _)| Operand::Input(input));
        let fields = [
            (offset_of!(PackTail, to), Some(to)),
            (offset_of!(PackTail, sums), sums),
            (offset_of!(PackTail, zero), zero),
        ];
        let mut params = bytes_of(&source.params(ELEMENT)?).to_vec();
        let mut addresses = vec![(offset_of!(GemmParams, b), matrix.at)];
        addresses.extend(image.1.into_iter().map(|(at, operand)| (params.len() + at, operand)));
        params.extend_from_slice(&image.0);
        addresses.extend(fields.into_iter().filter_map(|(at, operand)| Some((params.len() + at, operand?))));
        params.extend_from_slice(bytes_of(&own));
        let kernel = KernelName { family: "qlinear_mma", name: c"bytes_pack" };
        plan.launch_bytes(kernel, [lines.div_ceil(LINES) * count, parts, 1], GROUP, 0, &params, &addresses)?;
        // Matrices follow each other in the order of the axes along which the operand moves.
        let mut step = lines * line;
        let mut steps = vec![0; self.axes.len()];
        for (to, axis) in steps.iter_mut().zip(&self.axes).rev() {
            if axis.strides[1] != 0 {
                *to = step;
                step *= axis.size;
            }
        }
        let parts = if with_sums { parts } else { 0 };
        Ok(Packed { lines: to, sums, parts, steps })
    }
}
