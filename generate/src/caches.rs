//! The caches of keys and values of some sequences, and the runs that extend them.
//!
//! Where the model's attention writes into the buffer it reads (GroupQueryAttention), each cache is one buffer of the
//! greatest length, bound as input and output. Else the output of a run, past and new keys in one tensor, is the
//! input of the next.

use std::sync::Arc;

use rukh_client::{Binding, Element, Port, Value};

use crate::error::{Result, fail};
use crate::model::Model;

pub(crate) struct Caches {
    model: Arc<Model>,
    sequences: usize,
    shared: bool,
    /// Tokens of each sequence that are in the caches.
    length: usize,
    /// Tokens that buffers on a device have room for; 0 for others.
    room: usize,
    /// For runs with scores of several tokens, of one token, and without scores; made when first needed.
    bindings: [Option<Binding>; 3],
    buffers: Vec<Value>,
    /// The scores of runs of one token.
    scores: Option<Value>,
}

/// Which scores a run computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scores {
    /// Of all of its tokens; only those of the last are taken.
    Several = 0,
    /// Of its only token.
    One = 1,
    None = 2,
}

impl Caches {
    pub(crate) fn new(
        model: &Arc<Model>,
        sequences: usize,
        max_length: usize,
        share: Option<bool>,
    ) -> Result<Caches> {
        let shared = share.unwrap_or(model.folder.search.past_present_share_buffer) && model.shareable;
        if share == Some(true) && !shared {
            fail!(
                Unsupported,
                "option \"share_buffer\": the model's attention cannot write into the buffer it reads; only GroupQueryAttention can"
            );
        }
        let decoder = &model.folder.model.decoder;
        let length = if shared { max_length } else { 0 };
        let shape = [sequences, decoder.num_key_value_heads, length, model.cache_columns].map(|n| n as i64);
        let environment = &model.environment;
        let buffer = |_| match model.device.filter(|_| shared) {
            Some(device) => Value::device(environment, device, model.cache_element, &shape),
            None => Value::host(model.cache_element, &shape),
        };
        let buffers = model.caches.iter().map(buffer).collect::<Result<_>>()?;
        let on_device = shared && model.device.is_some();
        let model = model.clone();
        Ok(Caches {
            model,
            sequences,
            shared,
            length: 0,
            room: if on_device { length } else { 0 },
            bindings: [None, None, None],
            buffers,
            scores: None,
        })
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Keeps the first `length` tokens, or none where the caches cannot be cut: those are then run again.
    pub(crate) fn truncate(&mut self, length: usize) -> Result<()> {
        if length >= self.length {
            return Ok(());
        }
        if self.shared {
            self.length = length;
            return Ok(());
        }
        *self = Caches::new(&self.model, self.sequences, 0, Some(false))?;
        Ok(())
    }

    /// Runs the model over the next tokens of each sequence, one row of them a sequence. Returns the scores after the
    /// last token, one row of the vocabulary a sequence, unless none are wanted.
    pub(crate) fn extend(&mut self, rows: &[&[u32]], scores: Scores) -> Result<Option<Vec<f32>>> {
        let count = rows.first().map_or(0, |row| row.len());
        let mut binding = match self.bindings[scores as usize].take() {
            Some(binding) => binding,
            None => self.bind(scores)?,
        };
        let result = self.run(&mut binding, rows, count, scores);
        self.bindings[scores as usize] = Some(binding);
        if result.is_ok() {
            self.length += count;
        }
        result
    }

    fn run(
        &mut self,
        binding: &mut Binding,
        rows: &[&[u32]],
        count: usize,
        scores: Scores,
    ) -> Result<Option<Vec<f32>>> {
        let model = &*self.model;
        let (total, shape) = (self.length + count, [self.sequences as i64, count as i64]);
        let ids: Vec<i64> = rows.iter().copied().flatten().map(|token| i64::from(*token)).collect();
        let element = |port: &Port| port.element.unwrap_or(Element::I64);
        binding.input(&model.ids.name, &integers(element(&model.ids), &shape, &ids)?)?;
        if let Some(mask) = &model.mask {
            // On a device a mask of one width makes all steps of one token the same recorded work.
            let width = if count == 1 { self.room.max(total) } else { total };
            let row = (0..width).map(|at| i64::from(at < total)).collect::<Vec<_>>();
            let shape = [self.sequences as i64, width as i64];
            binding.input(&mask.name, &integers(element(mask), &shape, &row.repeat(self.sequences))?)?;
        }
        if let Some(port) = &model.positions {
            let each: Vec<i64> = (self.length as i64..total as i64).collect();
            let positions = each.repeat(self.sequences);
            binding.input(&port.name, &integers(element(port), &shape, &positions)?)?;
        }
        if !self.shared {
            for (cache, past) in model.caches.iter().zip(&self.buffers) {
                binding.input(&cache.past, past)?;
            }
        }
        binding.run(None)?;
        if !self.shared {
            let presents = model.caches.iter().map(|cache| binding.result(&cache.present));
            self.buffers = presents.collect::<Result<_>>()?;
        }
        if scores == Scores::None {
            return Ok(None);
        }
        let result = binding.result(&model.logits.name)?;
        let element = model.logits.element.unwrap_or(Element::F32);
        last_rows(result.bytes()?, element, self.sequences, model.folder.model.vocab_size).map(Some)
    }

    /// A binding whose caches are bound once and for all where they are buffers.
    fn bind(&mut self, scores: Scores) -> Result<Binding> {
        let model = &*self.model;
        let mut binding = Binding::new(&model.session)?;
        for (cache, buffer) in model.caches.iter().zip(&self.buffers) {
            if self.shared {
                binding.input(&cache.past, buffer)?;
                // SAFETY: nobody reads the buffers of caches but runs.
                unsafe { binding.output(&cache.present, buffer)? };
            } else {
                binding.output_allocated(&cache.present)?;
            }
        }
        match scores {
            Scores::None => {}
            Scores::Several => binding.output_allocated(&model.logits.name)?,
            Scores::One => {
                let shape = [self.sequences as i64, 1, model.folder.model.vocab_size as i64];
                let value = Value::host(model.logits.element.unwrap_or(Element::F32), &shape)?;
                // SAFETY: the scores are read between runs, through the result of the last one.
                unsafe { binding.output(&model.logits.name, &value)? };
                self.scores = Some(value);
            }
        }
        Ok(binding)
    }
}

/// A tensor of integers, of i64 or i32.
fn integers(element: Element, shape: &[i64], numbers: &[i64]) -> Result<Value> {
    let size = element.size().unwrap_or(8);
    Value::written(element, shape, |bytes| {
        for (place, number) in bytes.chunks_exact_mut(size).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes()[..size]);
        }
    })
}

/// The last row of each sequence's scores, as f32.
fn last_rows(bytes: &[u8], element: Element, sequences: usize, vocabulary: usize) -> Result<Vec<f32>> {
    let row = vocabulary * element.size().unwrap_or(1);
    let each = bytes.len() / sequences;
    if each < row || !each.is_multiple_of(row) || each * sequences != bytes.len() {
        fail!(
            InvalidModel,
            "the model's scores have {} bytes, which are no rows of {vocabulary} tokens (genai_config.json: model.vocab_size)",
            bytes.len()
        );
    }
    let rows = bytes.chunks_exact(each).map(|sequence| &sequence[each - row..]);
    let half = |b: &[u8]| u16::from_le_bytes([b[0], b[1]]);
    let decode = |bytes: &[u8]| -> Vec<f32> {
        match element {
            Element::F16 => bytes.chunks_exact(2).map(|b| half::f16::from_bits(half(b)).to_f32()).collect(),
            Element::Bf16 => bytes.chunks_exact(2).map(|b| half::bf16::from_bits(half(b)).to_f32()).collect(),
            _ => bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        }
    };
    Ok(rows.flat_map(decode).collect())
}
