//! Constant weights as vectors of output channels.

use crate::conv::common::masks::LONGEST;
use crate::isa::halves_avx512;
use crate::loops::packed_weights::Weights;
use crate::loops::packing::Packing;
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::simd::vector_len;

/// Vectors of output channels that a tile computes at a time, at most.
const MOST: usize = 4;

/// What an instruction set's registers hold of a tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LaneTile {
    /// Floats of a vector.
    pub(crate) vector: usize,
    /// Vectors of a panel, at most.
    pub(crate) vectors: usize,
}

impl LaneTile {
    /// That of an instruction set with vectors of so many floats: there are 32 registers where they have 16.
    pub(crate) fn of_vectors(vector: usize) -> Self {
        LaneTile { vector, vectors: if vector == LONGEST { MOST } else { MOST / 2 } }
    }

    /// That of this machine.
    pub(crate) fn widest() -> Self {
        Self::of_vectors(vector_len())
    }

    /// That of a convolution in groups of so many output and input channels. On a Zen 4 groups of 16 by 16 channels take 0.72 to
    /// 0.88 of the time of other ways as two vectors of eight: one of sixteen waits for itself.
    pub(crate) fn of_groups(groups: usize, channels: [usize; 2]) -> Self {
        let halves = groups > 1 && channels == [16, 16] && halves_avx512();
        if halves { Self::of_vectors(8) } else { Self::widest() }
    }
}

/// The weights of all groups. A panel has the shape `[positions of the kernel, input channels, lanes]`; missing output
/// channels are 0.
pub(crate) struct LanePanels {
    data: Weights<f32>,
    tile: LaneTile,
    groups: usize,
    /// Output and input channels of a group.
    outputs: usize,
    channels: usize,
    /// Positions of the kernel.
    volume: usize,
}

/// A panel of a group.
#[derive(Clone, Copy)]
pub(super) struct LanePanel<'a> {
    pub(super) weights: &'a [f32],
    /// Vectors of lanes.
    pub(super) vectors: usize,
    /// The first output channel of the group, and how many there are.
    pub(super) first: usize,
    pub(super) outputs: usize,
}

impl LanePanels {
    /// Packs the weight of a convolution, `[groups * outputs, channels, volume]`, on all threads of the pool.
    pub(crate) fn new(
        weight: &[f32],
        tile: LaneTile,
        groups: usize,
        shape: [usize; 3],
        packing: Packing<'_>,
    ) -> Self {
        let [outputs, channels, volume] = shape;
        Self::of(tile, groups, shape, packing, |group, output, channel, tap| {
            weight[((group * outputs + output) * channels + channel) * volume + tap]
        })
    }

    /// The same of a transposed convolution, `[groups * channels, outputs, volume]`.
    pub(crate) fn transposed(
        weight: &[f32],
        tile: LaneTile,
        groups: usize,
        shape: [usize; 3],
        packing: Packing<'_>,
    ) -> Self {
        let [outputs, channels, volume] = shape;
        Self::of(tile, groups, shape, packing, |group, output, channel, tap| {
            weight[((group * channels + channel) * outputs + output) * volume + tap]
        })
    }

    fn of(
        tile: LaneTile,
        groups: usize,
        [outputs, channels, volume]: [usize; 3],
        packing: Packing<'_>,
        weight: impl Fn(usize, usize, usize, usize) -> f32 + Sync,
    ) -> Self {
        let (depth, cut) = (channels * volume, Cut::new(tile, outputs));
        let of_group = cut.vectors * depth;
        let data = packing.filled(groups * of_group * tile.vector, |data| {
            split_mut(packing.pool, data, tile.vector, GRAIN / tile.vector, |range, out| {
                for (i, out) in range.zip(out.chunks_exact_mut(tile.vector)) {
                    let (group, i) = (i / of_group, i % of_group);
                    let panel = (1..cut.panels).rfind(|&panel| cut.at(panel) * depth <= i).unwrap_or(0);
                    let (before, end) = (cut.at(panel), cut.at(panel + 1));
                    let (i, width) = (i - before * depth, end - before);
                    let (at, first) = (i / width, (before + i % width) * tile.vector);
                    let (tap, channel) = (at / channels, at % channels);
                    for (lane, out) in out.iter_mut().enumerate() {
                        let output = first + lane;
                        *out = if output < outputs { weight(group, output, channel, tap) } else { 0.0 };
                    }
                }
            });
        });
        LanePanels { data, tile, groups, outputs, channels, volume }
    }

    pub(super) fn tile(&self) -> LaneTile {
        self.tile
    }

    pub(super) fn groups(&self) -> usize {
        self.groups
    }

    /// Output channels of a group, its input channels, positions of the kernel.
    pub(super) fn shape(&self) -> [usize; 3] {
        [self.outputs, self.channels, self.volume]
    }

    fn cut(&self) -> Cut {
        Cut::new(self.tile, self.outputs)
    }

    /// Panels of a group.
    pub(super) fn count(&self) -> usize {
        self.cut().panels
    }

    /// Lanes of a panel, at most.
    pub(super) fn lanes(&self) -> usize {
        let Cut { vectors, panels } = self.cut();
        vectors.div_ceil(panels) * self.tile.vector
    }

    pub(super) fn panel(&self, group: usize, i: usize) -> LanePanel<'_> {
        let (vector, depth, cut) = (self.tile.vector, self.channels * self.volume, self.cut());
        let [first, end] = [i, i + 1].map(|i| cut.at(i) * vector);
        LanePanel {
            weights: &self.data[(group * cut.vectors * vector + first) * depth..][..(end - first) * depth],
            vectors: (end - first) / vector,
            first,
            outputs: end.min(self.outputs) - first,
        }
    }
}

/// How the output channels of a group, so many vectors, are cut into panels: none has two more than another.
struct Cut {
    vectors: usize,
    panels: usize,
}

impl Cut {
    fn new(tile: LaneTile, outputs: usize) -> Self {
        let vectors = outputs.div_ceil(tile.vector);
        Cut { vectors, panels: vectors.div_ceil(tile.vectors) }
    }

    /// The vectors before a panel.
    fn at(&self, panel: usize) -> usize {
        self.vectors * panel / self.panels
    }
}
