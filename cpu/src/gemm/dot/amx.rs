//! Products by Intel's AMX: tile registers of up to 16 rows of 64 bytes. One instruction multiplies a tile of a left
//! operand (rows of dot groups) with one of a right operand (lines of dot groups, one for each column) and adds to a
//! tile of sums, which takes 16 cycles instead of the 256 instructions on vectors.
//!
//! Operands have the layout that vectors read, see `isa`: a tile is loaded from rows that are equally far apart. Two by
//! two tiles of sums share the tiles that they are made of.

#[cfg(target_arch = "x86_64")]
use std::arch::asm;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::isa::{COLUMNS, DotGroup, VECTOR};
use super::micro_kernel::{AddRows, Fetch, Sums};
use super::tile_product::TileProduct;
use crate::isa::has_tiles;

/// Rows of a tile, and dot groups in one of them.
pub(crate) const SIDE: usize = 16;
/// Rows of a strip: those of sums that tiles compute at a time.
pub(crate) const STRIP: usize = 2 * SIDE;
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
        has_tiles()
    }

    pub(crate) fn new() -> Self {
        Tiles { available: Self::available(), shape: None, _thread: PhantomData }
    }

    /// Keeps the tiles' unit from falling asleep, which takes it a third of a microsecond and it as long to wake up: for work
    /// between products, once in a tenth.
    #[inline(always)]
    pub(crate) fn keep_awake(&self) {
        if self.shape.is_some() {
            // SAFETY: tiles are configured.
            unsafe { keep_awake() };
        }
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
        let mut of =
            Configuration { palette: 1, start_row: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
        of.row_bytes[..8].copy_from_slice(&[
            left,
            right,
            left,
            right,
            bytes(depth),
            bytes(depth),
            left,
            right,
        ]);
        of.rows[..8].copy_from_slice(&[rows[0], rows[0], rows[1], rows[1], rows[0], rows[1], depth, depth]);
        // SAFETY: the processor has tiles, which the system lets this process use; each has a valid extent.
        unsafe { load(&of) };
        self.shape = Some(shape);
    }

    /// Computes up to `STRIP` rows times a panel, as `RowsByPanel` does.
    ///
    /// # Safety
    /// `serve()` said yes. `a` has `rows` rows of as many groups as the panel has lines, `out` so many of its width.
    #[inline(never)]
    pub(crate) unsafe fn rows_by_panel<D: DotGroup>(
        &mut self,
        out: Sums,
        (a, row): (*const u32, usize),
        rows: usize,
        panel: &[u32],
        fetch: Fetch,
    ) {
        // Tiles write all of the rows that are read then.
        let mut room = MaybeUninit::<Room>::uninit();
        let whole = out.width == COLUMNS;
        let target = match whole {
            true => out,
            false => Sums { at: room.as_mut_ptr().cast(), columns: COLUMNS, width: COLUMNS, add: false },
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
                second_b: SIDE * size_of::<u32>(),
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
            // SAFETY: the processor has the instructions, `out` the rows; tiles wrote so many rows of `COLUMNS` sums.
            unsafe {
                let from = std::slice::from_raw_parts(target.at, rows * COLUMNS);
                D::run(AddRows { out, from, rows });
            }
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
pub(crate) struct Room(pub(crate) [u32; STRIP * COLUMNS]);

const _: () = assert!(COLUMNS == 2 * VECTOR && VECTOR == SIDE);

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

/// See `Tiles::keep_awake`: a product whose sums nobody needs, those of the upper left tiles.
///
/// # Safety
/// The thread's tiles are configured.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) unsafe fn keep_awake() {
    // SAFETY: as the caller promises.
    unsafe { asm!("tdpbf16ps tmm0, tmm4, tmm6", out("tmm0") _, options(nostack, nomem, preserves_flags)) };
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn keep_awake() {}

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

/// Other architectures have no tiles, and `Tiles::available()` says so.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn load(of: &Configuration) {
    super::isa::missing(of)
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn release() {}
