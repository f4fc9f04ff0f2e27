// What a launch of weight_rows_hopper.h has in workgroup memory, and the rows there.
//
// Access: a wave brings a block of eight rows at a time, 64 bytes of each.
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

// Where things are in workgroup memory.
struct RowsMemory {
  u32 ring, full, empty, board_full, board_empty, units, squares, all_squares, board, partial, means, rows;

  template <u32 GROUPS, u32 CLUSTER> DEVICE RowsMemory of(const WeightRowsParams &p) {
    extern SHARED u8 rows_memory[];
    u32 ring = (shared_address(rows_memory) + 1023) / 1024 * 1024, at = ring + p.slots * ROWS_SLOT, squares = at + ROWS_SMALL;
    u32 all_squares = squares + ROWS_WAVES * GROUPS * 32, board = all_squares + CLUSTER * GROUPS * 32;
    u32 rows = board + ROWS_WAVES * 2 * GROUPS * 512, means = rows + p.part * GROUPS * 16, partial = means + p.padded * GROUPS;
    return {ring, at, at + ROWS_SLOTS * 8, at + 128, at + 136, at + 192, squares, all_squares, board, partial, means, rows};
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

// A barrier of the waves that multiply, which tells whether one of their items says so.
DEVICE bool any_worker(bool says) {
  u32 r;
  asm volatile("{.reg .pred p, q; setp.ne.u32 p, %1, 0; bar.red.or.pred q, 1, %2, p; selp.u32 %0, 1, 0, q;}"
               : "=r"(r)
               : "r"((u32)says), "n"(ROWS_WORKERS)
               : "memory");
  return r;
}

// The waves that finish tiles wait until the rows lie there.
template <u32 GROUPS> DEVICE void rows_are_there() { arrive_at(2, ROWS_WORKERS + GROUPS * 32); }
template <u32 GROUPS> DEVICE void wait_for_rows() { barrier_of(2, ROWS_WORKERS + GROUPS * 32); }

// Puts eight elements of a block, of which those with even numbers are 16 times what they are, into a row as a lane multiplies them,
// and of the block the mean times MEANS_TIMES, as the sum of two halves, beside those of the slot's other blocks: high ones and low
// ones as lanes take them for mma.sync. The lanes of a block call this together. Tells whether the mean is finite so.
DEVICE bool put_eight(const RowsMemory &m, Unit x, u32 block, u32 row, u32 groups) {
  u32 t = item_id() % 4, in_slot = block % BLOCKS_OF_SLOT, group = row / 8, line = row % 8;
  f32 even = 0, odd = 0;
  UNROLL
  for (u32 w = 0; w < 4; w++) even += widen_one(f16{}, x[w], false), odd += widen_one(f16{}, x[w], true);
  f32 sum = fma_(even, 1 / EVEN_TIMES, odd);
  sum += lane_xor(sum, 1), sum += lane_xor(sum, 2);
  // Numbers of a word come in the order 0, 4, 1, 5, 2, 6, 3, 7.
  Unit ordered = {__nvvm_prmt(x[0], x[2], 0x5410), __nvvm_prmt(x[0], x[2], 0x7632), __nvvm_prmt(x[1], x[3], 0x5410),
                  __nvvm_prmt(x[1], x[3], 0x7632)};
  store_pack(m.rows + (block * groups + group) * 512 + (line * 4 + t) * 16, ordered);
  f32 mean = sum * (MEANS_TIMES / ROWS_BLOCK);
  u32 high = bits<u16>((f16)mean), low = bits<u16>((f16)(mean - widen_one(f16{}, high, false)));
  u32 to = m.means + (block / BLOCKS_OF_SLOT * groups + group) * 1024 + (line * 4 + in_slot % 8 / 2) * 16;
  if (t < 2) store_half_word(to + t * 512 + in_slot / 8 * 4 + in_slot % 2 * 2, t ? low : high);
  return __builtin_fabsf(mean) <= 65504;
}

// Brings this workgroup's part of the rows, times the scale of what is normalised and `units`, of the rows that this work item brings. The
// squares of elements are summed in workgroup memory. Tells whether halves have room for all; who sees a row that they have not makes
// the row's unit smaller there.
template <u32 GROUPS> DEVICE bool bring_part(const WeightRowsParams &p, const RowsMemory &m, RowsShare share, const f32 (&units)[GROUPS]) {
  constexpr u32 AHEAD = 4, ONES = 0x3c003c00;
  u32 item = item_id(), wave = item / 32, lane = item % 32, row = lane / 4, t = lane % 4, blocks = p.part / ROWS_BLOCK;
  bool stores_sum = p.sum && share.first == 0, fit[GROUPS], all_fit = true;
  f32 squares[GROUPS] = {};
  UNROLL
  for (u32 g = 0; g < GROUPS; g++) fit[g] = true;
  u64 begin = ((u64)row * p.k + share.from + t * 8) * 2, further = (u64)p.k * 16;
#pragma unroll 1
  for (u32 first = wave; first < blocks; first += AHEAD * ROWS_WAVES) {
    Unit x[AHEAD][GROUPS] = {}, added[AHEAD][GROUPS] = {}, by[AHEAD];
    UNROLL
    for (u32 j = 0; j < AHEAD; j++) {
      u32 block = first + j * ROWS_WAVES;
      by[j] = Unit{ONES, ONES, ONES, ONES};
      if (block >= blocks) continue;
      if (p.scale) by[j] = load_unit(p.scale + (share.from + t * 8) * 2 + block * 64);
      UNROLL
      for (u32 g = 0; g < GROUPS; g++) {
        if (g * 8 + row >= p.count) continue;
        x[j][g] = load_unit(p.a + begin + g * further + block * 64);
        if (p.skip) added[j][g] = load_unit(p.skip + begin + g * further + block * 64);
      }
    }
    UNROLL
    for (u32 j = 0; j < AHEAD; j++) {
      u32 block = first + j * ROWS_WAVES;
      if (block >= blocks) continue;
      UNROLL
      for (u32 g = 0; g < GROUPS; g++) {
        Unit y = x[j][g];
        f32 even = EVEN_TIMES * units[g];
        if (p.skip) {
          UNROLL
          for (u32 w = 0; w < 4; w++) y[w] = add_two(f16{}, y[w], added[j][g][w]);
          if (stores_sum && g * 8 + row < p.count) store_unit(p.sum + begin + g * further + block * 64, y);
        }
        UNROLL
        for (u32 w = 0; w < 4; w++) {
          f32 low = widen_one(f16{}, y[w], false), high = widen_one(f16{}, y[w], true);
          squares[g] = fma_(low, low, fma_(high, high, squares[g]));
          f32 of_low = widen_one(f16{}, by[j][w], false) * even, of_high = widen_one(f16{}, by[j][w], true) * units[g];
          y[w] = narrow_two(f16{}, low * of_low, high * of_high);
        }
        fit[g] &= put_eight(m, y, block, g * 8 + row, GROUPS);
      }
    }
  }
  UNROLL
  for (u32 g = 0; g < GROUPS; g++) {
    squares[g] += lane_xor(squares[g], 1), squares[g] += lane_xor(squares[g], 2);
    if (p.scale && t == 0) store_word(m.squares + (wave * GROUPS * 8 + g * 8 + row) * 4, bits<u32>(squares[g]));
    // What is no number stays so.
    if (fit[g] || units[g] <= LEAST_UNIT) continue;
    store_word(m.units + (g * 8 + row) * 4, bits<u32>(units[g] * 0x1p-8f)), all_fit = false;
  }
  return all_fit;
}

// Brings this workgroup's part of the rows, and gives the squares to all of its cluster. Elements lie there before the factor of the
// normalisation is known, so that they may be too large for halves: then they come again, of such rows as parts of what they are.
template <u32 GROUPS, u32 CLUSTER> DEVICE void bring_rows(const WeightRowsParams &p, const RowsMemory &m, RowsShare share) {
  u32 item = item_id();
  f32 units[GROUPS];
  UNROLL
  for (u32 g = 0; g < GROUPS; g++) units[g] = 1;
#pragma unroll 1
  while (any_worker(!bring_part<GROUPS>(p, m, share, units))) {
    UNROLL
    for (u32 g = 0; g < GROUPS; g++) units[g] = bits<f32>(load_word(m.units + (g * 8 + item % 32 / 4) * 4));
    // Before one of them becomes smaller again.
    any_worker(false);
  }
  rows_are_there<GROUPS>();
  if constexpr (CLUSTER > 1) cluster_wait();
  if (p.scale && item < GROUPS * 8) {
    f32 square = 0;
    UNROLL
    for (u32 w = 0; w < ROWS_WAVES; w++) square += bits<f32>(load_word(m.squares + (w * GROUPS * 8 + item) * 4));
    u32 to = m.all_squares + (share.rank * GROUPS * 8 + item) * 4;
    UNROLL
    for (u32 r = 0; r < CLUSTER; r++) {
      if constexpr (CLUSTER > 1) store_in_cluster(in_cluster(to, r), square);
      else store_word(to, bits<u32>(square));
    }
  }
}

// The factors of the normalisation of a lane's two rows of eight.
template <u32 GROUPS, u32 CLUSTER> DEVICE void find_factors(const WeightRowsParams &p, const RowsMemory &m, u32 group, f32 (&factors)[2]) {
  u32 row = group * 8 + item_id() % 4 * 2;
  UNROLL
  for (u32 i = 0; i < 2; i++) {
    f32 square = 0;
    UNROLL
    for (u32 r = 0; r < CLUSTER; r++) square += bits<f32>(load_word(m.all_squares + (r * GROUPS * 8 + row + i) * 4));
    factors[i] = one_over_norm(square, p.k, p.epsilon);
  }
}
