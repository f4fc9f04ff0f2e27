//! LinearClassifier and LinearRegressor.

use std::sync::Arc;

use super::super::{Declaration, Infer, OpError, Operator, Types};
use super::{DOMAIN, Labels, NUMBERS, PostTransform, floats, infer_classifier, rows};

/// `x · coefficientsᵀ + intercepts`, with one row of coefficients for each target.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    /// `[targets, features]`.
    pub coefficients: Vec<f32>,
    pub intercepts: Vec<f32>,
    pub targets: usize,
    pub post: PostTransform,
    /// Of a classifier.
    pub labels: Option<Labels>,
}

impl Linear {
    /// The columns of the scores: a classifier of two classes may have coefficients for one only.
    pub fn width(&self) -> usize {
        match &self.labels {
            Some(labels) if labels.len() == 2 && self.targets == 1 => 2,
            _ => self.targets,
        }
    }
}

impl Operator for Linear {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(columns) = cx.shape(0).and_then(|s| s.last()).and_then(|d| d.known())
            && columns as usize * self.targets > self.coefficients.len()
        {
            let n = self.coefficients.len();
            let reason =
                format!("it has {columns} columns; {n} coefficients for {} targets do not fit", self.targets);
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

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("LinearClassifier", &[1], "X:T -> Y:any, Z:float", &[("T", NUMBERS)], |a| {
        let labels = Labels::required(a, "classlabels_ints", "classlabels_strings")?;
        let intercepts = floats(a, "intercepts")?;
        // How many classes have coefficients is told by the intercepts, where there are some.
        let targets = if intercepts.is_empty() { labels.len() } else { intercepts.len() };
        a.ignore("multi_class");
        Ok(Arc::new(Linear {
            coefficients: floats(a, "coefficients")?,
            intercepts,
            targets,
            post: PostTransform::read(a)?,
            labels: Some(labels),
        }))
    })
    .domain(DOMAIN),
    Declaration::new("LinearRegressor", &[1], "X:T -> Y:float", &[("T", Types::FLOAT.and(NUMBERS))], |a| {
        let targets = a.int("targets", 1)?;
        let targets = usize::try_from(targets)
            .ok()
            .filter(|&t| t > 0)
            .ok_or_else(|| OpError::attribute("targets", format!("{targets}; it must be positive")))?;
        let intercepts = floats(a, "intercepts")?;
        if !intercepts.is_empty() && intercepts.len() != targets {
            let reason = format!("there are {} for {targets} targets", intercepts.len());
            return Err(OpError::attribute("intercepts", reason));
        }
        let coefficients = floats(a, "coefficients")?;
        Ok(Arc::new(Linear {
            coefficients,
            intercepts,
            targets,
            post: PostTransform::read(a)?,
            labels: None,
        }))
    })
    .domain(DOMAIN),
];
