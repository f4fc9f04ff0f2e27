// Products of matrices: activation(alpha · A · B + beta · bias + residual), batched, any strides.
//
// Access: tiles of both operands are read in 16-byte packs along whichever direction is contiguous, results
// are stored in packs along rows. Bound: multiply-adds for large products; the bytes of B for few rows,
// which `gemv` reads once. `large` and `small` are tile sizes that the planner chooses from by shape.
#include "rukh/tile_fma.h"
#include "rukh/tile_mma.h"

template <class T, int V> DEVICE Strided<T> operand_a(const GemmParams &p, const Tile &t) {
  return Strided<T>::make(t.a, p.a_row, p.a_column, p.m, t.k_end, V);
}
template <class T, int V> DEVICE Strided<T> operand_b(const GemmParams &p, const Tile &t) {
  return Strided<T>::make(t.b, p.b_column, p.b_row, p.n, t.k_end, V);
}

template <class T, class C, int BM, int BN, int BK, int V> DEVICE void product(const GemmParams &p) {
  typedef FmaTile<C, BM, BN, BK, V> Own;
  SHARED typename Own::Buffers lds;
  Tile tile = find_tile(p, BM, BN, sizeof(T), sizeof(T), sizeof(T));
  C sums[Own::TM][Own::TN];
  Own::multiply(lds, operand_a<T, V>(p, tile), operand_b<T, V>(p, tile), tile, sums);
  Own::template store<T>(p, tile, sums);
}

KERNEL_OF_REGISTERS(GROUP) gemm_f32_large(GemmParams p) { product<f32, f32, 128, 128, 8, 4>(p); }
KERNEL(GROUP) gemm_f32_small(GemmParams p) { product<f32, f32, 64, 64, 16, 4>(p); }
KERNEL(GROUP) gemm_f64_small(GemmParams p) { product<f64, f64, 64, 64, 8, 2>(p); }
KERNEL(GROUP) gemm_i32_small(GemmParams p) { product<u32, u32, 64, 64, 16, 4>(p); }
KERNEL(GROUP) gemm_i64_small(GemmParams p) { product<u64, u64, 64, 64, 8, 2>(p); }

#if HAS_MATRIX

#if defined(HAS_MMA_SYNC)
extern SHARED char dynamic_lds[];
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
  product_in<T, Own>(dynamic_lds, p, BM, BN);
#else
  SHARED Chunk lds[Own::BYTES / 16];
  product_in<T, Own>((char *)lds, p, BM, BN);
#endif
}

// Workgroup memory of the forms with STAGES is what `providers/hip/gemm/tiles.rs` says.
KERNEL_OF_REGISTERS(GROUP) gemm_f16_large(GemmParams p) { product_mma<f16, 128, 128, 2, 4>(p); }
KERNEL(GROUP) gemm_f16_small(GemmParams p) { product_mma<f16, 64, 64, 2, 4>(p); }
KERNEL_OF_REGISTERS(GROUP) gemm_bf16_large(GemmParams p) { product_mma<bf16, 128, 128, 2, 4>(p); }
KERNEL(GROUP) gemm_bf16_small(GemmParams p) { product_mma<bf16, 64, 64, 2, 4>(p); }
#if defined(HAS_MMA_SYNC)
KERNEL(GROUP) gemm_f16_wide(GemmParams p) { product_mma<f16, 128, 256, 2, 4>(p); }
KERNEL(GROUP) gemm_bf16_wide(GemmParams p) { product_mma<bf16, 128, 256, 2, 4>(p); }
#endif

#else

KERNEL_OF_REGISTERS(GROUP) gemm_f16_large(GemmParams p) { product<f16, f32, 128, 128, 8, 4>(p); }
KERNEL(GROUP) gemm_f16_small(GemmParams p) { product<f16, f32, 64, 64, 16, 4>(p); }
KERNEL_OF_REGISTERS(GROUP) gemm_bf16_large(GemmParams p) { product<bf16, f32, 128, 128, 8, 4>(p); }
KERNEL(GROUP) gemm_bf16_small(GemmParams p) { product<bf16, f32, 64, 64, 16, 4>(p); }

#endif

KERNEL(GROUP) gemm_f32_parts(GemmParams p) { add_parts<f32, f32>(p); }
KERNEL(GROUP) gemm_f16_parts(GemmParams p) { add_parts<f16, f32>(p); }
KERNEL(GROUP) gemm_bf16_parts(GemmParams p) { add_parts<bf16, f32>(p); }

// Few rows: B is read once, in packs, by all waves of a workgroup.
constexpr u32 FEW = 4;

// B's rows are contiguous: a wave takes WAVE · V columns, and each wave of the workgroup every eighth (or
// fourth) row of B; their sums meet in workgroup memory.
template <class T, int V> DEVICE void few_rows(const GemmParams &p) {
  constexpr u32 WAVES = GROUP / WAVE, COLUMNS = WAVE * V;
  SHARED f32 lds[WAVES][COLUMNS];
  Tile tile = find_tile(p, FEW, COLUMNS, sizeof(T), sizeof(T), sizeof(T));
  u32 lane = item_id() % WAVE, wave = item_id() / WAVE, column = tile.column + lane * V;
  auto b = operand_b<T, V>(p, tile);
  const T *a = (const T *)tile.a;
  f32 sums[FEW][V] = {};
  for (u32 k = tile.k_begin + wave; k < tile.k_end; k += WAVES) {
    f32 y[V];
    b.template along_lines<f32, V>(y, column, k);
#pragma unroll
    for (u32 i = 0; i < FEW; i++) {
      if (i < p.m) {
        f32 x = widen(a[i * p.a_row + k * p.a_column]);
        for (int v = 0; v < V; v++) sums[i][v] = fma_(x, y[v], sums[i][v]);
      }
    }
  }
#pragma unroll
  for (u32 i = 0; i < FEW; i++) {
    if (i >= p.m) return;
    for (int v = 0; v < V; v++) lds[wave][lane * V + v] = sums[i][v];
    barrier();
    for (u32 at = item_id(); at < COLUMNS; at += GROUP) {
      f32 sum = 0;
      for (u32 w = 0; w < WAVES; w++) sum += lds[w][at];
      finish<T, f32, 1>(p, tile, i, tile.column + at, &sum);
    }
    barrier();
  }
}

// B's columns are contiguous: a wave takes one column at a time, its lanes packs along k.
template <class T, int V> DEVICE void few_rows_by_k(const GemmParams &p) {
  constexpr u32 WAVES = GROUP / WAVE;
  Tile tile = find_tile(p, FEW, WAVES, sizeof(T), sizeof(T), sizeof(T));
  u32 lane = item_id() % WAVE, column = tile.column + item_id() / WAVE;
  auto a = operand_a<T, V>(p, tile), b = operand_b<T, V>(p, tile);
  f32 sums[FEW] = {};
  for (u32 k = tile.k_begin + lane * V; k < tile.k_end; k += WAVE * V) {
    f32 x[V], y[V];
    b.template along_k<f32, V>(y, column, k);
#pragma unroll
    for (u32 i = 0; i < FEW; i++) {
      if (i < p.m) {
        a.template along_k<f32, V>(x, i, k);
        for (int v = 0; v < V; v++) sums[i] = fma_(x[v], y[v], sums[i]);
      }
    }
  }
#pragma unroll
  for (u32 i = 0; i < FEW; i++) {
    for (u32 mask = WAVE / 2; mask > 0; mask /= 2) sums[i] += lane_xor(sums[i], mask);
    if (lane == i) finish<T, f32, 1>(p, tile, i, column, &sums[i]);
  }
}

KERNEL(GROUP) gemm_f32_few(GemmParams p) { few_rows<f32, 4>(p); }
KERNEL(GROUP) gemm_f16_few(GemmParams p) { few_rows<f16, 8>(p); }
KERNEL(GROUP) gemm_bf16_few(GemmParams p) { few_rows<bf16, 8>(p); }
KERNEL(GROUP) gemm_f32_few_by_k(GemmParams p) { few_rows_by_k<f32, 4>(p); }
KERNEL(GROUP) gemm_f16_few_by_k(GemmParams p) { few_rows_by_k<f16, 8>(p); }
KERNEL(GROUP) gemm_bf16_few_by_k(GemmParams p) { few_rows_by_k<bf16, 8>(p); }
