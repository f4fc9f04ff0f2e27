//! Tunes problems that were recorded elsewhere, without the models that they came from.

use crate::error::{Error, Result, Status, fail};
use crate::ops::OpError;

use super::super::{Given, PlanBuilder, Provider, attention, conv, gemm};
use super::results::shortened;
use super::shapes::Shapes;
use super::tuner::Tuner;

/// What became of a text of problems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tuned {
    /// Problems of the text that have a result now.
    pub(crate) results: usize,
    /// Those that have none; the log tells why.
    pub(crate) without: usize,
}

impl Tuner {
    /// Measures each problem of a text that has no result yet. What cannot be tuned here is noted.
    pub(crate) fn tune_shapes(&self, provider: &Provider, text: &str) -> Result<Tuned> {
        if !self.options.tune || self.options.file.is_none() {
            fail!(
                InvalidArgument,
                "shapes are tuned with the hip provider's options \"tunable_op_enable\" and \
                 \"tunable_op_tuning_enable\" set to \"1\", and \"tunable_op_file\" to the file of results"
            );
        }
        let (shapes, defects) = match Shapes::parse(text) {
            Ok(parsed) => parsed,
            Err(reason) => fail!(InvalidArgument, "tuning shapes: {reason}"),
        };
        let mut tuned = Tuned { results: 0, without: defects.len() };
        for defect in defects {
            self.note(true, format!("tuning shapes: {defect}; the line is left out"));
        }
        for (operator, problem) in shapes.0 {
            let key = (operator, problem);
            let reason = match self.has(&key) {
                true => None,
                false => tune(provider, &key.0, &key.1),
            };
            if self.has(&key) {
                tuned.results += 1;
                continue;
            }
            tuned.without += 1;
            let reason = reason.unwrap_or_else(|| {
                "this device has one kernel for it, or measuring failed as told before".to_owned()
            });
            let (operator, problem) = (shortened(&key.0), &key.1);
            self.note(true, format!("tuning shapes: {operator} {problem}: {reason}"));
        }
        self.save_now().map_err(|e| Error::new(Status::Io, e))?;
        Ok(tuned)
    }
}

/// Plans a problem, which measures it; the launches are not kept. Why it cannot be planned.
fn tune(provider: &Provider, operator: &str, problem: &str) -> Option<String> {
    let mut plan = PlanBuilder::new(provider, Given::All);
    let planned: Option<std::result::Result<(), OpError>> = match operator {
        "gemm" => gemm::plan_shape(problem, &mut plan),
        "conv" => conv::plan_shape(problem, false, &mut plan),
        "conv_nhwc" => conv::plan_shape(problem, true, &mut plan),
        "attention" => attention::plan_shape(problem, &mut plan),
        _ => {
            return Some(
                "the operator is not known; known are gemm, conv, conv_nhwc and attention".to_owned(),
            );
        }
    };
    match planned {
        Some(Ok(())) => None,
        Some(Err(e)) => Some(e.to_string()),
        None => {
            Some("the problem cannot be read; problems are as this version of rukh records them".to_owned())
        }
    }
}
