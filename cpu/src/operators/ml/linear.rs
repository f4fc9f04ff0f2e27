//! LinearClassifier and LinearRegressor.

use crate::ops::OpError;
use crate::ops::ml::PostTransform;
use crate::ops::ml::linear::Linear;
use crate::tensor::{Value, ValueRef};

use super::{DOMAIN, best, floats, label_tensor, matrix, numbers, transform, two_scores};
use crate::kernel::{CpuKernel, Entry, KernelContext, NodeContext, ValueKernel};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("LinearClassifier", build).domain(DOMAIN),
    Entry::new("LinearRegressor", build).domain(DOMAIN),
];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    Ok(CpuKernel::Value(Box::new(LinearKernel(node.op::<Linear>().clone()))))
}

struct LinearKernel(Linear);

impl ValueKernel for LinearKernel {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let op = &self.0;
        let (rows, columns) = matrix(inputs)?;
        // Coefficients that are left over stay unused, as in ONNX Runtime.
        if columns * op.targets > op.coefficients.len() {
            let n = op.coefficients.len();
            return Err(OpError::Data(format!(
                "the input has {columns} columns, which do not fit {n} coefficients"
            )));
        }
        let x = numbers(inputs, 0)?;
        let width = op.width();
        let mut scores = Vec::with_capacity(rows * width);
        let mut classes = Vec::with_capacity(rows);
        for r in 0..rows {
            let row = &x[r * columns..(r + 1) * columns];
            let mut targets: Vec<f64> = (0..op.targets)
                .map(|t| {
                    let weights = &op.coefficients[t * columns..(t + 1) * columns];
                    let intercept = op.intercepts.get(t).copied().unwrap_or(0.0) as f64;
                    row.iter().zip(weights).map(|(x, &w)| x * w as f64).sum::<f64>() + intercept
                })
                .collect();
            if op.labels.is_some() && width != op.targets {
                // One score for two classes: its sign decides.
                let score = targets[0];
                classes.push(usize::from(score > 0.0));
                let probability = matches!(op.post, PostTransform::None | PostTransform::Probit);
                scores.extend(two_scores(score, op.post, probability));
                continue;
            }
            classes.push(best(&targets));
            transform(&mut targets, op.post);
            scores.extend(targets);
        }
        let scores = floats(&[rows, width], &scores)?;
        match &op.labels {
            Some(labels) => Ok(vec![label_tensor(labels, &classes)?, scores]),
            None => Ok(vec![scores]),
        }
    }
}
