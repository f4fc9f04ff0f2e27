// Packs of neighbouring channels of an image that has its channels innermost: 16 bytes where the pack is whole and
// aligned, single elements elsewhere.
#pragma once
#include "element.h"

// V channels, or `count` where there are fewer.
template <class T, int V> DEVICE void load_channels(f32 (&to)[V], const T *from, u32 count) {
  if (count == V && (u64)from % (sizeof(T) * V) == 0) {
    auto pack = *(const Pack<T, V> *)from;
    UNROLL
    for (u32 v = 0; v < V; v++) to[v] = widen(pack.at[v]);
    return;
  }
  UNROLL
  for (u32 v = 0; v < V; v++) to[v] = v < count ? widen(from[v]) : 0;
}

template <class T, int V> DEVICE void store_channels(T *to, const f32 (&from)[V], u32 count) {
  Pack<T, V> pack;
  UNROLL
  for (u32 v = 0; v < V; v++) pack.at[v] = narrow<T>(from[v]);
  if (count == V && (u64)to % sizeof(pack) == 0) {
    *(Pack<T, V> *)to = pack;
    return;
  }
  UNROLL
  for (u32 v = 0; v < V; v++)
    if (v < count) to[v] = pack.at[v];
}
