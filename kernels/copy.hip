// Copies whose index arithmetic is regular: Transpose, Slice, Concat, Split, Expand, Tile, Pad, Resize to the
// nearest element, and their kin.
//
// Elements are moved in units of 1 to 16 bytes, whatever their type. Access: consecutive work items write
// consecutive units; copy_transpose reads and writes rows of 32 or 64 elements through workgroup memory. Bound:
// bytes read and written over the memory bandwidth.
#include "rukh/move.h"

constexpr int MAX_RANK = 12;

struct CopyParams {
  u64 to, from;
  // Units to move; below 2^31 (the host cuts larger copies).
  u32 count;
  u32 rank;
  // Bytes of a unit and of an element.
  u32 unit, size;
  // The units in the order of the output, innermost last.
  Divider dims[MAX_RANK];
  // Bytes between neighbours of each dimension.
  i64 to_strides[MAX_RANK], from_strides[MAX_RANK];
};
static_assert(sizeof(CopyParams) == 368, "the mirror in providers/hip/copy/strided.rs");

// Units of a work item, a workgroup's width apart: several loads are in flight before the first store.
constexpr int PER_ITEM = 4;

template <class U> DEVICE void copy(const CopyParams &p) {
  u32 first = group_id() * (GROUP * PER_ITEM) + item_id();
  u32 rest[PER_ITEM];
  u64 to[PER_ITEM], from[PER_ITEM];
  for (int k = 0; k < PER_ITEM; k++) rest[k] = first + k * GROUP, to[k] = p.to, from[k] = p.from;
  for (i32 d = (i32)p.rank - 1; d > 0; d--) {
    Divider dim = p.dims[d];
    for (int k = 0; k < PER_ITEM; k++) {
      u32 outer = divide(rest[k], dim);
      i64 at = rest[k] - outer * dim.divisor;
      to[k] += at * p.to_strides[d];
      from[k] += at * p.from_strides[d];
      rest[k] = outer;
    }
  }
  U moved[PER_ITEM];
  for (int k = 0; k < PER_ITEM; k++) {
    to[k] += (i64)rest[k] * p.to_strides[0];
    from[k] += (i64)rest[k] * p.from_strides[0];
    if (first + k * GROUP < p.count) moved[k] = *(const GLOBAL U *)from[k];
  }
  for (int k = 0; k < PER_ITEM; k++)
    if (first + k * GROUP < p.count) *(GLOBAL U *)to[k] = moved[k];
}

// A copy between addresses that are not aligned to the units.
DEVICE void copy_elements(const CopyParams &p) {
  for (int k = 0; k < PER_ITEM; k++) {
    u32 rest = group_id() * (GROUP * PER_ITEM) + item_id() + k * GROUP;
    if (rest >= p.count) return;
    u64 to = p.to, from = p.from;
    for (i32 d = (i32)p.rank - 1; d >= 0; d--) {
      u32 outer = d ? divide(rest, p.dims[d]) : 0;
      i64 at = rest - outer * p.dims[d].divisor;
      to += at * p.to_strides[d];
      from += at * p.from_strides[d];
      rest = outer;
    }
    for (u32 at = 0; at < p.unit; at += p.size) move_bytes(to + at, from + at, p.size);
  }
}

KERNEL(GROUP) copy_strided(CopyParams p) {
  // A plan may let the output take the input's memory.
  if (p.to == p.from) return;
  if ((p.to | p.from) & (p.unit - 1)) return copy_elements(p);
  switch (p.unit) {
  case 1: return copy<u8>(p);
  case 2: return copy<u16>(p);
  case 4: return copy<u32>(p);
  case 8: return copy<u64>(p);
  default: return copy<Unit16>(p);
  }
}

struct TransposeParams {
  u64 to, from;
  // Of one matrix: elements along `from`'s contiguous dimension (columns) and along `to`'s (rows).
  u32 rows, columns;
  // Bytes from a row to the next in `from`, from a column to the next in `to`.
  i64 from_row, to_column;
  u32 rank;
  u32 size;
  Divider row_tiles, column_tiles;
  // The matrices.
  Divider dims[MAX_RANK];
  i64 to_strides[MAX_RANK], from_strides[MAX_RANK];
  // Whether tiles are wide: every stride, offset and dimension a multiple of 16 bytes.
  u32 wide, unused;
};
static_assert(sizeof(TransposeParams) == 416, "the mirror in providers/hip/copy/strided.rs");

// 16 bytes as dwords.
typedef u32 Quad __attribute__((ext_vector_type(4)));

constexpr u32 TILE = 32;
constexpr u32 STEP = GROUP / TILE;

// One matrix of a transposition, as in its parameters.
struct Matrix {
  u32 rows, columns;
  i64 from_row, to_column;
};

// A tile of 32 x 32 elements, each in W dwords. A row has one dword more, so that neither rows nor columns
// meet in one bank.
template <class T, int W>
DEVICE void transpose_tile(Matrix p, u32 (*tile)[TILE][TILE + 1], u64 to, u64 from, u32 row,
                           u32 column) {
  struct Words {
    u32 at[W];
  };
  u32 lane = item_id() % TILE, first = item_id() / TILE;
  for (u32 k = first; k < TILE; k += STEP) {
    if (row + k >= p.rows || column + lane >= p.columns) continue;
    T x = *(const GLOBAL T *)(from + (i64)(row + k) * p.from_row + (u64)(column + lane) * sizeof(T));
    if constexpr (sizeof(T) < 4) {
      tile[0][k][lane] = x;
    } else {
      Words words = bits<Words>(x);
      for (int w = 0; w < W; w++) tile[w][k][lane] = words.at[w];
    }
  }
  barrier();
  for (u32 k = first; k < TILE; k += STEP) {
    if (row + lane >= p.rows || column + k >= p.columns) continue;
    GLOBAL T *place = (GLOBAL T *)(to + (i64)(column + k) * p.to_column + (u64)(row + lane) * sizeof(T));
    if constexpr (sizeof(T) < 4) {
      *place = (T)tile[0][lane][k];
    } else {
      Words words;
      for (int w = 0; w < W; w++) words.at[w] = tile[w][lane][k];
      *place = bits<T>(words);
    }
  }
}

// Edge of a tile of elements of two or four bytes whose rows and columns are whole units of 16 bytes.
constexpr u32 WIDE = 64;

// A wide tile of elements of four bytes. Units are of a row, in workgroup memory they lie dword by dword, and
// units of a column leave; a row has one dword more.
DEVICE void transpose_words(Matrix p, u32 *tile, u64 to, u64 from, u32 row, u32 column) {
  constexpr u32 PITCH = WIDE + 1, LINES = GROUP / 16, STEPS = WIDE / LINES;
  u32 lane = item_id() % 16 * 4, line = item_id() / 16;
  Quad x[STEPS];
  UNROLL
  for (u32 k = 0; k < STEPS; k++) {
    u32 r = line + k * LINES;
    if (row + r < p.rows && column + lane < p.columns)
      x[k] = *(const GLOBAL Quad *)(from + (i64)(row + r) * p.from_row + (u64)(column + lane) * 4);
  }
  UNROLL
  for (u32 k = 0; k < STEPS; k++)
    UNROLL
    for (u32 v = 0; v < 4; v++) tile[(line + k * LINES) * PITCH + lane + v] = x[k][v];
  barrier();
  UNROLL
  for (u32 k = 0; k < STEPS; k++) {
    u32 c = line + k * LINES;
    Quad y;
    UNROLL
    for (u32 v = 0; v < 4; v++) y[v] = tile[(lane + v) * PITCH + c];
    if (row + lane < p.rows && column + c < p.columns)
      *(GLOBAL Quad *)(to + (i64)(column + c) * p.to_column + (u64)(row + lane) * 4) = y;
  }
}

// A wide tile of elements of two bytes. A work item reads units of two neighbouring rows; a dword in workgroup
// memory has two rows of one column.
DEVICE void transpose_halves(Matrix p, u32 *tile, u64 to, u64 from, u32 row, u32 column) {
  constexpr u32 PITCH = WIDE / 2 + 1, LINES = GROUP / 8, STEPS = WIDE / LINES;
  u32 lane = item_id() % 8 * 8, line = item_id() / 8;
  Quad x[2];
  UNROLL
  for (u32 k = 0; k < 2; k++) {
    u32 r = line * 2 + k;
    x[k] = (Quad)0;
    if (row + r < p.rows && column + lane < p.columns)
      x[k] = *(const GLOBAL Quad *)(from + (i64)(row + r) * p.from_row + (u64)(column + lane) * 2);
  }
  UNROLL
  for (u32 v = 0; v < 4; v++) {
    tile[(lane + 2 * v) * PITCH + line] = (x[0][v] & 0xffff) | x[1][v] << 16;
    tile[(lane + 2 * v + 1) * PITCH + line] = x[0][v] >> 16 | (x[1][v] & 0xffff0000u);
  }
  barrier();
  UNROLL
  for (u32 k = 0; k < STEPS; k++) {
    u32 c = line + k * LINES;
    Quad y;
    UNROLL
    for (u32 v = 0; v < 4; v++) y[v] = tile[c * PITCH + lane / 2 + v];
    if (row + lane < p.rows && column + c < p.columns)
      *(GLOBAL Quad *)(to + (i64)(column + c) * p.to_column + (u64)(row + lane) * 2) = y;
  }
}

KERNEL(GROUP) copy_transpose(TransposeParams p) {
  SHARED static u32 words[WIDE * (WIDE + 1)];
  u32(*tile)[TILE][TILE + 1] = (u32(*)[TILE][TILE + 1]) words;
  u32 edge = p.wide ? WIDE : TILE;
  u32 outer = divide(group_id(), p.row_tiles);
  u32 row = (group_id() - outer * p.row_tiles.divisor) * edge;
  u32 rest = divide(outer, p.column_tiles);
  u32 column = (outer - rest * p.column_tiles.divisor) * edge;
  u64 to = p.to, from = p.from;
  for (i32 d = (i32)p.rank - 1; d >= 0; d--) {
    u32 next = d ? divide(rest, p.dims[d]) : 0;
    i64 at = rest - next * p.dims[d].divisor;
    to += at * p.to_strides[d];
    from += at * p.from_strides[d];
    rest = next;
  }
  Matrix m{p.rows, p.columns, p.from_row, p.to_column};
  if (p.wide && (p.to | p.from) % sizeof(Quad) == 0) {
    if (p.size == 4) transpose_words(m, words, to, from, row, column);
    else transpose_halves(m, words, to, from, row, column);
    return;
  }
#pragma unroll 1
  for (u32 part = 0; part < edge * edge; part += TILE * TILE) {
    u32 r = row + part / (TILE * edge) * TILE, c = column + part / TILE % edge;
    switch (p.size) {
    case 1: transpose_tile<u8, 1>(m, tile, to, from, r, c); break;
    case 2: transpose_tile<u16, 1>(m, tile, to, from, r, c); break;
    case 4: transpose_tile<u32, 1>(m, tile, to, from, r, c); break;
    default: transpose_tile<u64, 2>(m, tile, to, from, r, c); break;
    }
    barrier();
  }
}

// How a coordinate of the output becomes one of the input.
enum Rule : u32 { SAME = 0, CONSTANT = 1, EDGE = 2, REFLECT = 3, WRAP = 4, LISTED = 5 };

struct AxisRule {
  // Subtracted from the output's coordinate first.
  i64 before;
  // Elements of the input's axis.
  i64 length;
  // Bytes between neighbours of the input.
  i64 stride;
  Divider dim;
  u32 rule;
  // For LISTED: where the axis's coordinates begin in the table; -1 there stands for none.
  u32 list;
  u32 unused;
};
static_assert(sizeof(AxisRule) == 48, "the mirror in providers/hip/copy/mapped.rs");

constexpr int MAPPED_RANK = 10;

struct MappedParams {
  u64 to, from, table;
  Fill fill;
  u64 count;
  u32 rank;
  u32 unit, size;
  // Bytes of the element that fills: 16 where `size` is half of it.
  u32 fill_size;
  AxisRule axes[MAPPED_RANK];
};
static_assert(sizeof(MappedParams) == 552, "the mirror in providers/hip/copy/mapped.rs");

// The input's coordinate, -1 where there is none.
DEVICE i64 source(const AxisRule &axis, u64 table, i64 at) {
  if (axis.rule == LISTED) return ((const GLOBAL i32 *)table)[axis.list + at];
  i64 x = at - axis.before, n = axis.length;
  if (axis.rule == SAME || (x >= 0 && x < n)) return x;
  switch (axis.rule) {
  case EDGE: return x < 0 ? 0 : n - 1;
  case WRAP: {
    i64 r = x % n;
    return r < 0 ? r + n : r;
  }
  case REFLECT: {
    // The mirrored sequence has the period 2(n - 1).
    if (n == 1) return 0;
    i64 period = 2 * (n - 1);
    i64 r = x % period;
    if (r < 0) r += period;
    return r < n ? r : period - r;
  }
  default: return -1;
  }
}

KERNEL(GROUP) copy_mapped(MappedParams p) {
  u64 index = (u64)group_id() * GROUP + item_id();
  if (index >= p.count) return;
  u64 rest = index, from = p.from;
  bool inside = true;
  for (i32 d = (i32)p.rank - 1; d >= 0; d--) {
    u64 outer = d ? divide_wide(rest, p.axes[d].dim) : 0;
    i64 at = source(p.axes[d], p.table, (i64)(rest - outer * p.axes[d].dim.divisor));
    inside = inside && at >= 0;
    from += at * p.axes[d].stride;
    rest = outer;
  }
  u64 to = p.to + index * p.unit;
  if (inside) move_unit(to, from, p.unit, p.size);
  else store_unit(to, pattern(p.fill, p.fill_size), p.unit, p.size);
}
