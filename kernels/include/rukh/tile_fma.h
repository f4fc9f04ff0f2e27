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
  // Steps of k whose operands may be on their way from workgroup memory at once. More of them take registers that GPUs
  // with 256 of them do not have for two waves.
#if defined(__AMDGCN__)
  static constexpr int STEPS_AHEAD = sizeof(C) == 4 && TM * TN <= 16 ? 8 : 4;
#else
  static constexpr int STEPS_AHEAD = BK;
#endif
  static_assert(BM * BK == GROUP * V && BN * BK == GROUP * V, "a pack of each operand a work item");

  struct Buffers {
    alignas(16) C a[2][BK][BM + PAD];
    alignas(16) C b[2][BK][BN + PAD];
  };

  // A pack of an operand, element by element where it must be.
  template <int WIDTH> struct AnyShare {
    C pack[V];
    bool by_k;
    template <class From> METHOD void fetch(From &from, u32 line, u32 k) {
      u32 item = item_id();
      by_k = from.prefers_k();
      if (by_k) {
        u32 at = k + item % (BK / V) * V;
        from.begin_step(at);
        from.template pack_along_k<C, V>(pack, 0, line + item / (BK / V), at);
      } else from.template along_lines<C, V>(pack, line + item % (WIDTH / V) * V, k + item / (WIDTH / V));
    }
    METHOD void put(C (*to)[WIDTH + PAD]) const { FmaTile::put<WIDTH>(to, pack, by_k, item_id()); }
  };
  // An aligned one that is there as a whole or not at all: nothing branches, so that the loads of both operands are on
  // their way at once.
  template <class T, int WIDTH, bool BY_K> struct WholeShare {
    typedef u32 Words __attribute__((ext_vector_type(sizeof(T) * V / 4)));
    Words words;
    template <class From> METHOD void fetch(From &from, u32 line, u32 k) {
      u32 item = item_id(), valid;
      bool inside;
      const T *at;
      if constexpr (BY_K) {
        u32 own = k + item % (BK / V) * V;
        from.begin_step(own);
        at = from.chunk(0, line + item / (BK / V), own, valid);
        inside = valid;
      } else at = from.line_chunk(line + item % (WIDTH / V) * V, k + item / (WIDTH / V), inside);
      words = *(const GLOBAL Words *)(u64)at;
      words = inside ? words : (Words)0;
    }
    METHOD void put(C (*to)[WIDTH + PAD]) const {
      auto raw = bits<Pack<T, V>>(words);
      C pack[V];
#pragma unroll
      for (int v = 0; v < V; v++) pack[v] = as<T, C>(raw.at[v]);
      FmaTile::put<WIDTH>(to, pack, BY_K, item_id());
    }
  };

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
    if constexpr (A::COPIES && B::COPIES) {
      typedef typename B::Element T;
      typedef WholeShare<T, BM, true> WholeA;
      bool whole = a.packs_along_k && tile.k_end % V == 0;
      if (whole && b.packs_along_k) return run<WholeA, WholeShare<T, BN, true>>(lds, a, b, tile, sums);
      if (whole && b.packs_along_lines && b.lines % V == 0)
        return run<WholeA, WholeShare<T, BN, false>>(lds, a, b, tile, sums);
    }
    run<AnyShare<BM>, AnyShare<BN>>(lds, a, b, tile, sums);
  }

  template <class ShareA, class ShareB, class A, class B>
  DEVICE void run(Buffers &lds, A &a, B &b, const Tile &tile, C (&sums)[TM][TN]) {
    u32 item = item_id();
    ShareA share_a;
    ShareB share_b;
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j++) sums[i][j] = 0;
    share_a.fetch(a, tile.row, tile.k_begin);
    share_b.fetch(b, tile.column, tile.k_begin);
    share_a.put(lds.a[0]);
    share_b.put(lds.b[0]);
    barrier();
    u32 now = 0;
    for (u32 k = tile.k_begin; k < tile.k_end; k += BK) {
      bool more = tile.k_end - k > BK;
      if (more) {
        share_a.fetch(a, tile.row, k + BK);
        share_b.fetch(b, tile.column, k + BK);
      }
#pragma unroll STEPS_AHEAD
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
        share_a.put(lds.a[now ^ 1]);
        share_b.put(lds.b[now ^ 1]);
      }
      barrier();
      now ^= 1;
    }
  }

  // Groups of V results lie 16·V apart, so that neighbours in a wave read neighbouring packs.
  DEVICE u32 row(u32 item, u32 i) { return i / V * 16 * V + item / 16 * V + i % V; }
  DEVICE u32 column(u32 item, u32 j) { return j / V * 16 * V + item % 16 * V + j % V; }

  // Sums become results row by row. The code is there once: the sums move down to it.
  template <class T> DEVICE void store(const GemmParams &p, const Tile &tile, C (&sums)[TM][TN]) {
    if constexpr (IsFloat<C>::value) {
      auto get = [&](int i) __attribute__((always_inline)) { return sums[i / TN][i % TN]; };
      auto set = [&](int i, C x) __attribute__((always_inline)) { sums[i / TN][i % TN] = x; };
      if (p.arrived && !add_up<C, TM * TN>(p, tile, get, set)) return;
    }
    u32 item = item_id();
#pragma unroll
    for (int i = 0; i < TM; i++) {
#pragma unroll
      for (int j = 0; j < TN; j += V)
        finish<T, C, V>(p, tile, tile.row + row(item, i), tile.column + column(item, j), &sums[0][j]);
#pragma unroll
      for (int below = 0; below + 1 < TM; below++)
#pragma unroll
        for (int j = 0; j < TN; j++) sums[below][j] = sums[below + 1][j];
    }
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
