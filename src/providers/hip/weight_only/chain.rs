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
use super::{SCALES, SKIP, WEIGHT, X};

/// The inputs of which a product's row is the sum.
pub(crate) const ROWS_ADDED: [usize; 2] = [X, SKIP];
/// Products of a launch at most.
pub(crate) const MOST_LINKS: usize = 4;

/// Words with which a chain's workgroups count, behind the counters of other launches. They count before the launch before them has
/// ended, so neighbours in a plan have words of their own.
const CHAIN_WORDS: usize = 16;
const WORDS_USED: usize = 3 + MOST_LINKS;
const CHAINS: usize = 64;
pub(in super::super) const WORDS_OF_CHAINS: usize = CHAINS * CHAIN_WORDS;

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
    count: u32,
    groups: u32,
    slots: u32,
    patience: u32,
    waits_first: u32,
    unused: [u32; 9],
}

const _: () = assert!(size_of::<ChainParams>() == 1344 && WORDS_USED <= CHAIN_WORDS);

/// Lines of a tile, and bytes of a slot of the ring: 16 lines of 2048 numbers of 4 bits and their scales.
const TILE: usize = 16;
const SLOT_NUMBERS: usize = 2048;
const BLOCK: usize = 32;
const SLOT: usize = TILE * (SLOT_NUMBERS / 2 + SLOT_NUMBERS / BLOCK * 2);
/// What a workgroup has beside the ring and the row: up to 1024 bytes to align the ring, barriers, and sums.
const BESIDE: usize = (1 << 10) + 2688;
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
        && slots(k) >= LEAST_SLOTS
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

/// A product of a chain, and the values that are its node's inputs and outputs.
#[derive(Clone, Copy)]
pub(crate) struct Linked<'a> {
    pub(crate) link: &'a ChainLink,
    pub(crate) inputs: &'a [Option<u32>],
    pub(crate) outputs: &'a [Option<u32>],
}

/// One launch for all of them, the `number`th of its plan, and the values that are its inputs.
pub(crate) fn plan_chain(
    provider: &Provider,
    products: &[Linked<'_>],
    number: usize,
) -> Result<(LaunchPlan, Vec<u32>), OpError> {
    let mut values = Vec::new();
    let mut operand = |linked: &Linked<'_>, operand: Operand| {
        let value = match operand {
            Operand::Input(i) => linked.inputs.get(i).copied().flatten(),
            Operand::Output(i) => linked.outputs.get(i).copied().flatten(),
            _ => None,
        };
        let value = value.ok_or_else(|| OpError::Data(format!("{operand:?} of a product is missing")))?;
        let at = values.iter().position(|&v| v == value).unwrap_or_else(|| {
            values.push(value);
            values.len() - 1
        });
        Ok::<_, OpError>(Operand::Input(at))
    };
    let deepest = products.iter().map(|linked| linked.link.k).max().unwrap_or(0);
    let groups = provider.unit().compute_units;
    let mut params = ChainParams {
        // The words begin there; what the address is added to.
        words: ((COUNTERS + number % CHAINS * CHAIN_WORDS) * size_of::<u32>()) as u64,
        count: products.len() as u32,
        groups: groups as u32,
        slots: slots(deepest) as u32,
        patience: patience(),
        // A plan may follow itself, and have one chain alone.
        waits_first: u32::from(number == 0),
        ..ChainParams::zeroed()
    };
    let mut addresses = vec![(offset_of!(ChainParams, words), Operand::Counters)];
    let mut maps = Vec::new();
    for (i, linked) in products.iter().enumerate().take(MOST_LINKS) {
        let ChainLink { skip, sum, scale, epsilon, n, k, gate } = linked.link;
        let half = TILE / 2;
        let [first, second] = gate.unwrap_or([0, half]).map(|column| column as u32);
        let [tiles, k, gated] = [n / TILE, *k, usize::from(gate.is_some())].map(|n| n as u32);
        params.products[i] =
            ChainProduct { tiles, k, first, second, gated, epsilon: *epsilon, ..ChainProduct::zeroed() };
        let at = offset_of!(ChainParams, products) + i * size_of::<ChainProduct>();
        let fields = [
            (Some(Operand::Input(X)), offset_of!(ChainProduct, a)),
            (*skip, offset_of!(ChainProduct, skip)),
            (*sum, offset_of!(ChainProduct, sum)),
            (*scale, offset_of!(ChainProduct, scale)),
            (Some(Operand::Output(0)), offset_of!(ChainProduct, out)),
        ];
        for (own, field) in fields {
            if let Some(own) = own {
                addresses.push((at + field, operand(linked, own)?));
            }
        }
        for (j, (of, map)) in [WEIGHT, SCALES].into_iter().zip(maps_of(linked.link)).enumerate() {
            let at = offset_of!(ChainParams, maps) + (2 * i + j) * TENSOR_MAP_BYTES;
            maps.push((at, operand(linked, Operand::Input(of))?, 0, map));
        }
    }
    let mut plan = PlanBuilder::new(provider, Given::None);
    let kernel = KernelName { family: "hopper_weight_chain", name: c"weight_chain_f16_4" };
    plan.launch_with(
        kernel,
        [groups, 1, 1],
        ITEMS,
        memory(deepest, slots(deepest)) as u32,
        &params,
        &addresses,
    )?;
    plan.maps(maps);
    Ok((plan.finish()?, values))
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

/// Slots of the ring beside a row of `k` elements.
fn slots(k: usize) -> usize {
    (WORKGROUP_MEMORY.saturating_sub(memory(k, 0)) / SLOT).min(MOST_SLOTS)
}

/// Bytes of workgroup memory: the ring, and of the row two bytes an element with eight for each block.
fn memory(k: usize, slots: usize) -> usize {
    BESIDE + slots * SLOT + 2 * k + k / BLOCK * 8
}
