//! Digests of parts, which several threads can compute: BLAKE3 of the BLAKE3 digests of the part's pieces of 1 MiB.

use std::sync::OnceLock;

use crate::threads::Pool;

pub(crate) type Digest = [u8; 32];

/// Bytes of a piece.
const PIECE: usize = 1 << 20;

/// The digest of bytes, on the threads of the pool.
pub(crate) fn digest(bytes: &[u8], pool: &Pool) -> Digest {
    digests(&[bytes], pool)[0]
}

/// The digest of each of some parts, on the threads of the pool.
pub(crate) fn digests(parts: &[&[u8]], pool: &Pool) -> Vec<Digest> {
    let pieces: Vec<&[u8]> = parts.iter().flat_map(|part| part.chunks(PIECE)).collect();
    let found: Vec<OnceLock<Digest>> = pieces.iter().map(|_| OnceLock::new()).collect();
    pool.split(pieces.len(), 1, |range| {
        for i in range {
            found[i].get_or_init(|| blake3::hash(pieces[i]).into());
        }
    });
    let mut found = found.into_iter().filter_map(OnceLock::into_inner);
    let of_part = |part: &&[u8]| {
        let mut whole = blake3::Hasher::new();
        for piece in found.by_ref().take(part.len().div_ceil(PIECE)) {
            whole.update(&piece);
        }
        whole.finalize().into()
    };
    parts.iter().map(of_part).collect()
}

/// The digest of bytes that come one after another.
pub(super) struct Digester {
    piece: blake3::Hasher,
    filled: usize,
    whole: blake3::Hasher,
}

impl Digester {
    pub(super) fn new() -> Self {
        Digester { piece: blake3::Hasher::new(), filled: 0, whole: blake3::Hasher::new() }
    }

    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PIECE - self.filled));
            self.piece.update(now);
            self.filled += now.len();
            bytes = later;
            if self.filled == PIECE {
                self.end_piece();
            }
        }
    }

    pub(super) fn finish(mut self) -> Digest {
        if self.filled > 0 {
            self.end_piece();
        }
        self.whole.finalize().into()
    }

    fn end_piece(&mut self) {
        self.whole.update(self.piece.finalize().as_bytes());
        self.piece.reset();
        self.filled = 0;
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
            let mut digester = Digester::new();
            bytes.chunks(1 << 17).for_each(|some| digester.update(some));
            assert_eq!(digester.finish(), digest(&bytes, &pool), "{len} bytes");
        }
    }
}
