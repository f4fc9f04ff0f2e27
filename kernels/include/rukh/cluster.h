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
// A barrier of all work items of a cluster in two halves: what was written before the first is seen after the second. `.release`
// and `.acquire`, which are the default, may only be said from PTX 8.0 on.
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait;" ::: "memory"); }

// The address in workgroup memory of another workgroup of the cluster that is `address` in its own.
DEVICE u32 in_cluster(u32 address, u32 rank) {
  u32 r;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(address), "r"(rank));
  return r;
}
DEVICE void store_in_cluster(u32 address, f32 x) {
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address), "f"(x) : "memory");
}
DEVICE void store_in_cluster(u32 address, const f32 *four) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(four[0]), "f"(four[1]), "f"(four[2]),
               "f"(four[3])
               : "memory");
}
