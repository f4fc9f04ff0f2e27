// Hopper's engine for copies of tiles (sm_90): a tensor map says how a tensor lies in memory, and one work item
// copies a box of it to workgroup memory. What lies outside of the tensor comes as zeros. Formats are those of the
// PTX manual.
#pragma once
#include "wgmma.h"

// How a tensor lies in memory, as the driver writes it.
struct alignas(64) TensorMap {
  u64 opaque[16];
};

// Where the kernel's parameters lie, as an address: copies of tiles take that of a tensor map in them.
#define FIND_PARAMETERS(kernel, address) \
  asm("{.reg .b64 a; mov.b64 a, " #kernel "_param_0; cvta.param.u64 %0, a;}" : "=l"(address))

// Copies a box of a tensor of three dimensions, which begins at (x, y, z); it arrives at the barrier.
DEVICE void copy_box(u32 to, u64 map, u32 barrier, u32 x, u32 y, u32 z) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
               ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
               : "memory");
}

// The same with a policy for the second cache (`line_policy` in unit.h).
DEVICE void copy_box_by_policy(u32 to, u64 map, u32 barrier, u32 x, u32 y, u32 z, u64 policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3, %4, %5}], [%2], "
      "%6;" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "l"(policy)
      : "memory");
}

// The same of four dimensions.
DEVICE void copy_box(u32 to, u64 map, u32 barrier, u32 x, u32 y, u32 z, u32 w) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
               ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
               : "memory");
}

// Copies one tap of neighbouring windows of an image in NHWC: the windows begin at (x, y) of image n, the tap lies
// (right, down) from there.
DEVICE void copy_taps(u32 to, u64 map, u32 barrier, u32 channel, i32 x, i32 y, u32 n, u32 right, u32 down) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2], "
      "{%7, %8};" ::"r"(to),
      "l"(map), "r"(barrier), "r"(channel), "r"(x), "r"(y), "r"(n), "h"((u16)right), "h"((u16)down)
      : "memory");
}

// Copies a box from workgroup memory, where it must stay until `wait_taken` of this item, after `end_taking`.
DEVICE void take_box(u64 map, u32 from, u32 x, u32 y, u32 z) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map), "r"(from), "r"(x),
               "r"(y), "r"(z)
               : "memory");
}
DEVICE void take_box(u64 map, u32 from, u32 x, u32 y, u32 z, u32 w) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map), "r"(from),
               "r"(x), "r"(y), "r"(z), "r"(w)
               : "memory");
}
DEVICE void end_taking() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// As `wait_taken`, and until it is in memory.
DEVICE void wait_written() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
DEVICE void wait_taken() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

// One arrival, and so many bytes that copies will bring.
DEVICE void arrive_expecting(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// Barriers that were just begun become visible to the copy engine, once the workgroup's barrier is passed.
DEVICE void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
// A pack of 16 bytes of workgroup memory.
DEVICE Unit load_pack(u32 at) {
  u32 x, y, z, w;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(at));
  return Unit{x, y, z, w};
}
