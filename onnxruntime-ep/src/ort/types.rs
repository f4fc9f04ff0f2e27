//! Types of values.

use std::ptr::{null, null_mut};

use ort_sys::{ONNXType, OrtTensorTypeAndShapeInfo, OrtTypeInfo};

use super::interface::element_place;
use super::{Ort, copy};
use crate::error::{Result, fail};

/// A type of elements, by ONNX Runtime's number.
pub(crate) type ElementType = i32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    Known(i64),
    Named(String),
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TypeInfo {
    /// A tensor; no shape where not even the rank is known.
    Tensor(ElementType, Option<Vec<Dimension>>),
    Sequence(Box<TypeInfo>),
    Optional(Box<TypeInfo>),
    /// Sparse tensors, maps, opaque values, and what newer versions have.
    Other,
    /// ONNX Runtime does not know it.
    Unknown,
}

impl Ort {
    /// # Safety
    /// `info` is NULL or live.
    pub(crate) unsafe fn type_info(&self, info: *const OrtTypeInfo) -> Result<TypeInfo> {
        if info.is_null() {
            return Ok(TypeInfo::Unknown);
        }
        let mut kind = 0_i32;
        // SAFETY: `info` is live; the places are locals of the types that the functions write; borrowed parts are read
        // while `info` lives, and made ones are released.
        unsafe {
            let place: *mut i32 = &mut kind;
            self.check((self.api.GetOnnxTypeFromTypeInfo)(info, place.cast()))?;
            if kind == ONNXType::ONNX_TYPE_TENSOR as i32 {
                let mut tensor = null();
                self.check((self.api.CastTypeInfoToTensorInfo)(info, &mut tensor))?;
                return self.tensor_type(tensor);
            }
            if kind == ONNXType::ONNX_TYPE_SEQUENCE as i32 {
                let (mut sequence, mut inner) = (null(), null_mut());
                self.check((self.api.CastTypeInfoToSequenceTypeInfo)(info, &mut sequence))?;
                self.check((self.api.GetSequenceElementType)(sequence, &mut inner))?;
                return self.inner_type(inner).map(|inner| TypeInfo::Sequence(Box::new(inner)));
            }
            if kind == ONNXType::ONNX_TYPE_OPTIONAL as i32 {
                let (mut optional, mut inner) = (null(), null_mut());
                self.check((self.api.CastTypeInfoToOptionalTypeInfo)(info, &mut optional))?;
                self.check((self.api.GetOptionalContainedTypeInfo)(optional, &mut inner))?;
                return self.inner_type(inner).map(|inner| TypeInfo::Optional(Box::new(inner)));
            }
        }
        Ok(if kind == ONNXType::ONNX_TYPE_UNKNOWN as i32 { TypeInfo::Unknown } else { TypeInfo::Other })
    }

    /// # Safety
    /// `inner` is live and its owner is the caller, for whom it is released.
    unsafe fn inner_type(&self, inner: *mut OrtTypeInfo) -> Result<TypeInfo> {
        // SAFETY: the caller's promise.
        unsafe {
            let read = self.type_info(inner);
            (self.api.ReleaseTypeInfo)(inner);
            read
        }
    }

    /// # Safety
    /// `info` is NULL or live.
    unsafe fn tensor_type(&self, info: *const OrtTensorTypeAndShapeInfo) -> Result<TypeInfo> {
        if info.is_null() {
            fail!(InvalidGraph, "a type says that it is a tensor's, and has none");
        }
        let (mut element, mut rank) = (0, 0);
        // SAFETY: `info` is live; the places are locals with room for what is written; names are copied.
        unsafe {
            self.check((self.api.GetTensorElementType)(info, element_place(&mut element)))?;
            if !(self.api.TensorTypeAndShape_HasShape)(info) {
                return Ok(TypeInfo::Tensor(element, None));
            }
            self.check((self.api.GetDimensionsCount)(info, &mut rank))?;
            let (mut sizes, mut names) = (vec![0_i64; rank], vec![null(); rank]);
            self.check((self.api.GetDimensions)(info, sizes.as_mut_ptr(), rank))?;
            self.check((self.api.GetSymbolicDimensions)(info, names.as_mut_ptr(), rank))?;
            let dimension = |(size, name): (i64, _)| match (size, copy(name)) {
                (size, _) if size >= 0 => Dimension::Known(size),
                (_, name) if name.is_empty() => Dimension::Unknown,
                (_, name) => Dimension::Named(name),
            };
            Ok(TypeInfo::Tensor(element, Some(sizes.into_iter().zip(names).map(dimension).collect())))
        }
    }
}
