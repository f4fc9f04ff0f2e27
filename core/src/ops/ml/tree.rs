//! Ensembles of decision trees.

use super::super::{Infer, OpError, Operator};
use super::{Labels, PostTransform, infer_classifier, rows};

/// Trees as one arena of nodes and one of leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Trees {
    pub nodes: Vec<TreeNode>,
    pub leaves: Vec<Leaf>,
    pub roots: Vec<Child>,
    pub targets: usize,
    pub aggregate: Aggregate,
    /// Added to the aggregated targets; empty: nothing.
    pub base: Vec<f64>,
    pub post: PostTransform,
    /// Of a classifier.
    pub labels: Option<Labels>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TreeNode {
    pub feature: usize,
    pub test: Test,
    /// Whether NaN passes the test.
    pub missing_passes: bool,
    pub yes: Child,
    pub no: Child,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    LessEqual(f64),
    Less(f64),
    GreaterEqual(f64),
    Greater(f64),
    Equal(f64),
    NotEqual(f64),
    Member(Vec<f64>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    Node(usize),
    Leaf(usize),
}

/// Target and weight of each contribution.
pub type Leaf = Vec<(usize, f64)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    Average,
    Sum,
    Min,
    Max,
}

impl Trees {
    /// Whether a classifier of two classes has weights for one of them only.
    pub fn one_sided(&self) -> bool {
        let mut targets = self.leaves.iter().flatten().map(|(t, _)| t);
        let first = targets.next();
        self.labels.as_ref().is_some_and(|l| l.len() <= 2) && targets.all(|t| Some(t) == first)
    }

    /// The columns of the scores.
    pub fn width(&self) -> usize {
        self.labels.as_ref().map_or(self.targets, |labels| labels.len().max(2))
    }
}

impl Operator for Trees {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(columns) = cx.shape(0).and_then(|s| s.last()).and_then(|d| d.known())
            && let Some(node) = self.nodes.iter().find(|n| n.feature as i64 >= columns)
        {
            let reason = format!("it has {columns} columns, but a tree tests feature {}", node.feature);
            return Err(cx.input_error(0, reason));
        }
        match &self.labels {
            Some(labels) => infer_classifier(cx, labels.element_type(), self.width()),
            None => {
                let n = rows(cx)?;
                cx.set_shape(0, vec![n, self.targets.into()]);
                Ok(())
            }
        }
    }
}
