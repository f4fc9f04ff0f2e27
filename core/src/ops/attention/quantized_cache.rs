//! Caches of keys and values in 8 or 4 bits, as attributes and scales of com.microsoft describe them.
//!
//! A number is what is kept times a scale: one for the whole cache, or one for each column of each head of keys. New rows
//! are divided by it, rounded to the nearest (to even between two) and cut to what the type holds. Of 4 bits a byte has two
//! columns, the first one in its low half, and 8 stands for zero.

use crate::graph::Dim;
use crate::ops::{AttributeReader, Infer, OpError};
use crate::tensor::ElementType;

/// Inputs with the scales of keys and of values.
const SCALES: [usize; 2] = [12, 13];
/// Outputs with the caches of keys and of values.
const PRESENT: [usize; 2] = [1, 2];

/// How both caches of a node are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantizedCache {
    /// 8 or 4.
    pub bits: usize,
    /// Whether keys, and values, have a scale for each column of each head.
    pub per_channel: [bool; 2],
}

impl QuantizedCache {
    /// `None` where the caches are numbers of the type of the queries.
    pub(super) fn read(a: &AttributeReader<'_>) -> Result<Option<Self>, OpError> {
        let choices = [("NONE", None), ("PER_TENSOR", Some(false)), ("PER_CHANNEL", Some(true))];
        let keys = a.choice("k_quant_type", "NONE", &choices)?;
        let values = a.choice("v_quant_type", "NONE", &choices)?;
        let bits = a.int("kv_cache_bit_width", 8)?;
        match (keys, values) {
            (None, None) => Ok(None),
            (Some(keys), Some(values)) if matches!(bits, 4 | 8) => {
                Ok(Some(QuantizedCache { bits: bits as usize, per_channel: [keys, values] }))
            }
            (Some(_), Some(_)) => Err(OpError::attribute(
                "kv_cache_bit_width",
                format!("{bits} is not allowed; allowed are 8 and 4"),
            )),
            _ => {
                let reason = "k_quant_type and v_quant_type are NONE together, or neither is: the caches have one type";
                Err(OpError::attribute("v_quant_type", reason))
            }
        }
    }

    /// Bytes of a row of a head.
    pub fn row_bytes(&self, size: usize) -> usize {
        size * self.bits / 8
    }

    /// The type of the caches, where a node has some; int8, or uint8 for numbers of 4 bits, where it has none.
    pub fn element_type(&self, given: Option<ElementType>) -> ElementType {
        given.unwrap_or(if self.bits == 8 { ElementType::I8 } else { ElementType::U8 })
    }

    /// Checks the number of scales of keys (0) or of values (1).
    pub fn check_scales(&self, of: usize, given: usize, kv_heads: usize, size: usize) -> Result<(), OpError> {
        let wanted = if self.per_channel[of] { kv_heads * size } else { 1 };
        if given == wanted {
            return Ok(());
        }
        let name = ["k_scale", "v_scale"][of];
        Err(OpError::Data(format!("{name} has {given} elements; allowed are {wanted}")))
    }

    /// Checks the scales and the types of caches, and tells those of the caches that come back. Gives the last
    /// dimension of the caches.
    fn check(&self, cx: &mut Infer<'_>, kv_heads: usize, size: &Dim) -> Result<Dim, OpError> {
        if self.bits == 4 && size.known().is_some_and(|size| size % 2 != 0) {
            return Err(cx.input_error(3, format!("4 bits need heads of an even size; theirs is {size}")));
        }
        for (of, input) in SCALES.into_iter().enumerate() {
            let Some(shape) = cx.shape(input) else {
                if cx.has(input) {
                    continue;
                }
                return Err(cx.input_error(input, "a quantized cache needs it"));
            };
            let given = shape.iter().try_fold(1, |n: i64, d| n.checked_mul(d.known()?));
            let wanted = if self.per_channel[of] { size.mul(&Dim::from(kv_heads)) } else { Dim::Known(1) };
            if let Some(given) = given {
                cx.equal(input, "its number of elements", &wanted, &Dim::Known(given))?;
            }
        }
        let usual = self.element_type(None);
        let ty = self.element_type(cx.element_type(3));
        if ty != usual && !(self.bits == 8 && ty == ElementType::F8E4M3FN) {
            let allowed = if self.bits == 8 { "int8 and float8e4m3fn" } else { "uint8" };
            return Err(cx.input_error(
                3,
                format!("its type is {ty}; with {} bits a number allowed is {allowed}", self.bits),
            ));
        }
        PRESENT.into_iter().for_each(|output| cx.set_element_type(output, ty));
        Ok(if self.bits == 8 { size.clone() } else { size.floor_div(&Dim::Known(2)) })
    }
}

/// Checks the types of the caches, quantized or not, and gives their last dimension.
pub(super) fn check_caches(
    cx: &mut Infer<'_>,
    cache: Option<QuantizedCache>,
    kv_heads: usize,
    size: &Dim,
) -> Result<Dim, OpError> {
    if let Some(cache) = cache {
        return cache.check(cx, kv_heads, size);
    }
    let Some(ty) = cx.element_type(0) else { return Ok(size.clone()) };
    if let Some(given) = cx.element_type(3).filter(|given| *given != ty) {
        let reason =
            format!("its type is {given}; with a k_quant_type of NONE allowed is that of query, {ty}");
        return Err(cx.input_error(3, reason));
    }
    PRESENT.into_iter().for_each(|output| cx.set_element_type(output, ty));
    Ok(size.clone())
}
