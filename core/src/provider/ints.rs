//! Reading index and shape inputs: int32 or int64, as int64.

use crate::ops::OpError;
use crate::ops::int_list::{IntList, whole_numbers};
use crate::tensor::{ElementType, TensorView};

use super::Argument;

/// An int32 or int64 tensor.
#[derive(Clone, Copy)]
pub enum Ints<'a> {
    I32(&'a [i32]),
    I64(&'a [i64]),
}

impl<'a> Ints<'a> {
    pub fn of(view: TensorView<'a>) -> Option<Self> {
        match view.ty() {
            ElementType::I32 => Some(Ints::I32(view.slice())),
            ElementType::I64 => Some(Ints::I64(view.slice())),
            _ => None,
        }
    }

    /// The indices of an operator that has checked by its signature that they are there.
    pub fn required(view: Option<TensorView<'a>>, what: &str) -> Result<Self, OpError> {
        view.and_then(Self::of).ok_or_else(|| OpError::Data(format!("{what} must be int32 or int64")))
    }

    pub fn len(self) -> usize {
        match self {
            Ints::I32(v) => v.len(),
            Ints::I64(v) => v.len(),
        }
    }

    #[inline]
    pub fn get(self, i: usize) -> i64 {
        match self {
            Ints::I32(v) => v[i] as i64,
            Ints::I64(v) => v[i],
        }
    }

    pub fn iter(self) -> impl Iterator<Item = i64> + 'a {
        (0..self.len()).map(move |i| self.get(i))
    }

    pub fn to_vec(self) -> Vec<i64> {
        self.iter().collect()
    }

    /// The index at `i` into an axis of this length; negative ones count from the back. For indices
    /// that `check` has seen.
    #[inline]
    pub fn wrapped(self, i: usize, length: usize) -> usize {
        let index = self.get(i);
        (if index < 0 { index + length as i64 } else { index }) as usize
    }

    /// Every index must lie in −length…length−1.
    pub fn check(self, length: usize) -> Result<(), OpError> {
        match self.iter().find(|&i| !in_axis(i, length)) {
            None => Ok(()),
            Some(i) => Err(out_of_range(i, length)),
        }
    }
}

#[inline]
pub fn in_axis(index: i64, length: usize) -> bool {
    (-(length as i64)..length as i64).contains(&index)
}

pub fn out_of_range(index: i64, length: usize) -> OpError {
    if length == 0 {
        return OpError::Data(format!("index {index} is out of range: the axis is empty"));
    }
    let n = length as i64;
    OpError::Data(format!(
        "index {index} is out of range for an axis of length {n}; allowed are {} to {}",
        -n,
        n - 1
    ))
}

/// The value of a shape input, which the plan knows; `None` when the node omits it.
pub fn shape_input(inputs: &[Option<Argument<'_>>], i: usize) -> Result<Option<Vec<i64>>, OpError> {
    let Some(argument) = inputs.get(i).copied().flatten() else { return Ok(None) };
    let view = argument
        .value
        .ok_or_else(|| OpError::Data(format!("the value of input {i} is needed when a run is planned")))?;
    Ok(Some(Ints::required(Some(view), "a shape input")?.to_vec()))
}

/// The integers of a list that is an attribute or a shape input.
pub fn int_list(list: &IntList, inputs: &[Option<Argument<'_>>]) -> Result<Option<Vec<i64>>, OpError> {
    match list {
        IntList::Attribute(_, values) => Ok(values.clone()),
        IntList::Input(i) => shape_input(inputs, *i),
        IntList::Floats(i) => {
            let Some(argument) = inputs.get(*i).copied().flatten() else { return Ok(None) };
            argument.value.and_then(whole_numbers).map(Some).ok_or_else(|| {
                OpError::Data(format!(
                    "input {i} must be known when a run is planned, and hold whole numbers"
                ))
            })
        }
    }
}

/// A list that inference has found to be there.
pub fn required_ints(list: &IntList, inputs: &[Option<Argument<'_>>]) -> Result<Vec<i64>, OpError> {
    int_list(list, inputs)?.ok_or_else(|| OpError::Data(format!("{list:?} is required, and missing")))
}
