// A tile of a product with plain multiply-adds, for types without matrix cores.
//
// 256 work items; each takes TM × TN results in groups of V neighbours. Operands go through two buffers
// of workgroup memory, stored by k, so that each step of k reads packs. Bound: multiply-adds; a step of
// k reads TM + TN numbers for TM · TN of them.
#pragma once
#include "gemm.h"
#include "operand.h"

template <class C, int BM, int BN, int BK, int V> struct FmaTile {
  static constexpr int TM = BM / 16, TN = BN / 16;
  // Rows of the buffers end in a pack that nobody reads: neighbouring rows start at other banks.
  static constexpr int PAD = V;
  static_assert(BM * BK == GROUP * V && BN * BK == GROUP * V, "a pack of each operand a work item");

  struct Buffers {
    alignas(16) C a[2][BK][BM + PAD];
    alignas(16) C b[2][BK][BN + PAD];
  };

  template <class From, int WIDTH>
  DEVICE void fetch(C *to, From &from, u32 line, u32 k, u32 item) {
    if (from.prefers_k()) {
      u32 at = k + item % (BK / V) * V;
      from.begin_step(at);
      from.template pack_along_k<C, V>(to, 0, line + item / (BK / V), at);
    } else from.template along_lines<C, V>(to, line + item % (WIDTH / V) * V, k + item / (WIDTH / V));
  }

  template <int WIDTH>
  DEVICE void put(C (*to)[WIDTH + PAD], const C *pack, bool along_k, u32 item) {
    if (along_k) {
      for (int v = 0; v < V; v++) to[item % (BK / V) * V + v][item / (BK / V)] = pack[v];
    } else {
      auto &whole = *(Pack<C, V> *)&to[item / (WIDTH / V)][item % (WIDTH / V) * V];
      for (int v = 0; v < V; v++) whole.at[v] = pack[v];
    }
  }

  // Sums of this work item: results (i, j) as `row` and `column` place them.
  template <class A, class B>
  DEVICE void multiply(Buffers &lds, A a, B b, const Tile &tile, C (&sums)[TM][TN]) {
    u32 item = item_id();
    C pack_a[V], pack_b[V];
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j++) sums[i][j] = 0;
    bool a_by_k = a.prefers_k(), b_by_k = b.prefers_k();
    fetch<A, BM>(pack_a, a, tile.row, tile.k_begin, item);
    fetch<B, BN>(pack_b, b, tile.column, tile.k_begin, item);
    put<BM>(lds.a[0], pack_a, a_by_k, item);
    put<BN>(lds.b[0], pack_b, b_by_k, item);
    barrier();
    u32 now = 0;
    for (u32 k = tile.k_begin; k < tile.k_end; k += BK) {
      bool more = tile.k_end - k > BK;
      if (more) {
        fetch<A, BM>(pack_a, a, tile.row, k + BK, item);
        fetch<B, BN>(pack_b, b, tile.column, k + BK, item);
      }
#pragma unroll 4
      for (int step = 0; step < BK; step++) {
        C x[TM], y[TN];
        for (int i = 0; i < TM; i += V)
          *(Pack<C, V> *)&x[i] = *(const Pack<C, V> *)&lds.a[now][step][row(item, i)];
        for (int j = 0; j < TN; j += V)
          *(Pack<C, V> *)&y[j] = *(const Pack<C, V> *)&lds.b[now][step][column(item, j)];
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
          for (int j = 0; j < TN; j++) {
            if constexpr (IsFloat<C>::value) sums[i][j] = fma_(x[i], y[j], sums[i][j]);
            else sums[i][j] += x[i] * y[j];
          }
      }
      if (more) {
        put<BM>(lds.a[now ^ 1], pack_a, a_by_k, item);
        put<BN>(lds.b[now ^ 1], pack_b, b_by_k, item);
      }
      barrier();
      now ^= 1;
    }
  }

  // Groups of V results lie 16·V apart, so that neighbours in a wave read neighbouring packs.
  DEVICE u32 row(u32 item, u32 i) { return i / V * 16 * V + item / 16 * V + i % V; }
  DEVICE u32 column(u32 item, u32 j) { return j / V * 16 * V + item % 16 * V + j % V; }

  template <class T> DEVICE void store(const GemmParams &p, const Tile &tile, const C (&sums)[TM][TN]) {
    u32 item = item_id();
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j += V)
        finish<T, C, V>(p, tile, tile.row + row(item, i), tile.column + column(item, j), &sums[i][j]);
  }
};

// A plain product of elements T with sums C.
template <class T, class C, int BM, int BN, int BK, int V> DEVICE void product(const GemmParams &p) {
  typedef FmaTile<C, BM, BN, BK, V> Own;
  SHARED typename Own::Buffers lds;
  Tile tile = find_tile(p, BM, BN, sizeof(T), sizeof(T), sizeof(T));
  C sums[Own::TM][Own::TN];
  Own::multiply(lds, operand_a<T, V>(p, tile), operand_b<T, V>(p, tile), tile, sums);
  Own::template store<T>(p, tile, sums);
}
