//! What a shape function tells of a node's outputs.

use super::args;
use super::guard::call_on;
use super::locked;
use super::node_info::{NodeInfoObject, Question};
use super::types::*;
use crate::error::{Result, fail};
use crate::graph::{Dim, Fact};
use crate::ops::custom::OutputFact;
use crate::tensor::ValueType;

/// Whether the node has an output (1), or leaves it out (0). Known in the functions `create` and `prepare` of a kernel.
///
/// `node`, `wanted`: not NULL. `index`: any number. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL or in a shape function, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_has_output(
    node: *const rukh_node_info,
    index: usize,
    wanted: *mut i32,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        let node = locked(node);
        if node.question == Question::Shapes {
            fail!(
                InvalidArgument,
                "a shape function tells of every output; which of them the node wants is known when its kernel is made"
            );
        }
        let has = node.facts.outputs.get(index).is_some_and(|output| output.ty.is_some());
        args::put(wanted, "wanted", i32::from(has))
    })
}

/// Tells that an output is a tensor of this element type. Needed only where the signature does not tell the type.
///
/// `node`: not NULL. `index`: from 0. `element`: one of `RUKH_ELEMENT_…`. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for an index or type that is not there or outside of a shape function, and the handle
/// errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_set_output_type(
    node: *mut rukh_node_info,
    index: usize,
    element: rukh_element_type,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        let element = args::element_type(element)?;
        output(&mut locked(node), index)?.ty = Some(ValueType::Tensor(element));
        Ok(())
    })
}

/// Tells the shape of an output.
///
/// `node`: not NULL. `index`: from 0. `dims`: `rank` dimensions in elements, -1 for one that is not known, which is
/// allowed only while dimensions or values of inputs are not known; NULL allowed with rank 0, a scalar. `error`: may be
/// NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, a dimension below -1 or
/// outside of a shape function, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_set_output_shape(
    node: *mut rukh_node_info,
    index: usize,
    dims: *const i64,
    rank: usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        let dims = args::array(dims, rank, "dims")?;
        if let Some(axis) = dims.iter().position(|&dim| dim < -1) {
            fail!(
                InvalidArgument,
                "dims: dimension {axis} of output {index} is {}; allowed is a number from 0, or -1 for one that is not known",
                dims[axis]
            );
        }
        let shape = dims.iter().map(|&dim| (dim >= 0).then(|| Dim::from(dim))).collect();
        output(&mut locked(node), index)?.shape = Some(shape);
        Ok(())
    })
}

/// Tells that an output has the shape of an input, also where dimensions of it are not known yet: the library then
/// knows that both are equal.
///
/// `node`: not NULL. `index`: of the output, from 0. `input`: of an input that the node has. `error`: may be NULL.
/// Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there or outside of a shape function, and
/// the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_set_output_shape_of(
    node: *mut rukh_node_info,
    index: usize,
    input: usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        let mut node = locked(node);
        let shape = input_fact(&node, input)?.shape.clone();
        output(&mut node, index)?.shape = shape.map(|dims| dims.into_iter().map(Some).collect());
        Ok(())
    })
}

/// Tells that a dimension of an output, whose shape was told before, is one of an input, also where that is not known
/// yet.
///
/// `node`: not NULL. `index`, `axis`: of the output, from 0. `input`, `input_axis`: of an input that the node has.
/// `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index or axis that is not there or
/// outside of a shape function, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_set_output_dim_of(
    node: *mut rukh_node_info,
    index: usize,
    axis: usize,
    input: usize,
    input_axis: usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        let mut node = locked(node);
        let dim = match &input_fact(&node, input)?.shape {
            Some(shape) => Some(args::item(shape, input_axis, "input_axis")?.clone()),
            None => None,
        };
        let Some(shape) = &mut output(&mut node, index)?.shape else {
            fail!(
                InvalidArgument,
                "output {index} has no shape yet; set it first, with -1 for this dimension"
            );
        };
        args::item(shape, axis, "axis")?;
        shape[axis] = dim;
        Ok(())
    })
}

fn input_fact(node: &NodeInfoObject, input: usize) -> Result<&Fact> {
    match args::item(&node.facts.inputs, input, "input")? {
        Some(fact) => Ok(fact),
        None => fail!(InvalidArgument, "input {input} is left out by the node"),
    }
}

fn output(node: &mut NodeInfoObject, index: usize) -> Result<&mut OutputFact> {
    node.check(Question::Shapes, "types and shapes of outputs")?;
    args::item(&node.facts.outputs, index, "output")?;
    Ok(&mut node.facts.outputs[index])
}
