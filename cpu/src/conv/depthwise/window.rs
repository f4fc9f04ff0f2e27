//! Windows of depthwise convolutions that have channels in lanes.

use crate::ops::window::Geometry;

/// Images of one or two axes, and windows that move as far along both. Pairs are of rows and columns.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub(super) image: [usize; 2],
    pub(super) output: [usize; 2],
    pub(super) pads: [usize; 2],
    pub(super) kernel: [usize; 2],
    pub(super) dilations: [usize; 2],
    pub(super) stride: usize,
}

impl Window {
    /// `None` for strides that differ or are more than 2, for more than two axes, and for kernels without elements.
    pub(super) fn new(g: &Geometry) -> Option<Self> {
        let axes = g.input.len();
        let stride = *g.strides.first()?;
        if axes > 2 || ![1, 2].contains(&stride) || g.strides.iter().any(|&other| other != stride) {
            return None;
        }
        let two = |list: &[usize], one: usize| if axes == 1 { [one, list[0]] } else { [list[0], list[1]] };
        let (image, output, kernel) = (two(&g.input, 1), two(&g.output, 1), two(&g.kernel, 1));
        let (dilations, pads) = (two(&g.dilations, 1), two(&g.pads_begin, 0));
        (!kernel.contains(&0)).then_some(Window { image, output, pads, kernel, dilations, stride })
    }

    /// Positions that a window reaches along an axis; `None` where that is no number.
    pub(super) fn reach(&self, axis: usize) -> Option<usize> {
        (self.kernel[axis] - 1).checked_mul(self.dilations[axis])?.checked_add(1)
    }

    /// Positions of a line that windows read, with those in the padding.
    pub(super) fn pitch(&self) -> Option<usize> {
        let last = self.output[1].saturating_sub(1).checked_mul(self.stride)?;
        let read = self.reach(1)?.checked_add(last)?;
        Some(read.max(self.image[1].checked_add(self.pads[1])?))
    }
}
