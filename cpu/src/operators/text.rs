//! Operators on strings.

use crate::ops::OpError;
use crate::ops::text::{Case, RegexFullMatch, StringNormalizer, StringSplit};
use crate::tensor::{Bool, Tensor, Value, ValueRef};

use crate::kernel::{CpuKernel, Entry, KernelContext, ValueKernel};
use crate::loops::item::{items, shape_of};
use crate::loops::strided::{Walk, strides_of};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("StringNormalizer", |node| {
        Ok(CpuKernel::Value(Box::new(Normalize(node.op::<StringNormalizer>().clone()))))
    }),
    Entry::new("StringConcat", |_| Ok(CpuKernel::Value(Box::new(Concat)))),
    Entry::new("StringSplit", |node| Ok(CpuKernel::Value(Box::new(Split(node.op::<StringSplit>().clone()))))),
    Entry::new("RegexFullMatch", |node| {
        Ok(CpuKernel::Value(Box::new(FullMatch(node.op::<RegexFullMatch>().clone()))))
    }),
];

struct Normalize(StringNormalizer);

impl ValueKernel for Normalize {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let op = &self.0;
        let (strings, shape) = (items::<String>(inputs, 0)?, shape_of(inputs, 0)?);
        let stops = |s: &str| {
            op.stop_words
                .iter()
                .any(|w| if op.case_sensitive { w == s } else { w.to_lowercase() == s.to_lowercase() })
        };
        let mut result: Vec<String> = strings
            .iter()
            .filter(|s| !stops(s))
            .map(|s| match op.case {
                Case::Keep => s.clone(),
                Case::Lower => s.to_lowercase(),
                Case::Upper => s.to_uppercase(),
            })
            .collect();
        // Where nothing is left, one empty string stands for it.
        if result.is_empty() {
            result.push(String::new());
        }
        let result_shape = match shape {
            [_] => vec![result.len()],
            [1, _] => vec![1, result.len()],
            _ => {
                return Err(OpError::Data(format!(
                    "the input has shape {shape:?}; allowed are [C] and [1, C]"
                )));
            }
        };
        Ok(vec![Value::Tensor(Tensor::from_strings(&result_shape, result))])
    }
}

struct Concat;

impl ValueKernel for Concat {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let (a, b) = (items::<String>(inputs, 0)?, items::<String>(inputs, 1)?);
        let (x, y) = (shape_of(inputs, 0)?, shape_of(inputs, 1)?);
        let rank = x.len().max(y.len());
        let at = |s: &[usize], k: usize| (k + s.len()).checked_sub(rank).map_or(1, |i| s[i]);
        let mut shape = Vec::with_capacity(rank);
        for k in 0..rank {
            shape.push(match (at(x, k), at(y, k)) {
                (p, q) if p == q => p,
                (1, q) => q,
                (p, 1) => p,
                _ => return Err(OpError::Data(format!("shapes {x:?} and {y:?} do not broadcast"))),
            });
        }
        let steps = |s: &[usize]| -> Vec<isize> {
            let strides = strides_of(s);
            let step = |k: usize| {
                (k + s.len()).checked_sub(rank).map_or(0, |i| if s[i] == 1 { 0 } else { strides[i] })
            };
            (0..rank).map(step).collect()
        };
        let (x_steps, y_steps) = (steps(x), steps(y));
        let (mut left, mut right) = (Walk::new(&shape, &x_steps, 0, 0), Walk::new(&shape, &y_steps, 0, 0));
        let count = shape.iter().product();
        let mut result = Vec::with_capacity(count);
        for _ in 0..count {
            result.push([a[left.position].as_str(), &b[right.position]].concat());
            left.next();
            right.next();
        }
        Ok(vec![Value::Tensor(Tensor::from_strings(&shape, result))])
    }
}

struct Split(StringSplit);

impl ValueKernel for Split {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let (strings, shape) = (items::<String>(inputs, 0)?, shape_of(inputs, 0)?);
        let parts: Vec<Vec<&str>> = strings.iter().map(|s| self.split(s)).collect();
        let width = parts.iter().map(Vec::len).max().unwrap_or(0);
        let mut result = Vec::with_capacity(parts.len() * width);
        for part in &parts {
            result.extend(part.iter().map(|&s| s.to_owned()));
            result.extend(std::iter::repeat_n(String::new(), width - part.len()));
        }
        let counts: Vec<i64> = parts.iter().map(|p| p.len() as i64).collect();
        Ok(vec![
            Value::Tensor(Tensor::from_strings(&[shape, &[width]].concat(), result)),
            Value::Tensor(Tensor::from_slice(shape, &counts)?),
        ])
    }
}

impl Split {
    /// The parts of one string; an empty string has none.
    fn split<'a>(&self, s: &'a str) -> Vec<&'a str> {
        let most = self.0.max_split.map_or(usize::MAX, |n| n.saturating_add(1));
        if !self.0.delimiter.is_empty() {
            return if s.is_empty() {
                Vec::new()
            } else {
                s.splitn(most, self.0.delimiter.as_str()).collect()
            };
        }
        let mut parts = Vec::new();
        let mut rest = s.trim();
        while !rest.is_empty() {
            let end = if parts.len() + 1 == most { None } else { rest.find(char::is_whitespace) };
            let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
            parts.push(part);
            rest = after.trim_start();
        }
        parts
    }
}

struct FullMatch(RegexFullMatch);

impl ValueKernel for FullMatch {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let (strings, shape) = (items::<String>(inputs, 0)?, shape_of(inputs, 0)?);
        let result: Vec<Bool> = strings.iter().map(|s| self.0.regex.is_match(s).into()).collect();
        Ok(vec![Value::Tensor(Tensor::from_slice(shape, &result)?)])
    }
}
