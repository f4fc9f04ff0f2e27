//! Cutting strings into tokens (domain com.microsoft).

use std::sync::Arc;

use regex::Regex;

use super::{AttributeReader, Declaration, Infer, OpError, Operator};

/// Cuts strings into tokens, in a new last axis, padded to the longest.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    /// Whether a character stands before and behind the tokens of each string.
    pub mark: bool,
    pub pad: String,
    /// The characters that a token has at least.
    pub least: usize,
    pub tokens: Tokens,
}

/// What a token is.
#[derive(Clone, Debug)]
pub enum Tokens {
    Characters,
    /// What is between matches: of the first expression, then within each part of the next.
    Between(Vec<Regex>),
    Matches(Regex),
}

impl Operator for Tokenizer {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        if !matches!(shape.len(), 1 | 2) {
            return Err(cx.input_error(0, format!("its shape is {shape:?}; allowed are [C] and [N, C]")));
        }
        let count = cx.unknown();
        cx.set_shape(0, [shape, &[count]].concat());
        Ok(())
    }
}

fn read(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let least = a.required_int("mincharnum")?;
    let least = usize::try_from(least).ok().filter(|&n| n > 0).ok_or_else(|| {
        OpError::attribute("mincharnum", format!("{least} is not allowed; allowed are numbers above 0"))
    })?;
    let expression = |name: &str, text: &str| {
        Regex::new(text)
            .map_err(|e| OpError::attribute(name, format!("\"{text}\" is no regular expression: {e}")))
    };
    let separators = a.strings("separators")?.unwrap_or_default();
    let tokens = match (&separators[..], a.string("tokenexp", "")?) {
        ([""], _) | ([], ".") => Tokens::Characters,
        ([], "") => {
            return Err(OpError::attribute("tokenexp", "neither it nor \"separators\" is given".to_owned()));
        }
        ([], text) => Tokens::Matches(expression("tokenexp", text)?),
        (texts, _) => {
            let parts = texts.iter().map(|text| expression("separators", text)).collect::<Result<_, _>>()?;
            Tokens::Between(parts)
        }
    };
    if matches!(tokens, Tokens::Characters) && least > 1 {
        let reason = format!("{least} is not allowed where each character is a token; allowed is 1");
        return Err(OpError::attribute("mincharnum", reason));
    }
    Ok(Arc::new(Tokenizer {
        mark: a.flag("mark", false)?,
        pad: a.string("pad_value", "")?.to_owned(),
        least,
        tokens,
    }))
}

pub(super) const DECLARATIONS: &[Declaration] =
    &[Declaration::new("Tokenizer", &[1], "X:string -> Y:string", &[], read)
        .domain("com.microsoft")
        .data_dependent()];
