//! Problems that were met and not tuned, as text: recorded on one machine, tuned on another. docs/tuning.md describes it.

use std::collections::BTreeSet;

use crate::ops::activation::Activation;
use crate::tensor::ElementType;

use super::results::{Key, shortened};

/// The first line of a text.
const TITLE: &str = "rukh tuning shapes 1";

/// Operators and problems.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shapes(pub(super) BTreeSet<Key>);

impl Shapes {
    pub(super) fn text(&self) -> String {
        let lines = self.0.iter().map(|(operator, problem)| format!("shape {operator} {problem}\n"));
        std::iter::once(format!("{TITLE}\n")).chain(lines).collect()
    }

    /// Reads a text. Lines that cannot be read are left out, and told in the second list. `Err`: it is something else.
    pub(super) fn parse(text: &str) -> Result<(Self, Vec<String>), String> {
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(i, line)| (i + 1, line.trim()))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        match lines.next() {
            Some((_, TITLE)) => {}
            Some((_, other)) => {
                return Err(format!("the first line is \"{}\"; it must be \"{TITLE}\"", shortened(other)));
            }
            None => return Err(format!("the text is empty; its first line must be \"{TITLE}\"")),
        }
        let (mut shapes, mut defects) = (Shapes::default(), Vec::new());
        for (number, line) in lines {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words[..] {
                ["shape", operator, problem] => {
                    shapes.0.insert((operator.to_owned(), problem.to_owned()));
                }
                _ => defects.push(format!(
                    "line {number}: \"{}\" is no shape; a shape is the word \"shape\", an operator and a problem",
                    shortened(line)
                )),
            }
        }
        Ok((shapes, defects))
    }
}

/// Reads the parts of a problem's word one after the other.
pub(in super::super) struct Parts<'t>(std::iter::Peekable<std::str::Split<'t, char>>);

/// Numbers in a problem are smaller, so that what is computed of them fits.
const MOST: usize = 1 << 30;
/// Elements of an operand are fewer.
const MOST_ELEMENTS: usize = 1 << 40;

impl<'t> Parts<'t> {
    pub(in super::super) fn new(problem: &'t str) -> Self {
        Parts(problem.split('_').peekable())
    }

    pub(in super::super) fn next(&mut self) -> Option<&'t str> {
        self.0.next()
    }

    /// The rest of the next part, when it begins so; else it stays.
    pub(in super::super) fn after(&mut self, prefix: &str) -> Option<&'t str> {
        let rest = self.0.peek()?.strip_prefix(prefix)?;
        self.0.next();
        Some(rest)
    }

    /// A type that products are computed in.
    pub(in super::super) fn element_type(&mut self) -> Option<ElementType> {
        element_type(self.next()?)
    }

    /// A function by its name, with constants that it usually has: they do not decide how fast it is.
    pub(in super::super) fn activation(&mut self) -> Option<Activation> {
        let name = self.next()?;
        Activation::parse(if name == "Identity" { "" } else { name }, &[]).ok()
    }
}

pub(in super::super) fn element_type(name: &str) -> Option<ElementType> {
    let known = [ElementType::F16, ElementType::BF16, ElementType::F32, ElementType::F64, ElementType::Bool];
    known.into_iter().find(|ty| ty.name() == name)
}

pub(in super::super) fn number(text: &str) -> Option<usize> {
    text.parse().ok().filter(|&number| number < MOST)
}

/// As many numbers as are asked for, or any number of them.
pub(in super::super) fn numbers(text: &str, separator: char, count: Option<usize>) -> Option<Vec<usize>> {
    let all: Vec<usize> = text.split(separator).map(number).collect::<Option<_>>()?;
    count.is_none_or(|count| all.len() == count).then_some(all)
}

/// Whether an operand of these dimensions may be made up.
pub(in super::super) fn fits(dims: impl IntoIterator<Item = usize>) -> bool {
    let elements = dims.into_iter().try_fold(1usize, |product, size| product.checked_mul(size));
    elements.is_some_and(|elements| elements <= MOST_ELEMENTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back() {
        let pair = |operator: &str, problem: &str| (operator.to_owned(), problem.to_owned());
        let shapes = Shapes([pair("gemm", "float_nn_m8"), pair("conv", "float16_x1x2")].into());
        let text = shapes.text();
        assert_eq!(text, "rukh tuning shapes 1\nshape conv float16_x1x2\nshape gemm float_nn_m8\n");
        assert_eq!(Shapes::parse(&text), Ok((shapes, Vec::new())));
    }

    #[test]
    fn what_is_no_shape_is_told() {
        for (text, part) in
            [("", "the text is empty"), ("rukh tuning results 1\n", "must be \"rukh tuning shapes 1\"")]
        {
            assert!(Shapes::parse(text).unwrap_err().contains(part), "{text}");
        }
        let (shapes, defects) =
            Shapes::parse(&format!("{TITLE}\n# a\nshape gemm\n\nshape gemm p\nresult a b c 1\n")).unwrap();
        assert_eq!(shapes.0.len(), 1);
        assert!(
            defects[0].starts_with("line 3: \"shape gemm\" is no shape") && defects.len() == 2,
            "{defects:?}"
        );
    }

    #[test]
    fn numbers_have_a_limit() {
        assert_eq!(numbers("3x4", 'x', Some(2)), Some(vec![3, 4]));
        for text in ["3x", "3x-4", "3x1073741824", "3", "3x4x5", "x", "3xfour"] {
            assert_eq!(numbers(text, 'x', Some(2)), None, "{text}");
        }
        assert!(fits([1 << 20, 1 << 20]) && !fits([1 << 20, 1 << 21]) && !fits([usize::MAX, 2]));
    }
}
