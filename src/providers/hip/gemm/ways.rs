//! The ways to compute a product, of which tuning finds the fastest: every tile with several splits of K, and
//! the algorithms of the platform's libraries.

use std::sync::Arc;

use crate::hip::blas::{Algorithm, Blas};
use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::launch::Operand;
use super::super::tuning::{Problem, Span, Trial};
use super::super::unit::Unit;
use super::hopper;
use super::library::Described;
use super::product::{Extra, Matrix, Product};
use super::tiles::{self, TileKernel};

/// One way.
#[derive(Clone)]
enum Way {
    /// A kernel, with about so many parts of K.
    Tile(TileKernel, usize),
    Library(Described, Arc<dyn Algorithm>),
}

/// Appends the launches of a product in the way that tuning chooses.
pub(super) fn plan_tuned(
    product: &Product,
    plan: &mut PlanBuilder<'_>,
    ty: ElementType,
) -> Result<(), OpError> {
    let provider = plan.provider;
    let (unit, tuner) = (provider.unit(), provider.tuner());
    let default = product.default_way(ty, unit)?;
    let mut ways = tile_ways(product, ty, default, tiles::all(ty, product.shape(), unit), unit);
    let Some((trial, operands)) = trial(product, ty) else {
        return product.launch_in_parts(plan, ty, default.0, default.1, &Extra::default());
    };
    let own = ways.len();
    // Asking libraries takes time, so it is done when a choice among theirs is to be made.
    let of_libraries = std::cell::OnceCell::new();
    let library_ways = || of_libraries.get_or_init(|| library_ways(product, ty, tuner.libraries()));
    let names = |tile: &[Way], with_libraries: bool| -> Vec<String> {
        let library: &[Way] = if with_libraries { library_ways() } else { &[] };
        tile.iter().chain(library).map(|way| way.name(product, ty)).collect()
    };
    let chosen = tuner.choose(
        provider,
        &Problem {
            operator: "gemm",
            key: key(product, ty),
            candidates: &|with_libraries| names(&ways, with_libraries),
            trial,
            plan: &|way, plan| {
                let way = if way < own { &ways[way] } else { &library_ways()[way - own] };
                way.plan(&operands, ty, plan, default)
            },
        },
    );
    if chosen >= own {
        ways.extend_from_slice(library_ways());
    }
    ways[chosen].plan(product, ty, plan, default)
}

/// The default, then every tile with several splits of K.
fn tile_ways(
    product: &Product,
    ty: ElementType,
    default: (TileKernel, usize),
    tiles: Vec<TileKernel>,
    unit: Unit,
) -> Vec<Way> {
    // The model knows the best split of each of these; without one it is tried as well.
    let staying = hopper::tiles(product, ty, unit);
    let whole = staying.iter().filter(|(_, parts)| *parts > 1).map(|&(tile, _)| (tile, 1));
    let staying: Vec<_> = staying.iter().copied().chain(whole).filter(|way| !same(way, &default)).collect();
    let others = splits(product, ty, tiles, unit, Some(default));
    let all = std::iter::once(default).chain(staying).chain(others);
    all.map(|(tile, wanted)| Way::Tile(tile, wanted)).collect()
}

pub(in super::super) fn same(a: &(TileKernel, usize), b: &(TileKernel, usize)) -> bool {
    (a.0.kernel.name, a.0.stages, a.1) == (b.0.kernel.name, b.0.stages, b.1)
}

/// Kernels with wanted parts of K, no two alike and none like `except`.
pub(in super::super) fn splits(
    product: &Product,
    ty: ElementType,
    tiles: Vec<TileKernel>,
    unit: Unit,
    except: Option<(TileKernel, usize)>,
) -> Vec<(TileKernel, usize)> {
    /// Workgroups for each processor beyond which a finer split only adds sums.
    const MOST_GROUPS: usize = 8;
    let extra = Extra::default();
    let mut found = Vec::new();
    for tile in tiles {
        for wanted in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32] {
            let busy = wanted == 1 || wanted * product.groups(tile) <= MOST_GROUPS * unit.compute_units;
            let parts = product.parts(ty, wanted, &extra).1;
            let there = |&(other, split): &(TileKernel, usize)| {
                other.kernel.name == tile.kernel.name && product.parts(ty, split, &extra).1 == parts
            };
            if busy && !found.iter().chain(&except).any(there) {
                found.push((tile, wanted));
            }
        }
    }
    found
}

/// `gemm_f16_large`, `gemm_f16_large/4` in four parts, or `gemm_f16_hopper_64x64x5` with five steps in workgroup memory.
pub(in super::super) fn tile_name(
    product: &Product,
    ty: ElementType,
    tile: TileKernel,
    wanted: usize,
    extra: &Extra,
) -> String {
    let mut name = tile.kernel.name.to_string_lossy().into_owned();
    if tile.stages > 0 {
        name += &format!("x{}", tile.stages);
    }
    let parts = if tile.resident > 0 { wanted } else { product.parts(ty, wanted, extra).1 };
    match parts {
        1 => name,
        parts => format!("{name}/{parts}"),
    }
}

fn library_ways(product: &Product, ty: ElementType, libraries: &[Arc<dyn Blas>]) -> Vec<Way> {
    let forms = Described::forms(product, ty);
    let each = forms.iter().flat_map(|form| libraries.iter().map(move |library| (form, library)));
    each.flat_map(|(form, library)| {
        let algorithms = library.algorithms(&form.gemm);
        algorithms.into_iter().map(|algorithm| Way::Library(form.clone(), algorithm))
    })
    .collect()
}

impl Way {
    fn name(&self, product: &Product, ty: ElementType) -> String {
        match self {
            Way::Tile(tile, wanted) => tile_name(product, ty, *tile, *wanted, &Extra::default()),
            Way::Library(form, algorithm) => format!("{}{}", algorithm.name(), form.suffix()),
        }
    }

    fn plan(
        &self,
        product: &Product,
        ty: ElementType,
        plan: &mut PlanBuilder<'_>,
        (default, split): (TileKernel, usize),
    ) -> Result<(), OpError> {
        let extra = Extra::default();
        match self {
            Way::Tile(tile, wanted) => product.launch_in_parts(plan, ty, *tile, *wanted, &extra),
            Way::Library(form, algorithm) => form.plan(product, ty, plan, algorithm, |plan| {
                product.launch_in_parts(plan, ty, default, split, &extra)
            }),
        }
    }
}

/// The operands of a trial, and the product on them. `None` for a product that has no elements to add, or
/// steps backwards.
fn trial(product: &Product, ty: ElementType) -> Option<(Trial, Product)> {
    let Product { m, n, k, .. } = *product;
    let shapes = [(m, k), (k, n), (m, n), (m, n), (m, n)];
    let mut own = product.clone();
    let mut spans = [Span { ty, elements: 0 }; 5];
    let places =
        [Operand::Input(0), Operand::Input(1), Operand::Output(0), Operand::Input(2), Operand::Input(3)];
    let matrices =
        [Some(&mut own.a), Some(&mut own.b), Some(&mut own.out), own.bias.as_mut(), own.residual.as_mut()];
    for (i, matrix) in matrices.into_iter().enumerate() {
        let Some(matrix) = matrix else { continue };
        *matrix = Matrix { at: places[i], offset: 0, ..*matrix };
        let sizes = [shapes[i].0, shapes[i].1].into_iter().zip(matrix.strides);
        let axes = product.batch.iter().map(|axis| (axis.size, axis.strides[i]));
        let steps = sizes.chain(axes).map(|(size, stride)| {
            let stride = usize::try_from(stride).ok()?;
            size.checked_sub(1)?.checked_mul(stride)
        });
        let last = steps.sum::<Option<usize>>()?;
        spans[i].elements = last.checked_add(1)?.checked_mul(ty.size())? / ty.size();
    }
    let [a, b, output, bias, residual] = spans;
    Some((Trial { inputs: vec![a, b, bias, residual], output }, own))
}

/// Everything of a product that decides how fast its candidates are, as a word.
pub(super) fn key(product: &Product, ty: ElementType) -> String {
    let order = |matrix: Matrix| match matrix.strides {
        [_, 1] => "n",
        [1, _] => "t",
        _ => "s",
    };
    let Product { m, n, k, a, b, out, .. } = *product;
    let mut key = format!("{ty}_{}{}_m{m}_n{n}_k{k}", order(a), order(b));
    for (name, [row, column]) in [("a", a.strides), ("b", b.strides), ("o", out.strides)] {
        key += &format!("_{name}{row}x{column}");
    }
    for axis in &product.batch {
        let [a, b, out, ..] = axis.strides;
        key += &format!("_batch{}:{a}:{b}:{out}", axis.size);
    }
    for (name, matrix) in [("bias", product.bias), ("residual", product.residual)] {
        if let Some(matrix) = matrix {
            key += &format!("_{name}{}x{}", matrix.strides[0], matrix.strides[1]);
        }
    }
    // The constants of a function do not matter, but for bias by a factor, which libraries do differently.
    let function = format!("{:?}", product.epilogue.activation);
    key += &format!("_{}", function.split([' ', '{']).next().unwrap_or_default());
    if product.bias.is_some() && product.epilogue.beta != 1.0 {
        key += "_scaled";
    }
    key
}

#[cfg(test)]
mod tests {
    use super::super::Epilogue;
    use super::super::product::Axis;
    use super::*;
    use crate::ops::activation::Activation;

    fn product(m: usize, n: usize, k: usize) -> Product {
        Product {
            m,
            n,
            k,
            a: Matrix::new(Operand::Input(5), k, 1),
            b: Matrix { offset: 3, ..Matrix::new(Operand::Input(5), 1, k) },
            out: Matrix::new(Operand::Output(1), n, 1),
            bias: Some(Matrix::new(Operand::Input(7), 0, 1)),
            residual: None,
            batch: vec![Axis { size: 2, strides: [(m * k) as i64, 0, (m * n) as i64, 0, 0] }],
            epilogue: Epilogue { activation: Activation::LeakyRelu { alpha: 0.1 }, ..Epilogue::default() },
        }
    }

    #[test]
    fn keys_are_words_and_trials_hold_the_operands() {
        let product = product(6, 8, 4);
        let wanted = "float16_nt_m6_n8_k4_a4x1_b1x4_o8x1_batch2:24:0:48_bias0x1_LeakyRelu";
        assert_eq!(key(&product, ElementType::F16), wanted);
        let (trial, own) = trial(&product, ElementType::F16).unwrap();
        let elements: Vec<usize> = trial.inputs.iter().map(|span| span.elements).collect();
        assert_eq!((elements, trial.output.elements), (vec![48, 32, 8, 0], 96));
        assert_eq!((own.b.at, own.b.offset, own.out.at), (Operand::Input(1), 0, Operand::Output(0)));
    }

    #[test]
    fn splits_differ() {
        let unit = Unit::AMPERE;
        let product = product(256, 256, 2048);
        let default = product.default_way(ElementType::F16, unit).unwrap();
        let tiles = tiles::all(ElementType::F16, product.shape(), unit);
        assert_eq!(tiles.len(), 3);
        let ways = tile_ways(&product, ElementType::F16, default, tiles, unit);
        let names: Vec<String> = ways.iter().map(|way| way.name(&product, ElementType::F16)).collect();
        assert_eq!(names[0], "gemm_f16_small/8");
        for name in ["gemm_f16_wide", "gemm_f16_large/4", "gemm_f16_small"] {
            assert_eq!(names.iter().filter(|n| *n == name).count(), 1, "{names:?}");
        }
        let mut unique = names.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), names.len());
    }
}
