//! The loop of products by AMX's tiles, see `amx`.

/// Products of two by two tiles, or of fewer, added up over some steps. Distances are in bytes.
///
/// Safety, for who multiplies: tiles are configured. All that tiles of these extents read and write is valid.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what reads it is of x86-64"))]
#[repr(C)]
pub(crate) struct TileProduct {
    /// Upper and lower rows of the left operand, from a row to the next, and from a step to the next.
    pub(crate) a: *const u32,
    pub(crate) second_a: *const u32,
    pub(crate) row: usize,
    pub(crate) step: usize,
    /// The right operand, from the left tile to the right one, from a line to the next, and where each step begins.
    pub(crate) b: *const u32,
    pub(crate) second_b: usize,
    pub(crate) line: usize,
    pub(crate) steps: *const u64,
    /// Steps; at least one.
    pub(crate) count: usize,
    /// Upper and lower rows of sums, and from a row to the next.
    pub(crate) sums: *mut u32,
    pub(crate) second_sums: *mut u32,
    pub(crate) sums_row: usize,
    /// What is fetched into the cache: so many lines of it in each step.
    pub(crate) fetch: *const u8,
    pub(crate) fetch_lines: usize,
    /// Whether there are lower rows, right columns, and sums that are added to.
    pub(crate) two_rows: u8,
    pub(crate) two_columns: u8,
    pub(crate) add: u8,
}

/// Computes a `TileProduct` with the instruction of this name: tiles 0 to 3 are sums, 4 and 5 the left operand's, 6 and 7
/// the right one's.
#[cfg(target_arch = "x86_64")]
macro_rules! multiply_tiles {
    ($instruction:literal, $product:expr) => {
        std::arch::asm!(
            // What the sums begin with.
            "mov {t}, [{p} + {SUMS}]",
            "mov {n}, [{p} + {SUMS_ROW}]",
            "cmp byte ptr [{p} + {ADD}], 0",
            "je 2f",
            "tileloadd tmm0, [{t} + {n}]",
            "cmp byte ptr [{p} + {TWO_COLUMNS}], 0",
            "je 3f",
            "tileloadd tmm1, [{t} + {n} + 64]",
            "3:",
            "cmp byte ptr [{p} + {TWO_ROWS}], 0",
            "je 5f",
            "mov {t}, [{p} + {SECOND_SUMS}]",
            "tileloadd tmm2, [{t} + {n}]",
            "cmp byte ptr [{p} + {TWO_COLUMNS}], 0",
            "je 5f",
            "tileloadd tmm3, [{t} + {n} + 64]",
            "jmp 5f",
            "2:",
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            // A step.
            "5:",
            "mov {t}, [{steps}]",
            "add {steps}, 8",
            "add {t}, {b}",
            "tileloadd tmm6, [{t} + {line}]",
            "tileloadd tmm4, [{a} + {row}]",
            concat!($instruction, " tmm0, tmm4, tmm6"),
            "cmp byte ptr [{p} + {TWO_COLUMNS}], 0",
            "je 6f",
            "add {t}, [{p} + {SECOND_B}]",
            "tileloadd tmm7, [{t} + {line}]",
            concat!($instruction, " tmm1, tmm4, tmm7"),
            "6:",
            "cmp byte ptr [{p} + {TWO_ROWS}], 0",
            "je 7f",
            "tileloadd tmm5, [{second} + {row}]",
            concat!($instruction, " tmm2, tmm5, tmm6"),
            "cmp byte ptr [{p} + {TWO_COLUMNS}], 0",
            "je 7f",
            concat!($instruction, " tmm3, tmm5, tmm7"),
            "7:",
            "mov {n}, [{p} + {FETCH_LINES}]",
            "8:",
            "test {n}, {n}",
            "jz 9f",
            "prefetcht0 [{fetch}]",
            "add {fetch}, 64",
            "dec {n}",
            "jmp 8b",
            "9:",
            "add {a}, [{p} + {STEP}]",
            "add {second}, [{p} + {STEP}]",
            "dec {count}",
            "jnz 5b",
            // To memory.
            "mov {t}, [{p} + {SUMS}]",
            "mov {n}, [{p} + {SUMS_ROW}]",
            "tilestored [{t} + {n}], tmm0",
            "cmp byte ptr [{p} + {TWO_COLUMNS}], 0",
            "je 3f",
            "tilestored [{t} + {n} + 64], tmm1",
            "3:",
            "cmp byte ptr [{p} + {TWO_ROWS}], 0",
            "je 4f",
            "mov {t}, [{p} + {SECOND_SUMS}]",
            "tilestored [{t} + {n}], tmm2",
            "cmp byte ptr [{p} + {TWO_COLUMNS}], 0",
            "je 4f",
            "tilestored [{t} + {n} + 64], tmm3",
            "4:",
            p = in(reg) std::ptr::from_ref($product),
            a = inout(reg) $product.a => _,
            second = inout(reg) $product.second_a => _,
            row = in(reg) $product.row,
            b = in(reg) $product.b,
            line = in(reg) $product.line,
            steps = inout(reg) $product.steps => _,
            count = inout(reg) $product.count => _,
            fetch = inout(reg) $product.fetch => _,
            t = out(reg) _,
            n = out(reg) _,
            SECOND_B = const std::mem::offset_of!(TileProduct, second_b),
            SUMS = const std::mem::offset_of!(TileProduct, sums),
            SECOND_SUMS = const std::mem::offset_of!(TileProduct, second_sums),
            SUMS_ROW = const std::mem::offset_of!(TileProduct, sums_row),
            FETCH_LINES = const std::mem::offset_of!(TileProduct, fetch_lines),
            STEP = const std::mem::offset_of!(TileProduct, step),
            TWO_ROWS = const std::mem::offset_of!(TileProduct, two_rows),
            TWO_COLUMNS = const std::mem::offset_of!(TileProduct, two_columns),
            ADD = const std::mem::offset_of!(TileProduct, add),
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        )
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use multiply_tiles;
