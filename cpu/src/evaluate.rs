//! Runs one node on values: for constant folding, for shape arithmetic, and in tests.

use crate::graph::{Fact, Node};
use crate::ops::{self, Infer, OpError, Unknowns};
use crate::tensor::{Buffer, Tensor, TensorView, TensorViewMut, Value, ValueRef, ValueType};
use crate::threads::Pool;

use super::facts::{fact_of, known_shape};
use super::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext};

/// The outputs of a node for these inputs, one value for each output of the node.
pub fn evaluate(node: &Node, inputs: &[Option<&Value>], pool: &Pool) -> Result<Vec<Value>, OpError> {
    evaluate_with(node, inputs, &[], pool)
}

/// Like [`evaluate`]; the kernel is told that the inputs in `constants` are constants, so that it may
/// pack them.
pub(super) fn evaluate_with(
    node: &Node,
    inputs: &[Option<&Value>],
    constants: &[usize],
    pool: &Pool,
) -> Result<Vec<Value>, OpError> {
    let (registered, op) = ops::resolve(node)?;
    let aligned: Vec<Option<Value>> = inputs
        .iter()
        .map(|v| {
            Ok(match v {
                Some(Value::Tensor(t)) => Some(Value::Tensor(t.aligned()?)),
                other => other.cloned(),
            })
        })
        .collect::<Result<_, OpError>>()?;
    let facts: Vec<Option<Fact>> = aligned.iter().map(|v| v.as_ref().map(fact_of)).collect();
    let fact_refs: Vec<Option<&Fact>> = facts.iter().map(Option::as_ref).collect();
    let tensors: Vec<Option<&Tensor>> =
        aligned.iter().map(|v| v.as_ref().and_then(Value::as_tensor)).collect();
    let constants: Vec<Option<&Tensor>> =
        tensors.iter().enumerate().map(|(i, t)| t.filter(|_| constants.contains(&i))).collect();
    let mut unknowns = Unknowns::default();
    let mut cx = Infer::new(&registered.signature, &fact_refs, &tensors, node.outputs.len(), &mut unknowns)?;
    op.infer(&mut cx)?;
    let outputs = cx.into_outputs();

    let input_types: Vec<Option<ValueType>> =
        facts.iter().map(|f| f.as_ref().and_then(|f| f.ty.clone())).collect();
    let output_types: Vec<Option<ValueType>> = outputs.iter().map(|f| f.ty.clone()).collect();
    let context = NodeContext {
        provider: "CPU",
        domain: &node.op.domain,
        name: &node.op.name,
        op: &*op,
        input_types: &input_types,
        output_types: &output_types,
        constants: &constants,
        pool,
        packs: None,
    };
    match super::build(&context)? {
        CpuKernel::Value(kernel) => {
            let refs: Vec<Option<ValueRef<'_>>> =
                aligned.iter().map(|v| v.as_ref().map(ValueRef::Value)).collect();
            kernel.run(&KernelContext::new(pool, None), &refs)
        }
        CpuKernel::Tensor(kernel) => {
            let arguments: Vec<Option<Argument<'_>>> = aligned
                .iter()
                .map(|v| ValueRef::Value(v.as_ref()?).view())
                .map(|view| view.map(|view| Argument { shape: view.shape(), value: Some(view) }))
                .collect();
            let results = run_kernel(&*kernel, &arguments, &outputs, &KernelContext::new(pool, None))?;
            Ok(results.into_iter().map(Value::Tensor).collect())
        }
    }
}

/// Runs a kernel once, on memory made for this call. `outputs` must have known shapes; of the inputs only those
/// may lack a value that the kernel consumed.
pub fn run_kernel(
    kernel: &dyn Kernel,
    inputs: &[Option<Argument<'_>>],
    outputs: &[Fact],
    cx: &KernelContext<'_>,
) -> Result<Vec<Tensor>, OpError> {
    let results: Vec<Tensor> = outputs
        .iter()
        .map(|fact| {
            let shape =
                known_shape(fact).ok_or_else(|| OpError::Data("an output's shape stays unknown".into()))?;
            let ty =
                fact.element_type().ok_or_else(|| OpError::Data("an output's type stays unknown".into()))?;
            Ok(Tensor::unwritten(ty, &shape, Buffer::unspecified)?)
        })
        .collect::<Result<_, OpError>>()?;
    let shapes: Vec<Option<&[usize]>> = results.iter().map(|t| Some(t.shape())).collect();
    let prepared = kernel.prepare(inputs, &shapes)?;
    let inputs: Vec<Option<TensorView<'_>>> =
        inputs.iter().enumerate().map(|(i, v)| v.filter(|_| !kernel.consumes(i))?.value).collect();
    let scratch = Buffer::unspecified(prepared.scratch)?;
    // SAFETY: the buffer was made for this call, holds `scratch` bytes and is aligned to 64.
    let cx = unsafe { cx.prepared(prepared.state.as_deref(), scratch.as_ptr(), prepared.scratch) };
    // SAFETY: the results were just made; nothing else holds them.
    let mut views: Vec<Option<TensorViewMut<'_>>> =
        results.iter().map(|t| Some(unsafe { t.view_mut() })).collect();
    kernel.run(&cx, &inputs, &mut views)?;
    drop(views);
    Ok(results)
}
