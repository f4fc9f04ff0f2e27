//! Helpers for the tests of kernels: one node on the device and on the CPU.

pub(super) mod data;
pub(super) mod nhwc;

use std::sync::Arc;

use crate::graph::{Attribute, Attributes, Node, OpName, ValueId};
use crate::ops::{self, OpError};
use crate::providers::{Argument, NodeContext, cpu};
use crate::tensor::{Buffer, ElementType, Tensor, Value, ValueType, bf16, f16};
use crate::threads::Pool;

use self::data::unlike;
use super::launch::LaunchPlan;
use super::{
    Addresses, DeviceBuffer, DeviceContext, Given, HipOptions, MemorySource, PlanBuilder, Provider, missing,
};

/// The outputs of a node on the device and on the CPU.
pub(super) struct Both {
    pub(super) device: Vec<Tensor>,
    pub(super) cpu: Vec<Tensor>,
}

impl Both {
    /// Every output must have the same bytes on either side.
    pub(super) fn assert_equal(&self, what: &str) {
        for (i, (device, cpu)) in self.device.iter().zip(&self.cpu).enumerate() {
            let (device, cpu) = (bytes(device), bytes(cpu));
            if let Some(at) = device.iter().zip(cpu).position(|(a, b)| a != b) {
                panic!("{what}: output {i} differs at byte {at} of {}", cpu.len());
            }
        }
    }

    /// Every number of the outputs must be within `relative` of the CPU's, of the larger magnitude of
    /// 1 and its own.
    pub(super) fn assert_close(&self, what: &str, relative: f64) {
        for (i, (device, cpu)) in self.device.iter().zip(&self.cpu).enumerate() {
            for (at, (a, b)) in numbers(device).into_iter().zip(numbers(cpu)).enumerate() {
                let close =
                    (a - b).abs() <= relative * b.abs().max(1.0) || a == b || (a.is_nan() && b.is_nan());
                assert!(close, "{what}: output {i} is {a} at {at}, on the CPU {b}");
            }
        }
    }

    /// Whether rounded integers are equal, but for one in a thousand whose halves were rounded otherwise.
    pub(super) fn assert_rounded(&self, what: &str) {
        for (i, (device, cpu)) in self.device.iter().zip(&self.cpu).enumerate() {
            let (device, cpu) = (numbers(device), numbers(cpu));
            let apart: Vec<f64> = device.iter().zip(&cpu).map(|(a, b)| (a - b).abs()).collect();
            let other = apart.iter().filter(|&&x| x != 0.0).count();
            let far = apart.iter().position(|x| x.is_nan() || *x > 1.0);
            assert!(
                device.len() == cpu.len() && far.is_none() && other <= 1 + cpu.len() / 1000,
                "{what}: of output {i} {other} of {} elements are others than the CPU's, by more than 1 first at {far:?}",
                cpu.len()
            );
        }
    }
}

fn bytes(tensor: &Tensor) -> &[u8] {
    tensor.buffer().map_or(&[], |b| b.bytes())
}

pub(super) fn numbers(tensor: &Tensor) -> Vec<f64> {
    let view = tensor.view();
    match tensor.ty() {
        ElementType::F32 => view.slice::<f32>().iter().map(|&x| x as f64).collect(),
        ElementType::F64 => view.slice::<f64>().to_vec(),
        ElementType::I8 => view.slice::<i8>().iter().map(|&x| x as f64).collect(),
        ElementType::F16 => view.slice::<f16>().iter().map(|x| x.to_f64()).collect(),
        ElementType::BF16 => view.slice::<bf16>().iter().map(|x| x.to_f64()).collect(),
        ElementType::I32 => view.slice::<i32>().iter().map(|&x| x as f64).collect(),
        ElementType::I64 => view.slice::<i64>().iter().map(|&x| x as f64).collect(),
        _ => bytes(tensor).iter().map(|&x| x as f64).collect(),
    }
}

/// `count` elements of a type, with bytes that differ from element to element.
pub(super) fn pattern(ty: ElementType, shape: &[usize]) -> Option<Value> {
    let count = shape.iter().product::<usize>() * ty.size();
    let bytes: Vec<u8> = (0..count as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let buffer = Buffer::copy_of(&bytes).expect("memory for a test");
    Some(Value::Tensor(Tensor::from_buffer(ty, shape, buffer).expect("the bytes of the shape")))
}

/// Small integers, exact in every type, whose sums stay exact too in f32.
pub(super) fn small_integers(ty: ElementType, shape: &[usize]) -> Option<Value> {
    let count: usize = shape.iter().product();
    let at = |i: usize| ((i * 7 + i / 13) % 5) as f32 - 2.0;
    let tensor = match ty {
        ElementType::F16 => {
            Tensor::from_slice(shape, &(0..count).map(|i| f16::from_f32(at(i))).collect::<Vec<_>>())
        }
        ElementType::BF16 => {
            Tensor::from_slice(shape, &(0..count).map(|i| bf16::from_f32(at(i))).collect::<Vec<_>>())
        }
        ElementType::F64 => Tensor::from_slice(shape, &(0..count).map(|i| at(i) as f64).collect::<Vec<_>>()),
        ElementType::I32 => Tensor::from_slice(shape, &(0..count).map(|i| at(i) as i32).collect::<Vec<_>>()),
        ElementType::I64 => Tensor::from_slice(shape, &(0..count).map(|i| at(i) as i64).collect::<Vec<_>>()),
        _ => Tensor::from_slice(shape, &(0..count).map(at).collect::<Vec<_>>()),
    };
    Some(Value::Tensor(tensor.expect("memory for a test")))
}

/// Runs a node of ai.onnx on both sides. `None`, with a word on the output, where there is no device.
pub(super) fn both(
    name: &str,
    opset: i64,
    attributes: &[(&str, Attribute)],
    inputs: &[Option<Value>],
    outputs: usize,
) -> Option<Both> {
    both_in("", name, opset, attributes, inputs, outputs)
}

/// Runs a node of any domain on both sides.
pub(super) fn both_in(
    domain: &str,
    name: &str,
    opset: i64,
    attributes: &[(&str, Attribute)],
    inputs: &[Option<Value>],
    outputs: usize,
) -> Option<Both> {
    let provider = provider(&[])?;
    Some(both_on(&provider, domain, name, opset, attributes, inputs, outputs))
}

/// Runs a node of any domain on both sides, some of whose inputs are constants, so that its kernel may read inputs early.
pub(super) fn both_with(
    domain: &str,
    name: &str,
    opset: i64,
    attributes: &[(&str, Attribute)],
    inputs: &[Option<Value>],
    constants: &[usize],
) -> Option<Both> {
    let provider = provider(&[])?;
    let inputs = &unlike(inputs);
    let node = node(domain, name, opset, attributes, inputs, 1);
    let cpu = on_cpu(&node, inputs);
    let device = on_device_with(&provider, &node, inputs, &cpu, constants)
        .unwrap_or_else(|e| panic!("{name}: device: {e}"));
    Some(Both { device, cpu })
}

/// Whether there is no device, with a word on the output. That fails where RUKH_REQUIRE_HIP is set and
/// RUKH_HIP_LIBRARY names the device's runtime: RUKH_REQUIRE_HIP alone asks for what needs no device too.
pub(crate) fn no_device() -> bool {
    let Some(reason) = missing() else { return false };
    let required =
        ["RUKH_REQUIRE_HIP", "RUKH_HIP_LIBRARY"].iter().all(|name| std::env::var_os(name).is_some());
    assert!(!required, "RUKH_REQUIRE_HIP and RUKH_HIP_LIBRARY are set, and: {reason}");
    println!("skipped: {reason}");
    true
}

/// A provider with these options, where there is a device.
pub(super) fn provider(options: &[(&str, &str)]) -> Option<Arc<Provider>> {
    if no_device() {
        return None;
    }
    let entries = options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let options = HipOptions::parse(&entries).expect("options");
    Some(Provider::open(&options, MemorySource::Arena, &[], &Default::default()).expect("a provider"))
}

/// Runs a node on a provider and on the CPU, with inputs that are `unlike`.
pub(super) fn both_on(
    provider: &Arc<Provider>,
    domain: &str,
    name: &str,
    opset: i64,
    attributes: &[(&str, Attribute)],
    inputs: &[Option<Value>],
    outputs: usize,
) -> Both {
    let inputs = &unlike(inputs);
    let node = node(domain, name, opset, attributes, inputs, outputs);
    let cpu = on_cpu(&node, inputs);
    let device = on_device(provider, &node, inputs, &cpu).unwrap_or_else(|e| panic!("{name}: device: {e}"));
    Both { device, cpu }
}

/// A node of these inputs.
pub(super) fn node(
    domain: &str,
    name: &str,
    opset: i64,
    attributes: &[(&str, Attribute)],
    inputs: &[Option<Value>],
    outputs: usize,
) -> Node {
    Node {
        name: "test".into(),
        op: OpName { domain: domain.into(), name: name.into(), opset },
        attributes: Attributes(attributes.iter().map(|(n, a)| (n.to_string(), a.clone())).collect()),
        inputs: inputs.iter().enumerate().map(|(i, v)| v.as_ref().map(|_| ValueId(i as u32))).collect(),
        outputs: (0..outputs).map(|i| Some(ValueId(100 + i as u32))).collect(),
    }
}

/// The outputs of a node on the CPU.
pub(super) fn on_cpu(node: &Node, inputs: &[Option<Value>]) -> Vec<Tensor> {
    let refs: Vec<Option<&Value>> = inputs.iter().map(Option::as_ref).collect();
    let name = &node.op.name;
    let outputs = cpu::evaluate(node, &refs, &Pool::new(2)).unwrap_or_else(|e| panic!("{name}: CPU: {e}"));
    outputs.iter().map(|v| v.as_tensor().expect("a tensor").clone()).collect()
}

fn tensors(values: &[Option<Value>]) -> Vec<Option<&Tensor>> {
    values.iter().map(|v| v.as_ref().and_then(Value::as_tensor)).collect()
}

/// The launches of a node, whose outputs have the types and shapes of `like`.
pub(super) fn planned(
    provider: &Arc<Provider>,
    node: &Node,
    inputs: &[Option<Value>],
    like: &[Tensor],
) -> Result<LaunchPlan, OpError> {
    planned_with(provider, node, inputs, like, &[])
}

/// As `planned`, of a node some of whose inputs are constants.
pub(super) fn planned_with(
    provider: &Arc<Provider>,
    node: &Node,
    inputs: &[Option<Value>],
    like: &[Tensor],
    constants: &[usize],
) -> Result<LaunchPlan, OpError> {
    let (registered, op) = ops::resolve(node)?;
    let tensors = tensors(inputs);
    let ty = |t: &Tensor| ValueType::Tensor(t.ty());
    let kernel = super::build(&NodeContext {
        provider: "HIP",
        domain: &node.op.domain,
        name: &node.op.name,
        op: &*op,
        input_types: &tensors.iter().map(|t| t.map(ty)).collect::<Vec<_>>(),
        output_types: &like.iter().map(|t| Some(ty(t))).collect::<Vec<_>>(),
        constants: &tensors
            .iter()
            .enumerate()
            .map(|(i, t)| t.filter(|_| constants.contains(&i)))
            .collect::<Vec<_>>(),
        pool: &Pool::new(1),
        packs: None,
    })?;
    let mut plan = PlanBuilder::new(provider, Given::All);
    // Beside constants all other inputs are there before the node's first kernel.
    if !constants.is_empty() {
        let is_constant = (0..inputs.len()).map(|i| constants.contains(&i)).collect();
        plan = plan.with_constants(is_constant).with_settled(vec![true; inputs.len()]);
        plan = plan.behind_full_memory(true);
    }
    let on_host = |i: usize| registered.shape_inputs.contains(&i) || kernel.host_inputs().contains(&i);
    let arguments: Vec<Option<Argument<'_>>> = tensors
        .iter()
        .enumerate()
        .map(|(i, t)| t.map(|t| Argument { shape: t.shape(), value: on_host(i).then(|| t.view()) }))
        .collect();
    let shapes: Vec<Option<&[usize]>> = like.iter().map(|t| Some(t.shape())).collect();
    kernel.plan(&mut plan, &arguments, &shapes)?;
    plan.finish()
}

/// The outputs of a node on the device; their types and shapes are those of `like`.
pub(super) fn on_device(
    provider: &Arc<Provider>,
    node: &Node,
    inputs: &[Option<Value>],
    like: &[Tensor],
) -> Result<Vec<Tensor>, OpError> {
    on_device_with(provider, node, inputs, like, &[])
}

/// As `on_device`, of a node some of whose inputs are constants.
fn on_device_with(
    provider: &Arc<Provider>,
    node: &Node,
    inputs: &[Option<Value>],
    like: &[Tensor],
    constants: &[usize],
) -> Result<Vec<Tensor>, OpError> {
    let launches = planned_with(provider, node, inputs, like, constants)?;
    let tensors = tensors(inputs);
    let uploaded = tensors
        .iter()
        .map(|t| t.map(|t| provider.upload(bytes(t))).transpose())
        .collect::<Result<Vec<Option<DeviceBuffer>>, _>>()?;
    let mut context = DeviceContext::new(provider, Arc::default(), Default::default())?;
    let stream = context.stream.clone();
    let made =
        like.iter().map(|t| provider.allocate(bytes(t).len(), &stream)).collect::<Result<Vec<_>, _>>()?;
    let scratch = provider.allocate(launches.scratch, &stream)?;
    let addresses = Addresses {
        inputs: &uploaded.iter().map(|b| b.as_ref().map_or(0, DeviceBuffer::address)).collect::<Vec<_>>(),
        outputs: &made.iter().map(|b| b.address()).collect::<Vec<_>>(),
        scratch: scratch.address(),
        errors: context.errors(0),
        counters: context.counters(),
    };
    context.may_have_errors = launches.reports_errors;
    context.before_work().map_err(crate::error::Error::from)?;
    let mut params = Vec::new();
    // SAFETY: the launches were planned for these shapes; everything stays until the context has waited.
    unsafe { launches.submit(&stream, &addresses, &mut params, |_| ()) }
        .map_err(crate::error::Error::from)?;
    let mut results = Vec::new();
    for (t, memory) in like.iter().zip(&made) {
        let host = Tensor::zeros(t.ty(), t.shape())?;
        if let Some(buffer) = host.buffer() {
            // SAFETY: both sides hold as many bytes, and the context waits below.
            unsafe { context.copy_to_host(buffer.as_ptr(), memory.address(), buffer.len()) }
                .map_err(crate::error::Error::from)?;
        }
        results.push(host);
    }
    context.finish(true)?;
    Ok(results)
}
