//! SVMClassifier and SVMRegressor.

use crate::ops::OpError;
use crate::ops::ml::Labels;
use crate::ops::ml::svm::{Kernel, Svm, Task};
use crate::tensor::{Value, ValueRef};

use super::{DOMAIN, best, floats, label_tensor, logistic, matrix, numbers, transform, two_scores};
use crate::kernel::{CpuKernel, Entry, KernelContext, NodeContext, ValueKernel};

pub(super) const KERNELS: &[Entry] =
    &[Entry::new("SVMClassifier", build).domain(DOMAIN), Entry::new("SVMRegressor", build).domain(DOMAIN)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    Ok(CpuKernel::Value(Box::new(Machine(node.op::<Svm>().clone()))))
}

struct Machine(Svm);

impl ValueKernel for Machine {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let (rows, columns) = matrix(inputs)?;
        if columns != self.0.features() {
            let want = self.0.features();
            return Err(OpError::Data(format!("the input has {columns} columns; {want} are needed")));
        }
        let x = numbers(inputs, 0)?;
        let mut scores = Vec::with_capacity(rows * self.0.width());
        match &self.0.task {
            Task::Regress { one_class } => {
                for r in 0..rows {
                    let mut score = [self.regress(&x[r * columns..(r + 1) * columns])];
                    if *one_class {
                        score[0] = if score[0] > 0.0 { 1.0 } else { -1.0 };
                    }
                    transform(&mut score, self.0.post);
                    scores.extend(score);
                }
                Ok(vec![floats(&[rows, 1], &scores)?])
            }
            Task::Classify { labels, vectors_per_class, probability } => {
                let mut classes = Vec::with_capacity(rows);
                for r in 0..rows {
                    let row = &x[r * columns..(r + 1) * columns];
                    let (class, row_scores) =
                        self.classify(row, labels, vectors_per_class, probability.as_ref());
                    classes.push(class);
                    scores.extend(row_scores);
                }
                Ok(vec![label_tensor(labels, &classes)?, floats(&[rows, self.0.width()], &scores)?])
            }
        }
    }
}

impl Machine {
    /// The kernel function of a row and a vector.
    fn kernel(&self, row: &[f64], vector: &[f32]) -> f64 {
        let pairs = || row.iter().zip(vector).map(|(&a, &b)| (a, b as f64));
        let dot = || pairs().map(|(a, b)| a * b).sum::<f64>();
        match self.0.kernel {
            Kernel::Linear => dot(),
            Kernel::Poly { gamma, coef0, degree } => {
                (gamma as f64 * dot() + coef0 as f64).powf(degree as f64)
            }
            Kernel::Rbf { gamma } => {
                (-gamma as f64 * pairs().map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp()
            }
            Kernel::Sigmoid { gamma, coef0 } => (gamma as f64 * dot() + coef0 as f64).tanh(),
        }
    }

    fn vector(&self, i: usize) -> &[f32] {
        let n = self.0.features();
        &self.0.support[i * n..(i + 1) * n]
    }

    fn regress(&self, row: &[f64]) -> f64 {
        let rho = self.0.rho[0] as f64;
        if self.0.vectors == 0 {
            return row.iter().zip(&self.0.coefficients).map(|(x, &w)| x * w as f64).sum::<f64>() + rho;
        }
        let terms = self.0.coefficients.iter().enumerate();
        terms.map(|(i, &c)| c as f64 * self.kernel(row, self.vector(i))).sum::<f64>() + rho
    }

    /// The class of a row and its scores.
    fn classify(
        &self,
        row: &[f64],
        labels: &Labels,
        per_class: &[usize],
        probability: Option<&(Vec<f32>, Vec<f32>)>,
    ) -> (usize, Vec<f64>) {
        let n = labels.len();
        if self.0.vectors == 0 {
            let features = self.0.features();
            let mut scores: Vec<f64> = (0..n)
                .map(|c| {
                    let weights = &self.0.coefficients[c * features..(c + 1) * features];
                    row.iter().zip(weights).map(|(x, &w)| x * w as f64).sum::<f64>() + self.0.rho[0] as f64
                })
                .collect();
            let class = best(&scores);
            transform(&mut scores, self.0.post);
            return (class, scores);
        }
        let (votes, mut scores) = self.one_against_one(row, per_class);
        // The votes decide, also where probabilities are computed.
        let class = best(&votes);
        if let Some((slopes, offsets)) = probability {
            let pairs = scores.iter().zip(slopes.iter().zip(offsets));
            let of_pair = |(s, (&a, &b)): (&f64, (&f32, &f32))| {
                (1.0 - logistic(s * a as f64 + b as f64)).clamp(1e-7, 1.0 - 1e-7)
            };
            let pairwise: Vec<f64> = pairs.map(of_pair).collect();
            scores = couple(n, &pairwise);
            transform(&mut scores, self.0.post);
        } else if n == 2 {
            scores = two_scores(scores[0], self.0.post, false).to_vec();
        } else {
            transform(&mut scores, self.0.post);
        }
        (class, scores)
    }

    /// The votes for each class and the decision value of each pair of classes.
    fn one_against_one(&self, row: &[f64], per_class: &[usize]) -> (Vec<f64>, Vec<f64>) {
        let n = per_class.len();
        let total = self.0.vectors;
        let kernels: Vec<f64> = (0..total).map(|i| self.kernel(row, self.vector(i))).collect();
        let starts: Vec<usize> = (0..n).map(|c| per_class[..c].iter().sum()).collect();
        // The coefficients of class `of`'s vectors against another class lie in line `line`.
        let sum = |line: usize, of: usize| -> f64 {
            let range = starts[of]..starts[of] + per_class[of];
            let weights = &self.0.coefficients[line * total..][range.clone()];
            weights.iter().zip(&kernels[range]).map(|(&w, k)| w as f64 * k).sum()
        };
        let mut votes = vec![0.0; n];
        let mut scores = Vec::with_capacity(n * (n - 1) / 2);
        for i in 0..n {
            for j in i + 1..n {
                let score = sum(j - 1, i) + sum(i, j) + self.0.rho[scores.len()] as f64;
                votes[if score > 0.0 { i } else { j }] += 1.0;
                scores.push(score);
            }
        }
        (votes, scores)
    }
}

/// Probabilities of classes from those of pairs of them, `pairwise[i<j]` that of `i` against `j`, by
/// the second method of Wu, Lin and Weng (Probability estimates for multi-class classification by
/// pairwise coupling, JMLR 5, 2004).
fn couple(n: usize, pairwise: &[f64]) -> Vec<f64> {
    let mut r = vec![0.0; n * n];
    let mut next = pairwise.iter();
    for i in 0..n {
        for j in i + 1..n {
            let p = next.next().copied().unwrap_or(0.5);
            r[i * n + j] = p;
            r[j * n + i] = 1.0 - p;
        }
    }
    let mut q = vec![0.0; n * n];
    for t in 0..n {
        for j in (0..n).filter(|&j| j != t) {
            q[t * n + t] += r[j * n + t] * r[j * n + t];
            q[t * n + j] = -r[j * n + t] * r[t * n + j];
        }
    }
    let mut p = vec![1.0 / n as f64; n];
    for _ in 0..n.max(100) {
        let mut qp: Vec<f64> = (0..n).map(|t| (0..n).map(|j| q[t * n + j] * p[j]).sum()).collect();
        let mut pqp: f64 = p.iter().zip(&qp).map(|(p, q)| p * q).sum();
        if qp.iter().all(|x| (x - pqp).abs() < 0.005 / n as f64) {
            break;
        }
        for t in 0..n {
            let own = q[t * n + t];
            let step = (pqp - qp[t]) / own;
            p[t] += step;
            pqp = (pqp + step * (step * own + 2.0 * qp[t])) / ((1.0 + step) * (1.0 + step));
            for j in 0..n {
                qp[j] = (qp[j] + step * q[t * n + j]) / (1.0 + step);
                p[j] /= 1.0 + step;
            }
        }
    }
    p
}
