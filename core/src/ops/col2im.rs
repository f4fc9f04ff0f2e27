//! Col2Im.

use std::sync::Arc;

use super::shape::product;
use super::{Declaration, Infer, OpError, Operator, Types};

/// Adds the columns `[N, C·block, blocks]` up to an image: the inverse of cutting it into blocks.
/// Empty lists stand for the defaults: ones for dilations and strides, zeros for pads.
#[derive(Clone, Debug, PartialEq)]
pub struct Col2Im {
    pub dilations: Vec<i64>,
    pub pads: Vec<i64>,
    pub strides: Vec<i64>,
}

/// How blocks lie along one spatial axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockAxis {
    pub image: usize,
    pub block: usize,
    pub dilation: usize,
    pub stride: usize,
    pub pad: usize,
    /// The number of blocks.
    pub count: usize,
}

impl Col2Im {
    /// The layout of the blocks of an image.
    pub fn axes(&self, image: &[i64], block: &[i64]) -> Result<Vec<BlockAxis>, OpError> {
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

pub(super) const DECLARATIONS: &[Declaration] = &[Declaration::new(
    "Col2Im",
    &[18],
    "input:T, image_shape:int64, block_shape:int64 -> output:T",
    &[("T", Types::NUMERIC.and(Types::COMPLEX))],
    |a| {
        let list = |name: &str| Ok::<_, OpError>(a.ints(name)?.unwrap_or_default().to_vec());
        Ok(Arc::new(Col2Im { dilations: list("dilations")?, pads: list("pads")?, strides: list("strides")? }))
    },
)
.shape_inputs(&[1, 2])];
