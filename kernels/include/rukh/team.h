// Teams: 2^k neighbouring work items of a workgroup (1 to GROUP) that put their values together. The
// size is a run-time number, the same for the whole launch.
#pragma once
#include "device.h"

// Which of the workgroup's teams a work item is in, and which of the team's lanes it is.
DEVICE u32 team_of_item(u32 team) { return item_id() >> __builtin_ctz(team); }
DEVICE u32 lane_in_team(u32 team) { return item_id() & (team - 1); }
DEVICE u32 teams_of_group(u32 team) { return GROUP >> __builtin_ctz(team); }

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
    u32 waves = team / WAVE, first = team_of_item(team) * waves;
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

// The sum of the values of all work items of the team, as `team_join` gives it, in straight code: what a kernel that
// waits for little else should not wait for. `lds` is for this sum alone, so that one barrier is enough.
template <class C> DEVICE C team_sum(C value, u32 team, C *lds) {
  UNROLL
  for (u32 mask = 1; mask < WAVE; mask *= 2) {
    C other = shuffle(value, mask);
    value += mask < team ? other : (C)0;
  }
  if (team > WAVE) {
    u32 waves = team / WAVE, first = team_of_item(team) * waves;
    if (item_id() % WAVE == 0) lds[item_id() / WAVE] = value;
    barrier();
    value = 0;
    UNROLL
    for (u32 w = 0; w < MAX_WAVES; w++) value += w < waves ? lds[(first + w) % MAX_WAVES] : (C)0;
  }
  return value;
}
