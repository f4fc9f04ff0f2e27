//! `OrtTypeInfo` and what it holds: the types of values.

use std::ffi::{CString, c_char};
use std::ptr::null;

use ort_sys::{
    OrtMapTypeInfo, OrtOptionalTypeInfo, OrtSequenceTypeInfo, OrtTensorTypeAndShapeInfo, OrtTypeInfo,
};

use crate::elements;
use crate::failure::{Failure, Result, api, api_release, api_value};
use crate::handle::{array, c_string, get, get_mut, give, handles, null as is_null, put, string_or_empty};

/// The type of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeInfo {
    Tensor(TensorInfo),
    Sequence(Box<TypeInfo>),
    Map(i32, Box<TypeInfo>),
    Optional(Box<TypeInfo>),
    Unknown,
}

/// The type and shape of a tensor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TensorInfo {
    pub element: i32,
    /// -1 for a dimension that is not known.
    pub dims: Vec<i64>,
    /// Names of dimensions, "" for those without. As many as dimensions.
    pub names: Vec<CString>,
    /// Whether the number of dimensions is known.
    pub shaped: bool,
}

handles! {
    TypeInfo => OrtTypeInfo;
    TensorInfo => OrtTensorTypeAndShapeInfo;
    Sequence => OrtSequenceTypeInfo;
    Map => OrtMapTypeInfo;
    Contained => OrtOptionalTypeInfo;
}

/// The part of a `TypeInfo` that callers know as `OrtSequenceTypeInfo`, and so on: the same object.
#[repr(transparent)]
struct Sequence(TypeInfo);
#[repr(transparent)]
struct Map(TypeInfo);
#[repr(transparent)]
struct Contained(TypeInfo);

impl TypeInfo {
    /// Reads a type as the ONNX standard writes it: "tensor(float)", "seq(map(int64,tensor(float)))".
    pub fn parse(text: &str) -> TypeInfo {
        let inside = |name: &str| {
            let rest = text.strip_prefix(name)?.strip_prefix('(')?;
            rest.strip_suffix(')')
        };
        if let Some(element) = inside("tensor") {
            return TypeInfo::Tensor(TensorInfo {
                element: elements::by_name(element),
                ..TensorInfo::default()
            });
        }
        if let Some(item) = inside("seq") {
            return TypeInfo::Sequence(Box::new(TypeInfo::parse(item)));
        }
        if let Some(item) = inside("optional") {
            return TypeInfo::Optional(Box::new(TypeInfo::parse(item)));
        }
        match inside("map").and_then(|both| both.split_once(',')) {
            Some((key, value)) => {
                TypeInfo::Map(elements::by_name(key), Box::new(TypeInfo::parse(value.trim())))
            }
            None => TypeInfo::Unknown,
        }
    }

    /// The number of `ONNXType`.
    pub fn number(&self) -> i32 {
        match self {
            TypeInfo::Unknown => 0,
            TypeInfo::Tensor(_) => 1,
            TypeInfo::Sequence(_) => 2,
            TypeInfo::Map(..) => 3,
            TypeInfo::Optional(_) => 6,
        }
    }
}

impl TensorInfo {
    pub fn new(element: i32, dims: Vec<i64>) -> TensorInfo {
        let names = vec![CString::default(); dims.len()];
        TensorInfo { element, dims, names, shaped: true }
    }
}

/// A pointer to the same object where it is of a kind, else NULL.
///
/// # Safety
/// `info` is NULL or a live type; `out` is NULL or may be written.
unsafe fn cast<T>(
    info: *const OrtTypeInfo,
    out: *mut *const T,
    is: impl FnOnce(&TypeInfo) -> bool,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        let info = get::<TypeInfo>(info)?;
        put(out, if is(info) { std::ptr::from_ref(info).cast() } else { null() })
    }
}

api! {
    fn CastTypeInfoToTensorInfo(info: *const OrtTypeInfo, out: *mut *const OrtTensorTypeAndShapeInfo) {
        let tensor = match get::<TypeInfo>(info)? {
            TypeInfo::Tensor(tensor) => std::ptr::from_ref(tensor).cast(),
            _ => null(),
        };
        put(out, tensor)?;
    }

    fn CastTypeInfoToSequenceTypeInfo(info: *const OrtTypeInfo, out: *mut *const OrtSequenceTypeInfo) {
        cast(info, out, |info| matches!(info, TypeInfo::Sequence(_)))?;
    }

    fn CastTypeInfoToMapTypeInfo(info: *const OrtTypeInfo, out: *mut *const OrtMapTypeInfo) {
        cast(info, out, |info| matches!(info, TypeInfo::Map(..)))?;
    }

    fn CastTypeInfoToOptionalTypeInfo(info: *const OrtTypeInfo, out: *mut *const OrtOptionalTypeInfo) {
        cast(info, out, |info| matches!(info, TypeInfo::Optional(_)))?;
    }

    fn GetOnnxTypeFromTypeInfo(info: *const OrtTypeInfo, out: *mut i32) {
        put(out, get::<TypeInfo>(info)?.number())?;
    }

    // The model's denotations are not kept: "" stands for none.
    fn GetDenotationFromTypeInfo(info: *const OrtTypeInfo, denotation: *mut *const c_char, length: *mut usize) {
        get::<TypeInfo>(info)?;
        put(denotation, c"".as_ptr())?;
        put(length, 0)?;
    }

    fn GetSequenceElementType(info: *const OrtSequenceTypeInfo, out: *mut *mut OrtTypeInfo) {
        match &get::<Sequence>(info)?.0 {
            TypeInfo::Sequence(item) => give(out, (**item).clone())?,
            _ => return Err(Failure::argument("the type is no sequence")),
        }
    }

    fn GetMapKeyType(info: *const OrtMapTypeInfo, out: *mut i32) {
        match &get::<Map>(info)?.0 {
            TypeInfo::Map(key, _) => put(out, *key)?,
            _ => return Err(Failure::argument("the type is no map")),
        }
    }

    fn GetMapValueType(info: *const OrtMapTypeInfo, out: *mut *mut OrtTypeInfo) {
        match &get::<Map>(info)?.0 {
            TypeInfo::Map(_, value) => give(out, (**value).clone())?,
            _ => return Err(Failure::argument("the type is no map")),
        }
    }

    fn GetOptionalContainedTypeInfo(info: *const OrtOptionalTypeInfo, out: *mut *mut OrtTypeInfo) {
        match &get::<Contained>(info)?.0 {
            TypeInfo::Optional(item) => give(out, (**item).clone())?,
            _ => return Err(Failure::argument("the type is no optional")),
        }
    }

    fn CreateTensorTypeAndShapeInfo(out: *mut *mut OrtTensorTypeAndShapeInfo) {
        give(out, TensorInfo::new(0, Vec::new()))?;
    }

    fn SetTensorElementType(info: *mut OrtTensorTypeAndShapeInfo, element: i32) {
        elements::to_rukh(element)?;
        get_mut::<TensorInfo>(info)?.element = element;
    }

    fn SetDimensions(info: *mut OrtTensorTypeAndShapeInfo, dims: *const i64, count: usize) {
        let dims = array(dims, count, "dimensions")?.to_vec();
        let info = get_mut::<TensorInfo>(info)?;
        *info = TensorInfo::new(info.element, dims);
    }

    fn SetSymbolicDimensions(info: *mut OrtTensorTypeAndShapeInfo, names: *mut *const c_char, count: usize) {
        let info = get_mut::<TensorInfo>(info)?;
        let names = array(names.cast_const(), count, "names")?;
        if names.len() != info.dims.len() {
            return Err(Failure::argument(format!("{count} names were given for {} dimensions", info.dims.len())));
        }
        info.names = names.iter().map(|name| c_string(&string_or_empty(*name))).collect();
    }

    fn GetTensorElementType(info: *const OrtTensorTypeAndShapeInfo, out: *mut i32) {
        put(out, get::<TensorInfo>(info)?.element)?;
    }

    fn GetDimensionsCount(info: *const OrtTensorTypeAndShapeInfo, out: *mut usize) {
        put(out, get::<TensorInfo>(info)?.dims.len())?;
    }

    fn GetDimensions(info: *const OrtTensorTypeAndShapeInfo, out: *mut i64, room: usize) {
        fill(&get::<TensorInfo>(info)?.dims, out, room)?;
    }

    fn GetSymbolicDimensions(info: *const OrtTensorTypeAndShapeInfo, out: *mut *const c_char, room: usize) {
        let names: Vec<*const c_char> = get::<TensorInfo>(info)?.names.iter().map(|name| name.as_ptr()).collect();
        fill(&names, out, room)?;
    }

    fn GetTensorShapeElementCount(info: *const OrtTensorTypeAndShapeInfo, out: *mut usize) {
        let dims = &get::<TensorInfo>(info)?.dims;
        if dims.iter().any(|dim| *dim < 0) {
            return Err(Failure::argument(format!("the shape {dims:?} has dimensions that are not known")));
        }
        put(out, elements::count(dims)?)?;
    }
}

/// Copies as many items as there is room for.
///
/// # Safety
/// `out` has `room` items, or is NULL with 0.
unsafe fn fill<T: Copy>(items: &[T], out: *mut T, room: usize) -> Result<()> {
    let count = items.len().min(room);
    if count > 0 && out.is_null() {
        return Err(is_null("the place for the result"));
    }
    if count > 0 {
        // SAFETY: the caller's promise.
        unsafe { out.copy_from_nonoverlapping(items.as_ptr(), count) };
    }
    Ok(())
}

api_value! {
    fn TensorTypeAndShape_HasShape(info: *const OrtTensorTypeAndShapeInfo) -> bool, false => {
        get::<TensorInfo>(info).is_ok_and(|info| info.shaped)
    }
}

api_release! {
    fn ReleaseTypeInfo(OrtTypeInfo) => TypeInfo;
    fn ReleaseTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo) => TensorInfo;
}

api_value! {
    // Maps and sequences are lent by the `OrtTypeInfo` that they were cast from, which releases them.
    fn ReleaseMapTypeInfo(_info: *mut OrtMapTypeInfo) -> (), () => {}
    fn ReleaseSequenceTypeInfo(_info: *mut OrtSequenceTypeInfo) -> (), () => {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse() {
        let tensor = |element| TypeInfo::Tensor(TensorInfo { element, ..TensorInfo::default() });
        for (text, expected) in [
            ("tensor(float)", tensor(1)),
            ("tensor(string)", tensor(8)),
            ("seq(tensor(int64))", TypeInfo::Sequence(Box::new(tensor(7)))),
            (
                "optional(seq(tensor(int64)))",
                TypeInfo::Optional(Box::new(TypeInfo::Sequence(Box::new(tensor(7))))),
            ),
            (
                "seq(map(int64,tensor(float)))",
                TypeInfo::Sequence(Box::new(TypeInfo::Map(7, Box::new(tensor(1))))),
            ),
            ("opaque(x)", TypeInfo::Unknown),
            ("", TypeInfo::Unknown),
        ] {
            assert_eq!(TypeInfo::parse(text), expected, "{text}");
        }
    }
}
