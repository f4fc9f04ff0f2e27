//! Products of one row with packed weights that follow one another, in one launch: `kernels/include/rukh/weight_chain.h`.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::hip::{Numbers, Part, TENSOR_MAP_BYTES, TensorMap};
use crate::ops::OpError;
use crate::ops::activation::Activation;
use crate::ops::weight_only::MatMulNBits;

use super::super::PlanBuilder;
use super::super::gemm::Fused;
use super::super::launch::{COUNTERS, ChainLink, Given, KernelName, LaunchPlan, Operand};
use super::super::provider::Provider;
use super::chain_rows::{Linked, Place, Rows, SET, TILE};
use super::{SCALES, SKIP, WEIGHT, X};

/// The inputs of which a product's row is the sum.
pub(crate) const ROWS_ADDED: [usize; 2] = [X, SKIP];
/// Products of a launch at most.
pub(crate) const MOST_LINKS: usize = 4;

/// Words with which a chain's workgroups count, behind the counters of other launches. They count before the launch before them has
/// ended, so neighbours in a plan have words of their own.
const CHAIN_WORDS: usize = 16;
const WORDS_USED: usize = 3;
const CHAINS: usize = 64;
/// Behind them: how many launches there were, and two sets of the rows that workgroups exchange.
const TURN_WORDS: usize = 16;
pub(in super::super) const WORDS_OF_CHAINS: usize =
    CHAINS * CHAIN_WORDS + TURN_WORDS + 2 * SET / size_of::<u32>();
/// What stands for a sum that stays in workgroup memory.
const KEPT: u64 = 1;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ChainProduct {
    a: u64,
    skip: u64,
    sum: u64,
    scale: u64,
    out: u64,
    tiles: u32,
    k: u32,
    first: u32,
    second: u32,
    gated: u32,
    epsilon: f32,
}

const _: () = assert!(size_of::<ChainProduct>() == 64);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ChainParams {
    maps: [[[u8; TENSOR_MAP_BYTES]; 2]; MOST_LINKS],
    products: [ChainProduct; MOST_LINKS],
    words: u64,
    exchange: u64,
    count: u32,
    groups: u32,
    slots: u32,
    patience: u32,
    waits_first: u32,
    kept: u32,
    unused: [u32; 6],
}

const _: () = assert!(size_of::<ChainParams>() == 1344 && WORDS_USED <= CHAIN_WORDS);

/// Bytes of a slot of the ring: the lines of a tile, of 2048 numbers of 4 bits and their scales.
const SLOT_NUMBERS: usize = 2048;
const BLOCK: usize = 32;
const SLOT: usize = TILE * (SLOT_NUMBERS / 2 + SLOT_NUMBERS / BLOCK * 2);
/// What a workgroup has beside the ring and the row: up to 1024 bytes to align the ring, barriers, and sums.
const BESIDE: usize = (1 << 10) + 2752;
/// Work items of a workgroup.
const ITEMS: u32 = 320;
/// Slots of the ring: as many as leave room for attention beside them, and not fewer than keep the memory busy.
const MOST_SLOTS: usize = 8;
const LEAST_SLOTS: usize = 6;
const WORKGROUP_MEMORY: usize = 226 << 10;
/// How long workgroups wait for each other before one of them does all the work, in ns.
const PATIENCE: u32 = 2_000_000;

#[cfg(test)]
thread_local! {
    /// That of chains which this thread plans.
    pub(crate) static PATIENCE_OF_TESTS: std::cell::Cell<u32> = const { std::cell::Cell::new(PATIENCE) };
}

fn patience() -> u32 {
    #[cfg(test)]
    return PATIENCE_OF_TESTS.get();
    #[cfg(not(test))]
    PATIENCE
}

/// The product of one row of f16 with a weight that is a constant, without zero points, order of columns and bias. `None` for
/// what the kernel does not take.
pub(super) fn link(
    plan: &PlanBuilder<'_>,
    op: &MatMulNBits,
    fused: &Fused,
    activation: Activation,
) -> Option<ChainLink> {
    let MatMulNBits { n, k, bits, block, .. } = *op;
    let constant = |operand: Operand| plan.is_constant(operand);
    let norm = fused.norm.as_ref();
    let fits = plan.provider.chains_products()
        && (bits, block) == (4, BLOCK)
        && k.is_multiple_of(512)
        && n.is_multiple_of(TILE)
        && slots(k, 0) >= LEAST_SLOTS
        && u32::try_from(n.max(k)).is_ok()
        && matches!((fused.gate, activation), (None, Activation::Identity) | (Some(_), Activation::Silu));
    let constants = constant(Operand::Input(WEIGHT))
        && constant(Operand::Input(SCALES))
        && norm.is_none_or(|norm| constant(norm.scale));
    (fits && constants).then(|| ChainLink {
        skip: norm.and_then(|norm| norm.skip),
        sum: norm.and_then(|norm| norm.sum),
        scale: norm.map(|norm| norm.scale),
        epsilon: norm.map_or(0.0, |norm| norm.epsilon),
        n,
        k,
        gate: fused.gate,
    })
}

/// One launch for all of them, the `number`th of its plan, and the values that are its inputs. `None` where one launch cannot do it
/// ([`Rows::of`]), would have few workgroups, or has no room for the ring.
pub(crate) fn plan_chain(
    provider: &Provider,
    products: &[Linked<'_>],
    number: usize,
) -> Result<Option<(LaunchPlan, Vec<u32>)>, OpError> {
    let Some(rows) = Rows::of(products) else { return Ok(None) };
    let slots = slots(rows.deepest, rows.kept);
    let units = provider.unit().compute_units;
    let groups = units.min(rows.least_tiles);
    let is_small = !cfg!(test) && 2 * groups < units;
    if slots < LEAST_SLOTS || is_small {
        return Ok(None);
    }
    let word = |at: usize| (at * size_of::<u32>()) as u64;
    let mut params = ChainParams {
        // Offsets, to which the address is added.
        words: word(COUNTERS + number % CHAINS * CHAIN_WORDS),
        exchange: word(COUNTERS + CHAINS * CHAIN_WORDS),
        count: products.len() as u32,
        groups: groups as u32,
        slots: slots as u32,
        patience: patience(),
        // A plan may follow itself, and have one chain alone.
        waits_first: u32::from(number == 0),
        kept: rows.kept as u32,
        ..ChainParams::zeroed()
    };
    let mut addresses = vec![
        (offset_of!(ChainParams, words), Operand::Counters),
        (offset_of!(ChainParams, exchange), Operand::Counters),
    ];
    let mut values = Vec::new();
    let mut operand = |value: u32| {
        let at = values.iter().position(|&v| v == value).unwrap_or_else(|| {
            values.push(value);
            values.len() - 1
        });
        Operand::Input(at)
    };
    let mut maps = Vec::new();
    for (i, (linked, row)) in products.iter().zip(&rows.each).enumerate() {
        let ChainLink { scale, epsilon, n, k, gate, .. } = linked.link;
        let [first, second] = gate.unwrap_or([0, TILE / 2]).map(|column| column as u32);
        let [tiles, k, gated] = [n / TILE, *k, usize::from(gate.is_some())].map(|n| n as u32);
        let product = &mut params.products[i];
        *product =
            ChainProduct { tiles, k, first, second, gated, epsilon: *epsilon, ..ChainProduct::zeroed() };
        let at = offset_of!(ChainParams, products) + i * size_of::<ChainProduct>();
        let scale = scale.map(|scale| linked.value(scale).map(Place::Value)).transpose()?;
        for (place, field, word) in [
            (Some(row.a), offset_of!(ChainProduct, a), &mut product.a),
            (row.skip, offset_of!(ChainProduct, skip), &mut product.skip),
            (row.sum, offset_of!(ChainProduct, sum), &mut product.sum),
            (scale, offset_of!(ChainProduct, scale), &mut product.scale),
            (Some(row.out), offset_of!(ChainProduct, out), &mut product.out),
        ] {
            match place {
                Some(Place::Value(value)) => addresses.push((at + field, operand(value))),
                Some(Place::Exchanged(offset)) => *word = offset as u64,
                Some(Place::Kept) => *word = KEPT,
                None => {}
            }
        }
        for (j, (of, map)) in [WEIGHT, SCALES].into_iter().zip(maps_of(linked.link)).enumerate() {
            let at = offset_of!(ChainParams, maps) + (2 * i + j) * TENSOR_MAP_BYTES;
            maps.push((at, operand(linked.value(Operand::Input(of))?), 0, map));
        }
    }
    let mut plan = PlanBuilder::new(provider, Given::None);
    let kernel = KernelName { family: "hopper_weight_chain", name: c"weight_chain_f16_4" };
    let memory = memory(rows.deepest, rows.kept, slots) as u32;
    plan.launch_with(kernel, [groups, 1, 1], ITEMS, memory, &params, &addresses)?;
    plan.maps(maps);
    Ok(Some((plan.finish()?, values)))
}

/// How the engine copies eight lines of a slot, and their scales. Four numbers lie in one of half precision.
fn maps_of(link: &ChainLink) -> [TensorMap; 2] {
    let [n, k, side] = [link.n, link.k, SLOT_NUMBERS / BLOCK].map(|n| n as u64);
    let map = |sizes: [u64; 3], strides: [u64; 2], depth: u64| TensorMap {
        numbers: Numbers::F16,
        swizzled: true,
        sizes: sizes.to_vec(),
        strides: strides.to_vec(),
        part: Part::Box([side, TILE as u64 / 2, depth].map(|n| n as u32).to_vec()),
    };
    let scales = k / BLOCK as u64;
    [map([side, n, k / 256], [k / 2, 128], 8), map([scales, n, 1], [2 * scales, 2 * scales * n], 1)]
}

/// Slots of the ring beside a row of `k` elements, and `kept` elements of a sum.
fn slots(k: usize, kept: usize) -> usize {
    (WORKGROUP_MEMORY.saturating_sub(memory(k, kept, 0)) / SLOT).min(MOST_SLOTS)
}

/// Bytes of workgroup memory: the ring, of the row two bytes an element with eight for each block, and the sum.
fn memory(k: usize, kept: usize, slots: usize) -> usize {
    BESIDE + slots * SLOT + 2 * k + k / BLOCK * 8 + 2 * kept
}
