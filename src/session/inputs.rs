//! Whether the values that a run is given fit the model's inputs.

use smallvec::SmallVec;

use crate::error::{Result, fail};
use crate::graph::Dim;
use crate::tensor::Value;

use super::Port;

/// Inputs, or outputs, of a run that need no memory of their own: a decoder of 32 layers has 67, and 65.
pub(super) const MANY: usize = 72;

/// Symbolic dimensions with the size they have in this run, and the input that said so.
pub(super) type Symbols<'a> = SmallVec<[(&'a str, usize, &'a str); 8]>;

/// Whether a value fits an input: type, rank, dimensions, and that a name stands for one size.
pub(super) fn check_input<'a>(port: &'a Port, value: &Value, symbols: &mut Symbols<'a>) -> Result<()> {
    let name = &port.name;
    let Value::Tensor(tensor) = value else {
        let ty = value.ty();
        if ty != port.ty {
            fail!(InvalidInput, "input \"{name}\" is {ty}; the model needs {}", port.ty);
        }
        return Ok(());
    };
    if port.ty.element() != Some(tensor.ty()) {
        fail!(InvalidInput, "input \"{name}\" is tensor({}); the model needs {}", tensor.ty(), port.ty);
    }
    let Some(wanted) = &port.shape else { return Ok(()) };
    let given = tensor.shape();
    if given.len() != wanted.len() {
        fail!(
            InvalidInput,
            "input \"{name}\" has rank {} (shape {given:?}); the model needs rank {} (shape {wanted:?})",
            given.len(),
            wanted.len()
        );
    }
    for (i, (&size, want)) in given.iter().zip(wanted).enumerate() {
        if let Some(known) = want.known() {
            if Dim::from(size) != Dim::from(known) {
                fail!(
                    InvalidInput,
                    "input \"{name}\": dimension {i} is {size}; the model needs {known} (shape {wanted:?})"
                );
            }
        } else if let Some(symbol) = want.as_symbol() {
            match symbols.iter().find(|(s, ..)| *s == symbol) {
                Some((_, other, first)) if *other != size => {
                    fail!(
                        InvalidInput,
                        "input \"{name}\": dimension {i} ({symbol}) is {size}, but {symbol} is {other} in input \"{first}\"; both must be equal"
                    );
                }
                Some(_) => {}
                None => symbols.push((symbol, size, name)),
            }
        }
    }
    Ok(())
}
