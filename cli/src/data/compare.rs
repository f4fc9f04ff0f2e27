//! How far two values are apart.

use super::{Data, Tensor, Value};

/// What difference is allowed: |got − expected| ≤ `absolute` + `relative` × scale.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    pub relative: f64,
    pub absolute: f64,
    pub scale: Scale,
}

/// What a relative tolerance is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The magnitude of the expected element, as ONNX's test suite and `numpy.allclose` have it.
    Element,
    /// The largest magnitude in the expected tensor: a sum of many products is no more precise near
    /// zero than elsewhere.
    Tensor,
}

/// The result of a comparison within tolerance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The largest |got − expected|.
    pub difference: f64,
    /// The largest |expected|.
    pub magnitude: f64,
}

impl Comparison {
    /// The largest difference over the largest magnitude.
    pub fn relative(&self) -> f64 {
        if self.difference == 0.0 { 0.0 } else { self.difference / self.magnitude.max(f64::MIN_POSITIVE) }
    }
}

/// Compares types, shapes and elements; the error says what differs first and by how much.
pub fn compare(got: &Value, expected: &Value, tolerance: Tolerance) -> Result<Comparison, String> {
    match (got, expected) {
        (Value::Tensor(got), Value::Tensor(expected)) => tensors(got, expected, tolerance),
        (Value::Sequence(got), Value::Sequence(expected)) if got.len() == expected.len() => {
            let mut worst = Comparison::default();
            for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
                let one = compare(got, expected, tolerance).map_err(|e| format!("item {i}: {e}"))?;
                worst.difference = worst.difference.max(one.difference);
                worst.magnitude = worst.magnitude.max(one.magnitude);
            }
            Ok(worst)
        }
        (Value::Map { keys: k, values: v }, Value::Map { keys, values }) => {
            tensors(k, keys, tolerance).map_err(|e| format!("keys: {e}"))?;
            compare(v, values, tolerance).map_err(|e| format!("values: {e}"))
        }
        (Value::Nothing, Value::Nothing) => Ok(Comparison::default()),
        _ => Err(format!("{}, expected {}", got.describe(), expected.describe())),
    }
}

fn tensors(got: &Tensor, expected: &Tensor, tolerance: Tolerance) -> Result<Comparison, String> {
    if got.element != expected.element || got.dims != expected.dims {
        return Err(format!("{}, expected {}", got.describe(), expected.describe()));
    }
    match (&got.data, &expected.data) {
        (Data::Bytes(a), Data::Bytes(b)) if a == b => {
            Ok(Comparison { difference: 0.0, magnitude: magnitude(&expected.numbers()) })
        }
        (Data::Bytes(_), Data::Bytes(_)) => numbers(got, expected, tolerance),
        (Data::Strings(a), Data::Strings(b)) => match a.iter().zip(b).position(|(a, b)| a != b) {
            None => Ok(Comparison::default()),
            Some(i) => Err(format!(
                "element {i} is \"{}\", expected \"{}\"",
                String::from_utf8_lossy(&a[i]),
                String::from_utf8_lossy(&b[i])
            )),
        },
        _ => Err(format!("{}, expected {}", got.describe(), expected.describe())),
    }
}

fn numbers(got: &Tensor, expected: &Tensor, tolerance: Tolerance) -> Result<Comparison, String> {
    let (a, b) = (got.numbers(), expected.numbers());
    let magnitude = magnitude(&b);
    let (mut difference, mut wrong, mut first) = (0f64, 0usize, None);
    for (i, (&x, &y)) in a.iter().zip(&b).enumerate() {
        if x == y || x.is_nan() && y.is_nan() {
            continue;
        }
        let scale = if tolerance.scale == Scale::Tensor { magnitude } else { y.abs() };
        // Integers, booleans and infinities are right or wrong.
        let allowed = if got.element.is_float() || tolerance.scale == Scale::Tensor {
            tolerance.absolute + tolerance.relative * scale
        } else {
            tolerance.absolute
        };
        let apart = (x - y).abs();
        difference = difference.max(if apart.is_nan() { f64::INFINITY } else { apart });
        // An infinite scale would allow everything.
        if !apart.is_finite() || apart > allowed {
            wrong += 1;
            first.get_or_insert(i);
        }
    }
    match first {
        None => Ok(Comparison { difference, magnitude }),
        Some(i) => Err(format!(
            "{wrong} of {} elements differ; element {i} is {:?}, expected {:?}; the largest difference is {difference:.3e} where the largest magnitude is {magnitude:.3e}",
            a.len(),
            a[i],
            b[i]
        )),
    }
}

fn magnitude(numbers: &[f64]) -> f64 {
    numbers.iter().map(|v| v.abs()).filter(|v| v.is_finite()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ElementType;

    fn floats(values: &[f32]) -> Value {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Value::Tensor(Tensor::from_bytes(ElementType::FLOAT, vec![values.len()], bytes).unwrap())
    }

    #[test]
    fn tolerance_decides() {
        let element = Tolerance { relative: 1e-3, absolute: 1e-7, scale: Scale::Element };
        let tensor = Tolerance { scale: Scale::Tensor, ..element };
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        for (got, expected, by_element, by_tensor) in [
            ([1.0, 100.0], [1.0, 100.0], true, true),
            ([1.0, 100.05], [1.0, 100.0], true, true),
            ([1.05, 100.0], [1.0, 100.0], false, true),
            ([1.0, 100.2], [1.0, 100.0], false, false),
            ([nan, 1.0], [nan, 1.0], true, true),
            ([nan, 1.0], [0.0, 1.0], false, false),
            ([inf, 1.0], [inf, 1.0], true, true),
            ([1.0, 1.0], [inf, 1.0], false, false),
        ] {
            let (got, expected) = (floats(&got), floats(&expected));
            assert_eq!(compare(&got, &expected, element).is_ok(), by_element, "{got:?} {expected:?}");
            assert_eq!(compare(&got, &expected, tensor).is_ok(), by_tensor, "{got:?} {expected:?}");
        }
    }

    #[test]
    fn errors_say_what_differs() {
        let tolerance = Tolerance { relative: 0.0, absolute: 0.0, scale: Scale::Element };
        let strings = |s: &[u8]| Value::Tensor(Tensor::from_strings(vec![1], vec![s.to_vec()]).unwrap());
        for (got, expected, part) in [
            (floats(&[1.0]), floats(&[1.0, 2.0]), "float[1], expected float[2]".to_owned()),
            (floats(&[1.0, 3.0]), floats(&[1.0, 2.0]), "1 of 2 elements differ; element 1 is 3.0".to_owned()),
            (strings(b"a"), strings(b"b"), "element 0 is \"a\", expected \"b\"".to_owned()),
            (Value::Nothing, floats(&[]), "nothing, expected float[0]".to_owned()),
            (
                Value::Sequence(vec![floats(&[1.0])]),
                Value::Sequence(vec![floats(&[2.0])]),
                "item 0: 1 of 1".to_owned(),
            ),
        ] {
            let error = compare(&got, &expected, tolerance).unwrap_err();
            assert!(error.contains(&part), "{error}");
        }
    }
}
