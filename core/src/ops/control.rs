//! Control flow: operators that run subgraphs. The session runs them over nested plans.

use std::sync::Arc;

use crate::graph::{Dim, Fact, Graph};
use crate::tensor::ValueType;

use super::{Declaration, Infer, OpError, Operator, Types};

/// Runs one of two branches.
#[derive(Debug)]
pub struct If {
    pub then_branch: Arc<Graph>,
    pub else_branch: Arc<Graph>,
}

/// Runs its body a number of times, or while a condition holds.
#[derive(Debug)]
pub struct Loop {
    pub body: Arc<Graph>,
}

/// Runs its body over slices of the scanned inputs.
#[derive(Debug)]
pub struct Scan {
    pub body: Arc<Graph>,
    pub scan_inputs: usize,
    /// One entry for each scanned input; true: from the last slice to the first.
    pub input_reversed: Vec<bool>,
    pub input_axes: Vec<i64>,
    /// One entry for each scan output; true: each slice is put before the others.
    pub output_reversed: Vec<bool>,
    pub output_axes: Vec<i64>,
    /// Opset 8: inputs begin with optional sequence lengths, and every tensor with a batch dimension.
    pub batched: bool,
}

/// Runs its body over the elements of sequences.
#[derive(Debug)]
pub struct SequenceMap {
    pub body: Arc<Graph>,
}

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("If", &[1, 11, 13, 16, 19, 21, 23, 24, 25], "cond:bool -> outputs*:any", &[], |a| {
        Ok(Arc::new(If {
            then_branch: a.graph("then_branch")?.clone(),
            else_branch: a.graph("else_branch")?.clone(),
        }))
    })
    .data_dependent(),
    Declaration::new(
        "Loop",
        &[1, 11, 13, 16, 19, 21, 23, 24, 25],
        "M?:int64, cond?:bool, v_initial*:any -> v_final_and_scan_outputs*:any",
        &[],
        |a| Ok(Arc::new(Loop { body: a.graph("body")?.clone() })),
    )
    .data_dependent(),
    Declaration::new(
        "Scan",
        &[8, 9, 11, 16, 19, 21, 23, 24, 25],
        "initial_state_and_scan_inputs*:any -> final_state_and_scan_outputs*:any",
        &[],
        parse_scan,
    )
    .data_dependent(),
    Declaration::new(
        "SequenceMap",
        &[17],
        "input_sequence:V, additional_inputs*:any -> out_sequence*:any",
        &[("V", Types::VALUE)],
        |a| Ok(Arc::new(SequenceMap { body: a.graph("body")?.clone() })),
    )
    .data_dependent(),
];

fn parse_scan(a: &super::AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let body = a.graph("body")?.clone();
    let given = a.required_int("num_scan_inputs")?;
    let batched = a.opset() < 9;
    let inputs = a.inputs() - usize::from(batched).min(a.inputs());
    let Some(scan_inputs) = usize::try_from(given).ok().filter(|&n| (1..=inputs).contains(&n)) else {
        return Err(OpError::attribute(
            "num_scan_inputs",
            format!("{given} is not allowed; allowed are 1 to {inputs}"),
        ));
    };
    let scan_outputs = (body.outputs.len() + scan_inputs).saturating_sub(inputs);
    let flags = |name: &str, count: usize| -> Result<Vec<bool>, OpError> {
        let given = a.ints(name)?.map(|v| v.iter().map(|&d| d != 0).collect());
        fit(name, given.unwrap_or_else(|| vec![false; count]), count)
    };
    let axes = |name: &str, count: usize| -> Result<Vec<i64>, OpError> {
        fit(name, a.ints(name)?.map_or_else(|| vec![0; count], <[i64]>::to_vec), count)
    };
    Ok(Arc::new(Scan {
        scan_inputs,
        input_reversed: flags(if batched { "directions" } else { "scan_input_directions" }, scan_inputs)?,
        input_axes: axes("scan_input_axes", scan_inputs)?,
        output_reversed: flags("scan_output_directions", scan_outputs)?,
        output_axes: axes("scan_output_axes", scan_outputs)?,
        batched,
        body,
    }))
}

fn fit<T>(name: &str, list: Vec<T>, count: usize) -> Result<Vec<T>, OpError> {
    if list.len() == count {
        Ok(list)
    } else {
        Err(OpError::attribute(name, format!("it has {} entries; allowed are {count}", list.len())))
    }
}

/// Types of the outputs of a body from `first` on; shapes stay open, since they may change while the
/// model runs.
fn set_body_types(cx: &mut Infer<'_>, body: &Graph, first: usize) {
    for (i, &output) in body.outputs.iter().skip(first).enumerate() {
        if let Some(ty) = body.value(output).fact.ty.clone() {
            cx.set_type(i, ty);
        }
    }
}

fn check_count(what: &str, given: usize, want: usize) -> Result<(), OpError> {
    if given == want {
        Ok(())
    } else {
        Err(OpError::attribute(what, format!("its graph has {given} outputs; the node needs {want}")))
    }
}

impl Operator for If {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        check_count("then_branch", self.then_branch.outputs.len(), cx.output_count())?;
        check_count("else_branch", self.else_branch.outputs.len(), cx.output_count())?;
        set_body_types(cx, &self.then_branch, 0);
        for i in 0..cx.output_count() {
            let fact = |g: &Graph| g.value(g.outputs[i]).fact.clone();
            let (yes, no) = (fact(&self.then_branch), fact(&self.else_branch));
            match merge(&yes, &no) {
                Some(shape) if yes.ty.is_some() => {
                    let shape = shape.into_iter().map(|d| d.unwrap_or_else(|| cx.unknown())).collect();
                    cx.set_shape(i, shape);
                }
                _ => {
                    if let Some(ty) = no.ty {
                        cx.set_type(i, ty);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The shape that both branches give; `None` for dimensions in which they differ.
fn merge(a: &Fact, b: &Fact) -> Option<Vec<Option<Dim>>> {
    let (a, b) = (a.shape.as_ref()?, b.shape.as_ref()?);
    (a.len() == b.len()).then(|| a.iter().zip(b).map(|(x, y)| (x == y).then(|| x.clone())).collect())
}

impl Operator for Loop {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let carried = cx.input_count().saturating_sub(2);
        if self.body.inputs.len() != carried + 2 {
            return Err(OpError::attribute(
                "body",
                format!("its graph has {} inputs; the node needs {}", self.body.inputs.len(), carried + 2),
            ));
        }
        // The body gives a condition first.
        if self.body.outputs.len() < carried + 1 {
            check_count("body", self.body.outputs.len(), carried + 1)?;
        }
        check_count("body", self.body.outputs.len(), cx.output_count().max(self.body.outputs.len() - 1) + 1)?;
        set_body_types(cx, &self.body, 1);
        Ok(())
    }
}

impl Operator for Scan {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let inputs = cx.input_count() - usize::from(self.batched);
        if self.body.inputs.len() != inputs {
            return Err(OpError::attribute(
                "body",
                format!("its graph has {} inputs; the node needs {inputs}", self.body.inputs.len()),
            ));
        }
        set_body_types(cx, &self.body, 0);
        Ok(())
    }
}

impl Operator for SequenceMap {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if self.body.inputs.len() != cx.input_count() {
            return Err(OpError::attribute(
                "body",
                format!(
                    "its graph has {} inputs; the node needs {}",
                    self.body.inputs.len(),
                    cx.input_count()
                ),
            ));
        }
        check_count("body", self.body.outputs.len(), cx.output_count())?;
        for (i, &output) in self.body.outputs.iter().enumerate() {
            if let Some(ty) = self.body.value(output).fact.ty.clone() {
                cx.set_type(i, ValueType::Sequence(Box::new(ty)));
            }
        }
        Ok(())
    }
}
