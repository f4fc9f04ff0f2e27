//! What a kernel of the caller's is lent for one call.

use crate::error::{Result, fail};
use crate::tensor::{Buffer, Tensor, Value, ValueType};
use crate::threads::Pool;

/// The values of one call, and what it computes with.
pub struct Call {
    /// Knows also whether the run was cancelled.
    pub pool: Pool,
    /// `None` where an input is omitted.
    pub inputs: Vec<Option<Value>>,
    pub outputs: Vec<OutputSlot>,
    /// For a kernel that gives work to a GPU.
    pub device: Option<DeviceWork>,
}

/// Where a GPU's work goes.
pub struct DeviceWork {
    /// The runtime's stream.
    pub stream: u64,
    /// Temporary memory, and its size in bytes.
    pub scratch: (u64, usize),
}

/// An output of a call.
pub enum OutputSlot {
    /// The node does not have it.
    Unwanted,
    /// A tensor in memory that the plan chose; and what the kernel made: that tensor, or one that lies elsewhere.
    Planned(Tensor, Option<Tensor>),
    /// What the kernel makes.
    Open(ValueType, Option<Value>),
}

impl Call {
    /// The tensor of an output, to write. `None` when nobody wants the output.
    pub fn output(&mut self, index: usize, shape: &[usize]) -> Result<Option<Value>> {
        match self.slot(index)? {
            OutputSlot::Unwanted => Ok(None),
            OutputSlot::Planned(tensor, made) => {
                if tensor.shape() != shape {
                    fail!(
                        InvalidArgument,
                        "output {index}: shape {shape:?} was asked for; the shape function said {:?}",
                        tensor.shape()
                    );
                }
                *made = Some(tensor.clone());
                Ok(Some(Value::Tensor(tensor.clone())))
            }
            OutputSlot::Open(ValueType::Tensor(ty), value) => {
                if let Some(Value::Tensor(made)) = value {
                    if made.shape() != shape {
                        fail!(
                            InvalidArgument,
                            "output {index}: shape {shape:?} was asked for, and {:?} before; an output is made once",
                            made.shape()
                        );
                    }
                    return Ok(value.clone());
                }
                let tensor = Tensor::unwritten(*ty, shape, Buffer::unspecified)?;
                *value = Some(Value::Tensor(tensor));
                Ok(value.clone())
            }
            OutputSlot::Open(ty, _) => {
                fail!(
                    InvalidArgument,
                    "output {index} is {ty}, which has no shape; make a value and set it as the output"
                )
            }
        }
    }

    /// Makes a value an output.
    pub fn set_output(&mut self, index: usize, value: Value) -> Result<()> {
        let on_device = self.device.is_some();
        match self.slot(index)? {
            OutputSlot::Unwanted => Ok(()),
            OutputSlot::Planned(..) if on_device => {
                fail!(InvalidArgument, "output {index}: a kernel for GPUs writes the output's own memory")
            }
            OutputSlot::Planned(tensor, made) => {
                let Value::Tensor(given) = value else {
                    fail!(InvalidArgument, "output {index}: {} was given; a tensor is allowed", value.ty());
                };
                if given.ty() != tensor.ty() || given.shape() != tensor.shape() {
                    fail!(
                        InvalidArgument,
                        "output {index}: {}{:?} was given; allowed is {}{:?}, as the shape function said",
                        given.ty(),
                        given.shape(),
                        tensor.ty(),
                        tensor.shape()
                    );
                }
                host(index, &given)?;
                *made = Some(given);
                Ok(())
            }
            OutputSlot::Open(ty, made) => {
                if value.ty() != *ty {
                    fail!(InvalidArgument, "output {index}: {} was given; allowed is {ty}", value.ty());
                }
                if let Value::Tensor(tensor) = &value {
                    host(index, tensor)?;
                }
                *made = Some(value);
                Ok(())
            }
        }
    }

    /// What the kernel made; an output that it left out is an error.
    pub fn finish(self) -> Result<Vec<Option<Value>>> {
        let mut values = Vec::with_capacity(self.outputs.len());
        for (index, slot) in self.outputs.into_iter().enumerate() {
            values.push(match slot {
                OutputSlot::Unwanted => None,
                OutputSlot::Planned(_, Some(tensor)) => Some(Value::Tensor(tensor)),
                OutputSlot::Open(_, Some(value)) => Some(value),
                OutputSlot::Planned(_, None) | OutputSlot::Open(_, None) => {
                    fail!(InvalidData, "the operator's kernel returned without making output {index}")
                }
            });
        }
        Ok(values)
    }

    fn slot(&mut self, index: usize) -> Result<&mut OutputSlot> {
        let count = self.outputs.len();
        match self.outputs.get_mut(index) {
            Some(slot) => Ok(slot),
            None => fail!(InvalidArgument, "output {index} is not there: the node has {count}"),
        }
    }
}

fn host(index: usize, tensor: &Tensor) -> Result<()> {
    if tensor.buffer().is_some_and(|buffer| buffer.device().is_some()) {
        fail!(InvalidArgument, "output {index}: the tensor given is in device memory; host memory is needed");
    }
    Ok(())
}
