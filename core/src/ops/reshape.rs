//! Operators that give the same elements another shape: Reshape, Flatten, Squeeze, Unsqueeze, Identity.

use std::sync::Arc;

use crate::graph::Dim;

use super::int_list::{IntList, unique_axes};
use super::shape::product;
use super::{Declaration, Infer, OpError, Operator, Types, normalize_axis};

/// How the output's shape comes from the input's. Elements stay as they are, in their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Reshape {
    /// The dimensions given; one may be −1 (what is left). 0 means the input's dimension at that
    /// place, unless `allow_zero`.
    To {
        shape: IntList,
        allow_zero: bool,
    },
    /// A matrix: the product of the dimensions before the axis, and of those from it on.
    Flatten {
        axis: i64,
    },
    /// Without the axes, whose dimensions are 1; without an axis in the list, without all dimensions of 1.
    Squeeze {
        axes: IntList,
    },
    /// With dimensions of 1 at these axes of the output.
    Unsqueeze {
        axes: IntList,
    },
    Identity,
}

impl Operator for Reshape {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let shape = match self {
            Reshape::To { shape, allow_zero } => reshape(cx, shape, *allow_zero)?,
            Reshape::Flatten { axis } => flatten(cx, *axis)?,
            Reshape::Squeeze { axes } => squeeze(cx, axes)?,
            Reshape::Unsqueeze { axes } => unsqueeze(cx, axes)?,
            Reshape::Identity => {
                cx.copy_fact(0, 0);
                return Ok(());
            }
        };
        if let Some(shape) = shape {
            cx.set_shape(0, shape);
        }
        cx.set_elements(0, cx.ints(0));
        Ok(())
    }
}

fn reshape(cx: &mut Infer<'_>, list: &IntList, allow_zero: bool) -> Result<Option<Vec<Dim>>, OpError> {
    let input = cx.shape(0);
    let Some(mut shape) = list.dims(cx) else {
        if let (Some(0), Some(input)) = (list.count(cx), input) {
            check_single(input)?;
        }
        return Ok(list.count(cx).map(|rank| (0..rank).map(|_| cx.unknown()).collect()));
    };
    if let IntList::Input(i) = list {
        cx.shape_of_rank(*i, 1)?;
    }
    let mut rest = None;
    for i in 0..shape.len() {
        match shape[i].known() {
            Some(-1) if rest.is_none() => rest = Some(i),
            Some(0) if !allow_zero => {
                shape[i] = match input {
                    Some(input) => input.get(i).cloned().ok_or_else(|| {
                        let rank = input.len();
                        list.error(cx, format!("dimension {i} is 0 (copy), but the input has rank {rank}"))
                    })?,
                    None => cx.unknown(),
                };
            }
            Some(d) if d < 0 => {
                let allowed = "allowed are -1 (once), 0 and positive numbers";
                return Err(list.error(cx, format!("dimension {i} of {shape:?} is {d}; {allowed}")));
            }
            _ => {}
        }
    }
    let Some(input) = input else {
        if let Some(i) = rest {
            shape[i] = cx.unknown();
        }
        return Ok(Some(shape));
    };
    let total = product(input);
    match rest {
        Some(i) => {
            shape[i] = Dim::Known(1);
            let others = product(&shape);
            let quotient = match (total.known(), others.known()) {
                (Some(_), Some(0)) => None,
                (Some(t), Some(o)) => (t % o == 0).then(|| Dim::Known(t / o)),
                _ => Some(total.exact_div(&others).unwrap_or_else(|| total.floor_div(&others))),
            };
            shape[i] = quotient.ok_or_else(|| {
                shape[i] = Dim::Known(-1);
                list.error(cx, format!("the input of shape {input:?} cannot take the shape {shape:?}"))
            })?;
        }
        None => {
            if let (Some(have), Some(want)) = (total.known(), product(&shape).known())
                && have != want
            {
                return Err(list.error(
                    cx,
                    format!("shape {shape:?} has {want} elements, the input of shape {input:?} has {have}"),
                ));
            }
        }
    }
    Ok(Some(shape))
}

fn flatten(cx: &mut Infer<'_>, axis: i64) -> Result<Option<Vec<Dim>>, OpError> {
    let Some(shape) = cx.shape(0) else { return Ok(Some(vec![cx.unknown(), cx.unknown()])) };
    // The axis may also be the rank: everything before it.
    let axis = match axis {
        a if a == shape.len() as i64 => shape.len(),
        a => normalize_axis("axis", a, shape.len())?,
    };
    Ok(Some(vec![product(&shape[..axis]), product(&shape[axis..])]))
}

fn squeeze(cx: &mut Infer<'_>, axes: &IntList) -> Result<Option<Vec<Dim>>, OpError> {
    let Some(shape) = cx.shape(0) else { return Ok(None) };
    // A list without axes is as none.
    let keep: Vec<bool> = if axes.given(cx) && axes.count(cx) != Some(0) {
        match axes.axes(cx, shape.len())? {
            Some(axes) => (0..shape.len()).map(|i| !axes.contains(&i)).collect(),
            None => {
                let rank = axes.count(cx).and_then(|n| shape.len().checked_sub(n));
                if rank == Some(0) {
                    check_single(shape)?;
                }
                return Ok(rank.map(|rank| (0..rank).map(|_| cx.unknown()).collect()));
            }
        }
    } else if shape.iter().all(|d| d.known().is_some()) {
        shape.iter().map(|d| d.known() != Some(1)).collect()
    } else {
        // Which dimensions are 1 is not known yet.
        return Ok(None);
    };
    for (i, d) in shape.iter().enumerate() {
        if !keep[i] && d.known().is_some_and(|d| d != 1) {
            return Err(axes.error(cx, format!("axis {i} of shape {shape:?} is {d}; only 1 can be squeezed")));
        }
    }
    Ok(Some(shape.iter().zip(keep).filter(|(_, keep)| *keep).map(|(d, _)| d.clone()).collect()))
}

/// A result without dimensions has one element, whatever the list that is not known yet will say.
fn check_single(shape: &[Dim]) -> Result<(), OpError> {
    match shape.iter().find(|d| d.known().is_some_and(|d| d != 1)) {
        Some(d) => {
            Err(OpError::Data(format!("shape {shape:?} has a dimension of {d}; a scalar has one element")))
        }
        None => Ok(()),
    }
}

fn unsqueeze(cx: &mut Infer<'_>, axes: &IntList) -> Result<Option<Vec<Dim>>, OpError> {
    let Some(shape) = cx.shape(0) else { return Ok(None) };
    let Some(count) = axes.count(cx) else { return Ok(None) };
    let rank = shape.len() + count;
    let Some(known) = axes.known(cx) else {
        return Ok(Some((0..rank).map(|_| cx.unknown()).collect()));
    };
    let new = unique_axes(&known, rank).map_err(|e| axes.error(cx, e.to_string()))?;
    let mut old = shape.iter();
    let one = Dim::Known(1);
    Ok(Some(
        (0..rank).map_while(|i| if new.contains(&i) { Some(&one) } else { old.next() }).cloned().collect(),
    ))
}

const T: &[(&str, Types)] = &[("T", Types::TENSOR)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "Reshape",
        &[1, 5, 13, 14, 19, 21, 23, 24, 25],
        "data:T, shape?:int64 -> reshaped:T",
        T,
        |a| {
            let allow_zero = a.opset() >= 14 && a.flag("allowzero", false)?;
            Ok(Arc::new(Reshape::To { shape: IntList::required(a, "shape", 1, 5)?, allow_zero }))
        },
    )
    .shape_inputs(&[1]),
    Declaration::new("Flatten", &[1, 9, 11, 13, 21, 23, 24, 25], "input:T -> output:T", T, |a| {
        Ok(Arc::new(Reshape::Flatten { axis: a.int("axis", 1)? }))
    }),
    Declaration::new("Squeeze", &[1, 11, 13, 21, 23, 24, 25], "data:T, axes?:int64 -> squeezed:T", T, |a| {
        Ok(Arc::new(Reshape::Squeeze { axes: IntList::read(a, "axes", 1, 13)? }))
    })
    .shape_inputs(&[1]),
    Declaration::new(
        "Unsqueeze",
        &[1, 11, 13, 21, 23, 24, 25],
        "data:T, axes?:int64 -> expanded:T",
        T,
        |a| Ok(Arc::new(Reshape::Unsqueeze { axes: IntList::required(a, "axes", 1, 13)? })),
    )
    .shape_inputs(&[1]),
    Declaration::new(
        "Identity",
        &[1, 13, 14, 16, 19, 21, 23, 24, 25],
        "input:V -> output:V",
        &[("V", Types::VALUE)],
        |_| Ok(Arc::new(Reshape::Identity)),
    ),
];

#[cfg(test)]
mod tests {
    use super::super::{Unknowns, find, resolve};
    use super::*;
    use crate::graph::{Attributes, Fact, Node, OpName, ValueId};
    use crate::tensor::ElementType;

    /// The shape that an operator gives for symbolic inputs, or its error.
    fn shape_of(op: &str, data: &[Dim], ints: Option<&[Dim]>) -> Result<Vec<Dim>, OpError> {
        let ints = ints.map(|ints| Fact {
            elements: Some(ints.to_vec()),
            ..Fact::tensor(ElementType::I64, vec![ints.len().into()])
        });
        shape_by(op, data, ints)
    }

    fn shape_by(op: &str, data: &[Dim], ints: Option<Fact>) -> Result<Vec<Dim>, OpError> {
        let node = Node {
            name: "test".into(),
            op: OpName { domain: String::new(), name: op.into(), opset: 21 },
            attributes: Attributes::default(),
            inputs: std::iter::once(ValueId(0)).chain(ints.as_ref().map(|_| ValueId(1))).map(Some).collect(),
            outputs: vec![Some(ValueId(2))],
        };
        let (_, typed) = resolve(&node)?;
        let data = Fact::tensor(ElementType::F32, data.to_vec());
        let facts: Vec<Option<&Fact>> = std::iter::once(&data).chain(&ints).map(Some).collect();
        let mut unknowns = Unknowns::default();
        let signature = &find("", op).unwrap().signature;
        let mut cx = Infer::new(signature, &facts, &[None, None], 1, &mut unknowns)?;
        typed.infer(&mut cx)?;
        Ok(cx.into_outputs().remove(0).shape.unwrap_or_default())
    }

    #[test]
    fn symbolic_shapes() {
        let (b, s, k) = (Dim::symbol("b"), Dim::symbol("s"), Dim::Known);
        let hidden = [b.clone(), s.clone(), k(768)];
        let rows = b.mul(&s);
        for (op, ints, want) in [
            ("Reshape", vec![k(0), k(0), k(12), k(64)], vec![b.clone(), s.clone(), k(12), k(64)]),
            ("Reshape", vec![k(-1), k(768)], vec![rows.clone(), k(768)]),
            ("Reshape", vec![b.clone(), k(-1)], vec![b.clone(), s.mul(&k(768))]),
            ("Unsqueeze", vec![k(0), k(-1)], vec![k(1), b.clone(), s.clone(), k(768), k(1)]),
            ("Flatten", vec![], vec![b.clone(), s.mul(&k(768))]),
        ] {
            let ints = (!ints.is_empty()).then_some(&ints[..]);
            assert_eq!(shape_of(op, &hidden, ints), Ok(want), "{op} {ints:?}");
        }
        let one = [k(1), b.clone(), k(1)];
        assert_eq!(shape_of("Squeeze", &one, Some(&[k(0)])), Ok(vec![b.clone(), k(1)]));
    }

    #[test]
    fn wrong_shapes_are_named() {
        let k = Dim::Known;
        for (op, ints, want) in [
            ("Reshape", vec![k(4), k(-1)], "the input of shape [2, 3] cannot take the shape [4, -1]"),
            ("Reshape", vec![k(5)], "shape [5] has 5 elements, the input of shape [2, 3] has 6"),
            ("Reshape", vec![k(-1), k(-1)], "is -1; allowed are -1 (once)"),
            ("Squeeze", vec![k(0)], "axis 0 of shape [2, 3] is 2; only 1 can be squeezed"),
            ("Unsqueeze", vec![k(4)], "4 is out of range for rank 3"),
        ] {
            let error = shape_of(op, &[k(2), k(3)], Some(&ints)).unwrap_err().to_string();
            assert!(error.contains(want), "{op}: {error}");
        }
    }
    /// The list's length alone, before its elements are known, says that the result is a scalar.
    #[test]
    fn scalars_have_one_element() {
        let (b, k) = (Dim::symbol("b"), Dim::Known);
        for (op, data, length, want) in [
            ("Squeeze", vec![k(1), k(3)], 2, Err("has a dimension of 3; a scalar has one element")),
            ("Squeeze", vec![k(0)], 1, Err("has a dimension of 0; a scalar has one element")),
            ("Squeeze", vec![k(1), b.clone()], 2, Ok(0)),
            ("Squeeze", vec![k(1), k(3)], 1, Ok(1)),
            ("Reshape", vec![k(2)], 0, Err("has a dimension of 2; a scalar has one element")),
            ("Reshape", vec![b, k(1)], 0, Ok(0)),
        ] {
            let list = Fact::tensor(ElementType::I64, vec![k(length)]);
            let found = shape_by(op, &data, Some(list));
            match want {
                Ok(rank) => assert_eq!(found.map(|shape| shape.len()), Ok(rank), "{op} {data:?}"),
                Err(want) => {
                    let error = found.unwrap_err().to_string();
                    assert!(error.contains(want), "{op} {data:?}: {error}");
                }
            }
        }
    }
}
