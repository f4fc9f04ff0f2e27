//! Look-up in a table of numbers of a few bits (domain com.microsoft): GatherBlockQuantized.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType;

use crate::ops::{AttributeReader, Declaration, Infer, OpError, Operator, Types, normalize_axis};

/// `Gather` of `(q − zero)·scale`. Each `block` numbers along an axis of the table share a scale and a
/// zero point. A table of bytes has numbers of 4 or 8 bits, the first of a byte in its lowest bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GatherBlockQuantized {
    pub bits: usize,
    pub block: usize,
    gather_axis: i64,
    quantize_axis: i64,
}

impl GatherBlockQuantized {
    fn parse(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
        let bits = a.int("bits", 4)?;
        if !matches!(bits, 4 | 8) {
            return Err(OpError::attribute("bits", format!("{bits} is not allowed; allowed are 4 and 8")));
        }
        let block = a.int("block_size", 128)?;
        if block < 16 || block.count_ones() != 1 {
            let reason = format!("{block} is not allowed; allowed are powers of two from 16");
            return Err(OpError::attribute("block_size", reason));
        }
        Ok(Arc::new(GatherBlockQuantized {
            bits: bits as usize,
            block: block as usize,
            gather_axis: a.int("gather_axis", 0)?,
            quantize_axis: a.int("quantize_axis", 1)?,
        }))
    }

    /// The axes that are gathered along and cut into blocks.
    pub fn axes(&self, rank: usize) -> Result<(usize, usize), OpError> {
        let gather = normalize_axis("gather_axis", self.gather_axis, rank)?;
        Ok((gather, normalize_axis("quantize_axis", self.quantize_axis, rank)?))
    }

    /// Numbers in an element of the table.
    pub fn each(&self, table: ElementType) -> usize {
        if table == ElementType::U8 { 8 / self.bits } else { 1 }
    }
}

impl Operator for GatherBlockQuantized {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let (Some(ty), Some(data), Some(indices)) = (cx.element_type(0), cx.shape(0), cx.shape(1)) else {
            return Ok(());
        };
        let (gather, quantize) = self.axes(data.len())?;
        let packed = ty == ElementType::U8;
        if packed && (quantize + 1 != data.len() || gather != 0) {
            let reason = format!(
                "{} is not allowed for a table of bytes; allowed are the last axis, with a gather_axis of 0",
                self.quantize_axis
            );
            return Err(OpError::attribute("quantize_axis", reason));
        }
        let mut table = data.to_vec();
        if let Some(last) = table.last_mut() {
            *last = last.mul(&Dim::from(self.each(ty)));
        }
        let mut blocks = table.clone();
        blocks[quantize] = table[quantize].ceil_div(&Dim::from(self.block));
        let mut zeros = blocks.clone();
        if packed {
            zeros[quantize] = zeros[quantize].ceil_div(&Dim::from(self.each(ty)));
        }
        for (input, want) in [(2, blocks), (3, zeros)] {
            let Some(shape) = cx.shape_of_rank(input, table.len())? else { continue };
            for (want, given) in want.iter().zip(shape) {
                cx.equal(input, "a dimension", want, given)?;
            }
        }
        cx.set_shape(0, [&table[..gather], indices, &table[gather + 1..]].concat());
        Ok(())
    }
}

const TABLES: Types = Types::of(&[ElementType::U8, ElementType::U4, ElementType::I4]);
const FLOATS: Types = Types::of(&[ElementType::F32, ElementType::F16, ElementType::BF16]);

pub(in crate::ops) const DECLARATIONS: &[Declaration] = &[Declaration::new(
    "GatherBlockQuantized",
    &[1],
    "data:T1, indices:Tind, scales:T2, zero_points?:T1 -> output:T2",
    &[("T1", TABLES), ("T2", FLOATS), ("Tind", Types::INDEX)],
    GatherBlockQuantized::parse,
)
.domain("com.microsoft")];
