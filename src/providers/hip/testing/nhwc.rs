//! Operators on images with their channels innermost, against the CPU's on images with channels before.

use crate::graph::Attribute;
use crate::tensor::{Tensor, Value};

use super::{Both, node, on_cpu, on_device, provider};

/// A node of ai.onnx or com.microsoft on the CPU, and what it is of rukh on the device, with attributes that it alone
/// has. Images are inputs 0 and 3 and
/// output 0; `weight` is how the axes of input 1 are permuted. `None` where there is no device.
pub(in super::super) fn both_nhwc(
    cpu: (&str, &str, i64),
    (device, own): (&str, &[(&str, Attribute)]),
    attributes: &[(&str, Attribute)],
    inputs: &[Option<Value>],
    weight: &[i64],
) -> Option<Both> {
    let provider = provider(&[])?;
    let (domain, name, opset) = cpu;
    let made = on_cpu(&node(domain, name, opset, attributes, inputs, 1), inputs);
    let rank = made[0].shape().len() as i64;
    let last: Vec<i64> = [0].into_iter().chain(2..rank).chain([1]).collect();
    let cpu = vec![transposed(Value::Tensor(made[0].clone()), &last)];
    let permuted = |(i, value): (usize, &Option<Value>)| {
        let perm = match i {
            0 | 3 => &last[..],
            1 => weight,
            _ => return value.clone(),
        };
        value.clone().map(|value| Value::Tensor(transposed(value, perm)))
    };
    let inputs: Vec<Option<Value>> = inputs.iter().enumerate().map(permuted).collect();
    let attributes = [attributes, own].concat();
    let node = node("rukh", device, 1, &attributes, &inputs, 1);
    let device = on_device(&provider, &node, &inputs, &cpu).unwrap_or_else(|e| panic!("{device}: {e}"));
    Some(Both { device, cpu })
}

fn transposed(value: Value, perm: &[i64]) -> Tensor {
    let attributes = [("perm", Attribute::Ints(perm.to_vec()))];
    let inputs = [Some(value)];
    on_cpu(&node("", "Transpose", 13, &attributes, &inputs, 1), &inputs).remove(0)
}
