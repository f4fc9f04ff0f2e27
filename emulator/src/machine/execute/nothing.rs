//! Instructions that only tell the hardware when to wait, or what to expect.

use crate::isa::Instruction;

/// They change nothing that can be seen here.
const NOTHING: [&str; 43] = [
    "s_nop",
    "s_delay_alu",
    "s_clause",
    "s_sleep",
    "s_sleep_var",
    "s_code_end",
    "s_sendmsg",
    "s_sendmsghalt",
    "s_set_inst_prefetch_distance",
    "s_inst_prefetch",
    "s_icache_inv",
    "s_ttracedata",
    "s_ttracedata_imm",
    "s_setprio",
    "s_setkill",
    "s_sethalt",
    "s_incperflevel",
    "s_decperflevel",
    "s_version",
    "s_barrier_signal",
    "s_barrier_init",
    "s_barrier_leave",
    "s_waitcnt",
    "s_waitcnt_depctr",
    "s_waitcnt_vscnt",
    "s_waitcnt_vmcnt",
    "s_waitcnt_expcnt",
    "s_waitcnt_lgkmcnt",
    "s_wait_idle",
    "s_wait_event",
    "s_wait_alu",
    "s_wait_loadcnt",
    "s_wait_storecnt",
    "s_wait_samplecnt",
    "s_wait_bvhcnt",
    "s_wait_expcnt",
    "s_wait_dscnt",
    "s_wait_kmcnt",
    "s_wait_loadcnt_dscnt",
    "s_wait_storecnt_dscnt",
    "v_nop",
    "v_pipeflush",
    "v_clrexcp",
];

/// Whether there is nothing to do for an instruction.
pub fn does_nothing(instruction: &Instruction) -> bool {
    NOTHING.contains(&instruction.name) || is_for_caches(instruction.name)
}

/// Caches are not modelled.
pub fn is_for_caches(name: &str) -> bool {
    ["buffer_gl", "buffer_inv", "buffer_wb", "global_inv", "global_wb"]
        .iter()
        .any(|begin| name.starts_with(begin))
}
