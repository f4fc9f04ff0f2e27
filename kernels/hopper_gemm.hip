// Large products of half-precision matrices on Hopper: a tile of 128 × 256 with two groups of four waves that
// multiply, 64 rows each, and a third that brings the operands.
//
// Access: cp.async copies both operands up to four steps of 64 ahead, in 16-byte chunks; results go through
// workgroup memory and are stored in packs along rows. Bound: the matrix units; a workgroup has a processor to
// itself, and each of its tiles begins and ends without products.
#include "rukh/operand.h"
#include "rukh/wgmma.h"

constexpr u32 BM = 128, BN = 256, BK = PANEL, STAGES = 4;
constexpr u32 A_BYTES = BM * PANEL_LINE, STAGE_BYTES = (BM + BN) * PANEL_LINE;
constexpr u32 ITEMS = 3 * WAVE_GROUP;
// Sums pass through rows of this many numbers.
constexpr u32 SUM_ROW = BN + 8;
static_assert(BM * SUM_ROW * 4 <= STAGES * STAGE_BYTES, "the sums fit in");

extern SHARED Chunk dynamic_lds[];

// One operand's way to workgroup memory: the chunks of each step that a work item of the third group brings.
// BY_K: k runs along the lines of panels; else a line of a panel is 64 columns of one k, and there are
// LINES / 64 panels. COPIED: cp.async moves everything.
template <class T, u32 LINES, bool BY_K, bool COPIED> struct Feed {
  // Eight neighbours read a line of a panel; a step's other chunks lie DOWN lines on.
  static constexpr u32 COUNT = LINES * 8 / WAVE_GROUP, DOWN = WAVE_GROUP / 8, IN_PANEL = PANEL / DOWN;
  Strided<T> from;
  const T *first;
  // The line and the k of the first chunk, and where it goes.
  u32 line, k, to;
  // Whether all lines are there.
  bool whole;

  METHOD void begin(const Strided<T> &operand, u32 first_line) {
    u32 down = item_id() % WAVE_GROUP / 8, chunk = item_id() % 8;
    from = operand;
    line = first_line + (BY_K ? down : chunk * 8);
    k = BY_K ? chunk * 8 : down;
    first = from.at + line * from.line_stride + k * from.k_stride;
    to = place_in_panel(down, chunk);
    whole = first_line + LINES <= from.lines;
  }
  // The step whose k begins at `at`.
  METHOD void start(char *lds, u32 base, u32 at) const {
    const T *source = first + at * from.k_stride;
    if (COPIED && whole && at + BK <= from.k_end) {
      i64 down = DOWN * (BY_K ? from.line_stride : from.k_stride);
      u32 place = base + to;
      if constexpr (BY_K) {
#pragma unroll
        for (u32 u = 0; u < COUNT; u++, source += down) copy_async(place + u * DOWN * PANEL_LINE, source, 16);
      } else {
#pragma unroll
        for (u32 i = 0; i < IN_PANEL; i++, source += down)
#pragma unroll
          for (u32 panel = 0; panel < LINES / PANEL; panel++)
            copy_async(place + (panel * PANEL + i * DOWN) * PANEL_LINE, source + panel * PANEL, 16);
      }
      return;
    }
#pragma unroll 1
    for (u32 u = 0; u < COUNT; u++) {
      u32 place = to + u * DOWN * PANEL_LINE, panel = u / IN_PANEL, down = u % IN_PANEL * DOWN;
      u32 i = BY_K ? line + u * DOWN : line + panel * PANEL, j = at + (BY_K ? k : k + down);
      if constexpr (COPIED) {
        u32 limit = BY_K ? from.k_end : from.lines, along = BY_K ? j : i;
        bool inside = i < from.lines && j < from.k_end;
        u32 bytes = !inside ? 0 : limit - along < 8 ? (limit - along) * 2 : 16;
        const T *own = source + (BY_K ? u * DOWN * from.line_stride : panel * PANEL + down * from.k_stride);
        copy_async(base + place, inside ? own : from.at, bytes);
      } else {
        T x[8];
        if (BY_K) from.template along_k<T, 8>(x, i, j);
        else from.template along_lines<T, 8>(x, i, j);
        Chunk c;
        for (int v = 0; v < 4; v++) c.word[v] = bits<u16>(x[2 * v]) | (u32)bits<u16>(x[2 * v + 1]) << 16;
        *(Chunk *)(lds + place) = c;
      }
    }
  }
};

// What a workgroup shares: stages, and for each a barrier that its operands have come, and one that they have
// been used.
struct Stages {
  char *lds;
  u32 base, full, empty;
  DEVICE Stages make() {
    u32 start = shared_address(dynamic_lds), skip = (1024 - start % 1024) % 1024, barriers = start + skip + STAGES * STAGE_BYTES;
    return {(char *)dynamic_lds + skip, start + skip, barriers, barriers + STAGES * 8};
  }
};

template <class T, bool B_BY_K, bool COPIED>
DEVICE void bring(const GemmParams &p, const Tile &tile, const Stages &stages, u32 steps) {
  Feed<T, BM, true, COPIED> a;
  Feed<T, BN, B_BY_K, COPIED> b;
  a.begin(operand_a<T, 8>(p, tile), tile.row);
  b.begin(operand_b<T, 8>(p, tile), tile.column);
  for (u32 s = 0; s < steps; s++) {
    u32 stage = s % STAGES, at = stage * STAGE_BYTES, k = tile.k_begin + s * BK;
    if (s >= STAGES) wait_phase(stages.empty + stage * 8, s / STAGES % 2 ^ 1);
    a.start(stages.lds + at, stages.base + at, k);
    b.start(stages.lds + at + A_BYTES, stages.base + at + A_BYTES, k);
    if (COPIED) arrive_with_copies(stages.full + stage * 8);
    else arrive(stages.full + stage * 8);
  }
}

// Sums of 64 rows.
template <class T, bool B_BY_K> DEVICE void multiply_stages(const Stages &stages, u32 steps, u32 first, f32 (&sums)[BN / 2]) {
  for (u32 s = 0; s < steps; s++) {
    u32 stage = s % STAGES, at = stages.base + stage * STAGE_BYTES;
    wait_phase(stages.full + stage * 8, s / STAGES % 2);
    publish_to_products();
    pin(sums);
    products_begin();
#pragma unroll
    for (u32 k = 0; k < BK / 16; k++) {
      u64 y = B_BY_K ? describe(at + A_BYTES + k * 32, 0)
                     : describe(at + A_BYTES + k * 16 * PANEL_LINE, BK * PANEL_LINE);
      multiply<!B_BY_K>(T{}, sums, describe(at + first * PANEL_LINE + k * 32, 0), y, 1);
    }
    products_end_group();
    wait_products<1>();
    pin(sums);
    if (s > 0 && lane_id() == 0) arrive(stages.empty + (s - 1) % STAGES * 8);
  }
  wait_products<0>();
  pin(sums);
}

template <class T> DEVICE void product_hopper(const GemmParams &p) {
  Tile tile = find_tile(p, BM, BN, 2, 2, 2);
  Stages stages = Stages::make();
  u32 item = item_id(), group = item / WAVE_GROUP, first = group * 64;
  u32 steps = (tile.k_end - tile.k_begin + BK - 1) / BK;
  if (item < STAGES) {
    phases_begin(stages.full + item * 8, WAVE_GROUP);
    phases_begin(stages.empty + item * 8, 2 * WAVE_GROUP / WAVE);
  }
  barrier();
  auto b = operand_b<T, 8>(p, tile);
  f32 *rows = (f32 *)stages.lds;
  if (group == 2) {
    bool copied = operand_a<T, 8>(p, tile).packs_along_k;
    if (copied && p.b_row == 1 && b.packs_along_k) bring<T, true, true>(p, tile, stages, steps);
    else if (copied && p.b_row != 1 && b.packs_along_lines) bring<T, false, true>(p, tile, stages, steps);
    else if (p.b_row == 1) bring<T, true, false>(p, tile, stages, steps);
    else bring<T, false, false>(p, tile, stages, steps);
    barrier();
  } else {
    f32 sums[BN / 2];
#pragma unroll
    for (u32 i = 0; i < BN / 2; i++) sums[i] = 0;
    if (p.b_row == 1) multiply_stages<T, true>(stages, steps, first, sums);
    else multiply_stages<T, false>(stages, steps, first, sums);
    barrier();
#pragma unroll
    for (u32 i = 0; i < BN / 2; i += 2) {
      f32 *to = rows + (first + sum_row(item, i)) * SUM_ROW + sum_column(item, i);
      to[0] = sums[i], to[1] = sums[i + 1];
    }
  }
  barrier();
#pragma unroll 1
  for (u32 unit = item; unit < BM * BN / 8; unit += ITEMS) {
    u32 row = unit / (BN / 8), column = unit % (BN / 8) * 8;
    f32 x[8];
    for (int v = 0; v < 8; v++) x[v] = rows[row * SUM_ROW + column + v];
    finish<T, f32, 8>(p, tile, tile.row + row, tile.column + column, x);
  }
}

KERNEL(ITEMS) gemm_f16_hopper(GemmParams p) { product_hopper<f16>(p); }
KERNEL(ITEMS) gemm_bf16_hopper(GemmParams p) { product_hopper<bf16>(p); }
