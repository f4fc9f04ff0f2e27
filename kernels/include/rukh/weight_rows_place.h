// What a launch of weight_rows_hopper.h has in workgroup memory, and what reaches it.
#pragma once
#include "cluster.h"
#include "weight_chain_row.h"

// The product of `count` rows of `a`, or of the sums of `a` and `skip` where there is one, which are stored as `sum`, normalised where
// there is a scale. Of what is gated, a tile has 16 lines from `origin` and 16 from `second` on, and half as many results.
struct WeightRowsParams {
  // The weight and its scales.
  TensorMap maps[2];
  u64 a, skip, sum, scale, out;
  // `step`: lines from a tile to the next. `part`: numbers of a line that a workgroup of a cluster has; `padded`: in whole slots.
  u32 count, n, k, tiles, origin, second, step, gated, part, padded, slots;
  f32 epsilon;
  // Whether weights are no constants, which may be read before the kernel before this one has ended.
  u32 waits_first;
  u32 unused[9];
};
static_assert(sizeof(WeightRowsParams) == 384, "the mirror in providers/hip/weight_only/rows.rs");

// Waves that multiply, the blocks that each has of a slot's lines, numbers of a block and of a slot's lines.
constexpr u32 ROWS_WAVES = 8, BLOCKS_OF_WAVE = 4, ROWS_BLOCK = 32, ROWS_NUMBERS = ROWS_WAVES * BLOCKS_OF_WAVE * ROWS_BLOCK;
// Bytes of a box of 16 lines of 512 numbers, of a line's scales and those of 16 lines, of a slot.
constexpr u32 ROWS_BOX = 16 * 256, ROWS_SCALE_LINE = ROWS_NUMBERS / ROWS_BLOCK * 2, ROWS_SCALES = 16 * ROWS_SCALE_LINE;
constexpr u32 ROWS_SLOT = 4 * ROWS_BOX + 2 * ROWS_SCALES;
static_assert(ROWS_SLOT == 18432, "SLOT in providers/hip/weight_only/rows.rs");
constexpr u32 ROWS_WORKERS = ROWS_WAVES * 32, BLOCKS_OF_SLOT = ROWS_WAVES * BLOCKS_OF_WAVE;
// Slots of a ring at most, of whose barriers there is room; bytes of all barriers and units.
constexpr u32 ROWS_SLOTS = 8, ROWS_SMALL = 256;
static_assert(ROWS_SLOTS == 8 && ROWS_SMALL == 256, "MOST_SLOTS and SMALL in providers/hip/weight_only/rows.rs");
// What means are multiplied with, so that those of small elements keep their bits as halves.
constexpr f32 MEANS_TIMES = 1024;
// What even elements of a row are multiplied with: the numbers that they meet have the unit 2^-24, those of odd ones 2^-20.
constexpr f32 EVEN_TIMES = 16;
// The least unit of a row: with it the largest element times the largest scale has room.
constexpr f32 LEAST_UNIT = 0x1p-32f;

// Where things are in workgroup memory. `partial`: for each tile that the workgroup finishes, the barrier at which the sums of its
// cluster come, which takes as much room as a pack, and these sums.
struct RowsMemory {
  u32 ring, full, empty, board_full, board_empty, squares_come, units, squares, all_squares, board, partial, means, rows;

  template <u32 GROUPS, u32 CLUSTER> DEVICE RowsMemory of(const WeightRowsParams &p) {
    extern SHARED u8 rows_memory[];
    u32 ring = (shared_address(rows_memory) + 1023) / 1024 * 1024, at = ring + p.slots * ROWS_SLOT, squares = at + ROWS_SMALL;
    u32 all_squares = squares + ROWS_WAVES * GROUPS * 32, board = all_squares + CLUSTER * GROUPS * 32;
    u32 rows = board + ROWS_WAVES * 2 * GROUPS * 512, means = rows + p.part * GROUPS * 16, partial = means + p.padded * GROUPS;
    return {ring, at, at + ROWS_SLOTS * 8, at + 128, at + 136, at + 144, at + 192, squares, all_squares, board, partial, means, rows};
  }
};

// The tiles of a workgroup, and its part of K.
struct RowsShare {
  u32 first, stride, rank, from;

  template <u32 CLUSTER> DEVICE RowsShare of(const WeightRowsParams &p) {
    u32 rank = CLUSTER > 1 ? rank_in_cluster() : 0;
    return {group_id() / CLUSTER, groups() / CLUSTER, rank, rank * p.part};
  }
};

DEVICE void store_four(u32 at, const f32 (&x)[4]) {
  store_pack(at, Unit{bits<u32>(x[0]), bits<u32>(x[1]), bits<u32>(x[2]), bits<u32>(x[3])});
}
DEVICE void store_half_word(u32 at, u32 x) { asm volatile("st.shared.u16 [%0], %1;" ::"r"(at), "h"((u16)x) : "memory"); }

// 16 lines of weights times eight columns of rows.
DEVICE void multiply_rows(f32 (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
