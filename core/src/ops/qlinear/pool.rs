//! Reductions over windows and axes of quantized tensors (domain com.microsoft), whose channels may
//! be the second or the last dimension.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType;

use crate::ops::channel_blocked::infer_global_channel_blocked;
use crate::ops::int_list::unique_axes;
use crate::ops::pool::{Pool, Reduction, read_window};
use crate::ops::quantize::check_parameter;
use crate::ops::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// A pooling over windows. QLinearAveragePool has X, its scale and zero point, scale and zero point of
/// Y; NhwcMaxPool has X alone.
#[derive(Clone, Debug, PartialEq)]
pub struct QLinearPool {
    pub pool: Pool,
    pub channels_last: bool,
}

impl Operator for QLinearPool {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        (1..5).try_for_each(|i| check_parameter(cx, i))?;
        let Some(x) = channels_first(cx, self.channels_last)? else { return Ok(()) };
        let shape = self.pool.output(&x)?;
        cx.set_shape(0, if self.channels_last { to_channels_last(shape) } else { shape });
        Ok(())
    }
}

/// The mean over axes; inputs as for QLinearAveragePool.
#[derive(Clone, Debug, PartialEq)]
pub struct QLinearMean {
    pub axes: MeanAxes,
    pub keep: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MeanAxes {
    These(Vec<i64>),
    Spatial {
        channels_last: bool,
    },
    /// Of a channel-blocked image (of rukh); the output has channels.
    ChannelBlocked,
}

impl QLinearMean {
    /// Whether each axis of a tensor of this rank is averaged over.
    pub fn reduced(&self, rank: usize) -> Result<Vec<bool>, OpError> {
        let mut reduced = vec![false; rank];
        match &self.axes {
            MeanAxes::These(axes) if axes.is_empty() => reduced.fill(true),
            MeanAxes::These(axes) => unique_axes(axes, rank)?.into_iter().for_each(|i| reduced[i] = true),
            MeanAxes::Spatial { channels_last: true } => reduced[1..rank - 1].fill(true),
            MeanAxes::Spatial { channels_last: false } => reduced[2..].fill(true),
            MeanAxes::ChannelBlocked => reduced[2..rank - 1].fill(true),
        }
        Ok(reduced)
    }
}

impl Operator for QLinearMean {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        (1..5).try_for_each(|i| check_parameter(cx, i))?;
        if self.axes == MeanAxes::ChannelBlocked {
            return infer_global_channel_blocked(cx);
        }
        let Some(x) = cx.shape(0) else { return Ok(()) };
        if matches!(self.axes, MeanAxes::Spatial { .. }) {
            channels_first(cx, false)?;
        }
        let reduced = self.reduced(x.len())?;
        let pairs = x.iter().zip(reduced);
        let shape = match self.keep {
            true => pairs.map(|(d, reduced)| if reduced { Dim::Known(1) } else { d.clone() }).collect(),
            false => pairs.filter(|(_, reduced)| !reduced).map(|(d, _)| d.clone()).collect(),
        };
        cx.set_shape(0, shape);
        Ok(())
    }
}

/// The shape of input 0 as `[batch, channels, spatial…]`; `None` while its rank is unknown.
pub fn channels_first(cx: &Infer<'_>, channels_last: bool) -> Result<Option<Vec<Dim>>, OpError> {
    let Some(x) = cx.shape(0) else { return Ok(None) };
    if x.len() < 3 {
        return Err(cx.input_error(0, format!("its rank is {}; allowed are ranks from 3", x.len())));
    }
    let mut shape = x.to_vec();
    if channels_last {
        shape[1..].rotate_right(1);
    }
    Ok(Some(shape))
}

/// A shape `[batch, channels, spatial…]` with the channels moved to the end.
pub fn to_channels_last<D>(mut shape: Vec<D>) -> Vec<D> {
    shape[1..].rotate_left(1);
    shape
}

fn parse_average(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let reduction = Reduction::Average { count_padding: a.flag("count_include_pad", false)? };
    let pool = Pool { window: read_window(a)?, reduction, column_major: false };
    Ok(Arc::new(QLinearPool { pool, channels_last: a.flag("channels_last", false)? }))
}

fn parse_mean(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let axes = a.ints("axes")?.ok_or_else(|| OpError::attribute("axes", "it is required, and missing"))?;
    let keep = a.required_int("keepdims")? != 0;
    Ok(Arc::new(QLinearMean { axes: MeanAxes::These(axes.to_vec()), keep }))
}

const GLOBAL: &str = "X:T, x_scale:float, x_zero_point:T, y_scale:float, y_zero_point:T -> Y:T";
const T: &[(&str, Types)] = &[("T", Types::of(&[ElementType::I8, ElementType::U8]))];
const DOMAIN: &str = "com.microsoft";

pub(in crate::ops) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "QLinearAveragePool",
        &[1],
        "X:T, x_scale:float, x_zero_point?:T, y_scale:float, y_zero_point?:T -> Y:T",
        T,
        parse_average,
    )
    .domain(DOMAIN),
    Declaration::new("QLinearGlobalAveragePool", &[1], GLOBAL, T, |a| {
        let axes = MeanAxes::Spatial { channels_last: a.flag("channels_last", false)? };
        Ok(Arc::new(QLinearMean { axes, keep: true }))
    })
    .domain(DOMAIN),
    // What the passes of this library make, of channel-blocked images.
    Declaration::new("QLinearGlobalAveragePool", &[1], GLOBAL, T, |_| {
        Ok(Arc::new(QLinearMean { axes: MeanAxes::ChannelBlocked, keep: true }))
    })
    .domain("rukh"),
    Declaration::new(
        "QLinearReduceMean",
        &[1],
        "data:T, data_scale:float, data_zero_point?:T, reduced_scale:float, reduced_zero_point?:T \
         -> reduced:T",
        T,
        parse_mean,
    )
    .domain(DOMAIN),
    Declaration::new("NhwcMaxPool", &[1], "x:T -> y:T", T, |a| {
        let pool = Pool { window: read_window(a)?, reduction: Reduction::Max, column_major: false };
        Ok(Arc::new(QLinearPool { pool, channels_last: true }))
    })
    .domain(DOMAIN),
];
