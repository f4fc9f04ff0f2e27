//! What products read of an image for some lines of its output, and where.

use super::panels::{DotPanels, Steps};
use super::strip::{Gathering, Rows};
use crate::conv::common::lines::Lines;
use crate::conv::common::partition::{self, Part, Tile, vectors};
use crate::conv::common::planes::Planes;
use crate::gemm::{DotGroup, VECTOR};
use crate::ops::window::Geometry;

/// How images are given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ImageLayout {
    /// Channel by channel.
    Nchw,
    /// Channel-blocked: as dot groups of channels, which products may read where they lie.
    ChannelBlocked,
    /// The same of signed bytes, whose sign bits are flipped first.
    SignFlipped,
}

/// What is known of images.
#[derive(Clone, Copy)]
pub(crate) struct Images {
    pub(crate) layout: ImageLayout,
    /// Channels of a group.
    pub(crate) channels: usize,
    /// Whether dot groups are the only way, so that they may waste memory and work.
    pub(crate) only_way: bool,
}

/// What is known of products.
#[derive(Clone, Copy)]
pub(crate) struct Product {
    /// Rows of a group.
    m: usize,
    /// Channels of a dot group.
    count: usize,
    /// How tiles multiply, if they do.
    pub(crate) steps: Option<Steps>,
}

impl Product {
    pub(crate) fn of<W: DotGroup>(panels: &DotPanels<W>) -> Self {
        Product { m: panels.shape()[1], count: W::COUNT, steps: panels.steps() }
    }
}

pub(crate) struct PackedLayout {
    pub(crate) planes: Planes,
    /// Whether the image is read where it lies.
    pub(crate) in_place: bool,
    /// Whether the positions of each row of the right operand are gathered.
    pub(crate) gathered: bool,
    /// Where tiles read from, if not from the image where it lies.
    pub(crate) gathering: Option<Gathering>,
    /// Where the rows of the right operand begin, in what a group's planes (or runs) are.
    pub(crate) taps: Vec<usize>,
    pub(crate) lines: Lines,
    /// Positions, gaps included.
    pub(crate) positions: usize,
    /// Channels of a group, and their planes of dot groups.
    pub(crate) channels: usize,
    pub(crate) dot_groups: usize,
    /// Elements of a channel of the whole image, and how many of them come before what is read.
    pub(crate) channel: usize,
    pub(crate) skipped: usize,
    /// Outputs of a channel that come before these lines.
    pub(crate) before: usize,
}

impl PackedLayout {
    /// See `DotPlan::new`.
    pub(crate) fn new(g: &Geometry, product: Product, images: Images) -> Option<Self> {
        let part = Part { geometry: g.clone(), skipped: 0, before: 0 };
        Self::of(part, g.input.iter().product(), product, images)
    }

    /// Of an image whose channels have so many elements.
    fn of(part: Part, channel: usize, product: Product, images: Images) -> Option<Self> {
        let Product { m, count, steps } = product;
        let (Part { geometry: g, skipped, before }, Images { layout, channels, only_way }) = (part, images);
        let planes = if only_way { Planes::of_any(&g) } else { Planes::new(&g) };
        let whole = layout == ImageLayout::Nchw || channels.is_multiple_of(count);
        let planes = planes.filter(|_| channels > 0 && whole)?;
        let (dot_groups, area) = (channels.div_ceil(count), g.output.iter().product());
        // To gather costs about as much as the products of a few rows.
        let gain = vectors(planes.positions, VECTOR).saturating_sub(vectors(area, VECTOR)) * m;
        let gathered = steps.is_none() && gain > 8 * vectors(area, VECTOR);
        let in_place = layout == ImageLayout::ChannelBlocked && !gathered && !planes.copied();
        let step = if in_place { channel } else { planes.size() };
        // Where tiles are lines of the cache, they are read where they lie.
        let aligned = [step, if in_place { skipped } else { 0 }].iter().all(|x| x.is_multiple_of(VECTOR));
        let direct = |steps: Steps| {
            let whole =
                planes.lines.line == planes.lines.pitch && dot_groups.is_multiple_of(steps.dot_groups);
            steps.volume == 1 && whole && aligned
        };
        let gathering = steps.filter(|&steps| !direct(steps)).map(|steps| {
            let rows = Rows::new(&planes, g.output.last().copied().unwrap_or(1));
            let rows = rows.filter(|rows| {
                steps.volume > 1
                    && dot_groups.is_multiple_of(steps.dot_groups)
                    && rows.len(dot_groups) <= partition::KEPT
            });
            rows.map_or(Gathering::Strips(planes.lines), Gathering::Rows)
        });
        let (lines, positions) = match &gathering {
            Some(Gathering::Rows(rows)) => (rows.lines, rows.positions),
            _ if gathered || gathering.is_some() => (Lines::whole(area), area),
            _ => (planes.lines, planes.positions),
        };
        let of_group = |c: usize| planes.taps.iter().map(move |tap| (c, *tap));
        let taps = match gathered {
            true => (0..dot_groups * planes.taps.len()).map(|row| row * area).collect(),
            false => (0..dot_groups).flat_map(of_group).map(|(c, tap)| c * step + tap).collect(),
        };
        Some(PackedLayout {
            planes,
            in_place,
            gathered,
            gathering,
            taps,
            lines,
            positions,
            channels,
            dot_groups,
            channel,
            skipped,
            before,
        })
    }

    /// Parts of the output, for threads to have some each; `None` where they had better share output channels, or where
    /// parts would be large. Groups, rows of a group and depth are those of the panels.
    pub(crate) fn parts(
        g: &Geometry,
        shape: [usize; 3],
        product: Product,
        images: Images,
        threads: usize,
    ) -> Option<Vec<Self>> {
        let channel = g.input.iter().product();
        let tile = match product.steps {
            Some(_) => Tile { positions: 2 * VECTOR, vector: VECTOR, alone: 0 },
            None => Tile::of_vectors(VECTOR),
        };
        let parts = partition::parts(g, shape, (threads, 4), tile)?.into_iter();
        let parts: Vec<_> =
            parts.map(|part| PackedLayout::of(part, channel, product, images)).collect::<Option<_>>()?;
        parts.iter().all(|part| part.memory(shape[0]) <= partition::KEPT).then_some(parts)
    }

    /// Dot groups that an image of so many groups is arranged in.
    pub(crate) fn memory(&self, groups: usize) -> usize {
        if self.in_place { 0 } else { groups * self.group() }
    }

    /// Dot groups from what products read of a group to the next.
    pub(crate) fn group(&self) -> usize {
        self.dot_groups * if self.in_place { self.channel } else { self.run() }
    }

    /// Dot groups that are made of a dot group of channels.
    fn run(&self) -> usize {
        match self.gathered {
            true => self.planes.taps.len() * self.positions,
            false => self.planes.size(),
        }
    }

    /// Dot groups of `run` that are written one after the other.
    pub(crate) fn unit(&self) -> usize {
        if self.gathered { self.run() } else { self.planes.plane }
    }

    /// Dot groups that planes take which are gathered from.
    pub(crate) fn scratch_len(&self) -> usize {
        if self.gathered { self.planes.size() } else { 0 }
    }
}
