//! Text generation (domain com.microsoft): a decoder is run token by token. The session runs its graphs.

use std::sync::Arc;

use crate::graph::{Dim, Graph};
use crate::tensor::ElementType;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// Continues each prompt up to a length, or until it ends by itself.
#[derive(Debug)]
pub struct Generation {
    pub strategy: Strategy,
    /// Reads the prompt, where the decoder only reads what was generated.
    pub encoder: Option<Arc<Graph>>,
    /// The decoder for the prompt, where it is another.
    pub init_decoder: Option<Arc<Graph>>,
    pub decoder: Arc<Graph>,
    /// Ends a sequence; negative where nothing does.
    pub eos: i32,
    /// Fills up what is shorter, and is not attended to.
    pub pad: i32,
    /// What a decoder behind an encoder begins with.
    pub start: i32,
    /// No sequence of so many tokens may occur twice; 0: any may.
    pub ngram: usize,
    /// Tokens there are, where logits have more columns.
    pub vocabulary: Option<usize>,
}

/// How the next token is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Strategy {
    /// The best of several sequences at once.
    Beams { early_stopping: bool },
    /// The likeliest.
    Greedy,
    /// At random, among the likeliest whose probabilities come to `top_p`.
    Sampling { temperature: f32, top_p: f32, keep: usize, presence_penalty: f32 },
}

/// Where the inputs stand; `None` for those that an operator has not.
pub struct Places {
    pub length_penalty: Option<usize>,
    pub repetition_penalty: usize,
    pub vocab_mask: usize,
    pub prefix_vocab_mask: usize,
    pub attention_mask: usize,
    pub decoder_ids: Option<usize>,
    pub presence_mask: Option<usize>,
    pub seed: Option<usize>,
}

impl Places {
    pub const PROMPT: usize = 0;
    pub const MAX_LENGTH: usize = 1;
    pub const MIN_LENGTH: usize = 2;
    /// Only with beams.
    pub const BEAMS: usize = 3;
    pub const RETURNED: usize = 4;
}

impl Generation {
    pub fn places(&self) -> Places {
        let beams = matches!(self.strategy, Strategy::Beams { .. });
        let sampling = matches!(self.strategy, Strategy::Sampling { .. });
        let first = if beams { 6 } else { 3 };
        Places {
            length_penalty: beams.then_some(5),
            repetition_penalty: first,
            vocab_mask: first + 1,
            prefix_vocab_mask: first + 2,
            attention_mask: first + 3,
            decoder_ids: beams.then_some(first + 4),
            presence_mask: sampling.then_some(first + 4),
            seed: sampling.then_some(first + 5),
        }
    }

    fn parse(a: &AttributeReader<'_>, strategy: Strategy) -> Result<Arc<dyn Operator>, OpError> {
        let encoder = a.optional_graph("encoder")?.cloned();
        match (a.int("model_type", 0)?, &encoder) {
            (0, _) | (1, Some(_)) => {}
            (1, None) => {
                return Err(OpError::attribute("encoder", "model_type 1 needs it, and it is missing"));
            }
            (model, _) => {
                let reason = format!(
                    "{model} is not supported; supported are 0 (decoder) and 1 (encoder and decoder)"
                );
                return Err(OpError::attribute("model_type", reason));
            }
        }
        let token = |name: &str, default: Option<i64>| -> Result<i32, OpError> {
            let given = match default {
                Some(default) => a.int(name, default)?,
                None => a.required_int(name)?,
            };
            i32::try_from(given).map_err(|_| OpError::attribute(name, format!("{given} is no int32")))
        };
        for name in ["decoder_output_cross_qk", "no_speech_token_id", "translate_token_id"] {
            a.ignore(name);
        }
        for name in ["transcribe_token_id", "start_of_lm_token_id", "no_timestamps_token_id"] {
            a.ignore(name);
        }
        a.ignore("beginning_timestamp_token_id");
        let decoder = a.graph("decoder")?.clone();
        if decoder.inputs.is_empty() || decoder.outputs.is_empty() {
            return Err(OpError::attribute("decoder", "its graph has no input or no output"));
        }
        Ok(Arc::new(Generation {
            strategy,
            encoder: if a.int("model_type", 0)? == 1 { encoder } else { None },
            init_decoder: a.optional_graph("init_decoder")?.cloned(),
            decoder,
            eos: token("eos_token_id", None)?,
            pad: token("pad_token_id", None)?,
            start: token("decoder_start_token_id", Some(-1))?,
            ngram: usize::try_from(a.int("no_repeat_ngram_size", 0)?).unwrap_or(0),
            vocabulary: usize::try_from(a.int("vocab_size", -1)?).ok().filter(|&n| n > 0),
        }))
    }
}

impl Operator for Generation {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let beams = matches!(self.strategy, Strategy::Beams { .. });
        let scores = (Places::RETURNED + 1..Places::RETURNED + 3).find_map(|i| cx.element_type(i));
        for i in 1..cx.output_count().min(3) {
            cx.set_element_type(i, scores.filter(|ty| beams && ty.is_float()).unwrap_or(ElementType::F32));
        }
        let Some([batch, _]) = cx.shape_of_rank(Places::PROMPT, 2)? else { return Ok(()) };
        let number = |cx: &mut Infer<'_>, i| match cx.known_ints(i).as_deref() {
            Some([n]) => Dim::Known(*n),
            _ => cx.unknown(),
        };
        let batch = batch.clone();
        let length = number(cx, Places::MAX_LENGTH);
        if !beams {
            cx.set_shape(0, vec![batch, length]);
            return Ok(());
        }
        let returned = number(cx, Places::RETURNED);
        cx.set_shape(0, vec![batch.clone(), returned.clone(), length]);
        cx.set_shape(1, vec![batch, returned]);
        Ok(())
    }
}

const TYPES: &[(&str, Types)] = &[("T", Types::FLOAT)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "BeamSearch",
        &[1],
        "input_ids:int32, max_length:int32, min_length?:int32, num_beams:int32, num_return_sequences:int32, \
         length_penalty?:T, repetition_penalty?:T, vocab_mask?:int32, prefix_vocab_mask?:int32, \
         attention_mask?:int32, decoder_input_ids?:int32 \
         -> sequences:int32, sequences_scores?:any, scores?:any",
        TYPES,
        |a| {
            let early_stopping = a.flag("early_stopping", false)?;
            Generation::parse(a, Strategy::Beams { early_stopping })
        },
    )
    .domain("com.microsoft")
    .data_dependent(),
    Declaration::new(
        "GreedySearch",
        &[1],
        "input_ids:int32, max_length:int32, min_length?:int32, repetition_penalty?:T, vocab_mask?:int32, \
         prefix_vocab_mask?:int32, attention_mask?:int32 -> sequences:int32",
        TYPES,
        |a| Generation::parse(a, Strategy::Greedy),
    )
    .domain("com.microsoft")
    .data_dependent(),
    Declaration::new(
        "Sampling",
        &[1],
        "input_ids:int32, max_length:int32, min_length?:int32, repetition_penalty?:T, vocab_mask?:int32, \
         prefix_vocab_mask?:int32, attention_mask?:int32, presence_mask?:int32, seed?:int32 -> sequences:int32",
        TYPES,
        |a| {
            for name in ["filter_value", "custom"] {
                // What is left out has no probability, whichever number stands for it.
                a.ignore(name);
            }
            Generation::parse(
                a,
                Strategy::Sampling {
                    temperature: a.float("temperature", 1.0)?,
                    top_p: a.float("top_p", 0.0)?,
                    keep: usize::try_from(a.int("min_tokens_to_keep", 0)?).unwrap_or(0),
                    presence_penalty: a.float("presence_penalty", 0.0)?,
                },
            )
        },
    )
    .domain("com.microsoft")
    .data_dependent(),
];
