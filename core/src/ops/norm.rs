//! Normalisations by mean and variance.

use std::sync::Arc;

use crate::graph::Dim;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// Normalises each channel by statistics that are inputs, or by its own when training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchNorm {
    pub epsilon: f32,
    /// Weight of the old running statistics, when training.
    pub momentum: f32,
    /// Whether a channel is all of axis 1, or (before opset 9, `spatial = 0`) each element behind
    /// the batch is a channel of its own.
    pub spatial: bool,
    pub training: bool,
}

impl BatchNorm {
    fn parse(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
        let training = match a.opset() {
            // Old versions train when the node has the outputs of training.
            ..7 => !a.flag("is_test", false)? && a.outputs() > 1,
            7..14 => a.outputs() > 1,
            _ => a.flag("training_mode", false)?,
        };
        Ok(Arc::new(BatchNorm {
            epsilon: a.float("epsilon", 1e-5)?,
            momentum: a.float("momentum", 0.9)?,
            spatial: a.opset() >= 9 || a.flag("spatial", true)?,
            training,
        }))
    }
}

impl Operator for BatchNorm {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        let channels = match (self.spatial, shape) {
            (true, [_]) => vec![Dim::Known(1)],
            (true, [_, c, ..]) => vec![c.clone()],
            (false, [_, rest @ ..]) => rest.to_vec(),
            (_, []) => return Err(cx.input_error(0, "its rank is 0; allowed is 1 or more")),
        };
        for i in 1..5 {
            if let Some(given) = cx.shape(i) {
                check_parameter(cx, i, given, &channels)?;
            }
        }
        cx.set_shape(0, shape.to_vec());
        for output in 1..cx.output_count() {
            cx.set_shape(output, channels.clone());
        }
        Ok(())
    }
}

/// A parameter must have the shape `want`, as far as both are known.
fn check_parameter(cx: &Infer<'_>, i: usize, given: &[Dim], want: &[Dim]) -> Result<(), OpError> {
    let differ = |(a, b): (&Dim, &Dim)| a.known().zip(b.known()).is_some_and(|(a, b)| a != b);
    if given.len() != want.len() || given.iter().zip(want).any(differ) {
        return Err(cx.input_error(i, format!("its shape is {given:?}; allowed is {want:?}")));
    }
    Ok(())
}

/// `InstanceNormalization` and `GroupNormalization`: each sample's groups of channels by themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupNorm {
    /// `None`: every channel is a group.
    pub groups: Option<usize>,
    pub epsilon: f32,
    /// Scale and bias are given for each group (before opset 21), not for each channel.
    pub scale_by_group: bool,
}

impl Operator for GroupNorm {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        let [_, channels, ..] = shape else {
            return Err(cx.input_error(0, format!("its rank is {}; allowed is 2 or more", shape.len())));
        };
        self.infer_of(cx, shape, channels)
    }
}

impl GroupNorm {
    /// The shape rule for an input of so many channels.
    pub fn infer_of(&self, cx: &mut Infer<'_>, shape: &[Dim], channels: &Dim) -> Result<(), OpError> {
        let mut parameters = channels.clone();
        if let Some(groups) = self.groups {
            if channels.known().is_some_and(|c| c % groups as i64 != 0) {
                let reason = format!("its {channels} channels do not divide into num_groups = {groups}");
                return Err(cx.input_error(0, reason));
            }
            if self.scale_by_group {
                parameters = Dim::from(groups);
            }
        }
        for i in [1, 2] {
            if let Some(given) = cx.shape(i) {
                check_parameter(cx, i, given, std::slice::from_ref(&parameters))?;
            }
        }
        cx.set_shape(0, shape.to_vec());
        Ok(())
    }
}

/// Reads `num_groups`; whether scale and shift are by group depends on the operator's version.
pub fn read_group_norm(a: &AttributeReader<'_>, scale_by_group: bool) -> Result<GroupNorm, OpError> {
    let groups = a.required_int("num_groups")?;
    let groups = usize::try_from(groups).ok().filter(|&g| g > 0).ok_or_else(|| {
        OpError::attribute("num_groups", format!("{groups} is not allowed; allowed is 1 or more"))
    })?;
    // Statistics are computed in f32 at the least; the stash type asks for no more.
    a.ignore("stash_type");
    Ok(GroupNorm { groups: Some(groups), epsilon: a.float("epsilon", 1e-5)?, scale_by_group })
}

const FLOAT: &[(&str, Types)] = &[("T", Types::FLOAT)];
const FLOATS: &[(&str, Types)] = &[("T", Types::FLOAT), ("T1", Types::FLOAT), ("T2", Types::FLOAT)];
pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "BatchNormalization",
        &[1, 6, 7, 9, 14, 15],
        "X:T, scale:T1, B:T1, input_mean:T2, input_var:T2 \
         -> Y:T, running_mean?:T2, running_var?:T2, saved_mean?:T2, saved_var?:T2",
        FLOATS,
        BatchNorm::parse,
    ),
    Declaration::new("InstanceNormalization", &[1, 6, 22], "input:T, scale:T, B:T -> output:T", FLOAT, |a| {
        let epsilon = a.float("epsilon", 1e-5)?;
        Ok(Arc::new(GroupNorm { groups: None, epsilon, scale_by_group: false }))
    }),
    Declaration::new("GroupNormalization", &[18, 21], "X:T, scale:T, bias:T -> Y:T", FLOAT, |a| {
        Ok(Arc::new(read_group_norm(a, a.opset() < 21)?))
    }),
];
