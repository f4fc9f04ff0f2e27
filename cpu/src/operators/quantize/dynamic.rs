//! `DynamicQuantizeLinear`, and the quantization of what products take as floats. Bound: two reads and one
//! (narrower) write.

use std::sync::{Mutex, PoisonError};

use crate::ops::OpError;
use crate::ops::quantize::check_scale;
use crate::tensor::{TensorView, TensorViewMut};
use crate::threads::Pool;

use crate::kernel::{CpuKernel, Kernel, KernelContext, NodeContext};
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::quantization::Quantized;
use crate::loops::simd::{Loop, widest};

pub(super) fn build(_node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    Ok(CpuKernel::Tensor(Box::new(DynamicQuantize)))
}

struct DynamicQuantize;

impl Kernel for DynamicQuantize {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(x) = inputs[0].map(|x| x.slice::<f32>()) else { return Ok(()) };
        let [y, scale_out, zero_out, ..] = outputs else { return Ok(()) };
        let (scale, zero) = match y {
            Some(y) => quantize(cx.pool, x, y.slice())?,
            None => parameters(cx.pool, x)?,
        };
        if let Some(scale_out) = scale_out {
            scale_out.slice::<f32>().fill(scale);
        }
        if let Some(zero_out) = zero_out {
            zero_out.slice::<u8>().fill(zero);
        }
        Ok(())
    }
}

/// Quantizes to the range of `x`; gives scale and zero point.
pub(crate) fn quantize(pool: &Pool, x: &[f32], y: &mut [u8]) -> Result<(f32, u8), OpError> {
    let (scale, zero) = parameters(pool, x)?;
    split_mut(pool, y, 1, GRAIN, |range, part| {
        u8::quantize_scaled(&x[range], scale, zero.into(), true, part);
    });
    Ok((scale, zero))
}

/// Scale and zero point that map the range of `x` to 0…255.
fn parameters(pool: &Pool, x: &[f32]) -> Result<(f32, u8), OpError> {
    // The range takes in zero, so that zero is exact.
    let whole = Mutex::new(Extremes { min: 0.0, max: 0.0, nan: false });
    pool.split(x.len(), GRAIN, |range| {
        let part = widest(Survey(&x[range]));
        let mut whole = whole.lock().unwrap_or_else(PoisonError::into_inner);
        *whole = whole.with(part);
    });
    let Extremes { min, max, nan } = whole.into_inner().unwrap_or_else(PoisonError::into_inner);
    let scale = if nan {
        f32::NAN
    } else if min == max {
        1.0
    } else {
        (max - min) / 255.0
    };
    check_scale(scale)?;
    Ok((scale, (-min / scale).clamp(0.0, 255.0).round_ties_even() as u8))
}

/// The least and the largest number, and whether one is none.
#[derive(Clone, Copy)]
struct Extremes {
    min: f32,
    max: f32,
    nan: bool,
}

impl Extremes {
    fn with(self, other: Extremes) -> Extremes {
        Extremes { min: self.min.min(other.min), max: self.max.max(other.max), nan: self.nan || other.nan }
    }
}

struct Survey<'a>(&'a [f32]);

impl Loop for Survey<'_> {
    type Output = Extremes;

    #[inline(always)]
    fn run(self) -> Extremes {
        const LANES: usize = 32;
        let (mut min, mut max, mut odd) = ([0.0f32; LANES], [0.0f32; LANES], [0u32; LANES]);
        let (chunks, rest) = self.0.as_chunks::<LANES>();
        for x in chunks {
            for i in 0..LANES {
                min[i] = if x[i] < min[i] { x[i] } else { min[i] };
                max[i] = if x[i] > max[i] { x[i] } else { max[i] };
                odd[i] |= u32::from(x[i].is_nan());
            }
        }
        let mut whole = Extremes { min: 0.0, max: 0.0, nan: false };
        for i in 0..LANES {
            whole = whole.with(Extremes { min: min[i], max: max[i], nan: odd[i] != 0 });
        }
        for &x in rest {
            whole = whole.with(Extremes { min: x, max: x, nan: x.is_nan() });
        }
        whole
    }
}
