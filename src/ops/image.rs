//! Sampling images: GridSample, AffineGrid, Col2Im, and choosing boxes: NonMaxSuppression.

use std::sync::Arc;

use crate::graph::Dim;

use super::shape::product;
use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// Samples `[N, C, …]` at the places that a grid `[N, …, dimensions]` names, in −1…1 with x first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GridSample {
    pub(crate) mode: SampleMode,
    pub(crate) padding: SamplePadding,
    pub(crate) align_corners: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleMode {
    Nearest,
    Linear,
    Cubic,
}

/// What lies outside the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SamplePadding {
    Zeros,
    Border,
    Reflection,
}

impl Operator for GridSample {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let (Some(x), Some(grid)) = (cx.shape(0), cx.shape(1)) else { return Ok(()) };
        if x.len() < 3 || grid.len() != x.len() {
            let reason = format!("its shape is {grid:?}; it needs the rank of the input {x:?}, at least 3");
            return Err(cx.input_error(1, reason));
        }
        let dimensions = x.len() as i64 - 2;
        if grid.last().and_then(Dim::known).is_some_and(|d| d != dimensions) {
            let reason =
                format!("its last axis must be {dimensions}, the input's spatial axes; it is {grid:?}");
            return Err(cx.input_error(1, reason));
        }
        if let (Some(a), Some(b)) = (x[0].known(), grid[0].known())
            && a != b
        {
            return Err(cx.input_error(1, format!("its batch is {b}, that of the input is {a}")));
        }
        cx.set_shape(0, [&x[..2], &grid[1..grid.len() - 1]].concat());
        Ok(())
    }
}

/// The grid of an affine map `[N, 2, 3]` (or `[N, 3, 4]`) over an image of the size in input 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AffineGrid {
    pub(crate) align_corners: bool,
}

impl Operator for AffineGrid {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let theta = cx.shape_of_rank(0, 3)?;
        let Some(size) = cx.ints(1) else { return Ok(()) };
        let n = size.len();
        if n != 4 && n != 5 {
            return Err(cx.input_error(1, format!("it has {n} numbers; allowed are 4 (N, C, H, W) and 5")));
        }
        let d = n as i64 - 2;
        if let Some(theta) = theta
            && [(1, d), (2, d + 1)].iter().any(|&(i, want)| theta[i].known().is_some_and(|have| have != want))
        {
            return Err(cx.input_error(0, format!("its shape is {theta:?}; it must be [N, {d}, {}]", d + 1)));
        }
        if let Some(s) = size.iter().find(|s| s.known().is_some_and(|s| s < 0)) {
            return Err(cx.input_error(1, format!("{s} is no size; allowed are 0 and above")));
        }
        let mut shape = vec![size[0].clone()];
        shape.extend_from_slice(&size[2..]);
        shape.push(Dim::Known(d));
        cx.set_shape(0, shape);
        Ok(())
    }
}

/// Adds the columns `[N, C·block, blocks]` up to an image: the inverse of cutting it into blocks.
/// Empty lists stand for the defaults: ones for dilations and strides, zeros for pads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Col2Im {
    pub(crate) dilations: Vec<i64>,
    pub(crate) pads: Vec<i64>,
    pub(crate) strides: Vec<i64>,
}

/// How blocks lie along one spatial axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockAxis {
    pub(crate) image: usize,
    pub(crate) block: usize,
    pub(crate) dilation: usize,
    pub(crate) stride: usize,
    pub(crate) pad: usize,
    /// The number of blocks.
    pub(crate) count: usize,
}

impl Col2Im {
    /// The layout of the blocks of an image.
    pub(crate) fn axes(&self, image: &[i64], block: &[i64]) -> Result<Vec<BlockAxis>, OpError> {
        let rank = image.len();
        let lists = [
            (&self.dilations, rank, "dilations"),
            (&self.strides, rank, "strides"),
            (&self.pads, rank * 2, "pads"),
        ];
        for (list, want, name) in lists {
            if !list.is_empty() && list.len() != want {
                return Err(OpError::attribute(name, format!("{list:?} has not {want} numbers")));
            }
        }
        if block.len() != rank {
            return Err(OpError::Data(format!(
                "block_shape {block:?} and image_shape {image:?} differ in length"
            )));
        }
        let at = |list: &[i64], i: usize, default: i64| list.get(i).copied().unwrap_or(default);
        (0..rank)
            .map(|i| {
                let (d, s) = (at(&self.dilations, i, 1), at(&self.strides, i, 1));
                let (before, after) = (at(&self.pads, i, 0), at(&self.pads, i + rank, 0));
                let span = image[i] + before + after - (d * (block[i] - 1) + 1);
                if d < 1 || s < 1 || before < 0 || after < 0 || block[i] < 1 || image[i] < 0 || span < 0 {
                    return Err(OpError::Data(format!(
                        "blocks of {} (dilation {d}, stride {s}, pads {before} and {after}) do not fit axis {i} of {}",
                        block[i], image[i]
                    )));
                }
                Ok(BlockAxis {
                    image: image[i] as usize,
                    block: block[i] as usize,
                    dilation: d as usize,
                    stride: s as usize,
                    pad: before as usize,
                    count: (span / s) as usize + 1,
                })
            })
            .collect()
    }
}

impl Operator for Col2Im {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let columns = cx.shape_of_rank(0, 3)?;
        let Some(image) = cx.ints(1) else { return Ok(()) };
        let block = cx.ints(2);
        if let (Some(image), Some(block), Some(columns)) = (cx.known_ints(1), cx.known_ints(2), columns) {
            let axes = self.axes(&image, &block)?;
            let count: usize = axes.iter().map(|a| a.count).product();
            let size: i64 = block.iter().product();
            if columns[2].known().is_some_and(|n| n != count as i64) {
                return Err(cx.input_error(0, format!("it has {} columns for {count} blocks", columns[2])));
            }
            if columns[1].known().is_some_and(|n| n % size != 0) {
                return Err(
                    cx.input_error(0, format!("axis 1 is {}, no multiple of a block's {size}", columns[1]))
                );
            }
        }
        let (batch, channels) = match (columns, block) {
            (Some(columns), Some(block)) => (columns[0].clone(), columns[1].floor_div(&product(&block))),
            (Some(columns), None) => (columns[0].clone(), cx.unknown()),
            _ => (cx.unknown(), cx.unknown()),
        };
        cx.set_shape(0, [vec![batch, channels], image].concat());
        Ok(())
    }
}

/// The boxes `[batch, boxes, 4]` that no better box of the same class overlaps too much.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NonMaxSuppression {
    /// Whether a box is given as centre, width and height, and not as two corners (y before x).
    pub(crate) center_point: bool,
}

impl Operator for NonMaxSuppression {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let boxes = cx.shape_of_rank(0, 3)?;
        let scores = cx.shape_of_rank(1, 3)?;
        if boxes.is_some_and(|b| b[2].known().is_some_and(|n| n != 4)) {
            return Err(cx.input_error(0, "its last axis must be 4"));
        }
        if let (Some(b), Some(s)) = (boxes, scores)
            && [(0, 0), (1, 2)]
                .iter()
                .any(|&(i, j)| b[i].known().is_some() && s[j].known().is_some() && b[i] != s[j])
        {
            return Err(cx.input_error(1, format!("its shape {s:?} does not fit boxes of shape {b:?}")));
        }
        let count = cx.unknown();
        cx.set_shape(0, vec![count, Dim::Known(3)]);
        Ok(())
    }
}

/// The determinants of square matrices.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Det;

impl Operator for Det {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        match shape {
            [outer @ .., a, b] if a == b || a.known().is_none() || b.known().is_none() => {
                cx.set_shape(0, outer.to_vec());
                Ok(())
            }
            _ => Err(cx.input_error(0, format!("its shape is {shape:?}; the last two axes must be equal"))),
        }
    }
}

/// The inverse of each square matrix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Inverse;

impl Operator for Inverse {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        let [.., a, b] = shape else {
            return Err(cx.input_error(0, format!("its rank is {}; allowed are ranks from 2", shape.len())));
        };
        if a.known().zip(b.known()).is_some_and(|(a, b)| a != b) {
            return Err(cx.input_error(0, format!("its shape is {shape:?}; its matrices must be square")));
        }
        cx.set_shape(0, shape.to_vec());
        Ok(())
    }
}

fn parse_sample(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let modes =
        [("linear", SampleMode::Linear), ("nearest", SampleMode::Nearest), ("cubic", SampleMode::Cubic)];
    // The names before opset 20, where images had two dimensions.
    let early =
        [("bilinear", SampleMode::Linear), ("nearest", SampleMode::Nearest), ("bicubic", SampleMode::Cubic)];
    let mode = if a.opset() < 20 {
        a.choice("mode", "bilinear", &early)?
    } else {
        a.choice("mode", "linear", &modes)?
    };
    let padding = a.choice(
        "padding_mode",
        "zeros",
        &[
            ("zeros", SamplePadding::Zeros),
            ("border", SamplePadding::Border),
            ("reflection", SamplePadding::Reflection),
        ],
    )?;
    Ok(Arc::new(GridSample { mode, padding, align_corners: a.flag("align_corners", false)? }))
}

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "GridSample",
        &[16, 20, 22],
        "X:T1, grid:T2 -> Y:T1",
        &[("T1", Types::NUMERIC), ("T2", Types::FLOAT)],
        parse_sample,
    ),
    Declaration::new("GridSample", &[1], "X:T1, Grid:T1 -> Y:T1", &[("T1", Types::FLOAT)], parse_sample)
        .domain("com.microsoft"),
    Declaration::new("AffineGrid", &[20], "theta:T1, size:int64 -> grid:T1", &[("T1", Types::FLOAT)], |a| {
        Ok(Arc::new(AffineGrid { align_corners: a.flag("align_corners", false)? }))
    })
    .shape_inputs(&[1]),
    Declaration::new(
        "Col2Im",
        &[18],
        "input:T, image_shape:int64, block_shape:int64 -> output:T",
        &[("T", Types::NUMERIC.and(Types::COMPLEX))],
        |a| {
            let list = |name: &str| Ok::<_, OpError>(a.ints(name)?.unwrap_or_default().to_vec());
            Ok(Arc::new(Col2Im {
                dilations: list("dilations")?,
                pads: list("pads")?,
                strides: list("strides")?,
            }))
        },
    )
    .shape_inputs(&[1, 2]),
    Declaration::new(
        "NonMaxSuppression",
        &[10, 11],
        "boxes:float, scores:float, max_output_boxes_per_class?:int64, iou_threshold?:float, \
         score_threshold?:float -> selected_indices:int64",
        &[],
        |a| Ok(Arc::new(NonMaxSuppression { center_point: a.flag("center_point_box", false)? })),
    )
    .data_dependent(),
    Declaration::new("Inverse", &[1], "X:T -> Y:T", &[("T", Types::FLOAT)], |_| Ok(Arc::new(Inverse)))
        .domain("com.microsoft"),
    Declaration::new("Det", &[11, 22], "X:T -> Y:T", &[("T", Types::FLOAT)], |_| Ok(Arc::new(Det))),
];
