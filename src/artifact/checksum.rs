//! Checksums of parts, which tell damage: XXH3 of 128 bits over those of the part's pieces of 1 MiB, so that several threads
//! can compute one at the speed of memory. Who means harm can make them; what is read is checked for itself.

use std::sync::OnceLock;

use twox_hash::xxhash3_128::Hasher;

use crate::threads::Pool;

pub(super) type Checksum = [u8; 16];

/// Bytes of a piece.
const PIECE: usize = 1 << 20;

/// The checksum of bytes that are one piece.
pub(super) fn checksum(bytes: &[u8]) -> Checksum {
    Hasher::oneshot(bytes).to_le_bytes()
}

/// The checksum of each of some parts, on the threads of the pool.
pub(super) fn checksums(parts: &[&[u8]], pool: &Pool) -> Vec<Checksum> {
    let pieces: Vec<&[u8]> = parts.iter().flat_map(|part| part.chunks(PIECE)).collect();
    let found: Vec<OnceLock<Checksum>> = pieces.iter().map(|_| OnceLock::new()).collect();
    pool.split(pieces.len(), 4, |range| {
        for i in range {
            found[i].get_or_init(|| checksum(pieces[i]));
        }
    });
    let mut found = found.into_iter().filter_map(OnceLock::into_inner);
    let of_part = |part: &&[u8]| {
        let pieces: Vec<u8> = found.by_ref().take(part.len().div_ceil(PIECE)).flatten().collect();
        checksum(&pieces)
    };
    parts.iter().map(of_part).collect()
}

/// The checksum of a part that comes piece by piece.
#[derive(Default)]
pub(super) struct Checksummer {
    piece: Vec<u8>,
    pieces: Vec<u8>,
}

impl Checksummer {
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PIECE - self.piece.len()));
            self.piece.extend_from_slice(now);
            bytes = later;
            if self.piece.len() == PIECE {
                self.end_piece();
            }
        }
    }

    pub(super) fn finish(mut self) -> Checksum {
        if !self.piece.is_empty() {
            self.end_piece();
        }
        checksum(&self.pieces)
    }

    fn end_piece(&mut self) {
        self.pieces.extend(checksum(&self.piece));
        self.piece.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_agree_at_every_edge() {
        let pool = Pool::new(3);
        for len in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 7] {
            let bytes: Vec<u8> = (0..len).map(|i| (i * 31 % 251) as u8).collect();
            let mut streamed = Checksummer::default();
            bytes.chunks(100_003).for_each(|some| streamed.update(some));
            assert_eq!(streamed.finish(), checksums(&[&bytes], &pool)[0], "{len} bytes");
        }
    }
}
