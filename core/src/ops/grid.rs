//! Sampling images at places that a grid names: GridSample, AffineGrid.

use std::sync::Arc;

use crate::graph::Dim;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// Samples `[N, C, …]` at the places that a grid `[N, …, dimensions]` names, in −1…1 with x first.
#[derive(Clone, Debug, PartialEq)]
pub struct GridSample {
    pub mode: SampleMode,
    pub padding: SamplePadding,
    pub align_corners: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleMode {
    Nearest,
    Linear,
    Cubic,
}

/// What lies outside the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplePadding {
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
pub struct AffineGrid {
    pub align_corners: bool,
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
];
