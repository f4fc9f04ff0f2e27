//! One element as it lies in memory, for code that moves elements without looking at them.

use crate::ops::OpError;
use crate::tensor::{Buffer, ElementType, Tensor, TensorViewMut, Value, ValueRef};

/// As many bytes as an element has, or a `String`. `default()` is zero or the empty string.
pub(crate) trait Item: Clone + Default + Send + Sync + 'static {
    /// The elements of a tensor; `None` when the value is no tensor of this item.
    fn read(value: ValueRef<'_>) -> Option<&[Self]>;
    /// Planned memory as items; `None` for strings.
    fn of_view<'a>(view: &'a mut TensorViewMut<'_>) -> Option<&'a mut [Self]>;
    /// Strings as items; `None` for bytes.
    fn of_strings(strings: &mut [String]) -> Option<&mut [Self]>;
    /// One item from its bytes; `None` for strings and for another length.
    fn of_bytes(bytes: &[u8]) -> Option<Self>;
    /// Items as the bytes they are; `None` for strings.
    fn bytes(items: &[Self]) -> Option<&[u8]>;
    fn bytes_mut(items: &mut [Self]) -> Option<&mut [u8]>;
    /// A tensor of a type of this item's size.
    fn tensor(ty: ElementType, shape: &[usize], items: Vec<Self>) -> Result<Tensor, OpError>;
}

macro_rules! byte_items {
    ($($n:literal),*) => {$(
        impl Item for [u8; $n] {
            fn read(value: ValueRef<'_>) -> Option<&[Self]> {
                Some(value.view()?.bytes().as_chunks().0)
            }
            fn of_view<'a>(view: &'a mut TensorViewMut<'_>) -> Option<&'a mut [Self]> {
                Some(view.bytes().as_chunks_mut().0)
            }
            fn of_strings(_: &mut [String]) -> Option<&mut [Self]> {
                None
            }
            fn of_bytes(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok()
            }
            fn bytes(items: &[Self]) -> Option<&[u8]> {
                Some(items.as_flattened())
            }
            fn bytes_mut(items: &mut [Self]) -> Option<&mut [u8]> {
                Some(items.as_flattened_mut())
            }
            fn tensor(ty: ElementType, shape: &[usize], items: Vec<Self>) -> Result<Tensor, OpError> {
                let buffer = Buffer::copy_of(items.as_flattened())?;
                Tensor::from_buffer(ty, shape, buffer).ok_or_else(|| {
                    OpError::Data(format!("{} items for a {ty} tensor of shape {shape:?}", items.len()))
                })
            }
        }
    )*};
}
byte_items!(1, 2, 4, 8, 16);

impl Item for String {
    fn read(value: ValueRef<'_>) -> Option<&[Self]> {
        value.strings()
    }
    fn of_view<'a>(_: &'a mut TensorViewMut<'_>) -> Option<&'a mut [Self]> {
        None
    }
    fn of_strings(strings: &mut [String]) -> Option<&mut [Self]> {
        Some(strings)
    }
    fn of_bytes(_: &[u8]) -> Option<Self> {
        None
    }
    fn bytes(_: &[Self]) -> Option<&[u8]> {
        None
    }
    fn bytes_mut(_: &mut [Self]) -> Option<&mut [u8]> {
        None
    }
    fn tensor(_: ElementType, shape: &[usize], items: Vec<Self>) -> Result<Tensor, OpError> {
        Ok(Tensor::from_strings(shape, items))
    }
}

/// Evaluates `$body` with `$T` standing for the [`Item`] of an element type.
macro_rules! dispatch_item {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty.size() {
            0 => {
                type $T = String;
                $body
            }
            1 => {
                type $T = [u8; 1];
                $body
            }
            2 => {
                type $T = [u8; 2];
                $body
            }
            4 => {
                type $T = [u8; 4];
                $body
            }
            8 => {
                type $T = [u8; 8];
                $body
            }
            _ => {
                type $T = [u8; 16];
                $body
            }
        }
    };
}
pub(crate) use dispatch_item;

/// The items of an input of a value kernel, which must be a tensor.
pub(crate) fn items<'a, T: Item>(inputs: &[Option<ValueRef<'a>>], i: usize) -> Result<&'a [T], OpError> {
    inputs.get(i).copied().flatten().and_then(T::read).ok_or_else(|| not_a_tensor(i))
}

/// The shape of an input of a value kernel, which must be a tensor.
pub(crate) fn shape_of<'a>(inputs: &[Option<ValueRef<'a>>], i: usize) -> Result<&'a [usize], OpError> {
    inputs.get(i).copied().flatten().and_then(ValueRef::shape).ok_or_else(|| not_a_tensor(i))
}

/// The element type of an input of a value kernel, which must be a tensor.
pub(crate) fn type_of(inputs: &[Option<ValueRef<'_>>], i: usize) -> Result<ElementType, OpError> {
    match inputs.get(i).copied().flatten() {
        Some(ValueRef::Tensor(view)) => Ok(view.ty()),
        Some(ValueRef::Value(Value::Tensor(t))) => Ok(t.ty()),
        _ => Err(not_a_tensor(i)),
    }
}

fn not_a_tensor(i: usize) -> OpError {
    OpError::Data(format!("input {i} is no tensor of the type this operator takes"))
}
