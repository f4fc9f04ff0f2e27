//! Where the outputs of a run go, and how they get there.

use crate::error::{Result, fail};
use crate::plan::{OutputPlace, Program, State};
use crate::tensor::{ElementType, Place, Tensor, Value, ValueRef};

use super::run::Run;

/// Where an output of a run goes.
pub(super) enum Output {
    /// Into memory that the caller gave; its type and shape must be those the run gives.
    Bound(Tensor),
    /// Into memory made by the run, which is left here.
    Allocate(Option<Value>),
}

impl Output {
    /// Where it is bound in device memory.
    pub(super) fn device_address(&self) -> Option<u64> {
        let Output::Bound(tensor) = self else { return None };
        let buffer = tensor.buffer().filter(|b| b.place() == Place::Device)?;
        Some(buffer.as_ptr().addr() as u64)
    }

    /// Where the output is wanted.
    pub(super) fn place(&self, inputs: &[ValueRef<'_>]) -> OutputPlace {
        let Output::Bound(tensor) = self else { return OutputPlace::Host };
        let (Some(buffer), Some(_)) = (tensor.buffer(), self.device_address()) else {
            return OutputPlace::Host;
        };
        let (start, end) = (buffer.as_ptr().addr(), buffer.as_ptr().addr() + buffer.len());
        let span = |v: &ValueRef<'_>| v.span().0.addr()..v.span().0.addr() + v.span().1;
        let mut sharing = inputs
            .iter()
            .enumerate()
            .filter(|(_, v)| v.place() == Some(Place::Device) && span(v).start < end && start < span(v).end);
        match (sharing.next(), sharing.next()) {
            (None, _) => OutputPlace::Device,
            (Some((i, v)), None) if span(v) == (start..end) => OutputPlace::DeviceShared { exactly: Some(i) },
            _ => OutputPlace::DeviceShared { exactly: None },
        }
    }
}

impl Run<'_, '_> {
    /// Puts those outputs in place that no step wrote there.
    pub(super) fn finish(&mut self, outputs: &mut [Output], deferred: Vec<(usize, Tensor)>) -> Result<()> {
        for (index, (&value, output)) in self.program.outputs.iter().zip(outputs.iter_mut()).enumerate() {
            if matches!(self.plan.states[value as usize], State::Output { index: i, .. } if i == index) {
                continue;
            }
            let on_device =
                matches!(output, Output::Bound(t) if t.buffer().is_some_and(|b| b.place() == Place::Device));
            if on_device && matches!(self.plan.states[value as usize], State::Absent) {
                // The device wrote it where it is wanted.
                continue;
            }
            let name = &self.program.values[value as usize].name;
            let Some(result) = self.value(value) else {
                fail!(Internal, "output \"{name}\" was not made");
            };
            match output {
                Output::Allocate(slot) => *slot = Some(result.to_value()?),
                Output::Bound(tensor) => {
                    let Some(view) = result.view() else {
                        fail!(
                            InvalidInput,
                            "output \"{name}\" is bound to memory, but it is no plain tensor"
                        );
                    };
                    check_bound(self.program, index, tensor, view.ty(), view.shape())?;
                    match (&self.program.device, tensor.buffer()) {
                        (Some(pool), Some(buffer)) if on_device => {
                            pool.provider.overwrite(buffer.as_ptr().addr() as u64, view.bytes())?;
                        }
                        _ => copy(view.bytes(), tensor),
                    }
                }
            }
        }
        for (index, temporary) in deferred {
            if let (Output::Bound(tensor), Some(buffer)) = (&outputs[index], temporary.buffer()) {
                copy(buffer.bytes(), tensor);
            }
        }
        Ok(())
    }
}

/// Whether what an output is bound to fits what the run gives.
pub(super) fn check_bound(
    program: &Program,
    index: usize,
    tensor: &Tensor,
    ty: ElementType,
    shape: &[usize],
) -> Result<()> {
    if tensor.ty() != ty || tensor.shape() != shape {
        let name = &program.values[program.outputs[index] as usize].name;
        fail!(
            InvalidInput,
            "output \"{name}\" is bound to a tensor of {}{:?}; the run gives {ty}{shape:?}",
            tensor.ty(),
            tensor.shape()
        );
    }
    Ok(())
}

/// Copies into a bound tensor of the same size, which may overlap the source.
fn copy(from: &[u8], to: &Tensor) {
    if let Some(buffer) = to.buffer() {
        // SAFETY: the bound memory is the caller's to write during the run, and holds as many bytes;
        // `copy` allows overlap.
        unsafe { std::ptr::copy(from.as_ptr(), buffer.as_ptr(), from.len().min(buffer.len())) };
    }
}
