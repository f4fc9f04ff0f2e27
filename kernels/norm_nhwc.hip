// Group normalisation of images that have their channels innermost (NHWC).
//
// Access: a workgroup takes the channels of one group at neighbouring positions, in packs; what is between, other
// workgroups read at about the same time. One launch reads a small image twice, the second time from the cache; for
// large ones norm_nhwc_parts gives the moments of each chunk, and norm_nhwc_apply reads again. Bound: these reads and
// one write over the memory bandwidth.
#include "rukh/channels.h"
#include "rukh/math.h"
#include "rukh/team.h"

struct NhwcNormParams {
  u64 x, y, scale, shift, partials;
  u32 positions, channels, groups, in_group;
  // A row, which is a group of an image, in chunks of so many positions.
  u32 splits, chunk;
  // Packs of a group's channels at a position, and the channels of each.
  Divider packs;
  u32 pack;
  // Whether scale and shift are given for each group.
  u32 by_group;
  f32 epsilon;
};
static_assert(sizeof(NhwcNormParams) == 88, "the mirror in providers/hip/norm/nhwc.rs");

struct Moments {
  f32 mean;
  // The sum of squared deviations from the mean.
  f32 squares;
};

// A chunk of a row.
struct Chunk {
  u32 image, group, row, split;
  u32 first, positions;
};

DEVICE Chunk find_chunk(const NhwcNormParams &p) {
  Chunk c;
  c.row = group_id() / p.splits, c.split = group_id() % p.splits;
  c.image = c.row / p.groups, c.group = c.row % p.groups;
  c.first = c.split * p.chunk;
  c.positions = p.positions - c.first < p.chunk ? p.positions - c.first : p.chunk;
  return c;
}

// Packs of V channels of a group; single channels are for what is not aligned too.
template <int V> DEVICE u32 packs_of(const NhwcNormParams &p) { return V == 1 ? p.in_group : p.packs.divisor; }

// Offset of the pack with this number in a chunk.
template <int V> DEVICE u64 place_of(const NhwcNormParams &p, const Chunk &c, u32 at, u32 &channel) {
  u32 position = V == 1 ? at / p.in_group : divide(at, p.packs);
  channel = c.group * p.in_group + (at - position * packs_of<V>(p)) * V;
  return ((u64)c.image * p.positions + c.first + position) * p.channels + channel;
}

DEVICE f32 add(f32 a, f32 b) { return a + b; }

// Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979): a
// work item joins its packs one after the other, then the items of the workgroup join.
template <class T, int V> DEVICE Moments moments(const NhwcNormParams &p, const Chunk &c, f32 (*lds)[MAX_WAVES]) {
  u32 all = c.positions * packs_of<V>(p);
  Moments own{0, 0};
  f32 count = 0;
  for (u32 at = item_id(); at < all; at += GROUP) {
    u32 channel;
    f32 x[V], mean = 0, squares = 0;
    load_channels<T, V, true>(x, (const T *)p.x + place_of<V>(p, c, at, channel), V);
    UNROLL
    for (u32 v = 0; v < V; v++) mean += x[v];
    mean /= V;
    UNROLL
    for (u32 v = 0; v < V; v++) squares += (x[v] - mean) * (x[v] - mean);
    f32 delta = mean - own.mean, part = 1 / (count + 1);
    own.mean += delta * part;
    own.squares += squares + delta * delta * (count * part * V);
    count += 1;
  }
  f32 total = (f32)all;
  Moments joined;
  joined.mean = team_join(own.mean * count, GROUP, lds[0], add) / total;
  f32 delta = own.mean - joined.mean;
  joined.squares = team_join(own.squares + delta * delta * count * V, GROUP, lds[1], add);
  return joined;
}

template <class T, int V> DEVICE void normalise(const NhwcNormParams &p, const Chunk &c, f32 mean, f32 squares) {
  f32 factor = 1 / sqrt_(squares / ((f32)p.positions * p.in_group) + p.epsilon);
  u32 all = c.positions * packs_of<V>(p);
  for (u32 at = item_id(); at < all; at += GROUP) {
    u32 channel;
    u64 place = place_of<V>(p, c, at, channel);
    f32 x[V], scale[V], shift[V];
    load_channels<T, V, true>(x, (const T *)p.x + place, V);
    UNROLL
    for (u32 v = 0; v < V; v++) {
      u32 i = p.by_group ? c.group : channel + v;
      scale[v] = widen(((const T *)p.scale)[i]), shift[v] = widen(((const T *)p.shift)[i]);
    }
    UNROLL
    for (u32 v = 0; v < V; v++) x[v] = (x[v] - mean) * factor * scale[v] + shift[v];
    store_channels<T, V, true>((T *)p.y + place, x, V);
  }
}

template <class T, int V> DEVICE void norm_rows(const NhwcNormParams &p, f32 (*lds)[MAX_WAVES]) {
  Chunk c = find_chunk(p);
  Moments m = moments<T, V>(p, c, lds);
  normalise<T, V>(p, c, m.mean, m.squares);
}

template <class T, int V> DEVICE void norm_parts(const NhwcNormParams &p, f32 (*lds)[MAX_WAVES]) {
  Moments m = moments<T, V>(p, find_chunk(p), lds);
  if (item_id() == 0) ((Moments *)p.partials)[group_id()] = m;
}

template <class T, int V> DEVICE void norm_apply(const NhwcNormParams &p, f32 (*lds)[MAX_WAVES]) {
  Chunk c = find_chunk(p);
  const Moments *parts = (const Moments *)p.partials + (u64)c.row * p.splits;
  auto weight = [&](u32 s) {
    u32 positions = s + 1 < p.splits ? p.chunk : p.positions - s * p.chunk;
    return (f32)positions * (f32)p.in_group;
  };
  f32 mean = 0, squares = 0;
  for (u32 s = item_id(); s < p.splits; s += GROUP) mean += parts[s].mean * weight(s);
  mean = team_join(mean, GROUP, lds[0], add) / ((f32)p.positions * p.in_group);
  for (u32 s = item_id(); s < p.splits; s += GROUP)
    squares += parts[s].squares + (parts[s].mean - mean) * (parts[s].mean - mean) * weight(s);
  squares = team_join(squares, GROUP, lds[1], add);
  normalise<T, V>(p, c, mean, squares);
}

// `what` with the packs that divide a group.
#define BY_PACK(what, T)                                                       \
  SHARED f32 lds[2][MAX_WAVES];                                                \
  u32 pack = (p.x | p.y) % (p.pack * sizeof(T)) == 0 ? p.pack : 1;             \
  if constexpr (sizeof(T) == 2)                                                \
    if (pack == 8) return what<T, 8>(p, lds);                                  \
  if (pack == 4) return what<T, 4>(p, lds);                                    \
  if (pack == 2) return what<T, 2>(p, lds);                                    \
  return what<T, 1>(p, lds)

KERNEL(GROUP) norm_nhwc_f32_rows(NhwcNormParams p) { BY_PACK(norm_rows, f32); }
KERNEL(GROUP) norm_nhwc_f16_rows(NhwcNormParams p) { BY_PACK(norm_rows, f16); }
KERNEL(GROUP) norm_nhwc_bf16_rows(NhwcNormParams p) { BY_PACK(norm_rows, bf16); }
KERNEL(GROUP) norm_nhwc_f32_parts(NhwcNormParams p) { BY_PACK(norm_parts, f32); }
KERNEL(GROUP) norm_nhwc_f16_parts(NhwcNormParams p) { BY_PACK(norm_parts, f16); }
KERNEL(GROUP) norm_nhwc_bf16_parts(NhwcNormParams p) { BY_PACK(norm_parts, bf16); }
KERNEL(GROUP) norm_nhwc_f32_apply(NhwcNormParams p) { BY_PACK(norm_apply, f32); }
KERNEL(GROUP) norm_nhwc_f16_apply(NhwcNormParams p) { BY_PACK(norm_apply, f16); }
KERNEL(GROUP) norm_nhwc_bf16_apply(NhwcNormParams p) { BY_PACK(norm_apply, bf16); }
