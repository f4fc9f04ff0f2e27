//! Operators that the caller defines: their name, inputs and outputs, and functions.

use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex};

use super::args;
use super::guard::{call_on, create, destroy};
use super::handles::{self, Handle, Kind};
use super::locked;
use super::operator_calls::{Functions, GpuFunctions, KernelFunctions};
use super::types::*;
use super::user::User;
use crate::error::{Result, fail};
use crate::ops::custom::{Definition, Parts};
use crate::ops::{Arity, Parameter, Types, is_standard};
use crate::tensor::ElementType;

/// An operator while it is being described.
pub(super) struct OperatorObject {
    pub(super) parts: Parts,
    functions: Functions,
}

impl Handle for rukh_operator {
    type Object = Mutex<OperatorObject>;
    const KIND: Kind = Kind::Operator;
    const NAME: &'static str = "rukh_operator";
}

/// What an operator is now; later changes of the handle do not touch it.
pub(super) fn definition(operator: *const rukh_operator) -> Result<Arc<Definition>> {
    let operator = handles::pin(operator)?;
    let operator = locked(&operator);
    let definition = Definition::new(operator.parts.clone(), Box::new(operator.functions.clone()))?;
    Ok(Arc::new(definition))
}

/// Makes an operator, to be described and then added to an environment or to options of sessions.
///
/// `domain`: not NULL; "" or "ai.onnx" for the standard's, whose own names are not allowed. `name`: not NULL and not
/// empty. `since`: the version of the domain's operator set in which the operator appeared, 1 or more; of several
/// versions a node gets the newest that is not newer than the version that the model imports. `user`: passed to the
/// operator's callbacks as it is; may be NULL. `release`: may be NULL; called once with `user` when the handle, and every
/// environment, options and session with the operator, are gone, also when this call fails. `out`: not NULL; receives
/// the operator, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_OUT_OF_MEMORY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_operator_create(
    domain: *const c_char,
    name: *const c_char,
    since: i64,
    user: *mut c_void,
    release: rukh_release,
    out: *mut *mut rukh_operator,
    error: *mut *mut rukh_error,
) -> rukh_status {
    let user = Arc::new(User { pointer: user, release });
    create(out, error, move || {
        let (domain, name) = (args::text(domain, "domain")?, args::text(name, "name")?);
        if name.is_empty() {
            fail!(InvalidArgument, "name: an operator needs a name; \"\" was given");
        }
        if is_standard(domain, name) {
            fail!(
                InvalidArgument,
                "operator {name}: the standard has an operator of this name in domain \"{domain}\"; choose another name or a domain of your own"
            );
        }
        if since < 1 {
            fail!(
                InvalidArgument,
                "since: {since} was given for operator {name}; allowed is a number from 1"
            );
        }
        let parts = Parts { domain: domain.to_owned(), name: name.to_owned(), since, ..Parts::default() };
        Ok(Mutex::new(OperatorObject { parts, functions: Functions::new(user) }))
    })
}

/// Destroys an operator's handle. What it was added to keeps the operator. NULL, and a pointer that is no live handle
/// of this kind, is left alone.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_operator_destroy(operator: *mut rukh_operator) {
    destroy(operator);
}

/// Adds a type variable: inputs and outputs whose type is the variable's name have one type in a node.
///
/// `operator`: not NULL. `name`: not NULL; no name of an element type, and not added before. `allowed`: `count` element
/// types, `RUKH_ELEMENT_…`; NULL and 0 for all. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_operator_add_type_variable(
    operator: *mut rukh_operator,
    name: *const c_char,
    allowed: *const rukh_element_type,
    count: usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(operator, error, |operator| {
        let name = args::text(name, "name")?;
        let types = args::array(allowed, count, "allowed")?
            .iter()
            .map(|&number| args::element_type(number))
            .collect::<Result<Vec<ElementType>>>()?;
        let parts = &mut locked(operator).parts;
        let taken = name.is_empty()
            || name == "any"
            || name.contains(['(', ')'])
            || ElementType::all().any(|ty| ty.name() == name)
            || parts.types.iter().any(|(other, _)| other == name);
        if taken {
            fail!(
                InvalidArgument,
                "name: \"{name}\" is not allowed for a type variable; allowed is a new name that is no element type's"
            );
        }
        let set = if types.is_empty() { Types::TENSOR } else { Types::of(&types) };
        parts.types.push((name.to_owned(), set));
        Ok(())
    })
}

/// Adds an input, behind those that are there.
///
/// `operator`: not NULL. `name`: not NULL; for messages. `ty`: not NULL; the name of a type variable that was added
/// before, an element type as ONNX writes it ("float", "int64", "string" …), "seq(TYPE)" or "opt(TYPE)" of these, or
/// "any". `arity`: one of `RUKH_ARITY_…`. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and
/// the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_operator_add_input(
    operator: *mut rukh_operator,
    name: *const c_char,
    ty: *const c_char,
    arity: rukh_arity,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(operator, error, |operator| {
        let parts = &mut locked(operator).parts;
        let parameter = parameter(parts, name, ty, arity)?;
        parts.inputs.push(parameter);
        Ok(())
    })
}

/// Adds an output, behind those that are there. Its type is written as an input's; where it is "any" or a variable
/// that no input has, the shape function sets it.
///
/// The arguments, threads and errors are those of `rukh_operator_add_input`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_operator_add_output(
    operator: *mut rukh_operator,
    name: *const c_char,
    ty: *const c_char,
    arity: rukh_arity,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(operator, error, |operator| {
        let parts = &mut locked(operator).parts;
        let parameter = parameter(parts, name, ty, arity)?;
        parts.outputs.push(parameter);
        Ok(())
    })
}

fn parameter(parts: &Parts, name: *const c_char, ty: *const c_char, arity: rukh_arity) -> Result<Parameter> {
    let (name, ty) = (args::text(name, "name")?, args::text(ty, "ty")?);
    let arity = match arity {
        RUKH_ARITY_REQUIRED => Arity::Required,
        RUKH_ARITY_OPTIONAL => Arity::Optional,
        RUKH_ARITY_VARIADIC => Arity::Variadic(0),
        RUKH_ARITY_VARIADIC_SOME => Arity::Variadic(1),
        other => fail!(InvalidArgument, "arity: {other} is not known; known are 0 to 3"),
    };
    match Parameter::new(name, ty, arity, &parts.types) {
        Ok(parameter) => Ok(parameter),
        Err(reason) => fail!(InvalidArgument, "ty of \"{name}\": {reason}"),
    }
}

/// Says that the value of an input decides the shape of an output, as the `shape` of Reshape does. The shape function
/// then gets the value whenever outputs are to be planned, and the input stays in host memory.
///
/// `operator`: not NULL. `index`: of an input that was added. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_operator_set_shape_input(
    operator: *mut rukh_operator,
    index: usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(operator, error, |operator| {
        let parts = &mut locked(operator).parts;
        args::item(&parts.inputs, index, "input")?;
        if !parts.shape_inputs.contains(&index) {
            parts.shape_inputs.push(index);
        }
        Ok(())
    })
}

/// Sets the function that tells types and shapes of a node's outputs. It is called when a model is opened, with
/// dimensions that may be unknown, and again for the shapes of a run. Outputs whose shapes it tells then lie in memory
/// that the run plans; without the function, or where it leaves a shape unset, the kernel decides and memory is allocated
/// while the model runs.
///
/// `operator`: not NULL. `function`: NULL for none. `error`: may be NULL. Threads: any. Errors: the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_operator_set_shape_function(
    operator: *mut rukh_operator,
    function: rukh_node_callback,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(operator, error, |operator| {
        let operator = &mut *locked(operator);
        operator.functions.shape = function;
        operator.parts.has_shape_function = function.is_some();
        Ok(())
    })
}

/// Sets the kernel for the CPU.
///
/// `operator`: not NULL. `create`: may be NULL; called once for each node of a session that runs on the CPU, with its
/// types and attributes; it may refuse the node, and give it a state by `rukh_node_info_set_state`. `compute`: not NULL;
/// called in each run. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_operator_set_kernel(
    operator: *mut rukh_operator,
    create: rukh_node_callback,
    compute: rukh_kernel_callback,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(operator, error, |operator| {
        let Some(compute) = compute else {
            fail!(InvalidArgument, "compute: NULL is not allowed; it computes the outputs");
        };
        locked(operator).functions.cpu = Some(KernelFunctions { create, compute });
        Ok(())
    })
}

/// Sets the kernel for GPUs, which launches by itself: it is lent tensors in device memory and the stream of the run.
///
/// `operator`: not NULL; it needs a shape function, since the outputs' memory is planned. `create`: may be NULL; as for
/// the CPU. `prepare`: may be NULL; called when a run of new shapes is planned, with the shapes known, to ask for temporary
/// memory by `rukh_node_info_set_scratch`. `compute`: not NULL; called in each run. It must give its work to the
/// stream of `rukh_kernel_context_stream`, must not wait for it, and must not use tensors or temporary memory after work
/// in that stream. A run with such a node is replayed as a graph of the runtime's only where
/// `rukh_operator_set_capturable` says that it may be. `error`: may be NULL. Threads:
/// any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_operator_set_gpu_kernel(
    operator: *mut rukh_operator,
    create: rukh_node_callback,
    prepare: rukh_node_callback,
    compute: rukh_kernel_callback,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(operator, error, |operator| {
        let Some(compute) = compute else {
            fail!(InvalidArgument, "compute: NULL is not allowed; it gives work to the GPU");
        };
        let kernel = KernelFunctions { create, compute };
        locked(operator).functions.gpu = Some(GpuFunctions { kernel, prepare });
        Ok(())
    })
}

/// Says whether an operator is pure: the same inputs and attributes give the same outputs, bit for bit, and its
/// functions do nothing else. A node of a pure operator with a kernel for the CPU is computed once where all its inputs
/// are constants, when a model is opened with optimisation, or follow from the shapes of runs, when a run of new shapes
/// is planned; each run then takes the result. A kernel that fails meanwhile leaves the node as it is, for the runs to
/// tell. A result of more than 1 MiB is kept only where it has at most 16 times the bytes of the inputs.
///
/// `operator`: not NULL. `pure`: 1 or 0; 0 when this is not called. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_operator_set_pure(
    operator: *mut rukh_operator,
    pure: i32,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(operator, error, |operator| {
        locked(operator).parts.pure = args::flag(pure, "pure")?;
        Ok(())
    })
}

/// Says whether the work of the kernel for GPUs may be captured: all that `compute` does is to give work to the stream
/// of the run, and that work is the same each time for the same shapes and addresses. Runs with such nodes are replayed as
/// graphs of the runtime's, in which `compute` is not called: it is called in the first run of given shapes, and again each
/// time that its work is recorded. What it passes to its kernels must live as long as the node's state. A kernel that fails
/// while it is recorded, or makes a call that the runtime does not allow then, leaves the run without a graph.
///
/// `operator`: not NULL. `capturable`: 1 or 0; 0 when this is not called: `compute` is called in each run, and a run
/// whose stream the caller captures is an error. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_operator_set_capturable(
    operator: *mut rukh_operator,
    capturable: i32,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(operator, error, |operator| {
        locked(operator).parts.capturable = args::flag(capturable, "capturable")?;
        Ok(())
    })
}

/// Adds an operator to options: sessions that are opened with them find it, before one of the same domain, name and
/// version that the environment has. Where a model has a function of the operator's name, for libraries without the
/// operator, the operator is taken.
///
/// `options`, `operator`: not NULL; what the operator is now is copied. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for an operator without outputs or kernel, or that was added before, and the handle
/// errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_add_operator(
    options: *mut rukh_session_options,
    operator: *const rukh_operator,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| {
        let definition = definition(operator)?;
        locked(options).options.add_operators(vec![definition])
    })
}

/// Adds an operator to an environment: its sessions that are opened from now on find it.
///
/// `environment`, `operator`: not NULL; what the operator is now is copied. `error`: may be NULL. Threads: any, at the
/// same time. Errors: as `rukh_session_options_add_operator`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_add_operator(
    environment: *mut rukh_environment,
    operator: *const rukh_operator,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |environment| {
        environment.environment.add_operators(vec![definition(operator)?])
    })
}
