// Brings rows to where lanes take them for mma.sync, for weight_rows_hopper.h.
//
// Two words of a lane are what it has of eight rows for mma.sync, as columns; as lines they are the first eight. So mma.sync also adds up
// the elements of blocks, times a line of ones, and squares, whose sums are the products of rows with themselves.
//
// Access: a wave brings a block of eight rows at a time, 64 bytes of each. Bound: the time that loads take.
#pragma once
#include "weight_rows_place.h"

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

// The first of the two rows whose means a lane has: of eight rows, or of both lots of eight.
template <u32 GROUPS> DEVICE u32 row_of_means() { return item_id() % 32 / 16 % GROUPS * 8 + item_id() % 4 * 2; }

// The units of the rows that a work item brings, and of the two whose means it has.
template <u32 GROUPS> struct RowsUnits {
  f32 brought[GROUPS], of_means[2];

  DEVICE RowsUnits ones() {
    RowsUnits x;
    UNROLL
    for (u32 g = 0; g < GROUPS; g++) x.brought[g] = 1;
    x.of_means[0] = x.of_means[1] = 1;
    return x;
  }
  DEVICE RowsUnits load(const RowsMemory &m) {
    RowsUnits x;
    UNROLL
    for (u32 g = 0; g < GROUPS; g++) x.brought[g] = bits<f32>(load_word(m.units + (g * 8 + item_id() % 32 / 4) * 4));
    UNROLL
    for (u32 i = 0; i < 2; i++) x.of_means[i] = bits<f32>(load_word(m.units + (row_of_means<GROUPS>() + i) * 4));
    return x;
  }
};

DEVICE u32 multiply_two(u32 a, u32 b) {
  u32 r;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}

// Puts eight elements of a block, of which those with even numbers are EVEN_TIMES what they are, into a row as a lane multiplies them.
DEVICE Unit put_eight(const RowsMemory &m, Unit x, u32 block, u32 group, u32 groups) {
  // Numbers of a word come in the order 0, 4, 1, 5, 2, 6, 3, 7.
  Unit ordered = {__nvvm_prmt(x[0], x[2], 0x5410), __nvvm_prmt(x[0], x[2], 0x7632), __nvvm_prmt(x[1], x[3], 0x5410),
                  __nvvm_prmt(x[1], x[3], 0x7632)};
  store_pack(m.rows + (block * groups + group) * 512 + item_id() % 32 * 16, ordered);
  return ordered;
}

// Puts the mean of a block of a row times MEANS_TIMES, as the sum of two halves, beside those of the slot's other blocks: high ones and
// low ones as lanes take them for mma.sync. Tells whether it is finite so.
DEVICE bool put_mean(const RowsMemory &m, f32 sum, u32 block, u32 row, u32 groups) {
  u32 in_slot = block % BLOCKS_OF_SLOT;
  f32 mean = sum * (MEANS_TIMES / ROWS_BLOCK);
  u32 high = bits<u16>((f16)mean), low = bits<u16>((f16)(mean - widen_one(f16{}, high, false)));
  u32 to = m.means + (block / BLOCKS_OF_SLOT * groups + row / 8) * 1024 + (row % 8 * 4 + in_slot % 8 / 2) * 16;
  to += in_slot / 8 * 4 + in_slot % 2 * 2;
  store_half_word(to, high), store_half_word(to + 512, low);
  return __builtin_fabsf(mean) <= 65504;
}

// Eight elements times the scale and the unit of their row.
DEVICE Unit times_unit(Unit x, Unit scale, f32 unit) {
  UNROLL
  for (u32 w = 0; w < 4; w++) {
    f32 low = widen_one(f16{}, scale[w], false) * (EVEN_TIMES * unit), high = widen_one(f16{}, scale[w], true) * unit;
    x[w] = narrow_two(f16{}, widen_one(f16{}, x[w], false) * low, widen_one(f16{}, x[w], true) * high);
  }
  return x;
}

// Brings this workgroup's part of the rows, times the scale of what is normalised and the units of rows, which are ones at first. The
// squares of elements are summed in workgroup memory. Tells whether halves have room for all; who sees a row that they have not makes
// the row's unit smaller there.
template <u32 GROUPS, bool FIRST>
DEVICE bool bring_part(const WeightRowsParams &p, const RowsMemory &m, RowsShare share, const RowsUnits<GROUPS> &units) {
  // Halves: ones, EVEN_TIMES and 1, 1 / EVEN_TIMES.
  constexpr u32 AHEAD = 4, ONES = 0x3c003c00, EVEN = 0x3c004c00, OVER_EVEN = 0x2c002c00;
  u32 item = item_id(), wave = item / 32, lane = item % 32, row = lane / 4, t = lane % 4, blocks = p.part / ROWS_BLOCK;
  bool stores_sum = p.sum && share.first == 0, fit[2] = {true, true};
  f32 squares[GROUPS][4] = {};
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
    f32 sums[GROUPS][4] = {};
    UNROLL
    for (u32 j = 0; j < AHEAD; j++) {
      u32 block = first + j * ROWS_WAVES;
      if (block >= blocks) continue;
      // Lines j and j + AHEAD of the sums are those of this block.
      u32 even = row % AHEAD == j ? OVER_EVEN : 0, odd = row % AHEAD == j ? ONES : 0;
      if (FIRST)
        UNROLL
        for (u32 w = 0; w < 4; w++) by[j][w] = multiply_two(by[j][w], EVEN);
      UNROLL
      for (u32 g = 0; g < GROUPS; g++) {
        Unit y = x[j][g];
        if (p.skip) {
          UNROLL
          for (u32 w = 0; w < 4; w++) y[w] = add_two(f16{}, y[w], added[j][g][w]);
          if (stores_sum && g * 8 + row < p.count) store_unit(p.sum + begin + g * further + block * 64, y);
        }
        UNROLL
        for (u32 w = 0; w < 4; w += 2) multiply_rows(squares[g], y[w], 0, y[w + 1], 0, y[w], y[w + 1]);
        if (FIRST)
          UNROLL
          for (u32 w = 0; w < 4; w++) y[w] = multiply_two(y[w], by[j][w]);
        else y = times_unit(y, by[j], units.brought[g]);
        Unit put = put_eight(m, y, block, g, GROUPS);
        UNROLL
        for (u32 w = 0; w < 4; w += 2) multiply_rows(sums[g], even, 0, odd, 0, put[w], put[w + 1]);
      }
    }
    u32 block = first + row % AHEAD * ROWS_WAVES;
    if (block < blocks && row / AHEAD < GROUPS)
      UNROLL
      for (u32 i = 0; i < 2; i++) {
        f32 sum = row / AHEAD ? sums[GROUPS - 1][i] : sums[0][i];
        fit[i] &= put_mean(m, sum, block, row_of_means<GROUPS>() + i, GROUPS);
      }
  }
  UNROLL
  for (u32 g = 0; g < GROUPS; g++) {
    u32 to = m.squares + (wave * GROUPS * 8 + g * 8 + row) * 4;
    if (p.scale && t == row / 2) store_word(to, bits<u32>(row % 2 ? squares[g][1] : squares[g][0]));
  }
  bool all_fit = true;
  UNROLL
  for (u32 i = 0; i < 2; i++) {
    // What is no number stays so.
    if (fit[i] || units.of_means[i] <= LEAST_UNIT) continue;
    store_word(m.units + (row_of_means<GROUPS>() + i) * 4, bits<u32>(units.of_means[i] * 0x1p-8f)), all_fit = false;
  }
  return all_fit;
}

// Brings this workgroup's part of the rows, and gives the squares to all of its cluster. Elements lie there before the factor of the
// normalisation is known, so that they may be too large for halves: then they come again, of such rows as parts of what they are.
template <u32 GROUPS, u32 CLUSTER> DEVICE void bring_rows(const WeightRowsParams &p, const RowsMemory &m, RowsShare share) {
  u32 item = item_id();
  bool fit = bring_part<GROUPS, true>(p, m, share, RowsUnits<GROUPS>::ones());
#pragma unroll 1
  while (any_worker(!fit)) {
    RowsUnits<GROUPS> units = RowsUnits<GROUPS>::load(m);
    // Before one of them becomes smaller again.
    any_worker(false);
    fit = bring_part<GROUPS, false>(p, m, share, units);
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
      if constexpr (CLUSTER > 1) send_in_cluster(in_cluster(to, r), in_cluster(m.squares_come, r), square);
      else store_word(to, bits<u32>(square));
    }
  }
}

// The factors of the normalisation of a lane's two rows of eight.
template <u32 GROUPS, u32 CLUSTER> DEVICE void find_factors(const WeightRowsParams &p, const RowsMemory &m, u32 group, f32 (&factors)[2]) {
  u32 row = group * 8 + item_id() % 4 * 2;
  if constexpr (CLUSTER > 1) wait_phase(m.squares_come, 0);
  UNROLL
  for (u32 i = 0; i < 2; i++) {
    f32 square = 0;
    UNROLL
    for (u32 r = 0; r < CLUSTER; r++) square += bits<f32>(load_word(m.all_squares + (r * GROUPS * 8 + row + i) * 4));
    factors[i] = one_over_norm(square, p.k, p.epsilon);
  }
}
