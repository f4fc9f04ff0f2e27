//! What a model is told about its next tokens: scores change, or become the lowest there are.

use crate::error::Result;
use crate::ops::generation::{Generation, Places, Strategy};

use super::Given;

const NEVER: f32 = f32::MIN;

pub(super) struct Rules {
    repetition: f32,
    ngram: usize,
    /// Zero for tokens that never come.
    vocab_mask: Option<Vec<i32>>,
    /// The same for the first token, for each sample; taken when it was used.
    prefix_mask: Option<Vec<i32>>,
    min_length: usize,
    eos: i32,
    temperature: f32,
    /// Taken off tokens by their mask.
    presence: Option<(f32, Vec<i32>)>,
    beams: usize,
    batch: usize,
}

impl Rules {
    pub(super) fn new(op: &Generation, given: &Given<'_>, batch: usize, beams: usize) -> Result<Self> {
        let places = op.places();
        let (temperature, penalty) = match op.strategy {
            Strategy::Sampling { temperature, presence_penalty, .. } => (temperature, presence_penalty),
            _ => (1.0, 0.0),
        };
        let presence = places.presence_mask.map(|i| given.ints(i)).transpose()?.flatten();
        Ok(Rules {
            repetition: given.float(Some(places.repetition_penalty), 1.0)?,
            ngram: op.ngram,
            vocab_mask: given.ints(places.vocab_mask)?,
            prefix_mask: given.ints(places.prefix_vocab_mask)?,
            min_length: given.count(Places::MIN_LENGTH, "min_length", 0)?.unwrap_or(0),
            eos: op.eos,
            temperature: if temperature > 0.0 { temperature } else { 1.0 },
            presence: presence.filter(|_| penalty > 0.0).map(|mask| (penalty, mask)),
            beams,
            batch,
        })
    }

    /// Changes the scores of the tokens that may follow each sequence.
    pub(super) fn apply(&mut self, sequences: &[Vec<i32>], scores: &mut [Vec<f32>]) {
        let prefix = self.prefix_mask.take();
        for (i, (row, tokens)) in scores.iter_mut().zip(sequences).enumerate() {
            self.repeat_less(tokens, row);
            self.ban_ngrams(tokens, row);
            let hide = |row: &mut [f32], mask: &[i32]| {
                row.iter_mut().zip(mask).filter(|(_, mask)| **mask == 0).for_each(|(x, _)| *x = NEVER);
            };
            if let Some(mask) = &self.vocab_mask {
                hide(row, mask);
            }
            let part = |mask: &[i32]| {
                let size = mask.len() / self.batch.max(1);
                i / self.beams * size..(i / self.beams + 1) * size
            };
            if let Some(mask) = &prefix {
                hide(row, &mask[part(mask)]);
            }
            if tokens.len() < self.min_length
                && let Some(x) = usize::try_from(self.eos).ok().and_then(|eos| row.get_mut(eos))
            {
                *x = NEVER;
            }
            if self.temperature != 1.0 {
                row.iter_mut().for_each(|x| *x /= self.temperature);
            }
            if let Some((penalty, mask)) = &self.presence {
                row.iter_mut().zip(&mask[part(mask)]).for_each(|(x, &mask)| *x -= mask as f32 * penalty);
            }
        }
    }

    fn repeat_less(&self, tokens: &[i32], row: &mut [f32]) {
        if self.repetition == 1.0 {
            return;
        }
        let mut seen = tokens.to_vec();
        seen.sort_unstable();
        seen.dedup();
        for token in seen {
            if let Some(x) = usize::try_from(token).ok().and_then(|token| row.get_mut(token)) {
                *x = if *x < 0.0 { *x * self.repetition } else { *x / self.repetition };
            }
        }
    }

    fn ban_ngrams(&self, tokens: &[i32], row: &mut [f32]) {
        if self.ngram == 0 || tokens.len() < self.ngram {
            return;
        }
        let begin = &tokens[tokens.len() - (self.ngram - 1)..];
        for window in tokens.windows(self.ngram) {
            let (&last, before) = window.split_last().unwrap_or((&0, &[]));
            if before == begin
                && let Some(x) = usize::try_from(last).ok().and_then(|token| row.get_mut(token))
            {
                *x = NEVER;
            }
        }
    }
}
