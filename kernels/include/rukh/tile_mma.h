// A tile of a product of half-precision numbers on matrix cores, 256 work items.
//
// Operands lie in workgroup memory line by line, 16 bytes (eight numbers of k) at a time. On AMD they go there
// through registers (staging.h). On NVIDIA cp.async copies several
// steps ahead, the chunks of a line are permuted so that ldmatrix meets no bank twice, and B stays as it
// lies in memory where its columns are contiguous. A is anything that has the members of `Strided` that say
// where its chunks lie. Bound: the matrix cores for large products; each
// workgroup reads (BM + BN) · K numbers from the cache for BM · BN · K products.
#pragma once
#include "gemm.h"
#include "matrix.h"
#include "operand.h"
#include "staging.h"

#if HAS_MATRIX

// ROWS × COLUMNS waves share the tile.
template <class T, int BM, int BN, int BK, int ROWS, int COLUMNS, int STAGES> struct MmaTile {
  typedef Matrix<T> M;
  static constexpr int WM = BM / ROWS, WN = BN / COLUMNS;
  static constexpr int FM = WM / SIDE, FN = WN / SIDE;
  static constexpr int CHUNKS = BK / 8;
  static constexpr int WAVES = GROUP / WAVE;
  static_assert(ROWS * COLUMNS == WAVES, "every wave has a part");
  // Columns of sums that pass through workgroup memory at a time, and the length of their rows there.
  static constexpr int PASS = SIDE == 32 ? 32 : WN < 64 ? WN : 64;
  static constexpr int PASS_ROW = PASS + 8;
  static constexpr u32 PASS_BYTES = WAVES * SIDE * PASS_ROW * 4;

  typename M::Sums sums[FM][FN];

  METHOD u32 first_row() const { return item_id() / WAVE / COLUMNS * WM; }
  METHOD u32 first_column() const { return item_id() / WAVE % COLUMNS * WN; }

  METHOD void clear() {
#pragma unroll
    for (int i = 0; i < FM; i++)
#pragma unroll
      for (int j = 0; j < FN; j++) sums[i][j] = {};
  }

#if !defined(HAS_MMA_SYNC)
  // The line of a work item's first chunk of A; others lie GROUP / CHUNKS lines on.
  DEVICE u32 own_line() { return line_of<CHUNKS>(item_id()); }
  static constexpr u32 LINES_BYTES = staged_at<BK>(BM + BN) * 2;
  static constexpr u32 BYTES = LINES_BYTES > PASS_BYTES ? LINES_BYTES : PASS_BYTES;

  template <class ShareA, class ShareB, class A, class B> METHOD void run(char *lds, A &a, B &b, const Tile &tile) {
    constexpr int LINE = staged_line<BK>;
    T *lines_a = (T *)lds, *lines_b = lines_a + staged_at<BK>(BM);
    ShareA share_a;
    ShareB share_b;
    share_a.fetch(a, tile.row, tile.k_begin);
    share_b.fetch(b, tile.column, tile.k_begin);
    clear();
    const T *from_a = lines_a + staged_at<BK>(first_row()), *from_b = lines_b + staged_at<BK>(first_column());
    for (u32 k = tile.k_begin; k < tile.k_end; k += BK) {
      share_a.put(lines_a);
      share_b.put(lines_b);
      barrier();
      if (tile.k_end - k > BK) {
        share_a.fetch(a, tile.row, k + BK);
        share_b.fetch(b, tile.column, k + BK);
      }
#pragma unroll
      for (int step = 0; step < BK; step += 16) {
        typename M::Fragment x[FM], y[FN];
#pragma unroll
        for (int i = 0; i < FM; i++) M::load_a(x[i], from_a + staged_at<BK>(i * SIDE) + step, LINE, STAGED_MORE);
#pragma unroll
        for (int j = 0; j < FN; j++) M::load_b(y[j], from_b + staged_at<BK>(j * SIDE) + step, LINE, STAGED_MORE);
#pragma unroll
        for (int i = 0; i < FM; i++)
#pragma unroll
          for (int j = 0; j < FN; j++) M::multiply(sums[i][j], x[i], y[j]);
      }
      barrier();
    }
  }

  template <class A, class B> METHOD void multiply(char *lds, A a, B b, const Tile &tile) {
    if constexpr (A::COPIES && B::COPIES) {
      typedef WholeShare<T, BM, BK, true> WholeA;
      bool whole = a.packs_along_k && tile.k_end % 8 == 0;
      if (whole && b.packs_along_k) return run<WholeA, WholeShare<T, BN, BK, true>>(lds, a, b, tile);
      if (whole && b.packs_along_lines && b.lines % 8 == 0)
        return run<WholeA, WholeShare<T, BN, BK, false>>(lds, a, b, tile);
    }
    run<AnyShare<T, BM, BK>, AnyShare<T, BN, BK>>(lds, a, b, tile);
  }
#else
  DEVICE u32 own_line() { return item_id() / CHUNKS; }
  static constexpr u32 STAGE_BYTES = (BM + BN) * BK * 2;
  static constexpr u32 BYTES = STAGES * STAGE_BYTES > PASS_BYTES ? STAGES * STAGE_BYTES : PASS_BYTES;

  // Where chunk `chunk` of a line lies, in bytes. A line has LENGTH chunks; eight neighbouring lines put
  // the same chunk into eight different groups of banks.
  template <int LENGTH> DEVICE u32 place(u32 line, u32 chunk) {
    u32 turn = LENGTH >= 8 ? line % 8 : line / 2 % 4;
    return (line * LENGTH + (chunk ^ turn)) * 16;
  }

  // Copies LINES lines with k along them from `from`; all chunks are aligned.
  template <int LINES, class From> DEVICE void copy_by_k(u32 to, From &from, u32 line, u32 k) {
    u32 chunk = item_id() % CHUNKS, valid;
    from.begin_step(k + chunk * 8);
#pragma unroll
    for (u32 c = 0; c < LINES * CHUNKS / GROUP; c++) {
      u32 i = item_id() / CHUNKS + c * (GROUP / CHUNKS);
      const T *at = from.chunk((int)c, line + i, k + chunk * 8, valid);
      copy_async(to + place<CHUNKS>(i, chunk), at, valid);
    }
  }
  // Copies BK rows of k with the columns along them.
  template <int LINES> DEVICE void copy_by_lines(u32 to, const Strided<T> &from, u32 line, u32 k) {
    constexpr int LENGTH = LINES / 8;
    for (u32 unit = item_id(); unit < BK * LENGTH; unit += GROUP) {
      u32 i = unit / LENGTH, chunk = unit % LENGTH, at = line + chunk * 8;
      bool inside = at < from.lines && k + i < from.k_end;
      u32 valid = !inside ? 0 : from.lines - at < 8 ? (from.lines - at) * 2 : 16;
      copy_async(to + place<LENGTH>(i, chunk), inside ? from.at + (k + i) * from.k_stride + at : from.at, valid);
    }
  }

  // What cp.async cannot move goes through registers, fetched before and put after a step's products.
  template <int LINES> struct Share {
    static constexpr int COUNT = LINES * CHUNKS / GROUP;
    static_assert(COUNT * GROUP == LINES * CHUNKS, "whole chunks for every work item");
    Chunk x[COUNT];

    template <class From> METHOD void fetch(From &from, u32 line, u32 k, bool by_k) {
      if (by_k) from.begin_step(k + item_id() % CHUNKS * 8);
#pragma unroll
      for (int c = 0; c < COUNT; c++) {
        u32 unit = item_id() + c * GROUP;
        T v[8];
        if (by_k) from.template pack_along_k<T, 8>(v, c, line + unit / CHUNKS, k + unit % CHUNKS * 8);
        else from.template along_lines<T, 8>(v, line + unit % (LINES / 8) * 8, k + unit / (LINES / 8));
        x[c] = pack_chunk(v);
      }
    }
    METHOD void put(char *to, bool by_k) const {
#pragma unroll
      for (int c = 0; c < COUNT; c++) {
        u32 unit = item_id() + c * GROUP;
        u32 at = by_k ? place<CHUNKS>(unit / CHUNKS, unit % CHUNKS)
                      : place<LINES / 8>(unit / (LINES / 8), unit % (LINES / 8));
        *(Chunk *)(to + at) = x[c];
      }
    }
  };

  template <bool B_BY_K> METHOD void step(u32 lds) {
    u32 lane = lane_id(), lds_b = lds + BM * BK * 2;
#pragma unroll
    for (int k = 0; k < CHUNKS; k += 2) {
      Chunk x[FM], y[FN];
#pragma unroll
      for (int i = 0; i < FM; i++)
        x[i] = load_blocks(lds + place<CHUNKS>(first_row() + i * 16 + lane % 16, k + lane / 16));
#pragma unroll
      for (int j = 0; j < FN; j++) {
        u32 column = first_column() + j * 16;
        if constexpr (B_BY_K)
          y[j] = load_blocks(lds_b + place<CHUNKS>(column + lane % 8 + lane / 16 * 8, k + lane / 8 % 2));
        else
          y[j] = load_blocks_transposed(lds_b + place<BN / 8>(k * 8 + lane % 16, column / 8 + lane / 16));
      }
#pragma unroll
      for (int i = 0; i < FM; i++)
#pragma unroll
        for (int j = 0; j < FN; j++) M::multiply(sums[i][j], x[i], y[j]);
    }
  }

  // A lies by k always: where its rows are not contiguous they are transposed on the way. ALL_COPIED: cp.async
  // moves everything.
  template <bool B_BY_K, bool ALL_COPIED, class A, class B>
  METHOD void run(char *lds, A &a, B &b, const Tile &tile) {
    u32 base = shared_address(lds);
    bool a_copies = ALL_COPIED || a.packs_along_k, b_copies = ALL_COPIED;
    if constexpr (B::COPIES && !ALL_COPIED) b_copies = B_BY_K ? b.packs_along_k : b.packs_along_lines;
    u32 steps = (tile.k_end - tile.k_begin + BK - 1) / BK;
    Share<BM> share_a;
    Share<BN> share_b;
    auto begin = [&](u32 index) __attribute__((always_inline)) {
      if (index < steps) {
        u32 to = base + index % STAGES * STAGE_BYTES, k = tile.k_begin + index * BK;
        if (a_copies) copy_by_k<BM>(to, a, tile.row, k);
        else share_a.fetch(a, tile.row, k, true);
        if constexpr (B::COPIES) {
          if (b_copies) {
            if constexpr (B_BY_K) copy_by_k<BN>(to + BM * BK * 2, b, tile.column, k);
            else copy_by_lines<BN>(to + BM * BK * 2, b, tile.column, k);
          }
        }
        if (!b_copies) share_b.fetch(b, tile.column, k, B_BY_K);
      }
      copies_end_group();
    };
    auto end = [&](u32 index) __attribute__((always_inline)) {
      if (!ALL_COPIED && index < steps) {
        char *to = lds + index % STAGES * STAGE_BYTES;
        if (!a_copies) share_a.put(to, true);
        if (!b_copies) share_b.put(to + BM * BK * 2, B_BY_K);
      }
    };
    for (u32 s = 0; s < STAGES - 1; s++) {
      begin(s);
      end(s);
    }
    clear();
    for (u32 s = 0; s < steps; s++) {
      wait_copies<STAGES - 2>();
      barrier();
      begin(s + STAGES - 1);
      step<B_BY_K>(base + s % STAGES * STAGE_BYTES);
      end(s + STAGES - 1);
    }
    wait_copies<0>();
    barrier();
  }

  template <class A, class B> METHOD void multiply(char *lds, A a, B b, const Tile &tile) {
    if constexpr (B::COPIES) {
      if (a.packs_along_k && b.packs_along_k) return run<true, true>(lds, a, b, tile);
      if (a.packs_along_k && b.packs_along_lines) return run<false, true>(lds, a, b, tile);
    }
    run<false, false>(lds, a, b, tile);
  }
#endif

  // Sums go through workgroup memory, wave by wave, so that rows are stored in packs. The code is there once: the sums
  // move down to it.
  METHOD void store(char *lds, const GemmParams &p, const Tile &tile) {
    constexpr int IN_PASS = PASS / SIDE, COUNT = M::COUNT;
    constexpr int OF_ROW = FN * COUNT;
    auto get = [&](int i) __attribute__((always_inline)) -> f32 { return sums[i / OF_ROW][i / COUNT % FN][i % COUNT]; };
    auto set = [&](int i, f32 x) __attribute__((always_inline)) { sums[i / OF_ROW][i / COUNT % FN][i % COUNT] = x; };
    if (p.arrived && !add_up<f32, FM * OF_ROW>(p, tile, get, set)) return;
    u32 lane = lane_id();
    f32 *own = (f32 *)lds + item_id() / WAVE * SIDE * PASS_ROW;
#pragma unroll 1
    for (int i = 0; i < FM; i++) {
#pragma unroll
      for (int j = 0; j < FN; j += IN_PASS) {
#pragma unroll
        for (int f = 0; f < IN_PASS; f++)
#pragma unroll
          for (int e = 0; e < COUNT; e++)
            own[M::row(lane, e) * PASS_ROW + f * SIDE + M::column(lane, e)] = sums[0][j + f][e];
        barrier();
#pragma unroll 1
        for (u32 unit = lane; unit < SIDE * PASS / 8; unit += WAVE) {
          u32 row = unit / (PASS / 8), column = unit % (PASS / 8) * 8;
          f32 x[8];
          for (int v = 0; v < 8; v++) x[v] = own[row * PASS_ROW + column + v];
          finish<T, f32, 8>(p, tile, tile.row + first_row() + i * SIDE + row,
                            tile.column + first_column() + j * SIDE + column, x);
        }
        barrier();
      }
#pragma unroll
      for (int below = 0; below + 1 < FM; below++)
#pragma unroll
        for (int j = 0; j < FN; j++) sums[below][j] = sums[below + 1][j];
    }
  }
};

// A plain product.
#if defined(HAS_MMA_SYNC)
extern SHARED Chunk dynamic_lds[];
#endif

template <class T, class Own> DEVICE void product_in(char *lds, const GemmParams &p, u32 bm, u32 bn) {
  Tile tile = find_tile(p, bm, bn, 2, 2, 2);
  Own own;
  own.multiply(lds, operand_a<T, 8>(p, tile), operand_b<T, 8>(p, tile), tile);
  own.store(lds, p, tile);
}
template <class T, int BM, int BN, int ROWS, int STAGES> DEVICE void product_mma(const GemmParams &p) {
  typedef MmaTile<T, BM, BN, 32, ROWS, GROUP / WAVE / ROWS, STAGES> Own;
#if defined(HAS_MMA_SYNC)
  product_in<T, Own>((char *)dynamic_lds, p, BM, BN);
#else
  SHARED Chunk lds[Own::BYTES / 16];
  product_in<T, Own>((char *)lds, p, BM, BN);
#endif
}

#endif
