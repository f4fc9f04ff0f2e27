//! Heads of queries, keys and values within the columns of wider matrices, as one product gives them.

use crate::graph::Dim;

use crate::ops::{AttributeReader, Infer, OpError};

/// Where `rukh.Attention` finds the heads in its operands, which are matrices `[batch, rows, columns]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packed {
    /// Elements of a head of queries and keys, and of values.
    pub sizes: [usize; 2],
    /// The first column of queries, keys and values.
    pub offsets: [usize; 3],
    /// Columns from a head to the next one, for each of them.
    pub head_strides: [usize; 3],
    /// Whether the operands and the result are `[rows, batch, columns]`.
    pub rows_first: bool,
}

impl Packed {
    /// `None` where the node has no such attributes.
    pub(super) fn read(a: &AttributeReader<'_>) -> Result<Option<Self>, OpError> {
        let rows_first = a.flag("rows_first", false)?;
        let (sizes, offsets, head_strides) =
            (a.ints("head_sizes")?, a.ints("offsets")?, a.ints("head_strides")?);
        let (Some(sizes), Some(offsets), Some(head_strides)) = (sizes, offsets, head_strides) else {
            return Ok(None);
        };
        Ok(Some(Packed {
            sizes: numbers("head_sizes", sizes, 1)?,
            offsets: numbers("offsets", offsets, 0)?,
            head_strides: numbers("head_strides", head_strides, 1)?,
            rows_first,
        }))
    }

    /// Elements of a head of operand 0, 1 or 2.
    pub fn size(&self, operand: usize) -> usize {
        self.sizes[usize::from(operand == 2)]
    }

    /// Batch and rows of an operand or of the result.
    pub fn batch_and_rows<D: Clone>(&self, first: &D, second: &D) -> [D; 2] {
        match self.rows_first {
            true => [second.clone(), first.clone()],
            false => [first.clone(), second.clone()],
        }
    }

    /// Elements from one batch to the next, from head to head, and from row to row.
    pub fn strides(&self, operand: usize, shape: &[usize; 3]) -> [usize; 3] {
        self.strides_of(shape, self.head_strides[operand])
    }

    /// The same for the result.
    pub fn result_strides(&self, shape: &[usize; 3]) -> [usize; 3] {
        self.strides_of(shape, self.sizes[1])
    }

    fn strides_of(&self, &[_, second, columns]: &[usize; 3], head: usize) -> [usize; 3] {
        match self.rows_first {
            true => [columns, head, second * columns],
            false => [second * columns, head, columns],
        }
    }

    /// Batch, heads, rows and head size of an operand of this shape.
    pub(super) fn split(
        &self,
        cx: &Infer<'_>,
        operand: usize,
        heads: usize,
    ) -> Result<Option<[Dim; 4]>, OpError> {
        let Some(shape) = cx.shape_of_rank(operand, 3)? else { return Ok(None) };
        let size = self.size(operand);
        let end = self.offsets[operand] + heads.saturating_sub(1) * self.head_strides[operand] + size;
        if let Some(columns) = shape[2].known()
            && (columns as u64) < end as u64
        {
            let reason = format!("it has {columns} columns; the heads end at {end}");
            return Err(cx.input_error(operand, reason));
        }
        let [batch, rows] = self.batch_and_rows(&shape[0], &shape[1]);
        Ok(Some([batch, Dim::from(heads), rows, Dim::from(size)]))
    }
}

fn numbers<const N: usize>(name: &str, given: &[i64], least: i64) -> Result<[usize; N], OpError> {
    let allowed = |&n: &i64| (least..=i64::from(i32::MAX)).contains(&n);
    let numbers: Option<Vec<usize>> = given.iter().map(|n| allowed(n).then_some(*n as usize)).collect();
    numbers.and_then(|numbers| numbers.try_into().ok()).ok_or_else(|| {
        OpError::attribute(name, format!("{given:?} is not allowed; allowed are {N} numbers from {least}"))
    })
}
