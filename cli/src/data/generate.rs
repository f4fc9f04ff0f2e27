//! Made-up inputs, for trying and timing a model without data.

use std::collections::BTreeMap;

use half::{bf16, f16};

use super::{Kind, Port, Tensor, Value};

/// A value for `port`, the same for the same seed. Floating point numbers are normally distributed;
/// integers and booleans are 0 or 1, which is right for a mask, a token and most indices; strings
/// are empty. Open dimensions that are not in `chosen` become 1.
pub fn generate(port: &Port, chosen: &BTreeMap<String, usize>, seed: u64) -> Result<Value, String> {
    let (Kind::Tensor, Some(element)) = (port.kind, port.element) else {
        return Err(format!(
            "\"{}\": only tensors can be generated, and this is a {:?}",
            port.name, port.kind
        ));
    };
    let dims = port.concrete(chosen, Some(1))?;
    let count = dims.iter().fold(1usize, |n, &d| n.saturating_mul(d));
    if element.is_string() {
        return Tensor::from_strings(dims, vec![Vec::new(); count]).map(Value::Tensor);
    }
    if count.saturating_mul(element.size()) > isize::MAX as usize {
        return Err(format!("\"{}\": {element}{dims:?} is larger than memory", port.name));
    }
    let mut random = Random(seed);
    let mut bytes = Vec::with_capacity(count * element.size());
    for _ in 0..count {
        match element.name() {
            "float" => bytes.extend((random.normal() as f32).to_le_bytes()),
            "double" => bytes.extend(random.normal().to_le_bytes()),
            "float16" => bytes.extend(f16::from_f64(random.normal()).to_le_bytes()),
            "bfloat16" => bytes.extend(bf16::from_f64(random.normal()).to_le_bytes()),
            "complex64" => {
                bytes.extend(
                    [random.normal(), random.normal()].iter().flat_map(|v| (*v as f32).to_le_bytes()),
                );
            }
            "complex128" => {
                bytes.extend([random.normal(), random.normal()].iter().flat_map(|v| v.to_le_bytes()));
            }
            // Integers, booleans, and the small floats, of which 0 and 1 are valid codes.
            _ => {
                bytes.push((random.next() >> 63) as u8);
                bytes.resize(bytes.len() + element.size() - 1, 0);
            }
        }
    }
    Tensor::from_bytes(element, dims, bytes).map(Value::Tensor)
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Above 0, up to 1.
    fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Mean 0, variance 1 (Box and Muller).
    fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dim, ElementType};

    fn port(element: ElementType) -> Port {
        let shape = Some(vec![Dim::Symbol("batch".into()), Dim::Fixed(1000)]);
        Port { name: "x".into(), kind: Kind::Tensor, element: Some(element), shape }
    }

    #[test]
    fn numbers_are_spread_and_repeat() {
        let chosen = BTreeMap::from([("batch".to_owned(), 3)]);
        for number in (1..=28).map(ElementType) {
            let value = generate(&port(number), &chosen, 1).unwrap();
            assert_eq!(value, generate(&port(number), &chosen, 1).unwrap(), "{number}");
            let Value::Tensor(tensor) = value else { panic!("a tensor") };
            assert_eq!(tensor.dims, [3, 1000]);
        }
        let Value::Tensor(tensor) = generate(&port(ElementType::FLOAT), &chosen, 7).unwrap() else {
            panic!("a tensor")
        };
        let numbers = tensor.numbers();
        let mean = numbers.iter().sum::<f64>() / 3000.0;
        let variance = numbers.iter().map(|v| v * v).sum::<f64>() / 3000.0;
        assert!(mean.abs() < 0.1 && (variance - 1.0).abs() < 0.1, "{mean} {variance}");
    }
}
