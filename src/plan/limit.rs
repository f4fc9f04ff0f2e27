//! Values of inputs that decide shapes only beyond a limit: a plan serves all that keep it.
//!
//! How many keys there are decides the shape of a cache only where there are more of them than the cache has room for.
//! So text is generated token by token with one plan, as long as the buffer suffices.

use crate::tensor::{ElementType, Place, ValueRef};

/// Whether the only element of an input of the run, an integer on the host, is at most `most`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    input: usize,
    most: i64,
    within: bool,
}

impl Limit {
    /// The limit, as these inputs keep it or not; `None` where the input is no such integer.
    pub(super) fn of(inputs: &[ValueRef<'_>], input: usize, most: i64) -> Option<Self> {
        let given = inputs.get(input).filter(|given| given.place() == Some(Place::Host))?;
        let view = given.view()?;
        let value = match (view.ty(), view.len()) {
            (ElementType::I32, 1) => i64::from(view.slice::<i32>()[0]),
            (ElementType::I64, 1) => view.slice::<i64>()[0],
            _ => return None,
        };
        Some(Limit { input, most, within: value <= most })
    }

    pub(super) fn is_within(&self) -> bool {
        self.within
    }

    /// Whether a plan that was made under this limit serves these inputs.
    pub(super) fn is_kept_by(&self, inputs: &[ValueRef<'_>]) -> bool {
        Limit::of(inputs, self.input, self.most) == Some(*self)
    }
}
