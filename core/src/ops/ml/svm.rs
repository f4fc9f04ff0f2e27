//! SVMClassifier and SVMRegressor.

use std::sync::Arc;

use super::super::{AttributeReader, Declaration, Infer, OpError, Operator};
use super::{DOMAIN, Labels, NUMBERS, PostTransform, floats, infer_classifier, rows};

/// A support vector machine; without support vectors, a linear one.
#[derive(Clone, Debug, PartialEq)]
pub struct Svm {
    pub kernel: Kernel,
    /// `[classes − 1, vectors]` of a classifier, `[vectors]` of a regressor; of a linear machine
    /// `[classes, features]`.
    pub coefficients: Vec<f32>,
    /// `[vectors, features]`.
    pub support: Vec<f32>,
    pub vectors: usize,
    pub rho: Vec<f32>,
    pub post: PostTransform,
    pub task: Task,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    Classify {
        labels: Labels,
        vectors_per_class: Vec<usize>,
        /// Slopes and offsets of the sigmoids that make probabilities, one for each pair of classes.
        probability: Option<(Vec<f32>, Vec<f32>)>,
    },
    Regress {
        /// Whether the result is 1 for what belongs to the class and −1 for what does not.
        one_class: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kernel {
    Linear,
    Poly { gamma: f32, coef0: f32, degree: f32 },
    Rbf { gamma: f32 },
    Sigmoid { gamma: f32, coef0: f32 },
}

impl Svm {
    /// The columns of a classifier's scores.
    pub fn width(&self) -> usize {
        let Task::Classify { labels, probability, .. } = &self.task else { return 1 };
        let n = labels.len();
        match (probability, self.vectors) {
            (Some(_), _) | (_, 0) => n,
            (None, _) if n <= 2 => 2,
            (None, _) => n * (n - 1) / 2,
        }
    }

    /// The number of features of a row.
    pub fn features(&self) -> usize {
        match (self.vectors, &self.task) {
            (0, Task::Classify { labels, .. }) => self.coefficients.len() / labels.len(),
            (0, Task::Regress { .. }) => self.coefficients.len(),
            (n, _) => self.support.len() / n,
        }
    }
}

impl Operator for Svm {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(columns) = cx.shape(0).and_then(|s| s.last()).and_then(|d| d.known())
            && columns as usize != self.features()
        {
            return Err(
                cx.input_error(0, format!("it has {columns} columns; {} are needed", self.features()))
            );
        }
        match &self.task {
            Task::Classify { labels, .. } => infer_classifier(cx, labels.element_type(), self.width()),
            Task::Regress { .. } => {
                let n = rows(cx)?;
                cx.set_shape(0, vec![n, 1usize.into()]);
                Ok(())
            }
        }
    }
}

fn kernel(a: &AttributeReader<'_>) -> Result<Kernel, OpError> {
    let params = floats(a, "kernel_params")?;
    let at = |i: usize| params.get(i).copied().unwrap_or(0.0);
    let (gamma, coef0, degree) = (at(0), at(1), at(2));
    a.choice(
        "kernel_type",
        "LINEAR",
        &[
            ("LINEAR", Kernel::Linear),
            ("POLY", Kernel::Poly { gamma, coef0, degree }),
            ("RBF", Kernel::Rbf { gamma }),
            ("SIGMOID", Kernel::Sigmoid { gamma, coef0 }),
        ],
    )
}

fn classifier(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let labels = Labels::required(a, "classlabels_ints", "classlabels_strings")?;
    let per_class = a.ints("vectors_per_class")?.unwrap_or_default();
    let negative = || OpError::attribute("vectors_per_class", format!("{per_class:?} has negative numbers"));
    let vectors_per_class: Vec<usize> =
        per_class.iter().map(|&n| usize::try_from(n).map_err(|_| negative())).collect::<Result<_, _>>()?;
    let vectors: usize = vectors_per_class.iter().sum();
    let (prob_a, prob_b) = (floats(a, "prob_a")?, floats(a, "prob_b")?);
    let probability = if prob_a.is_empty() { None } else { Some((prob_a, prob_b)) };
    let n = labels.len();
    let svm = Svm {
        kernel: kernel(a)?,
        coefficients: floats(a, "coefficients")?,
        support: floats(a, "support_vectors")?,
        vectors,
        rho: floats(a, "rho")?,
        post: PostTransform::read(a)?,
        task: Task::Classify {
            labels,
            vectors_per_class: vectors_per_class.clone(),
            probability: probability.clone(),
        },
    };
    let pairs = n * (n - 1) / 2;
    let wrong = |name: &str, have: usize, want: usize| {
        Err(OpError::attribute(name, format!("it has {have} numbers; {want} are needed for {n} classes")))
    };
    if vectors == 0 {
        if svm.rho.is_empty() {
            return wrong("rho", 0, 1);
        }
        return if svm.coefficients.len().is_multiple_of(n) {
            Ok(Arc::new(svm))
        } else {
            wrong("coefficients", svm.coefficients.len(), n)
        };
    }
    if vectors_per_class.len() != n {
        return wrong("vectors_per_class", vectors_per_class.len(), n);
    }
    if svm.coefficients.len() != (n - 1) * vectors {
        return wrong("coefficients", svm.coefficients.len(), (n - 1) * vectors);
    }
    if svm.rho.len() < pairs {
        return wrong("rho", svm.rho.len(), pairs);
    }
    if let Some((a, b)) = &probability
        && (a.len() < pairs || b.len() < pairs)
    {
        return wrong("prob_a and prob_b", a.len().min(b.len()), pairs);
    }
    if !svm.support.len().is_multiple_of(vectors) {
        return wrong("support_vectors", svm.support.len(), vectors);
    }
    Ok(Arc::new(svm))
}

fn regressor(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let vectors = a.int("n_supports", 0)?.max(0) as usize;
    let svm = Svm {
        kernel: kernel(a)?,
        coefficients: floats(a, "coefficients")?,
        support: floats(a, "support_vectors")?,
        vectors,
        rho: floats(a, "rho")?,
        post: PostTransform::read(a)?,
        task: Task::Regress { one_class: a.flag("one_class", false)? },
    };
    if svm.rho.is_empty() {
        return Err(OpError::attribute("rho", "it is empty; one number is needed"));
    }
    if vectors > 0 && (svm.coefficients.len() != vectors || !svm.support.len().is_multiple_of(vectors)) {
        let reason = format!(
            "{} coefficients, {} support values for {vectors} vectors",
            svm.coefficients.len(),
            svm.support.len()
        );
        return Err(OpError::attribute("coefficients", reason));
    }
    Ok(Arc::new(svm))
}

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("SVMClassifier", &[1], "X:T -> Y:any, Z:float", &[("T", NUMBERS)], classifier)
        .domain(DOMAIN),
    Declaration::new("SVMRegressor", &[1], "X:T -> Y:float", &[("T", NUMBERS)], regressor).domain(DOMAIN),
];
