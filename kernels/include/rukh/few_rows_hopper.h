// Products of few rows on Hopper (sm_90a), where weights take nearly all of the time: each workgroup has 64 columns of the
// result and 16 to 64 rows, or a cluster of workgroups shares them, with a part of the steps for each. The matrix
// instructions have 64 rows, so that the parameters are those of the transposed product: A is the weight.
//
// Access: the copy engine brings both operands, many steps of 64 ahead; those of a constant weight before the kernel before
// has ended. Results go out as pairs of neighbours, 16 bytes of a row by four lanes. Bound: the bytes of the weight; small
// products the latency of the first steps.
#pragma once
#include "cluster.h"
#include "tile_hopper.h"

extern SHARED Chunk dynamic_lds[];

template <u32 BN> struct SumsOfFew {
  typedef f32 Sums[1][BN / 2];
  static constexpr u32 BYTES = 0;
  METHOD void begin(u32, u32) {}
};

// BN: rows of the result. PARTS: workgroups of a cluster.
template <class T, u32 BN, u32 PARTS> struct FewRows : HopperTile<T, 1, 1, BN, false, SumsOfFew<BN>> {
  typedef HopperTile<T, 1, 1, BN, false, SumsOfFew<BN>> Base;
  typedef typename Base::Place Place;
  // Workgroups of a cluster that make results, and sums of each of their items.
  static constexpr u32 MAKING = PARTS * 16 < BN ? PARTS : BN / 16, COUNT = BN / 2 / MAKING;

  // As `bring_tile`: A, a constant weight often, before the kernels before have ended.
  template <bool OF_A> METHOD void bring_few(const HopperParams &h, const TensorMap *maps, const Place &at) const {
    u64 map = (u64)(maps + (OF_A ? 0 : 1));
    u32 z = at.matrix * (OF_A ? h.next_a : h.next_b), line = OF_A ? at.tile.row : at.tile.column;
    bool by_k = !OF_A || h.product.a_column == 1;
    if (!OF_A || !h.early) wait_for_kernels_before();
    typename Base::Turn turn;
    u64 policy = line_policy(OF_A && h.once);
    for (u32 s = 0; s < at.steps; s++, turn.next(this->stages)) {
      u32 arrives = this->full + turn.stage * 8, k = (at.first_step + s) * PANEL;
      u32 to = this->base + turn.stage * Base::STAGE_BYTES + (OF_A ? 0 : Base::A_BYTES);
      if (turn.turn > 0) wait_phase(this->empty + turn.stage * 8, (turn.turn - 1) % 2);
      if (OF_A) arrive_expecting(arrives, h.stage_bytes);
      copy_box_by_policy(to, map, arrives, by_k ? k : line, by_k ? line : k, z, policy);
    }
  }

  // What is added to eight sums of an item: two numbers of the bias, and pairs of the residual's rows.
  struct Addends {
    f32 bias[2];
    u32 residual[4];
  };
  // Results of eight sums of each item lie in two eights of rows and two of columns of the transposed result, from `row` and
  // `column` on.
  DEVICE Addends addends(const GemmParams &p, const Tile &tile, u32 row, u32 column) {
    u32 eighth = lane_id() / 4, pair = lane_id() % 4 * 2;
    Addends own{};
    UNROLL
    for (u32 i = 0; i < 2; i++) {
      u32 at = row + i * 8 + eighth;
      if (tile.bias && at < p.m) own.bias[i] = p.beta * widen(((const T *)tile.bias)[at]);
    }
    if (p.residual)
      UNROLL for (u32 w = 0; w < 4; w++) {
        u32 in_row = row + w % 2 * 8 + pair, at = column + w / 2 * 8 + eighth;
        if (in_row < p.m && at < p.n) own.residual[w] = *(const u32 *)(tile.residual + (at * p.residual_column + in_row) * 2);
      }
    return own;
  }

  DEVICE void finish(const GemmParams &p, const Tile &tile, u32 row, u32 column, f32 (&x)[8], const Addends &own) {
    UNROLL
    for (u32 v = 0; v < 8; v++) x[v] = fma_(p.alpha, x[v], own.bias[v / 2 % 2]);
    if (p.residual)
      UNROLL for (u32 w = 0; w < 4; w++) {
        u32 two = transposed_block(own.residual[w]);
        x[w * 2] += widen(bits<T>((u16)two)), x[w * 2 + 1] += widen(bits<T>((u16)(two >> 16)));
      }
    bound_and_activate(p, x);
    UNROLL
    for (u32 w = 0; w < 4; w++) {
      u32 two = transposed_block(narrow_two(T{}, x[w * 2], x[w * 2 + 1]));
      u32 to_row = row + w % 2 * 8 + lane_id() % 4 * 2, to_column = column + w / 2 * 8 + lane_id() / 4;
      if (to_row < p.m && to_column < p.n) *(u32 *)(tile.out + (to_column * p.out_column + to_row) * 2) = two;
    }
  }

  // As `multiply_steps`, with sums of their own for some of the products of a step, as each waits for the one before that
  // has the same sums.
  template <bool A_BY_K> METHOD void multiply_few(u32 steps, f32 (&all)[BN / 2]) const {
    constexpr u32 CHAINS = BN == 64 ? 2 : 4;
    f32 sums[CHAINS][BN / 2];
    UNROLL
    for (u32 i = 0; i < CHAINS * BN / 2; i++) sums[i / (BN / 2)][i % (BN / 2)] = 0;
    auto pin_all = [&] {
      UNROLL
      for (u32 i = 0; i < CHAINS; i++) pin(sums[i]);
    };
    typename Base::Turn turn;
    u32 before = 0;
    for (u32 s = 0; s < steps; s++, turn.next(this->stages)) {
      u32 at = this->base + turn.stage * Base::STAGE_BYTES;
      wait_phase(this->full + turn.stage * 8, turn.turn % 2);
      pin_all();
      products_begin();
      UNROLL
      for (u32 k = 0; k < PANEL / 16; k++) {
        u64 x = A_BY_K ? describe(at + k * 32, 0) : describe(at + k * 16 * PANEL_LINE, PANEL * PANEL_LINE);
        multiply<false, !A_BY_K>(T{}, sums[k % CHAINS], x, describe(at + Base::A_BYTES + k * 32, 0), 1);
      }
      products_end_group();
      wait_products<1>();
      pin_all();
      if (s > 0 && lane_id() == 0) arrive(this->empty + before * 8);
      before = turn.stage;
    }
    wait_products<0>();
    pin_all();
    UNROLL
    for (u32 i = 0; i < BN / 2; i++) {
      all[i] = sums[0][i];
      UNROLL
      for (u32 c = 1; c < CHAINS; c++) all[i] += sums[c][i];
    }
  }

  // Grid: columns of tiles of the result, by workgroups of a cluster; rows of tiles; matrices.
  METHOD void product(const HopperParams &h, u64 parameters) {
    const GemmParams &p = h.product;
    const TensorMap *maps = (const TensorMap *)parameters;
    u32 item = item_id(), rank = PARTS > 1 ? rank_in_cluster() : 0;
    Place at;
    at.matrix = group_id_z(), at.tile.row = group_id() / PARTS * 64, at.tile.column = group_id_y() * BN;
    at.first_step = h.steps * rank / PARTS, at.steps = h.steps * (rank + 1) / PARTS - at.first_step;
    this->begin(h, (char *)dynamic_lds);
    if constexpr (PARTS > 1) cluster_arrive();
    if (item >= Base::MULTIPLYING) {
      Base::bringing([&] { bring_few<true>(h, maps, at); }, [&] { bring_few<false>(h, maps, at); });
      wave_barrier();
      if constexpr (PARTS > 1) cluster_wait(), cluster_arrive(), cluster_wait();
      return;
    }
    find_matrix(p, at.tile, at.matrix, 2, 2, 2);
    u32 row = at.tile.row + Base::wave_row(), column = at.tile.column + rank * COUNT * 2;
    wait_for_kernels_before();
    Addends own[COUNT / 8];
    UNROLL
    for (u32 i = 0; i < COUNT / 8; i++) own[i] = addends(p, at.tile, row, column + i * 16);
    f32 sums[BN / 2];
    if (p.a_column == 1) multiply_few<true>(at.steps, sums);
    else multiply_few<false>(at.steps, sums);
    f32 all[COUNT];
    if constexpr (PARTS > 1) {
      // Everybody is there. By sender, then four sums at a time of each item.
      cluster_wait();
      u32 room = this->exchange(), place = item * 16;
      UNROLL
      for (u32 to = 0; to < MAKING; to++) {
        u32 there = in_cluster(room, to) + rank * (COUNT / 4) * WAVE_GROUP * 16 + place;
        UNROLL
        for (u32 i = 0; i < COUNT; i += 4) store_in_cluster(there + i / 4 * WAVE_GROUP * 16, sums + to * COUNT + i);
      }
      cluster_arrive(), cluster_wait();
      if (rank >= MAKING) return;
      UNROLL
      for (u32 i = 0; i < COUNT; i++) all[i] = 0;
      UNROLL
      for (u32 i = 0; i < PARTS * COUNT; i++)
        all[i % COUNT] += bits<f32>(load_chunk(room + i / 4 * WAVE_GROUP * 16 + place).word[i % 4]);
    } else {
      UNROLL
      for (u32 i = 0; i < COUNT; i++) all[i] = sums[i];
    }
#pragma unroll 1
    for (u32 i = 0; i < COUNT; i += 8) {
      f32 x[8];
      UNROLL
      for (u32 v = 0; v < 8; v++) x[v] = all[v];
      finish(p, at.tile, row, column + i * 2, x, own[0]);
      UNROLL
      for (u32 j = 0; j + 8 < COUNT; j++) all[j] = all[j + 8];
      UNROLL
      for (u32 j = 0; j + 1 < COUNT / 8; j++) own[j] = own[j + 1];
    }
  }
};

// The build gives kernels with such names their clusters (kernels/cluster.rs).
#define KERNEL_OF_FEW(type, rows, parts)                                                                           \
  extern "C" __attribute__((global)) __attribute__((launch_bounds(WAVE_GROUP + 2 * WAVE, 2)))                          \
  void gemm_##type##_hopper_few##rows##_cluster##parts(HopperParams p) {                                           \
    u64 parameters;                                                                                                \
    FIND_PARAMETERS(gemm_##type##_hopper_few##rows##_cluster##parts, parameters);                                  \
    FewRows<type, rows, parts> own;                                                                                \
    own.product(p, parameters);                                                                                    \
  }
