// Clusters of workgroups on Hopper (sm_90), which run at the same time and reach each other's workgroup memory. Formats are
// those of the PTX manual.
#pragma once
#include "matrix.h"

// Which of its cluster this workgroup is.
DEVICE u32 rank_in_cluster() {
  u32 r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
// A barrier of all work items of a cluster in two halves: what was written before the first is seen after the second.
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive;" ::: "memory"); }
// The first half, before which nothing was written but barriers, which are published (tma.h). It waits for no writes, which takes the other
// 0.3 µs on an H200.
DEVICE void cluster_arrive_begun() { asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait;" ::: "memory"); }

// The address in workgroup memory of another workgroup of the cluster that is `address` in its own.
DEVICE u32 in_cluster(u32 address, u32 rank) {
  u32 r;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(address), "r"(rank));
  return r;
}
DEVICE void store_in_cluster(u32 address, const f32 *four) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(four[0]), "f"(four[1]), "f"(four[2]),
               "f"(four[3])
               : "memory");
}
// The same, counted in bytes by a barrier of that workgroup (`in_cluster`), which makes it visible to those that wait there: 0.7 µs
// sooner on an H200 than by a barrier of the cluster.
DEVICE void send_in_cluster(u32 address, u32 barrier, f32 x) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(address), "r"(bits<u32>(x)), "r"(barrier)
               : "memory");
}
DEVICE void send_in_cluster(u32 address, u32 barrier, const f32 *four) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(address),
               "r"(bits<u32>(four[0])), "r"(bits<u32>(four[1])), "r"(bits<u32>(four[2])), "r"(bits<u32>(four[3])), "r"(barrier)
               : "memory");
}
