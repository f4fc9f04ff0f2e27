//! What the kernels take, how they find it, and which tile is chosen.

use super::super::super::launch::Operand;
use super::super::Epilogue;
use super::super::product::Axis;
use super::*;
use crate::hip::{Numbers, Part};
use crate::ops::activation::Activation;

fn product(m: usize, n: usize, k: usize) -> Product {
    Product {
        m,
        n,
        k,
        a: Matrix::new(Operand::Input(0), k, 1),
        b: Matrix::new(Operand::Input(1), n, 1),
        out: Matrix::new(Operand::Output(0), n, 1),
        bias: None,
        residual: None,
        batch: Vec::new(),
        epilogue: Epilogue::default(),
    }
}

/// The best of what was measured on an H100 is the first choice, or is within some percent of it.
#[test]
fn the_model_chooses_what_was_measured_to_be_fast() {
    for (m, n, k, residual, best) in [
        (8192, 8192, 8192, false, &["128x256", "128x192"][..]),
        (4096, 4096, 4096, false, &["128x256"]),
        (4096, 768, 768, false, &["128x192"]),
        (4096, 768, 3072, false, &["128x192"]),
        (4096, 3072, 768, false, &["128x192", "128x128"]),
        (6304, 2304, 768, false, &["128x192", "128x128"]),
        (1024, 1024, 1024, false, &["64x64", "64x128"]),
        (128, 768, 768, false, &["few16_cluster1", "few32_cluster1"]),
        (128, 3072, 768, false, &["few64_cluster1"]),
        (128, 768, 3072, false, &["few64_cluster4", "few32_cluster2"]),
        (49, 512, 4608, false, &["few32_cluster4"]),
        (16, 4096, 4096, false, &["few16_cluster2"]),
        (16, 16384, 2048, false, &["few16_cluster1"]),
        (49, 2048, 512, false, &["few16_cluster1", "few32_cluster1"]),
        (64, 4096, 1024, false, &["few32_cluster1", "few64_cluster2"]),
        (197, 2304, 768, false, &["64x64", "64x128", "few64_cluster1"]),
        (4096, 768, 768, true, &["128x192"]),
        (6304, 2304, 768, true, &["128x128"]),
        (4096, 3072, 768, true, &["128x192", "128x128"]),
    ] {
        let residual = residual.then(|| Matrix::new(Operand::Input(3), n, 1));
        let (tile, parts) =
            tiles(&Product { residual, ..product(m, n, k) }, ElementType::F16, Unit::HOPPER)[0];
        let name = tile.kernel.name.to_str().unwrap().strip_prefix("gemm_f16_hopper_").unwrap();
        assert!(best.contains(&name), "{m}x{n}x{k}: {name}");
        assert_eq!(parts, 1, "{m}x{n}x{k}");
    }
}

/// The same for f32, of which parts of K are made where tiles are few.
#[test]
fn the_model_chooses_tiles_of_single_precision() {
    for (m, n, k, best, parts) in [
        (4096, 4096, 4096, "128x256", 1),
        (4096, 768, 768, "64x64", 1),
        (1024, 1024, 1024, "64x64", 1),
        (128, 768, 768, "64x64", 4),
        (512, 512, 512, "64x64", 2),
    ] {
        let (tile, wanted) = tiles(&product(m, n, k), ElementType::F32, Unit::HOPPER)[0];
        let name = tile.kernel.name.to_str().unwrap().strip_prefix("gemm_f32_hopper_").unwrap();
        assert_eq!((name, wanted), (best, parts), "{m}x{n}x{k}");
    }
    // Columns of B are taken four at a time.
    let by_k = |n: usize| Product { b: Matrix::new(Operand::Input(1), 1, 64), ..product(64, n, 64) };
    let name = tiles(&by_k(68), ElementType::F32, Unit::HOPPER)[0].0.kernel.name;
    assert_eq!(name, c"gemm_f32_hopper_64x64_by_k");
    assert!(tiles(&by_k(66), ElementType::F32, Unit::HOPPER).is_empty());
}

#[test]
fn results_without_a_map_have_small_tiles() {
    let wide = |n: usize| Product { b: Matrix::new(Operand::Input(1), 1, 768), ..product(4096, n, 768) };
    let columns =
        |n: usize| tiles(&wide(n), ElementType::F16, Unit::HOPPER).iter().map(|(tile, _)| tile.columns).max();
    assert_eq!((columns(3072), columns(3071)), (Some(256), Some(64)));
}

#[test]
fn functions_and_slopes_are_not_linear() {
    for (activation, linear) in [
        (Activation::Identity, true),
        (Activation::Relu, true),
        (Activation::Clip { min: 0.0, max: 6.0 }, true),
        (Activation::LeakyRelu { alpha: 0.1 }, false),
        (Activation::Gelu { tanh: false }, false),
    ] {
        let epilogue = Epilogue { activation, ..Epilogue::default() };
        assert_eq!(Product { epilogue, ..product(64, 64, 64) }.is_linear(), linear, "{activation:?}");
    }
    let scaled = Epilogue { beta: 0.5, ..Epilogue::default() };
    assert!(Product { epilogue: scaled, ..product(64, 64, 64) }.is_linear(), "there is no bias");
    let bias = Some(Matrix::new(Operand::Input(2), 0, 1));
    assert!(!Product { epilogue: scaled, bias, ..product(64, 64, 64) }.is_linear());
}

#[test]
fn rows_are_copied_where_maps_can_say_it() {
    let whole = product(100, 72, 40);
    let (out, residual) = row_copies(&whole, ElementType::F16).unwrap();
    assert_eq!((&out.sizes[..], &out.strides[..]), (&[72, 100, 1][..], &[144, 14400][..]));
    assert_eq!((out.part, residual), (Part::Box(vec![64, 16, 1]), None));
    // A residual for all matrices of a batch, and one whose rows are all the same.
    let batch = vec![Axis { size: 3, strides: [4000, 0, 7200, 0, 0] }];
    let added = Some(Matrix::new(Operand::Input(3), 72, 1));
    let several = Product { batch, residual: added, ..product(100, 72, 40) };
    let (out, residual) = row_copies(&several, ElementType::BF16).unwrap();
    assert_eq!((out.sizes[2], residual.unwrap().sizes[2], out.numbers), (3, 1, Numbers::BF16));
    let row = Some(Matrix::new(Operand::Input(3), 0, 1));
    assert!(row_copies(&Product { residual: row, ..product(100, 72, 40) }, ElementType::F16).is_none());
    assert!(row_copies(&product(100, 71, 40), ElementType::F16).is_none());
}

#[test]
fn what_packs_cannot_hold_is_left_to_others() {
    let ty = ElementType::F16;
    /// A change to a product, and whether it is still taken.
    type Case = (fn(&mut Product), bool);
    let cases: [Case; 11] = [
        (|_| {}, true),
        (|p| (p.n, p.b.strides) = (12, [12, 1]), false),
        (|p| (p.n, p.b.strides, p.out.strides) = (61, [1, 64], [61, 1]), true),
        (|p| p.out.strides = [61, 1], false),
        (|p| p.a.strides = [1, 64], false),
        (|p| p.b.strides = [1, 64], true),
        (|p| p.b.offset = 4, false),
        (|p| p.out.strides = [1, 64], false),
        (|p| p.bias = Some(Matrix::new(Operand::Input(2), 1, 0)), false),
        (|p| p.bias = Some(Matrix::new(Operand::Input(2), 0, 1)), true),
        (|p| p.batch = vec![Axis { size: 2, strides: [4096, 0, 4096, 0, 0] }], true),
    ];
    for (i, (change, taken)) in cases.into_iter().enumerate() {
        let mut product = product(64, 64, 64);
        change(&mut product);
        assert_eq!(!tiles(&product, ty, Unit::HOPPER).is_empty(), taken, "case {i}");
    }
    assert!(tiles(&product(64, 64, 64), ElementType::F64, Unit::HOPPER).is_empty());
    assert!(tiles(&product(64, 64, 64), ty, Unit { tensor_maps: false, ..Unit::HOPPER }).is_empty());
}

#[test]
fn maps_say_how_operands_lie() {
    let mut product = product(100, 72, 40);
    product.batch = vec![Axis { size: 3, strides: [4000, 0, 7200, 0, 0] }];
    let copies = plain_copies(&product, ElementType::BF16, SIZES[4].sides()).unwrap();
    let [a, b] = &copies.maps;
    assert_eq!((&a.sizes[..], &a.strides[..]), (&[40, 100, 3][..], &[80, 8000][..]));
    assert_eq!((&b.sizes[..], &b.strides[..]), (&[72, 40, 1][..], &[144, 5760][..]));
    assert_eq!((&a.part, &b.part), (&Part::Box(vec![64, 64, 1]), &Part::Box(vec![64, 64, 1])));
    assert_eq!((copies.next, copies.steps, a.numbers), ([1, 0], 1, Numbers::BF16));
    assert_eq!(copies.stage_bytes, 2 * 64 * 64 * 2);
}

#[test]
fn copies_have_what_there_is() {
    for (m, n, by_columns, boxes, lines) in [
        (20, 40, true, [[64, 24], [64, 40]], 64),
        (64, 65, true, [[64, 64], [64, 64]], 128),
        (1, 40, false, [[64, 8], [64, 64]], 72),
    ] {
        let mut product = product(m, n, 64);
        product.b.strides = if by_columns { [1, 64] } else { [n.next_multiple_of(8) as i64, 1] };
        let copies = plain_copies(&product, ElementType::F16, SIZES[4].sides()).unwrap();
        let parts = boxes.map(|[k, rows]| Part::Box(vec![k, rows, 1]));
        assert_eq!(copies.maps.map(|map| map.part), parts, "{m} x {n}");
        assert_eq!(copies.stage_bytes, lines * 64 * 2, "{m} x {n}");
    }
}
