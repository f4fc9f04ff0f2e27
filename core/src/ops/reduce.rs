//! Reductions over any axes.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::{ElementType, ValueType};

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types, normalize_axis};

/// How elements are put together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reduction {
    L1,
    L2,
    LogSum,
    LogSumExp,
    Max,
    Mean,
    Min,
    Prod,
    Sum,
    SumSquare,
}

/// A reduction with its axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduce {
    pub reduction: Reduction,
    pub axes: Axes,
    pub keepdims: bool,
    /// Without axes: no axis is reduced, rather than all.
    pub noop_with_empty_axes: bool,
}

/// Where the axes come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Axes {
    Attribute(Option<Vec<i64>>),
    /// Input 1, when the node gives it.
    Input,
}

impl Reduce {
    /// Reads attributes; `since` is the opset in which the axes became an input.
    fn parse(
        a: &AttributeReader<'_>,
        reduction: Reduction,
        since: i64,
    ) -> Result<Arc<dyn Operator>, OpError> {
        let axes = if a.opset() >= since {
            Axes::Input
        } else {
            Axes::Attribute(a.ints("axes")?.map(<[i64]>::to_vec))
        };
        let noop_with_empty_axes = a.opset() >= since && a.flag("noop_with_empty_axes", false)?;
        Ok(Arc::new(Reduce { reduction, axes, keepdims: a.flag("keepdims", true)?, noop_with_empty_axes }))
    }

    /// Which axes of a tensor of `rank` are reduced; `given` is the value of the axes.
    pub fn reduced(&self, given: &[i64], rank: usize) -> Result<Vec<bool>, OpError> {
        if given.is_empty() {
            return Ok(vec![!self.noop_with_empty_axes; rank]);
        }
        let mut reduced = vec![false; rank];
        for &axis in given {
            reduced[normalize_axis("axes", axis, rank)?] = true;
        }
        Ok(reduced)
    }
}

impl Operator for Reduce {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if self.infer_shape(cx)?.is_some_and(|reduced| reduced == [true])
            && let Some(elements) = cx.ints(0)
        {
            cx.set_elements(0, self.of_integers(&elements).map(|d| vec![d]));
        }
        Ok(())
    }
}

impl Reduce {
    /// Gives the output's shape; tells which axes are reduced, where that is known.
    fn infer_shape(&self, cx: &mut Infer<'_>) -> Result<Option<Vec<bool>>, OpError> {
        let axes = match &self.axes {
            Axes::Attribute(axes) => Some(axes.clone().unwrap_or_default()),
            Axes::Input if !cx.has(1) => Some(Vec::new()),
            Axes::Input => cx.known_ints(1),
        };
        let Some(shape) = cx.shape(0) else { return Ok(None) };
        let Some(axes) = axes else {
            if self.keepdims {
                cx.set_rank(0, shape.len());
            }
            return Ok(None);
        };
        let reduced = self.reduced(&axes, shape.len())?;
        let result = shape
            .iter()
            .zip(&reduced)
            .filter_map(|(d, &r)| match r {
                false => Some(d.clone()),
                true => self.keepdims.then_some(Dim::Known(1)),
            })
            .collect();
        cx.set_shape(0, result);
        Ok(Some(reduced))
    }

    fn of_integers(&self, elements: &[Dim]) -> Option<Dim> {
        let all = |start: Dim, f: fn(&Dim, &Dim) -> Dim| elements.iter().fold(start, |acc, d| f(&acc, d));
        let known: Option<Vec<i64>> = elements.iter().map(Dim::known).collect();
        match self.reduction {
            // Data that overflow wrap around, which a dimension does not: the kernel computes them.
            Reduction::Sum if known.is_some() => {
                known?.into_iter().try_fold(0, i64::checked_add).map(Dim::Known)
            }
            Reduction::Prod if known.is_some() => {
                known?.into_iter().try_fold(1, i64::checked_mul).map(Dim::Known)
            }
            Reduction::Sum => Some(all(Dim::Known(0), Dim::add)),
            Reduction::Prod => Some(all(Dim::Known(1), Dim::mul)),
            Reduction::Max => Some(all(elements.first()?.clone(), Dim::max_of)),
            Reduction::Min => Some(all(elements.first()?.clone(), Dim::min_of)),
            _ => None,
        }
    }
}

/// A sum of integers and a constant, as another type: each wraps around as it would in operators of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct SumPlus {
    pub reduce: Reduce,
    pub added: i64,
    pub to: ElementType,
}

impl SumPlus {
    fn parse(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
        let reduce = Reduce {
            reduction: Reduction::Sum,
            axes: Axes::Input,
            keepdims: a.flag("keepdims", true)?,
            noop_with_empty_axes: a.flag("noop_with_empty_axes", false)?,
        };
        let to = a.element_type("to")?.filter(|to| Types::INDEX.contains(&ValueType::Tensor(*to)));
        let to = to.ok_or_else(|| OpError::attribute("to", "it is required; allowed are int32 and int64"))?;
        Ok(Arc::new(SumPlus { reduce, added: a.int("added", 0)?, to }))
    }
}

impl Operator for SumPlus {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        cx.set_element_type(0, self.to);
        if self.reduce.infer_shape(cx)?.is_some_and(|reduced| reduced == [true])
            && let Some(elements) = cx.ints(0)
        {
            // What wraps around is no dimension.
            let sum = self.reduce.of_integers(&elements).and_then(|sum| match sum.known() {
                Some(sum) => sum.checked_add(self.added).map(Dim::Known),
                None => Some(sum.add(&Dim::Known(self.added))),
            });
            cx.set_elements(0, sum.and_then(|sum| super::cast::convert(vec![sum], self.to)));
        }
        Ok(())
    }
}

const SIGNATURE: &str = "data:T, axes?:int64 -> reduced:T";
const NUMERIC: &[(&str, Types)] = &[("T", Types::NUMERIC)];
const NUMERIC_OR_BOOL: &[(&str, Types)] = &[("T", Types::NUMERIC.and(Types::BOOL))];

macro_rules! reduction {
    ($name:literal, $since:expr, $types:expr, $op:ident, $axes_input:literal) => {
        Declaration::new($name, &$since, SIGNATURE, $types, |a| Reduce::parse(a, Reduction::$op, $axes_input))
            .shape_inputs(&[1])
    };
}

pub(super) const DECLARATIONS: &[Declaration] = &[
    reduction!("ReduceL1", [1, 11, 13, 18], NUMERIC, L1, 18),
    reduction!("ReduceL2", [1, 11, 13, 18], NUMERIC, L2, 18),
    reduction!("ReduceLogSum", [1, 11, 13, 18, 28], NUMERIC, LogSum, 18),
    reduction!("ReduceLogSumExp", [1, 11, 13, 18, 28], NUMERIC, LogSumExp, 18),
    reduction!("ReduceMax", [1, 11, 12, 13, 18, 20], NUMERIC_OR_BOOL, Max, 18),
    reduction!("ReduceMean", [1, 11, 13, 18], NUMERIC, Mean, 18),
    reduction!("ReduceMin", [1, 11, 12, 13, 18, 20], NUMERIC_OR_BOOL, Min, 18),
    reduction!("ReduceProd", [1, 11, 13, 18], NUMERIC, Prod, 18),
    reduction!("ReduceSum", [1, 11, 13], NUMERIC, Sum, 13),
    reduction!("ReduceSumSquare", [1, 11, 13, 18], NUMERIC, SumSquare, 18),
    // What the fusions of this library make.
    Declaration::new(
        "ReduceSum",
        &[1],
        "data:T, axes?:int64 -> reduced:any",
        &[("T", Types::INDEX)],
        SumPlus::parse,
    )
    .domain("rukh")
    .shape_inputs(&[1]),
];
