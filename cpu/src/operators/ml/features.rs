//! Preparing features.

use num_traits::AsPrimitive;

use crate::ops::OpError;
use crate::ops::ml::features::{Feature, Impute, Norm};
use crate::tensor::{Tensor, Value, ValueRef};

use super::{DOMAIN, floats, numbers};
use crate::kernel::{CpuKernel, Entry, KernelContext, NodeContext, ValueKernel};
use crate::loops::item::{Item, dispatch_item, items, shape_of, type_of};
use crate::loops::number::dispatch;
use crate::provider::ints::Ints;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("ArrayFeatureExtractor", build).domain(DOMAIN),
    Entry::new("Binarizer", build).domain(DOMAIN),
    Entry::new("Scaler", build).domain(DOMAIN),
    Entry::new("Normalizer", build).domain(DOMAIN),
    Entry::new("Imputer", build).domain(DOMAIN),
    Entry::new("FeatureVectorizer", build).domain(DOMAIN),
];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    Ok(CpuKernel::Value(Box::new(Features(node.op::<Feature>().clone()))))
}

struct Features(Feature);

impl ValueKernel for Features {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        Ok(vec![match &self.0 {
            Feature::Extract => extract(inputs)?,
            Feature::Binarize { threshold } => {
                let t = *threshold as f64;
                map(inputs, |_, x| f64::from(u8::from(x > t)))?
            }
            Feature::Impute(Impute::Floats { replaced, by }) => {
                let (replaced, missing) = (*replaced as f64, replaced.is_nan());
                map(inputs, |column, x| {
                    let hit = x == replaced || (missing && x.is_nan());
                    if hit { by[column.min(by.len() - 1)] as f64 } else { x }
                })?
            }
            Feature::Impute(Impute::Ints { replaced, by }) => impute_ints(inputs, *replaced, by)?,
            Feature::Scale { offset, scale } => {
                let at = |v: &[f32], i: usize| v[i.min(v.len() - 1)] as f64;
                rows(inputs, |row| {
                    row.iter_mut().enumerate().for_each(|(i, x)| *x = (*x - at(offset, i)) * at(scale, i));
                })?
            }
            Feature::Normalize(norm) => rows(inputs, |row| {
                let length = match norm {
                    Norm::Max => row.iter().fold(0.0, |m: f64, x| m.max(x.abs())),
                    Norm::L1 => row.iter().map(|x| x.abs()).sum(),
                    Norm::L2 => row.iter().map(|x| x * x).sum::<f64>().sqrt(),
                };
                if length != 0.0 {
                    row.iter_mut().for_each(|x| *x /= length);
                }
            })?,
            Feature::Join { widths } => join(inputs, widths)?,
        }])
    }
}

/// The length of the last axis.
fn columns(inputs: &[Option<ValueRef<'_>>]) -> Result<usize, OpError> {
    Ok(shape_of(inputs, 0)?.last().copied().unwrap_or(1).max(1))
}

/// Changes each row of the input; the result is float.
fn rows(inputs: &[Option<ValueRef<'_>>], change: impl Fn(&mut [f64])) -> Result<Value, OpError> {
    let mut x = numbers(inputs, 0)?;
    x.chunks_mut(columns(inputs)?).for_each(change);
    floats(shape_of(inputs, 0)?, &x)
}

/// Maps each element, told its column, in the input's own type.
fn map(inputs: &[Option<ValueRef<'_>>], f: impl Fn(usize, f64) -> f64) -> Result<Value, OpError> {
    let (shape, width) = (shape_of(inputs, 0)?, columns(inputs)?);
    let x = numbers(inputs, 0)?;
    let results = x.iter().enumerate().map(|(i, &x)| f(i % width, x));
    dispatch!(
        Some(type_of(inputs, 0)?),
        T in [f32, f64, i32, i64] => {
            let results: Vec<T> = results.map(|x| x.as_()).collect();
            Ok(Value::Tensor(Tensor::from_slice(shape, &results)?))
        },
        else Err(OpError::Unsupported("the input must be float, double, int32 or int64".to_owned()))
    )
}

/// In integers, which f64 would not hold exactly.
fn impute_ints(inputs: &[Option<ValueRef<'_>>], replaced: i64, by: &[i64]) -> Result<Value, OpError> {
    let view = inputs[0].and_then(ValueRef::view);
    let Some(ints) = view.and_then(Ints::of) else {
        return map(
            inputs,
            |column, x| {
                if x == replaced as f64 { by[column.min(by.len() - 1)] as f64 } else { x }
            },
        );
    };
    let (shape, width) = (shape_of(inputs, 0)?, columns(inputs)?);
    let fill = |(i, x): (usize, i64)| if x == replaced { by[(i % width).min(by.len() - 1)] } else { x };
    let result: Vec<i64> = ints.iter().enumerate().map(fill).collect();
    Ok(Value::Tensor(match ints {
        Ints::I64(_) => Tensor::from_slice(shape, &result)?,
        Ints::I32(_) => Tensor::from_slice(shape, &result.iter().map(|&x| x as i32).collect::<Vec<_>>())?,
    }))
}

fn extract(inputs: &[Option<ValueRef<'_>>]) -> Result<Value, OpError> {
    let (ty, shape) = (type_of(inputs, 0)?, shape_of(inputs, 0)?);
    let width = columns(inputs)?;
    let indices = Ints::required(inputs.get(1).copied().flatten().and_then(ValueRef::view), "Y")?;
    indices.check(width)?;
    let mut result_shape = if shape.len() <= 1 { vec![1] } else { shape[..shape.len() - 1].to_vec() };
    result_shape.push(indices.len());
    Ok(Value::Tensor(dispatch_item!(ty, T => {
        T::tensor(ty, &result_shape, pick(items::<T>(inputs, 0)?, width, indices))?
    })))
}

/// The indexed columns of every row.
fn pick<T: Item>(data: &[T], width: usize, indices: Ints<'_>) -> Vec<T> {
    let mut result = Vec::with_capacity(data.len() / width * indices.len());
    for row in data.chunks_exact(width) {
        result.extend((0..indices.len()).map(|i| row[indices.wrapped(i, width)].clone()));
    }
    result
}

fn join(inputs: &[Option<ValueRef<'_>>], widths: &[usize]) -> Result<Value, OpError> {
    let total: usize = widths.iter().sum();
    let count = match shape_of(inputs, 0)? {
        [n] | [n, _] => *n,
        shape => {
            return Err(OpError::Data(format!("input 0 has shape {shape:?}; allowed are [N] and [N, C]")));
        }
    };
    let mut result = vec![0.0; count * total];
    let mut start = 0;
    for (i, &width) in widths.iter().enumerate() {
        let columns = match shape_of(inputs, i)? {
            [n] if *n == count => 1,
            [n, c] if *n == count => *c,
            shape => {
                return Err(OpError::Data(format!("input {i} has shape {shape:?}; {count} rows are needed")));
            }
        };
        let x = numbers(inputs, i)?;
        let taken = columns.min(width);
        for r in 0..count {
            result[r * total + start..][..taken].copy_from_slice(&x[r * columns..][..taken]);
        }
        start += width;
    }
    floats(&[count, total], &result)
}
