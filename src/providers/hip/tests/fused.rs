//! Operators that only the fusions of this library make.

use crate::graph::Attribute;
use crate::tensor::ElementType;

use super::super::testing::both_in;
use super::super::testing::data::{mixed, tolerance};

const TYPES: [ElementType; 4] = [ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::F64];

#[test]
fn products_with_all_that_follows() {
    let function = |name: &str| ("activation", Attribute::String(name.as_bytes().to_vec()));
    for ty in TYPES {
        for (a, b, out, transposed) in [
            (&[2, 5, 24][..], &[24, 40][..], &[2, 5, 40][..], false),
            (&[3, 70, 300], &[65, 300], &[3, 70, 65], true),
            (&[2, 3, 9, 16], &[3, 16, 12], &[2, 3, 9, 12], false),
            (&[7, 2000], &[2000, 3], &[7, 3], false),
        ] {
            let columns = &out[out.len() - 1..];
            for (bias, residual, activation) in [
                (true, false, "Gelu"),
                (true, true, "Relu"),
                (false, true, "Tanh"),
                (true, true, ""),
                (false, false, "Silu"),
            ] {
                let mut attributes = vec![function(activation)];
                attributes.extend(transposed.then_some(("transB", Attribute::Int(1))));
                // Small factors keep sums of many products within what a rounding leaves of them.
                attributes.push(("alpha", Attribute::Float(0.0625)));
                let given = |wanted: bool, shape: &[usize]| if wanted { mixed(ty, shape) } else { None };
                let inputs = [mixed(ty, a), mixed(ty, b), given(bias, columns), given(residual, out)];
                let Some(both) = both_in("rukh", "MatMul", 1, &attributes, &inputs, 1) else { return };
                both.assert_close(&format!("{ty} {a:?} · {b:?} {activation}"), 4.0 * tolerance(ty));
            }
        }
    }
}

#[test]
fn gated_units() {
    for ty in TYPES {
        for shape in [&[2, 5, 2752][..], &[7, 6], &[1, 18], &[40, 60000]] {
            for (name, gate_last) in [("Silu", 0), ("Gelu", 1), ("GeluTanh", 0), ("Sigmoid", 1), ("Relu", 0)]
            {
                let attributes = [
                    ("activation", Attribute::String(name.as_bytes().to_vec())),
                    ("gate_last", Attribute::Int(gate_last)),
                ];
                let Some(out) = both_in("rukh", "GatedUnit", 1, &attributes, &[mixed(ty, shape)], 1) else {
                    return;
                };
                // The CPU's functions of f64 are its own.
                out.assert_close(&format!("{name} {ty} {shape:?}"), tolerance(ty).max(1e-6));
            }
        }
    }
}
