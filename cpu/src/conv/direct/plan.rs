//! Convolution of images by products of panels with planes, divided among threads by lines or by blocks.

use std::sync::Arc;

use super::panels::{Panels, SumTile};
use super::products::Products;
use super::strips::{self, StripTaps};
use crate::conv::common::blocks::{Blocks, CACHED, GRAIN};
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::partition::{self, Part, Tile};
use crate::conv::common::planes::{CopyPlanes, Planes};
use crate::isa::Dispatch;
use crate::kernel::KernelContext;
use crate::loops::parallel::threads_of_image;
use crate::loops::scratch::with_scratch;
use crate::ops::window::Geometry;

/// What depends on shapes.
pub(crate) enum DirectPlan {
    /// All threads copy the image if need be, and have blocks of output channels and positions.
    Blocks(LinesPlan),
    /// Threads have lines of the output, and copy what these read.
    Lines(Vec<LinesPlan>),
}

/// What products read for some lines of an output.
pub(crate) struct LinesPlan {
    planes: Planes,
    /// Where the rows of the right operand begin, in the planes of a group's channels, or in its images, if planes are not
    /// copied: a part in the middle may have no padding where the whole has.
    taps: Arc<[usize]>,
    blocks: Blocks,
    /// If positions are copied to strips.
    strips: Option<Arc<StripTaps>>,
    /// As of `partition::Part`.
    skipped: usize,
    before: usize,
}

impl DirectPlan {
    /// For so many images and a weight with so many input channels in a group. `None` where the layout would waste memory
    /// or work, for more than two axes, and without elements.
    pub(crate) fn new(
        g: &Geometry,
        panels: &Panels,
        images: usize,
        channels: usize,
        threads: usize,
        residual: bool,
    ) -> Option<Self> {
        let planes = Planes::new(g)?;
        let threads = threads_of_image(images, threads);
        let [groups, m, k] = panels.shape();
        let small =
            |planes: &Planes| !planes.copied() || groups * channels * planes.size() <= partition::KEPT;
        let tile = SumTile::widest();
        let layout = |planes, threads, taps| LinesPlan::new(planes, panels, threads, residual, taps);
        let parts = || {
            // Each reads all of the weight.
            let each = if m * k <= CACHED { 4 } else { 1 };
            let mut layouts: Vec<LinesPlan> = Vec::new();
            for Part { geometry, skipped, before } in
                partition::parts(g, panels.shape(), (threads, each), Tile::of_vectors(tile.vector))?
            {
                let planes = Planes::new(&geometry)?;
                // Most parts are alike.
                let like = layouts.iter().find(|layout| {
                    let other = &layout.planes;
                    planes.copied()
                        && other.copied()
                        && (&other.taps, other.size()) == (&planes.taps, planes.size())
                });
                let taps = match like {
                    Some(layout) => layout.taps.clone(),
                    None if planes.copied() => taps(&planes, channels, planes.size(), 0),
                    None => taps(&planes, channels, g.input.iter().product(), skipped),
                };
                layouts.push(LinesPlan { skipped, before, ..layout(planes, 1, taps) });
            }
            layouts.iter().all(|layout| small(&layout.planes)).then_some(layouts)
        };
        let lines = if planes.copied() { parts() } else { None };
        Some(lines.map(DirectPlan::Lines).unwrap_or_else(|| {
            let alone = threads == 1 && small(&planes);
            let taps = taps(&planes, channels, planes.size(), 0);
            let whole = layout(planes, threads, taps);
            if alone { DirectPlan::Lines(vec![whole]) } else { DirectPlan::Blocks(whole) }
        }))
    }

    /// Elements of scratch for images of so many channels.
    pub(crate) fn scratch_len(&self, channels: usize) -> usize {
        match self {
            DirectPlan::Blocks(layout) if layout.planes.copied() => channels * layout.planes.size(),
            _ => 0,
        }
    }

    /// Convolves images of so many elements that follow one another.
    pub(crate) fn convolve(
        &self,
        cx: &KernelContext<'_>,
        panels: &Panels,
        (x, size): (&[f32], usize),
        epilogue: F32Epilogue<'_>,
    ) {
        let [groups, m, k] = panels.shape();
        let epilogue = |image: usize| F32Epilogue {
            start: epilogue.start + image * groups * m * epilogue.columns,
            ..epilogue
        };
        match self {
            DirectPlan::Blocks(layout) => {
                let (planes, scratch) = (&layout.planes, cx.scratch::<f32>());
                for (i, image) in x.chunks_exact(size).enumerate().take_while(|_| !cx.cancelled()) {
                    let source = if planes.copied() {
                        let scratch = &mut scratch[..size / planes.image() * planes.size()];
                        planes.copy_image(cx.pool, image, planes.image(), scratch);
                        &*scratch
                    } else {
                        image
                    };
                    layout.products(panels, source, epilogue(i)).compute(cx.pool);
                }
            }
            DirectPlan::Lines(parts) => {
                let channels = groups * k / parts[0].planes.taps.len();
                let work = groups * m * k * parts[0].planes.positions;
                cx.pool.split(x.len() / size * parts.len(), GRAIN.div_ceil(work), |range| {
                    for i in range.take_while(|_| !cx.cancelled()) {
                        let (i, layout) = (i / parts.len(), &parts[i % parts.len()]);
                        let (planes, image) = (&layout.planes, &x[i * size..][..size]);
                        let copied = if planes.copied() { channels * planes.size() } else { 0 };
                        let [scratch, room] = Products::room(panels, layout.strips.as_deref());
                        with_scratch([copied, scratch, room], |[source, scratch, room]: [&mut [f32]; 3]| {
                            let (channel, from) = (size / channels, &image[layout.skipped..]);
                            let source = if planes.copied() {
                                CopyPlanes { planes, image: from, channel, first: 0, out: source }.widest();
                                &*source
                            } else {
                                image
                            };
                            layout.products(panels, source, epilogue(i)).compute_alone(scratch, room);
                        });
                    }
                });
            }
        }
    }
}

impl LinesPlan {
    /// For planes that are read with such taps.
    pub(super) fn new(
        planes: Planes,
        panels: &Panels,
        threads: usize,
        residual: bool,
        taps: Arc<[usize]>,
    ) -> Self {
        let (unit, shape, tile) = (panels.rows(), panels.shape(), SumTile::widest());
        let [_, m, k] = shape;
        let outputs = planes.lines.outputs_before(planes.positions);
        let strips = strips::pays(tile, &planes, m.div_ceil(tile.rows), k)
            .then(|| Arc::new(StripTaps::new(tile, k, outputs, &planes)));
        let blocks = match strips {
            // Each block copies the strips that it reads.
            Some(_) => Blocks::of_copies(unit, shape, outputs, threads, residual),
            None => Blocks::new(unit, shape, planes.positions, threads, residual),
        };
        LinesPlan { blocks, strips, planes, taps, skipped: 0, before: 0 }
    }

    pub(super) fn planes(&self) -> &Planes {
        &self.planes
    }

    pub(super) fn products<'a>(
        &'a self,
        panels: &'a Panels,
        source: &'a [f32],
        epilogue: F32Epilogue<'a>,
    ) -> Products<'a> {
        let Planes { positions, lines, .. } = self.planes;
        let positions = if self.strips.is_some() { lines.outputs_before(positions) } else { positions };
        Products {
            panels,
            taps: &self.taps,
            planes: source,
            positions,
            lines,
            blocks: self.blocks,
            strips: self.strips.as_deref(),
            epilogue: F32Epilogue { start: epilogue.start + self.before, ..epilogue },
        }
    }
}

/// Where the rows of the right operand begin, for a group of channels so far from one another.
pub(crate) fn taps(planes: &Planes, channels: usize, step: usize, first: usize) -> Arc<[usize]> {
    let of_channel = |c: usize| planes.taps.iter().map(move |tap| first + c * step + tap);
    (0..channels).flat_map(of_channel).collect()
}
