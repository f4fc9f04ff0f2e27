//! Operators on strings, and counting n-grams.

use std::sync::Arc;

use crate::graph::Dim;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// Removes stop words and changes case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StringNormalizer {
    pub(crate) case: Case,
    pub(crate) case_sensitive: bool,
    pub(crate) stop_words: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
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
pub(crate) struct StringConcat;

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
pub(crate) struct StringSplit {
    /// Empty: runs of white space.
    pub(crate) delimiter: String,
    /// How often to cut at most.
    pub(crate) max_split: Option<usize>,
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
pub(crate) struct RegexFullMatch {
    pub(crate) regex: regex::Regex,
}

impl Operator for RegexFullMatch {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(shape) = cx.shape(0) {
            cx.set_shape(0, shape.to_vec());
        }
        Ok(())
    }
}

/// Counts n-grams of a pool in each row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TfIdfVectorizer {
    pub(crate) max_skip: usize,
    pub(crate) min_length: usize,
    pub(crate) max_length: usize,
    pub(crate) mode: TfIdfMode,
    pub(crate) pool: NGrams,
    /// The output column of each n-gram.
    pub(crate) columns: Vec<usize>,
    /// One for each column; empty: all ones.
    pub(crate) weights: Vec<f32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TfIdfMode {
    /// How often an n-gram occurs.
    Count,
    /// Its weight when it occurs.
    Weight,
    /// Weight times count.
    Product,
}

/// The n-grams that are counted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NGrams {
    Ints(Vec<Vec<i64>>),
    Strings(Vec<Vec<String>>),
}

impl TfIdfVectorizer {
    /// The number of columns of the output.
    pub(crate) fn width(&self) -> usize {
        self.columns.iter().max().map_or(0, |m| m + 1)
    }
}

impl Operator for TfIdfVectorizer {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        match shape {
            [] | [_] => cx.set_shape(0, vec![self.width().into()]),
            [rows, _] => cx.set_shape(0, vec![rows.clone(), self.width().into()]),
            _ => return Err(cx.input_error(0, format!("its shape is {shape:?}; allowed are [C] and [B, C]"))),
        }
        Ok(())
    }
}

fn tf_idf(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let size = |name: &str, least: i64| {
        let n = a.required_int(name)?;
        usize::try_from(n)
            .ok()
            .filter(|_| n >= least)
            .ok_or_else(|| OpError::attribute(name, format!("{n}; allowed are {least} and above")))
    };
    let (min_length, max_length) = (size("min_gram_length", 1)?, size("max_gram_length", 1)?);
    if max_length < min_length {
        let reason = format!("{max_length} is less than min_gram_length, {min_length}");
        return Err(OpError::attribute("max_gram_length", reason));
    }
    let required = |name: &str| OpError::attribute(name, "it is required, and missing");
    let counts = a.ints("ngram_counts")?.ok_or_else(|| required("ngram_counts"))?;
    let columns = a.ints("ngram_indexes")?.ok_or_else(|| required("ngram_indexes"))?;
    let columns: Vec<usize> = columns
        .iter()
        .map(|&c| {
            let negative = || OpError::attribute("ngram_indexes", format!("{c} is no column"));
            usize::try_from(c).map_err(|_| negative())
        })
        .collect::<Result<_, _>>()?;
    let pool = match (a.ints("pool_int64s")?, a.strings("pool_strings")?) {
        (Some(ints), None) => NGrams::Ints(cut(ints, counts)?),
        (None, Some(strings)) => {
            let strings: Vec<String> = strings.into_iter().map(str::to_owned).collect();
            NGrams::Strings(cut(&strings, counts)?)
        }
        _ => return Err(OpError::attribute("pool_int64s", "either it or pool_strings must be given")),
    };
    let grams = match &pool {
        NGrams::Ints(g) => g.len(),
        NGrams::Strings(g) => g.len(),
    };
    if grams != columns.len() {
        let reason = format!("it has {} columns for {grams} n-grams", columns.len());
        return Err(OpError::attribute("ngram_indexes", reason));
    }
    let modes = [("TF", TfIdfMode::Count), ("IDF", TfIdfMode::Weight), ("TFIDF", TfIdfMode::Product)];
    let op = TfIdfVectorizer {
        max_skip: size("max_skip_count", 0)?,
        min_length,
        max_length,
        mode: a.choice("mode", "", &modes)?,
        pool,
        columns,
        weights: Vec::new(),
    };
    // The weights are given for n-grams, in the pool's order; columns need them.
    let mut weights = Vec::new();
    if let Some(given) = a.floats("weights")? {
        if given.len() != op.columns.len() {
            let reason = format!("it has {} numbers for {} n-grams", given.len(), op.columns.len());
            return Err(OpError::attribute("weights", reason));
        }
        weights = vec![0.0; op.width()];
        op.columns.iter().zip(given).for_each(|(&c, &w)| weights[c] = w);
    }
    Ok(Arc::new(TfIdfVectorizer { weights, ..op }))
}

/// The pool's n-grams: first those of one item, from `counts[0]`, then those of two, and so on.
fn cut<T: Clone>(pool: &[T], counts: &[i64]) -> Result<Vec<Vec<T>>, OpError> {
    let wrong = || {
        OpError::attribute("ngram_counts", format!("{counts:?} does not cut a pool of {} items", pool.len()))
    };
    let mut grams = Vec::new();
    for (i, &start) in counts.iter().enumerate() {
        let start = usize::try_from(start).map_err(|_| wrong())?;
        let end = match counts.get(i + 1) {
            Some(&end) => usize::try_from(end).map_err(|_| wrong())?,
            None => pool.len(),
        };
        let part = pool.get(start..end).ok_or_else(wrong)?;
        if !part.len().is_multiple_of(i + 1) {
            return Err(wrong());
        }
        grams.extend(part.chunks(i + 1).map(<[T]>::to_vec));
    }
    Ok(grams)
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
    Declaration::new(
        "TfIdfVectorizer",
        &[9],
        "X:T -> Y:float",
        &[("T", Types::STRING.and(Types::INDEX))],
        tf_idf,
    ),
];
