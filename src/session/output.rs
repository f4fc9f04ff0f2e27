//! Where the outputs of a run go, and how they get there.

use smallvec::SmallVec;

use crate::error::{Error, Result, Status, fail};
use crate::plan::{OutputPlace, Program, State};
use crate::providers::hip::DeviceContext;
use crate::tensor::{Buffer, ElementType, Place, Tensor, Value, ValueRef, element_count};

use super::inputs::MANY;
use super::memory::{Location, copy_tensor};
use super::run::Run;

/// Where each output of a run is to lie.
pub(super) type Places = SmallVec<[OutputPlace; MANY]>;

/// Where outputs are wanted. `device`: the number of the one that the program runs on.
pub(super) fn places(outputs: &[Output], inputs: &[ValueRef<'_>], device: Option<u32>) -> Places {
    let on_device = outputs.iter().any(|output| output.device_address().is_some());
    let spans = DeviceSpans::of(if on_device { inputs } else { &[] });
    outputs.iter().map(|output| output.place(&spans, device)).collect()
}

/// Where inputs of a run lie in device memory: their first bytes and their ends, which for an input elsewhere are `usize::MAX`.
struct DeviceSpans {
    starts: SmallVec<[usize; MANY]>,
    ends: SmallVec<[usize; MANY]>,
}

impl DeviceSpans {
    fn of(inputs: &[ValueRef<'_>]) -> Self {
        let span = |v: &ValueRef<'_>| match (v.place(), v.span()) {
            (Some(Place::Device), (start, bytes)) => (start.addr(), start.addr() + bytes),
            _ => (usize::MAX, usize::MAX),
        };
        let (starts, ends) = inputs.iter().map(span).unzip();
        DeviceSpans { starts, ends }
    }

    /// How an output there lies to the inputs. A decoder of 32 layers has 67 of them and 65 outputs, so a pair may take no more
    /// than two comparisons.
    fn place(&self, start: usize, end: usize) -> OutputPlace {
        let spans = || self.starts.iter().zip(&self.ends);
        let overlaps = |(&from, &to): (&usize, &usize)| from < end && start < to;
        let exactly = || spans().position(|(&from, &to)| (from, to) == (start, end));
        match spans().map(|span| usize::from(overlaps(span))).sum() {
            0usize => OutputPlace::Device,
            1 => OutputPlace::DeviceShared { exactly: exactly() },
            _ => OutputPlace::DeviceShared { exactly: None },
        }
    }
}

/// Where an output of a run goes.
pub(super) enum Output {
    /// Into memory that the caller gave; its type and shape must be those the run gives.
    Bound(Tensor),
    /// Nobody asks for it.
    Unwanted,
    /// Into memory made by the run, which is left here.
    Allocate(Option<Value>),
    /// The same, in memory of a device or pinned for one. What is no plain tensor comes to the host.
    AllocateIn(Location, Option<Value>),
}

impl Output {
    /// Memory that the run allocates; `None`: on the host.
    pub(super) fn made_in(location: Option<Location>) -> Self {
        match location {
            None | Some(Location::Host) => Output::Allocate(None),
            Some(location) => Output::AllocateIn(location, None),
        }
    }

    /// What the run made.
    pub(super) fn into_made(self) -> Option<Value> {
        match self {
            Output::Allocate(value) | Output::AllocateIn(_, value) => value,
            Output::Bound(_) | Output::Unwanted => None,
        }
    }

    /// Where it is in device memory, bound or made.
    pub(super) fn device_address(&self) -> Option<u64> {
        let tensor = match self {
            Output::Bound(tensor) => tensor,
            Output::AllocateIn(_, Some(Value::Tensor(tensor))) => tensor,
            _ => return None,
        };
        let buffer = tensor.buffer().filter(|b| b.place() == Place::Device)?;
        Some(buffer.as_ptr().addr() as u64)
    }

    fn place(&self, inputs: &DeviceSpans, device: Option<u32>) -> OutputPlace {
        let tensor = match self {
            Output::Bound(tensor) => tensor,
            // What is wanted on another device is made on the host first.
            Output::AllocateIn(Location::Device(wanted), _) if device == Some(*wanted) => {
                return OutputPlace::Device;
            }
            Output::Unwanted => return OutputPlace::Nowhere,
            _ => return OutputPlace::Host,
        };
        let (Some(buffer), Some(_)) = (tensor.buffer(), self.device_address()) else {
            return OutputPlace::Host;
        };
        let start = buffer.as_ptr().addr();
        inputs.place(start, start + buffer.len())
    }
}

impl Run<'_, '_> {
    /// Allocates what the device makes in memory that the caller did not give.
    pub(super) fn allocate_on_device(&mut self, outputs: &mut [Output]) -> Result<()> {
        let Some(device) = &self.device else { return Ok(()) };
        for (index, ty, shape) in &self.plan.made_on_device {
            if let Output::AllocateIn(Location::Device(_), slot @ None) = &mut outputs[*index] {
                *slot = Some(Value::Tensor(allocate_on(device, *ty, shape)?));
            }
        }
        Ok(())
    }

    /// A value that outlives the run, in memory of a device or pinned for one.
    fn moved(&self, value: ValueRef<'_>, location: Location) -> Result<Value> {
        let Some((ty, shape, _)) = value.layout() else { return Ok(value.to_value()?) };
        if let ValueRef::Value(Value::Tensor(tensor)) = value
            && tensor.buffer().is_some_and(|buffer| Location::of(buffer) == location)
        {
            return Ok(Value::Tensor(tensor.clone()));
        }
        let bytes = element_count(shape).unwrap_or(0) * ty.size();
        let own = self.device.as_ref().map(|device| &device.provider);
        let own = own.filter(|provider| Location::Device(provider.device().index as u32) == location);
        let buffer = match (own, value.view()) {
            (Some(provider), Some(view)) => provider.upload_output(view.bytes())?.into_buffer(bytes),
            _ => {
                let copy = laid_over(ty, shape, location.allocate(bytes)?)?;
                let held = value.to_value()?;
                held.as_tensor().map_or(Ok(()), |made| copy_tensor(made, &copy))?;
                return Ok(Value::Tensor(copy));
            }
        };
        Ok(Value::Tensor(laid_over(ty, shape, buffer)?))
    }

    /// Puts those outputs in place that no step wrote there.
    pub(super) fn finish(&mut self, outputs: &mut [Output], deferred: Vec<(usize, Tensor)>) -> Result<()> {
        for (index, (&value, output)) in self.program.outputs.iter().zip(outputs.iter_mut()).enumerate() {
            let made =
                matches!(self.plan.states[value as usize], State::Output { index: i, .. } if i == index);
            if made || matches!(output, Output::Unwanted) {
                continue;
            }
            let on_device = output.device_address().is_some();
            if on_device && matches!(self.plan.states[value as usize], State::Absent) {
                // The device wrote it where it is wanted.
                continue;
            }
            let name = &self.program.values[value as usize].name;
            let Some(result) = self.value(value) else {
                fail!(Internal, "output \"{name}\" was not made");
            };
            match output {
                Output::Unwanted => {}
                Output::Allocate(slot) => *slot = Some(result.to_value()?),
                Output::AllocateIn(location, slot) => *slot = Some(self.moved(result, *location)?),
                Output::Bound(tensor) => {
                    if let Some((ty, shape, Place::Device)) = result.layout() {
                        check_bound(self.program, index, tensor, ty, shape)?;
                        result.to_value()?.as_tensor().map_or(Ok(()), |made| copy_tensor(made, tensor))?;
                        continue;
                    }
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
        // What is wanted on a device that the program does not run on.
        for output in outputs.iter_mut() {
            if let Output::AllocateIn(location, Some(value)) = output
                && let Some(buffer) = value.as_tensor().and_then(Tensor::buffer)
                && Location::of(buffer) != *location
            {
                *value = self.moved(ValueRef::Value(value), *location)?;
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

/// Memory of the run's device for a value that outlives the run.
pub(super) fn allocate_on(device: &DeviceContext, ty: ElementType, shape: &[usize]) -> Result<Tensor> {
    let bytes = element_count(shape).unwrap_or(0) * ty.size();
    laid_over(ty, shape, device.provider.allocate(bytes, &device.stream)?.into_buffer(bytes))
}

/// Memory in a location for a value that outlives the run.
pub(super) fn allocate_in(location: Location, ty: ElementType, shape: &[usize]) -> Result<Tensor> {
    laid_over(ty, shape, location.allocate(element_count(shape).unwrap_or(0) * ty.size())?)
}

/// The same, from the provider's pinned memory when it is pinned for the run's device.
pub(super) fn allocate_pinned(
    device: &DeviceContext,
    location: Location,
    ty: ElementType,
    shape: &[usize],
) -> Result<Tensor> {
    if location != Location::Pinned(device.provider.device().index as u32) {
        return allocate_in(location, ty, shape);
    }
    let bytes = element_count(shape).unwrap_or(0) * ty.size();
    laid_over(ty, shape, device.provider.allocate_pinned(bytes, &device.stream)?.into_pinned_buffer(bytes))
}

fn laid_over(ty: ElementType, shape: &[usize], buffer: Buffer) -> Result<Tensor> {
    let wrong = || Error::new(Status::Internal, "the memory of an output has the wrong size");
    Tensor::from_buffer(ty, shape, buffer).ok_or_else(wrong)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_in_the_memory_of_inputs() {
        use OutputPlace::{Device, DeviceShared};
        // The third one is not in device memory, the last two lie one in the other.
        let spans = DeviceSpans {
            starts: SmallVec::from_slice(&[100, 200, usize::MAX, 300, 320]),
            ends: SmallVec::from_slice(&[150, 250, usize::MAX, 400, 340]),
        };
        for (start, end, expected) in [
            (150, 200, Device),
            (400, 500, Device),
            (100, 150, DeviceShared { exactly: Some(0) }),
            (200, 250, DeviceShared { exactly: Some(1) }),
            (200, 249, DeviceShared { exactly: None }),
            (140, 201, DeviceShared { exactly: None }),
            (300, 310, DeviceShared { exactly: None }),
            (320, 340, DeviceShared { exactly: None }),
            (0, 1000, DeviceShared { exactly: None }),
        ] {
            assert_eq!(spans.place(start, end), expected, "{start}..{end}");
        }
    }
}
