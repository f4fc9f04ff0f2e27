//! TfIdfVectorizer.

use std::collections::HashMap;
use std::hash::Hash;

use crate::ops::OpError;
use crate::ops::ngram::{NGrams, TfIdfMode, TfIdfVectorizer};
use crate::tensor::{Tensor, Value, ValueRef};

use crate::kernel::{CpuKernel, Entry, KernelContext, NodeContext, ValueKernel};
use crate::loops::item::{items, shape_of};
use crate::provider::ints::Ints;

pub(super) const KERNELS: &[Entry] = &[Entry::new("TfIdfVectorizer", build)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<TfIdfVectorizer>().clone();
    let columns = match &op.pool {
        NGrams::Ints(grams) => Columns::Ints(columns(grams, &op)),
        NGrams::Strings(grams) => Columns::Strings(columns(grams, &op)),
    };
    Ok(CpuKernel::Value(Box::new(Vectorize { op, columns })))
}

/// The column of each n-gram.
enum Columns {
    Ints(HashMap<Vec<i64>, usize>),
    Strings(HashMap<Vec<String>, usize>),
}

fn columns<T: Clone + Eq + Hash>(grams: &[Vec<T>], op: &TfIdfVectorizer) -> HashMap<Vec<T>, usize> {
    let wanted = op.min_length..=op.max_length;
    grams.iter().cloned().zip(op.columns.iter().copied()).filter(|(g, _)| wanted.contains(&g.len())).collect()
}

struct Vectorize {
    op: TfIdfVectorizer,
    columns: Columns,
}

impl ValueKernel for Vectorize {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let shape = shape_of(inputs, 0)?;
        let (rows, length) = match shape {
            [] => (1, 1),
            [n] => (1, *n),
            [b, n] => (*b, *n),
            _ => {
                return Err(OpError::Data(format!(
                    "the input has shape {shape:?}; allowed are [C] and [B, C]"
                )));
            }
        };
        let width = self.op.width();
        let mut result = vec![0f32; rows * width];
        match &self.columns {
            Columns::Ints(columns) => {
                let ints = inputs[0].and_then(ValueRef::view);
                let ints = Ints::required(ints, "the input")?.to_vec();
                self.count(columns, &ints, length, width, &mut result);
            }
            Columns::Strings(columns) => self.count(columns, items(inputs, 0)?, length, width, &mut result),
        }
        let weight = |column: usize| self.op.weights.get(column).copied().unwrap_or(1.0);
        for (i, y) in result.iter_mut().enumerate() {
            let column = i % width;
            *y = match self.op.mode {
                TfIdfMode::Count => *y,
                TfIdfMode::Weight if *y > 0.0 => weight(column),
                TfIdfMode::Weight => 0.0,
                TfIdfMode::Product => *y * weight(column),
            };
        }
        let result_shape: &[usize] = if shape.len() == 2 { &[rows, width] } else { &[width] };
        Ok(vec![Value::Tensor(Tensor::from_slice(result_shape, &result)?)])
    }
}

impl Vectorize {
    /// Counts the n-grams of each row: of each length, with each number of items skipped between
    /// neighbours (single items have no neighbours and are counted once).
    fn count<T: Clone + Eq + Hash>(
        &self,
        columns: &HashMap<Vec<T>, usize>,
        data: &[T],
        length: usize,
        width: usize,
        result: &mut [f32],
    ) {
        if length == 0 || width == 0 {
            return;
        }
        for (row, counts) in data.chunks_exact(length).zip(result.chunks_exact_mut(width)) {
            for n in self.op.min_length..=self.op.max_length {
                let most = if n == 1 { 0 } else { self.op.max_skip };
                for step in 1..=most + 1 {
                    let Some(span) = (n - 1).checked_mul(step).filter(|&span| span < length) else { break };
                    for start in 0..length - span {
                        let gram: Vec<T> = row[start..=start + span].iter().step_by(step).cloned().collect();
                        if let Some(&column) = columns.get(&gram) {
                            counts[column] += 1.0;
                        }
                    }
                }
            }
        }
    }
}
