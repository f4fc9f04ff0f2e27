//! Accesses that are not aligned.

use super::{Case, run};

const fn case(name: &'static str, source: &'static str, expected: &'static str) -> Case {
    Case { name, source, groups: 1, items: 64, expected }
}

const GFX9: &[Case] = &[
    case(
        "a word",
        r#"asm volatile("global_store_dword %0, %1, off" : : "v"((char *)data + 2), "v"(7));"#,
        "which is not a multiple of 4",
    ),
    case(
        "four words at a multiple of four",
        r#"int x; asm volatile("global_load_dwordx4 v[8:11], %1, off\ns_waitcnt vmcnt(0)\nv_mov_b32 %0, v8"
           : "=v"(x) : "v"(data + 1) : "v8", "v9", "v10", "v11"); data[64 + ITEM] = x;"#,
        "",
    ),
    case(
        "four words of LDS at a multiple of eight",
        r#"SHARED static int place[64]; place[ITEM] = 1; int x;
           asm volatile("ds_read_b128 v[8:11], %1 offset:8\ns_waitcnt lgkmcnt(0)\nv_mov_b32 %0, v8"
           : "=v"(x) : "v"(ITEM / 8 * 16) : "v8", "v9", "v10", "v11"); data[ITEM] = x + place[0];"#,
        "of LDS, which is not a multiple of 16",
    ),
    case(
        "two words of LDS, each for itself",
        r#"SHARED static int place[64]; place[ITEM] = 1; int x;
           asm volatile("ds_read2_b32 v[8:9], %1 offset0:1 offset1:2\ns_waitcnt lgkmcnt(0)\nv_mov_b32 %0, v8"
           : "=v"(x) : "v"(0) : "v8", "v9"); data[ITEM] = x + place[0];"#,
        "",
    ),
];

const GFX11: &[Case] = &[
    case(
        "half a word",
        r#"asm volatile("global_store_b16 %0, %1, off" : : "v"((char *)data + 1), "v"(7));"#,
        "which is not a multiple of 2",
    ),
    case(
        "half a word at a multiple of two",
        r#"asm volatile("global_store_b16 %0, %1, off" : : "v"((char *)data + 2), "v"(7));"#,
        "",
    ),
    case(
        "two words of LDS at a multiple of four",
        r#"SHARED static int place[64]; place[ITEM] = 1; int x;
           asm volatile("ds_load_b64 v[8:9], %1 offset:4\ns_waitcnt lgkmcnt(0)\nv_mov_b32 %0, v8"
           : "=v"(x) : "v"(0) : "v8", "v9"); data[ITEM] = x + place[0];"#,
        "of LDS, which is not a multiple of 8",
    ),
    case(
        "a scalar load",
        r#"int x; asm volatile("s_load_b32 %0, %1, 0x2\ns_waitcnt lgkmcnt(0)" : "=s"(x) : "s"(data)); data[ITEM] = x;"#,
        "alignment: a scalar load at",
    ),
    case("what the compiler makes", "data[ITEM] = ((short *)data)[2 * ITEM] + ((char *)data)[ITEM];", ""),
];

#[test]
fn on_gfx90a() {
    run("gfx90a", "alignment", GFX9);
}

#[test]
fn on_gfx1100() {
    run("gfx1100", "alignment", GFX11);
}
