//! New nodes, which ONNX Runtime's model editor makes.

use std::ffi::{CString, c_char, c_int};
use std::ptr::null_mut;

use ort_sys::{OrtNode, OrtOpAttr, OrtOpAttrType};

use super::{Ort, c_string};
use crate::error::{Result, fail};

/// What a new node is.
pub(crate) struct NewNode<'a> {
    pub(crate) operator: &'a str,
    pub(crate) domain: &'a str,
    pub(crate) name: &'a str,
    pub(crate) inputs: &'a [String],
    pub(crate) outputs: &'a [String],
    pub(crate) attributes: &'a [(&'a str, NewAttribute<'a>)],
}

pub(crate) enum NewAttribute<'a> {
    Int(i64),
    /// Any bytes, NUL among them.
    String(&'a [u8]),
}

/// A node that is ours until it is handed over.
pub(crate) struct OwnedNode {
    ort: Ort,
    pointer: *mut OrtNode,
}

impl Drop for OwnedNode {
    fn drop(&mut self) {
        // SAFETY: the node is ours and released once.
        unsafe { (self.ort.api.ReleaseNode)(self.pointer) };
    }
}

impl OwnedNode {
    /// The node, which the caller hands to ONNX Runtime.
    pub(crate) fn into_raw(self) -> *mut OrtNode {
        let node = std::mem::ManuallyDrop::new(self);
        node.pointer
    }
}

struct OwnedAttribute {
    ort: Ort,
    pointer: *mut OrtOpAttr,
}

impl Drop for OwnedAttribute {
    fn drop(&mut self) {
        // SAFETY: NULL, or an attribute that is ours and released once.
        unsafe { (self.ort.api.ReleaseOpAttr)(self.pointer) };
    }
}

impl Ort {
    pub(crate) fn node(&self, new: &NewNode<'_>) -> Result<OwnedNode> {
        // SAFETY: the table, where there is one, lives as long as ONNX Runtime.
        let Some(editor) = (unsafe { (self.api.GetModelEditorApi)().as_ref() }) else {
            fail!(NotImplemented, "this build of ONNX Runtime cannot make nodes, and so no EPContext models");
        };
        let attributes = new.attributes.iter().map(|(name, value)| self.new_attribute(name, value));
        let mut attributes = attributes.collect::<Result<Vec<_>>>()?;
        let mut pointers: Vec<*mut OrtOpAttr> = attributes.iter().map(|it| it.pointer).collect();
        let texts = |names: &[String]| names.iter().map(|name| c_string(name)).collect::<Vec<CString>>();
        let (inputs, outputs) = (texts(new.inputs), texts(new.outputs));
        let addresses =
            |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).collect::<Vec<*const c_char>>();
        let (inputs, outputs) = ((addresses(&inputs), inputs), (addresses(&outputs), outputs));
        let (operator, domain, name) = (c_string(new.operator), c_string(new.domain), c_string(new.name));
        let mut node = null_mut();
        // SAFETY: all arrays have their lengths; texts are NUL-terminated; everything is copied, and lives for the call; the
        // place is a local.
        let status = unsafe {
            (editor.CreateNode)(
                operator.as_ptr(),
                domain.as_ptr(),
                name.as_ptr(),
                inputs.0.as_ptr(),
                inputs.0.len(),
                outputs.0.as_ptr(),
                outputs.0.len(),
                pointers.as_mut_ptr(),
                pointers.len(),
                &mut node,
            )
        };
        // It releases the attributes that it takes, and leaves NULL in their places.
        for (attribute, left) in attributes.iter_mut().zip(pointers) {
            attribute.pointer = left;
        }
        self.check(status)?;
        Ok(OwnedNode { ort: *self, pointer: node })
    }

    fn new_attribute(&self, name: &str, value: &NewAttribute<'_>) -> Result<OwnedAttribute> {
        let (data, length, kind) = match value {
            NewAttribute::Int(value) => (std::ptr::from_ref(value).cast(), 1, OrtOpAttrType::ORT_OP_ATTR_INT),
            NewAttribute::String(bytes) => {
                (bytes.as_ptr().cast(), bytes.len(), OrtOpAttrType::ORT_OP_ATTR_STRING)
            }
        };
        let Ok(length) = c_int::try_from(length) else {
            fail!(
                InvalidArgument,
                "attribute \"{name}\" would have {length} bytes, and a model in one file holds less than 2147483648; set ep.context_embed_mode to 0"
            );
        };
        let name = c_string(name);
        let mut attribute = null_mut();
        // SAFETY: the name is NUL-terminated; the data are as long as told, and are copied; the place is a local.
        self.check(unsafe { (self.api.CreateOpAttr)(name.as_ptr(), data, length, kind, &mut attribute) })?;
        Ok(OwnedAttribute { ort: *self, pointer: attribute })
    }
}
