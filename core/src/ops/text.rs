//! Operators on strings.

use std::sync::Arc;

use crate::graph::Dim;

use super::{Declaration, Infer, OpError, Operator};

/// Removes stop words and changes case.
#[derive(Clone, Debug, PartialEq)]
pub struct StringNormalizer {
    pub case: Case,
    pub case_sensitive: bool,
    pub stop_words: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Keep,
    Lower,
    Upper,
}

impl Operator for StringNormalizer {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        match cx.shape(0) {
            Some([_]) => cx.set_rank(0, 1),
            Some([one, _]) if one.known().is_none_or(|n| n == 1) => {
                let count = cx.unknown();
                cx.set_shape(0, vec![Dim::Known(1), count]);
            }
            Some(shape) => {
                return Err(cx.input_error(0, format!("its shape is {shape:?}; allowed are [C] and [1, C]")));
            }
            None => {}
        }
        Ok(())
    }
}

/// Joins strings elementwise.
#[derive(Clone, Debug, PartialEq)]
pub struct StringConcat;

impl Operator for StringConcat {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(shape) = cx.broadcast_inputs(&[0, 1])? {
            cx.set_shape(0, shape);
        }
        Ok(())
    }
}

/// Cuts strings at a delimiter into a new last axis, padded with empty strings; the second output
/// counts the parts.
#[derive(Clone, Debug, PartialEq)]
pub struct StringSplit {
    /// Empty: runs of white space.
    pub delimiter: String,
    /// How often to cut at most.
    pub max_split: Option<usize>,
}

impl Operator for StringSplit {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        let count = cx.unknown();
        cx.set_shape(0, [shape, &[count]].concat());
        cx.set_shape(1, shape.to_vec());
        Ok(())
    }
}

/// Whether each string matches a pattern as a whole.
#[derive(Clone, Debug)]
pub struct RegexFullMatch {
    pub regex: regex::Regex,
}

impl Operator for RegexFullMatch {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(shape) = cx.shape(0) {
            cx.set_shape(0, shape.to_vec());
        }
        Ok(())
    }
}
pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("StringNormalizer", &[10], "X:string -> Y:string", &[], |a| {
        let cases = [("NONE", Case::Keep), ("LOWER", Case::Lower), ("UPPER", Case::Upper)];
        // Case is changed by Unicode's rules, which no locale alters here.
        a.ignore("locale");
        Ok(Arc::new(StringNormalizer {
            case: a.choice("case_change_action", "NONE", &cases)?,
            case_sensitive: a.flag("is_case_sensitive", false)?,
            stop_words: a.strings("stopwords")?.unwrap_or_default().into_iter().map(str::to_owned).collect(),
        }))
    })
    .data_dependent(),
    Declaration::new("StringConcat", &[20], "X:string, Y:string -> Z:string", &[], |_| {
        Ok(Arc::new(StringConcat))
    }),
    Declaration::new("StringSplit", &[20], "X:string -> Y:string, Z:int64", &[], |a| {
        let max_split = a
            .optional_int("maxsplit")?
            .map(|n| {
                let negative =
                    || OpError::attribute("maxsplit", format!("{n} is negative; allowed are 0 and above"));
                usize::try_from(n).map_err(|_| negative())
            })
            .transpose()?;
        Ok(Arc::new(StringSplit { delimiter: a.string("delimiter", "")?.to_owned(), max_split }))
    })
    .data_dependent(),
    Declaration::new("RegexFullMatch", &[20], "X:string -> Y:bool", &[], |a| {
        let pattern = a.string("pattern", "")?;
        let regex = regex::Regex::new(&format!("^(?:{pattern})$")).map_err(|e| {
            OpError::attribute("pattern", format!("\"{pattern}\" is no regular expression: {e}"))
        })?;
        Ok(Arc::new(RegexFullMatch { regex }))
    }),
];
