//! The vector registers of a wave.

/// A cache line, so that rows begin where vector instructions like it.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u32; 16]);

/// How many rows there are: 256 vector registers, then 256 accumulation registers.
pub const ROWS: usize = 512;

/// Vector registers. A row is one register of all lanes.
pub struct Registers {
    lines: Box<[Line]>,
    lanes: usize,
}

impl Registers {
    /// `lanes`: 32 or 64.
    pub fn new(lanes: usize) -> Registers {
        Registers { lines: vec![Line([0; 16]); ROWS * lanes / 16].into_boxed_slice(), lanes }
    }

    /// A register's values, by lane.
    pub fn row(&self, register: usize) -> &[u32] {
        &self.words()[register * self.lanes..][..self.lanes]
    }

    pub fn row_mut(&mut self, register: usize) -> &mut [u32] {
        let lanes = self.lanes;
        &mut self.words_mut()[register * lanes..][..lanes]
    }

    pub fn get(&self, register: usize, lane: usize) -> u32 {
        self.words()[register * self.lanes + lane]
    }

    pub fn set(&mut self, register: usize, lane: usize, value: u32) {
        let lanes = self.lanes;
        self.words_mut()[register * lanes + lane] = value;
    }

    /// Two registers as one number.
    pub fn get64(&self, register: usize, lane: usize) -> u64 {
        u64::from(self.get(register, lane)) | u64::from(self.get(register + 1, lane)) << 32
    }

    pub fn set64(&mut self, register: usize, lane: usize, value: u64) {
        self.set(register, lane, value as u32);
        self.set(register + 1, lane, (value >> 32) as u32);
    }

    /// All rows; `LANES` is the number of lanes that there are.
    #[inline(always)]
    pub fn rows<const LANES: usize>(&self) -> &[[u32; LANES]] {
        debug_assert_eq!(LANES, self.lanes);
        self.words().as_chunks().0
    }

    #[inline(always)]
    pub fn rows_mut<const LANES: usize>(&mut self) -> &mut [[u32; LANES]] {
        debug_assert_eq!(LANES, self.lanes);
        self.words_mut().as_chunks_mut().0
    }

    /// All rows one behind the other.
    pub fn words(&self) -> &[u32] {
        // SAFETY: a line is sixteen words without padding, and the slice covers exactly the lines there are.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.lines.len() * 16) }
    }

    pub fn words_mut(&mut self) -> &mut [u32] {
        // SAFETY: a line is sixteen words without padding, the slice covers exactly the lines there are, and they are
        // borrowed, for writing, as long as it.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.lines.len() * 16) }
    }
}
