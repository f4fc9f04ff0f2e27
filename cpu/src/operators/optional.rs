//! Optional values.

use crate::ops::OpError;
use crate::ops::optional::Optional;
use crate::tensor::{Bool, Tensor, Value, ValueRef, ValueType};

use crate::kernel::{CpuKernel, Entry, KernelContext, NodeContext, ValueKernel};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Optional", build),
    Entry::new("OptionalGetElement", build),
    Entry::new("OptionalHasElement", build),
];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    Ok(CpuKernel::Value(Box::new(OptionalKernel(node.op::<Optional>().clone()))))
}

struct OptionalKernel(Optional);

impl ValueKernel for OptionalKernel {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let input = inputs.first().copied().flatten();
        let result = match &self.0 {
            Optional::Make { ty } => match (input, ty) {
                (Some(value), _) => {
                    let value = value.to_value()?;
                    Value::Optional { element: value.ty(), value: Some(Box::new(value)) }
                }
                (None, Some(ValueType::Optional(element))) => {
                    Value::Optional { element: (**element).clone(), value: None }
                }
                (None, Some(element)) => Value::Optional { element: element.clone(), value: None },
                (None, None) => {
                    return Err(OpError::attribute("type", "it is required where there is no input"));
                }
            },
            Optional::Get => match input {
                Some(ValueRef::Value(Value::Optional { value: Some(value), .. })) => (**value).clone(),
                Some(ValueRef::Value(Value::Optional { value: None, .. })) | None => {
                    return Err(OpError::Data("the optional has no value".to_owned()));
                }
                Some(other) => other.to_value()?,
            },
            Optional::Has => {
                let has = match input {
                    Some(ValueRef::Value(Value::Optional { value, .. })) => value.is_some(),
                    other => other.is_some(),
                };
                Value::Tensor(Tensor::from_slice(&[], &[Bool::from(has)])?)
            }
        };
        Ok(vec![result])
    }
}
