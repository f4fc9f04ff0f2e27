//! Counting n-grams: TfIdfVectorizer.

use std::sync::Arc;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// Counts n-grams of a pool in each row.
#[derive(Clone, Debug, PartialEq)]
pub struct TfIdfVectorizer {
    pub max_skip: usize,
    pub min_length: usize,
    pub max_length: usize,
    pub mode: TfIdfMode,
    pub pool: NGrams,
    /// The output column of each n-gram.
    pub columns: Vec<usize>,
    /// One for each column; empty: all ones.
    pub weights: Vec<f32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TfIdfMode {
    /// How often an n-gram occurs.
    Count,
    /// Its weight when it occurs.
    Weight,
    /// Weight times count.
    Product,
}

/// The n-grams that are counted.
#[derive(Clone, Debug, PartialEq)]
pub enum NGrams {
    Ints(Vec<Vec<i64>>),
    Strings(Vec<Vec<String>>),
}

impl TfIdfVectorizer {
    /// The number of columns of the output.
    pub fn width(&self) -> usize {
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

pub(super) const DECLARATIONS: &[Declaration] = &[Declaration::new(
    "TfIdfVectorizer",
    &[9],
    "X:T -> Y:float",
    &[("T", Types::STRING.and(Types::INDEX))],
    tf_idf,
)];
