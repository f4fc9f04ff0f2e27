//! Einstein summation.

use std::sync::Arc;

use crate::graph::Dim;

use super::{Declaration, Infer, OpError, Operator, Types};

/// The name of a dimension: a letter, or the `i`-th dimension from the right under the ellipsis as
/// `ELLIPSIS + i`.
pub type Label = u16;

const ELLIPSIS: Label = 256;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Term {
    Letter(u8),
    Ellipsis,
}

/// An equation such as `bij,bjk->bik`, parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Einsum {
    operands: Vec<Vec<Term>>,
    /// `None` where the equation leaves the output out.
    output: Option<Vec<Term>>,
}

impl Einsum {
    fn parse(equation: &str) -> Result<Self, OpError> {
        let text: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
        let (inputs, output) = match text.split_once("->") {
            Some((inputs, output)) => (inputs, Some(terms(equation, output)?)),
            None => (text.as_str(), None),
        };
        let operands = inputs.split(',').map(|o| terms(equation, o)).collect::<Result<_, _>>()?;
        Ok(Einsum { operands, output })
    }

    /// The labels of each operand's dimensions and of the output's, for operands of these ranks.
    pub fn labels(&self, ranks: &[usize]) -> Result<(Vec<Vec<Label>>, Vec<Label>), OpError> {
        let wrong = |reason: String| OpError::attribute("equation", reason);
        if ranks.len() != self.operands.len() {
            return Err(wrong(format!("it has {} terms for {} inputs", self.operands.len(), ranks.len())));
        }
        let mut hidden = 0;
        let mut operands = Vec::new();
        for (i, (terms, &rank)) in self.operands.iter().zip(ranks).enumerate() {
            let letters = terms.iter().filter(|t| **t != Term::Ellipsis).count();
            let covered = match rank.checked_sub(letters) {
                Some(0) => 0,
                Some(n) if letters < terms.len() => n,
                _ => {
                    return Err(wrong(format!(
                        "term {i} names {letters} dimensions of an input of rank {rank}"
                    )));
                }
            };
            hidden = hidden.max(covered);
            operands.push(expand(terms, covered));
        }
        let output = match &self.output {
            Some(terms) => {
                let output = expand(terms, if terms.contains(&Term::Ellipsis) { hidden } else { 0 });
                for (i, label) in output.iter().enumerate() {
                    if !operands.iter().any(|o| o.contains(label)) || output[..i].contains(label) {
                        return Err(wrong(
                            "its output names a dimension twice, or one that no input has".into(),
                        ));
                    }
                }
                output
            }
            None => {
                let count = |label: Label| operands.iter().flatten().filter(|&&l| l == label).count();
                let mut letters: Vec<Label> =
                    operands.iter().flatten().copied().filter(|&l| l < ELLIPSIS && count(l) == 1).collect();
                letters.sort_unstable();
                [expand(&[Term::Ellipsis], hidden), letters].concat()
            }
        };
        Ok((operands, output))
    }
}

/// The labels of a term whose ellipsis covers so many dimensions.
fn expand(terms: &[Term], covered: usize) -> Vec<Label> {
    let mut labels = Vec::new();
    for term in terms {
        match term {
            Term::Letter(c) => labels.push(*c as Label),
            Term::Ellipsis => labels.extend((0..covered).rev().map(|i| ELLIPSIS + i as Label)),
        }
    }
    labels
}

fn terms(equation: &str, text: &str) -> Result<Vec<Term>, OpError> {
    let wrong = || {
        let reason = format!(
            "\"{equation}\" does not parse; allowed are letters and one \"...\" a term, terms separated by \
             commas, and \"->\" before the output"
        );
        OpError::attribute("equation", reason)
    };
    let mut terms = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.bytes().next() {
        if let Some(tail) = rest.strip_prefix("...") {
            if terms.contains(&Term::Ellipsis) {
                return Err(wrong());
            }
            terms.push(Term::Ellipsis);
            rest = tail;
        } else if c.is_ascii_alphabetic() {
            terms.push(Term::Letter(c));
            rest = &rest[1..];
        } else {
            return Err(wrong());
        }
    }
    Ok(terms)
}

impl Operator for Einsum {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shapes) = (0..cx.input_count()).map(|i| cx.shape(i)).collect::<Option<Vec<_>>>() else {
            return Ok(());
        };
        let ranks: Vec<usize> = shapes.iter().map(|s| s.len()).collect();
        let (operands, output) = self.labels(&ranks)?;
        let mut sizes: Vec<(Label, Dim)> = Vec::new();
        for (i, (labels, shape)) in operands.iter().zip(&shapes).enumerate() {
            for (&label, dim) in labels.iter().zip(*shape) {
                match sizes.iter_mut().find(|(l, _)| *l == label) {
                    None => sizes.push((label, dim.clone())),
                    Some((_, size)) if size.known() == Some(1) => *size = dim.clone(),
                    Some(_) if dim.known() == Some(1) => {}
                    Some((_, size)) => {
                        *size = cx.equal(i, "a dimension that another input shares", size, dim)?
                    }
                }
            }
        }
        let of = |label: &Label| sizes.iter().find(|(l, _)| l == label).map(|(_, d)| d.clone());
        cx.set_shape(0, output.iter().filter_map(of).collect());
        Ok(())
    }
}

pub(super) const DECLARATIONS: &[Declaration] =
    &[Declaration::new("Einsum", &[12], "Inputs+:T -> Output:T", &[("T", Types::NUMERIC)], |a| {
        match a.optional_string("equation")? {
            Some(equation) => Ok(Arc::new(Einsum::parse(equation)?)),
            None => Err(OpError::attribute("equation", "it is required, and missing")),
        }
    })];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implicit_outputs_and_ellipses() {
        let labels = |equation: &str, ranks: &[usize]| {
            let (_, output) = Einsum::parse(equation).unwrap().labels(ranks).unwrap();
            output.iter().map(|&l| if l < ELLIPSIS { l as u8 as char } else { '.' }).collect::<String>()
        };
        for (equation, ranks, want) in [
            ("ij,jk", &[2, 2][..], "ik"),
            ("ba", &[2], "ab"),
            ("ii", &[2], ""),
            ("...ij,...jk->...ik", &[4, 3], "..ik"),
            ("b...a", &[4], "..ab"),
            (" i j -> j i ", &[2], "ji"),
        ] {
            assert_eq!(labels(equation, ranks), want, "{equation}");
        }
        assert!(Einsum::parse("i1->i").is_err());
        assert!(Einsum::parse("ij->ik").unwrap().labels(&[2]).is_err());
        assert!(Einsum::parse("ij->i").unwrap().labels(&[3]).is_err());
    }
}
