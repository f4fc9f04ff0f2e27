//! Operators that make tensors from nothing or from a shape: Constant, ConstantOfShape, Range, EyeLike.

use std::sync::Arc;

use crate::graph::{Attribute, Dim, SparseTensor};
use crate::tensor::{ElementType, Tensor, bf16, f16};

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// A tensor from an attribute.
#[derive(Clone, Debug)]
pub struct Constant {
    pub value: Arc<Tensor>,
}

impl Operator for Constant {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        cx.set_element_type(0, self.value.ty());
        cx.set_shape(0, self.value.shape().iter().map(|&d| d.into()).collect());
        cx.set_elements(0, self.value.to_ints().map(|v| v.into_iter().map(Dim::from).collect()));
        Ok(())
    }
}

/// A tensor of the shape that the input gives, with the one element of `value` everywhere.
#[derive(Clone, Debug)]
pub struct ConstantOfShape {
    pub value: Arc<Tensor>,
}

impl Operator for ConstantOfShape {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        cx.set_element_type(0, self.value.ty());
        let rank = cx.shape_of_rank(0, 1)?.and_then(|s| s[0].known());
        match (cx.ints(0), rank) {
            (Some(shape), _) => {
                if let Some(d) = shape.iter().find(|d| d.known().is_some_and(|d| d < 0)) {
                    return Err(cx.input_error(0, format!("{d} is no dimension; allowed are 0 and above")));
                }
                if let ([n], Some(v)) = (&shape[..], self.value.to_ints())
                    && let Some(n @ 0..=64) = n.known()
                {
                    cx.set_elements(0, Some(vec![v[0].into(); n as usize]));
                }
                cx.set_shape(0, shape);
            }
            (None, Some(rank @ 0..)) => cx.set_rank(0, rank as usize),
            _ => {}
        }
        Ok(())
    }
}

/// `start`, `start + delta`, … up to but without `limit`.
#[derive(Clone, Debug, PartialEq)]
pub struct Range;

impl Operator for Range {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let (Some(start), Some(limit), Some(delta)) = (cx.constant(0), cx.constant(1), cx.constant(2))
            && let (Some(a), Some(b), Some(d)) = (scalar(start), scalar(limit), scalar(delta))
        {
            let n = range_count(a, b, d)?;
            cx.set_shape(0, vec![n.into()]);
            if let (Scalar::Int(a), Scalar::Int(d), 0..=64) = (a, d, n) {
                cx.set_elements(0, Some((0..n as i64).map(|i| Dim::Known(a + i * d)).collect()));
            }
            return Ok(());
        }
        let one = |v: Option<Vec<Dim>>| v.and_then(|v| v.into_iter().next());
        let count = match (one(cx.ints(0)), one(cx.ints(1)), one(cx.ints(2))) {
            (Some(start), Some(limit), Some(delta)) => match delta.known() {
                Some(0) => return Err(cx.input_error(2, "the step is 0; it must not be")),
                Some(_) => {
                    let count = limit.sub(&start).ceil_div(&delta);
                    if count.is_nonnegative() { count } else { count.max_of(&Dim::Known(0)) }
                }
                None => cx.unknown(),
            },
            _ => cx.unknown(),
        };
        cx.set_shape(0, vec![count]);
        Ok(())
    }
}

/// One number of any type Range takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    Int(i64),
    Float(f64),
}

/// The only element of a tensor, which may be misaligned; `None` for other counts and types.
pub fn scalar(t: &Tensor) -> Option<Scalar> {
    scalar_of(t.ty(), t.buffer()?.bytes())
}

/// An element from its bytes; `None` for another count and for types that Range does not take.
pub fn scalar_of(ty: ElementType, bytes: &[u8]) -> Option<Scalar> {
    Some(match ty {
        ElementType::F32 => Scalar::Float(f32::from_ne_bytes(bytes.try_into().ok()?) as f64),
        ElementType::F64 => Scalar::Float(f64::from_ne_bytes(bytes.try_into().ok()?)),
        ElementType::F16 => Scalar::Float(f16::from_ne_bytes(bytes.try_into().ok()?).to_f64()),
        ElementType::BF16 => Scalar::Float(bf16::from_ne_bytes(bytes.try_into().ok()?).to_f64()),
        ElementType::I16 => Scalar::Int(i16::from_ne_bytes(bytes.try_into().ok()?) as i64),
        ElementType::I32 => Scalar::Int(i32::from_ne_bytes(bytes.try_into().ok()?) as i64),
        ElementType::I64 => Scalar::Int(i64::from_ne_bytes(bytes.try_into().ok()?)),
        _ => return None,
    })
}

/// max(⌈(limit − start) / delta⌉, 0).
fn range_count(start: Scalar, limit: Scalar, delta: Scalar) -> Result<usize, OpError> {
    let count = match (start, limit, delta) {
        (Scalar::Int(_), Scalar::Int(_), Scalar::Int(0)) => None,
        (Scalar::Int(a), Scalar::Int(b), Scalar::Int(d)) => {
            let (span, d) = if d > 0 {
                (b as i128 - a as i128, d as i128)
            } else {
                (a as i128 - b as i128, -(d as i128))
            };
            Some(if span <= 0 { 0 } else { (span + d - 1) / d })
        }
        (Scalar::Float(a), Scalar::Float(b), Scalar::Float(d)) => {
            let n = ((b - a) / d).ceil();
            (d != 0.0 && n.is_finite()).then_some(n.max(0.0) as i128)
        }
        _ => None,
    };
    count.and_then(|n| usize::try_from(n).ok()).ok_or_else(|| {
        OpError::Data(format!("from {start:?} to {limit:?} there is no way in steps of {delta:?}"))
    })
}

/// Ones on a diagonal of a matrix like the input, zero elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct EyeLike {
    pub dtype: Option<ElementType>,
    /// How far above the main diagonal.
    pub k: i64,
}

impl Operator for EyeLike {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(ty) = self.dtype.or(cx.element_type(0)) {
            cx.set_element_type(0, ty);
        }
        match cx.shape_of_rank(0, 2)? {
            Some(shape) => cx.set_shape(0, shape.to_vec()),
            None => cx.set_rank(0, 2),
        }
        Ok(())
    }
}

fn constant(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let mut found: Vec<Arc<Tensor>> = Vec::new();
    match a.get("value") {
        // ONNX Runtime writes sparse initializers so.
        Some(Attribute::SparseTensor(sparse)) => found.push(Arc::new(dense(sparse)?)),
        _ => {
            if let Some(t) = a.tensor("value")? {
                // In the file it may lie anywhere.
                found.push(if t.is_aligned() { t.clone() } else { Arc::new(t.aligned()?) });
            }
        }
    }
    if a.opset() >= 11
        && let Some(sparse) = a.sparse_tensor("sparse_value")?
    {
        found.push(Arc::new(dense(sparse)?));
    }
    if a.opset() >= 12 {
        if let Some(n) = a.optional_int("value_int")? {
            found.push(Arc::new(Tensor::from_slice(&[], &[n])?));
        }
        if let Some(v) = a.ints("value_ints")? {
            found.push(Arc::new(Tensor::from_slice(&[v.len()], v)?));
        }
        if let Some(x) = a.optional_float("value_float")? {
            found.push(Arc::new(Tensor::from_slice(&[], &[x])?));
        }
        if let Some(v) = a.floats("value_floats")? {
            found.push(Arc::new(Tensor::from_slice(&[v.len()], v)?));
        }
        if let Some(s) = a.optional_string("value_string")? {
            found.push(Arc::new(Tensor::from_strings(&[], vec![s.to_owned()])));
        }
        if let Some(v) = a.strings("value_strings")? {
            let strings: Vec<String> = v.into_iter().map(str::to_owned).collect();
            found.push(Arc::new(Tensor::from_strings(&[strings.len()], strings)));
        }
    }
    match found.len() {
        1 => Ok(Arc::new(Constant { value: found.remove(0) })),
        n => Err(OpError::attribute(
            "value",
            format!("{n} of the value attributes are given; exactly 1 must be"),
        )),
    }
}

/// A sparse tensor with its zeros.
fn dense(sparse: &SparseTensor) -> Result<Tensor, OpError> {
    let wrong = |reason: String| OpError::attribute("sparse_value", reason);
    let shape = &sparse.shape;
    let count = sparse.values.len();
    let indices = sparse.indices.to_ints().ok_or_else(|| wrong("its indices must be int64".into()))?;
    let width = match sparse.indices.shape() {
        [n] if *n == count => 1,
        [n, rank] if *n == count && *rank == shape.len() => *rank,
        other => {
            return Err(wrong(format!("indices of shape {other:?} do not fit {count} values of {shape:?}")));
        }
    };
    let total =
        crate::tensor::element_count(shape).ok_or_else(|| wrong(format!("{shape:?} is too large")))?;
    let linear = width == 1 && sparse.indices.shape().len() == 1;
    let place = |entry: &[i64]| -> Option<usize> {
        if linear {
            return usize::try_from(entry[0]).ok().filter(|&p| p < total);
        }
        entry
            .iter()
            .zip(shape)
            .try_fold(0, |p, (&i, &d)| usize::try_from(i).ok().filter(|&i| i < d).map(|i| p * d + i))
    };
    let mut places = Vec::with_capacity(count);
    for k in 0..count {
        let entry = &indices[k * width..(k + 1) * width];
        places.push(place(entry).ok_or_else(|| wrong(format!("index {entry:?} lies outside {shape:?}")))?);
    }
    if let Some(strings) = sparse.values.strings() {
        let mut all = vec![String::new(); total];
        for (&p, s) in places.iter().zip(strings) {
            all[p].clone_from(s);
        }
        return Ok(Tensor::from_strings(shape, all));
    }
    let size = sparse.values.ty().size();
    let mut bytes = vec![0u8; total * size];
    let values = sparse.values.buffer().map_or(&[][..], |b| b.bytes());
    for (&p, value) in places.iter().zip(values.chunks_exact(size)) {
        bytes[p * size..(p + 1) * size].copy_from_slice(value);
    }
    let buffer = crate::tensor::Buffer::copy_of(&bytes)?;
    Tensor::from_buffer(sparse.values.ty(), shape, buffer).ok_or_else(|| wrong("its size is wrong".into()))
}

const T: &[(&str, Types)] = &[("T", Types::TENSOR)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("Constant", &[1, 9, 11, 12, 13, 19, 21, 23, 24, 25], "-> output:any", &[], constant),
    Declaration::new("ConstantOfShape", &[9, 20, 21, 23, 24, 25], "input:int64 -> output:any", &[], |a| {
        let value = match a.tensor("value")? {
            Some(t) if t.len() == 1 => t.clone(),
            Some(t) => {
                return Err(OpError::attribute(
                    "value",
                    format!("it has {} elements; allowed is 1", t.len()),
                ));
            }
            None => Arc::new(Tensor::from_slice(&[1], &[0f32])?),
        };
        Ok(Arc::new(ConstantOfShape { value }))
    })
    .shape_inputs(&[0]),
    Declaration::new(
        "Range",
        &[11, 27],
        "start:T, limit:T, delta:T -> output:T",
        &[("T", Types::FLOAT.and(Types::of(&[ElementType::I16, ElementType::I32, ElementType::I64])))],
        |a| {
            if a.opset() >= 27 {
                // The type that float16 and bfloat16 are computed in, which is float here always.
                a.ignore("stash_type");
            }
            Ok(Arc::new(Range))
        },
    )
    .shape_inputs(&[0, 1, 2]),
    Declaration::new("EyeLike", &[9, 22], "input:T -> output:any", T, |a| {
        Ok(Arc::new(EyeLike { dtype: a.element_type("dtype")?, k: a.int("k", 0)? }))
    }),
];
