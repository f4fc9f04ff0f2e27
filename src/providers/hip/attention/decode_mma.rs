//! Attention of few queries by `mma.sync`: which kernel of `kernels/include/rukh/flash_decode_mma.h`, and launches of
//! `flash_decode_ring.h`, whose keys come through rings in workgroup memory (sm_90).

use std::ffi::CStr;
use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::hip::TENSOR_MAP_BYTES;
use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::launch::{KernelName, Operand};
use super::super::unit::Unit;
use super::decode::{DecodeKernel, DecodeParams, Way};
use super::scores::Problem;

/// Rows that share keys from which on `mma.sync` is faster, and how many it takes together. On an H100, heads of 64 numbers
/// with 4 rows each: 13.2 in place of 16.0 µs along 8000 keys, 7.0 as before along 512; with one row 6.8 in place of 5.7.
/// It was measured on sm_90 alone, for which its kernels are built.
const LEAST_MMA_ROWS: usize = 3;
const MMA_ROWS: usize = 8;
/// Workgroups for each processor, by their registers.
const RESIDENT_OF_MMA: usize = 3;
/// The parts that cost least to join, and more for caches that have so many keys.
const MMA_SPLITS: usize = 16;
const MANY_KEYS: usize = 16384;

/// Work items of a workgroup, and bytes of the rings of its waves, as in the kernel; keys of a part at least.
const ITEMS: usize = 256;
const RING: usize = 192 << 10;
const LEAST_OF_PART: usize = 128;

/// Workgroups of a cluster.
const CLUSTERS: [usize; 4] = [8, 4, 2, 1];
/// Keys of a step of a wave, and the kernels for `CLUSTERS`: for heads of up to 64 and of up to 128 numbers.
const OF_RINGS: [(usize, [&CStr; 4]); 2] = [
    (
        32,
        [
            c"flash_decode_64_ring_cluster8",
            c"flash_decode_64_ring_cluster4",
            c"flash_decode_64_ring_cluster2",
            c"flash_decode_64_ring_cluster1",
        ],
    ),
    (
        16,
        [
            c"flash_decode_128_ring_cluster8",
            c"flash_decode_128_ring_cluster4",
            c"flash_decode_128_ring_cluster2",
            c"flash_decode_128_ring_cluster1",
        ],
    ),
];

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct RingDecodeParams {
    decode: DecodeParams,
    unused: [u32; 12],
    maps: [[u64; TENSOR_MAP_BYTES / 8]; 2],
}

const _: () = assert!(size_of::<RingDecodeParams>() == 768);

impl Problem {
    /// By `mma.sync`, where that is faster.
    pub(super) fn by_mma(&self, unit: Unit, rows: usize, size: usize) -> Option<Way> {
        let (family, of_rings) = match self.ty {
            ElementType::F16 => ("mma_flash_decode_f16", "hopper_flash_decode_f16"),
            ElementType::BF16 => ("mma_flash_decode_bf16", "hopper_flash_decode_bf16"),
            _ => return None,
        };
        let (name, clustered, size, keys_at_once) = match size {
            0..=64 => (c"mma_flash_decode_64", c"mma_flash_decode_64_cluster8", 64, 128),
            65..=128 => (c"mma_flash_decode_128", c"mma_flash_decode_128_cluster8", 128, 64),
            _ => return None,
        };
        // The kernel counts the bytes of a row in 32 bits.
        let row_bytes = [self.k, self.v].map(|x| x.strides[2] * self.ty.size());
        let fits = row_bytes.iter().all(|&bytes| u32::try_from(bytes).is_ok());
        (unit.wgmma && rows >= LEAST_MMA_ROWS && fits).then_some(Way {
            kernel: KernelName { family, name },
            rows: MMA_ROWS,
            size,
            keys_at_once,
            resident: RESIDENT_OF_MMA,
            most_splits: if self.k.rows > MANY_KEYS { 2 * MMA_SPLITS } else { MMA_SPLITS },
            clustered: Some(clustered),
            ring: Some(of_rings),
        })
    }

    /// The kernel whose keys come through rings, and workgroups of its clusters: as many as all heads' clusters have room for at the
    /// same time, where each workgroup has a processor. For kernels between others that leave no workgroup memory beside them. On an H200
    /// a step of Llama 1B with weights of 4 bits takes 0.376 ms in place of 0.398 after 512 tokens, and 0.469 in place of 0.531 after
    /// 8192, and one of 16 samples of 8 layers of Llama 8B 0.737 in place of 0.774. Launches that would start while attention runs find
    /// no memory beside a ring: in f16 a step takes 0.847 in place of 0.757.
    pub(super) fn through_rings(
        &self,
        unit: Unit,
        heads: usize,
        family: &'static str,
    ) -> Option<(KernelName, usize)> {
        // Without a broadcast, whose rows do not lie apart.
        let apart = [self.k, self.v].iter().all(|x| x.strides.iter().all(|&n| n > 0));
        if !unit.tensor_maps || !apart || self.k.rows <= LEAST_OF_PART {
            return None;
        }
        let (_, of_clusters) = self.of_rings();
        let mut clusters = CLUSTERS.into_iter().zip(of_clusters);
        let (cluster, name) = clusters.find(|&(cluster, _)| heads <= unit.clusters(cluster))?;
        Some((KernelName { family, name }, cluster))
    }

    /// The kernels for the larger of both heads.
    fn of_rings(&self) -> (usize, [&'static CStr; 4]) {
        OF_RINGS[usize::from(self.k.size.max(self.v.size) > 64)]
    }

    /// Appends the launch for operands whose addresses are multiples of 16.
    pub(super) fn launch_ring(
        &self,
        plan: &mut PlanBuilder<'_>,
        decode: DecodeKernel,
        params: DecodeParams,
        addresses: &[(usize, Operand)],
    ) -> Result<(), OpError> {
        let params = RingDecodeParams { decode: params, ..RingDecodeParams::zeroed() };
        const { assert!(offset_of!(RingDecodeParams, decode) == 0) };
        let memory = RING + 1024;
        plan.launch_with(
            decode.kernel,
            self.decode_grid(decode),
            ITEMS as u32,
            memory as u32,
            &params,
            addresses,
        )?;
        // Along few keys.
        if params.decode.early != 0 {
            plan.lets_next_start();
        }
        let (keys, _) = self.of_rings();
        plan.maps([self.k, self.v].into_iter().enumerate().map(|(i, heads)| {
            let at = offset_of!(RingDecodeParams, maps) + i * TENSOR_MAP_BYTES;
            (at, heads.at, (heads.offset * self.ty.size()) as u64, self.map(&heads, keys))
        }));
        Ok(())
    }
}
