//! The layout of an artifact as `src/artifact/container.rs` describes it, written a second time: with checksums that are
//! right whatever the parts are.

use twox_hash::xxhash3_128::Hasher;

const HEADER: usize = 128;
const ALIGNMENT: usize = 4096;
const PIECE: usize = 1 << 20;

#[derive(Clone)]
pub struct Container {
    /// The header up to the length of the file.
    start: [u8; 16],
    parts: Vec<(String, Vec<u8>)>,
}

impl Container {
    /// `None` for what has another layout.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?) as usize);
        let table = bytes.get(number(24)?..number(24)?.checked_add(number(32)?)?)?;
        let mut parts = Vec::new();
        let mut rest = table;
        while !rest.is_empty() {
            let mut entry = field(&mut rest)?.1;
            let (mut name, mut place) = (String::new(), [0; 2]);
            while !entry.is_empty() {
                let (number, content, value) = whole_field(&mut entry)?;
                match number {
                    1 => name = String::from_utf8(content.to_vec()).ok()?,
                    2 | 3 => place[number as usize - 2] = value as usize,
                    _ => {}
                }
            }
            parts.push((name, bytes.get(place[0]..place[0] + place[1])?.to_vec()));
        }
        Some(Container { start: bytes.get(..16)?.try_into().ok()?, parts })
    }

    /// `change`: a part, where (three bytes), what is done (the low two bits: set, insert, remove, add one), a byte.
    pub fn change(&mut self, change: &[u8]) {
        let count = self.parts.len();
        let (_, part) = &mut self.parts[usize::from(change[0]) % count];
        let at = usize::from(change[1]) << 16 | usize::from(change[2]) << 8 | usize::from(change[3]);
        let at = at % (part.len() + 1);
        match change[4] & 3 {
            1 => part.insert(at, change[5]),
            2 if at < part.len() => drop(part.remove(at)),
            3 if at < part.len() => part[at] = part[at].wrapping_add(1),
            0 if at < part.len() => part[at] = change[5],
            _ => {}
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        let mut table = Vec::new();
        for (name, part) in &self.parts {
            bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
            let pieces: Vec<u8> = part.chunks(PIECE).flat_map(checksum).collect();
            let mut entry = Vec::new();
            put(&mut entry, 1, name.as_bytes());
            for (number, value) in [(2, bytes.len()), (3, part.len())] {
                // A number that is 0 is left out.
                if value > 0 {
                    entry.push(number << 3);
                    put_number(&mut entry, value as u64);
                }
            }
            put(&mut entry, 4, &checksum(&pieces));
            put(&mut table, 1, &entry);
            bytes.extend(part);
        }
        let start = bytes.len() as u64;
        bytes.extend(&table);
        let length = bytes.len() as u64;
        bytes[..16].copy_from_slice(&self.start);
        for (at, value) in [(16, length), (24, start), (32, table.len() as u64)] {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes[40..56].copy_from_slice(&checksum(&table));
        let own = checksum(&bytes[..112]);
        bytes[112..HEADER].copy_from_slice(&own);
        bytes
    }
}

fn checksum(bytes: &[u8]) -> [u8; 16] {
    Hasher::oneshot(bytes).to_le_bytes()
}

/// A field of bytes of a protobuf message: its number, and what is in it.
fn field<'a>(bytes: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
    let (number, content, _) = whole_field(bytes)?;
    Some((number, content))
}

/// A field: its number, and its bytes or its value.
fn whole_field<'a>(bytes: &mut &'a [u8]) -> Option<(u64, &'a [u8], u64)> {
    let key = number(bytes)?;
    let value = number(bytes)?;
    if key & 7 == 0 {
        return Some((key >> 3, &[], value));
    }
    let (content, rest) = bytes.split_at_checked(value as usize)?;
    *bytes = rest;
    Some((key >> 3, content, 0))
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Some(value);
        }
    }
    None
}

fn put(to: &mut Vec<u8>, field: u8, content: &[u8]) {
    to.push(field << 3 | 2);
    put_number(to, content.len() as u64);
    to.extend(content);
}

fn put_number(to: &mut Vec<u8>, mut value: u64) {
    while value > 127 {
        to.push(value as u8 | 128);
        value >>= 7;
    }
    to.push(value as u8);
}
