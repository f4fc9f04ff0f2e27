//! Products by Intel's AMX: tile registers of up to 16 rows of 64 bytes. One instruction multiplies a tile of a left
//! operand (rows of dot groups) with one of a right operand (lines of dot groups, one for each column) and adds to a
//! tile of sums, which takes 16 cycles instead of the 256 instructions on vectors.
//!
//! Operands have the layout that vectors read, see `isa`: a tile is loaded from rows that are equally far apart. Two by
//! two tiles of sums share the tiles that they are made of.

#[cfg(target_arch = "x86_64")]
use std::arch::asm;
use std::marker::PhantomData;

use super::isa::{COLUMNS, DotGroup, VECTOR};
use super::micro_kernel::{AddRows, Fetch, Sums};
use crate::isa::{Level, has_amx, limit};

/// Rows of a tile, and dot groups in one of them.
pub(crate) const SIDE: usize = 16;
/// Rows of sums that are computed at a time.
pub(crate) const ROWS: usize = 2 * SIDE;
/// Rows from which on tiles are better than vectors.
const FEWEST: usize = 3;
/// Steps of a product at a time.
const STEPS: usize = 64;
/// Where a panel's dot groups of each step begin, in bytes.
static PANEL_STEPS: [u64; STEPS] = {
    let mut steps = [0; STEPS];
    let mut i = 0;
    while i < STEPS {
        steps[i] = (i * SIDE * COLUMNS * size_of::<u32>()) as u64;
        i += 1;
    }
    steps
};

/// The extents of tiles. All are at most `SIDE`, and none is 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TileShape {
    /// Rows of the upper and of the lower tiles of sums.
    pub(crate) rows: [u8; 2],
    /// Columns of the left and of the right tiles of sums.
    pub(crate) columns: [u8; 2],
    /// Dot groups of a step.
    pub(crate) depth: u8,
}

/// A thread's tile registers. They are configured when they are first needed, and released with this value, so that
/// nobody saves them where they are not used. A thread has one such value at a time that is configured.
pub(crate) struct Tiles {
    available: bool,
    shape: Option<TileShape>,
    /// Registers are a thread's own.
    _thread: PhantomData<*const ()>,
}

/// The operand of `LDTILECFG`.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what reads it is of x86-64"))]
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    /// Bytes of a row of each tile.
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

impl Tiles {
    /// Whether kernels may use tiles.
    pub(crate) fn available() -> bool {
        limit() == Level::Native && has_amx()
    }

    pub(crate) fn new() -> Self {
        Tiles { available: Self::available(), shape: None, _thread: PhantomData }
    }

    /// Whether products of so many rows should use tiles.
    pub(crate) fn serve(&self, rows: usize) -> bool {
        self.available && rows >= FEWEST
    }

    /// Gives the tiles these extents, if they have others.
    pub(crate) fn configure(&mut self, shape: TileShape) {
        if self.shape == Some(shape) {
            return;
        }
        assert!(self.available, "tiles on a processor without them");
        let TileShape { rows, columns, depth } = shape;
        let sides = [rows[0], rows[1], columns[0], columns[1], depth];
        assert!(sides.iter().all(|side| (1..=SIDE as u8).contains(side)), "{shape:?}");
        let bytes = |groups: u8| u16::from(groups) * size_of::<u32>() as u16;
        let [left, right] = columns.map(bytes);
        let mut of = Configuration {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            row_bytes: [0; 16],
            rows: [0; 16],
        };
        of.row_bytes[..8].copy_from_slice(&[left, right, left, right, bytes(depth), bytes(depth), left, right]);
        of.rows[..8].copy_from_slice(&[rows[0], rows[0], rows[1], rows[1], rows[0], rows[1], depth, depth]);
        // SAFETY: the processor has tiles, which the system lets this process use; each has a valid extent.
        unsafe { load(&of) };
        self.shape = Some(shape);
    }

    /// Computes up to `ROWS` rows times a panel, as `RowsByPanel` does.
    ///
    /// # Safety
    /// `serve()` said yes. `a` has `rows` rows of as many groups as the panel has lines, `out` so many of its width.
    pub(crate) unsafe fn rows_by_panel<D: DotGroup>(
        &mut self,
        out: Sums,
        (a, row): (*const u32, usize),
        rows: usize,
        panel: &[u32],
        fetch: Fetch,
    ) {
        let mut room = Room([0; ROWS * COLUMNS]);
        let whole = out.width == COLUMNS;
        let target = match whole {
            true => out,
            false => Sums { at: room.0.as_mut_ptr(), columns: COLUMNS, width: COLUMNS, add: false },
        };
        let (first, second) = (rows.min(SIDE), rows.saturating_sub(SIDE));
        let depth = panel.len() / COLUMNS;
        let mut done = 0;
        while done < depth {
            let here = (depth - done).min(SIDE);
            let steps = ((depth - done) / here).min(STEPS);
            let sides = [first as u8, second.max(1) as u8];
            self.configure(TileShape { rows: sides, columns: [SIDE as u8; 2], depth: here as u8 });
            let (from, lines) = fetch.lines(done, here);
            let product = TileProduct {
                a: a.wrapping_add(done),
                second_a: a.wrapping_add(SIDE * row + done),
                row: row * size_of::<u32>(),
                step: SIDE * size_of::<u32>(),
                b: panel[done * COLUMNS..].as_ptr(),
                line: COLUMNS * size_of::<u32>(),
                steps: PANEL_STEPS.as_ptr(),
                count: steps,
                sums: target.at,
                second_sums: target.at.wrapping_add(SIDE * target.columns),
                sums_row: target.columns * size_of::<u32>(),
                fetch: from,
                fetch_lines: lines,
                two_rows: u8::from(second > 0),
                two_columns: 1,
                add: u8::from(target.add || done > 0),
            };
            // SAFETY: tiles have the extents; rows, lines and sums are there as the caller promises.
            unsafe { D::tile_product(&product) };
            done += steps * here;
        }
        if !whole {
            // SAFETY: the processor has the instructions, and `out` the rows.
            unsafe { D::run(AddRows { out, from: &room.0, rows }) };
        }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        if self.shape.is_some() {
            // SAFETY: the processor has tiles; nobody else uses those of this thread.
            unsafe { release() };
        }
    }
}

/// Sums of two by two tiles, row by row.
#[repr(C, align(64))]
pub(crate) struct Room(pub(crate) [u32; ROWS * COLUMNS]);

const _: () = assert!(COLUMNS == 2 * VECTOR && VECTOR == SIDE);

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
    /// The right operand, from a line to the next, and where each step begins. The right tile's columns follow the
    /// left one's.
    pub(crate) b: *const u32,
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

/// Configures the tile registers, which are 0 then.
///
/// # Safety
/// The processor has tiles, and the system lets the process use them. The configuration is valid.
#[cfg(target_arch = "x86_64")]
unsafe fn load(of: &Configuration) {
    // SAFETY: as the caller promises; the operand has 64 bytes.
    unsafe {
        asm!(
            "ldtilecfg [{}]",
            in(reg) of,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack, preserves_flags),
        );
    }
}

/// # Safety
/// The processor has tiles, and the system lets the process use them.
#[cfg(target_arch = "x86_64")]
unsafe fn release() {
    // SAFETY: as the caller promises.
    unsafe {
        asm!(
            "tilerelease",
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack, preserves_flags),
        );
    }
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
            "tileloadd tmm7, [{t} + {line} + 64]",
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

/// Other architectures have no tiles, and `Tiles::available()` says so.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn load(of: &Configuration) {
    super::isa::missing(of)
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn release() {}
