// Attention of few queries along many keys by mma.sync (flash_decode_mma.h) whose keys and values come through rings in workgroup
// memory (sm_90): one cluster takes all keys of a head, so that no sums go through device memory. Where caches may be read early, up to
// RING_BYTES for each workgroup are on their way before the queries are there. Each wave has a ring of its own, of steps of KEYS keys, and
// waits for no other wave.
//
// Access: boxes of KEYS rows of 128 bytes by the copy engine, whose packs of 16 bytes are permuted within lines (wgmma.h). RING_BYTES of a
// processor are on their way at a time. Bound: the bytes of the keys and values that are seen.
#pragma once
#include "flash_decode_mma.h"

struct RingDecodeParams {
  DecodeParams decode;
  u32 unused[12];
  // Of keys and values: columns, rows, heads, samples.
  TensorMap maps[2];
};
static_assert(sizeof(RingDecodeParams) == 768, "the mirror in providers/hip/attention/decode_mma.rs");

// Work items; bytes of the rings of all waves, which the host gives, and 1024 more.
constexpr u32 RING_ITEMS = 256, RING_BYTES = 192 << 10;
static_assert(RING_ITEMS == 256 && RING_BYTES == 196608, "ITEMS and RING in providers/hip/attention/decode_mma.rs");
// Keys of a part are a multiple of this.
constexpr u32 LEAST_OF_PART = 128;
static_assert(LEAST_OF_PART == 128, "LEAST_OF_PART in providers/hip/attention/decode_mma.rs");

// Along fewer keys the next launch may start at once, and bring its weights wherever no ring has the memory: on an H200 a step of Llama 1B
// takes 0.013 ms less after 512 tokens, and 0.009 after 1700. Along more keys that delays them (0.01 ms a step after 8192 tokens), and in
// any case those of heads of 128 numbers.
constexpr u32 FEW_KEYS = 1792;

// `maps`: where the tensor maps are. KEYS: of a wave's step. CLUSTER: workgroups of a cluster, which are all parts of the keys.
template <class T, u32 SIZE, u32 KEYS, u32 CLUSTER> DEVICE void flash_decode_ring(const DecodeParams &p, u64 maps) {
  typedef MmaDecode<T, SIZE, RING_ITEMS> Decode;
  constexpr u32 ROWS = Decode::ROWS, WAVES = Decode::WAVES, PACK = Decode::PACK, PACKS = Decode::PACKS, BLOCK = WAVES * KEYS;
  // Bytes of a box of 64 columns, of a step's keys, and of a step; steps of a ring.
  constexpr u32 BOX = KEYS * 128, OF_KEYS = SIZE / 64 * BOX, STEP = 2 * OF_KEYS, STEPS = RING_BYTES / WAVES / STEP, ROW = SIZE + PACK;
  static_assert(STEPS > 1 && RING_BYTES >= WAVES * ROWS * SIZE * sizeof(f32), "a ring, in which sums have room");
  static_assert(KEYS % 8 == 0 && LEAST_OF_PART % KEYS == 0, "whole boxes");
  extern SHARED Unit decode_ring[];
  alignas(16) SHARED T queries[ROWS * ROW], new_key[SIZE], new_value[SIZE];
  alignas(16) SHARED f32 others[CLUSTER > 1 ? (CLUSTER - 1) * ROWS * SIZE : 1];
  SHARED u64 barriers[WAVES * STEPS], all_come;
  const SoftmaxParams &m = p.flash.softmax;
  u32 wave = item_id() / WAVE, lane = item_id() % WAVE;
  bool next_starts = SIZE <= 64 && p.early && p.last && load_settled<i32>(p.last, group_id_z()) < (i32)FEW_KEYS;
  if (lane == 0) {
    if (CLUSTER > 1 && wave == 0) phases_begin(shared_address(&all_come), 1);
    UNROLL
    for (u32 s = 0; s < STEPS; s++) phases_begin(shared_address(barriers + wave * STEPS + s), 1);
    publish_barriers();
  }
  if constexpr (CLUSTER > 1) cluster_arrive_begun();
  if (next_starts) let_next_kernel_start();
  if (!p.early) wait_for_kernels_before();
  auto o = Decode::Part::of(p, {});
  Decode decode = {o, {}, {}, {}, {}};
  u32 begin, end;
  decode.see(begin, end);
  if (!o.take(begin, end, LEAST_OF_PART, CLUSTER)) return;
  u32 own_end = o.own_end, first = o.own + wave * KEYS;

  u32 rings = (shared_address(decode_ring) + 1023) / 1024 * 1024, ring = rings + wave * STEPS * STEP;
  u32 come = shared_address(barriers + wave * STEPS);
  auto fetch = [&](u32 block, u32 step) __attribute__((always_inline)) {
    u32 to = ring + step * STEP, barrier = come + step * 8;
    arrive_expecting(barrier, STEP);
    UNROLL
    for (u32 c = 0; c < SIZE / 64; c++) {
      copy_box(to + c * BOX, maps, barrier, c * 64, block, o.kv_head, o.batch);
      copy_box(to + OF_KEYS + c * BOX, maps + sizeof(TensorMap), barrier, c * 64, block, o.kv_head, o.batch);
    }
  };
  if (lane == 0) {
#pragma unroll 1
    for (u32 s = 0; s < STEPS && first + s * BLOCK < own_end; s++) fetch(first + s * BLOCK, s);
  }
  wave_barrier();
  if (p.early) wait_for_kernels_before();
  o.bring_rows(new_key, new_value, [&](u32 r, u32 i, f32 x) __attribute__((always_inline)) { queries[r * ROW + i] = narrow<T>(x); });
  barrier();
  decode.template begin<ROW>(queries);
  u32 seen_from, seen_to;
  decode.all_see(seen_from, seen_to);
  bool plain = !m.mask && m.softcap == 0;
  // Keys from here on are not used as they come: the new one, and what nobody ever wrote.
  u32 there = o.fresh && o.newest < own_end ? o.newest : own_end;
  // Where the lane's packs lie in a box: of a key those of even and odd j, of values those of even and odd h.
  u32 keys_at[2], values_at[2];
  UNROLL
  for (u32 i = 0; i < 2; i++) {
    u32 key = Decode::key_row(0, 0), value = Decode::value_row(0, i);
    keys_at[i] = key * 128 + ((i * 4 + Decode::quarter() ^ key) << 4);
    values_at[i] = OF_KEYS + value * 128 + ((Decode::value_pack(0) / PACK ^ value) << 4);
  }

  u32 step = 0, phase = 0;
#pragma unroll 1
  for (u32 block = first; block < own_end; block += BLOCK) {
    wait_phase(come + step * 8, phase);
    u32 at = ring + step * STEP;
    typename Decode::Keys k[KEYS / 16];
    typename Decode::Values v[KEYS / 16];
    UNROLL
    for (u32 b = 0; b < KEYS / 16; b++) {
      UNROLL
      for (u32 h = 0; h < 2; h++)
        UNROLL
        for (u32 j = 0; j < PACKS / 4; j++) k[b][h][j] = load_pack(at + keys_at[j % 2] + j / 2 * BOX + (b * 16 + h * 8) * 128);
      UNROLL
      for (u32 h = 0; h < 4; h++)
        UNROLL
        for (u32 j = 0; j < PACKS / 8; j++) v[b][h][j] = load_pack(at + values_at[h % 2] + j * BOX + (b * 16 + h / 2 * 8) * 128);
    }
    // All of the step is in registers.
    wave_barrier();
    if (lane == 0 && block + STEPS * BLOCK < own_end) fetch(block + STEPS * BLOCK, step);
    if (++step == STEPS) step = 0, phase ^= 1;

    if (block + KEYS > there) {
      UNROLL
      for (u32 b = 0; b < KEYS / 16; b++) {
        UNROLL
        for (u32 h = 0; h < 4; h++)
          UNROLL
          for (u32 j = 0; j < PACKS / 8; j++) v[b][h][j] = Decode::value_row(block + b * 16, h) < there ? v[b][h][j] : Unit{};
        if (o.fresh) decode.put_new(block + b * 16, k[b], v[b], new_key, new_value);
      }
    }
    f32 scores[KEYS / 16][4], base[2];
    UNROLL
    for (u32 b = 0; b < KEYS / 16; b++) decode.score(scores[b], k[b]);
    if (plain && seen_from <= block && block + KEYS <= seen_to) decode.template rise<KEYS, true>(block, scores, base);
    else decode.template rise<KEYS>(block, scores, base);
    UNROLL
    for (u32 b = 0; b < KEYS / 16; b++) decode.add(scores[b], base, v[b]);
  }
  // The sums lie where the rings were.
  f32 *sums = (f32 *)(decode_ring + (rings - shared_address(decode_ring)) / sizeof(Unit));
  decode.template finish<CLUSTER>(sums, others, &all_come);
}

#define RING_DECODE_KERNEL(T, SIZE, KEYS, CLUSTER)                                                            \
  KERNEL_RESIDENT(RING_ITEMS, 1) flash_decode_##SIZE##_ring_cluster##CLUSTER(const RingDecodeParams p) {      \
    u64 params;                                                                                               \
    FIND_PARAMETERS(flash_decode_##SIZE##_ring_cluster##CLUSTER, params);                                     \
    flash_decode_ring<T, SIZE, KEYS, CLUSTER>(p.decode, params + __builtin_offsetof(RingDecodeParams, maps)); \
  }
#define RING_DECODE_KERNELS_OF(T, SIZE, KEYS)                                  \
  RING_DECODE_KERNEL(T, SIZE, KEYS, 1) RING_DECODE_KERNEL(T, SIZE, KEYS, 2) \
  RING_DECODE_KERNEL(T, SIZE, KEYS, 4) RING_DECODE_KERNEL(T, SIZE, KEYS, 8)
// Keys of a step: OF_RINGS in providers/hip/attention/decode_mma.rs.
#define RING_DECODE_KERNELS(T) RING_DECODE_KERNELS_OF(T, 64, 32) RING_DECODE_KERNELS_OF(T, 128, 16)
