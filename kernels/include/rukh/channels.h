// Packs of neighbouring channels of images that have their channels innermost: 16 bytes where every pack is WHOLE and
// aligned, single elements elsewhere. A kernel asks once and has code for both, so that its loads need no branch.
#pragma once
#include "element.h"

// V channels, or `count` where there are fewer.
template <class T, int V, bool WHOLE> DEVICE void load_channels(f32 (&to)[V], const T *from, u32 count) {
  if constexpr (WHOLE) {
    auto pack = *(const Pack<T, V> *)from;
    UNROLL
    for (u32 v = 0; v < V; v++) to[v] = widen(pack.at[v]);
    return;
  }
  UNROLL
  for (u32 v = 0; v < V; v++) to[v] = v < count ? widen(from[v]) : 0;
}

template <class T, int V, bool WHOLE> DEVICE void store_channels(T *to, const f32 (&from)[V], u32 count) {
  Pack<T, V> pack;
  UNROLL
  for (u32 v = 0; v < V; v++) pack.at[v] = narrow<T>(from[v]);
  if constexpr (WHOLE) {
    *(Pack<T, V> *)to = pack;
    return;
  }
  UNROLL
  for (u32 v = 0; v < V; v++)
    if (v < count) to[v] = pack.at[v];
}
