//! `OrtShapeInferContext`: what the shape function of a caller's operator is told, and tells.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_void};
use std::ptr::null;
use std::rc::Rc;

use ort_sys::{OrtOpAttr, OrtShapeInferContext, OrtTensorTypeAndShapeInfo};
use rukh_sys::*;

use crate::elements;
use crate::failure::{Failure, Result, api};
use crate::handle::{get, give, handles, put, text};
use crate::library;
use crate::types::TensorInfo;

/// The node. It is there during the call of the shape function.
pub struct Context {
    node: *mut rukh_node_info,
    attributes: RefCell<Vec<Rc<Attribute>>>,
}

/// An attribute by its name: what it holds is read when it is asked for.
pub struct Attribute {
    node: *mut rukh_node_info,
    name: CString,
}

handles! {
    Context => OrtShapeInferContext;
    Attribute => OrtOpAttr;
}

impl Context {
    pub fn new(node: *mut rukh_node_info) -> Context {
        Context { node, attributes: RefCell::default() }
    }
}

impl Attribute {
    /// The value as bytes: an integer, a float, a list of them, or a text.
    fn bytes(&self, ty: i32) -> Result<Vec<u8>> {
        let (node, name) = (self.node, self.name.as_ptr());
        let mut count = 0;
        // SAFETY: live handle, a text, places for the results; lists are borrowed from the node.
        unsafe {
            Ok(match ty {
                1 => library::get(|v: *mut i64, e| rukh_node_info_attribute_int(node, name, v, e))?
                    .to_ne_bytes()
                    .into(),
                3 => library::get(|v: *mut f32, e| rukh_node_info_attribute_float(node, name, v, e))?
                    .to_ne_bytes()
                    .into(),
                2 => {
                    let mut list = null();
                    library::call(|e| rukh_node_info_attribute_ints(node, name, &mut list, &mut count, e))?;
                    crate::handle::array(list, count, "the list")?
                        .iter()
                        .flat_map(|n| n.to_ne_bytes())
                        .collect()
                }
                4 => {
                    let mut list = null();
                    library::call(|e| rukh_node_info_attribute_floats(node, name, &mut list, &mut count, e))?;
                    crate::handle::array(list, count, "the list")?
                        .iter()
                        .flat_map(|n| n.to_ne_bytes())
                        .collect()
                }
                5 => library::bytes(|buf, cap, needed, e| {
                    rukh_node_info_attribute_string(node, name, buf, cap, needed, e)
                })?,
                _ => {
                    return Err(Failure::absent(format!(
                        "attributes of type {ty} cannot be read by a shape function"
                    )));
                }
            })
        }
    }
}

api! {
    fn ShapeInferContext_GetInputCount(context: *const OrtShapeInferContext, out: *mut usize) {
        let node = get::<Context>(context)?.node;
        put(out, library::get(|count, error| rukh_node_info_input_count(node, count, error))?)?;
    }

    fn ShapeInferContext_GetInputTypeShape(context: *const OrtShapeInferContext, index: usize, out: *mut *mut OrtTensorTypeAndShapeInfo) {
        let node = get::<Context>(context)?.node;
        let (mut kind, mut element, mut rank, mut dims) = (0, 0, -1, vec![0; 64]);
        library::call(|error| rukh_node_info_input_type(node, index, &mut kind, &mut element, error))?;
        library::call(|error| rukh_node_info_input_shape(node, index, dims.as_mut_ptr(), dims.len(), &mut rank, error))?;
        let element = elements::from_rukh(element);
        give(out, match usize::try_from(rank) {
            Ok(rank) => TensorInfo::new(element, dims[..rank].to_vec()),
            Err(_) => TensorInfo { element, ..TensorInfo::default() },
        })?;
    }

    fn ShapeInferContext_GetAttribute(context: *const OrtShapeInferContext, name: *const c_char, out: *mut *const OrtOpAttr) {
        let context = get::<Context>(context)?;
        let name = text(name, "the name")?;
        let there = library::get(|given, error| rukh_node_info_has_attribute(context.node, name.as_ptr(), given, error))?;
        if there == 0 {
            return Err(Failure::argument(format!("the node has no attribute {}", name.to_string_lossy())));
        }
        let attribute = Rc::new(Attribute { node: context.node, name: name.to_owned() });
        put(out, std::ptr::from_ref(&*attribute).cast())?;
        context.attributes.borrow_mut().push(attribute);
    }

    fn ShapeInferContext_SetOutputTypeShape(context: *const OrtShapeInferContext, index: usize, info: *const OrtTensorTypeAndShapeInfo) {
        let node = get::<Context>(context)?.node;
        let info = get::<TensorInfo>(info)?;
        if info.element != 0 {
            let element = elements::to_rukh(info.element)?;
            library::call(|error| rukh_node_info_set_output_type(node, index, element, error))?;
        }
        if info.shaped {
            library::call(|error| rukh_node_info_set_output_shape(node, index, info.dims.as_ptr(), info.dims.len(), error))?;
        }
    }

    fn ReadOpAttr(attribute: *const OrtOpAttr, ty: i32, data: *mut c_void, size: usize, out: *mut usize) {
        let bytes = get::<Attribute>(attribute)?.bytes(ty)?;
        put(out, bytes.len())?;
        if size < bytes.len() {
            return Err(Failure::argument(format!("the attribute takes {} bytes; the buffer has {size}", bytes.len())));
        }
        if !bytes.is_empty() {
            put(data.cast::<u8>(), bytes[0])?;
            data.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    fn OpAttr_GetName(attribute: *const OrtOpAttr, out: *mut *const c_char) {
        put(out, get::<Attribute>(attribute)?.name.as_ptr())?;
    }
}
