// Packs of V neighbouring elements of a tensor whose type is known at run time: one wide load or store
// where address and count allow it, single elements elsewhere.
#pragma once
#include "element.h"

template <class T, int V> DEVICE bool packed(u64 address) { return address % (sizeof(T) * V) == 0; }

// Loads the pack of V elements that starts at `at`, all of which are there.
template <class C, class T, int V> DEVICE void load_pack(C *to, u64 address) {
  auto pack = *(const Pack<T, V> *)address;
  UNFOLD
  for (int v = 0; v < V; v++) to[v] = (C)pack.at[v];
}

// Elements `at` to `at + count`; beyond the count, `fill`.
template <class C, int V>
DEVICE void load_dense(C *to, u64 address, u32 type, u64 at, int count, C fill) {
  if (count == V) {
    u64 half = address + at * 2, word = address + at * 4;
    if (type == F32 && packed<f32, V>(word)) return load_pack<C, f32, V>(to, word);
    if (type == F16 && packed<f16, V>(half)) return load_pack<C, f16, V>(to, half);
    if (type == BF16 && packed<u16, V>(half)) {
      auto pack = *(const Pack<u16, V> *)half;
      UNFOLD
      for (int v = 0; v < V; v++) to[v] = (C)from_bf16(pack.at[v]);
      return;
    }
  }
  UNFOLD
  for (int v = 0; v < V; v++) to[v] = v < count ? load_as<C>(address, type, at + v) : fill;
}

template <class C, int V>
DEVICE void store_dense(u64 address, u32 type, u64 at, const C *from, int count) {
  if (count == V) {
    u64 half = address + at * 2, word = address + at * 4;
    if (type == F32 && packed<f32, V>(word)) {
      Pack<f32, V> pack;
      UNFOLD
      for (int v = 0; v < V; v++) pack.at[v] = (f32)from[v];
      *(Pack<f32, V> *)word = pack;
      return;
    }
    if (type == F16 && packed<f16, V>(half)) {
      Pack<f16, V> pack;
      UNFOLD
      for (int v = 0; v < V; v++) pack.at[v] = (f16)(f32)from[v];
      *(Pack<f16, V> *)half = pack;
      return;
    }
    if (type == BF16 && packed<u16, V>(half)) {
      Pack<u16, V> pack;
      UNFOLD
      for (int v = 0; v < V; v++) pack.at[v] = to_bf16((f32)from[v]);
      *(Pack<u16, V> *)half = pack;
      return;
    }
  }
  UNFOLD
  for (int v = 0; v < V; v++)
    if (v < count) store_as(address, type, at + v, from[v]);
}
