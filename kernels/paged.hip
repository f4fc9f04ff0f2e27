// Attention over caches that are found through a table of blocks (PagedAttention), or in which blocks of keys are hidden
// (SparseAttention): new rows are normalised, rotated and written to the caches, then each query meets its keys.
//
// Access: of the rows, 32 work items take one, its elements one beside the other. Of the attention, a workgroup takes a head of
// a query: sixteen keys at a time, each by sixteen work items that read four elements beside each other, then what sixteen
// running softmaxes summed is put together. Where these are fewer workgroups than the chip has room for, keys are cut into
// parts of a workgroup each. Blocks that are hidden are not read.
// Bound: keys and values once for each head of a query, from the caches of the chip where heads share them.
#include "rukh/element.h"
#include "rukh/math.h"
#include "rukh/move.h"

struct PagedParams {
  // New rows; the caches; the result.
  u64 q, k, v, keys, values, y;
  // Queries that changed, [tokens][heads][size], or 0.
  u64 changed;
  // What parts of the keys came to, [tokens][heads][splits] of a maximum, a sum and v_size sums of values.
  u64 parts_of_keys;
  // The first token of each sequence, or 0: all have `queries`. Keys of the past of each, or with `by_length` of all.
  u64 starts, lengths;
  // The blocks of each sequence, or 0: each has one.
  u64 table;
  // The row of the caches of each token, or 0.
  u64 slots;
  u64 cosines, sines, sinks, query_weight, key_weight;
  // Of hidden blocks: where rows of seen ones begin, and the seen ones. The longest total length.
  u64 begins, seen, longest;
  u64 errors;
  // Elements between blocks of the caches, rows and heads.
  i64 strides[3];
  // Elements between tokens of queries, keys and values, and where the first one's begin.
  i64 columns[3], first[3];
  u32 tokens, batch, heads, kv_heads, group;
  u32 size, v_size;
  // Of the caches, and of each sequence in the table.
  u32 blocks, rows, pages;
  u32 queries, by_length;
  u32 half, cache_rows, rotary_start, interleaved;
  // Layouts, rows of one and seen blocks of one, and keys of a block.
  u32 layouts, layout_rows, layout_seen, block;
  u32 causal;
  // Keys before its own that a query sees, or −1.
  i32 window;
  // Rows of a token that the first kernel writes, and whether it has values.
  u32 parts, separate;
  f32 scale, softcap, epsilon;
  // Parts of the keys.
  u32 splits;
};
static_assert(sizeof(PagedParams) == 352, "the mirror in providers/hip/attention/paged.rs");

DEVICE i32 int_at(u64 from, u64 at) { return ((const GLOBAL i32 *)from)[at]; }

// Where a token stands.
struct Place {
  u32 sequence;
  // Among its sequence's keys, and how many these are. −1 where lengths are not allowed.
  i64 position, total;
};

DEVICE Place no_place(const PagedParams &p) {
  report(p.errors, ERROR_INDEX);
  return {0, 0, -1};
}

DEVICE Place place_of(const PagedParams &p, u32 token) {
  if (p.by_length) {
    u32 sequence = token / p.queries;
    i64 row = token - sequence * p.queries, longest = int_at(p.longest, 0), length = int_at(p.lengths, sequence);
    // Samples of a prompt have no past, and may end before its rows do.
    bool prompt = longest == p.queries;
    i64 room = (i64)p.layout_rows * p.block < p.rows ? (i64)p.layout_rows * p.block : p.rows;
    if (longest < p.queries || longest > room || length > longest || length < (prompt ? 0 : (i64)p.queries))
      return no_place(p);
    return {sequence, prompt ? row : length - p.queries + row, length};
  }
  // The last sequence that begins at the token or before.
  u32 low = 0, high = p.batch;
  while (high - low > 1) {
    u32 middle = (low + high) / 2;
    if (int_at(p.starts, middle) <= (i32)token) low = middle;
    else high = middle;
  }
  i64 start = int_at(p.starts, low), end = int_at(p.starts, low + 1), past = int_at(p.lengths, low);
  i64 total = past + end - start, room = (i64)(p.pages < p.blocks ? p.pages : p.blocks) * p.rows;
  if (start < 0 || start > token || end <= token || end > p.tokens || past < 0 || total > room)
    return no_place(p);
  return {low, past + token - start, total};
}

// Where the row of a position begins in the caches; −1 where the table leads out of them.
DEVICE i64 row_of(const PagedParams &p, u32 sequence, i64 position) {
  u32 at = (u32)position, page = at / p.rows;
  i64 block = p.table ? int_at(p.table, (u64)sequence * p.pages + page) : sequence;
  if (block < 0 || block >= p.blocks) {
    report(p.errors, ERROR_INDEX);
    return -1;
  }
  return block * p.strides[0] + (i64)(at - page * p.rows) * p.strides[1];
}

// Work items that take a row together.
constexpr u32 ROW_TEAM = 32;

// A row of a head before it is rotated: its elements are rounded as if they were stored.
template <class T> struct NewRow {
  const T *from, *weight;
  f32 factor;

  METHOD f32 at(u32 i) const {
    f32 x = widen(from[i]);
    return weight ? widen(narrow<T>(x * factor * widen(weight[i]))) : x;
  }
};

template <class T> DEVICE void paged_rows(const PagedParams &p) {
  if (group_id() == 0 && p.starts) {
    // Numbers that no token looks at.
    for (u32 i = item_id(); i <= p.batch; i += GROUP) {
      i32 start = int_at(p.starts, i), before = i ? int_at(p.starts, i - 1) : 0;
      bool last = i == p.batch;
      bool good = start >= before && (i ? start <= (i32)p.tokens : start == 0) && (!last || start == (i32)p.tokens);
      if (!good || (!last && int_at(p.lengths, i) < 0)) report(p.errors, ERROR_INDEX);
    }
  }
  u32 lane = item_id() % ROW_TEAM;
  u64 row = (u64)group_id() * (GROUP / ROW_TEAM) + item_id() / ROW_TEAM;
  u32 token = (u32)(row / p.parts), part = (u32)(row - (u64)token * p.parts);
  // Work items without a row go along, so that all arrive where a team puts its sums together.
  bool live = token < p.tokens;
  if (!live) token = part = 0;
  u32 kind = part < p.kv_heads ? 1 : part < p.kv_heads * (1 + p.separate) ? 2 : 0;
  u32 head = kind == 1 ? part : kind == 2 ? part - p.kv_heads : part - p.kv_heads * (1 + p.separate);
  Place place = place_of(p, token);
  live = live && place.total >= 0;
  i64 to = -1;
  if (live && kind) {
    i32 slot = p.slots ? int_at(p.slots, token) : 0;
    if (p.slots && slot >= 0) {
      u32 block = (u32)slot / p.rows;
      to = (i64)block * p.strides[0] + (i64)((u32)slot - block * p.rows) * p.strides[1];
    }
    if (slot < -1 || (p.slots && slot >= 0 && (u32)slot / p.rows >= p.blocks)) {
      report(p.errors, ERROR_INDEX);
      to = -1;
    }
    if (!p.slots) to = row_of(p, place.sequence, place.position);
    if (to < 0) live = false;
    else to += head * p.strides[2];
  } else if (live) {
    to = ((i64)token * p.heads + head) * p.size;
  }
  u64 base = kind == 1 ? p.k : kind == 2 ? p.v : p.q;
  u64 weight = kind == 1 ? p.key_weight : kind == 2 ? 0 : p.query_weight;
  u64 out = kind == 1 ? p.keys : kind == 2 ? p.values : p.changed;
  NewRow<T> from{(const T *)base + p.first[kind] + (i64)token * p.columns[kind] + head * p.size, (const T *)weight, 1};
  if (p.query_weight) {
    f32 sum = 0;
    for (u32 i = lane; i < p.size; i += ROW_TEAM) sum = fma_(widen(from.from[i]), widen(from.from[i]), sum);
    UNROLL
    for (u32 mask = 1; mask < ROW_TEAM; mask *= 2) sum += lane_xor(sum, mask);
    from.factor = 1 / sqrt_(sum / p.size + p.epsilon);
  }
  if (!live) return;
  bool rotates = p.cosines && kind != 2;
  // Rows of a prompt behind their sample's end take the first angles: no query sees them.
  i64 position = place.position < place.total ? place.position : 0;
  if (rotates && position >= p.cache_rows) {
    report(p.errors, ERROR_INDEX);
    position = 0;
    if (!p.cache_rows) rotates = false;
  }
  const T *cosines = (const T *)p.cosines + position * p.half, *sines = (const T *)p.sines + position * p.half;
  for (u32 i = lane; i < p.size; i += ROW_TEAM) {
    f32 x = from.at(i);
    u32 turned = i - p.rotary_start;
    if (rotates && turned < 2 * p.half) {
      u32 pair = p.interleaved ? turned / 2 : turned < p.half ? turned : turned - p.half;
      bool second = p.interleaved ? turned & 1 : turned >= p.half;
      u32 distance = p.interleaved ? 1 : p.half;
      f32 other = from.at(second ? i - distance : i + distance), c = widen(cosines[pair]), s = widen(sines[pair]);
      x = second ? s * other + c * x : c * x - s * other;
    }
    ((T *)out)[to + i] = narrow<T>(x);
  }
}

// Work items of a key, keys at a time, and elements that a work item reads together.
constexpr u32 LANES = 16, TEAMS = GROUP / LANES, TOGETHER = 4;
// Columns of the values that a workgroup sums, and elements of a query that it keeps.
constexpr u32 COLUMNS = 256, EACH = COLUMNS / LANES / TOGETHER, QUERY = 1024;

struct PagedShared {
  f32 query[QUERY];
  f32 sums[TEAMS][COLUMNS];
  f32 most[TEAMS], total[TEAMS];
};

// Elements from `i` on, 0 beyond `size`; `wide` says that all four are there and lie at a multiple of their size.
template <class T> DEVICE Pack<f32, TOGETHER> load_four(const T *from, u32 i, u32 size, bool wide) {
  Pack<f32, TOGETHER> x = {};
  if (wide && i < size) {
    Pack<T, TOGETHER> packed = *(const Pack<T, TOGETHER> *)(from + i);
    UNROLL
    for (u32 e = 0; e < TOGETHER; e++) x.at[e] = widen(packed.at[e]);
  } else {
    UNROLL
    for (u32 e = 0; e < TOGETHER; e++)
      if (i + e < size) x.at[e] = widen(from[i + e]);
  }
  return x;
}

// Whether a head's query sees the block of a key.
DEVICE bool sees(const PagedParams &p, u32 head, i64 position, u32 key) {
  u32 layout = head % p.layouts, row = (u32)position / p.block;
  u64 begins = (u64)layout * (p.layout_rows + 1) + row;
  i32 begin = int_at(p.begins, begins), end = int_at(p.begins, begins + 1);
  if (begin < 0 || end > (i32)p.layout_seen) {
    report(p.errors, ERROR_INDEX);
    return false;
  }
  bool found = false;
  for (i32 i = begin; i < end; i++) {
    i32 block = int_at(p.seen, (u64)layout * p.layout_seen + i);
    if ((u32)block >= p.layout_rows) report(p.errors, ERROR_INDEX);
    found = found || block == (i32)(key / p.block);
  }
  return found;
}

// What a part of the keys of a token's head came to.
DEVICE GLOBAL f32 *part_of_keys(const PagedParams &p, u64 row, u32 split) {
  return (GLOBAL f32 *)p.parts_of_keys + (row * p.splits + split) * (2 + p.v_size);
}

template <class T> DEVICE void paged_attention(const PagedParams &p, PagedShared &shared) {
  u32 token = group_id() / p.heads, head = group_id() - token * p.heads;
  u32 chunk = group_id_y() * COLUMNS;
  u32 lane = item_id() % LANES, team = item_id() / LANES;
  Place place = place_of(p, token);
  const T *query = p.changed ? (const T *)p.changed + ((i64)token * p.heads + head) * p.size
                             : (const T *)p.q + p.first[0] + (i64)token * p.columns[0] + head * p.size;
  for (u32 i = item_id(); i < p.size && i < QUERY; i += GROUP) shared.query[i] = widen(query[i]) * p.scale;
  barrier();
  i64 head_at = (i64)(head / p.group) * p.strides[2];
  bool wide = p.size % TOGETHER == 0 && ((p.keys | p.values) & (sizeof(T) * TOGETHER - 1)) == 0;
  i64 last = place.total, start = 0;
  if (p.causal && place.position + 1 < last) last = place.position + 1;
  if (p.window >= 0 && place.position > p.window) start = place.position - p.window;
  if (p.splits > 1 && last > start) {
    i64 rounds = (last - start + TEAMS - 1) / TEAMS, each = (rounds + p.splits - 1) / p.splits * TEAMS;
    start += group_id_z() * each;
    if (start + each < last) last = start + each;
  }

  f32 most = -infinity(0.f), total = 0;
  f32 sums[EACH][TOGETHER] = {};
  bool seen = true;
  u32 block = ~0u;
  for (i64 base = start; base < last; base += TEAMS) {
    // Sixteen keys from a multiple of sixteen on are of one block: there is no window.
    if (p.begins) {
      if ((u32)base / p.block != block) {
        block = (u32)base / p.block;
        seen = sees(p, head, place.position, (u32)base);
      }
      if (!seen) continue;
    }
    i64 key = base + team;
    i64 row = key < last ? row_of(p, place.sequence, key) : -1;
    bool live = row >= 0;
    row = live ? row + head_at : 0;
    f32 score = 0;
    if (live) {
      const T *from = (const T *)p.keys + row;
      for (u32 i = lane * TOGETHER; i < p.size; i += LANES * TOGETHER) {
        Pack<f32, TOGETHER> x = load_four(from, i, p.size, wide);
        UNROLL
        for (u32 e = 0; e < TOGETHER; e++) {
          u32 at = i + e;
          if (at < p.size) score = fma_(x.at[e], at < QUERY ? shared.query[at] : widen(query[at]) * p.scale, score);
        }
      }
    }
    UNROLL
    for (u32 mask = 1; mask < LANES; mask *= 2) score += lane_xor(score, mask);
    if (!live) continue;
    if (p.softcap != 0) score = p.softcap * tanh_(score / p.softcap);
    f32 next = score > most ? score : most;
    f32 before = most == -infinity(0.f) ? 0 : exp_(most - next), own = exp_(score - next);
    most = next, total = total * before + own;
    const T *from = (const T *)p.values + row;
    UNROLL
    for (u32 n = 0; n < EACH; n++) {
      u32 i = chunk + (n * LANES + lane) * TOGETHER;
      if (i >= p.v_size) continue;
      Pack<f32, TOGETHER> x = load_four(from, i, p.v_size, wide && p.v_size % TOGETHER == 0);
      UNROLL
      for (u32 e = 0; e < TOGETHER; e++) sums[n][e] = fma_(own, x.at[e], sums[n][e] * before);
    }
  }

  if (lane == 0) shared.most[team] = most, shared.total[team] = total;
  UNROLL
  for (u32 n = 0; n < EACH; n++)
    UNROLL
    for (u32 e = 0; e < TOGETHER; e++) shared.sums[team][(n * LANES + lane) * TOGETHER + e] = sums[n][e];
  barrier();
  bool whole = p.splits == 1;
  f32 sink = p.sinks && whole ? widen(((const T *)p.sinks)[head]) : -infinity(0.f);
  most = sink;
  for (u32 t = 0; t < TEAMS; t++) most = shared.most[t] > most ? shared.most[t] : most;
  total = p.sinks && whole ? exp_(sink - most) : 0;
  f32 sum = 0;
  for (u32 t = 0; t < TEAMS; t++) {
    f32 factor = shared.most[t] == -infinity(0.f) ? 0 : exp_(shared.most[t] - most);
    total += shared.total[t] * factor;
    sum += shared.sums[t][item_id()] * factor;
  }
  u32 column = chunk + item_id();
  if (!whole) {
    GLOBAL f32 *part = part_of_keys(p, group_id(), group_id_z());
    if (column < p.v_size) part[2 + column] = sum;
    if (column == 0) part[0] = most, part[1] = total;
    return;
  }
  if (column < p.v_size) ((T *)p.y)[((i64)token * p.heads + head) * p.v_size + column] = narrow<T>(total > 0 ? sum / total : 0);
}
static_assert(COLUMNS == GROUP, "a work item writes a column");

KERNEL(GROUP) paged_rows_f32(PagedParams p) { paged_rows<f32>(p); }
KERNEL(GROUP) paged_rows_f16(PagedParams p) { paged_rows<f16>(p); }
KERNEL(GROUP) paged_rows_bf16(PagedParams p) { paged_rows<bf16>(p); }
KERNEL(GROUP) paged_attention_f32(PagedParams p) {
  SHARED static PagedShared shared;
  paged_attention<f32>(p, shared);
}
KERNEL(GROUP) paged_attention_f16(PagedParams p) {
  SHARED static PagedShared shared;
  paged_attention<f16>(p, shared);
}
KERNEL(GROUP) paged_attention_bf16(PagedParams p) {
  SHARED static PagedShared shared;
  paged_attention<bf16>(p, shared);
}

// Puts the parts of the keys together: a work item a column.
template <class T> DEVICE void paged_join(const PagedParams &p) {
  u64 at = (u64)group_id() * GROUP + item_id(), row = at / p.v_size;
  if (row >= (u64)p.tokens * p.heads) return;
  u32 column = (u32)(at - row * p.v_size);
  f32 sink = p.sinks ? widen(((const T *)p.sinks)[row % p.heads]) : -infinity(0.f), most = sink;
  for (u32 i = 0; i < p.splits; i++) {
    f32 part = part_of_keys(p, row, i)[0];
    most = part > most ? part : most;
  }
  f32 total = p.sinks ? exp_(sink - most) : 0, sum = 0;
  for (u32 i = 0; i < p.splits; i++) {
    const GLOBAL f32 *part = part_of_keys(p, row, i);
    f32 factor = part[0] == -infinity(0.f) ? 0 : exp_(part[0] - most);
    total += part[1] * factor, sum += part[2 + column] * factor;
  }
  ((T *)p.y)[at] = narrow<T>(total > 0 ? sum / total : 0);
}

KERNEL(GROUP) paged_join_f32(PagedParams p) { paged_join<f32>(p); }
KERNEL(GROUP) paged_join_f16(PagedParams p) { paged_join<f16>(p); }
KERNEL(GROUP) paged_join_bf16(PagedParams p) { paged_join<bf16>(p); }

// A cache as it was, where it does not stay where it is: 16 bytes a work item at a time.
struct PagedCopyParams {
  u64 from, to, bytes;
  u32 groups, size;
};
static_assert(sizeof(PagedCopyParams) == 32, "the mirror in providers/hip/attention/paged.rs");

KERNEL(GROUP) paged_copy(PagedCopyParams p) {
  if (p.from == p.to) return;
  for (u64 at = ((u64)group_id() * GROUP + item_id()) * 16; at < p.bytes; at += (u64)p.groups * GROUP * 16) {
    u64 left = p.bytes - at;
    if (left >= 16) move_unit(p.to + at, p.from + at, 16, p.size);
    else
      for (u64 i = 0; i < left; i += p.size) move_bytes(p.to + at + i, p.from + at + i, p.size);
  }
}
