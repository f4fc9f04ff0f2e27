//! Attributes of nodes.

use std::ffi::c_void;
use std::ptr::null_mut;

use ort_sys::{OrtOpAttr, OrtOpAttrType};

use super::aligned::AlignedBytes;
use super::graph::Node;
use super::value::OwnedTensor;
use crate::error::Result;

/// The value of an attribute; graphs are told by `Node::subgraphs`.
pub(crate) enum Attribute {
    Int(i64),
    Ints(Vec<i64>),
    Float(f32),
    Floats(Vec<f32>),
    String(Vec<u8>),
    Strings(Vec<Vec<u8>>),
    Tensor(OwnedTensor),
    Graph,
    /// Of a type that ONNX Runtime does not hand over: types, sparse tensors, lists of tensors and graphs.
    Other,
}

impl Node<'_> {
    pub(crate) fn attributes(&self) -> Result<Vec<(String, Attribute)>> {
        let list = self.attribute_list()?;
        // SAFETY: the node is live; its attributes live as long.
        list.into_iter().map(|attribute| unsafe { self.attribute(attribute) }).collect()
    }

    /// The attribute of a name, without a look at the others.
    pub(crate) fn attribute_named(&self, name: &str) -> Result<Option<Attribute>> {
        // SAFETY: the node is live, and so are its attributes.
        unsafe {
            match self.find_attribute(name)? {
                Some(attribute) => Ok(Some(self.attribute(attribute)?.1)),
                None => Ok(None),
            }
        }
    }

    /// The text of the attribute of a name, which may be large and any bytes; none where there is no such text.
    pub(crate) fn bytes_of_attribute(&self, name: &str) -> Result<Option<AlignedBytes>> {
        use OrtOpAttrType::ORT_OP_ATTR_STRING;
        // SAFETY: the node is live, and so are its attributes; asked without room, the function tells the bytes that it
        // needs; then there is room for as many.
        unsafe {
            let Some(attribute) = self.find_attribute(name)? else { return Ok(None) };
            let mut bytes = 0;
            let read = self.ort.api.ReadOpAttr;
            let asked = self.ort.check(read(attribute, ORT_OP_ATTR_STRING, null_mut(), 0, &mut bytes));
            if bytes == 0 {
                return asked.map(|()| None);
            }
            let mut text = AlignedBytes::zeroed(bytes);
            let place: *mut c_void = text.as_mut().as_mut_ptr().cast();
            self.ort.check(read(attribute, ORT_OP_ATTR_STRING, place, bytes, &mut bytes))?;
            Ok(Some(text))
        }
    }

    /// # Safety
    /// The attribute that is found lives as long as the node.
    unsafe fn find_attribute(&self, wanted: &str) -> Result<Option<*const OrtOpAttr>> {
        // SAFETY: the node is live; its attributes live as long.
        unsafe {
            for attribute in self.attribute_list()? {
                if self.ort.text(attribute, self.ort.api.OpAttr_GetName)? == wanted {
                    return Ok(Some(attribute));
                }
            }
        }
        Ok(None)
    }

    fn attribute_list(&self) -> Result<Vec<*const OrtOpAttr>> {
        let (count, list) = (self.ort.api.Node_GetNumAttributes, self.ort.api.Node_GetAttributes);
        // SAFETY: the node is live.
        let list = unsafe { self.ort.list(self.pointer, count, list) }?;
        Ok(list.into_iter().filter(|attribute| !attribute.is_null()).collect())
    }

    /// # Safety
    /// `attribute` is live.
    unsafe fn attribute(&self, attribute: *const OrtOpAttr) -> Result<(String, Attribute)> {
        use OrtOpAttrType::*;
        // SAFETY: the caller's promise. The type is read as a plain number, for versions may add some.
        unsafe {
            let name = self.ort.text(attribute, self.ort.api.OpAttr_GetName)?;
            let mut kind = 0_i32;
            let place: *mut i32 = &mut kind;
            // A type that ONNX Runtime does not hand over is an error of this function.
            if self.ort.check((self.ort.api.OpAttr_GetType)(attribute, place.cast())).is_err() {
                return Ok((name, Attribute::Other));
            }
            let is = |it: OrtOpAttrType| kind == it as i32;
            let value = if is(ORT_OP_ATTR_INT) {
                Attribute::Int(self.elements(attribute, ORT_OP_ATTR_INT)?.first().copied().unwrap_or(0))
            } else if is(ORT_OP_ATTR_INTS) {
                Attribute::Ints(self.elements(attribute, ORT_OP_ATTR_INTS)?)
            } else if is(ORT_OP_ATTR_FLOAT) {
                Attribute::Float(self.elements(attribute, ORT_OP_ATTR_FLOAT)?.first().copied().unwrap_or(0.0))
            } else if is(ORT_OP_ATTR_FLOATS) {
                Attribute::Floats(self.elements(attribute, ORT_OP_ATTR_FLOATS)?)
            } else if is(ORT_OP_ATTR_STRING) {
                Attribute::String(self.elements(attribute, ORT_OP_ATTR_STRING)?)
            } else if is(ORT_OP_ATTR_STRINGS) {
                let joined: Vec<u8> = self.elements(attribute, ORT_OP_ATTR_STRINGS)?;
                Attribute::Strings(split_at_nul(&joined))
            } else if is(ORT_OP_ATTR_TENSOR) {
                let mut tensor = null_mut();
                self.ort.check((self.ort.api.OpAttr_GetTensorAttributeAsOrtValue)(attribute, &mut tensor))?;
                Attribute::Tensor(OwnedTensor::new(self.ort, tensor))
            } else if is(ORT_OP_ATTR_GRAPH) {
                Attribute::Graph
            } else {
                Attribute::Other
            };
            Ok((name, value))
        }
    }

    /// The elements of an attribute's value: texts come as bytes.
    ///
    /// # Safety
    /// `attribute` is live, and `T` is what elements of `kind` are.
    unsafe fn elements<T: Clone + Default>(
        &self,
        attribute: *const OrtOpAttr,
        kind: OrtOpAttrType,
    ) -> Result<Vec<T>> {
        let mut bytes = 0;
        // SAFETY: the caller's promise; asked without room, the function tells the bytes that it needs (and says that
        // there is too little room, where there is something to give).
        unsafe {
            let asked = self.ort.check((self.ort.api.ReadOpAttr)(attribute, kind, null_mut(), 0, &mut bytes));
            if bytes == 0 {
                return asked.map(|()| Vec::new()).or_else(|_| Ok(Vec::new()));
            }
            let mut elements = vec![T::default(); bytes.div_ceil(size_of::<T>())];
            let place: *mut c_void = elements.as_mut_ptr().cast();
            self.ort.check((self.ort.api.ReadOpAttr)(attribute, kind, place, bytes, &mut bytes))?;
            elements.truncate(bytes / size_of::<T>());
            Ok(elements)
        }
    }
}

/// Texts that were joined, each with a NUL behind it.
fn split_at_nul(joined: &[u8]) -> Vec<Vec<u8>> {
    let mut texts: Vec<Vec<u8>> = joined.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
    texts.pop();
    texts
}
