// Workgroups that share a result: the one that arrives last puts their parts together. Nobody waits.
#pragma once
#include "device.h"

// Counts this workgroup's arrival at `word`, which is 0 before the first and after the last of `all`. Tells whether it is
// the last, which then sees what the others wrote before they arrived. `last`: a word of workgroup memory; `wait`: a
// barrier of the work items that call this, item 0 among them.
template <class Wait> DEVICE bool arrives_last(u32 *word, u32 all, u32 &last, Wait wait) {
  fence_device();
  wait();
  if (item_id() == 0) {
    last = add_on_device(word, 1) + 1 == all;
    // What the others left before they arrived is seen from here on, after the barrier by all items.
    fence_device();
    if (last) *word = 0;
  }
  wait();
  return last;
}
DEVICE bool arrives_last(u32 *word, u32 all) {
  SHARED u32 last;
  return arrives_last(word, all, last, [] __attribute__((always_inline)) { barrier(); });
}
