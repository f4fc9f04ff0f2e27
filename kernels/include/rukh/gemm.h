// A product of matrices as a launch sees it: operands by strides, the place of each workgroup's tile,
// and what becomes of the sums.
#pragma once
#include "activation.h"
#include "arrive.h"
#include "element.h"

constexpr int MAX_AXES = 6;

// A dimension of the batch: its size, and how far each operand moves along it, in elements.
struct BatchAxis {
  i64 size;
  i64 a, b, out, bias, residual;
};

struct GemmParams {
  u64 a, b, out;
  // Added to the product: beta · bias + residual; 0 for none.
  u64 bias, residual;
  // For K in parts, and where another launch finishes the product: the sums, else 0. Without `arrived` they are those of
  // results, [part][batch][m][n]; else each workgroup's as its work items have them.
  u64 partial;
  // A word for each tile, 0 before and after: the part that arrives last finishes the tile.
  u64 arrived;
  // Elements between rows and columns of each operand.
  i64 a_row, a_column, b_row, b_column, out_row, out_column;
  i64 bias_row, bias_column, residual_row, residual_column;
  u32 m, n, k;
  // Columns of A that each part of the split multiplies; a multiple of every tile's K.
  u32 k_part;
  u32 batch, parts;
  u32 axes;
  // A function with its constants, 0 for none. Those that are not `in_products` only `add_parts` applies.
  u32 activation;
  f32 act_a, act_b;
  f32 alpha, beta;
  // What every kernel applies: x < 0 ? slope · x : x, then the bounds.
  f32 slope, low, high;
  u32 unused;
  BatchAxis axis[MAX_AXES];
};
static_assert(sizeof(GemmParams) == 488, "the mirror in providers/hip/gemm/params.rs");

// A workgroup's part of the product.
struct Tile {
  u32 row, column;
  u32 k_begin, k_end;
  u64 a, b, out, bias, residual;
  // Index of the part and batch in `partial`.
  u64 slice;
  // Of the tile among those of all matrices, and its part of K.
  u32 number, part;
};

// Where each operand of matrix `index` of the batch begins. `width` is the bytes of an element.
DEVICE void find_matrix(const GemmParams &p, Tile &tile, u32 index, u32 a_width, u32 b_width, u32 out_width) {
  i64 a = 0, b = 0, out = 0, bias = 0, residual = 0;
  for (int d = (int)p.axes - 1; d >= 0; d--) {
    u32 size = (u32)p.axis[d].size, i = index % size;
    index /= size;
    a += i * p.axis[d].a;
    b += i * p.axis[d].b;
    out += i * p.axis[d].out;
    bias += i * p.axis[d].bias;
    residual += i * p.axis[d].residual;
  }
  tile.a = p.a + (u64)a * a_width;
  tile.b = p.b + (u64)b * b_width;
  tile.out = p.out + (u64)out * out_width;
  tile.bias = p.bias ? p.bias + (u64)bias * out_width : 0;
  tile.residual = p.residual ? p.residual + (u64)residual * out_width : 0;
}

// The tile of a workgroup by its number. Tiles go in bands of eight rows of tiles, column by column, so
// that workgroups that run together share operands in the cache.
DEVICE Tile find_tile(const GemmParams &p, u32 bm, u32 bn, u32 a_width, u32 b_width, u32 out_width) {
  constexpr u32 BAND = 8;
  u32 rows = (p.m + bm - 1) / bm, columns = (p.n + bn - 1) / bn;
  u32 id = group_id(), per_matrix = rows * columns;
  u32 slice = id / per_matrix, in_matrix = id % per_matrix;
  u32 band = in_matrix / (BAND * columns), in_band = in_matrix % (BAND * columns);
  u32 band_rows = rows - band * BAND < BAND ? rows - band * BAND : BAND;
  u32 part = slice / p.batch, matrix = slice % p.batch;
  Tile tile;
  tile.row = (band * BAND + in_band % band_rows) * bm;
  tile.column = in_band / band_rows * bn;
  tile.k_begin = part * p.k_part;
  tile.k_end = p.k - tile.k_begin < p.k_part ? p.k : tile.k_begin + p.k_part;
  tile.slice = slice;
  tile.number = matrix * per_matrix + in_matrix, tile.part = part;
  find_matrix(p, tile, matrix, a_width, b_width, out_width);
  return tile;
}

// What a kernel stores for its sums: `T` in memory, `C` in the registers.
template <class T, class C> DEVICE C load_one(u64 address, i64 index) {
  T x = ((const T *)address)[index];
  if constexpr (sizeof(T) == 2) return widen(x);
  else return (C)x;
}
template <class T, class C> DEVICE T round_to(C x) {
  if constexpr (sizeof(T) == 2) return narrow<T>(x);
  else return (T)x;
}

template <class C> struct IsFloat { static constexpr bool value = false; };
template <> struct IsFloat<f32> { static constexpr bool value = true; };
template <> struct IsFloat<f64> { static constexpr bool value = true; };

// What becomes of a sum with its bias and residual, but for the function. Integers are added as they are.
template <class C> DEVICE C result_of(const GemmParams &p, C sum, C bias, C residual) {
  if constexpr (IsFloat<C>::value) {
    sum = (C)p.alpha * sum + (C)p.beta * bias + residual;
    return clamp_(sum < 0 ? sum * (C)p.slope : sum, (C)p.low, (C)p.high);
  } else {
    return sum + bias;
  }
}

// One result from its sum, less the function that `add_parts` applies.
template <class T, class C> DEVICE C finish_one(const GemmParams &p, const Tile &t, u32 row, u32 column, C sum) {
  C bias = 0, residual = 0;
  if (t.bias) bias = load_one<T, C>(t.bias, row * p.bias_row + column * p.bias_column);
  if (t.residual) residual = load_one<T, C>(t.residual, row * p.residual_row + column * p.residual_column);
  return result_of(p, sum, bias, residual);
}

// V neighbours of a row of bias or residual; what is beyond `count` is 0.
template <class T, class C, int V>
DEVICE void load_row(C (&to)[V], u64 address, i64 at, i64 stride, u32 count) {
  const T *from = (const T *)address + at;
  if (count == V && stride == 1 && (u64)from % sizeof(Pack<T, V>) == 0) {
    auto pack = *(const Pack<T, V> *)from;
#pragma unroll
    for (u32 v = 0; v < V; v++) to[v] = load_one<T, C>((u64)&pack.at[v], 0);
    return;
  }
#pragma unroll
  for (u32 v = 0; v < V; v++) to[v] = v < count ? load_one<T, C>((u64)from, v * stride) : (C)0;
}

// Stores V neighbouring results of a row; columns beyond the end are left out.
template <class T, class C, int V>
DEVICE void finish(const GemmParams &p, const Tile &t, u32 row, u32 column, const C *sums) {
  if (row >= p.m || column >= p.n) return;
  u32 count = p.n - column < V ? p.n - column : V;
  if (p.partial && !p.arrived) {
    C *to = (C *)p.partial + (t.slice * p.m + row) * p.n + column;
#pragma unroll
    for (u32 v = 0; v < V; v++)
      if (v < count) to[v] = sums[v];
    return;
  }
  C x[V], bias[V] = {}, residual[V] = {};
  if (t.bias) load_row<T, C, V>(bias, t.bias, row * p.bias_row + column * p.bias_column, p.bias_column, count);
  if (t.residual)
    load_row<T, C, V>(residual, t.residual, row * p.residual_row + column * p.residual_column, p.residual_column, count);
#pragma unroll
  for (u32 v = 0; v < V; v++) x[v] = result_of(p, sums[v], bias[v], residual[v]);
  if constexpr (sizeof(C) == 4 && IsFloat<C>::value) activate_pack<sizeof(T) == 2>(x, p.activation, p.act_a, p.act_b);
  Pack<T, V> pack;
#pragma unroll
  for (u32 v = 0; v < V; v++) pack.at[v] = round_to<T>(x[v]);
  T *to = (T *)t.out + row * p.out_row + column * p.out_column;
  if (count == V && p.out_column == 1 && (u64)to % sizeof(pack) == 0) {
    *(Pack<T, V> *)to = pack;
    return;
  }
#pragma unroll
  for (u32 v = 0; v < V; v++)
    if (v < count) to[v * p.out_column] = pack.at[v];
}

// For K in parts: leaves the COUNT sums of each work item, which `get` and `set` know by index, and adds all parts in
// order where this workgroup is the last one to arrive at its tile; tells whether it is.
template <class C, int COUNT, u32 ITEMS = GROUP, class Get, class Set, class Arrives>
DEVICE bool add_up(const GemmParams &p, const Tile &t, Get get, Set set, Arrives arrives) {
  u32 item = item_id();
  C *tiles = (C *)p.partial + (u64)t.number * p.parts * COUNT * ITEMS + item, *own = tiles + t.part * COUNT * ITEMS;
#pragma unroll
  for (int i = 0; i < COUNT; i++) own[i * ITEMS] = get(i);
  if (!arrives((u32 *)p.arrived + t.number, p.parts)) return false;
#pragma unroll
  for (int i = 0; i < COUNT; i++) set(i, (C)0);
#pragma unroll 1
  for (u32 part = 0; part < p.parts; part++, tiles += COUNT * ITEMS)
#pragma unroll
    for (int i = 0; i < COUNT; i++) set(i, get(i) + tiles[i * ITEMS]);
  return true;
}
template <class C, int COUNT, class Get, class Set> DEVICE bool add_up(const GemmParams &p, const Tile &t, Get get, Set set) {
  return add_up<C, COUNT>(p, t, get, set, [](u32 *word, u32 all) __attribute__((always_inline)) { return arrives_last(word, all); });
}

// Adds the parts of a split K in order, one result a work item.
template <class T, class C> DEVICE void add_parts(const GemmParams &p) {
  u64 at = (u64)group_id() * GROUP + item_id();
  u64 size = (u64)p.m * p.n, all = size * p.batch;
  if (at >= all) return;
  C sum = 0;
  for (u32 part = 0; part < p.parts; part++) sum += ((const C *)p.partial)[part * all + at];
  Tile tile;
  u32 in_matrix = (u32)(at % size);
  find_matrix(p, tile, (u32)(at / size), sizeof(T), sizeof(T), sizeof(T));
  u32 row = in_matrix / p.n, column = in_matrix % p.n;
  C y = finish_one<T, C>(p, tile, row, column, sum);
  if constexpr (IsFloat<C>::value)
    if (p.activation) y = activate(y, p.activation, (C)p.act_a, (C)p.act_b);
  ((T *)tile.out)[row * p.out_row + column * p.out_column] = round_to<T>(y);
}
