//! Tables of a FlatBuffer, of whose bytes none is trusted: each is looked at only where the buffer has it.
//!
//! The encoding is that of <https://flatbuffers.dev/internals/>: little-endian numbers; a table begins with the distance
//! back to the list of where its fields are; strings, vectors and tables within a table are distances forward.

use std::ops::Range;

use crate::error::{Result, fail};

/// Where the identifier of a file is.
const IDENTIFIER: Range<usize> = 4..8;

/// A buffer and what is in it.
#[derive(Clone, Copy)]
pub(super) struct Reader<'b> {
    bytes: &'b [u8],
}

/// A table, and where its fields are.
pub(super) struct Table<'b> {
    reader: Reader<'b>,
    start: usize,
    /// Bytes of the table itself.
    size: usize,
    /// Where the numbers stand that say where in the table each field is, two bytes each.
    fields: Range<usize>,
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Reader { bytes }
    }

    /// Whether the file names its format so.
    pub(super) fn has_identifier(&self, identifier: &[u8; 4]) -> bool {
        self.bytes.get(IDENTIFIER) == Some(identifier)
    }

    /// The outermost table.
    pub(super) fn root(self, what: &str) -> Result<Table<'b>> {
        self.table(0, what)
    }

    /// The table that the distance at `at` leads to.
    pub(super) fn table(self, at: usize, what: &str) -> Result<Table<'b>> {
        let start = self.target(at, what)?;
        let back = i32::from_le_bytes(self.take(start, what)?);
        let Some(list) = usize::try_from(start as i128 - i128::from(back)).ok() else {
            fail!(InvalidModel, "{what}: the list of its fields is said to begin before the first byte");
        };
        let length = usize::from(u16::from_le_bytes(self.take(list, what)?));
        let size = usize::from(u16::from_le_bytes(self.take(list.saturating_add(2), what)?));
        if length < 4 || !length.is_multiple_of(2) {
            fail!(
                InvalidModel,
                "{what}: the list of its fields has {length} bytes; it has an even number from 4"
            );
        }
        self.check(list, length, what)?;
        self.check(start, size, what)?;
        Ok(Table { reader: self, start, size, fields: list + 4..list + length })
    }

    /// Where the elements of the vector are that the distance at `at` leads to, each of `size` bytes.
    pub(super) fn vector(self, at: usize, size: usize, what: &str) -> Result<Range<usize>> {
        let start = self.target(at, what)?;
        let count = u32::from_le_bytes(self.take(start, what)?) as usize;
        let (first, bytes) = (start + 4, count.saturating_mul(size));
        self.check(first, bytes, what)?;
        Ok(first..first + bytes)
    }

    /// Bytes that are known to be there; none where they are not.
    pub(super) fn slice(self, range: Range<usize>) -> &'b [u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// Where the distance at `at` leads.
    fn target(self, at: usize, what: &str) -> Result<usize> {
        let distance = u32::from_le_bytes(self.take(at, what)?) as usize;
        Ok(at.saturating_add(distance))
    }

    fn take<const N: usize>(self, at: usize, what: &str) -> Result<[u8; N]> {
        self.check(at, N, what)?;
        let mut taken = [0; N];
        taken.copy_from_slice(&self.bytes[at..at + N]);
        Ok(taken)
    }

    fn check(self, at: usize, length: usize, what: &str) -> Result<()> {
        if at.checked_add(length).is_none_or(|end| end > self.bytes.len()) {
            fail!(
                InvalidModel,
                "{what}: {length} bytes from byte {at} on are needed, and there are {}",
                self.bytes.len()
            );
        }
        Ok(())
    }
}

impl<'b> Table<'b> {
    /// Where field `index` is, of `size` bytes; `None` when the table does without it.
    pub(super) fn field(&self, index: usize, size: usize, what: &str) -> Result<Option<usize>> {
        let at = self.fields.start + 2 * index;
        if at + 2 > self.fields.end {
            return Ok(None);
        }
        match usize::from(u16::from_le_bytes(self.reader.take(at, what)?)) {
            0 => Ok(None),
            offset if offset >= 4 && offset + size <= self.size => Ok(Some(self.start + offset)),
            offset => fail!(
                InvalidModel,
                "{what}: it is said to be at byte {offset} of a table of {} bytes",
                self.size
            ),
        }
    }

    /// A number, 0 when the table does without it.
    pub(super) fn number(&self, index: usize, what: &str) -> Result<i32> {
        match self.field(index, 4, what)? {
            Some(at) => Ok(i32::from_le_bytes(self.reader.take(at, what)?)),
            None => Ok(0),
        }
    }

    /// Where the elements of a vector are, each of `size` bytes; empty when the table does without it.
    pub(super) fn vector(&self, index: usize, size: usize, what: &str) -> Result<Range<usize>> {
        match self.field(index, 4, what)? {
            Some(at) => self.reader.vector(at, size, what),
            None => Ok(0..0),
        }
    }
}
