// The kernels of products on Hopper (sm_90a): those whose workgroups stay, and those whose workgroups all run at the same
// time, with a tile for each of them or for a cluster of them.
//
// Access and bound: as tile_hopper.h and results_hopper.h say; of clusters the latency of their barriers as well.
#pragma once
#include "cluster.h"
#include "tile_hopper.h"

extern SHARED Chunk dynamic_lds[];

template <class T, u32 GROUPS, u32 ROWS64, u32 BN, bool TURNS>
DEVICE void product_by_staying(const HopperParams &h, u64 parameters) {
  typedef HopperTile<T, GROUPS, ROWS64, BN, TURNS> Own;
  Own own;
  own.begin(h, (char *)dynamic_lds);
  // Two groups that multiply take the registers of the third, of which two items work.
  if (item_id() >= Own::MULTIPLYING) {
    if constexpr (GROUPS == 2) keep_registers<40>();
    const TensorMap *maps = (const TensorMap *)parameters;
    Own::bringing([&] { own.template bring<true>(h, maps); }, [&] { own.template bring<false>(h, maps); });
  } else {
    if constexpr (GROUPS == 2) take_registers<232>();
    own.multiply_all(h, (const TensorMap *)parameters);
  }
}

// A product whose tiles are few: each workgroup has one, or a cluster of workgroups shares it, with a part of the steps for
// each. Then sums go to the workgroup that has their columns, which adds them in order.
template <class T, u32 PARTS> DEVICE void product_at_once(const HopperParams &h, u64 parameters) {
  typedef HopperTile<T, 1, 1, 64, false> Own;
  typedef RowsOfWave<T, 1, 64> Rows;
  constexpr u32 COUNT = 32 / PARTS;
  const GemmParams &p = h.product;
  u32 rank = PARTS > 1 ? rank_in_cluster() : 0;
  Own own;
  own.begin(h, (char *)dynamic_lds);
  if constexpr (PARTS > 1) cluster_arrive();
  typename Own::Place at = Own::find(h, group_id() / PARTS);
  at.first_step = h.steps * rank / PARTS, at.steps = h.steps * (rank + 1) / PARTS - at.first_step;
  if (item_id() >= Own::MULTIPLYING) {
    typename Own::Turn turn;
    const TensorMap *maps = (const TensorMap *)parameters;
    Own::bringing([&] { own.template bring_tile<true>(h, maps, at, turn); },
                  [&] { own.template bring_tile<false>(h, maps, at, turn); });
    wave_barrier();
    if constexpr (PARTS > 1) cluster_wait(), cluster_arrive(), cluster_wait();
    return;
  }
  find_matrix(p, at.tile, at.matrix, 2, 2, 2);
  u32 lane = lane_id(), row = at.tile.row + Own::wave_row() + lane / 4;
  u32 column = at.tile.column + rank * COUNT * 2 + lane % 4 * 2;
  typename Rows::Addends addends[COUNT / 8];
  typename Own::Sums sums;
#pragma unroll
  for (u32 i = 0; i < 32; i++) sums[0][i] = 0;
  auto beside = [&] __attribute__((always_inline)) {
#pragma unroll
    for (u32 i = 0; i < COUNT / 8; i++)
      addends[i] = h.pairs ? Rows::template addends<Stored::PAIRS>(p, at.tile, row, column + i * 16, 0)
                           : Rows::template addends<Stored::EACH>(p, at.tile, row, column + i * 16, 0);
  };
  if (p.b_row == 1) own.template multiply_steps<true>(at.steps, 0, 0, {}, sums, beside);
  else own.template multiply_steps<false>(at.steps, 0, 0, {}, sums, beside);
  f32 all[COUNT];
  if constexpr (PARTS > 1) {
    // Everybody is there. By sender, then four sums at a time of each item.
    cluster_wait();
    u32 room = own.exchange(), place = item_id() * 16;
#pragma unroll
    for (u32 to = 0; to < PARTS; to++) {
      u32 there = in_cluster(room, to) + rank * (COUNT / 4) * WAVE_GROUP * 16 + place;
#pragma unroll
      for (u32 i = 0; i < COUNT; i += 4) store_in_cluster(there + i / 4 * WAVE_GROUP * 16, sums[0] + to * COUNT + i);
    }
    cluster_arrive(), cluster_wait();
#pragma unroll
    for (u32 i = 0; i < COUNT; i++) all[i] = 0;
#pragma unroll
    for (u32 i = 0; i < PARTS * COUNT; i++)
      all[i % COUNT] += bits<f32>(load_chunk(room + i / 4 * WAVE_GROUP * 16 + place).word[i % 4]);
  } else {
#pragma unroll
    for (u32 i = 0; i < COUNT; i++) all[i] = sums[0][i];
  }
#pragma unroll 1
  for (u32 i = 0; i < COUNT; i += 8) {
    f32 x[8];
#pragma unroll
    for (u32 v = 0; v < 8; v++) x[v] = all[v];
    if (h.pairs) Rows::template finish<Stored::PAIRS>(p, at.tile, row, column + i * 2, 0, x, addends[0]);
    else Rows::template finish<Stored::EACH>(p, at.tile, row, column + i * 2, 0, x, addends[0]);
#pragma unroll
    for (u32 j = 0; j + 8 < COUNT; j++) all[j] = all[j + 8];
#pragma unroll
    for (u32 j = 0; j + 1 < COUNT / 8; j++) addends[j] = addends[j + 1];
  }
}
// The build gives kernels with such names their clusters (kernels/cluster.rs).
#define KERNEL_AT_ONCE(type, name, parts)                                                                          \
  extern "C" __attribute__((global)) __attribute__((launch_bounds(WAVE_GROUP + 2 * WAVE, 2)))                      \
  void gemm_##type##_hopper_64x64_##name(HopperParams p) {                                                         \
    u64 parameters;                                                                                                \
    FIND_PARAMETERS(gemm_##type##_hopper_64x64_##name, parameters);                                                \
    product_at_once<type, parts>(p, parameters);                                                                   \
  }

// The kernels of a type: groups that multiply, blocks of 64 rows of each, whether groups take turns, and the workgroups
// that a processor has room for at most. Sizes of tiles are those of `providers/hip/gemm/hopper/sizes.rs`.
#define PRODUCT_KERNEL(type, rows, columns, groups, rows64, turns, resident)                                       \
  extern "C" __attribute__((global))                                                                               \
  __attribute__((launch_bounds((groups) * WAVE_GROUP + ((groups) == 2 ? WAVE_GROUP : 2 * WAVE), resident)))        \
  void gemm_##type##_hopper_##rows##x##columns(HopperParams p) {                                                   \
    u64 parameters;                                                                                                \
    FIND_PARAMETERS(gemm_##type##_hopper_##rows##x##columns, parameters);                                          \
    product_by_staying<type, groups, rows64, columns, turns>(p, parameters);                                           \
  }
#define PRODUCTS_OF(type)                                                                                          \
  PRODUCT_KERNEL(type, 128, 256, 2, 1, false, 1)                                                                   \
  PRODUCT_KERNEL(type, 128, 192, 2, 1, false, 1)                                                                   \
  PRODUCT_KERNEL(type, 128, 128, 2, 2, true, 1)                                                                    \
  PRODUCT_KERNEL(type, 64, 128, 1, 1, false, 2)                                                                    \
  PRODUCT_KERNEL(type, 64, 64, 1, 1, false, 3)                                                                     \
  KERNEL_AT_ONCE(type, once, 1)                                                                                    \
  KERNEL_AT_ONCE(type, cluster2, 2)                                                                                \
  KERNEL_AT_ONCE(type, cluster4, 4)
