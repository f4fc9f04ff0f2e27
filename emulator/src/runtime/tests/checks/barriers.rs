//! Barriers that not all work items reach.

use super::{Case, run};

const CASES: &[Case] = &[
    Case {
        name: "in a branch that some lanes take",
        source: "if (ITEM & 1) { data[ITEM] = 1; barrier(); } data[ITEM] += 2;",
        groups: 1,
        items: 128,
        expected: "a barrier that not all work items reach",
    },
    Case {
        name: "behind a branch",
        source: "if (ITEM & 1) data[ITEM] = 1; barrier(); data[ITEM] += 2;",
        groups: 1,
        items: 128,
        expected: "",
    },
    Case {
        name: "work items that end before it",
        source: "if (ITEM >= 100) return; data[ITEM] = 1; barrier(); data[ITEM] += 2; barrier(); data[ITEM] += 3;",
        groups: 1,
        items: 192,
        expected: "",
    },
    Case {
        name: "a workgroup that is no whole number of waves",
        source: "data[ITEM] = 1; barrier(); data[ITEM] += 2;",
        groups: 1,
        items: 100,
        expected: "",
    },
    Case {
        name: "a loop that lanes leave at different times",
        source: "for (int i = 0; i < (int)(ITEM & 3); ++i) { data[ITEM] += i; barrier(); } data[ITEM] += 5;",
        groups: 1,
        items: 64,
        expected: "a barrier that not all work items reach",
    },
    Case {
        name: "different barriers",
        source:
            "if (__builtin_amdgcn_readfirstlane(ITEM / 64)) { data[ITEM] = 1; barrier(); data[ITEM] += 3; }
            else { data[ITEM] = 2; barrier(); data[ITEM] += 5; }",
        groups: 1,
        items: 128,
        expected: "different barriers: wave",
    },
];

#[test]
fn on_gfx1100() {
    run("gfx1100", "barriers", CASES);
}

#[test]
fn on_gfx90a() {
    run("gfx90a", "barriers", CASES);
}

#[test]
fn on_gfx1201() {
    run("gfx1201", "barriers", CASES);
}
