// Caches of keys and values in 8 or 4 bits (GroupQueryAttention): new rows are divided by a scale, rounded and kept behind
// those of the past. Where attention does not read the cache itself, all that it sees becomes numbers again. The kernel for
// caches of the last keys, of any type, is here too, see window_cache.h.
//
// Access: a work item takes 8 columns of a row, of 8 or 4 bytes, neighbours beside each other; of sizes that are no multiple
// of 8 one or two. Bound: the bytes of the cache that are read and written, and of the numbers where there are any.
#include "rukh/gemm.h"
#include "rukh/move.h"
#include "rukh/quantize.h"
#include "rukh/window_cache.h"

struct CachePart {
  // The cache before, [batch][kv_heads][past_rows][size], or 0; new rows as numbers, [batch][kv_heads][rows][size]; scales; the
  // cache after, and as numbers, [batch][kv_heads][capacity][size], or 0 where attention reads the cache itself.
  u64 past, fresh, scales, cache, out;
  // 1 where each column of each head has a scale, 0 where there is one.
  u32 per_channel;
  // 1 for the launch that has work items for new rows alone: the cache is its own successor.
  u32 fresh_only;
};
struct QuantizedCacheParams {
  // Keys, values.
  CachePart parts[2];
  // Each sample's keys, as i64.
  u64 lengths;
  // Workgroups of a head of a sample; work items of a row.
  Divider groups, units;
  u32 kv_heads, size, capacity, past_rows, rows;
  // How numbers are kept: I8, F8E4M3FN, or U4 for two in a byte, the first one in its low half, where 8 stands for zero.
  u32 format;
  // Rows that attention multiplies, seen or not, beside those of a block of BLOCK rows with a key.
  u32 used;
  // Columns of a work item.
  u32 step;
};
static_assert(sizeof(QuantizedCacheParams) == 160, "the mirror in providers/hip/attention/quantized_cache.rs");

// Keys that attention in one launch takes at a time, at most.
constexpr i64 BLOCK = 128;
// Columns of a work item, at most.
constexpr u32 STEP = 8;

// `bytes` bytes, in one access where they are aligned to as many.
DEVICE u64 load_bytes(u64 from, u32 bytes) {
  if (bytes == 8 && from % 8 == 0) return *(const GLOBAL u64 *)from;
  if (bytes == 4 && from % 4 == 0) return *(const GLOBAL u32 *)from;
  u64 raw = 0;
  for (u32 i = 0; i < bytes; i++) raw |= (u64)((const GLOBAL u8 *)from)[i] << 8 * i;
  return raw;
}
DEVICE void store_bytes(u64 to, u32 bytes, u64 raw) {
  if (bytes == 8 && to % 8 == 0) *(GLOBAL u64 *)to = raw;
  else if (bytes == 4 && to % 4 == 0) *(GLOBAL u32 *)to = (u32)raw;
  else
    for (u32 i = 0; i < bytes; i++) ((GLOBAL u8 *)to)[i] = (u8)(raw >> 8 * i);
}

template <class T> DEVICE void quantized_cache(const QuantizedCacheParams &p) {
  const CachePart &c = p.parts[group_id_y()];
  u32 plane = divide(group_id(), p.groups), unit = (group_id() - plane * p.groups.divisor) * GROUP + item_id();
  u32 row = divide(unit, p.units), column = (unit - row * p.units.divisor) * p.step;
  i64 length = ((const GLOBAL i64 *)p.lengths)[plane / p.kv_heads];
  // Samples of a prompt have no past, and may end before its rows do.
  i64 begin = length > (i64)p.rows ? length - (i64)p.rows : 0;
  if (c.fresh_only) row += (u32)begin;
  if (row >= p.capacity) return;
  i64 fresh = (i64)row - begin;

  u32 bits = p.format == U4 ? 4 : 8, bytes = p.step * bits / 8;
  auto place = [&](u32 rows) { return (((u64)plane * rows + row) * p.size + column) * bits / 8; };
  u64 cache = c.cache + place(p.capacity), at = ((u64)plane * p.capacity + row) * p.size + column;
  // A cache that is its own successor has its past already.
  bool same = c.past == c.cache && p.past_rows == p.capacity;
  T *out = (T *)c.out + at;
  if (fresh >= (i64)p.rows) {
    if (!same) store_bytes(cache, bytes, 0);
    if (!c.out) return;
    i64 multiplied = (length + BLOCK - 1) / BLOCK * BLOCK;
    if ((i64)row < multiplied || row < p.used)
      for (u32 i = 0; i < p.step; i++) out[i] = T{};
    return;
  }

  const GLOBAL f32 *scales = (const GLOBAL f32 *)c.scales;
  if (c.per_channel) scales += (plane % p.kv_heads) * p.size + column;
  u64 raw = 0;
  if (fresh < 0) {
    raw = load_bytes(c.past + place(p.past_rows), bytes);
  } else {
    u64 from = ((u64)plane * p.rows + (u64)fresh) * p.size + column;
    UNROLL
    for (u32 i = 0; i < STEP; i++)
      if (i < p.step)
        raw |= (u64)quantize(p.format, load_one<T, f32>(c.fresh, from + i) / scales[c.per_channel ? i : 0]) << bits * i;
  }
  if (fresh >= 0 || !same) store_bytes(cache, bytes, raw);
  if (!c.out) return;

  alignas(16) T x[STEP] = {};
  UNROLL
  for (u32 i = 0; i < STEP; i++)
    if (i < p.step) {
      u32 code = (u32)(raw >> bits * i) & ((1u << bits) - 1);
      x[i] = round_to<T>(value_of(p.format, code) * scales[c.per_channel ? i : 0]);
    }
  if (p.step == STEP) {
    UNROLL
    for (u32 i = 0; i < STEP * sizeof(T) / 16; i++) ((GLOBAL Unit16 *)(u64)out)[i] = ((const Unit16 *)x)[i];
  } else {
    for (u32 i = 0; i < p.step; i++) out[i] = x[i];
  }
}

KERNEL(GROUP) window_cache(WindowCacheParams p) { window_rows(p); }
KERNEL(GROUP) quantized_cache_f32(QuantizedCacheParams p) { quantized_cache<f32>(p); }
KERNEL(GROUP) quantized_cache_f16(QuantizedCacheParams p) { quantized_cache<f16>(p); }
KERNEL(GROUP) quantized_cache_bf16(QuantizedCacheParams p) { quantized_cache<bf16>(p); }
