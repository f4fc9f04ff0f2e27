// Products of one row of f16 with packed weights of 4 bits, one after the other in one launch: what lies between two attentions
// of a language model's decoder. Each product's row comes of the result of the one before.
//
// At most one workgroup stays on each processor. One of its waves brings weights through a ring in workgroup memory, in the order in
// which they are multiplied, also while the others wait for the launch before or for other workgroups. A slot of the ring has 16
// lines of 2048 numbers with their scales. Eight waves multiply, each an eighth of the depth of a slot; another one adds their
// sums, and stores results. Each workgroup brings the whole row of the next product, whose elements tell whether they are there.
//
// `mma.sync` multiplies bytes. The row has integers of 16 bits (as in weight_fixed.h), whose lower and upper bytes are two of its
// eight columns. Four lanes share a line, and each has a block of 32 numbers of its own. So that its sums stay apart, the columns
// 2t and 2t + 1 have elements only where the numbers of lane t are; the others are 0.
//
// Workgroups wait for each other, so all of them must be there. If some do not begin in time, because other launches have the
// processors, those that began leave, and the last one to begin does all the work.
//
// Access: boxes of 8 lines of 1024 bytes, whose packs of 16 bytes are permuted within 128 bytes (wgmma.h). Bound: the bytes of all
// weights over the memory's bandwidth, and some 3 µs for each product where the ring is full before they have passed.
#pragma once
#include "weight_chain_row.h"

// Which tiles a workgroup has, and which barriers of slots.
struct ChainShare {
  u32 group, groups, barriers, turn;
  bool leaves;

  METHOD bool has(const ChainProduct &product) const { return group < product.tiles; }
};

DEVICE u64 time_ns() {
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}
DEVICE void decide_if_nobody_has(u32 *word, u32 decision) {
  u32 before;
  asm volatile("atom.relaxed.gpu.global.cas.b32 %0, [%1], 0, %2;" : "=r"(before) : "l"(word), "r"(decision) : "memory");
}

// Whether this workgroup's share is that of one of many. Called by one work item, which waits for the launch before, too.
DEVICE void decide(const ChainParams &p, const ChainMemory &m) {
  u32 *words = (u32 *)p.words;
  if (p.waits_first) wait_for_kernels_before();
  bool is_last = add_on_device(words + CHAIN_BEGUN, 1) + 1 == p.groups;
  if (is_last) decide_if_nobody_has(words + CHAIN_DECIDED, CHAIN_TOGETHER);
  wait_for_kernels_before();
  store_word(m.turn, load_uncached((const u32 *)p.exchange));
  u64 begin = time_ns();
  u32 decision;
  while (!(decision = load_uncached(words + CHAIN_DECIDED)))
    if (time_ns() - begin >= p.patience) decide_if_nobody_has(words + CHAIN_DECIDED, CHAIN_ALONE);
  store_words(m.verdict, decision, is_last);
  arrive(m.decided);
}

// What was decided; for all work items.
DEVICE ChainShare share_of(const ChainParams &p, const ChainMemory &m) {
  wait_phase(m.decided, 0);
  u64 verdict = load_two_words(m.verdict);
  u32 turn = load_word(m.turn);
  if ((u32)verdict == CHAIN_TOGETHER) return {group_id(), p.groups, 0, turn, false};
  return {0, 1, 1, turn, !(u32)(verdict >> 32)};
}

// Brings the weights of a workgroup's tiles. `first`: only those that have room in the ring from the beginning; tells how many.
DEVICE u32 bring_weights(const ChainParams &p, u64 params, const ChainMemory &m, ChainShare share, bool first) {
  RingPlace place = {0, 0};
  u32 count = 0, full = m.full + share.barriers * SLOT_BARRIERS * 8, empty = m.empty + share.barriers * SLOT_BARRIERS * 8;
  u64 policy = line_policy(true);
#pragma unroll 1
  for (u32 i = 0; i < p.count; i++) {
    const ChainProduct &product = p.products[i];
    u32 tiles = product.tiles, end = product.k, step = product.gated ? 8 : CHAIN_TILE, one = product.first, other = product.second;
    u64 weight = params + i * 2 * sizeof(TensorMap), scales = weight + sizeof(TensorMap);
#pragma unroll 1
    for (u32 tile = share.group; tile < tiles; tile += share.groups) {
#pragma unroll 1
      for (u32 k = 0; k < end; k += CHAIN_NUMBERS, count++) {
        if (first && count == p.slots) return count;
        bool has_come = !first && !share.barriers && count < p.slots;
        u32 to = m.ring + place.slot * CHAIN_SLOT, barrier = full + place.slot * 8, line = tile * step;
        if (!has_come) {
          wait_phase(empty + place.slot * 8, place.phase ^ 1);
          arrive_expecting(barrier, CHAIN_SLOT);
          copy_box_by_policy(to, weight, barrier, 0, line + one, k / 256, policy);
          copy_box_by_policy(to + CHAIN_LINES, weight, barrier, 0, line + other, k / 256, policy);
          copy_box_by_policy(to + 2 * CHAIN_LINES, scales, barrier, k / CHAIN_BLOCK, line + one, 0, policy);
          copy_box_by_policy(to + 2 * CHAIN_LINES + CHAIN_SCALES, scales, barrier, k / CHAIN_BLOCK, line + other, 0, policy);
        }
        place.next(p.slots);
      }
    }
  }
  return count;
}

// Adds the sums of tiles, and stores what becomes of them.
DEVICE void store_results(const ChainParams &p, const ChainMemory &m, ChainShare share, u32 lane) {
  RingPlace place = {0, 0};
  ExchangedRows rows = ExchangedRows::of(p, share.turn);
  rows.clear_other(share.group, share.groups, lane);
#pragma unroll 1
  for (u32 i = 0; i < p.count; i++) {
    const ChainProduct &product = p.products[i];
    u32 tiles = product.tiles, gated = product.gated, count = gated ? CHAIN_TILE / 2 : CHAIN_TILE;
    bool is_last = i + 1 == p.count;
    u64 out = product.out;
#pragma unroll 1
    for (u32 tile = share.group; tile < tiles; tile += share.groups) {
      wait_phase(m.board_full + place.slot * 8, place.phase);
      u32 board = m.boards + place.slot * CHAIN_WAVES * CHAIN_TILE * 4 + lane % CHAIN_TILE * 4;
      f32 sum = 0, factor = bits<f32>(load_word(m.factors + i * 4)), parts[CHAIN_WAVES];
      UNROLL
      for (u32 w = 0; w < CHAIN_WAVES; w++) parts[w] = bits<f32>(load_word(board + w * CHAIN_TILE * 4));
      UNROLL
      for (u32 w = 0; w < CHAIN_WAVES; w++) sum += parts[w];
      wave_barrier();
      if (lane == 0) arrive(m.board_empty + place.slot * 8);
      place.next(CHAIN_BOARDS);
      sum *= factor;
      if (gated) {
        f32 up = lane_xor(sum, 8);
        sum *= sigmoid_inline(sum) * up;
      }
      if (is_last) {
        if (lane < count) store_one<f16>(out, tile * count + lane, sum);
        continue;
      }
      u32 two = narrow_two(f16{}, sum, lane_xor(sum, 1));
      if (lane < count && lane % 2 == 0) rows.store((u32)out + (tile * count + lane) * 2, two);
    }
  }
}

// 16 lines of 32 numbers without sign times 32 rows of 8 columns with one.
DEVICE void multiply_bytes(i32 (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
// Where a lane stands in mma.sync: its line (of 8, permuted so that lanes which read at the same time meet other banks), which of the
// line's four lanes it is, and whether it has elements of the row.
struct ChainLane {
  u32 wave, line, lane, has_row, row;

  DEVICE ChainLane of(u32 item) {
    u32 g = item % 32 / 4, t = item % 4;
    return {item / 32, g % 2 * 4 + g / 2, t, g / 2 == t, t * 32 + g % 2 * 16};
  }
};

// Adds the products of this wave's parts of a slot; `elements`: of the row for each part a group of four blocks, 0 where a lane has
// none.
DEVICE void multiply_slot(f32 (&sums)[2], const ChainLane &at, u32 slot, u32 k, u32 row, u32 records, Unit (&elements)[CHAIN_PARTS][2]) {
  u32 lines = slot + at.wave * 1024 + at.line * 128;
  u32 scales = slot + 2 * CHAIN_LINES + at.line * 128 + ((at.wave ^ at.line) << 4) + at.lane * 2;
  Unit numbers[CHAIN_PARTS][2];
  f32 own[CHAIN_PARTS][2];
  u64 record[CHAIN_PARTS];
  UNROLL
  for (u32 c = 0; c < CHAIN_PARTS; c++) {
    u32 pack = ((c * 4 + at.lane) ^ at.line) << 4, group = k / 128 + c, from = row + group * 256 + at.row;
    UNROLL
    for (u32 h = 0; h < 2; h++) {
      numbers[c][h] = load_pack(lines + h * CHAIN_LINES + pack);
      load_pack_if(elements[c][h], from + h * 128, at.has_row);
      own[c][h] = load_half(scales + h * CHAIN_SCALES + c * 8);
    }
    record[c] = load_two_words(records + (group * 4 + at.lane) * 8);
  }
  UNROLL
  for (u32 c = 0; c < CHAIN_PARTS; c++) {
    i32 products[4] = {};
    UNROLL
    for (u32 d = 0; d < 4; d++) {
      u32 x = numbers[c][0][d], y = numbers[c][1][d], mask = 0x0f0f0f0f;
      Unit of_row = elements[c][d / 2];
      multiply_bytes(products, x & mask, y & mask, x >> 4 & mask, y >> 4 & mask, of_row[d % 2 * 2], of_row[d % 2 * 2 + 1]);
    }
    f32 scale = bits<f32>((u32)record[c]);
    i32 middle = (i32)(record[c] >> 32);
    UNROLL
    for (u32 h = 0; h < 2; h++)
      sums[h] = fma_((f32)(products[2 * h] + products[2 * h + 1] * 256 - middle), own[c][h] * scale, sums[h]);
  }
}

// Multiplies the weights of a workgroup's tiles as they come.
DEVICE void multiply_chain(const ChainParams &p, const ChainMemory &m) {
  u32 item = item_id(), lane = item % 32;
  // The first row is the same whatever is decided meanwhile. Who leaves, or has no tile of it, may read what others have written over it,
  // and does not use it.
  wait_for_kernels_before();
  f32 factor = bring_row(p.products[0], m, 0, m.row + p.products[0].k * 2, false);
  ChainShare share = share_of(p, m);
  if (share.leaves) return;
  u32 full = m.full + share.barriers * SLOT_BARRIERS * 8, empty = m.empty + share.barriers * SLOT_BARRIERS * 8;
  ChainLane at = ChainLane::of(item);
  RingPlace place = {0, 0}, board = {0, 0};
  Unit elements[CHAIN_PARTS][2] = {};
  ExchangedRows rows = ExchangedRows::of(p, share.turn);
#pragma unroll 1
  for (u32 i = 0; i < p.count; i++) {
    const ChainProduct &product = p.products[i];
    u32 tiles = product.tiles, end = product.k, records = m.row + end * 2;
    if (!share.has(product)) continue;
    if (i) {
      // All have multiplied with the row before.
      workers_barrier();
      factor = bring_row(product, m, rows.own, records, share.group == 0);
    }
    if (item == 0) store_word(m.factors + i * 4, bits<u32>(factor));
#pragma unroll 1
    for (u32 tile = share.group; tile < tiles; tile += share.groups) {
      f32 sums[2] = {};
#pragma unroll 1
      for (u32 first = 0; first < end; first += CHAIN_NUMBERS) {
        u32 k = first + at.wave * CHAIN_PARTS * 128;
        wait_phase(full + place.slot * 8, place.phase);
        if (k < end) multiply_slot(sums, at, m.ring + place.slot * CHAIN_SLOT, k, m.row, records, elements);
        wave_barrier();
        if (lane == 0) arrive(empty + place.slot * 8);
        place.next(p.slots);
      }
      UNROLL
      for (u32 h = 0; h < 2; h++)
        UNROLL
        for (u32 mask = 1; mask < 4; mask *= 2) sums[h] += lane_xor(sums[h], mask);
      wait_phase(m.board_empty + board.slot * 8, board.phase ^ 1);
      u32 to = m.boards + ((board.slot * CHAIN_WAVES + at.wave) * CHAIN_TILE + at.line) * 4;
      if (at.lane == 0) store_word(to, bits<u32>(sums[0])), store_word(to + 32, bits<u32>(sums[1]));
      wave_barrier();
      if (lane == 0) arrive(m.board_full + board.slot * 8);
      board.next(CHAIN_BOARDS);
    }
  }
}

// All products, by one workgroup. `params`: where the parameters are.
DEVICE void weight_chain(const ChainParams &p, u64 params) {
  ChainMemory m = ChainMemory::of(p);
  u32 item = item_id(), wave = item / 32, lane = item % 32;
  if (item == 0) {
    UNROLL
    for (u32 i = 0; i < 2 * SLOT_BARRIERS; i++) phases_begin(m.full + i * 8, 1), phases_begin(m.empty + i * 8, CHAIN_WAVES);
    UNROLL
    for (u32 i = 0; i < CHAIN_BOARDS; i++) phases_begin(m.board_full + i * 8, CHAIN_WAVES), phases_begin(m.board_empty + i * 8, 1);
    phases_begin(m.decided, 1);
    publish_barriers();
  }
  barrier();
  if (wave == CHAIN_WAVES) {
    if (lane) return;
    ChainShare all = {group_id(), p.groups, 0, 0, false};
    u32 count = bring_weights(p, params, m, all, true);
    ChainShare share = share_of(p, m);
    if (share.barriers) {
      // What was brought is not used, but must have come.
#pragma unroll 1
      for (u32 i = 0; i < count; i++) wait_phase(m.full + i * 8, 0);
    }
    if (!share.leaves) bring_weights(p, params, m, share, false);
    // Long before the launch ends: who counts at its end delays what follows.
    u32 *words = (u32 *)p.words;
    if (add_on_device(words + CHAIN_TOLD, 1) + 1 < p.groups) return;
    for (u32 i = 0; i < CHAIN_WORDS; i++) *(volatile u32 *)(words + i) = 0;
    *(volatile u32 *)p.exchange = share.turn + 1;
    return;
  }
  if (wave == CHAIN_WAVES + 1) {
    if (lane == 0) decide(p, m);
    wave_barrier();
    ChainShare share = share_of(p, m);
    if (!share.leaves) store_results(p, m, share, lane);
    return;
  }
  multiply_chain(p, m);
}
