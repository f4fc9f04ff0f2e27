//! Immediates with fields: wait counts, delays, hardware registers, messages.

use crate::isa::Generation;

/// The counts that are waited for; all of them where none is.
pub(super) fn wait_counts(value: u16, generation: Generation) -> String {
    let field = |shift: u32, bits: u32| u32::from(value) >> shift & ((1 << bits) - 1);
    // Vector memory, exports, and the last for LDS, GDS, constants and messages; with the highest of each.
    let counts = match generation {
        Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940 => [
            ("vmcnt", field(0, 4) | field(14, 2) << 4, 63),
            ("expcnt", field(4, 3), 7),
            ("lgkmcnt", field(8, 4), 15),
        ],
        Generation::Gfx10 => [
            ("vmcnt", field(0, 4) | field(14, 2) << 4, 63),
            ("expcnt", field(4, 3), 7),
            ("lgkmcnt", field(8, 6), 63),
        ],
        _ => [("vmcnt", field(10, 6), 63), ("expcnt", field(0, 3), 7), ("lgkmcnt", field(4, 6), 63)],
    };
    chosen(&counts)
}

/// S_WAITCNT_DEPCTR (RDNA 2 ISA, "S_WAITCNT_DEPCTR"). Its bits 5 and 6 have no meaning.
pub(super) fn dependency_counters(value: u16) -> String {
    if value & 0x60 != 0 {
        return format!("{value:#x}");
    }
    let field = |shift: u32, bits: u32| u32::from(value) >> shift & ((1 << bits) - 1);
    chosen(&[
        ("depctr_hold_cnt", field(7, 1), 1),
        ("depctr_sa_sdst", field(0, 1), 1),
        ("depctr_va_vdst", field(12, 4), 15),
        ("depctr_va_sdst", field(9, 3), 7),
        ("depctr_va_ssrc", field(8, 1), 1),
        ("depctr_va_vcc", field(1, 1), 1),
        ("depctr_vm_vsrc", field(2, 3), 7),
    ])
}

/// Fields that are not at their highest value, or all.
fn chosen(fields: &[(&str, u32, u32)]) -> String {
    let all = fields.iter().all(|(_, value, highest)| value == highest);
    let chosen = fields.iter().filter(|(_, value, highest)| all || value != highest);
    chosen.map(|(name, value, _)| format!("{name}({value})")).collect::<Vec<_>>().join(" ")
}

/// S_DELAY_ALU (RDNA 3 ISA, "S_DELAY_ALU").
pub(super) fn delay(value: u16) -> String {
    const INSTRUCTIONS: [&str; 12] = [
        "NO_DEP",
        "VALU_DEP_1",
        "VALU_DEP_2",
        "VALU_DEP_3",
        "VALU_DEP_4",
        "TRANS32_DEP_1",
        "TRANS32_DEP_2",
        "TRANS32_DEP_3",
        "FMA_ACCUM_CYCLE_1",
        "SALU_CYCLE_1",
        "SALU_CYCLE_2",
        "SALU_CYCLE_3",
    ];
    const SKIPS: [&str; 6] = ["SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"];
    let instruction =
        |code: u16| *INSTRUCTIONS.get(usize::from(code)).unwrap_or(&"/* invalid instid value */");
    let skip = |code: u16| *SKIPS.get(usize::from(code)).unwrap_or(&"/* invalid instskip value */");
    let mut parts = Vec::new();
    if value & 15 != 0 {
        parts.push(format!("instid0({})", instruction(value & 15)));
    }
    if value >> 4 & 7 != 0 {
        parts.push(format!("instskip({})", skip(value >> 4 & 7)));
    }
    if value >> 7 & 15 != 0 {
        parts.push(format!("instid1({})", instruction(value >> 7 & 15)));
    }
    if parts.is_empty() { "0".to_owned() } else { parts.join(" | ") }
}

/// A hardware register, first bit and number of bits, which are left out where all 32 are meant.
pub(super) fn register(value: u16, generation: Generation) -> String {
    let (number, first, bits) = (value & 63, value >> 6 & 31, (value >> 11) + 1);
    let name = register_name(number, generation);
    match (first, bits) {
        (0, 32) => format!("hwreg({name})"),
        _ => format!("hwreg({name}, {first}, {bits})"),
    }
}

fn register_name(number: u16, generation: Generation) -> String {
    use Generation::{Gfx9, Gfx10, Gfx11, Gfx12, Gfx940};
    let rows: &[(u16, &str, Generation, Generation)] = &[
        (1, "MODE", Gfx9, Gfx12),
        (2, "STATUS", Gfx9, Gfx12),
        (3, "TRAPSTS", Gfx9, Gfx11),
        (4, "HW_ID", Gfx9, Gfx940),
        (4, "STATE_PRIV", Gfx12, Gfx12),
        (5, "GPR_ALLOC", Gfx9, Gfx12),
        (6, "LDS_ALLOC", Gfx9, Gfx12),
        (7, "IB_STS", Gfx9, Gfx12),
        (10, "PERF_SNAPSHOT_DATA", Gfx12, Gfx12),
        (11, "PERF_SNAPSHOT_PC_LO", Gfx12, Gfx12),
        (12, "PERF_SNAPSHOT_PC_HI", Gfx12, Gfx12),
        (15, "SH_MEM_BASES", Gfx9, Gfx11),
        (15, "PERF_SNAPSHOT_DATA1", Gfx12, Gfx12),
        (16, "TBA_LO", Gfx9, Gfx10),
        (16, "PERF_SNAPSHOT_DATA2", Gfx12, Gfx12),
        (17, "TBA_HI", Gfx9, Gfx10),
        (17, "EXCP_FLAG_PRIV", Gfx12, Gfx12),
        (18, "TMA_LO", Gfx9, Gfx10),
        (18, "PERF_SNAPSHOT_PC_LO", Gfx11, Gfx11),
        (18, "EXCP_FLAG_USER", Gfx12, Gfx12),
        (19, "TMA_HI", Gfx9, Gfx10),
        (19, "PERF_SNAPSHOT_PC_HI", Gfx11, Gfx11),
        (19, "TRAP_CTRL", Gfx12, Gfx12),
        (20, "XCC_ID", Gfx940, Gfx940),
        (20, "FLAT_SCR_LO", Gfx10, Gfx11),
        (20, "SCRATCH_BASE_LO", Gfx12, Gfx12),
        (21, "SQ_PERF_SNAPSHOT_DATA", Gfx940, Gfx940),
        (21, "FLAT_SCR_HI", Gfx10, Gfx11),
        (21, "SCRATCH_BASE_HI", Gfx12, Gfx12),
        (22, "SQ_PERF_SNAPSHOT_DATA1", Gfx940, Gfx940),
        (23, "SQ_PERF_SNAPSHOT_PC_LO", Gfx940, Gfx940),
        (23, "HW_ID1", Gfx10, Gfx12),
        (24, "SQ_PERF_SNAPSHOT_PC_HI", Gfx940, Gfx940),
        (24, "HW_ID2", Gfx10, Gfx12),
        (25, "POPS_PACKER", Gfx10, Gfx10),
        (27, "PERF_SNAPSHOT_DATA", Gfx11, Gfx11),
        (29, "SHADER_CYCLES", Gfx10, Gfx11),
        (29, "SHADER_CYCLES_LO", Gfx12, Gfx12),
        (30, "SHADER_CYCLES_HI", Gfx12, Gfx12),
        (31, "DVGPR_ALLOC_LO", Gfx12, Gfx12),
        (32, "DVGPR_ALLOC_HI", Gfx12, Gfx12),
    ];
    let row = rows.iter().find(|row| row.0 == number && (row.2..=row.3).contains(&generation));
    row.map_or_else(|| number.to_string(), |(_, name, ..)| format!("HW_REG_{name}"))
}

/// A message. Those of GFX9 and GFX10 have an operation in bits 4 to 6 and a stream in 8 and 9.
pub(super) fn message(value: u32, generation: Generation) -> String {
    use Generation::{Gfx9, Gfx10, Gfx11, Gfx12};
    let rows: &[(u32, &str, Generation, Generation)] = &[
        (1, "INTERRUPT", Gfx9, Gfx12),
        (2, "HS_TESSFACTOR", Gfx11, Gfx12),
        (3, "DEALLOC_VGPRS", Gfx11, Gfx12),
        (4, "SAVEWAVE", Gfx9, Gfx10),
        (5, "STALL_WAVE_GEN", Gfx9, Gfx11),
        (6, "HALT_WAVES", Gfx9, Gfx11),
        (7, "ORDERED_PS_DONE", Gfx9, Gfx10),
        (8, "EARLY_PRIM_DEALLOC", Gfx9, Gfx10),
        (9, "GS_ALLOC_REQ", Gfx9, Gfx12),
        (10, "GET_DOORBELL", Gfx9, Gfx10),
        (11, "GET_DDID", Gfx10, Gfx10),
        (128, "RTN_GET_DOORBELL", Gfx11, Gfx12),
        (129, "RTN_GET_DDID", Gfx11, Gfx12),
        (130, "RTN_GET_TMA", Gfx11, Gfx12),
        (131, "RTN_GET_REALTIME", Gfx11, Gfx12),
        (132, "RTN_SAVE_WAVE", Gfx11, Gfx12),
        (133, "RTN_GET_TBA", Gfx11, Gfx12),
        (134, "RTN_GET_TBA_TO_PC", Gfx11, Gfx12),
        (135, "RTN_GET_SE_AID_ID", Gfx12, Gfx12),
    ];
    let (number, operation, stream, known) = match generation {
        Gfx11 | Gfx12 => (value & 255, 0, 0, 255),
        _ => (value & 15, value >> 4 & 7, value >> 8 & 3, 0x3ff),
    };
    if value & !known != 0 {
        return value.to_string();
    }
    let row = rows.iter().find(|row| row.0 == number && (row.2..=row.3).contains(&generation));
    match row {
        Some((_, name, ..)) if operation == 0 && stream == 0 => format!("sendmsg(MSG_{name})"),
        _ => format!("sendmsg({number}, {operation}, {stream})"),
    }
}

/// S_SET_GPR_IDX_ON and S_SET_GPR_IDX_MODE: the operands that are indexed.
pub(super) fn index_mode(value: u32) -> String {
    if value > 15 {
        return format!("{value:#x}");
    }
    let names = ["SRC0", "SRC1", "SRC2", "DST"];
    let chosen = names.iter().enumerate().filter(|(bit, _)| value >> bit & 1 != 0);
    format!("gpr_idx({})", chosen.map(|(_, name)| *name).collect::<Vec<_>>().join(","))
}

/// S_VERSION: the generation that code was made for.
pub(super) fn version(value: u16) -> String {
    let names = [(0, "GFX7"), (4, "GFX10"), (6, "GFX11"), (9, "GFX12")];
    let flags =
        [(0x2000, "UC_VERSION_W64_BIT"), (0x4000, "UC_VERSION_W32_BIT"), (0x8000, "UC_VERSION_MDP_BIT")];
    let Some((_, name)) = names.iter().find(|(code, _)| *code == value & 0x1fff) else {
        return if value > 64 { format!("{value:#x}") } else { value.to_string() };
    };
    let mut parts = vec![format!("UC_VERSION_{name}")];
    parts.extend(flags.iter().filter(|(bit, _)| value & bit != 0).map(|(_, name)| (*name).to_owned()));
    parts.join(" | ")
}
