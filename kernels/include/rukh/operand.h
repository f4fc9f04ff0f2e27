// Where the elements of a product's operands come from: memory with strides, bytes less a zero point,
// or the patches of an image.
//
// Every operand has "lines", the rows of A or the columns of B, along each of which K runs. `along_k` and
// `along_lines` read V elements in either direction; what lies beyond the matrix reads as 0.
//
// Tiles ask along k step by step, with rising k: `begin_step` says at which k this work item's chunks of the step
// lie, then `chunk` says where the c-th of them lies and how many of its bytes count, or `pack_along_k` reads it. An operand may so keep what it found out of each line.
#pragma once
#include "gemm.h"

template <class T, class C> DEVICE C as(T x) {
  if constexpr (sizeof(T) == sizeof(C)) return bits<C>(x);
  else if constexpr (sizeof(T) == 2) return widen(x);
  else return (C)x;
}

template <class T> struct Strided {
  typedef T Element;
  // Whether aligned packs may be copied as they are.
  static constexpr bool COPIES = true;

  const T *at;
  i64 line_stride, k_stride;
  u32 lines, k_end;
  // Whether packs of V elements are aligned along k, or along the lines.
  bool packs_along_k, packs_along_lines;

  // Rows of A or columns of B. V elements make a pack.
  DEVICE Strided make(u64 address, i64 line_stride, i64 k_stride, u32 lines, u32 k_end, int v) {
    bool aligned = address % (sizeof(T) * v) == 0;
    return {(const T *)address, line_stride, k_stride, lines, k_end,
            aligned && k_stride == 1 && line_stride % v == 0, aligned && line_stride == 1 && k_stride % v == 0};
  }

  // Which direction reads whole cache lines.
  METHOD bool prefers_k() const { return k_stride == 1; }

  template <class C, int V> METHOD void along_k(C *to, u32 line, u32 k) const {
    const T *from = at + line * line_stride + k * k_stride;
    if (line < lines && packs_along_k && k + V <= k_end) {
      auto pack = *(const Pack<T, V> *)from;
      for (int v = 0; v < V; v++) to[v] = as<T, C>(pack.at[v]);
      return;
    }
    for (int v = 0; v < V; v++) {
      T x{};
      if (line < lines && k + v < k_end) x = from[v * k_stride];
      to[v] = as<T, C>(x);
    }
  }

  METHOD void begin_step(u32) {}
  METHOD const T *chunk(int, u32 line, u32 k, u32 &valid) const {
    bool inside = line < lines && k < k_end;
    valid = !inside ? 0 : k_end - k < 8 ? (k_end - k) * 2 : 16;
    return inside ? at + line * line_stride + k : at;
  }
  // Where eight neighbours along the lines lie, at one k.
  METHOD const T *line_chunk(u32 line, u32 k, bool &inside) const {
    inside = line < lines && k < k_end;
    return inside ? at + line + k * k_stride : at;
  }
  template <class C, int V> METHOD void pack_along_k(C *to, int, u32 line, u32 k) const {
    along_k<C, V>(to, line, k);
  }

  template <class C, int V> METHOD void along_lines(C *to, u32 line, u32 k) const {
    const T *from = at + line * line_stride + k * k_stride;
    if (k < k_end && packs_along_lines && line + V <= lines) {
      auto pack = *(const Pack<T, V> *)from;
      for (int v = 0; v < V; v++) to[v] = as<T, C>(pack.at[v]);
      return;
    }
    for (int v = 0; v < V; v++) {
      T x{};
      if (k < k_end && line + v < lines) x = from[v * line_stride];
      to[v] = as<T, C>(x);
    }
  }
};

// Eight-bit numbers, of either sign, less their zero points.
struct Bytes {
  static constexpr bool COPIES = false;
  Strided<u8> raw;
  bool is_signed;
  const u8 *zeros;
  // 0 where one zero point serves all lines.
  u32 zero_stride;

  METHOD i32 value(u8 x) const { return is_signed ? (i32)(i8)x : (i32)x; }
  METHOD i32 zero(u32 line) const { return zeros ? value(zeros[line * zero_stride]) : 0; }
  METHOD bool prefers_k() const { return raw.prefers_k(); }

  template <class C, int V> METHOD void along_k(C *to, u32 line, u32 k) const {
    u8 x[V];
    raw.along_k<u8, V>(x, line, k);
    i32 z = line < raw.lines ? zero(line) : 0;
    for (int v = 0; v < V; v++) to[v] = k + v < raw.k_end && line < raw.lines ? value(x[v]) - z : 0;
  }
  METHOD void begin_step(u32) {}
  template <class C, int V> METHOD void pack_along_k(C *to, int, u32 line, u32 k) const {
    along_k<C, V>(to, line, k);
  }
  template <class C, int V> METHOD void along_lines(C *to, u32 line, u32 k) const {
    u8 x[V];
    raw.along_lines<u8, V>(x, line, k);
    for (int v = 0; v < V; v++) {
      bool inside = k < raw.k_end && line + v < raw.lines;
      to[v] = inside ? value(x[v]) - zero(line + v) : 0;
    }
  }
};

// The operands of a plain product.
template <class T, int V> DEVICE Strided<T> operand_a(const GemmParams &p, const Tile &t) {
  return Strided<T>::make(t.a, p.a_row, p.a_column, p.m, t.k_end, V);
}
template <class T, int V> DEVICE Strided<T> operand_b(const GemmParams &p, const Tile &t) {
  return Strided<T>::make(t.b, p.b_column, p.b_row, p.n, t.k_end, V);
}
