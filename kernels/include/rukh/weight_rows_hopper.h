// Products of few rows of f16 with packed weights of 4 bits in blocks of 32 numbers, whose zero point is 8, on Hopper (sm_90a):
// nearly all of the time takes the memory that brings the weights.
//
// At most one workgroup stays on each processor, and takes tiles of 32 lines until none are left. A cluster of
// workgroups shares tiles: each has a part of K, keeps that part of the rows in workgroup memory, and gives what it has of a tile's
// sums to the one which finishes the tile. One wave brings weights through a ring, eight multiply, each an eighth of the depth of a
// slot, and one for each eight rows multiplies scales with means, adds the sums of waves and stores results.
//
// `mma.sync` has the weights as 16 lines and eight rows as its columns. Numbers of 4 bits are halves as they are: with a shift for
// eight of them and a mask for two they are multiples of 2^-24, or of 2^-20, and the elements that meet the former are 16 times what
// they are. A block's scale multiplies its sums of f32. What its zero point is too much, 8 times the scale times the sum of the block's
// elements, comes of another product: scales as they are times the mean of each block's elements, in two parts.
//
// Access: boxes of 16 lines of 256 bytes, whose packs of 16 bytes are permuted within 128 bytes (wgmma.h). Rows lie as lanes take
// them for mma.sync. Bound: the bytes of the weights over the memory's bandwidth.
#pragma once
#include "weight_rows_bring.h"

// Brings the weights of a workgroup's tiles.
DEVICE void bring_weight_tiles(const WeightRowsParams &p, u64 maps, const RowsMemory &m, RowsShare share) {
  RingPlace place = {0, 0};
  u64 policy = line_policy(true), scales = maps + sizeof(TensorMap);
  if (p.waits_first) wait_for_kernels_before();
#pragma unroll 1
  for (u32 tile = share.first; tile < p.tiles; tile += share.stride) {
#pragma unroll 1
    for (u32 k = 0; k < p.part; k += ROWS_NUMBERS) {
      u32 to = m.ring + place.slot * ROWS_SLOT, barrier = m.full + place.slot * 8, at = share.from + k;
      u32 count = p.part - k < ROWS_NUMBERS ? 1 : 2;
      wait_phase(m.empty + place.slot * 8, place.phase ^ 1);
      arrive_expecting(barrier, 2 * (count * ROWS_BOX + ROWS_SCALES));
      UNROLL
      for (u32 h = 0; h < 2; h++) {
        u32 line = tile * p.step + (h ? p.second : p.origin), lines = to + h * 2 * ROWS_BOX;
#pragma unroll 1
        for (u32 b = 0; b < count; b++) copy_box_by_policy(lines + b * ROWS_BOX, maps, barrier, 0, line, at / 256 + b * 2, policy);
        copy_box_by_policy(to + 4 * ROWS_BOX + h * ROWS_SCALES, scales, barrier, at / ROWS_BLOCK, line, 0, policy);
      }
      place.next(p.slots);
    }
  }
}

// The sums of a wave, of numbers as halves times the scale, for both 16 lines and each eight rows.
template <u32 GROUPS> using RowsSums = f32[2][GROUPS][4];

// A wave's four blocks of a slot of 32 lines, which is free again as soon as they are in registers.
struct RowsBlocks {
  u32 numbers[2][BLOCKS_OF_WAVE][2];
  u32 scales[2][2][2];

  DEVICE RowsBlocks load(const u32 (&places)[BLOCKS_OF_WAVE], u32 slot, u32 scales_at) {
    RowsBlocks x;
    UNROLL
    for (u32 h = 0; h < 2; h++) {
      UNROLL
      for (u32 e = 0; e < 2; e++) {
        UNROLL
        for (u32 b = 0; b < BLOCKS_OF_WAVE; b++) x.numbers[h][b][e] = load_word(slot + places[b] + h * 2 * ROWS_BOX + e * 1024);
        u32 from = slot + scales_at + h * ROWS_SCALES + e * 8 * ROWS_SCALE_LINE;
        u64 two = load_two_words(from);
        x.scales[h][e][0] = (u32)two, x.scales[h][e][1] = (u32)(two >> 32);
      }
    }
    return x;
  }

  // `elements`: where those of the rows lie.
  template <u32 GROUPS> METHOD void use(RowsSums<GROUPS> &sums, u32 elements) const {
    constexpr u32 EVEN = 0x000f000f, ODD = 0x00f000f0;
    UNROLL
    for (u32 b = 0; b < BLOCKS_OF_WAVE; b++) {
      Unit row[GROUPS];
      UNROLL
      for (u32 g = 0; g < GROUPS; g++) row[g] = load_pack(elements + (b * GROUPS + g) * 512);

      UNROLL
      for (u32 h = 0; h < 2; h++) {
        u32 x = numbers[h][b][0], y = numbers[h][b][1];
        f32 scale[2];
        UNROLL
        for (u32 e = 0; e < 2; e++) scale[e] = widen_one(f16{}, scales[h][e][b / 2], b % 2);
        u32 further_x = x >> 8, further_y = y >> 8;
        UNROLL
        for (u32 g = 0; g < GROUPS; g++) {
          f32 d[4] = {};
          multiply_rows(d, x & EVEN, y & EVEN, x & ODD, y & ODD, row[g][0], row[g][1]);
          multiply_rows(d, further_x & EVEN, further_y & EVEN, further_x & ODD, further_y & ODD, row[g][2], row[g][3]);
          UNROLL
          for (u32 i = 0; i < 4; i++) sums[h][g][i] = fma_(d[i], scale[i / 2], sums[h][g][i]);
        }
      }
    }
  }
};

// Multiplies the weights of a workgroup's tiles as they come.
template <u32 GROUPS> DEVICE void multiply_tiles(const WeightRowsParams &p, const RowsMemory &m, RowsShare share) {
  u32 item = item_id(), wave = item / 32, lane = item % 32, line = lane / 4, t = lane % 4;
  u32 places[BLOCKS_OF_WAVE], scales_at = 4 * ROWS_BOX + line * ROWS_SCALE_LINE + wave * BLOCKS_OF_WAVE * 2;
  UNROLL
  for (u32 b = 0; b < BLOCKS_OF_WAVE; b++) {
    u32 block = wave * BLOCKS_OF_WAVE + b;
    places[b] = block / 8 * 2048 + line * 128 + ((block % 8 ^ line) << 4) + t * 4;
  }
  RingPlace place = {0, 0};
  u32 phase = 0;
#pragma unroll 1
  for (u32 tile = share.first; tile < p.tiles; tile += share.stride) {
    RowsSums<GROUPS> sums = {};
    u32 elements = m.rows + wave * BLOCKS_OF_WAVE * GROUPS * 512 + lane * 16;
#pragma unroll 1
    for (u32 k = wave * BLOCKS_OF_WAVE * ROWS_BLOCK; k < p.padded; k += ROWS_NUMBERS) {
      wait_phase(m.full + place.slot * 8, place.phase);
      bool inside = k < p.part;
      RowsBlocks blocks;
      if (inside) blocks = RowsBlocks::load(places, m.ring + place.slot * ROWS_SLOT, scales_at);
      wave_barrier();
      if (lane == 0) arrive(m.empty + place.slot * 8);
      if (inside) blocks.use<GROUPS>(sums, elements);
      elements += BLOCKS_OF_SLOT * GROUPS * 512;
      place.next(p.slots);
    }
    wait_phase(m.board_empty, phase ^ 1);
    phase ^= 1;
    u32 to = m.board + wave * 2 * GROUPS * 512 + lane * 16;
    UNROLL
    for (u32 h = 0; h < 2; h++)
      UNROLL
      for (u32 g = 0; g < GROUPS; g++) store_four(to + (h * GROUPS + g) * 512, sums[h][g]);
    wave_barrier();
    if (lane == 0) arrive(m.board_full);
  }
}

// Multiplies the scales of a tile with the means of eight rows as they come. `means`: those of a lane.
DEVICE void multiply_means(const WeightRowsParams &p, const RowsMemory &m, RingPlace &place, u32 means, u32 further, f32 (&sums)[2][4]) {
  u32 lane = item_id() % 32, scales_at = 4 * ROWS_BOX + lane % 16 * ROWS_SCALE_LINE + lane / 16 * 16;
#pragma unroll 1
  for (u32 k = 0; k < p.part; k += ROWS_NUMBERS, means += further) {
    Unit high = load_pack(means), low = load_pack(means + 512);
    wait_phase(m.full + place.slot * 8, place.phase);
    UNROLL
    for (u32 b = 0; b < 2; b++) {
      if (k + b * (ROWS_NUMBERS / 2) >= p.part) break;
      UNROLL
      for (u32 h = 0; h < 2; h++) {
        Chunk x = load_blocks(m.ring + place.slot * ROWS_SLOT + scales_at + h * ROWS_SCALES + b * 32);
        multiply_rows(sums[h], x.word[0], x.word[1], x.word[2], x.word[3], high[b * 2], high[b * 2 + 1]);
        multiply_rows(sums[h], x.word[0], x.word[1], x.word[2], x.word[3], low[b * 2], low[b * 2 + 1]);
      }
    }
    wave_barrier();
    if (lane == 0) arrive(m.empty + place.slot * 8);
    place.next(p.slots);
  }
}

// What becomes of the sums of a tile for eight rows, of which a lane has two for two lines of each 16.
DEVICE void finish_tile(const WeightRowsParams &p, u32 tile, u32 group, const f32 (&factors)[2], f32 (&x)[2][4]) {
  u32 lane = item_id() % 32, row = group * 8 + lane / 4, pair = lane % 4 * 2, columns = p.gated ? p.n / 2 : p.n;
  UNROLL
  for (u32 h = 0; h < 2; h++)
    UNROLL
    for (u32 i = 0; i < 4; i++) x[h][i] *= factors[i % 2];
  if (p.gated)
    UNROLL
    for (u32 i = 0; i < 4; i++) x[0][i] *= sigmoid_inline(x[0][i]) * x[1][i];
  UNROLL
  for (u32 h = 0; h < 2; h++) {
    if (h && p.gated) break;
    UNROLL
    for (u32 e = 0; e < 2; e++) {
      u32 two = transposed_block(narrow_two(f16{}, x[h][e * 2], x[h][e * 2 + 1]));
      u32 column = tile * p.step + h * 16 + e * 8 + pair;
      if (row < p.count) *(GLOBAL u32 *)(p.out + ((u64)row * columns + column) * 2) = two;
    }
  }
}

// Where what a cluster gives to a workgroup comes.
template <u32 GROUPS, u32 CLUSTER> struct RowsExchange {
  // Bytes of a tile's sums, and with their barrier.
  static constexpr u32 SUMS = CLUSTER * 2 * GROUPS * 512, ROOM = SUMS + 16;

  // The begin of the room of tile `own` of those that a workgroup finishes.
  DEVICE u32 room(const RowsMemory &m, u32 own) { return m.partial + own * ROOM; }
  // Where a lane's sums for eight rows come from a workgroup of the cluster.
  DEVICE u32 place(u32 room, u32 rank, u32 group) { return room + 16 + (rank * 2 * GROUPS + group) * 512 + item_id() % 32 * 16; }

  // Run by one work item.
  DEVICE void begin(const WeightRowsParams &p, const RowsMemory &m, RowsShare share) {
    u32 own = 0;
#pragma unroll 1
    for (u32 tile = share.first + share.rank * share.stride; tile < p.tiles; tile += CLUSTER * share.stride, own++) {
      phases_begin(room(m, own), 1);
      arrive_expecting(room(m, own), SUMS);
    }
    phases_begin(m.squares_come, 1);
    arrive_expecting(m.squares_come, CLUSTER * GROUPS * 32);
  }

  // Sends sums of the `count`-th tile to the workgroup that finishes it.
  DEVICE void send(const RowsMemory &m, RowsShare share, u32 group, u32 count, const f32 (&all)[2][4]) {
    u32 there = in_cluster(room(m, count / CLUSTER), count % CLUSTER), to = place(there, share.rank, group);
    UNROLL
    for (u32 h = 0; h < 2; h++) send_in_cluster(to + h * GROUPS * 512, there, all[h]);
  }
  // The cluster's sums of tile `own`.
  DEVICE void receive(const RowsMemory &m, u32 group, u32 own, f32 (&all)[2][4]) {
    wait_phase(room(m, own), 0);
    UNROLL
    for (u32 r = 0; r < CLUSTER; r++)
      UNROLL
      for (u32 h = 0; h < 2; h++) {
        Unit x = load_pack(place(room(m, own), r, group) + h * GROUPS * 512);
        UNROLL
        for (u32 i = 0; i < 4; i++) all[h][i] += bits<f32>(x[i]);
      }
  }
};

// Adds the sums of waves, and of a cluster's workgroups, of eight rows of tiles. What the cluster gives for a tile has come when
// that of the next one is sent.
template <u32 GROUPS, u32 CLUSTER> DEVICE void finish_tiles(const WeightRowsParams &p, const RowsMemory &m, RowsShare share, u32 group) {
  typedef RowsExchange<GROUPS, CLUSTER> Exchange;
  u32 lane = item_id() % 32, phase = 0, own = 0, own_tile = CLUSTER > 1 ? share.first + share.rank * share.stride : p.tiles;
  wait_for_kernels_before();
  f32 factors[2] = {1, 1}, by[2] = {1, 1};
  if constexpr (CLUSTER > 1) cluster_wait();
  wait_for_rows<GROUPS>();
  RingPlace place = {0, 0};
  UNROLL
  for (u32 i = 0; i < 2; i++) by[i] = 1 / bits<f32>(load_word(m.units + (group * 8 + lane % 4 * 2 + i) * 4));
#pragma unroll 1
  for (u32 tile = share.first, count = 0; tile < p.tiles || own_tile < p.tiles; tile += share.stride) {
    if (tile < p.tiles) {
      f32 means[2][4] = {};
      multiply_means(p, m, place, m.means + group * 1024 + lane * 16, GROUPS * 1024, means);
      wait_phase(m.board_full, phase);
      phase ^= 1;
      f32 all[2][4] = {};
      u32 from = m.board + group * 512 + lane * 16;
      UNROLL
      for (u32 h = 0; h < 2; h++)
        UNROLL
        for (u32 w = 0; w < ROWS_WAVES; w++) {
          Unit x = load_pack(from + (w * 2 + h) * GROUPS * 512);
          UNROLL
          for (u32 i = 0; i < 4; i++) all[h][i] += bits<f32>(x[i]);
        }
      wave_barrier();
      if (lane == 0) arrive(m.board_empty);
      UNROLL
      for (u32 i = 0; i < 8; i++)
        all[i / 4][i % 4] = fma_(all[i / 4][i % 4], 0x1p20f, -256 / MEANS_TIMES * means[i / 4][i % 4]) * by[i % 2];
      if constexpr (CLUSTER == 1) {
        // The first sums come after the squares.
        if (p.scale && count == 0) find_factors<GROUPS, CLUSTER>(p, m, group, factors);
        finish_tile(p, tile, group, factors, all);
      } else {
        Exchange::send(m, share, group, count, all);
      }
      count++;
    }
    if (CLUSTER > 1 && own_tile < p.tiles && (tile >= p.tiles || count >= (own + 2) * CLUSTER)) {
      if (p.scale && own == 0) find_factors<GROUPS, CLUSTER>(p, m, group, factors);
      f32 all[2][4] = {};
      Exchange::receive(m, group, own, all);
      finish_tile(p, own_tile, group, factors, all);
      own++, own_tile += CLUSTER * share.stride;
    }
  }
  // Squares may still come to a workgroup that finishes none.
  if constexpr (CLUSTER > 1)
    if (p.scale) wait_phase(m.squares_come, 0);
}

// GROUPS: of eight rows. CLUSTER: workgroups of a cluster. Grid: clusters by their workgroups. `maps`: where the tensor maps are.
template <u32 GROUPS, u32 CLUSTER> DEVICE void weight_rows(const WeightRowsParams &p, u64 maps) {
  RowsMemory m = RowsMemory::of<GROUPS, CLUSTER>(p);
  RowsShare share = RowsShare::of<CLUSTER>(p);
  u32 item = item_id(), wave = item / 32, lane = item % 32;
  if (item == 0) {
#pragma unroll 1
    for (u32 i = 0; i < p.slots; i++) phases_begin(m.full + i * 8, 1), phases_begin(m.empty + i * 8, ROWS_WAVES + GROUPS);
    phases_begin(m.board_full, ROWS_WAVES), phases_begin(m.board_empty, GROUPS);
    if constexpr (CLUSTER > 1) RowsExchange<GROUPS, CLUSTER>::begin(p, m, share);
    publish_barriers();
  }
  if (item < GROUPS * 8) store_word(m.units + item * 4, bits<u32>(1.0f));
  barrier();
  if constexpr (CLUSTER > 1) cluster_arrive_begun();
  if (wave < ROWS_WAVES) {
    wait_for_kernels_before();
    bring_rows<GROUPS, CLUSTER>(p, m, share);
    multiply_tiles<GROUPS>(p, m, share);
  } else if (wave == ROWS_WAVES) {
    if (lane == 0) bring_weight_tiles(p, maps, m, share);
  } else {
    finish_tiles<GROUPS, CLUSTER>(p, m, share, wave - ROWS_WAVES - 1);
  }
}
