//! Text generation: a decoder is run for one token after another (`ops::generation`).

mod beams;
mod decoder;
mod rules;
mod sample;
#[cfg(test)]
mod tests;

use crate::error::{Result, Status};
use crate::ops::generation::{Generation, Places, Strategy};
use crate::plan::{Generator, Step};
use crate::tensor::{ElementType, Tensor, Value, ValueRef, bf16, f16};

use super::control::wrong;
use super::run::RunContext;
use beams::{Beams, Candidate};
use decoder::{Decoder, Prompt};
use rules::Rules;
use sample::Sampler;

/// A node's inputs as numbers.
struct Given<'a> {
    step: &'a Step,
    inputs: &'a [Option<ValueRef<'a>>],
}

impl Given<'_> {
    fn tensor(&self, i: usize) -> Result<Option<Tensor>> {
        let Some(value) = self.inputs.get(i).copied().flatten() else { return Ok(None) };
        Ok(value.to_value()?.as_tensor().cloned())
    }

    fn ints(&self, i: usize) -> Result<Option<Vec<i32>>> {
        let Some(ints) = self.tensor(i)?.and_then(|tensor| tensor.to_ints()) else { return Ok(None) };
        let convert =
            |n| i32::try_from(n).map_err(|_| wrong(self.step, &format!("input {i}: {n} is no int32")));
        ints.into_iter().map(convert).collect::<Result<_>>().map(Some)
    }

    fn count(&self, i: usize, name: &str, least: usize) -> Result<Option<usize>> {
        let Some(&n) = self.ints(i)?.as_ref().and_then(|list| list.first()) else { return Ok(None) };
        match usize::try_from(n).ok().filter(|&n| n >= least) {
            Some(n) => Ok(Some(n)),
            None => Err(wrong(self.step, &format!("input {i} ({name}) is {n}; allowed is {least} or more"))),
        }
    }

    fn required(&self, i: usize, name: &str, least: usize) -> Result<usize> {
        match self.count(i, name, least)? {
            Some(n) => Ok(n),
            None => Err(wrong(self.step, &format!("input {i} ({name}) has no element; it needs one"))),
        }
    }

    fn float(&self, i: Option<usize>, default: f32) -> Result<f32> {
        let Some(tensor) = i.map(|i| self.tensor(i)).transpose()?.flatten() else { return Ok(default) };
        Ok(floats(&tensor).and_then(|list| list.first().copied()).unwrap_or(default))
    }
}

/// The elements of a float tensor.
fn floats(tensor: &Tensor) -> Option<Vec<f32>> {
    let tensor = tensor.aligned().ok()?;
    let view = tensor.view();
    Some(match tensor.ty() {
        ElementType::F32 => view.slice::<f32>().to_vec(),
        ElementType::F16 => view.slice::<f16>().iter().map(|x| x.to_f32()).collect(),
        ElementType::BF16 => view.slice::<bf16>().iter().map(|x| x.to_f32()).collect(),
        _ => return None,
    })
}

/// Floats as a tensor of a float type.
fn tensor_of(ty: ElementType, shape: &[usize], x: &[f32]) -> Result<Tensor> {
    Ok(match ty {
        ElementType::F16 => {
            Tensor::from_slice(shape, &x.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>())?
        }
        ElementType::BF16 => {
            Tensor::from_slice(shape, &x.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>())?
        }
        _ => Tensor::from_slice(shape, x)?,
    })
}

/// The logits of the last position, one row for each sequence, without columns that stand for no token.
fn last_logits(step: &Step, logits: &Value, vocabulary: Option<usize>) -> Result<Vec<Vec<f32>>> {
    let found = logits.as_tensor().and_then(|tensor| match *tensor.shape() {
        [_, n, columns] if n > 0 && columns > 0 => Some((n, columns, floats(tensor)?)),
        _ => None,
    });
    let Some((n, columns, x)) = found else {
        return Err(wrong(
            step,
            "its graph's first output must be logits: floats [batch, length, vocabulary]",
        ));
    };
    let used = vocabulary.unwrap_or(columns);
    if used > columns {
        let reason = format!("vocab_size is {used}, but its logits have {columns} columns");
        return Err(wrong(step, &reason));
    }
    Ok(x.chunks_exact(n * columns).map(|row| row[(n - 1) * columns..][..used].to_vec()).collect())
}

/// How the next tokens are found.
enum Choice {
    Beams(Beams),
    /// Whether each sequence has ended; with a sampler, tokens are drawn.
    One {
        ended: Vec<bool>,
        sampler: Option<Sampler>,
    },
}

/// Runs a node; its graphs' captures stand behind its inputs.
pub(super) fn run(
    cx: RunContext<'_>,
    step: &Step,
    bodies: &Generator,
    inputs: &[Option<ValueRef<'_>>],
) -> Result<Vec<Value>> {
    let Some(op) = step.op.downcast::<Generation>() else { return Err(wrong(step, "it generates nothing")) };
    // Behind the node's own inputs stand what its graphs capture.
    let graphs = [bodies.encoder.as_ref(), bodies.init_decoder.as_ref(), Some(&bodies.decoder)];
    let captures = graphs.into_iter().flatten().flat_map(|body| body.captures.iter().copied());
    let own = captures.min().unwrap_or(inputs.len());
    let given = Given { step, inputs: &inputs[..own] };
    let places = op.places();
    let prompt = given.tensor(Places::PROMPT)?;
    let (Some(ids), Some(&[batch, length])) =
        (given.ints(Places::PROMPT)?, prompt.as_ref().map(Tensor::shape))
    else {
        return Err(wrong(step, "input 0 (input_ids) must be int32 [batch, length]"));
    };
    let max = given.required(Places::MAX_LENGTH, "max_length", 1)?;
    let is_beams = matches!(op.strategy, Strategy::Beams { .. });
    let beams = if is_beams { given.required(Places::BEAMS, "num_beams", 1)? } else { 1 };
    let returned = if is_beams { given.required(Places::RETURNED, "num_return_sequences", 1)? } else { 1 };
    if returned > beams {
        let reason = format!("num_return_sequences is {returned}; allowed are up to num_beams, {beams}");
        return Err(wrong(step, &reason));
    }
    let mask = given.ints(places.attention_mask)?.filter(|mask| mask.len() == ids.len());
    let begin = places.decoder_ids.map(|i| given.ints(i)).transpose()?.flatten();
    let prompt = Prompt { ids: &ids, batch, length, mask, begin: begin.filter(|b| b.len() == batch) };
    let mut decoder = Decoder::new(cx, step, op, bodies, inputs, prompt, beams)?;
    let first = decoder.sequences.first().map_or(0, Vec::len);
    if max <= first {
        let reason = format!("max_length is {max}; allowed is more than the {first} tokens there are");
        return Err(wrong(step, &reason));
    }
    let mut rules = Rules::new(op, &given, batch, beams)?;
    let mut choice = match op.strategy {
        Strategy::Beams { early_stopping } => {
            let penalty = given.float(places.length_penalty, 1.0)?;
            Choice::Beams(Beams::new(batch, beams, penalty, early_stopping, op.eos, op.pad))
        }
        Strategy::Greedy => Choice::One { ended: vec![false; batch], sampler: None },
        Strategy::Sampling { top_p, keep, .. } => {
            let seed = places.seed.map(|i| given.ints(i)).transpose()?.flatten();
            let seed = seed.and_then(|list| list.first().copied()).unwrap_or(0);
            Choice::One { ended: vec![false; batch], sampler: Some(Sampler::new(seed, top_p, keep)) }
        }
    };
    let mut history = Vec::new();
    let mut logits = decoder.first()?;
    loop {
        let mut scores = last_logits(step, &logits, op.vocabulary)?;
        if let Choice::Beams(_) = choice {
            scores.iter_mut().for_each(|row| log_softmax(row));
        }
        rules.apply(&decoder.sequences, &mut scores);
        let (tokens, origins, done) = match &mut choice {
            Choice::Beams(beams) => {
                beams.add_scores(&mut scores);
                if step.outputs.get(2).is_some_and(Option::is_some) {
                    history.extend(scores.iter().flatten());
                }
                let done = beams.advance(&scores, &decoder.sequences);
                (beams.tokens.clone(), beams.origins.clone(), done)
            }
            Choice::One { ended, sampler } => {
                let tokens = next_tokens(&scores, ended, sampler, op);
                (tokens, (0..batch).collect(), ended.iter().all(|&ended| ended))
            }
        };
        decoder.append(&tokens, &origins);
        if done || decoder.sequences.first().is_none_or(|s| s.len() >= max) {
            break;
        }
        logits = decoder.next(&tokens, &origins)?;
    }
    let mut results = Vec::new();
    match choice {
        Choice::One { .. } => {
            let padded = decoder.sequences.iter().flat_map(|s| padded(s, max, op.pad));
            results.push(Tensor::from_slice(&[batch, max], &padded.collect::<Vec<i32>>())?);
        }
        Choice::Beams(found) => {
            let best: Vec<Candidate> = found.finish(&decoder.sequences, returned);
            let padded = best.iter().flat_map(|c| padded(&c.tokens, max, op.pad));
            results.push(Tensor::from_slice(&[batch, returned, max], &padded.collect::<Vec<i32>>())?);
            let ty = [Some(5), Some(places.repetition_penalty)].into_iter().flatten().find_map(|i| {
                given.inputs.get(i).copied().flatten().and_then(ValueRef::ty).filter(|ty| ty.is_float())
            });
            let ty = ty.unwrap_or(ElementType::F32);
            let scores: Vec<f32> = best.iter().map(|c| c.score).collect();
            results.push(tensor_of(ty, &[batch, returned], &scores)?);
            let vocabulary = history.len() / (batch * beams * (max - first)).max(1);
            let columns = op.vocabulary.unwrap_or(vocabulary.max(1));
            let steps = max - first;
            history.resize(steps * batch * beams * columns, 0.0);
            results.push(tensor_of(ty, &[steps, batch, beams, columns], &history)?);
        }
    }
    results.truncate(step.outputs.len());
    Ok(results.into_iter().map(Value::Tensor).collect())
}

/// The token of each sequence that is chosen by itself; one that has ended goes on with padding.
fn next_tokens(
    scores: &[Vec<f32>],
    ended: &mut [bool],
    sampler: &mut Option<Sampler>,
    op: &Generation,
) -> Vec<i32> {
    let one = |(row, ended): (&Vec<f32>, &mut bool)| {
        let token = match sampler {
            Some(sampler) => sampler.draw(row),
            None => largest(row),
        };
        *ended |= token as i32 == op.eos;
        if *ended { op.pad } else { token as i32 }
    };
    scores.iter().zip(ended).map(one).collect()
}

/// The index of the first largest.
fn largest(row: &[f32]) -> usize {
    let better = |best: usize, i: usize| if row[i] > row[best] { i } else { best };
    (0..row.len()).fold(0, better)
}

fn padded(tokens: &[i32], length: usize, pad: i32) -> impl Iterator<Item = i32> + '_ {
    tokens.iter().copied().chain(std::iter::repeat(pad)).take(length)
}

fn log_softmax(row: &mut [f32]) {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = row.iter().map(|x| (x - max).exp()).sum();
    let log = sum.ln() + max;
    row.iter_mut().for_each(|x| *x -= log);
}

/// The error for a model that the session cannot run.
fn unsupported(step: &Step, reason: &str) -> crate::error::Error {
    let error = wrong(step, reason);
    crate::error::Error::new(Status::Unsupported, error.message)
}
