// Parts of the keys whose sums come together in workgroup memory (sm_90): a cluster has CLUSTER neighbouring parts, and its first
// workgroup joins them. That spares what they would write to memory, count and read again.
//
// Access: each work item sends the sums of its columns to the first workgroup's memory, neighbours beside each other. Bound: their
// way, some 0.4 µs.
#pragma once
#include "cluster.h"
#include "flash_decode_parts.h"
#include "tma.h"

// As `finish` of a part, for parts whose number is a multiple of CLUSTER. `others`: room for the other workgroups' sums, which come
// as soon as this workgroup has begun. Before, one work item
// began the barrier `come`, and all came to the first half of a barrier of the cluster.
template <u32 WAVES, u32 CLUSTER, class N, u32 ROWS, u32 ITEMS>
DEVICE void finish_in_cluster(const DecodePart<N, ROWS, ITEMS> &o, f32 *sums, f32 *others, u64 *come, const f32 (*most_of)[ROWS],
                              const f32 (*total_of)[ROWS]) {
  SHARED f32 most[CLUSTER][ROWS], total[CLUSTER][ROWS];
  u32 columns = o.numbers.columns(), values = o.rows * columns, rank = o.split % CLUSTER;
  // Parts of the cluster that have keys, and clusters that do.
  u32 first = o.split - rank, parts = o.parts_with_keys(), there = parts - first < CLUSTER ? parts - first : CLUSTER;
  u32 clusters = (parts + CLUSTER - 1) / CLUSTER;
  // The first workgroup has begun, and so has its memory.
  cluster_wait();
  u32 to = in_cluster(shared_address(others), 0), barrier = in_cluster(shared_address(come), 0);
  u32 most_to = in_cluster(shared_address(most[rank]), 0), total_to = in_cluster(shared_address(total[rank]), 0);
  for (u32 at = item_id(); at < values; at += ITEMS) {
    u32 r = o.numbers.row_of(at), i = at - r * columns;
    DecodeSum<1> sum = o.template sum_of_waves<WAVES>(sums, most_of, total_of, r, i);
    // Its own in the place of the first wave's, which nobody else reads.
    if (rank) send_in_cluster(to + ((rank - 1) * ROWS * columns + at) * sizeof(f32), barrier, sum.out[0]);
    else sums[o.numbers.sum_at(r, i)] = sum.out[0];
    if (i == 0) {
      send_in_cluster(most_to + r * sizeof(f32), barrier, sum.most);
      send_in_cluster(total_to + r * sizeof(f32), barrier, sum.total);
    }
  }
  if (rank) return;
  if (item_id() == 0) arrive_expecting(shared_address(come), ((there - 1) * values + there * 2 * o.rows) * sizeof(f32));
  wait_phase(shared_address(come), 0);
  for (u32 at = item_id(); at < values; at += ITEMS) {
    u32 r = o.numbers.row_of(at), i = at - r * columns;
    f32 greatest = most[0][r];
    UNROLL
    for (u32 s = 1; s < CLUSTER; s++) greatest = s < there ? __builtin_fmaxf(greatest, most[s][r]) : greatest;
    DecodeSum<1> sum;
    sum.begin();
    f32 base = sum.rise(greatest);
    UNROLL
    for (u32 s = 0; s < CLUSTER; s++) {
      if (s >= there) continue;
      f32 factor = exp_near(most[s][r] - base);
      sum.total += factor * total[s][r];
      sum.out[0] += factor * (s ? others[(s - 1) * ROWS * columns + at] : sums[o.numbers.sum_at(r, i)]);
    }
    o.give(r, i, sum, first / CLUSTER, clusters);
  }
  o.template join_given<WAVES>(sums, clusters);
}
