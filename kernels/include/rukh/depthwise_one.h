// Depthwise convolution of small images, which waits rather than computes: a position a work item.
//
// Access: a workgroup has neighbouring positions of a few packs of channels. It brings the weight of these channels to
// workgroup memory, as f32, in one trip to memory. A work item has two or three rows of its window on their way; packs
// are 16 bytes, neighbouring items have neighbouring packs. Bound: a trip to memory for so many rows.
#pragma once
#include "depthwise.h"
#include "unit.h"

// What a work item knows of its window: where the image's channels begin, the window's corner, and a bit for each tap of
// a row's first piece that lies in the image.
struct Window {
  u64 image;
  i32 z, y, x;
  u32 columns;
};

// The window in rows of TAPS taps: a wider window has several of them in a line.
struct Rows {
  u32 count, pieces;
};

// A row of taps as it is in memory; a bit tells whether a tap lies in the image.
template <int TAPS> struct TapRow {
  Unit raw[TAPS];
  u32 inside;
};

// The place of a row in the window.
struct Place {
  i32 z, y, piece;
};

template <int TAPS> DEVICE u32 columns_inside(const DepthwiseParams &p, i32 x, i32 first) {
  u32 inside = 0;
  UNROLL
  for (i32 k = 0; k < TAPS; k++) {
    i32 column = x + (first + k) * p.dilation[2];
    inside |= first + k < p.kernel[2] && (u32)column < (u32)p.input[2] ? 1u << k : 0;
  }
  return inside;
}

// Sends for a row of taps and moves on to the next.
template <class T, int TAPS>
DEVICE void load_taps(TapRow<TAPS> &row, Place &at, const DepthwiseParams &p, const Window &w, u32 pieces) {
  i32 z = w.z + at.z * p.dilation[0], y = w.y + at.y * p.dilation[1], first = at.piece * TAPS;
  row.inside = pieces == 1 ? w.columns : columns_inside<TAPS>(p, w.x, first);
  if ((u32)z >= (u32)p.input[0] || (u32)y >= (u32)p.input[1]) row.inside = 0;
  // In 32 bits, as an image is below 2^31 elements.
  u32 step = p.dilation[2] * p.channels;
  u32 from = ((z * p.input[1] + y) * p.input[2] + w.x) * p.channels + first * step;
  UNROLL
  for (i32 k = 0; k < TAPS; k++) {
    // What lies outside reads the image's first pixel, so that no load waits for a branch.
    u32 offset = row.inside >> k & 1 ? from + k * step : 0;
    row.raw[k] = load_unit(w.image + (u64)offset * sizeof(T));
  }
  if (++at.piece == (i32)pieces) {
    at.piece = 0;
    if (++at.y == p.kernel[1]) at.y = 0, at.z++;
  }
}

// 16 bytes as V numbers.
template <class T, int V> DEVICE void widen_unit(f32 (&to)[V], Unit raw) {
  UNROLL
  for (int v = 0; v < V; v++) {
    if constexpr (sizeof(T) == 4) to[v] = bits<f32>(raw[v]);
    else to[v] = widen_one(T{}, raw[v / 2], v % 2);
  }
}

template <class T, int V> DEVICE Unit narrow_unit(const f32 (&from)[V]) {
  Unit raw;
  UNROLL
  for (int i = 0; i < 4; i++) {
    if constexpr (sizeof(T) == 4) raw[i] = bits<u32>(from[i]);
    else raw[i] = narrow_two(T{}, from[2 * i], from[2 * i + 1]);
  }
  return raw;
}

// `weight` is the work item's first four channels of the row's first tap; other fours and taps are `four` and `tap` floats
// behind.
template <class T, int V, int TAPS>
DEVICE void multiply_taps(f32 (&sums)[V], const TapRow<TAPS> &row, const f32 *weight, u32 four, u32 tap) {
  UNROLL
  for (i32 k = 0; k < TAPS; k++) {
    Unit raw = row.raw[k];
    UNROLL
    for (int i = 0; i < 4; i++) raw[i] = row.inside >> k & 1 ? raw[i] : 0;
    f32 x[V];
    widen_unit<T, V>(x, raw);
    UNROLL
    for (int v = 0; v < V; v += 4) {
      auto w = *(const Pack<f32, 4> *)(weight + k * tap + v / 4 * four);
      UNROLL
      for (int i = 0; i < 4; i++) sums[v + i] = fma_(x[v + i], w.at[i], sums[v + i]);
    }
  }
}

// The weight of the workgroup's packs, as [row][tap][four of a pack][pack][4], with zeros behind the end of a line.
template <class T, int V, int TAPS>
DEVICE void load_weight(f32 *lds, const DepthwiseParams &p, Rows rows, u32 first) {
  constexpr u32 AHEAD = 4;
  u32 side = p.side.divisor, all = rows.count * TAPS * side, width = p.kernel[2];
#pragma unroll 1
  for (u32 at = item_id(); at < all; at += AHEAD * p.items) {
    Unit raw[AHEAD];
    u32 given = 0;
    UNROLL
    for (u32 k = 0; k < AHEAD; k++) {
      u32 unit = at + k * p.items < all ? at + k * p.items : at;
      u32 tap = divide(unit, p.side), pack = first + unit - tap * side, row = tap / TAPS;
      u32 line = rows.pieces == 1 ? row : row / rows.pieces;
      u32 column = (row - line * rows.pieces) * TAPS + tap % TAPS;
      bool there = column < width && pack < p.packs.divisor;
      u32 from = there ? (line * width + column) * p.channels + pack * V : 0;
      given |= there ? 1u << k : 0;
      raw[k] = load_unit(p.weight + (u64)from * sizeof(T));
    }
    UNROLL
    for (u32 k = 0; k < AHEAD; k++) {
      // Beyond the end the first one's again, so that no load waits behind a branch.
      u32 unit = at + k * p.items < all ? at + k * p.items : at, tap = divide(unit, p.side), pack = unit - tap * side;
      UNROLL
      for (int i = 0; i < 4; i++) raw[k][i] = given >> k & 1 ? raw[k][i] : 0;
      f32 w[V];
      widen_unit<T, V>(w, raw[k]);
      UNROLL
      for (int v = 0; v < V; v += 4)
        *(Pack<f32, 4> *)(lds + ((tap * (V / 4) + v / 4) * side + pack) * 4) = {w[v], w[v + 1], w[v + 2], w[v + 3]};
    }
  }
}

// The sums of a window, READ rows of TAPS taps of which are on their way at once. Every work item arrives.
template <class T, int V, int TAPS, int READ>
DEVICE void convolve_window(f32 (&sums)[V], const DepthwiseParams &p, Window w, f32 *lds, u32 first, u32 in_side) {
  u32 pieces = ((u32)p.kernel[2] + TAPS - 1) / TAPS;
  Rows all{p.kernel[0] * p.kernel[1] * pieces, pieces};
  w.columns = columns_inside<TAPS>(p, w.x, 0);
  TapRow<TAPS> rows[READ];
  Place at{};
  UNROLL
  for (u32 r = 0; r < READ; r++)
    if (r < all.count) load_taps<T>(rows[r], at, p, w, pieces);
  load_weight<T, V, TAPS>(lds, p, all, first);
  barrier();
  u32 four = p.side.divisor * 4, tap = four * (V / 4);
  const f32 *weight = lds + in_side * 4;
#pragma unroll 1
  for (u32 i = 0; i < all.count; i += READ) {
    UNROLL
    for (u32 r = 0; r < READ; r++) {
      if (i + r >= all.count) break;
      multiply_taps<T>(sums, rows[r], weight, four, tap);
      weight += TAPS * tap;
      if (i + r + READ < all.count) load_taps<T>(rows[r], at, p, w, pieces);
    }
  }
}

template <class T, int V> DEVICE void convolve_one(const DepthwiseParams &p) {
  alignas(16) SHARED f32 lds[DEPTHWISE_WEIGHT];
  u32 block = divide(group_id(), p.tiles), first = (group_id() - block * p.tiles.divisor) * p.side.divisor;
  u32 in_group = divide(item_id(), p.side), in_side = item_id() - in_group * p.side.divisor, pack = first + in_side;
  u32 position = block * p.in_group + in_group;
  bool active = in_group < p.in_group && position < p.count && pack < p.packs.divisor;
  u64 all = p.image | p.weight | p.out | p.bias | p.residual;
  if (all % sizeof(Unit) || p.channels % V) {
    if (active) convolve_channels<T, V, 1, false>(p, position, pack * V, lds + item_id(), p.items);
    return;
  }
  // Work items that have no position do the first one's work for nothing.
  if (!active) position = 0, pack = first;
  u32 row = divide(position, p.output[2]), plane = divide(row, p.output[1]), image = divide(plane, p.output[0]);
  u64 channel = pack * V, to = (u64)position * p.channels + channel;
  u64 pixels = (u64)image * (u32)(p.input[0] * p.input[1] * p.input[2]);
  Window w{p.image + (pixels * p.channels + channel) * sizeof(T),
           (i32)(plane - image * p.output[0].divisor) * p.stride[0] - p.pad[0],
           (i32)(row - plane * p.output[1].divisor) * p.stride[1] - p.pad[1],
           (i32)(position - row * p.output[2].divisor) * p.stride[2] - p.pad[2], 0};
  Unit bias{}, residual{};
  if (p.bias) bias = load_unit(p.bias + channel * sizeof(T));
  if (p.residual) residual = load_unit(p.residual + to * sizeof(T));
  f32 sums[V] = {}, added[V];
  if (p.kernel[2] <= 3) convolve_window<T, V, 3, 3>(sums, p, w, lds, first, in_side);
  else if (p.kernel[2] <= 5) convolve_window<T, V, 5, 3>(sums, p, w, lds, first, in_side);
  else convolve_window<T, V, 7, 2>(sums, p, w, lds, first, in_side);
  widen_unit<T, V>(added, bias);
  UNROLL
  for (int v = 0; v < V; v++) sums[v] += added[v];
  widen_unit<T, V>(added, residual);
  UNROLL
  for (int v = 0; v < V; v++) {
    sums[v] += added[v];
    sums[v] = clamp_(sums[v] < 0 ? sums[v] * p.slope : sums[v], p.low, p.high);
  }
  if (in_products(p.activation)) {
    activate_pack<sizeof(T) == 2>(sums, p.activation, p.act_a, p.act_b);
  } else if (p.activation) {
    // The weight is no longer needed.
    barrier();
    activate_one_by_one(sums, p, lds + item_id(), p.items);
  }
  if (active) store_unit(p.out + to * sizeof(T), narrow_unit<T, V>(sums));
}
