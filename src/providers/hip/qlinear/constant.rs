//! Constant operands of bytes: packed on the host when the first plan wants them, and kept on the device.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use crate::ops::OpError;
use crate::tensor::Tensor;

use super::super::launch::Operand;
use super::super::{DeviceBuffer, PlanBuilder};
use super::pack::Packed;

/// Lines and numbers of a square that is packed at a time, so that its bytes stay in the processor's cache.
const SIDE: usize = 64;

/// Where the sums end and the lines begin: at a multiple of this.
const ALIGNMENT: usize = 256;

/// A constant before and after it is packed. All plans of a node pack it in the same way.
pub(super) struct Constant(Mutex<State>);

enum State {
    Host(Tensor),
    Device(Arc<DeviceBuffer>),
}

/// How a constant `[line, channel, tap]` with these strides becomes lines `[tap][channel]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) lines: usize,
    pub(super) channels: usize,
    pub(super) taps: usize,
    pub(super) strides: [usize; 3],
    /// Bytes that channels are filled up to, with zeros.
    pub(super) pixel: usize,
    pub(super) is_signed: bool,
}

impl Constant {
    pub(super) fn new(tensor: &Tensor) -> Self {
        Constant(Mutex::new(State::Host(tensor.clone())))
    }

    /// The packed constant, with a sum of each line.
    pub(super) fn pack(&self, plan: &mut PlanBuilder<'_>, layout: Layout) -> Result<Packed, OpError> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let buffer = match &*state {
            State::Device(buffer) => buffer.clone(),
            State::Host(tensor) => {
                let bytes = layout.packed(tensor.buffer().map_or(&[][..], |b| b.bytes()))?;
                Arc::new(plan.provider.upload(&bytes)?)
            }
        };
        *state = State::Device(buffer.clone());
        let sums = buffer.address();
        plan.keep(buffer as Arc<dyn Any + Send + Sync>);
        let lines = Operand::Kept(sums + layout.lines_at() as u64);
        Ok(Packed { lines, sums: Some(Operand::Kept(sums)), parts: 1, steps: Vec::new() })
    }
}

impl Layout {
    /// Bytes of a line.
    pub(super) fn line(&self) -> usize {
        self.taps * self.pixel
    }

    fn lines_at(&self) -> usize {
        (self.lines * size_of::<i32>()).next_multiple_of(ALIGNMENT)
    }

    /// Sums, then lines.
    fn packed(&self, from: &[u8]) -> Result<Vec<u8>, OpError> {
        let Layout { lines, channels, taps, strides, pixel, is_signed } = *self;
        if from.len() != lines * channels * taps {
            return Err(OpError::Data(format!(
                "a constant operand has {} bytes; {} belong to its shape",
                from.len(),
                lines * channels * taps
            )));
        }
        let flip = if is_signed { 0 } else { 0x80 };
        let (line, begin) = (self.line(), self.lines_at());
        let mut all = vec![0; begin + lines * line];
        let (head, to) = all.split_at_mut(begin);
        let squares = |n: usize| (0..n).step_by(SIDE);
        for (first, first_channel) in squares(lines).flat_map(|l| squares(channels).map(move |c| (l, c))) {
            for l in first..lines.min(first + SIDE) {
                for tap in 0..taps {
                    let from = &from[l * strides[0] + tap * strides[2]..];
                    let to = &mut to[l * line + tap * pixel..][..channels];
                    for (c, to) in to.iter_mut().enumerate().skip(first_channel).take(SIDE) {
                        *to = from[c * strides[1]] ^ flip;
                    }
                }
            }
        }
        for (sum, line) in head.chunks_exact_mut(size_of::<i32>()).zip(to.chunks_exact(line.max(1))) {
            let total: i32 = line.iter().map(|&x| i32::from(x as i8)).fold(0, i32::wrapping_add);
            sum.copy_from_slice(&total.to_ne_bytes());
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_become_lines() {
        // Two lines of three channels with two taps, and a matrix whose columns are lines; unsigned ones less 128.
        let weight = Layout { lines: 2, channels: 3, taps: 2, strides: [6, 2, 1], pixel: 4, is_signed: true };
        let matrix =
            Layout { lines: 3, channels: 2, taps: 1, strides: [1, 3, 0], pixel: 4, is_signed: false };
        for (layout, from, lines, sums) in [
            (
                weight,
                (1..13).collect(),
                vec![1, 3, 5, 0, 2, 4, 6, 0, 7, 9, 11, 0, 8, 10, 12, 0],
                vec![21, 57],
            ),
            (
                matrix,
                vec![130, 131, 132, 3, 4, 5],
                vec![2, 131, 0, 0, 3, 132, 0, 0, 4, 133, 0, 0],
                vec![-123, -121, -119],
            ),
        ] {
            let all = layout.packed(&from).expect("as many bytes as belong there");
            let found: Vec<i32> = all[..sums.len() * 4]
                .chunks_exact(4)
                .map(|b| i32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
                .collect();
            assert_eq!((found, &all[layout.lines_at()..]), (sums, &lines[..]), "{layout:?}");
        }
        assert!(weight.packed(&[1, 2]).is_err_and(|e| e.to_string().contains("2 bytes; 12 belong")));
    }
}
