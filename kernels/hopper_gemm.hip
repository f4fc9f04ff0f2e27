// Large products of half-precision matrices on Hopper: a tile of 128 × 256 with two groups of four waves.
//
// Access: cp.async copies both operands three steps of 64 ahead, in 16-byte chunks; results go through workgroup
// memory and are stored in packs along rows. Bound: the matrix units; a workgroup has a processor to itself,
// and each of its tiles begins and ends without products.
#include "rukh/operand.h"
#include "rukh/wgmma.h"

constexpr u32 BM = 128, BN = 256, BK = PANEL, STAGES = 4;
constexpr u32 A_BYTES = BM * PANEL_LINE, STAGE_BYTES = (BM + BN) * PANEL_LINE;
// Sums pass through rows of this many numbers.
constexpr u32 SUM_ROW = BN + 8;
static_assert(BM * SUM_ROW * 4 <= STAGES * STAGE_BYTES, "the sums fit in");

extern SHARED Chunk dynamic_lds[];

// One operand's way to workgroup memory: this work item's COUNT chunks of each step, of which neighbours lie
// `stride` apart. BY_K: k runs along the lines of panels; else a line of a panel is 64 columns of one k, and
// there are LINES / 64 panels. COPIED: cp.async moves everything.
template <class T, u32 LINES, bool BY_K, bool COPIED> struct Feed {
  static constexpr u32 COUNT = LINES * 8 / GROUP, ACROSS = BY_K ? 8 : LINES / 8, DOWN = GROUP / ACROSS;
  static_assert(DOWN % 8 == 0, "the permutation is the same for all chunks of a work item");
  Strided<T> from;
  const T *first;
  i64 stride;
  // The line and the k of the first chunk, and where it goes.
  u32 line, k, to;

  METHOD void begin(const Strided<T> &operand, u32 first_line) {
    u32 down = item_id() / ACROSS, chunk = item_id() % ACROSS;
    from = operand;
    line = first_line + (BY_K ? down : chunk * 8);
    k = BY_K ? chunk * 8 : down;
    first = from.at + line * from.line_stride + k * from.k_stride;
    stride = DOWN * (BY_K ? from.line_stride : from.k_stride);
    to = chunk / 8 * (BK * PANEL_LINE) + place_in_panel(down, chunk % 8);
  }
  // The step whose k begins at `at`.
  METHOD void start(char *lds, u32 base, u32 at) const {
    u32 limit = BY_K ? from.k_end : from.lines, along = BY_K ? at + k : line;
    u32 bytes = along >= limit ? 0 : limit - along < 8 ? (limit - along) * 2 : 16;
#pragma unroll
    for (u32 u = 0; u < COUNT; u++) {
      u32 place = to + u * DOWN * PANEL_LINE;
      if constexpr (COPIED) {
        bool inside = BY_K ? line + u * DOWN < from.lines : at + k + u * DOWN < from.k_end;
        const T *source = first + u * stride + at * from.k_stride;
        copy_async(base + place, inside && bytes ? source : from.at, inside ? bytes : 0);
      } else {
        T x[8];
        if (BY_K) from.template along_k<T, 8>(x, line + u * DOWN, at + k);
        else from.template along_lines<T, 8>(x, line, at + k + u * DOWN);
        Chunk c;
        for (int i = 0; i < 4; i++) c.word[i] = bits<u16>(x[2 * i]) | (u32)bits<u16>(x[2 * i + 1]) << 16;
        *(Chunk *)(lds + place) = c;
      }
    }
  }
};

template <class T, bool B_BY_K, bool COPIED> DEVICE void run(const GemmParams &p, const Tile &tile, char *lds) {
  Feed<T, BM, true, COPIED> a;
  Feed<T, BN, B_BY_K, COPIED> b;
  a.begin(operand_a<T, 8>(p, tile), tile.row);
  b.begin(operand_b<T, 8>(p, tile), tile.column);
  u32 base = shared_address(lds), own_a = base + item_id() / WAVE_GROUP * 64 * PANEL_LINE;
  u32 steps = (tile.k_end - tile.k_begin + BK - 1) / BK;
  auto start = [&](u32 index) __attribute__((always_inline)) {
    if (index < steps) {
      u32 stage = index % STAGES * STAGE_BYTES, k = tile.k_begin + index * BK;
      a.start(lds + stage, base + stage, k);
      b.start(lds + stage + A_BYTES, base + stage + A_BYTES, k);
    }
    copies_end_group();
  };
  f32 sums[128];
#pragma unroll
  for (int i = 0; i < 128; i++) sums[i] = 0;
  for (u32 s = 0; s < STAGES - 2; s++) start(s);
  for (u32 s = 0; s < steps; s++) {
    wait_copies<STAGES - 3>();
    publish_to_products();
    // Behind it, all have finished the products of step s - 2, whose place the next copies take.
    barrier();
    u32 stage = s % STAGES * STAGE_BYTES;
    pin(sums);
    products_begin();
#pragma unroll
    for (u32 k = 0; k < BK / 16; k++) {
      u64 x = describe(own_a + stage + k * 32, 0);
      u64 y = B_BY_K ? describe(base + stage + A_BYTES + k * 32, 0)
                     : describe(base + stage + A_BYTES + k * 16 * PANEL_LINE, BK * PANEL_LINE);
      multiply<!B_BY_K>(T{}, sums, x, y, 1);
    }
    products_end_group();
    start(s + STAGES - 2);
    wait_products<1>();
    pin(sums);
  }
  wait_products<0>();
  pin(sums);
  wait_copies<0>();
  barrier();
  f32 *rows = (f32 *)lds;
  u32 item = item_id(), first = item / WAVE_GROUP * 64;
#pragma unroll
  for (u32 i = 0; i < 128; i += 2) {
    f32 *to = rows + (first + sum_row(item, i)) * SUM_ROW + sum_column(item, i);
    to[0] = sums[i], to[1] = sums[i + 1];
  }
  barrier();
#pragma unroll 4
  for (u32 unit = item; unit < BM * BN / 8; unit += GROUP) {
    u32 row = unit / (BN / 8), column = unit % (BN / 8) * 8;
    f32 x[8];
    for (int v = 0; v < 8; v++) x[v] = rows[row * SUM_ROW + column + v];
    finish<T, f32, 8>(p, tile, tile.row + row, tile.column + column, x);
  }
}

template <class T> DEVICE void product_hopper(const GemmParams &p) {
  Tile tile = find_tile(p, BM, BN, 2, 2, 2);
  char *lds = (char *)dynamic_lds + (1024 - shared_address(dynamic_lds) % 1024) % 1024;
  auto b = operand_b<T, 8>(p, tile);
  bool copied = operand_a<T, 8>(p, tile).packs_along_k;
  if (b.packs_along_k && copied) run<T, true, true>(p, tile, lds);
  else if (b.packs_along_lines && copied) run<T, false, true>(p, tile, lds);
  else run<T, false, false>(p, tile, lds);
}

KERNEL(GROUP) gemm_f16_hopper(GemmParams p) { product_hopper<f16>(p); }
KERNEL(GROUP) gemm_bf16_hopper(GemmParams p) { product_hopper<bf16>(p); }
