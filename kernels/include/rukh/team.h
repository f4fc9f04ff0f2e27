// Teams: 2^k neighbouring work items of a workgroup (1 to GROUP) that put their values together. The
// size is a run-time number, the same for the whole launch.
#pragma once
#include "device.h"

// The value of the lane whose number differs in the bits of `mask`, for any type of whole dwords.
template <class T> DEVICE T shuffle(T value, u32 mask) {
  struct Words {
    u32 at[sizeof(T) / 4];
  };
  Words words = bits<Words>(value);
  for (u32 &word : words.at) word = lane_xor(word, mask);
  return bits<T>(words);
}

// What `join` makes of the values of all work items of the team; every one of them gets it. Every work
// item of the workgroup must arrive. `join` must be associative and commutative. `lds` has an element
// for each wave (GROUP / 32 at most).
template <class T, class Join> DEVICE T team_join(T value, u32 team, T *lds, Join join) {
  u32 within = team < WAVE ? team : WAVE;
  for (u32 mask = 1; mask < within; mask *= 2) value = join(value, shuffle(value, mask));
  if (team > WAVE) {
    u32 waves = team / WAVE, first = item_id() / team * waves;
    // An earlier join may still be read.
    barrier();
    if (item_id() % WAVE == 0) lds[item_id() / WAVE] = value;
    barrier();
    value = lds[first];
    for (u32 w = 1; w < waves; w++) value = join(value, lds[first + w]);
  }
  return value;
}

constexpr u32 MAX_WAVES = GROUP / 32;
