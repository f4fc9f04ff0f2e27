//! Shapes of woven tensors of bytes: four neighbouring channels lie side by side, in a word as products of bytes take
//! them. `[batch, channels, spatial…]` becomes `[batch, channels / 4, spatial…, 4]`.

use crate::graph::Dim;

use super::{Infer, OpError};

/// Channels of a word.
pub(crate) const WORD: i64 = 4;

/// The woven shape; channels must be whole words.
pub(crate) fn woven(shape: &[Dim]) -> Vec<Dim> {
    let words = shape[1].floor_div(&Dim::Known(WORD));
    [&[shape[0].clone(), words], &shape[2..], &[Dim::Known(WORD)]].concat()
}

/// The shape `[batch, channels, spatial…]` of input 0, which is woven; `None` while its rank is unknown.
pub(crate) fn channels_of_woven(cx: &Infer<'_>) -> Result<Option<Vec<Dim>>, OpError> {
    let Some(x) = cx.shape(0) else { return Ok(None) };
    let refused = || {
        let reason = format!("its rank is {}; allowed are ranks from 4 where channels are woven", x.len());
        cx.input_error(0, reason)
    };
    let [batch, words, space @ .., word] = x else { return Err(refused()) };
    if space.is_empty() {
        return Err(refused());
    }
    cx.equal(0, "its last dimension, the channels of a word", &Dim::Known(WORD), word)?;
    Ok(Some([&[batch.clone(), words.mul(&Dim::Known(WORD))], space].concat()))
}
