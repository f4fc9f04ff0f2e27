//! Pad, in all modes.

use crate::ops::OpError;
use crate::ops::pad::{AXES_INPUT, Pad, PadMode, amounts};
use crate::tensor::{ElementType, bf16, f16};

use crate::kernel::{Argument, Entry, KernelContext, data_shape};
use crate::loops::item::Item;
use crate::loops::mapped::{Mapped, NOWHERE};
use crate::loops::mover::{self, Inputs, Mover, Outputs};
use crate::provider::ints::{required_ints, shape_input};

pub(super) const KERNELS: &[Entry] = &[Entry::new("Pad", |node| {
    let op = node.op::<Pad>().clone();
    let fill = match (op.value, node.input(0)) {
        (Some(value), Some(ty)) if value != 0.0 => {
            Some(float_bytes(value, ty).ok_or_else(|| node.no_kernel())?)
        }
        _ => None,
    };
    mover::build::<Pad, _>(node, PadMover { op, fill })
})];

struct PadMover {
    op: Pad,
    /// The bytes of the constant of opsets before 11, where it is not zero.
    fill: Option<Vec<u8>>,
}

impl Mover for PadMover {
    type Plan = Mapped;

    fn plan(&self, inputs: &[Option<Argument<'_>>], _: &[Option<&[usize]>]) -> Result<Mapped, OpError> {
        let shape = data_shape(inputs)?;
        let pads = required_ints(&self.op.pads, inputs)?;
        let axes = shape_input(inputs, AXES_INPUT)?;
        let maps = amounts(&pads, axes.as_deref(), shape.len())?
            .into_iter()
            .zip(shape)
            .map(|((before, after), &n)| axis_map(self.op.mode, before, after, n))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Mapped::new(shape, &maps))
    }

    fn run<T: Item>(
        &self,
        plan: &Mapped,
        cx: &KernelContext<'_>,
        inputs: Inputs<'_>,
        outputs: &mut Outputs<'_, '_>,
    ) -> Result<(), OpError> {
        let (Some(input), Some(output)) = (inputs.items::<T>(0), outputs.items::<T>(0)) else {
            return Ok(());
        };
        let fill = match (inputs.items::<T>(2), &self.fill) {
            (Some([value, ..]), _) => value.clone(),
            (None, Some(bytes)) => T::of_bytes(bytes).unwrap_or_default(),
            _ => T::default(),
        };
        plan.run(cx.pool, input, &fill, output);
        Ok(())
    }
}

/// The input coordinate of each output coordinate along one axis of `n` elements.
fn axis_map(mode: PadMode, before: i64, after: i64, n: usize) -> Result<Vec<isize>, OpError> {
    let n = n as i64;
    let length = n.saturating_add(before).saturating_add(after);
    if n == 0 && length > 0 && mode != PadMode::Constant {
        return Err(OpError::Data(format!("an axis of length 0 has no element to pad with ({mode:?})")));
    }
    let inside = |i: i64| match mode {
        _ if (0..n).contains(&i) => i,
        PadMode::Constant => NOWHERE as i64,
        PadMode::Edge => i.clamp(0, n - 1),
        PadMode::Wrap => i.rem_euclid(n),
        // The mirrored sequence has the period 2(n - 1).
        PadMode::Reflect if n == 1 => 0,
        PadMode::Reflect => {
            let k = i.rem_euclid(2 * (n - 1));
            k.min(2 * (n - 1) - k)
        }
    };
    Ok((0..length).map(|i| inside(i - before) as isize).collect())
}

/// A number as the bytes of an element.
fn float_bytes(value: f32, ty: ElementType) -> Option<Vec<u8>> {
    Some(match ty {
        ElementType::F32 => value.to_ne_bytes().to_vec(),
        ElementType::F64 => (value as f64).to_ne_bytes().to_vec(),
        ElementType::F16 => f16::from_f32(value).to_ne_bytes().to_vec(),
        ElementType::BF16 => bf16::from_f32(value).to_ne_bytes().to_vec(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_as_numpy_pads() {
        // numpy.pad(numpy.arange(n), (before, after), mode).
        for (mode, before, after, n, want) in [
            (PadMode::Reflect, 3, 4, 3, vec![1, 2, 1, 0, 1, 2, 1, 0, 1, 2]),
            (PadMode::Edge, 2, 1, 3, vec![0, 0, 0, 1, 2, 2]),
            (PadMode::Wrap, 4, 2, 3, vec![2, 0, 1, 2, 0, 1, 2, 0, 1]),
            (PadMode::Constant, 1, -1, 3, vec![-1, 0, 1]),
            (PadMode::Reflect, 2, 2, 1, vec![0, 0, 0, 0, 0]),
        ] {
            assert_eq!(axis_map(mode, before, after, n).unwrap(), want, "{mode:?}");
        }
        assert!(axis_map(PadMode::Edge, 1, 0, 0).is_err());
    }
}
