//! Attributes that several operators of attention have.

use crate::ops::{AttributeReader, OpError};

/// A number of heads.
pub(super) fn read_heads(a: &AttributeReader<'_>, name: &str) -> Result<usize, OpError> {
    let n = a.required_int(name)?;
    usize::try_from(n)
        .ok()
        .filter(|&n| n >= 1 && n <= i32::MAX as usize)
        .ok_or_else(|| OpError::attribute(name, format!("{n} is not allowed; allowed is 1 to 2147483647")))
}

/// The number of heads of queries, and that of keys and values, which they share.
pub(super) fn read_shared_heads(a: &AttributeReader<'_>) -> Result<[usize; 2], OpError> {
    let (heads, kv_heads) = (read_heads(a, "num_heads")?, read_heads(a, "kv_num_heads")?);
    if heads % kv_heads != 0 {
        let reason = format!("{kv_heads} is not allowed; allowed are divisors of the {heads} query heads");
        return Err(OpError::attribute("kv_num_heads", reason));
    }
    Ok([heads, kv_heads])
}

/// The scale of the scores; 0 stands for the default.
pub(super) fn read_scale(a: &AttributeReader<'_>) -> Result<Option<f32>, OpError> {
    Ok(a.optional_float("scale")?.filter(|&scale| scale != 0.0))
}

/// Whether queries and keys are rotated, and then whether neighbours are pairs.
pub(super) fn read_rotary(a: &AttributeReader<'_>) -> Result<Option<bool>, OpError> {
    let interleaved = a.flag("rotary_interleaved", false)?;
    Ok(a.flag("do_rotary", false)?.then_some(interleaved))
}
