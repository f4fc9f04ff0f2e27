//! QEmbedLayerNormalization.

use super::Bytes;
use super::parameter::Linear;
use crate::kernel::{CpuKernel, Kernel, KernelContext, NodeContext};
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::statistics::moments;
use crate::ops::OpError;
use crate::ops::qlinear::transformer::QEmbedLayerNorm;
use crate::tensor::{TensorView, TensorViewMut};

pub(crate) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    Ok(CpuKernel::Tensor(Box::new(EmbedKernel(*node.op::<QEmbedLayerNorm>()))))
}

struct EmbedKernel(QEmbedLayerNorm);

/// A quantized table of rows.
struct Table<'a> {
    data: Bytes<'a>,
    linear: Linear,
    rows: usize,
    width: usize,
}

impl<'a> Table<'a> {
    /// The table at an input, its scale and its zero point; `None` when the node leaves it out.
    fn read(
        inputs: &[Option<TensorView<'a>>],
        [at, scale, zero]: [usize; 3],
    ) -> Result<Option<Self>, OpError> {
        let Some(view) = inputs[at] else { return Ok(None) };
        let (linear, width) = (Linear::of(inputs, scale, zero)?, view.shape().last().copied().unwrap_or(1));
        let rows = view.len().checked_div(width).unwrap_or(0);
        Ok(Some(Table { data: Bytes::new(view), linear, rows, width }))
    }

    fn at(&self, row: usize, i: usize) -> f32 {
        (self.data.at(row * self.width + i) - self.linear.zero) * self.linear.scale
    }

    /// Checks that indices name rows.
    fn check(&self, name: &str, indices: &[i32]) -> Result<(), OpError> {
        match indices.iter().find(|&&i| i < 0 || i as usize >= self.rows) {
            Some(bad) => {
                Err(OpError::Data(format!("{name} has {bad}; allowed are 0 to {}", self.rows as i64 - 1)))
            }
            None => Ok(()),
        }
    }
}

impl Kernel for EmbedKernel {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(ids) = inputs[0] else { return Ok(()) };
        let (steps, ids) = (ids.shape()[1], ids.slice::<i32>());
        let segments = inputs[1].map(|segments| segments.slice::<i32>());
        let (Some(words), Some(positions), Some(gamma), Some(beta)) = (
            Table::read(inputs, [2, 8, 13])?,
            Table::read(inputs, [3, 9, 14])?,
            Table::read(inputs, [5, 11, 16])?,
            Table::read(inputs, [6, 12, 17])?,
        ) else {
            return Ok(());
        };
        words.check("input_ids", ids)?;
        let segments = match (segments, Table::read(inputs, [4, 10, 15])?) {
            (Some(segments), Some(table)) => {
                table.check("segment_ids", segments)?;
                Some((segments, table))
            }
            _ => None,
        };
        let width = words.width;
        if let Some(Some(y)) = outputs.first_mut() {
            split_mut(cx.pool, y.slice::<f32>(), width, GRAIN / 8 / width.max(1) + 1, |rows, part| {
                for (row, y) in rows.zip(part.chunks_exact_mut(width)) {
                    for (i, y) in y.iter_mut().enumerate() {
                        let segment =
                            segments.as_ref().map_or(0.0, |(ids, table)| table.at(ids[row] as usize, i));
                        *y = words.at(ids[row] as usize, i) + positions.at(row % steps, i) + segment;
                    }
                    let (mean, variance) = moments(y);
                    let factor = 1.0 / (variance + self.0.epsilon as f64).sqrt();
                    for (i, y) in y.iter_mut().enumerate() {
                        *y = ((*y as f64 - mean) * factor) as f32 * gamma.at(0, i) + beta.at(0, i);
                    }
                }
            });
        }
        if let Some(Some(counts)) = outputs.get_mut(1) {
            let counts = counts.slice::<i32>();
            match inputs.get(7).copied().flatten() {
                Some(mask) => {
                    let rows = mask.slice::<i32>().chunks(steps.max(1));
                    counts.fill(0);
                    for (count, row) in counts.iter_mut().zip(rows) {
                        *count = row.iter().filter(|&&one| one == 1).count() as i32;
                    }
                }
                None => counts.fill(0),
            }
        }
        Ok(())
    }
}
