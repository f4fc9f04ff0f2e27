//! Missing waits, which a compiler does not write.

use super::{Case, run};

const LOAD: &str = "a missing wait: v";
const SCALAR: &str = "a missing wait: s";
const VCC: &str = "a missing wait: vcc_lo";

const fn case(name: &'static str, source: &'static str, expected: &'static str) -> Case {
    Case { name, source, groups: 1, items: 64, expected }
}

/// Both have the same counters, by other names.
const GFX9: &[Case] = &[
    case(
        "a load that nobody waits for",
        r#"int x; asm volatile("global_load_dword %0, %1, off\nv_add_u32 %0, 1, %0\ns_waitcnt vmcnt(0)" : "=&v"(x) : "v"(data));
           data[ITEM] = x;"#,
        LOAD,
    ),
    case(
        "a load that is waited for",
        r#"int x; asm volatile("global_load_dword %0, %1, off\ns_waitcnt vmcnt(0)\nv_add_u32 %0, 1, %0" : "=&v"(x) : "v"(data));
           data[ITEM] = x;"#,
        "",
    ),
    case(
        "the first of two loads",
        r#"int x, y; asm volatile("global_load_dword %0, %2, off\nglobal_load_dword %1, %2, off\ns_waitcnt vmcnt(1)\n"
           "v_add_u32 %0, 1, %0\ns_waitcnt vmcnt(0)" : "=&v"(x), "=&v"(y) : "v"(data)); data[ITEM] = x + y;"#,
        "",
    ),
    case(
        "the second of two loads",
        r#"int x, y; asm volatile("global_load_dword %0, %2, off\nglobal_load_dword %1, %2, off\ns_waitcnt vmcnt(1)\n"
           "v_add_u32 %1, 1, %1\ns_waitcnt vmcnt(0)" : "=&v"(x), "=&v"(y) : "v"(data)); data[ITEM] = x + y;"#,
        LOAD,
    ),
    case(
        "a register that is written before its load returns",
        r#"int x; asm volatile("global_load_dword %0, %1, off\nv_mov_b32 %0, 1\ns_waitcnt vmcnt(0)" : "=&v"(x) : "v"(data));
           data[ITEM] = x;"#,
        LOAD,
    ),
    case(
        "a store behind a load counts",
        r#"int x; asm volatile("global_load_dword %0, %1, off\nglobal_store_dword %1, %2, off offset:64\ns_waitcnt vmcnt(1)\n"
           "v_add_u32 %0, 1, %0" : "=&v"(x) : "v"(data), "v"(7)); data[ITEM] = x;"#,
        "",
    ),
    case(
        "scalar loads return in any order",
        r#"int x, y; asm volatile("s_load_dword %0, %2, 0x0\ns_load_dword %1, %2, 0x4\ns_waitcnt lgkmcnt(1)\n"
           "s_add_u32 %0, %0, 1\ns_waitcnt lgkmcnt(0)" : "=&s"(x), "=&s"(y) : "s"(data)); data[ITEM] = x + y;"#,
        SCALAR,
    ),
    case(
        "scalar loads that are waited for",
        r#"int x, y; asm volatile("s_load_dword %0, %2, 0x0\ns_load_dword %1, %2, 0x4\ns_waitcnt lgkmcnt(0)\n"
           "s_add_u32 %0, %0, 1" : "=&s"(x), "=&s"(y) : "s"(data)); data[ITEM] = x + y;"#,
        "",
    ),
    case(
        "LDS",
        r#"SHARED static int place[64]; place[ITEM] = 1; int x; asm volatile("ds_read_b32 %0, %1\ns_waitcnt vmcnt(0)\n"
           "v_add_u32 %0, 1, %0\ns_waitcnt lgkmcnt(0)" : "=&v"(x) : "v"(ITEM * 4)); data[ITEM] = x + place[0];"#,
        "nothing waits for lgkmcnt",
    ),
    case(
        "a flat load counts twice",
        r#"int x; asm volatile("flat_load_dword %0, %1\ns_waitcnt vmcnt(0)\nv_add_u32 %0, 1, %0\ns_waitcnt lgkmcnt(0)"
           : "=&v"(x) : "v"(data)); data[ITEM] = x;"#,
        "nothing waits for lgkmcnt",
    ),
];

const GFX11: &[Case] = &[
    case(
        "a load that nobody waits for",
        r#"int x; asm volatile("global_load_b32 %0, %1, off\nv_add_nc_u32 %0, 1, %0\ns_waitcnt vmcnt(0)" : "=&v"(x) : "v"(data));
           data[ITEM] = x;"#,
        LOAD,
    ),
    case(
        "a load that is waited for",
        r#"int x; asm volatile("global_load_b32 %0, %1, off\ns_waitcnt vmcnt(0)\nv_add_nc_u32 %0, 1, %0" : "=&v"(x) : "v"(data));
           data[ITEM] = x;"#,
        "",
    ),
    case(
        "a store behind a load does not count",
        r#"int x; asm volatile("global_load_b32 %0, %1, off\nglobal_store_b32 %1, %2, off offset:64\ns_waitcnt vmcnt(1)\n"
           "v_add_nc_u32 %0, 1, %0\ns_waitcnt vmcnt(0)" : "=&v"(x) : "v"(data), "v"(7)); data[ITEM] = x;"#,
        LOAD,
    ),
    case(
        "scalar loads return in any order",
        r#"int x, y; asm volatile("s_load_b32 %0, %2, 0x0\ns_load_b32 %1, %2, 0x4\ns_waitcnt lgkmcnt(1)\n"
           "s_add_u32 %0, %0, 1\ns_waitcnt lgkmcnt(0)" : "=&s"(x), "=&s"(y) : "s"(data)); data[ITEM] = x + y;"#,
        SCALAR,
    ),
    case(
        "LDS between scalar loads",
        r#"SHARED static int place[64]; place[ITEM] = 1; int x, y; asm volatile("ds_load_b32 %0, %2\ns_load_b32 %1, %3, 0x0\n"
           "s_waitcnt lgkmcnt(1)\nv_add_nc_u32 %0, 1, %0\ns_waitcnt lgkmcnt(0)" : "=&v"(x), "=&s"(y) : "v"(ITEM * 4), "s"(data));
           data[ITEM] = x + y + place[0];"#,
        "nothing waits for lgkmcnt",
    ),
    case(
        "LDS of another wave",
        r#"SHARED static int place[64]; place[ITEM] = 1; int x;
           asm volatile("s_waitcnt lgkmcnt(0)\nds_store_b32 %1, %2\ns_barrier\nds_load_b32 %0, %3\ns_waitcnt lgkmcnt(0)"
           : "=&v"(x) : "v"(ITEM * 4), "v"(ITEM), "v"(252 - ITEM * 4)); data[ITEM] = x + place[0];"#,
        "of LDS while",
    ),
    case(
        "a branch by the half of VCC that a load writes",
        r#"asm volatile("s_load_b32 vcc_lo, %0, 0x0\ns_cbranch_vccnz 0\ns_waitcnt lgkmcnt(0)" :: "s"(data) : "vcc"); data[ITEM] = 1;"#,
        VCC,
    ),
    case(
        "a wave of 32 lanes does not branch by the other half",
        r#"asm volatile("s_load_b32 vcc_hi, %0, 0x0\ns_cbranch_vccnz 0\ns_waitcnt lgkmcnt(0)" :: "s"(data) : "vcc_hi"); data[ITEM] = 1;"#,
        "",
    ),
];

const GFX12: &[Case] = &[
    case(
        "a load that nobody waits for",
        r#"int x; asm volatile("global_load_b32 %0, %1, off\nv_add_nc_u32 %0, 1, %0\ns_wait_loadcnt 0" : "=&v"(x) : "v"(data));
           data[ITEM] = x;"#,
        LOAD,
    ),
    case(
        "a load that is waited for",
        r#"int x; asm volatile("global_load_b32 %0, %1, off\ns_wait_loadcnt 0\nv_add_nc_u32 %0, 1, %0" : "=&v"(x) : "v"(data));
           data[ITEM] = x;"#,
        "",
    ),
    case(
        "a wait for another counter",
        r#"int x; asm volatile("s_load_b32 %0, %1, 0x0\ns_wait_loadcnt_dscnt 0\ns_add_co_u32 %0, %0, 1\ns_wait_kmcnt 0"
           : "=&s"(x) : "s"(data)); data[ITEM] = x;"#,
        "nothing waits for kmcnt",
    ),
    case(
        "two counters at once",
        r#"SHARED static int place[64]; place[ITEM] = 1; int x, y; asm volatile("ds_load_b32 %0, %2\nglobal_load_b32 %1, %3, off\n"
           "s_wait_loadcnt_dscnt 0x0\nv_add_nc_u32 %0, %1, %0" : "=&v"(x), "=&v"(y) : "v"(ITEM * 4), "v"(data));
           data[ITEM] = x + y + place[0];"#,
        "",
    ),
];

#[test]
fn on_gfx90a() {
    run("gfx90a", "waits", GFX9);
}

#[test]
fn on_gfx1100() {
    run("gfx1100", "waits", GFX11);
}

#[test]
fn on_gfx1201() {
    run("gfx1201", "waits", GFX12);
}
