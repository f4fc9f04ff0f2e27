//! Recurrent layers: RNN, GRU, LSTM.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType;

use super::activation::Activation;
use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// The cell of a recurrent layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    Simple,
    Gru {
        /// Whether the reset gate applies after the product with the recurrence weight.
        linear_before_reset: bool,
    },
    Lstm {
        /// Whether the forget gate is one less the input gate.
        input_forget: bool,
    },
}

/// A recurrent layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Recurrent {
    pub cell: Cell,
    /// For each direction whether it runs backward.
    pub directions: Vec<bool>,
    pub hidden: Option<usize>,
    /// The cell's functions for each direction.
    pub activations: Vec<Vec<Activation>>,
    /// Bound on the magnitude of what goes into an activation.
    pub clip: Option<f32>,
    /// Whether the batch is the first dimension.
    pub batch_first: bool,
}

impl Cell {
    /// Gates: multiples of the hidden size in the weights.
    pub fn gates(self) -> usize {
        match self {
            Cell::Simple => 1,
            Cell::Gru { .. } => 3,
            Cell::Lstm { .. } => 4,
        }
    }

    fn defaults(self) -> &'static [&'static str] {
        match self {
            Cell::Simple => &["Tanh"],
            Cell::Gru { .. } => &["Sigmoid", "Tanh"],
            Cell::Lstm { .. } => &["Sigmoid", "Tanh", "Tanh"],
        }
    }
}

impl Recurrent {
    fn read(a: &AttributeReader<'_>, cell: Cell) -> Result<Arc<dyn Operator>, OpError> {
        let directions = a.choice(
            "direction",
            "forward",
            &[("forward", &[false][..]), ("reverse", &[true]), ("bidirectional", &[false, true])],
        )?;
        let hidden = match a.optional_int("hidden_size")? {
            Some(h) => Some(
                usize::try_from(h).ok().filter(|&h| h > 0 && h <= i32::MAX as usize).ok_or_else(|| {
                    OpError::attribute(
                        "hidden_size",
                        format!("{h} is not allowed; allowed are numbers above 0"),
                    )
                })?,
            ),
            None => None,
        };
        if a.opset() < 7 {
            a.ignore("output_sequence");
        }
        Ok(Arc::new(Recurrent {
            cell,
            directions: directions.to_vec(),
            hidden,
            activations: read_activations(a, cell, directions.len())?,
            clip: a.optional_float("clip")?.filter(|&c| c > 0.0),
            batch_first: if a.opset() >= 14 { a.flag("layout", false)? } else { false },
        }))
    }
}

/// The functions of each direction. Constants are consumed in the order of the functions that have
/// any.
fn read_activations(
    a: &AttributeReader<'_>,
    cell: Cell,
    directions: usize,
) -> Result<Vec<Vec<Activation>>, OpError> {
    let count = cell.defaults().len();
    let given = a.strings("activations")?.unwrap_or_default();
    let defaults = cell.defaults().repeat(directions);
    // The standard writes RNN's default down for two directions, and exporters copy it for one.
    let written_out =
        given.len() == 2 && directions == 1 && given.iter().all(|name| canonical(name) == "Tanh");
    let names = if given.is_empty() || (cell == Cell::Simple && written_out) { defaults } else { given };
    if names.len() != count * directions {
        let reason = format!("it has {} entries; allowed is {}", names.len(), count * directions);
        return Err(OpError::attribute("activations", reason));
    }
    let mut alphas = a.floats("activation_alpha")?.unwrap_or(&[]).iter();
    let mut betas = a.floats("activation_beta")?.unwrap_or(&[]).iter();
    let all: Vec<Activation> = names
        .iter()
        .map(|name| {
            let name = canonical(name);
            let mut constants = Vec::new();
            match Activation::constants(name) {
                0 => {}
                1 => constants.extend(alphas.next()),
                // Without an alpha, beta has no place to stand either: the defaults hold.
                _ => match (alphas.next(), betas.next()) {
                    (Some(&alpha), Some(&beta)) => constants.extend([alpha, beta]),
                    (Some(&alpha), None) => constants.push(alpha),
                    (None, _) => {}
                },
            }
            Activation::parse(name, &constants).map_err(|e| match e {
                OpError::Attribute { reason, .. } => OpError::attribute("activations", reason),
                other => other,
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(all.chunks(count).map(<[_]>::to_vec).collect())
}

/// The function's name as the standard writes it; case does not matter.
fn canonical(name: &str) -> &str {
    const NAMES: [&str; 11] = [
        "Relu",
        "Tanh",
        "Sigmoid",
        "Affine",
        "LeakyRelu",
        "ThresholdedRelu",
        "ScaledTanh",
        "HardSigmoid",
        "Elu",
        "Softsign",
        "Softplus",
    ];
    NAMES.into_iter().find(|n| n.eq_ignore_ascii_case(name)).unwrap_or(name)
}

impl Operator for Recurrent {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let (x, r) = (cx.shape_of_rank(0, 3)?, cx.shape_of_rank(2, 3)?);
        let directions = Dim::from(self.directions.len());
        let gates = Dim::from(self.cell.gates());
        let hidden = match (self.hidden, r) {
            (Some(h), _) => Dim::from(h),
            (None, Some(r)) => r[2].clone(),
            (None, None) => cx.unknown(),
        };
        let Some(x) = x else { return Ok(()) };
        let (steps, batch) = if self.batch_first { (&x[1], &x[0]) } else { (&x[0], &x[1]) };
        let (rows, input) = (hidden.mul(&gates), &x[2]);
        let state = if self.batch_first {
            [batch.clone(), directions.clone(), hidden.clone()]
        } else {
            [directions.clone(), batch.clone(), hidden.clone()]
        };
        let wanted: [(usize, Vec<Dim>); 7] = [
            (1, vec![directions.clone(), rows.clone(), input.clone()]),
            (2, vec![directions.clone(), rows.clone(), hidden.clone()]),
            (3, vec![directions.clone(), rows.mul(&Dim::Known(2))]),
            (4, vec![batch.clone()]),
            (5, state.to_vec()),
            (6, state.to_vec()),
            (7, vec![directions.clone(), hidden.mul(&Dim::Known(3))]),
        ];
        for (input, shape) in &wanted {
            let Some(given) = cx.shape_of_rank(*input, shape.len())? else { continue };
            cx.equal_shape(*input, shape, given)?;
        }
        let (steps, batch) = (steps.clone(), batch.clone());
        let y = if self.batch_first {
            vec![batch, steps, directions, hidden]
        } else {
            vec![steps, directions, batch, hidden]
        };
        cx.set_shape(0, y);
        cx.set_shape(1, state.to_vec());
        cx.set_shape(2, state.to_vec());
        Ok(())
    }
}

/// An LSTM whose weights are bytes with scales; `passes` replaces it.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicQuantizeLstm;

impl Operator for DynamicQuantizeLstm {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        // What follows the replacement checks the rest.
        let (Some(x), Some(r)) = (cx.shape_of_rank(0, 3)?, cx.shape_of_rank(2, 3)?) else { return Ok(()) };
        let (steps, batch, directions, hidden) = (x[0].clone(), x[1].clone(), r[0].clone(), r[1].clone());
        let state = vec![directions.clone(), batch.clone(), hidden.clone()];
        cx.set_shape(0, vec![steps, directions, batch, hidden]);
        cx.set_shape(1, state.clone());
        cx.set_shape(2, state);
        Ok(())
    }
}

const FLOAT: &[(&str, Types)] = &[("T", Types::FLOAT)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "RNN",
        &[1, 7, 14, 22],
        "X:T, W:T, R:T, B?:T, sequence_lens?:int32, initial_h?:T -> Y?:T, Y_h?:T",
        FLOAT,
        |a| Recurrent::read(a, Cell::Simple),
    ),
    Declaration::new(
        "GRU",
        &[1, 3, 7, 14, 22],
        "X:T, W:T, R:T, B?:T, sequence_lens?:int32, initial_h?:T -> Y?:T, Y_h?:T",
        FLOAT,
        |a| {
            let linear_before_reset = a.opset() >= 3 && a.flag("linear_before_reset", false)?;
            Recurrent::read(a, Cell::Gru { linear_before_reset })
        },
    ),
    Declaration::new(
        "LSTM",
        &[1, 7, 14, 22],
        "X:T, W:T, R:T, B?:T, sequence_lens?:int32, initial_h?:T, initial_c?:T, P?:T -> Y?:T, Y_h?:T, Y_c?:T",
        FLOAT,
        |a| Recurrent::read(a, Cell::Lstm { input_forget: a.flag("input_forget", false)? }),
    ),
    Declaration::new(
        "DynamicQuantizeLSTM",
        &[1],
        "X:T, W:T2, R:T2, B?:T, sequence_lens?:int32, initial_h?:T, initial_c?:T, P?:T, W_scale:T, \
         W_zero_point:T2, R_scale:T, R_zero_point:T2 -> Y?:T, Y_h?:T, Y_c?:T",
        &[("T", Types::of(&[ElementType::F32])), ("T2", Types::of(&[ElementType::I8, ElementType::U8]))],
        |a| {
            Recurrent::read(a, Cell::Lstm { input_forget: a.flag("input_forget", false)? })?;
            Ok(Arc::new(DynamicQuantizeLstm))
        },
    )
    .domain("com.microsoft"),
];
