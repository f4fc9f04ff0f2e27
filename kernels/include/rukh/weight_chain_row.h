// What a launch of weight_chain.h has in workgroup memory, and the row of a product there.
//
// Access: a work item brings two halves of a block at a time, 32 bytes each.
#pragma once
#include "tma.h"
#include "weight_fixed.h"

// A product of `k` elements, with the sum of `a` and `skip` where there is one, which is stored as `sum`, normalised where there is a
// scale. Of what is gated, a tile has 8 lines from `first` and 8 from `second` on, and half as many results. What one product gives the
// next is exchanged (`ExchangedRows`): `a` of all but the first and `out` of all but the last are offsets there. `CHAIN_KEPT` in place
// of the address of `sum`: the sum stays in workgroup memory; in place of that of `skip`: the sum that lies there.
struct ChainProduct {
  u64 a, skip, sum, scale, out;
  u32 tiles, k, first, second, gated;
  f32 epsilon;
};
static_assert(sizeof(ChainProduct) == 64, "the mirror in providers/hip/weight_only/chain.rs");

constexpr u32 MOST_OF_CHAIN = 4;
constexpr u64 CHAIN_KEPT = 1;

struct ChainParams {
  // Of each product the weight and its scales.
  TensorMap maps[MOST_OF_CHAIN][2];
  ChainProduct products[MOST_OF_CHAIN];
  // Words that are 0 before and after: `ChainWord`; where rows are exchanged.
  u64 words, exchange;
  // `patience`: how long it is waited for all workgroups, in ns.
  u32 count, groups, slots, patience;
  // Whether the launch before may have the same words; the elements of the largest row of which a sum is taken.
  u32 waits_first, kept;
};
static_assert(sizeof(ChainParams) == 1344, "the mirror in providers/hip/weight_only/chain.rs");

// The workgroups that have begun, what was decided, and those that know it.
enum ChainWord { CHAIN_BEGUN, CHAIN_DECIDED, CHAIN_TOLD, CHAIN_WORDS };
static_assert(CHAIN_WORDS == 3, "WORDS_USED in providers/hip/weight_only/chain.rs");
enum ChainDecision : u32 { CHAIN_TOGETHER = 1, CHAIN_ALONE };

// Waves that multiply; lines of a tile, numbers of a slot's lines, sums that wait to be stored.
constexpr u32 CHAIN_WAVES = 8, CHAIN_ITEMS = (CHAIN_WAVES + 2) * 32, CHAIN_WORKERS = CHAIN_WAVES * 32;
constexpr u32 CHAIN_TILE = 16, CHAIN_NUMBERS = 2048, CHAIN_BOARDS = 4;
// Parts of 128 numbers that a wave has of a slot's lines, next to each other.
constexpr u32 CHAIN_PARTS = CHAIN_NUMBERS / 128 / CHAIN_WAVES;
static_assert(CHAIN_PARTS == 2, "a wave has 128 bytes of each line");
// Bytes of 8 lines and of their scales, and of a slot. Numbers of a block.
constexpr u32 CHAIN_LINES = 8 * CHAIN_NUMBERS / 2, CHAIN_BLOCK = 32, CHAIN_SCALES = 8 * CHAIN_NUMBERS / CHAIN_BLOCK * 2;
// Bytes of a set of exchanged rows.
constexpr u32 CHAIN_SET = 128 << 10;
static_assert(CHAIN_SET == 131072, "SET in providers/hip/weight_only/chain_rows.rs");
// Bytes of the number of launches before the sets, and of what lies between the ring and the row.
constexpr u32 CHAIN_TURN = 64, CHAIN_SMALL = 2752;
static_assert(CHAIN_TURN == 64 && CHAIN_SMALL == 2752 && CHAIN_KEPT == 1, "TURN_WORDS, BESIDE, KEPT in providers/hip/weight_only/chain.rs");
constexpr u32 CHAIN_SLOT = 2 * (CHAIN_LINES + CHAIN_SCALES), SLOT_BARRIERS = 16;

// Where things are in workgroup memory: the ring, of whole 1024 bytes; barriers, those of slots once more for a workgroup that begins
// anew alone; what small things there are; the row.
struct ChainMemory {
  u32 ring, full, empty, board_full, board_empty, decided, verdict, turn, factors, squares, boards, kept, row;

  DEVICE ChainMemory of(const ChainParams &p) {
    extern SHARED u8 chain_memory[];
    u32 ring = (shared_address(chain_memory) + 1023) / 1024 * 1024, at = ring + p.slots * CHAIN_SLOT;
    u32 kept = at + CHAIN_SMALL, row = kept + p.kept * 2;
    return {ring, at, at + 256, at + 512, at + 544, at + 576, at + 584, at + 680, at + 592, at + 608, at + 704, kept, row};
  }
};

// Which slot of a ring comes next.
struct RingPlace {
  u32 slot, phase;
  METHOD void next(u32 slots) {
    if (++slot == slots) slot = 0, phase ^= 1;
  }
};

DEVICE u32 load_word(u32 at) {
  u32 x;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
  return x;
}
DEVICE void store_word(u32 at, u32 x) { asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(x) : "memory"); }
DEVICE void store_words(u32 at, u32 x, u32 y) {
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(at), "r"(x), "r"(y) : "memory");
}
DEVICE void store_pack(u32 at, Unit x) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]) : "memory");
}
// The same where `inside`; `to` stays where not.
DEVICE void load_pack_if(Unit &to, u32 at, u32 inside) {
  u32 x = to[0], y = to[1], z = to[2], w = to[3];
  asm volatile("{ .reg .pred %%p; setp.ne.u32 %%p, %5, 0; @%%p ld.shared.v4.u32 {%0, %1, %2, %3}, [%4]; }"
               : "+r"(x), "+r"(y), "+r"(z), "+r"(w)
               : "r"(at), "r"(inside));
  to = Unit{x, y, z, w};
}
DEVICE f32 load_half(u32 at) {
  u16 x;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(x) : "r"(at));
  return widen_one(f16{}, x, false);
}
DEVICE u64 load_two_words(u32 at) {
  u64 x;
  asm volatile("ld.shared.b64 %0, [%1];" : "=l"(x) : "r"(at));
  return x;
}
DEVICE void workers_barrier() { barrier_of(1, CHAIN_WORKERS); }

// Puts 16 elements, half of a block, into the row: for each pair of dwords of a lane's numbers the bytes that belong to a dword's
// even ones, and those for its odd ones. A group of four blocks has 256 bytes: the first halves of all, then the second ones. Behind the
// row each block has a scale, and 8 times the sum of its integers, as numbers of 4 bits are 8 more than what they stand for.
DEVICE void put_elements(const f32 (&y)[16], u32 half, u32 row, u32 records) {
  f32 most = 0;
  UNROLL
  for (u32 v = 0; v < 16; v++) most = larger_size(most, y[v]);
  most = larger_size(most, lane_xor(most, 1));
  // A little more, so that an upper byte stays below 128 when a lower one is negative.
  u32 exponent = bits<u32>(most * (1 + 0x1p-7f)) >> 23, least = 15;
  bool is_finite = exponent < 255;
  exponent = exponent > least ? exponent : least;
  f32 by = bits<f32>((268 - exponent) << 23), scale = is_finite ? bits<f32>((exponent - 14) << 23) : most;
  // Integers are the lower bits of what is added to 1.5 · 2^23.
  u32 x[16], sum = 0;
  UNROLL
  for (u32 v = 0; v < 16; v++) x[v] = bits<u32>(fma_(y[v], by, 12582912.0f)), sum += x[v];
  sum -= 16 * 0x4b400000u;
  sum += lane_xor(sum, 1);
  Unit low, high;
  UNROLL
  for (u32 w = 0; w < 4; w++) {
    u32 at = w / 2 * 8 + w % 2;
    u32 a = x[at], b = x[at + 2], c = x[at + 4], d = x[at + 6];
    low[w] = __nvvm_prmt(__nvvm_prmt(a, b, 0x0040), __nvvm_prmt(c, d, 0x0040), 0x5410);
    high[w] = __nvvm_prmt(__nvvm_prmt(a + 128, b + 128, 0x0051), __nvvm_prmt(c + 128, d + 128, 0x0051), 0x5410);
  }
  u32 block = half / 2, to = row + block / 4 * 256 + half % 2 * 128 + block % 4 * 32;
  store_pack(to, low), store_pack(to + 16, high);
  if (half % 2 == 0) store_words(records + block * 8, bits<u32>(scale), sum * 8);
}

// Rows that workgroups give each other. A word has two results, with all bits the other way round, and is 0 until they are there: no two
// results of f16 have all bits 1, as what is no number has one form. So who reads a row needs no other word to know that it is whole,
// and no order of memory accesses. Launches take turns with two sets; each clears the other one.
struct ExchangedRows {
  u64 own, other;

  DEVICE ExchangedRows of(const ChainParams &p, u32 turn) {
    u64 sets = p.exchange + CHAIN_TURN, odd = turn % 2;
    return {sets + odd * CHAIN_SET, sets + (odd ^ 1) * CHAIN_SET};
  }
  // By a wave of each of `groups` workgroups.
  METHOD void clear_other(u32 group, u32 groups, u32 lane) const {
#pragma unroll 1
    for (u32 at = (group * 32 + lane) * 16; at < CHAIN_SET; at += groups * 512) store_unit(other + at, Unit{});
  }
  METHOD void store(u32 at, u32 two_results) const {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(own + at), "r"(~two_results) : "memory");
  }
  // Eight results, as they are stored.
  DEVICE bool are_there(Unit x) { return x[0] && x[1] && x[2] && x[3]; }
};

// Half of a block: of row `a`, of what is added to it, and the factors.
struct HalfOfBlock {
  Unit x[2], added[2], by[2];
};

// Brings the row of a product. Gives the factor of its normalisation.
DEVICE f32 bring_row(const ChainProduct &product, const ChainMemory &m, u64 exchanged, u32 records, bool stores_sum) {
  u32 item = item_id(), halves = product.k / 16;
  u64 skip = product.skip, scale = product.scale, sum = product.sum, a = exchanged + product.a;
  f32 square = 0;
#pragma unroll 1
  for (u32 first = item; first < halves; first += 2 * CHAIN_WORKERS) {
    HalfOfBlock of[2];
    bool has_two = first + CHAIN_WORKERS < halves;
    u64 at[2] = {(u64)first * 32, (u64)(first + CHAIN_WORKERS) * 32};
    UNROLL
    for (u32 j = 0; j < 2; j++) {
      if (j && !has_two) break;
      UNROLL
      for (u32 u = 0; u < 2; u++) {
        if (skip == CHAIN_KEPT) of[j].added[u] = load_pack(m.kept + (u32)at[j] + u * 16);
        else if (skip) of[j].added[u] = load_settled_unit(skip + at[j] + u * 16);
        if (scale) of[j].by[u] = load_unit(scale + at[j] + u * 16);
      }
    }
    // One lane looks first: where all ask again and again, stores wait (0.7 to 1.1 µs a layer).
    if (exchanged) {
      if (item % 32 == 0)
        while (!load_uncached((const u32 *)(a + at[0]))) {}
      wave_barrier();
    }
    bool whole;
    do {
      UNROLL
      for (u32 u = 0; u < 2; u++) {
        of[0].x[u] = load_settled_unit(a + at[0] + u * 16);
        if (has_two) of[1].x[u] = load_settled_unit(a + at[1] + u * 16);
      }
      whole = true;
      UNROLL
      for (u32 u = 0; u < 2; u++)
        whole &= ExchangedRows::are_there(of[0].x[u]) && (!has_two || ExchangedRows::are_there(of[1].x[u]));
    } while (exchanged && !whole);
    UNROLL
    for (u32 j = 0; j < 2; j++) {
      if (j && !has_two) break;
      u32 half = first + j * CHAIN_WORKERS;
      f32 y[16];
      UNROLL
      for (u32 u = 0; u < 2; u++) {
        Unit x = exchanged ? ~of[j].x[u] : of[j].x[u];
        if (skip) {
          UNROLL
          for (u32 w = 0; w < 4; w++) x[w] = add_two(f16{}, x[w], of[j].added[u][w]);
          if (sum) store_pack(m.kept + half * 32 + u * 16, x);
        }
        UNROLL
        for (u32 v = 0; v < 8; v++) y[u * 8 + v] = widen_one(f16{}, x[v / 2], v % 2);
        if (scale) {
          UNROLL
          for (u32 v = 0; v < 8; v++) {
            f32 own = y[u * 8 + v];
            square = fma_(own, own, square), y[u * 8 + v] = own * widen_one(f16{}, of[j].by[u][v / 2], v % 2);
          }
        }
      }
      put_elements(y, half, m.row, records);
    }
  }
  if (scale) {
    square = sum_over_wave<1>(&square);
    if (item % WAVE == 0) store_word(m.squares + item / WAVE * 4, bits<u32>(square));
  }
  workers_barrier();
  // Now all have read what products before this one take, whose memory the sum may have.
  if (skip && stores_sum && sum > CHAIN_KEPT) {
#pragma unroll 1
    for (u32 half = item; half < halves; half += CHAIN_WORKERS)
      UNROLL
      for (u32 u = 0; u < 2; u++) store_unit(sum + (u64)half * 32 + u * 16, load_pack(m.kept + half * 32 + u * 16));
  }
  if (!scale) return 1;
  square = 0;
  UNROLL
  for (u32 w = 0; w < CHAIN_WAVES; w++) square += bits<f32>(load_word(m.squares + w * 4));
  return one_over_norm(square, product.k, product.epsilon);
}
