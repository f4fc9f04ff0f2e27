//! Rotary position embedding of heads within the columns of a wider matrix.

use std::sync::Arc;

use crate::graph::Dim;
use crate::ops::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// Rotates heads of `[batch, rows, columns]`. Inputs: the matrix, and cosines and sines for each row, or for each row
/// of each sample; their rows have an element for each of a head's, of which the first half counts. The result has
/// the heads side by side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RotaryHeads {
    pub heads: usize,
    pub size: usize,
    /// The first column.
    pub offset: usize,
}

impl RotaryHeads {
    /// Whether caches of these dimensions have a row for each sample, and not for all together.
    pub fn has_own_rows(&self, caches: [&[usize]; 2], [batch, rows]: [usize; 2]) -> Result<bool, OpError> {
        let count = caches[0].iter().product::<usize>();
        let plain = caches[0] == caches[1] && caches[0].last() == Some(&self.size);
        match count {
            n if plain && n == rows * self.size => Ok(false),
            n if plain && n == batch * rows * self.size => Ok(true),
            _ => Err(OpError::Data(format!(
                "the caches have shapes {:?} and {:?}; allowed are {} columns and {rows} rows, for each of {batch} \
                 samples or for all",
                caches[0], caches[1], self.size
            ))),
        }
    }
}

impl Operator for RotaryHeads {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape_of_rank(0, 3)? else { return Ok(()) };
        let end = self.offset + self.heads * self.size;
        if shape[2].known().is_some_and(|columns| (columns as u64) < end as u64) {
            return Err(cx.input_error(0, format!("it has {} columns; the heads end at {end}", shape[2])));
        }
        let shape = vec![shape[0].clone(), shape[1].clone(), Dim::from(self.heads * self.size)];
        cx.set_shape(0, shape);
        Ok(())
    }
}

fn parse(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let number = |name: &str, least: i64| {
        let n = a.int(name, 0)?;
        let allowed = (least..=i64::from(i32::MAX)).contains(&n);
        allowed.then_some(n as usize).ok_or_else(|| {
            OpError::attribute(name, format!("{n} is not allowed; allowed are numbers from {least}"))
        })
    };
    let op = RotaryHeads {
        heads: number("num_heads", 1)?,
        size: number("head_size", 1)?,
        offset: number("offset", 0)?,
    };
    match op.size % 2 {
        0 => Ok(Arc::new(op)),
        _ => Err(OpError::attribute("head_size", "an odd number of elements has no halves")),
    }
}

/// What the fusions of this library make.
pub const DECLARATIONS: &[Declaration] =
    &[Declaration::new("RotaryEmbedding", &[1], "X:T, cos:T, sin:T -> Y:T", &[("T", Types::FLOAT)], parse)
        .domain("rukh")];
