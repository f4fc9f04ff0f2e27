//! The file: a header, parts at multiples of 4096 bytes, and a table of them at the end.
//!
//! The header has 128 bytes, numbers little-endian:
//!
//! | at | what |
//! |---|---|
//! | 0 | [`MAGIC`], 8 bytes, which a transfer as text would change |
//! | 8 | [`VERSION`] of this layout, 4 bytes |
//! | 12 | [`BYTE_ORDER`], 4 bytes |
//! | 16 | the length of the file, 8 bytes |
//! | 24 | where the table begins, and its length, 8 bytes each |
//! | 40 | the checksum of the table, 16 bytes (XXH3, 128 bits) |
//! | 56 | zeros, 56 bytes |
//! | 112 | the checksum of all that before, 16 bytes |
//!
//! The table is a protobuf message; what lies between parts is zeros.

use bytes::Bytes;
use prost::Message;

use crate::error::{Result, fail};
use crate::threads::Pool;

use super::checksum::{Checksum, checksum, checksums};

pub(super) const MAGIC: [u8; 8] = *b"\x8frukh\r\n\x1a";
pub(super) const VERSION: u32 = 1;
pub(super) const BYTE_ORDER: u32 = 0x0403_0201;
pub(super) const HEADER: usize = 128;
/// Parts begin at multiples of this: a page of most systems, and more than any vector asks for.
pub(super) const ALIGNMENT: u64 = 4096;

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Table {
    #[prost(message, repeated, tag = "1")]
    pub(super) parts: Vec<PartEntry>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PartEntry {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(uint64, tag = "2")]
    pub(super) offset: u64,
    #[prost(uint64, tag = "3")]
    pub(super) length: u64,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) checksum: Vec<u8>,
}

/// The header's fields that are not constant.
pub(super) struct Header {
    pub(super) length: u64,
    pub(super) table: (u64, u64),
    pub(super) table_checksum: Checksum,
}

impl Header {
    pub(super) fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&BYTE_ORDER.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.length.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.table.0.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.table.1.to_le_bytes());
        bytes[40..56].copy_from_slice(&self.table_checksum);
        let own = checksum(&bytes[..112]);
        bytes[112..].copy_from_slice(&own);
        bytes
    }

    fn decode(bytes: &[u8], origin: &str) -> Result<Self> {
        let damaged = |what: String| fail(origin, &format!("its header is damaged: {what}"));
        let Some(bytes) = bytes.get(..HEADER) else {
            return fail(
                origin,
                &format!("it has {} bytes, and the header alone has {HEADER}: it was cut short", bytes.len()),
            );
        };
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if bytes[..8] != MAGIC {
            return damaged("it does not begin as an artifact does".to_owned());
        }
        match word(12) {
            BYTE_ORDER => {}
            order if order == BYTE_ORDER.swap_bytes() => {
                return fail(origin, "it was written in the other byte order (big-endian); compile it again");
            }
            order => {
                return damaged(format!(
                    "the mark of its byte order is {order:#010x}, not {BYTE_ORDER:#010x}"
                ));
            }
        }
        match word(8) {
            VERSION => {}
            0 => return damaged("its version is 0".to_owned()),
            version => {
                return fail(
                    origin,
                    &format!(
                        "it has version {version} of the file format, and this library reads version {VERSION}; compile it again, or use a newer library"
                    ),
                );
            }
        }
        if bytes[112..] != checksum(&bytes[..112]) {
            return damaged("it does not match its checksum".to_owned());
        }
        if bytes[56..112] != [0; 56] {
            return damaged("bytes 56 to 111 are not 0".to_owned());
        }
        let mut table_checksum = [0; 16];
        table_checksum.copy_from_slice(&bytes[40..56]);
        Ok(Header { length: long(16), table: (long(24), long(32)), table_checksum })
    }
}

fn fail<T>(origin: &str, what: &str) -> Result<T> {
    fail!(InvalidModel, "{origin}: {what}")
}

/// The checked parts of a file.
pub(super) struct Container {
    bytes: Bytes,
    parts: Vec<PartEntry>,
}

impl Container {
    /// Reads all of the file, on the threads of the pool, and compares it with its checksums.
    pub(super) fn open(bytes: Bytes, origin: &str, pool: &Pool) -> Result<Self> {
        let header = Header::decode(&bytes, origin)?;
        let length = bytes.len() as u64;
        if header.length != length {
            let what = if header.length > length { "it was cut short" } else { "something was added to it" };
            return fail(
                origin,
                &format!("it has {length} bytes, and its header says {}: {what}", header.length),
            );
        }
        let Some(table) = slice(&bytes, header.table.0, header.table.1) else {
            let (start, len) = header.table;
            return fail(
                origin,
                &format!("its table of parts lies at {start}, {len} bytes: outside of the file"),
            );
        };
        if checksum(&table) != header.table_checksum {
            return fail(origin, "its table of parts is damaged: it does not match its checksum");
        }
        let parts = match Table::decode(table) {
            Ok(table) => table.parts,
            Err(e) => return fail(origin, &format!("its table of parts is no such message: {e}")),
        };
        let container = Container { bytes, parts };
        container.check(header.table.0, origin, pool)?;
        Ok(container)
    }

    /// The bytes of a part that every artifact has.
    pub(super) fn part(&self, name: &str, origin: &str) -> Result<Bytes> {
        let part = self.parts.iter().find(|part| part.name == name);
        match part.and_then(|part| slice(&self.bytes, part.offset, part.length)) {
            Some(bytes) => Ok(bytes),
            None => fail(origin, &format!("it has no part \"{name}\"; it has {}", self.names())),
        }
    }

    /// Name, length and checksum of each part.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&str, u64, &[u8])> {
        self.parts.iter().map(|part| (part.name.as_str(), part.length, &part.checksum[..]))
    }

    fn names(&self) -> String {
        self.parts.iter().map(|part| part.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn check(&self, end: u64, origin: &str, pool: &Pool) -> Result<()> {
        let mut free = HEADER as u64;
        let mut bytes = Vec::with_capacity(self.parts.len());
        let mut gaps = Vec::new();
        for (i, part) in self.parts.iter().enumerate() {
            let PartEntry { name, offset, length, .. } = part;
            if self.parts[..i].iter().any(|other| other.name == *name) {
                return fail(origin, &format!("it has two parts \"{name}\""));
            }
            let inside = slice(&self.bytes, *offset, *length)
                .filter(|_| *offset >= free && offset.is_multiple_of(ALIGNMENT) && offset + length <= end);
            let Some(inside) = inside else {
                return fail(
                    origin,
                    &format!(
                        "its part \"{name}\" lies at {offset}, {length} bytes; parts begin at multiples of {ALIGNMENT}, one behind another, from {free} to {end}"
                    ),
                );
            };
            gaps.push((free, *offset));
            free = offset + length;
            bytes.push(inside);
        }
        gaps.push((free, end));
        for (start, end) in gaps {
            if slice(&self.bytes, start, end - start).is_none_or(|gap| gap.iter().any(|&byte| byte != 0)) {
                return fail(origin, &format!("bytes {start} to {end} belong to no part, and are not all 0"));
            }
        }
        let slices: Vec<&[u8]> = bytes.iter().map(|part| &part[..]).collect();
        for (part, checksum) in self.parts.iter().zip(checksums(&slices, pool)) {
            if part.checksum != checksum {
                return fail(
                    origin,
                    &format!("its part \"{}\" is damaged: it does not match its checksum", part.name),
                );
            }
        }
        Ok(())
    }
}

fn slice(bytes: &Bytes, offset: u64, length: u64) -> Option<Bytes> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    (end <= bytes.len()).then(|| bytes.slice(start..end))
}
