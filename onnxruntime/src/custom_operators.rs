//! `OrtCustomOpDomain` and `OrtCustomOp`: operators of the caller's become operators of librukh.

use std::ffi::{CString, c_char, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

use ort_sys::OrtErrorCode::ORT_FAIL;
use ort_sys::{OrtCustomOp, OrtCustomOpDomain, OrtSessionOptions, OrtStatusPtr};
use rukh_sys::*;

use crate::elements;
use crate::failure::{Failure, Result, Status, api, api_release, guard_value};
use crate::handle::{c_string, get, get_mut, give, handles, null, string};
use crate::kernel_context::Context;
use crate::kernel_info::Info;
use crate::library::{self, Own};
use crate::model_attributes::Attributes;
use crate::session_options::Options;
use crate::shape_inference;
use crate::table;

/// Operators of a domain. Sessions and options share it with the caller's handle.
pub struct Domain {
    name: String,
    operators: Mutex<Vec<Operator>>,
}

/// The caller's handle of a domain.
pub struct DomainReference(Arc<Domain>);

handles! { DomainReference => OrtCustomOpDomain; }

/// An operator of the caller's, who keeps it as long as sessions use it.
#[derive(Clone, Copy)]
pub struct Operator(*const OrtCustomOp);

// SAFETY: ONNX Runtime's contract lets the functions of an operator be called from any thread.
unsafe impl Send for Operator {}
// SAFETY: as above.
unsafe impl Sync for Operator {}

impl Domain {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds the operators to librukh's options, with the attributes that the model's nodes have.
    pub fn add_to(&self, options: *mut rukh_session_options, attributes: &Attributes) -> Result<()> {
        for operator in self.operators.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let made = operator.make(&self.name, attributes)?;
            // SAFETY: live handles.
            library::call(|error| unsafe {
                rukh_session_options_add_operator(options, made.pointer(), error)
            })?;
        }
        Ok(())
    }
}

/// Calls a function of the operator's struct; which is there was checked when the operator was added.
macro_rules! ask {
    ($operator:expr, $function:ident $(, $argument:expr)*) => {{
        let operator: *const OrtCustomOp = $operator.0;
        // SAFETY: the caller's operator lives, and its functions get it.
        unsafe { (*operator).$function.map(|function| function(operator $(, $argument)*)) }
    }};
}

impl Operator {
    /// Whether the struct has the fields that version `version` of the API added to it.
    fn since(self, version: u32) -> bool {
        // SAFETY: the caller's operator lives.
        unsafe { (*self.0).version >= version }
    }

    pub fn name(self) -> String {
        // SAFETY: NULL or a text of the operator's.
        ask!(self, GetName).map_or_else(String::new, |name| unsafe { crate::handle::string_or_empty(name) })
    }

    fn check(self) -> Result<()> {
        // SAFETY: NULL, or the caller's operator.
        let fields = unsafe { self.0.as_ref() }.ok_or_else(|| null("the operator"))?;
        let counts = fields.GetInputTypeCount.is_some() && fields.GetOutputTypeCount.is_some();
        let types = fields.GetInputType.is_some() && fields.GetOutputType.is_some();
        let characteristics =
            fields.GetInputCharacteristic.is_some() && fields.GetOutputCharacteristic.is_some();
        if fields.GetName.is_none() || !counts || !types || !characteristics {
            return Err(Failure::argument(
                "the operator lacks functions that tell its name, inputs or outputs",
            ));
        }
        let first = fields.CreateKernel.is_some() && fields.KernelCompute.is_some();
        let second = self.since(16) && fields.CreateKernelV2.is_some() && fields.KernelComputeV2.is_some();
        if !first && !second {
            return Err(Failure::argument(format!(
                "the operator {} lacks functions of a kernel",
                self.name()
            )));
        }
        // SAFETY: NULL, which stands for the CPU, or a text of the operator's.
        let provider = ask!(self, GetExecutionProviderType)
            .map_or_else(String::new, |name| unsafe { crate::handle::string_or_empty(name) });
        match provider.as_str() {
            "" | "CPUExecutionProvider" => Ok(()),
            _ => Err(Failure::absent(format!(
                "the operator {} is for {provider}; only those for the CPU can be taken",
                self.name()
            ))),
        }
    }

    fn make(self, domain: &str, attributes: &Attributes) -> Result<Own<rukh_operator>> {
        let (name, c_domain) = (self.name(), c_string(domain));
        let c_name = c_string(&name);
        let since = if self.since(17) { ask!(self, GetStartVersion).unwrap_or(1).max(1) } else { 1 };
        let user = Box::into_raw(Box::new(self)).cast();
        // SAFETY: texts, a place for the handle; `release` takes `user` back once, also when the call fails.
        let made = library::make(|out, error| unsafe {
            let (domain, name) = (c_domain.as_ptr(), c_name.as_ptr());
            rukh_operator_create(domain, name, since.into(), user, Some(release_operator), out, error)
        })?;
        self.describe(&made)?;
        if let Some(known) = attributes.get(&(domain.to_owned(), name)) {
            for (attribute, ty) in known {
                let attribute = c_string(attribute);
                // SAFETY: live handle, a text.
                library::call(|error| unsafe {
                    rukh_operator_add_attribute(made.pointer(), attribute.as_ptr(), *ty, 0, error)
                })?;
            }
        }
        // SAFETY: live handle, functions of this file.
        library::call(|error| unsafe {
            rukh_operator_set_kernel(made.pointer(), Some(create), Some(compute), error)
        })?;
        // SAFETY: the caller's operator lives.
        if self.since(17) && unsafe { (*self.0).InferOutputShapeFn.is_some() } {
            // SAFETY: live handle, a function of this file.
            library::call(|error| unsafe {
                rukh_operator_set_shape_function(made.pointer(), Some(infer), error)
            })?;
        }
        Ok(made)
    }

    /// Inputs and outputs. Those of any type share one type, as ONNX Runtime has it for a single one.
    fn describe(self, made: &Own<rukh_operator>) -> Result<()> {
        // SAFETY: live handle, a text; no list stands for all types.
        library::call(|error| unsafe {
            rukh_operator_add_type_variable(made.pointer(), c"T".as_ptr(), std::ptr::null(), 0, error)
        })?;
        for index in 0..ask!(self, GetInputTypeCount).unwrap_or(0) {
            let element = ask!(self, GetInputType, index).map_or(0, |element| element as i32);
            let kind = ask!(self, GetInputCharacteristic, index).map_or(0, |kind| kind as i32);
            let some = self.since(14) && ask!(self, GetVariadicInputMinArity).unwrap_or(1) > 0;
            let (name, ty, arity) =
                (c_string(&format!("input {index}")), type_name(element)?, arity(kind, some));
            // SAFETY: live handle, texts.
            library::call(|error| unsafe {
                rukh_operator_add_input(made.pointer(), name.as_ptr(), ty.as_ptr(), arity, error)
            })?;
        }
        for index in 0..ask!(self, GetOutputTypeCount).unwrap_or(0) {
            let element = ask!(self, GetOutputType, index).map_or(0, |element| element as i32);
            let kind = ask!(self, GetOutputCharacteristic, index).map_or(0, |kind| kind as i32);
            let some = self.since(14) && ask!(self, GetVariadicOutputMinArity).unwrap_or(1) > 0;
            let (name, ty, arity) =
                (c_string(&format!("output {index}")), type_name(element)?, arity(kind, some));
            // SAFETY: live handle, texts.
            library::call(|error| unsafe {
                rukh_operator_add_output(made.pointer(), name.as_ptr(), ty.as_ptr(), arity, error)
            })?;
        }
        Ok(())
    }
}

fn type_name(element: i32) -> Result<CString> {
    Ok(c_string(if element == 0 { "T" } else { elements::name(element)? }))
}

fn arity(characteristic: i32, some: bool) -> rukh_arity {
    match (characteristic, some) {
        (0, _) => RUKH_ARITY_REQUIRED,
        (1, _) => RUKH_ARITY_OPTIONAL,
        (_, true) => RUKH_ARITY_VARIADIC_SOME,
        (_, false) => RUKH_ARITY_VARIADIC,
    }
}

/// A kernel that the caller's operator made for a node.
struct Kernel {
    operator: Operator,
    kernel: *mut c_void,
}

unsafe extern "C" fn release_operator(user: *mut c_void) {
    // SAFETY: called once, with the box that `make` gave.
    guard_value((), || drop(unsafe { Box::from_raw(user.cast::<Operator>()) }));
}

unsafe extern "C" fn release_kernel(state: *mut c_void) {
    guard_value((), || {
        // SAFETY: called once, with the box that `create` gave.
        let kernel = unsafe { Box::from_raw(state.cast::<Kernel>()) };
        // SAFETY: the caller's operator outlives its kernels; a kernel is destroyed once.
        unsafe {
            if let Some(destroy) = (*kernel.operator.0).KernelDestroy {
                destroy(kernel.kernel);
            }
        }
    });
}

/// A status of the caller's as a result; it is released.
fn checked(status: OrtStatusPtr) -> Result<()> {
    // SAFETY: NULL or a status of this library, which is released once.
    unsafe {
        let Some(told) = Status::of(status.0) else { return Ok(()) };
        let message = crate::handle::string_or_empty(told.message());
        crate::base::ReleaseStatus(status.0);
        Err(Failure::new(ORT_FAIL, message))
    }
}

/// Runs the body of a function that librukh calls about a node.
fn about_node(node: *mut rukh_node_info, body: impl FnOnce() -> Result<()>) -> rukh_status {
    let failure = match guard_value(Err(Failure::new(ORT_FAIL, "a panic in rukh's libonnxruntime")), body) {
        Ok(()) => return RUKH_OK,
        Err(failure) => c_string(&failure.message),
    };
    // SAFETY: live handle, a text.
    unsafe { rukh_node_info_set_error(node, failure.as_ptr(), null_mut()) };
    RUKH_ERROR_UNSUPPORTED
}

unsafe extern "C" fn create(node: *mut rukh_node_info, user: *mut c_void) -> rukh_status {
    about_node(node, || {
        // SAFETY: `user` is the operator that `make` gave, and lives.
        let operator = unsafe { *user.cast::<Operator>() };
        let info = Info::new(node, operator.name());
        let raw = std::ptr::from_ref(&info).cast();
        let mut kernel = null_mut();
        // SAFETY: the caller's operator lives; its functions get it, a table of its version and the node.
        unsafe {
            let fields = &*operator.0;
            let functions = table::of(fields.version);
            match fields.CreateKernelV2.filter(|_| operator.since(16)) {
                Some(function) => checked(function(operator.0, functions, raw, &mut kernel))?,
                None => {
                    kernel = fields
                        .CreateKernel
                        .map_or(null_mut(), |function| function(operator.0, functions, raw))
                }
            }
        }
        let state = Box::into_raw(Box::new(Kernel { operator, kernel })).cast();
        // SAFETY: live handle; `release_kernel` takes the state back once, and on failure it is taken back here.
        let set = library::call(|error| unsafe {
            rukh_node_info_set_state(node, state, Some(release_kernel), error)
        });
        if set.is_err() {
            // SAFETY: the state was not taken.
            unsafe { release_kernel(state) };
        }
        set
    })
}

unsafe extern "C" fn compute(context: *mut rukh_kernel_context, _user: *mut c_void) -> rukh_status {
    let body = || {
        // SAFETY: live handle, a place for the state, which `create` set.
        let state = library::get(|state: *mut usize, error| unsafe {
            rukh_kernel_context_state(context, state.cast(), error)
        })?;
        // SAFETY: the state that `create` set lives as long as the node.
        let kernel = unsafe { &*(state as *const Kernel) };
        let lent = Context::new(context);
        let raw = std::ptr::from_ref(&lent).cast_mut().cast();
        // SAFETY: the caller's operator and kernel live.
        unsafe {
            let fields = &*kernel.operator.0;
            match fields.KernelComputeV2.filter(|_| kernel.operator.since(16)) {
                Some(function) => checked(function(kernel.kernel, raw))?,
                None => fields.KernelCompute.into_iter().for_each(|function| function(kernel.kernel, raw)),
            }
        }
        lent.finish()
    };
    let failure = match guard_value(Err(Failure::new(ORT_FAIL, "a panic in rukh's libonnxruntime")), body) {
        Ok(()) => return RUKH_OK,
        Err(failure) => c_string(&failure.message),
    };
    // SAFETY: live handle, a text.
    unsafe { rukh_kernel_context_set_error(context, failure.as_ptr(), null_mut()) };
    RUKH_ERROR_INVALID_DATA
}

unsafe extern "C" fn infer(node: *mut rukh_node_info, user: *mut c_void) -> rukh_status {
    about_node(node, || {
        // SAFETY: `user` is the operator that `make` gave, and lives.
        let operator = unsafe { *user.cast::<Operator>() };
        let context = shape_inference::Context::new(node);
        let raw = std::ptr::from_ref(&context).cast_mut().cast();
        ask!(operator, InferOutputShapeFn, raw).map_or(Ok(()), checked)
    })
}

api! {
    fn CreateCustomOpDomain(name: *const c_char, out: *mut *mut OrtCustomOpDomain) {
        give(out, DomainReference(Arc::new(Domain { name: string(name, "the name")?, operators: Mutex::default() })))?;
    }

    fn CustomOpDomain_Add(domain: *mut OrtCustomOpDomain, operator: *const OrtCustomOp) {
        let domain = get::<DomainReference>(domain)?;
        Operator(operator).check()?;
        domain.0.operators.lock().unwrap_or_else(PoisonError::into_inner).push(Operator(operator));
    }

    fn AddCustomOpDomain(options: *mut OrtSessionOptions, domain: *mut OrtCustomOpDomain) {
        let domain = get::<DomainReference>(domain)?.0.clone();
        get_mut::<Options>(options)?.domains.push(domain);
    }
}

api_release! {
    fn ReleaseCustomOpDomain(OrtCustomOpDomain) => DomainReference;
}
