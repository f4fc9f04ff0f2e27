//! TreeEnsemble, TreeEnsembleClassifier and TreeEnsembleRegressor.

use num_traits::AsPrimitive;

use crate::ops::OpError;
use crate::ops::ml::PostTransform;
use crate::ops::ml::tree::{Aggregate, Child, Leaf, Test, Trees};
use crate::tensor::{Tensor, Value, ValueRef, bf16, f16};

use super::{DOMAIN, best, floats, label_tensor, matrix, numbers, transform, two_scores};
use crate::kernel::{CpuKernel, Entry, KernelContext, NodeContext, ValueKernel};
use crate::loops::item::type_of;
use crate::loops::number::dispatch;
use crate::loops::parallel::split_mut;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("TreeEnsemble", build).domain(DOMAIN),
    Entry::new("TreeEnsembleClassifier", build).domain(DOMAIN),
    Entry::new("TreeEnsembleRegressor", build).domain(DOMAIN),
];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let trees = node.op::<Trees>().clone();
    let own_type = node.name == "TreeEnsemble";
    Ok(CpuKernel::Value(Box::new(Forest { trees, own_type })))
}

struct Forest {
    trees: Trees,
    /// Whether the output has the input's type, and not float.
    own_type: bool,
}

impl ValueKernel for Forest {
    fn run(&self, cx: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let trees = &self.trees;
        let (rows, columns) = matrix(inputs)?;
        if let Some(node) = trees.nodes.iter().find(|n| n.feature >= columns) {
            let f = node.feature;
            return Err(OpError::Data(format!("a tree tests feature {f}; the input has {columns} columns")));
        }
        let x = numbers(inputs, 0)?;
        let width = trees.targets;
        let mut targets = vec![0.0; rows * width];
        // A row costs some hundred nanoseconds a tree.
        let grain = (200 / trees.roots.len().max(1)).max(1);
        let cyclic = std::sync::atomic::AtomicBool::new(false);
        split_mut(cx.pool, &mut targets, width, grain, |range, part| {
            for (r, y) in range.zip(part.chunks_exact_mut(width)) {
                if self.row(&x[r * columns..(r + 1) * columns], y).is_none() {
                    cyclic.store(true, std::sync::atomic::Ordering::Relaxed);
                }
            }
        });
        if cyclic.into_inner() {
            return Err(OpError::Data("a tree's nodes form a cycle".to_owned()));
        }
        match &trees.labels {
            Some(_) => self.classes(rows, &targets),
            None => {
                if width > 0 {
                    targets.chunks_exact_mut(width).for_each(|row| transform(row, trees.post));
                }
                let shape = [rows, width];
                if !self.own_type {
                    return Ok(vec![floats(&shape, &targets)?]);
                }
                dispatch!(
                    Some(type_of(inputs, 0)?),
                    T in [f32, f64, f16, bf16] => {
                        let result: Vec<T> = targets.iter().map(|x| x.as_()).collect();
                        Ok(vec![Value::Tensor(Tensor::from_slice(&shape, &result)?)])
                    },
                    else Err(OpError::Unsupported("the input must be of floats".to_owned()))
                )
            }
        }
    }
}

impl Forest {
    /// The aggregated targets of one row; `None` when a tree has a cycle.
    fn row(&self, x: &[f64], y: &mut [f64]) -> Option<()> {
        let trees = &self.trees;
        let mut seen = vec![false; y.len()];
        for &root in &trees.roots {
            for &(target, weight) in self.leaf(root, x)? {
                let first = !std::mem::replace(&mut seen[target], true);
                y[target] = match trees.aggregate {
                    _ if first => weight,
                    Aggregate::Sum | Aggregate::Average => y[target] + weight,
                    Aggregate::Min => y[target].min(weight),
                    Aggregate::Max => y[target].max(weight),
                };
            }
        }
        for (i, y) in y.iter_mut().enumerate() {
            if trees.aggregate == Aggregate::Average {
                *y /= trees.roots.len() as f64;
            }
            *y += match trees.base.len() {
                0 => 0.0,
                1 => trees.base[0],
                _ => trees.base[i],
            };
        }
        Some(())
    }

    fn leaf(&self, root: Child, x: &[f64]) -> Option<&Leaf> {
        let mut at = root;
        // A path longer than the number of nodes visits one twice.
        for _ in 0..=self.trees.nodes.len() {
            let node = match at {
                Child::Leaf(leaf) => return self.trees.leaves.get(leaf),
                Child::Node(node) => &self.trees.nodes[node],
            };
            let v = x[node.feature];
            let passes = match &node.test {
                _ if v.is_nan() => node.missing_passes,
                Test::LessEqual(t) => v <= *t,
                Test::Less(t) => v < *t,
                Test::GreaterEqual(t) => v >= *t,
                Test::Greater(t) => v > *t,
                Test::Equal(t) => v == *t,
                Test::NotEqual(t) => v != *t,
                Test::Member(set) => set.contains(&v),
            };
            at = if passes { node.yes } else { node.no };
        }
        None
    }

    /// Labels and scores of a classifier.
    fn classes(&self, rows: usize, targets: &[f64]) -> Result<Vec<Value>, OpError> {
        let trees = &self.trees;
        let Some(labels) = &trees.labels else { return Ok(Vec::new()) };
        let mut classes = Vec::with_capacity(rows);
        let mut scores = Vec::with_capacity(rows * trees.width());
        let one_sided = trees.one_sided();
        let weights = || trees.leaves.iter().flatten().map(|(_, w)| *w);
        // Weights that are all positive make probabilities, others make distances.
        let probability = weights().all(|w| w >= 0.0);
        let target = trees.leaves.iter().flatten().map(|(t, _)| *t).next().unwrap_or(0);
        for row in targets.chunks_exact(trees.targets.max(1)) {
            if one_sided {
                let score = row[target];
                let second = if probability { score > 0.5 } else { score > 0.0 };
                classes.push(if labels.len() == 2 { usize::from(second) } else { 0 });
                scores.extend(two_scores(
                    score,
                    trees.post,
                    probability && trees.post != PostTransform::Probit,
                ));
            } else {
                let mut row = row.to_vec();
                classes.push(best(&row));
                transform(&mut row, trees.post);
                scores.extend(row);
            }
        }
        Ok(vec![label_tensor(labels, &classes)?, floats(&[rows, trees.width()], &scores)?])
    }
}
