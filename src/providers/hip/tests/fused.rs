//! Operators that only the fusions of this library make.

use crate::graph::Attribute;
use crate::tensor::{ElementType, Value};

use super::super::testing::data::{mixed, tolerance};
use super::super::testing::{Both, both_in, node, on_cpu, on_device, provider};

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
        for (shape, functions) in [(&[2, 5, 2752][..], 5), (&[7, 6], 5), (&[1, 18], 5), (&[40, 60000], 2)] {
            let all = [("Silu", 0), ("Gelu", 1), ("GeluTanh", 0), ("Sigmoid", 1), ("Relu", 0)];
            for (name, gate_last) in all.into_iter().take(functions) {
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

/// A projection beside the operators that it stands for: with few rows one launch, with more one after the other.
#[test]
fn projections() {
    let Some(provider) = provider(&[]) else { return };
    let text = |name: &'static str, value: &str| (name, Attribute::String(value.as_bytes().to_vec()));
    for ty in [ElementType::F16, ElementType::BF16] {
        for (rows, k, n, transposed) in [
            (&[1][..], 2048, 66, true),
            (&[2, 1], 264, 10, true),
            (&[1, 3], 1000, 34, true),
            (&[8], 512, 6, true),
            (&[2, 6], 96, 18, true),
            (&[1], 64, 8, false),
        ] {
            for (norm, skip, gate, last, bias) in [
                (true, true, "Silu", 0, false),
                (true, false, "", 0, true),
                (false, false, "GeluTanh", 1, true),
                (true, true, "", 0, false),
                (true, false, "Relu", 1, false),
            ] {
                let x_shape = [rows, &[k]].concat();
                let x = mixed(ty, &x_shape);
                let weight = mixed(ty, &if transposed { [n, k] } else { [k, n] });
                let bias = if bias { mixed(ty, &[n]) } else { None };
                let scale = if norm { mixed(ty, &[k]) } else { None };
                let skip = if skip { mixed(ty, &x_shape) } else { None };
                let product =
                    [("transB", Attribute::Int(transposed.into())), ("alpha", Attribute::Float(0.03))];
                let epsilon = ("epsilon", Attribute::Float(1e-3));
                let value = |tensor: &crate::tensor::Tensor| Some(Value::Tensor(tensor.clone()));
                let compute =
                    |domain: &str, name: &str, attributes: &[(&str, Attribute)], inputs: &[_], outputs| {
                        on_cpu(&node(domain, name, 1, attributes, inputs, outputs), inputs)
                    };
                let (mut normal, mut sum) = (x.clone(), None);
                if norm && skip.is_some() {
                    let inputs = [x.clone(), skip.clone(), scale.clone()];
                    let made = compute(
                        "com.microsoft",
                        "SkipSimplifiedLayerNormalization",
                        std::slice::from_ref(&epsilon),
                        &inputs,
                        4,
                    );
                    (normal, sum) = (value(&made[0]), Some(made[3].clone()));
                } else if norm {
                    let inputs = [x.clone(), scale.clone()];
                    normal = value(
                        &compute(
                            "",
                            "SimplifiedLayerNormalization",
                            std::slice::from_ref(&epsilon),
                            &inputs,
                            1,
                        )[0],
                    );
                }
                let mut cpu = compute("rukh", "MatMul", &product, &[normal, weight.clone(), bias.clone()], 1);
                let mut attributes = product.to_vec();
                attributes.push(epsilon);
                if !gate.is_empty() {
                    let of_gate = [text("activation", gate), ("gate_last", Attribute::Int(last))];
                    cpu = compute("rukh", "GatedUnit", &of_gate, &[value(&cpu[0])], 1);
                    attributes.extend([text("gate", gate), ("gate_last", Attribute::Int(last))]);
                }
                cpu.extend(sum);
                let inputs = [x, weight, bias, None, skip, scale];
                let node = node("rukh", "Projection", 1, &attributes, &inputs, cpu.len());
                let device = on_device(&provider, &node, &inputs, &cpu).expect("a projection");
                // What lies between is rounded on the CPU, which a product of two functions of it multiplies.
                let what = format!("{ty} {rows:?}x{k}x{n} {transposed} norm {norm} gate {gate:?}");
                Both { device, cpu }.assert_close(&what, 8.0 * tolerance(ty));
            }
        }
    }
}
