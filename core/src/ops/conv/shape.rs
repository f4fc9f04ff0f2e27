//! The shapes that convolutions give.

use crate::graph::Dim;

use crate::ops::window::{Window, check_weight_rank, spatial};
use crate::ops::{Infer, OpError};

/// The shape rule of a convolution of input 0 with the weight at input `weight`.
pub fn infer_conv(window: &Window, group: usize, cx: &mut Infer<'_>, weight: usize) -> Result<(), OpError> {
    check_weight_rank(cx, weight)?;
    let (Some(_), Some(x)) = (spatial(cx)?, cx.shape(0)) else { return Ok(()) };
    let shape = conv_shape(window, group, cx, x, weight)?;
    cx.set_shape(0, shape);
    Ok(())
}

/// The output's shape for an input `[batch, channels, spatial…]`.
pub fn conv_shape(
    window: &Window,
    group: usize,
    cx: &mut Infer<'_>,
    x: &[Dim],
    weight: usize,
) -> Result<Vec<Dim>, OpError> {
    let w = cx.shape(weight);
    conv_shape_of(window, group, cx, x, (weight, w))
}

/// The same for a weight of a given shape, `[out channels, channels of a group, kernel…]`, which may be another than
/// that input has.
pub fn conv_shape_of(
    window: &Window,
    group: usize,
    cx: &mut Infer<'_>,
    x: &[Dim],
    (weight, shape): (usize, Option<&[Dim]>),
) -> Result<Vec<Dim>, OpError> {
    let (batch, channels, space) = (&x[0], &x[1], &x[2..]);
    let Some(w) = shape else {
        let out_channels = cx.unknown();
        let kernel: Vec<Dim> = window.kernel.iter().map(|&k| Dim::Known(k)).collect();
        let space = match kernel.len() == space.len() {
            true => window.output(space, &kernel)?,
            false => space.iter().map(|_| cx.unknown()).collect(),
        };
        return Ok([vec![batch.clone(), out_channels], space].concat());
    };
    if w.len() != space.len() + 2 {
        let reason = format!("its rank is {}; allowed is that of X, {}", w.len(), space.len() + 2);
        return Err(cx.input_error(weight, reason));
    }
    for (i, &k) in window.kernel.iter().enumerate().take(space.len()) {
        cx.equal(weight, "the kernel of W", &Dim::Known(k), &w[i + 2])?;
    }
    let groups = Dim::from(group);
    cx.equal(weight, "the channels of X that W takes, times group", channels, &w[1].mul(&groups))?;
    if let Some(m) = w[0].known()
        && m % group as i64 != 0
    {
        let reason = format!("{m} output channels cannot be split into {group} groups");
        return Err(cx.input_error(weight, reason));
    }
    let space = window.output(space, &w[2..])?;
    Ok([vec![batch.clone(), w[0].clone()], space].concat())
}
