//! Shapes of outputs that are known before a run, so that it can write where ONNX Runtime wants them.

use crate::library::{Port, Session};

/// For each output its dimensions, where all of them follow from the inputs' shapes.
pub(crate) struct Shapes(Vec<Option<Vec<Size>>>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Size {
    Known(i64),
    /// A dimension of an input: which input, and which axis.
    Input(usize, usize),
    /// A sum of products of such.
    Sum(Vec<Vec<Size>>),
}

impl Shapes {
    pub(crate) fn of(session: &Session) -> Shapes {
        Shapes(session.outputs.iter().map(|port| sizes(port, &session.inputs)).collect())
    }

    /// The shape of an output for inputs of those shapes.
    pub(crate) fn output(&self, index: usize, inputs: &[&[i64]]) -> Option<Vec<i64>> {
        self.0[index].as_ref()?.iter().map(|size| size.value(inputs)).collect()
    }
}

impl Size {
    fn value(&self, inputs: &[&[i64]]) -> Option<i64> {
        match self {
            Size::Known(size) => Some(*size),
            Size::Input(input, axis) => inputs.get(*input)?.get(*axis).copied(),
            Size::Sum(products) => {
                let product = |factors: &Vec<Size>| {
                    factors
                        .iter()
                        .try_fold(1_i64, |product, factor| product.checked_mul(factor.value(inputs)?))
                };
                products.iter().try_fold(0_i64, |sum, factors| sum.checked_add(product(factors)?))
            }
        }
    }
}

fn sizes(port: &Port, inputs: &[Port]) -> Option<Vec<Size>> {
    let shape = port.shape.as_ref()?;
    shape
        .iter()
        .zip(&port.names)
        .map(|(size, name)| match size {
            0.. => Some(Size::Known(*size)),
            _ => formula(name, inputs),
        })
        .collect()
}

/// What a name of a dimension stands for, or a formula such as "2*batch + 1".
fn formula(text: &str, inputs: &[Port]) -> Option<Size> {
    let factor = |text: &str| {
        let text = text.trim();
        match text.parse() {
            Ok(number) => Some(Size::Known(number)),
            Err(_) => named(text, inputs),
        }
    };
    if let Some(size) = named(text, inputs) {
        return Some(size);
    }
    let product = |text: &str| text.split('*').map(factor).collect::<Option<Vec<_>>>();
    text.split('+').map(product).collect::<Option<Vec<_>>>().map(Size::Sum)
}

/// The dimension of an input that has a name.
fn named(name: &str, inputs: &[Port]) -> Option<Size> {
    if name.is_empty() {
        return None;
    }
    inputs.iter().enumerate().find_map(|(input, port)| {
        let axis = port.names.iter().position(|it| it == name)?;
        Some(Size::Input(input, axis))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(shape: &[i64], names: &[&str]) -> Port {
        Port {
            name: c"x".into(),
            shape: Some(shape.to_vec()),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn shapes_follow_from_inputs() {
        let inputs = [port(&[-1, 8], &["batch", ""]), port(&[-1], &["past + 1"])];
        let given: [&[i64]; 2] = [&[3, 8], &[7]];
        for (name, expected) in [
            ("batch", Some(3)),
            ("2*batch", Some(6)),
            ("2*batch + 1", Some(7)),
            ("batch*batch", Some(9)),
            // The text of a formula that is an input's own name.
            ("past + 1", Some(7)),
            ("other", None),
            ("batch - 1", None),
            ("", None),
        ] {
            let sizes = sizes(&port(&[4, -1], &["", name]), &inputs);
            let shape = Shapes(vec![sizes]).output(0, &given);
            assert_eq!(shape, expected.map(|size| vec![4, size]), "{name}");
        }
    }
}
