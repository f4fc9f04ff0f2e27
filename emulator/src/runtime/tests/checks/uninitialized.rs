//! Values that nobody wrote.

use super::{Case, run};

const fn case(name: &'static str, source: &'static str, expected: &'static str) -> Case {
    Case { name, source, groups: 2, items: 128, expected }
}

const CASES: &[Case] = &[
    case(
        "a register that is stored",
        r#"int x; asm volatile("v_mov_b32 %0, v40" : "=v"(x) : : "v40"); data[ITEM] = x + 1;"#,
        "uninitialized: lane 0 stores",
    ),
    case(
        "a register of which nothing is left",
        r#"int x; asm volatile("v_mov_b32 %0, v40" : "=v"(x) : : "v40"); data[ITEM] = (x & 0) + (x ^ x) + (x | -1);"#,
        "",
    ),
    case(
        "half a register",
        r#"int x; asm volatile("v_mov_b32 %0, v40" : "=v"(x) : : "v40"); data[ITEM] = x << 16 | 7; ((short *)data)[8000 + ITEM] = x << 16 >> 16;"#,
        "uninitialized: lane 0 stores",
    ),
    case(
        "the other half of a register",
        r#"int x; asm volatile("v_mov_b32 %0, v40" : "=v"(x) : : "v40"); x = x << 16 | 7; ((short *)data)[ITEM] = x;"#,
        "",
    ),
    case(
        "an address",
        r#"int x; asm volatile("v_mov_b32 %0, v40" : "=v"(x) : : "v40"); data[x & 1] = 3;"#,
        "uninitialized: the address in v",
    ),
    case(
        "a branch of some lanes",
        r#"int x; asm volatile("v_mov_b32 %0, v40" : "=v"(x) : : "v40"); if (x & 4) data[ITEM] = 3;"#,
        "uninitialized: whether lane",
    ),
    case(
        "a branch of all lanes",
        r#"int x; asm volatile("s_mov_b32 %0, s40" : "=s"(x) : : "s40"); if (x < 0) __builtin_amdgcn_s_sleep(1);"#,
        "uninitialized: the branch by",
    ),
    case(
        "LDS",
        "SHARED static int place[256]; place[ITEM * 2] = 1; barrier(); data[ITEM] = place[ITEM];",
        "uninitialized: lane 1 stores",
    ),
    case(
        "LDS that is written",
        "SHARED static int place[256]; place[ITEM * 2] = 1; barrier(); data[ITEM] = place[ITEM & ~1];",
        "",
    ),
    case("new memory", "KERNEL(int *data, int *fresh) { data[ITEM] = fresh[ITEM] * 2; }", "uninitialized: lane 0 stores"),
    case(
        "new memory by a scalar load",
        "KERNEL(int *data, int *fresh) { if (fresh[3] < 5) data[ITEM] = 4; }",
        "uninitialized: ",
    ),
    case(
        "new memory that is written",
        "KERNEL(int *data, int *fresh) { fresh[ITEM] = 5; barrier(); data[ITEM] = fresh[ITEM] * 2; }",
        "",
    ),
    case(
        "a byte of new memory",
        "KERNEL(int *data, int *fresh) { volatile char *bytes = (volatile char *)fresh; bytes[4 * ITEM + 1] = 3;
         data[ITEM] = ((volatile int *)fresh)[ITEM] >> 8 & 255; }",
        "",
    ),
    case(
        "scratch",
        r#"volatile int place[8]; place[ITEM & 3] = 1; data[ITEM] = place[4 + (ITEM & 3)];"#,
        "uninitialized: lane 0 stores",
    ),
    case(
        "scratch that is written",
        r#"volatile int place[8]; for (int i = 0; i < 8; ++i) place[i] = i; data[ITEM] = place[ITEM & 7];"#,
        "",
    ),
];

#[test]
fn on_gfx1100() {
    run("gfx1100", "uninitialized", CASES);
}

#[test]
fn on_gfx90a() {
    run("gfx90a", "uninitialized", CASES);
}

#[test]
fn on_gfx1201() {
    run("gfx1201", "uninitialized", CASES);
}
