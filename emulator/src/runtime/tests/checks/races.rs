//! Races.

use super::{Case, run};

const CASES: &[Case] = &[
    Case {
        name: "LDS without a barrier",
        source: "SHARED static volatile int place[256]; place[ITEM] = ITEM; data[ITEM] = place[255 - ITEM];",
        groups: 1,
        items: 256,
        expected: "a race: lane",
    },
    Case {
        name: "LDS with a barrier",
        source: "SHARED static volatile int place[256]; place[ITEM] = ITEM; barrier(); data[ITEM] = place[255 - ITEM];",
        groups: 2,
        items: 256,
        expected: "",
    },
    Case {
        name: "LDS, written again without a second barrier",
        source: "SHARED static volatile int place[256];
            for (int i = 0; i < 3; ++i) { place[ITEM] = ITEM + i; barrier(); data[ITEM] += place[255 - ITEM]; }",
        groups: 1,
        items: 256,
        expected: "of LDS, which lane",
    },
    Case {
        name: "bytes of one word",
        source: "SHARED static volatile char place[256]; place[(ITEM & 63) * 4 + ITEM / 64] = ITEM;",
        groups: 1,
        items: 256,
        expected: "",
    },
    Case {
        name: "LDS, the same value",
        source: "SHARED static volatile int place[1]; place[0] = 7;",
        groups: 1,
        items: 256,
        expected: "",
    },
    Case {
        name: "atomic operations",
        source: "SHARED static int count; if (ITEM == 0) count = 0; barrier();
            __hip_atomic_fetch_add(&count, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); barrier();
            __hip_atomic_fetch_add(data, count, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);",
        groups: 4,
        items: 256,
        expected: "",
    },
    Case {
        name: "a counter that is not atomic",
        source: "data[0] += 1;",
        groups: 3,
        items: 32,
        expected: "nothing orders the two workgroups",
    },
    Case {
        name: "workgroups that write different values",
        source: "data[ITEM] = GROUP;",
        groups: 3,
        items: 64,
        expected: "of global memory, which lane",
    },
    Case {
        name: "global memory within a workgroup",
        source: "data[ITEM] = ITEM; __builtin_amdgcn_wave_barrier(); data[ITEM + 512] = data[255 - ITEM];",
        groups: 1,
        items: 256,
        expected: "no barrier is between the two",
    },
    Case {
        name: "global memory within a workgroup, with a barrier",
        source: "volatile int *place = data; place[ITEM] = ITEM; barrier(); place[ITEM + 512] = place[255 - ITEM];",
        groups: 1,
        items: 256,
        expected: "",
    },
    Case {
        name: "an atomic and a plain store",
        source: "if (GROUP == 0) __hip_atomic_fetch_add(data, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
            else *data = 3;",
        groups: 2,
        items: 64,
        expected: "a race: lane",
    },
    Case {
        name: "the last workgroup sums up",
        source: LAST,
        groups: 9,
        items: 128,
        expected: "",
    },
    Case {
        name: "the last workgroup sums up, without an order",
        source: LAST_RELAXED,
        groups: 9,
        items: 128,
        expected: "nothing orders the two workgroups",
    },
    Case { name: "a flag", source: FLAG, groups: 2, items: 32, expected: "" },
];

const LAST: &str = r#"
KERNEL(int *data) {
  SHARED static int last;
  data[64 + GROUP * 128 + ITEM] = ITEM;
  barrier();
  if (ITEM == 0) last = __hip_atomic_fetch_add(data, 1, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT) == 8;
  barrier();
  if (last) {
    int sum = 0;
    for (int i = 0; i < 9; ++i) sum += data[64 + i * 128 + ITEM];
    data[2048 + ITEM] = sum;
  }
}"#;

const LAST_RELAXED: &str = r#"
KERNEL(int *data) {
  SHARED static int last;
  data[64 + GROUP * 128 + ITEM] = ITEM;
  barrier();
  if (ITEM == 0) last = __hip_atomic_fetch_add(data, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 8;
  barrier();
  if (last) {
    int sum = 0;
    for (int i = 0; i < 9; ++i) sum += ((volatile int *)data)[64 + i * 128 + ITEM];
    data[2048 + ITEM] = sum;
  }
}"#;

const FLAG: &str = r#"
KERNEL(int *data) {
  if (GROUP == 0) {
    data[64 + ITEM] = ITEM;
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
    if (ITEM == 0) __hip_atomic_store(data, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  } else {
    int seen = __hip_atomic_load(data, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
    if (seen) data[128 + ITEM] = data[64 + ITEM];
  }
}"#;

#[test]
fn on_gfx1100() {
    run("gfx1100", "races", CASES);
}

#[test]
fn on_gfx90a() {
    run("gfx90a", "races", CASES);
}

#[test]
fn on_gfx1201() {
    run("gfx1201", "races", CASES);
}
