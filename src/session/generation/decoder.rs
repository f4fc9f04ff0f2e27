//! Runs the graphs of a generating node: the prompt at first, then a token at a time with what was computed
//! for those before it.

use crate::error::Result;
use crate::graph::{Dim, Graph};
use crate::ops::generation::Generation;
use crate::plan::{Body, Generator, Step};
use crate::tensor::{Buffer, ElementType, Tensor, Value, ValueRef};

use super::super::control::{call, wrong};
use super::super::run::RunContext;

/// What is to be continued.
pub(super) struct Prompt<'a> {
    pub(super) ids: &'a [i32],
    pub(super) batch: usize,
    pub(super) length: usize,
    /// Zero for what is not attended to; else what is padding is not.
    pub(super) mask: Option<Vec<i32>>,
    /// The first token of each sample, for a decoder behind an encoder.
    pub(super) begin: Option<Vec<i32>>,
}

pub(super) struct Decoder<'a> {
    cx: RunContext<'a>,
    step: &'a Step,
    op: &'a Generation,
    bodies: &'a Generator,
    inputs: &'a [Option<ValueRef<'a>>],
    /// Sequences of each sample.
    beams: usize,
    /// What there is of each sequence.
    pub(super) sequences: Vec<Vec<i32>>,
    /// What is attended to: of the sequences, or of the encoder's input.
    mask: Vec<Vec<i32>>,
    /// The position of each sequence's next token.
    positions: Vec<i32>,
    /// Keys and values of what was read.
    past: Vec<Value>,
    /// What the encoder read and gave, for each sequence.
    encoded: Option<Encoded>,
}

struct Encoded {
    ids: Vec<Vec<i32>>,
    states: Value,
    cross: Vec<Value>,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(
        cx: RunContext<'a>,
        step: &'a Step,
        op: &'a Generation,
        bodies: &'a Generator,
        inputs: &'a [Option<ValueRef<'a>>],
        prompt: Prompt<'_>,
        beams: usize,
    ) -> Result<Self> {
        let rows = |flat: &[i32]| -> Vec<Vec<i32>> {
            let row = |i: usize| flat[i / beams * prompt.length..][..prompt.length].to_vec();
            (0..prompt.batch * beams).map(row).collect()
        };
        let ids = rows(prompt.ids);
        let mask = match &prompt.mask {
            Some(mask) => rows(mask),
            None => {
                let seen = |ids: &Vec<i32>| ids.iter().map(|&id| i32::from(id != op.pad)).collect();
                ids.iter().map(seen).collect()
            }
        };
        let positions = mask.iter().map(|row| row.iter().filter(|&&seen| seen != 0).count() as i32).collect();
        let begin = |i: usize| prompt.begin.as_ref().map_or(op.start, |begin| begin[i / beams]);
        let (sequences, encoded) = match op.encoder {
            Some(_) => {
                let states = Value::Tensor(Tensor::zeros(ElementType::F32, &[0])?);
                let sequences = (0..ids.len()).map(|i| vec![begin(i)]).collect();
                (sequences, Some(Encoded { ids, states, cross: Vec::new() }))
            }
            None => (ids, None),
        };
        let past = Vec::new();
        Ok(Decoder { cx, step, op, bodies, inputs, beams, sequences, mask, positions, past, encoded })
    }

    /// Reads the prompt; the logits behind it.
    pub(super) fn first(&mut self) -> Result<Value> {
        if self.encoded.is_some() {
            return self.encode();
        }
        let positions = self.mask.iter().map(|row| {
            let mut position = 0;
            let next = |&seen: &i32| {
                let at = if seen == 0 { 0 } else { position };
                position += i32::from(seen != 0);
                at
            };
            row.iter().map(next).collect()
        });
        let positions: Vec<Vec<i32>> = positions.collect();
        let (op, bodies) = (self.op, self.bodies);
        let (graph, body) = match (&op.init_decoder, &bodies.init_decoder) {
            (Some(graph), Some(body)) => (graph, body),
            _ => (&op.decoder, &bodies.decoder),
        };
        let past = self.no_past(graph)?;
        let ids = self.sequences.clone();
        self.decode(body, &ids, &positions, past)
    }

    /// Puts the chosen tokens behind the sequences that they continue.
    pub(super) fn append(&mut self, tokens: &[i32], origins: &[usize]) {
        let continued = |(&token, &origin): (&i32, &usize)| {
            let mut sequence = self.sequences[origin].clone();
            sequence.push(token);
            sequence
        };
        self.sequences = tokens.iter().zip(origins).map(continued).collect();
    }

    /// The logits behind the tokens that were appended.
    pub(super) fn next(&mut self, tokens: &[i32], origins: &[usize]) -> Result<Value> {
        let axis = usize::from(self.encoded.is_none());
        let past = std::mem::take(&mut self.past);
        let past: Vec<Value> =
            past.into_iter().map(|value| self.pick(value, origins, axis)).collect::<Result<_>>()?;
        if self.encoded.is_some() {
            return self.decode_behind_encoder(tokens, past);
        }
        self.mask.iter_mut().for_each(|row| row.push(1));
        let positions: Vec<Vec<i32>> = self.positions.iter().map(|&n| vec![n]).collect();
        self.positions.iter_mut().for_each(|n| *n += 1);
        let ids: Vec<Vec<i32>> = tokens.iter().map(|&token| vec![token]).collect();
        let bodies = self.bodies;
        self.decode(&bodies.decoder, &ids, &positions, past)
    }

    fn decode(
        &mut self,
        body: &Body,
        ids: &[Vec<i32>],
        positions: &[Vec<i32>],
        past: Vec<Value>,
    ) -> Result<Value> {
        let mut arguments = vec![matrix(ids)?, matrix(positions)?, matrix(&self.mask)?];
        arguments.extend(past);
        self.call(body, arguments)
    }

    /// Runs a decoder: the logits, while what follows them becomes the past.
    fn call(&mut self, body: &Body, arguments: Vec<Value>) -> Result<Value> {
        let mut outputs = self.run(body, arguments)?.into_iter();
        let logits = outputs.next();
        self.past = outputs.collect();
        logits.ok_or_else(|| wrong(self.step, "its decoder gives no logits"))
    }

    fn run(&self, body: &Body, arguments: Vec<Value>) -> Result<Vec<Value>> {
        let wanted = body.program.inputs.len() - body.program.captures;
        if arguments.len() != wanted {
            let reason = format!("its graph has {wanted} inputs; {} are known", arguments.len());
            return Err(super::unsupported(self.step, &reason));
        }
        call(self.cx, self.step, body, arguments.iter().map(ValueRef::Value).collect(), self.inputs)
    }

    /// Keys and values of nothing, as the graph declares them: `[2, batch, heads, 0, size]`.
    fn no_past(&self, graph: &Graph) -> Result<Vec<Value>> {
        let known = |dim: Option<&Dim>| dim.and_then(Dim::known).and_then(|n| usize::try_from(n).ok());
        let one = |&input: &crate::graph::ValueId| {
            let fact = &graph.value(input).fact;
            let sizes = match fact.shape.as_deref() {
                Some([_, _, heads, _, size]) => known(Some(heads)).zip(known(Some(size))),
                _ => None,
            };
            let Some(((heads, size), ty)) = sizes.zip(fact.element_type()) else {
                let name = &graph.value(input).name;
                let reason =
                    format!("its decoder's input \"{name}\" must be [2, batch, heads, length, size]");
                return Err(wrong(self.step, &reason));
            };
            Ok(Value::Tensor(Tensor::zeros(ty, &[2, self.sequences.len(), heads, 0, size])?))
        };
        graph.inputs.iter().skip(3).map(one).collect()
    }

    /// Runs the encoder over the prompt, and the decoder over its first token.
    fn encode(&mut self) -> Result<Value> {
        let (Some(encoded), Some(body)) = (&self.encoded, &self.bodies.encoder) else {
            return Err(wrong(self.step, "it has no encoder"));
        };
        let once =
            |rows: &[Vec<i32>]| -> Vec<Vec<i32>> { rows.iter().step_by(self.beams).cloned().collect() };
        let arguments =
            vec![matrix(&once(&encoded.ids))?, matrix(&once(&self.mask))?, matrix(&once(&self.sequences))?];
        let outputs = self.run(body, arguments)?;
        if outputs.len() < 2 || outputs.len() % 4 != 2 {
            let reason = "its encoder must give logits, states, and keys and values of both attentions";
            return Err(super::unsupported(self.step, reason));
        }
        let each: Vec<usize> = (0..self.sequences.len()).map(|i| i / self.beams).collect();
        let mut outputs = outputs.into_iter().map(|value| self.pick(value, &each, 0));
        let (logits, states) = (outputs.next().transpose()?, outputs.next().transpose()?);
        let mut past: Vec<Value> = outputs.collect::<Result<_>>()?;
        let cross = past.split_off(past.len() / 2);
        self.past = past;
        if let (Some(encoded), Some(states)) = (&mut self.encoded, states) {
            (encoded.states, encoded.cross) = (states, cross);
        }
        logits.ok_or_else(|| wrong(self.step, "its encoder gives no logits"))
    }

    fn decode_behind_encoder(&mut self, tokens: &[i32], past: Vec<Value>) -> Result<Value> {
        let Some(encoded) = &self.encoded else { return Err(wrong(self.step, "it has no encoder")) };
        let graph = &self.op.decoder;
        let mut states = past.into_iter().chain(encoded.cross.iter().cloned());
        let mut arguments = Vec::with_capacity(graph.inputs.len());
        for (i, &input) in graph.inputs.iter().enumerate() {
            let value = graph.value(input);
            arguments.push(match value.name.as_str() {
                // A decoder that takes one token at a time says so.
                _ if i == 0 => match value.fact.shape.as_deref() {
                    Some([_, one]) if one.known() == Some(1) => {
                        matrix(&tokens.iter().map(|&token| vec![token]).collect::<Vec<_>>())?
                    }
                    _ => matrix(&self.sequences)?,
                },
                "encoder_input_ids" => matrix(&encoded.ids)?,
                "encoder_attention_mask" => matrix(&self.mask)?,
                "encoder_hidden_states" => encoded.states.clone(),
                name => match states.next() {
                    Some(value) => value,
                    None => {
                        let reason = format!("nothing is known for its decoder's input \"{name}\"");
                        return Err(super::unsupported(self.step, &reason));
                    }
                },
            });
        }
        let bodies = self.bodies;
        self.call(&bodies.decoder, arguments)
    }

    /// Rows of a tensor along an axis, one after another.
    fn pick(&self, value: Value, rows: &[usize], axis: usize) -> Result<Value> {
        let Some(tensor) = value.as_tensor() else {
            return Err(wrong(self.step, "its graphs give something else than tensors"));
        };
        let shape = tensor.shape();
        if shape.len() <= axis || rows.iter().any(|&row| row >= shape[axis]) {
            let reason =
                format!("its graphs give a tensor of shape {shape:?}, which has no row for each sequence");
            return Err(wrong(self.step, &reason));
        }
        if shape[axis] == rows.len() && rows.iter().enumerate().all(|(i, &row)| i == row) {
            return Ok(value);
        }
        let inner = shape[axis + 1..].iter().product::<usize>() * tensor.ty().size();
        let outer: usize = shape[..axis].iter().product();
        let mut new = shape.to_vec();
        new[axis] = rows.len();
        let result = Tensor::zeros(tensor.ty(), &new)?;
        if let (Some(to), Some(from)) = (result.buffer(), tensor.buffer()) {
            // SAFETY: the tensor was just made and nothing else holds it.
            let (to, from): (&mut [u8], &[u8]) = (unsafe { to.bytes_mut() }, Buffer::bytes(from));
            for o in 0..outer {
                for (i, &row) in rows.iter().enumerate() {
                    let from = &from[(o * shape[axis] + row) * inner..][..inner];
                    to[(o * rows.len() + i) * inner..][..inner].copy_from_slice(from);
                }
            }
        }
        Ok(Value::Tensor(result))
    }
}

/// Rows of equal length as a tensor.
fn matrix(rows: &[Vec<i32>]) -> Result<Value> {
    let columns = rows.first().map_or(0, Vec::len);
    Ok(Value::Tensor(Tensor::from_slice(&[rows.len(), columns], &rows.concat())?))
}
