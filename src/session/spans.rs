//! Where each value of a plan lies in a run's memory.

use crate::error::Result;
use crate::plan::State;
use crate::tensor::{Place, Tensor, TensorView, Value};

use super::memory::Location;
use super::output::{Output, allocate_in, allocate_pinned, check_bound};
use super::run::Run;

impl Run<'_, '_> {
    /// Tells where each planned value lies in this run. Gives outputs whose bound memory overlaps an
    /// input's: they are written elsewhere first.
    pub(super) fn set_spans(
        &mut self,
        block: *mut u8,
        device_block: u64,
        outputs: &mut [Output],
    ) -> Result<Vec<(usize, Tensor)>> {
        let states = &self.plan.states;
        let mut deferred = Vec::new();
        self.memory.spans.clear();
        self.memory.spans.resize(states.len(), (std::ptr::null_mut(), 0));
        self.memory.dynamic.resize_with(states.len(), || None);
        for (value, state) in states.iter().enumerate() {
            self.memory.spans[value] = match state {
                State::Known(_) if self.program.values[value].place == Place::Device => {
                    let all = &self.plan.uploaded;
                    let uploaded = all.binary_search_by_key(&(value as u32), |(v, _)| *v).ok();
                    let buffer = uploaded.and_then(|at| all[at].1.buffer());
                    buffer.map_or((std::ptr::null_mut(), 0), |b| (b.as_ptr(), b.len()))
                }
                State::Known(tensor) | State::Resident(tensor) => {
                    tensor.buffer().map_or((std::ptr::null_mut(), 0), |b| (b.as_ptr(), b.len()))
                }
                State::Input { index, .. } => self.inputs[*index].span(),
                State::Block { offset, ty, shape } if self.program.values[value].place == Place::Device => {
                    let address = device_block as usize + offset;
                    (std::ptr::without_provenance_mut(address), byte_len(shape, ty.size()))
                }
                State::Block { offset, ty, shape } => {
                    // SAFETY: the plan placed the value inside the block.
                    (unsafe { block.add(*offset) }, byte_len(shape, ty.size()))
                }
                State::Output { index, ty, shape } => {
                    let tensor = match &mut outputs[*index] {
                        Output::Bound(tensor) => {
                            check_bound(self.program, *index, tensor, *ty, shape)?;
                            if tensor.buffer().is_some_and(|b| b.place() == Place::Device) {
                                let buffer = tensor.buffer();
                                self.memory.spans[value] =
                                    buffer.map_or((std::ptr::null_mut(), 0), |b| (b.as_ptr(), b.len()));
                                continue;
                            }
                            if !self.taken_in_place(*index, tensor) && self.overlaps_input(tensor) {
                                let temporary = Tensor::zeros(*ty, shape)?;
                                deferred.push((*index, temporary.clone()));
                                temporary
                            } else {
                                tensor.clone()
                            }
                        }
                        Output::AllocateIn(_, Some(Value::Tensor(made))) => made.clone(),
                        Output::Unwanted => continue,
                        Output::Allocate(slot) | Output::AllocateIn(Location::Device(_), slot) => {
                            let tensor = Tensor::unwritten(*ty, shape, |bytes| {
                                self.program.output_memory.take(bytes)
                            })?;
                            *slot = Some(Value::Tensor(tensor.clone()));
                            tensor
                        }
                        Output::AllocateIn(location, slot) => {
                            let tensor = self.device.as_ref().map_or_else(
                                || allocate_in(*location, *ty, shape),
                                |device| allocate_pinned(device, *location, *ty, shape),
                            )?;
                            *slot = Some(Value::Tensor(tensor.clone()));
                            tensor
                        }
                    };
                    tensor.buffer().map_or((std::ptr::null_mut(), 0), |b| (b.as_ptr(), b.len()))
                }
                State::Alias { .. } | State::Absent | State::Dynamic => (std::ptr::null_mut(), 0),
            };
            if let (State::Dynamic, Some(constant)) = (state, &self.program.values[value].constant) {
                self.memory.dynamic[value] = Some(Value::Tensor(constant.clone()));
            }
        }
        for (value, state) in states.iter().enumerate() {
            if let State::Alias { of, .. } = state {
                self.memory.spans[value] = self.memory.spans[*of as usize];
            }
        }
        Ok(deferred)
    }

    fn overlaps_input(&self, tensor: &Tensor) -> bool {
        let Some(buffer) = tensor.buffer() else { return false };
        let (start, end) = (buffer.as_ptr().addr(), buffer.as_ptr().addr() + buffer.len());
        self.inputs.iter().filter_map(|v| v.view()).any(|v| {
            let at = v.bytes().as_ptr().addr();
            at < end && start < at + v.bytes().len()
        })
    }

    /// Whether the step that makes this output works in place on the input bound to the same memory.
    fn taken_in_place(&self, index: usize, tensor: &Tensor) -> bool {
        let value = self.program.outputs[index];
        let same = |v: TensorView<'_>| {
            tensor
                .buffer()
                .is_some_and(|b| std::ptr::eq(b.as_ptr(), v.bytes().as_ptr()) && b.len() == v.bytes().len())
        };
        let pairs = self.plan.bound_in_place.iter().filter(|(made, _)| *made == value);
        pairs.into_iter().any(|&(_, input)| self.inputs[input].view().is_some_and(same))
    }
}

fn byte_len(shape: &[usize], size: usize) -> usize {
    // The plan checked that this does not overflow.
    shape.iter().product::<usize>() * size
}
