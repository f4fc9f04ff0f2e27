//! Products on a device against the CPU's: shapes beyond a tile, odd sizes, every type and transposition.

use crate::graph::Attribute;
use crate::tensor::ElementType;

use super::super::testing::{both, both_in, both_with, provider, small_integers as numbers};

const FLOATS: [ElementType; 4] = [ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::F64];

/// Rounding to the type, once.
fn tolerance(ty: ElementType) -> f64 {
    match ty {
        ElementType::F16 => 1e-3,
        ElementType::BF16 => 8e-3,
        _ => 1e-6,
    }
}

#[test]
fn products_of_any_shape() {
    let shapes: &[(&[usize], &[usize])] = &[
        (&[1, 300], &[300, 70]),
        (&[3, 2100], &[2100, 33]),
        (&[70, 130], &[130, 3]),
        (&[65, 63], &[63, 129]),
        (&[128, 64], &[64, 136]),
        (&[2, 5, 17, 40], &[5, 40, 24]),
        (&[40], &[2, 40, 8]),
    ];
    for ty in FLOATS.into_iter().chain([ElementType::I32, ElementType::I64]) {
        for (a, b) in shapes {
            let Some(out) = both("MatMul", 13, &[], &[numbers(ty, a), numbers(ty, b)], 1) else { return };
            out.assert_close(&format!("{ty} {a:?} · {b:?}"), tolerance(ty));
        }
    }
}

#[test]
fn large_tiles() {
    // More tiles of 128 × 128 than the emulated device has compute units.
    let (m, n, k) = (700, 900, 72);
    for ty in [ElementType::F32, ElementType::F16, ElementType::BF16] {
        for (trans_a, trans_b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let shape = |t: i64, r: usize, c: usize| if t == 1 { [c, r] } else { [r, c] };
            let inputs =
                [numbers(ty, &shape(trans_a, m, k)), numbers(ty, &shape(trans_b, k, n)), numbers(ty, &[n])];
            let attributes = [
                ("transA", Attribute::Int(trans_a)),
                ("transB", Attribute::Int(trans_b)),
                ("alpha", Attribute::Float(0.5)),
                ("beta", Attribute::Float(2.0)),
            ];
            let Some(out) = both("Gemm", 13, &attributes, &inputs, 1) else { return };
            out.assert_close(&format!("{ty} transposed {trans_a} {trans_b}"), tolerance(ty));
        }
    }
}

/// Functions that products apply themselves, and others.
const ACTIVATIONS: [&str; 9] =
    ["Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Silu", "Gelu", "Elu"];

#[test]
fn fused_products() {
    for ty in FLOATS {
        for activation in ACTIVATIONS {
            // The second is multiplied in parts of K, the third has more than one tile of both.
            for (m, n, k) in [(30, 50, 20), (20, 72, 1100), (130, 70, 600)] {
                // Small sums, where functions are not at their ends.
                let inputs = [numbers(ty, &[m, k]), numbers(ty, &[k, n]), numbers(ty, &[m, 1])];
                let attributes = [
                    ("activation", Attribute::String(activation.as_bytes().into())),
                    ("activation_alpha", Attribute::Float(0.5)),
                    ("activation_beta", Attribute::Float(0.25)),
                    ("alpha", Attribute::Float(0.01)),
                ];
                let Some(out) = both_in("com.microsoft", "FusedGemm", 1, &attributes, &inputs, 1) else {
                    return;
                };
                out.assert_close(&format!("{ty} {activation} {m}x{n}x{k}"), tolerance(ty));
            }
        }
        let attributes = [("transA", Attribute::Int(1)), ("transBatchB", Attribute::Int(1))];
        let inputs = [numbers(ty, &[3, 9, 6]), numbers(ty, &[9, 3, 10])];
        let Some(out) = both_in("com.microsoft", "FusedMatMul", 1, &attributes, &inputs, 1) else { return };
        out.assert_close(&format!("{ty} FusedMatMul"), tolerance(ty));
    }
}

/// The kernel for few rows: pairs of columns, the last of them alone; whole and partial steps of K; K among the waves of
/// a workgroup; rows beyond the kernel's; what it does not take.
#[test]
fn few_rows_by_columns() {
    for ty in [ElementType::F32, ElementType::F16, ElementType::BF16] {
        let rows = [(1, 33, 64), (1, 3, 8192), (2, 70, 2056), (3, 7, 1000), (4, 129, 2048), (5, 40, 264)];
        for (m, n, k) in
            rows.into_iter().chain([(8, 31, 512), (9, 16, 320), (16, 20, 96), (2, 5, 12), (1, 9, 6)])
        {
            for (bias, residual, activation) in
                [(false, false, ""), (true, false, "Silu"), (true, true, "Relu"), (false, true, "Elu")]
            {
                let given = |wanted: bool, shape: &[usize]| if wanted { numbers(ty, shape) } else { None };
                let inputs =
                    [numbers(ty, &[m, k]), numbers(ty, &[n, k]), given(bias, &[n]), given(residual, &[m, n])];
                let attributes = [
                    ("transB", Attribute::Int(1)),
                    ("alpha", Attribute::Float(0.0625)),
                    ("activation", Attribute::String(activation.as_bytes().into())),
                ];
                let Some(out) = both_in("rukh", "MatMul", 1, &attributes, &inputs, 1) else { return };
                out.assert_close(&format!("{ty} {m}x{n}x{k} {bias} {residual} {activation}"), tolerance(ty));
            }
        }
    }
}

/// Rows, columns and K of a product.
type Sizes = (usize, usize, usize);

/// Products with all that results may have, and weights whose rows or columns are contiguous.
fn assert_all_forms(ty: ElementType, sizes: &[Sizes]) {
    for &(m, n, k) in sizes {
        for (trans_b, bias, residual, activation) in [
            (0, false, false, ""),
            (1, true, false, "Gelu"),
            (0, true, true, "Relu"),
            (1, false, true, "Silu"),
            (0, true, false, "LeakyRelu"),
        ] {
            let given = |wanted: bool, shape: &[usize]| if wanted { numbers(ty, shape) } else { None };
            let b = if trans_b == 1 { [n, k] } else { [k, n] };
            let inputs = [numbers(ty, &[m, k]), numbers(ty, &b), given(bias, &[n]), given(residual, &[m, n])];
            let attributes = [
                ("transB", Attribute::Int(trans_b)),
                ("alpha", Attribute::Float(0.0625)),
                ("activation", Attribute::String(activation.as_bytes().into())),
            ];
            // Weights of a model are constants, and may be on their way before the kernels before have ended. Of others the model
            // gives a transposed copy.
            let constants: &[&[usize]] = if trans_b == 1 { &[&[], &[1]] } else { &[&[]] };
            for constants in constants {
                let Some(out) = both_with("rukh", "MatMul", 1, &attributes, &inputs, constants) else {
                    return;
                };
                out.assert_close(
                    &format!("{ty} {m}x{n}x{k} {trans_b} {bias} {residual} {activation} {constants:?}"),
                    tolerance(ty),
                );
            }
        }
    }
    // Matrices of a stack, and one weight for all of them.
    for (a, b) in [(&[3, 40, 128], &[3, 128, 136][..]), (&[3, 40, 128], &[128, 136])] {
        let Some(out) = both("MatMul", 13, &[], &[numbers(ty, a), numbers(ty, b)], 1) else { return };
        out.assert_close(&format!("{ty} {a:?} {b:?}"), tolerance(ty));
    }
}

/// Tiles of few rows on sm_90: each height of them, alone and shared by clusters, edges, steps of K that end early.
#[test]
fn few_rows_of_tiles() {
    let mut sizes = vec![(9, 72, 64), (16, 768, 768), (33, 200, 104), (197, 768, 72)];
    // Too much for an emulated device, which lacks these tiles.
    if provider(&[]).is_some_and(|provider| provider.unit().wgmma) {
        sizes.extend([(16, 4096, 1024), (16, 9000, 128), (64, 1024, 1024), (49, 512, 2304)]);
        sizes.extend([(100, 1544, 512), (128, 768, 1536), (197, 768, 320)]);
    }
    for ty in [ElementType::F16, ElementType::BF16] {
        assert_all_forms(ty, &sizes);
    }
}

/// Tiles of f32 on sm_90: whole and with edges, K in parts, steps that end early.
#[test]
fn tiles_of_single_precision() {
    let mut sizes =
        vec![(64, 64, 32), (200, 260, 100), (70, 1028, 512), (64, 512, 1024), (33, 100, 36), (130, 68, 200)];
    // The large tile, which is chosen where many of them fill the device: too much for an emulated one, which lacks it.
    if provider(&[]).is_some_and(|provider| provider.unit().wgmma) {
        sizes.push((2040, 4092, 100));
    }
    assert_all_forms(ElementType::F32, &sizes);
}

#[test]
fn equations() {
    let equations: &[(&str, &[&[usize]])] = &[
        ("bij,bjk->bik", &[&[3, 20, 30], &[3, 30, 10]]),
        ("bhqd,bkhd->bhqk", &[&[2, 3, 5, 8], &[2, 7, 3, 8]]),
        ("ij->ji", &[&[40, 30]]),
        ("ii->i", &[&[9, 9]]),
        ("ijk->j", &[&[4, 5, 6]]),
        ("aibj,bjc->iac", &[&[3, 4, 5, 6], &[5, 6, 7]]),
        ("ijab,bajk->ik", &[&[3, 4, 5, 6], &[6, 5, 4, 2]]),
        ("i,j->ij", &[&[11], &[13]]),
        ("i,i", &[&[100], &[100]]),
        ("ij,jk,kl->il", &[&[3, 4], &[4, 5], &[5, 6]]),
        ("...i,...i->...", &[&[2, 3, 8], &[3, 8]]),
    ];
    for (equation, shapes) in equations {
        let inputs: Vec<_> = shapes.iter().map(|s| numbers(ElementType::F32, s)).collect();
        let attributes = [("equation", Attribute::String(equation.as_bytes().into()))];
        let Some(out) = both("Einsum", 12, &attributes, &inputs, 1) else { return };
        out.assert_close(equation, 1e-6);
    }
}
